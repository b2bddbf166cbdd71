"""Which files are read: those named, and in place of a folder the files of data in it.

A folder's files are those with the suffix of a format, all of one format, in the order in which people count (part-2 before
part-10). What begins with a dot or an underscore is left out: hidden files, _SUCCESS, _metadata. A folder of Parquet or ORC, or one
with no file of data of its own, is a data set: its folders are searched too, whatever they are called.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reduset.io.paths import path_text
from reduset.io.reader import Format
from reduset.io.registry import format_by_suffix, usual_suffixes
from reduset.io.table import FileError, one_line


def files_of(paths: Any) -> list[str]:
    """The names of all files that one path, or several, stand for."""
    given = [path_text(path) for path in ([paths] if not isinstance(paths, Sequence) or isinstance(paths, str) else paths)]
    if not given:
        raise FileError("no files were named")
    return [name for path in given for name in (_inside(path) if os.path.isdir(path) else [path])]


def _inside(folder: str) -> list[str]:
    """The files of data in a folder."""
    found, folders = _entries(folder)
    if all(kind.nested for kind in found.values()):
        for inner in folders:
            found |= _deeper(inner)
    if not found:
        raise FileError(f"{folder}: is a folder without files of data ({usual_suffixes()} and so on); name some")
    firsts: dict[str, str] = {}
    for name, kind in found.items():
        firsts.setdefault(kind.title, name)
    if len(firsts) > 1:
        (one, first), (other, second) = list(firsts.items())[:2]
        raise FileError(
            f"{folder}: is a folder of several formats, {one} ({os.path.relpath(first, folder)}) and {other} "
            f"({os.path.relpath(second, folder)}); name the files to read, such as {os.path.join(folder, '*' + Path(first).suffix)}"
        )
    return list(found)


def _deeper(folder: str) -> dict[str, Format]:
    """The files of data in a folder and all folders in it."""
    found, folders = _entries(folder)
    for inner in folders:
        found |= _deeper(inner)
    return found


def _entries(folder: str) -> tuple[dict[str, Format], list[str]]:
    """The files of data in a folder by format, and its folders, in order; links to folders are not followed."""
    try:
        with os.scandir(folder) as entries:
            seen = sorted(
                (entry for entry in entries if not entry.name.startswith((".", "_"))), key=lambda entry: counted_order(entry.name)
            )
            files = {entry.path: format_by_suffix(entry.name) for entry in seen if entry.is_file()}
            folders = [entry.path for entry in seen if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise FileError(f"{folder}: cannot be looked into ({one_line(error)})") from error
    return {name: kind for name, kind in files.items() if kind is not None}, folders


def counted_order(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Numbers in names by their value; the name itself where that is all that differs (a01, a1)."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts], name
