"""A file by its name: the suffix that counts, its first bytes where it can be opened, and how one is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reduset._archive import write_whole
from reduset.io.table import FileError, nearest, one_line


def path_text(path: Any) -> str:
    """A path as text; anything else is refused."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a file must be named by a path, got {path!r}; for frames there is as_table")
    text = os.fspath(path)
    return text if isinstance(text, str) else os.fsdecode(text)


def suffix_of(path: str) -> tuple[str, bool]:
    """The suffix of a file, in small letters and without that of gzip, and whether it had that."""
    name = Path(path).name.lower()
    packed = name.endswith((".gz", ".gzip"))
    return Path(name.removesuffix(".gz").removesuffix(".gzip") if packed else name).suffix, packed


def head_of(path: str, count: int = 512) -> bytes:
    """The first bytes of a file that is there, is a file, can be opened, and is not empty."""
    if os.path.isdir(path):
        raise FileError(f"{path}: is a folder; name the files in it, such as {os.path.join(path, '*')}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise FileError(f"{path}: is no regular file; write what it gives to one first")
    try:
        with open(path, "rb") as stream:
            head = stream.read(count)
    except FileNotFoundError as error:
        raise FileError(f"{path}: no such file{_neighbour(path)}") from error
    except PermissionError as error:
        raise FileError(f"{path}: may not be read (permission denied)") from error
    except (OSError, ValueError) as error:
        raise FileError(f"{path!r}: cannot be opened ({one_line(error)})") from error
    if not head:
        raise FileError(f"{path}: is empty (0 bytes)")
    return head


def _neighbour(path: str) -> str:
    """The file beside it with the nearest name, if there is one."""
    folder = Path(path).parent
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return f"; there is no folder {folder} either" if not folder.exists() else ""
    return nearest(Path(path).name, names)


def write_file(path: str, fill: Callable[[Any], None]) -> None:
    """Write a file by a function that fills a stream; it appears whole or not at all."""
    if os.path.isdir(path):
        raise FileError(f"{path}: is a folder; name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise FileError(f"{path}: is a pipe or a device, and a file can only be written in place of a file; give another name")
    try:
        write_whole(path, fill)
    except FileNotFoundError as error:
        raise FileError(f"{path}: cannot be written, for there is no folder {os.path.dirname(path)}") from error
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({one_line(error)}); nothing was left behind") from error
