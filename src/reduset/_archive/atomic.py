"""Atomic writing: a temporary file in the same folder replaces the target as a whole."""

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
        kind = "a folder" if target.is_dir() else "a pipe or a device"
        raise OSError(errno.EINVAL, f"is {kind}, and only a regular file can be replaced; give another name", os.fspath(path))
    # the name is known before the file exists, so that it can be removed after an interrupt at any moment
    temporary = os.fspath(target.parent / f".{target.name[:40]}.{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # private while it is written, then as the user's mask allows
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


def _move(temporary: str, target: Path) -> None:
    """Replace the target, and flush the folder: otherwise a power cut could bring back the old file."""
    os.replace(temporary, target)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # some file systems cannot flush folders
                os.fsync(folder)
        finally:
            os.close(folder)
