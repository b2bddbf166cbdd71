"""The way in and the way out: every error becomes one line and a code that means something."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from typing import Any

import typer

from reduset.cli import (
    commands,  # noqa: F401 (each registers itself with the app)
    messages,
)
from reduset.cli.app import DONE, INTERRUPTED, REFUSED, Usage, app
from reduset.cli.interrupts import interruptible

STOPPED = "interrupted; nothing half-written was left"


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit."""
    _prepare_streams()
    code = run(arguments)
    try:
        sys.stdout.flush()  # here, where what goes wrong can still be told
    except OSError as error:
        _drop_output()
        if code != REFUSED and not isinstance(error, BrokenPipeError):
            _say(f"error: {one_line(error)}")
            code = REFUSED
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code)  # all is written; the compiler would take a third of a second to put away what the system frees at once


def run(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    warnings.showwarning = _note
    try:
        with interruptible():  # what was half written is removed on the way out
            code: Any = app(arguments, prog_name="reduset", standalone_mode=False)
        if code == INTERRUPTED:  # as typer ends by itself
            _say(STOPPED)
        return code if isinstance(code, int) else DONE
    except typer.Exit as ending:
        return ending.exit_code
    except Usage as error:
        where = f"{error.ctx.command_path} --help" if error.ctx is not None else "reduset --help"
        message = " ".join(error.format_message().split())
        _say(f"error: {message} (see {where})")
        return REFUSED
    except (typer.Abort, KeyboardInterrupt):
        _say(STOPPED)
        return INTERRUPTED
    except SystemExit as ending:
        if not isinstance(ending.__context__, BrokenPipeError):
            raise
        _drop_output()  # whoever read it has gone, as `head` does, which click makes an end with code 1
        return DONE
    except MemoryError:
        _say("error: not enough memory; choose fewer columns (--columns) or fewer atoms (--size)")
        return REFUSED
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        if was_interrupt(error):  # which struck while a class was made, or a module was loaded
            _say(STOPPED)
            return INTERRUPTED
        if isinstance(error, RuntimeError):
            raise
        if os.environ.get("REDUSET_TRACEBACK"):
            raise
        _say(f"error: {one_line(error)}")
        return REFUSED


def was_interrupt(error: BaseException | None) -> bool:
    """Whether an error is what Python made of an interrupt: "Error calling __set_name__", say, with the interrupt as its cause."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _prepare_streams() -> None:
    """Print names and signs that the terminal has no letters for as escapes; and into nothing where a stream was closed."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (as long as the process lives)
        else:
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Let what is still to be printed go nowhere, so that the interpreter does not complain when it closes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_line(error: BaseException) -> str:
    """What went wrong, without line breaks; an error of the system with the file it is about."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    text = " ".join(str(error).split()) or type(error).__name__
    return messages.as_options(text)


def _say(text: str) -> None:
    messages.note(text)


def _note(message: Warning | str, category: Any, filename: str, lineno: int, file: Any = None, line: str | None = None) -> None:
    """What the library warns of, in one line and without the place in the source."""
    _say(f"note: {' '.join(str(message).split())}")
