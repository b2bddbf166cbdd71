"""The files of a study: those named, or of a folder the FCS files in it, whatever else lies there (panel, table of samples, notes).

FCS files are known by their suffix or their first bytes, and looked for in the folders inside where there is none beside them. A
folder without any has one file a sample of another format, such as CSV or Parquet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from reduset.io.folders import counted_order
from reduset.io.paths import named
from reduset.io.registry import said_format, usual_suffixes
from reduset.io.table import FileError, listed, one_line

FCS = "FCS"


def study_files(folder_or_files: Any, besides: Iterable[str] = ()) -> list[str]:
    """The paths of all files, in the order in which people count; ``besides`` are tables that may lie in the same folder."""
    several = isinstance(folder_or_files, Sequence) and not isinstance(folder_or_files, str)
    given = [named(path) for path in (folder_or_files if several else [folder_or_files])]
    if not given:
        raise FileError("no files were named")
    others = {os.path.realpath(path) for path in besides}
    found = [name for path in given for name in (_inside(path, others) if os.path.isdir(path) else [path])]
    if len({os.path.realpath(name) for name in found}) < len(found):
        twice = next(name for place, name in enumerate(found) if name in found[:place] or found.count(name) > 1)
        raise FileError(f"{twice}: is named twice; each file is one sample")
    return found


def _inside(folder: str, others: set[str]) -> list[str]:
    by_format: dict[str, list[str]] = {}
    for path in _files(folder):
        kind = _format(path)
        if kind is not None and os.path.realpath(path) not in others:
            by_format.setdefault(kind, []).append(path)
    if FCS not in by_format:
        deeper = [path for path in _deeper(folder) if _format(path) == FCS]
        by_format |= {FCS: deeper} if deeper else {}
    if FCS in by_format:
        return by_format[FCS]
    if len(by_format) > 1:
        raise FileError(f"{folder}: holds files of several formats, {listed(by_format)}, and no FCS files; name those to read")
    if not by_format:
        raise FileError(f"{folder}: is a folder without FCS files or others of data ({usual_suffixes()} and so on); name some")
    return next(iter(by_format.values()))


def _files(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file() and not entry.name.startswith((".", "_"))]
    except OSError as error:
        raise FileError(f"{folder}: cannot be looked into ({one_line(error)})") from error
    return [os.path.join(folder, name) for name in sorted(names, key=counted_order)]


def _deeper(folder: str) -> Iterator[str]:
    """The files of all folders inside, whose names do not begin with a dot or an underscore."""
    for where, folders, _ in os.walk(folder):
        folders[:] = sorted((name for name in folders if not name.startswith((".", "_"))), key=counted_order)
        if where != folder:
            yield from _files(where)


def _format(path: str) -> str | None:
    """The format that a file's suffix says; FCS by its first bytes where that says nothing."""
    said = said_format(path)
    if said is not None:
        return said.title
    if Path(path).suffix.lower() in (".wsp", ".xml"):
        return None
    try:
        with open(path, "rb") as stream:
            return FCS if stream.read(3) == FCS.encode() else None
    except OSError:
        return None
