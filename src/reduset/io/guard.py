"""Checks before a file is opened or memory is allocated: paths, optional libraries, room in memory.

A compressed file may unpack to far more than its own size. So nothing is unpacked before its size is known to fit. An absurd
compression ratio raises an error even if the data would fit.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reduset._archive import write_whole
from reduset._engine import physical_memory
from reduset.io.remote import stream_of, url_of
from reduset.io.table import FileError, nearest, one_line

LARGE_MEMBER = 1 << 31  # bytes
MAX_COMPRESSION = 200  # measured data stay below this ratio; deflate reaches 1,032
PACKAGES = {"PIL": "pillow", "python_calamine": "python-calamine"}


def need(purpose: str, module: str, extra: str) -> Any:
    """Import an optional library. If it is missing, the error names the extra that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise FileError(
            f"{purpose} needs {PACKAGES.get(name, name)}, which is not installed: pip install 'reduset[{extra}]'"
        ) from error


def memory() -> float:
    """Bytes of memory available to this process; 16 GiB if unknown."""
    return physical_memory(unknown=16 << 30)


@dataclass(frozen=True)
class Work:
    """Memory that the work on a table needs in addition to the table, and the advice if both do not fit."""

    number: int = 0  # bytes for each number of the table
    row: int = 0  # bytes for each row
    what: str = "the columns read"
    way_out: str = "choose fewer columns, or read it in batches"


READ = Work()


def check_room(path: str, size: float, what: str = READ.what, way_out: str = READ.way_out) -> None:
    """Raise an error for what cannot fit in memory."""
    if size > memory():
        raise FileError(f"{path}: {what} would take {size / 2**30:,.1f} GiB, this machine has {memory() / 2**30:,.1f}; {way_out}")


def check_bomb(path: str, packed: int, unpacked: int, member: str) -> None:
    """Raise an error for a compressed member with an absurd unpacked size."""
    if unpacked > LARGE_MEMBER and unpacked > MAX_COMPRESSION * max(packed, 1):
        raise FileError(
            f"{path}: its member {member!r} has {packed:,} bytes and would unpack to {unpacked:,}; no data do, so it is not opened"
        )


def path_text(path: Any) -> str:
    """A path or URL as text."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a file must be named by a path, got {path!r}; use as_table for frames")
    return url_of(os.fsdecode(path)) or os.fsdecode(path)


def suffix_of(path: str) -> tuple[str, bool]:
    """The suffix of a file in small letters, and whether gzip's suffix followed it."""
    name = Path(path).name.lower()
    unpacked = name.removesuffix(".gz").removesuffix(".gzip")
    return Path(unpacked).suffix, unpacked != name


def head_of(path: str, count: int = 512) -> bytes:
    """The first bytes of a regular file, which must not be empty."""
    if os.path.isdir(path):
        raise FileError(f"{path}: is a folder; name the files in it, such as {os.path.join(path, '*')}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise FileError(f"{path}: is no regular file; write its content to one first")
    try:
        with stream_of(path) if url_of(path) else open(path, "rb") as stream:
            head = bytes(stream.read(count))
    except FileError:
        raise
    except FileNotFoundError as error:
        raise FileError(f"{path}: no such file{_similar_file(path)}") from error
    except PermissionError as error:
        raise FileError(f"{path}: may not be read (permission denied)") from error
    except (OSError, ValueError) as error:
        raise FileError(f"{path!r}: cannot be opened ({one_line(error)})") from error
    if not head:
        raise FileError(f"{path}: is empty (0 bytes)")
    return head


def _similar_file(path: str) -> str:
    """A question with the file of the most similar name in the folder, or ""."""
    folder = Path(path).parent
    try:
        names = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return f"; there is no folder {folder} either" if not folder.exists() else ""
    return nearest(Path(path).name, names)


def write_file(path: str, fill: Callable[[Any], None]) -> None:
    """Write a file atomically with a function that fills a stream."""
    if os.path.isdir(path):
        raise FileError(f"{path}: is a folder; name a file in it")
    if os.path.exists(path) and not os.path.isfile(path):
        raise FileError(f"{path}: is a pipe or a device, and only a regular file can be replaced; give another name")
    try:
        write_whole(path, fill)
    except FileNotFoundError as error:
        raise FileError(f"{path}: cannot be written, for there is no folder {os.path.dirname(path)}") from error
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({one_line(error)}); nothing was left behind") from error
