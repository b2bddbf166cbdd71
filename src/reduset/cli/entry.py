"""Start and end of the command: exit codes, errors in one line, and interrupts.

Python drops an exception that is raised in a callback of a weak reference or in a finaliser, and with it an interrupt. So an
interrupt is raised again every `REPEAT` seconds until the command ends. While a module is imported or LLVM compiles, it waits for
at most `LONGEST_IMPORT` seconds. Compiled modules would turn it into another error, and callbacks of LLVM would drop it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import typer

from reduset.cli import messages

# isort: off
from reduset.cli import sketch, compress, cover, audit, cohort, study, segment, models, distance, drift, watch, demo  # noqa: F401

# isort: on
from reduset.cli.app import DONE, INTERRUPTED, INVALID, Usage, app

STOPPED = "interrupted; no incomplete files remain"
REPEAT = 1.0  # seconds
LONGEST_IMPORT, RETRY = 10.0, 0.05
LLVM = f"{os.sep}llvmlite{os.sep}"
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
IGNORED = (signal.SIG_IGN, None)  # as set by nohup, or by code that is not Python
_interrupts: list[float] = []  # times of the interrupts since the start


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit."""
    for name in ("stdout", "stderr"):  # characters that the terminal cannot show are printed as escapes
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (as long as the process lives)
        else:
            stream.reconfigure(errors="backslashreplace")
    code = run(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        if code != INVALID and not isinstance(error, BrokenPipeError):
            messages.note(f"error: {one_line(error)}")
            code = INVALID
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code)  # a normal exit takes 0.3 s to free the memory of LLVM


def run(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    warnings.showwarning = _show_warning
    try:
        with interruptible():  # partial files are removed before it ends
            code: Any = app(arguments, prog_name="reduset", standalone_mode=False)
        if code == INTERRUPTED:
            messages.note(STOPPED)
        return code if isinstance(code, int) else DONE
    except typer.Exit as ending:
        return ending.exit_code
    except Usage as error:
        help_command = f"{error.ctx.command_path} --help" if error.ctx is not None else "reduset --help"
        return _invalid(f"{' '.join(error.format_message().split())} (see {help_command})")
    except (typer.Abort, KeyboardInterrupt):
        messages.note(STOPPED)
        return INTERRUPTED
    except SystemExit as ending:
        if not isinstance(ending.__context__, BrokenPipeError):
            raise
        _drop_output()  # the reader of the pipe has closed it, as `head` does
        return DONE
    except MemoryError:
        return _invalid("not enough memory; choose fewer columns (--columns) or fewer atoms (--size)")
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        if was_interrupt(error):
            messages.note(STOPPED)
            return INTERRUPTED
        if isinstance(error, RuntimeError) or os.environ.get("REDUSET_TRACEBACK"):
            raise
        return _invalid(one_line(error))


def _invalid(message: str) -> int:
    messages.note(f"error: {message}")
    return INVALID


def was_interrupt(error: BaseException | None) -> bool:
    """Whether an error has an interrupt as its cause, such as "Error calling __set_name__"."""
    checked: set[int] = set()
    while error is not None and id(error) not in checked:
        if isinstance(error, KeyboardInterrupt):
            return True
        checked.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _drop_output() -> None:
    """Discard what remains to be printed, so that the interpreter does not report an error on closing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_line(error: BaseException) -> str:
    """The message of an error without line breaks; an error of the system with its file."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    return messages.as_options(" ".join(str(error).split()) or type(error).__name__)


def _show_warning(
    message: Warning | str, category: Any, filename: str, lineno: int, file: Any = None, line: str | None = None
) -> None:
    """A warning of the library in one line, without the line of source code."""
    messages.note(f"note: {' '.join(str(message).split())}")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise a KeyboardInterrupt inside for any of the signals that end a program."""
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    if hasattr(signal, "setitimer"):
        numbers.append(signal.SIGALRM)
    before = {number: handler for number in numbers if (handler := signal.getsignal(number)) not in IGNORED}
    for number in before:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        _repeat(0.0)
        _interrupts.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: Any) -> None:
    _interrupts.append(time.monotonic())
    if hasattr(signal, "setitimer") and must_not_interrupt(frame) and time.monotonic() - _interrupts[0] < LONGEST_IMPORT:
        _repeat(RETRY)
        return
    _repeat(REPEAT)
    if not isinstance(sys.exception(), KeyboardInterrupt):  # partial files are being removed
        raise KeyboardInterrupt


def must_not_interrupt(frame: Any) -> bool:
    """Whether a frame is inside an import or inside llvmlite. Callbacks from LLVM print an exception and drop it."""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or LLVM in file:
            return True
        frame = frame.f_back
    return False


def _repeat(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
