"""Atomic writing: a temporary file in the same folder replaces the target, which so appears whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

Path_ = str | os.PathLike[str]

_WAITING: ContextVar[list[tuple[str, Path]] | None] = ContextVar("_WAITING", default=None)


def write_whole(path: Path_, fill: Callable[[BinaryIO], Any]) -> None:
    """Write a file with ``fill(stream)``, atomically."""
    target = Path(os.path.realpath(path))  # a link stays, and its target is replaced
    if target.exists() and not target.is_file():
        what = "a folder" if target.is_dir() else "a pipe or a device"
        raise OSError(
            errno.EINVAL, f"is {what}, and a file can only be written in place of a file; give another name", os.fspath(path)
        )
    # the name is known before the file exists, so that an interrupt at any moment finds what to remove
    temporary = os.fspath(target.parent / f".{target.name[:40]}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb", opener=_private) as stream:
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # the temporary file is private; a saved file follows the user's own mask
        waiting = _WAITING.get()
        if waiting is None:
            _move(temporary, target)
        else:
            waiting.append((temporary, target))
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = os.fspath(path)  # "no space left" helps only with the file's name
        raise


@contextmanager
def together() -> Iterator[None]:
    """Files written inside appear when all of them are written, or none does. Nested blocks belong to the outermost one."""
    if _WAITING.get() is not None:
        yield
        return
    waiting: list[tuple[str, Path]] = []
    token = _WAITING.set(waiting)
    try:
        yield
        while waiting:
            _move(*waiting[0])
            waiting.pop(0)
    finally:
        _WAITING.reset(token)
        for temporary, _ in waiting:
            os.unlink(temporary)


def _private(path: str, flags: int) -> int:
    """Open a file that other users cannot read while it is written."""
    return os.open(path, flags, 0o600)


def _move(temporary: str, target: Path) -> None:
    """Put a file in its place and flush the folder too: a power cut could otherwise bring back the old file."""
    os.replace(temporary, target)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        except OSError:  # some file systems cannot flush folders; the file itself is flushed
            pass
        finally:
            os.close(folder)
