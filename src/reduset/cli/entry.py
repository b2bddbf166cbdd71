"""The way in and the way out: every error becomes one line and a code that means something."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from typing import Any

import typer

from reduset.cli import commands  # noqa: F401 (each registers itself with the app)
from reduset.cli.app import DONE, INTERRUPTED, REFUSED, Usage, app


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code."""
    # a polite end is an end like Ctrl-C: what was half written is removed on the way out
    signal.signal(signal.SIGTERM, lambda number, frame: _interrupt())
    warnings.showwarning = _note
    try:
        code: Any = app(arguments, prog_name="reduset", standalone_mode=False)
        return code if isinstance(code, int) else DONE
    except typer.Exit as ending:
        return ending.exit_code
    except Usage as error:
        where = f"{error.ctx.command_path} --help" if error.ctx is not None else "reduset --help"
        _say(f"error: {' '.join(error.format_message().split())} (see {where})")
        return REFUSED
    except (typer.Abort, KeyboardInterrupt):
        _say("interrupted; nothing half-written was left")
        return INTERRUPTED
    except BrokenPipeError:
        # whoever read our output has gone; so that the interpreter does not complain when it closes
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except MemoryError:
        _say("error: not enough memory; choose fewer columns (--columns) or fewer atoms (--size)")
        return REFUSED
    except (ValueError, TypeError, OSError, ImportError) as error:
        if os.environ.get("REDUSET_TRACEBACK"):
            raise
        _say(f"error: {one_line(error)}")
        return REFUSED


def one_line(error: BaseException) -> str:
    """What went wrong, without line breaks; an error of the system with the file it is about."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{os.fspath(error.filename)}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def _say(text: str) -> None:
    print(f"reduset: {text}", file=sys.stderr)


def _note(message: Warning | str, category: Any, filename: str, lineno: int, file: Any = None, line: str | None = None) -> None:
    """What the library warns of, in one line and without the place in the source."""
    _say(f"note: {' '.join(str(message).split())}")


def _interrupt() -> None:
    raise KeyboardInterrupt
