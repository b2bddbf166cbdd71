"""The formats, the format of a file, and the files of a folder.

The suffix of a file states its format, and its first bytes must agree. Files without a known suffix are identified by their bytes.
Readers are imported with the first file, and the library of a format with the first file of that format.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any

from reduset.io.guard import head_of, need, path_text, suffix_of
from reduset.io.reader import FileReader, Format, ReadOptions
from reduset.io.remote import files_at, url_of
from reduset.io.table import FileError, one_line, refusing

# Modules with readers, each with its FORMATS, in the order in which messages list them.
READERS = ("arrow", "delimited", "arrays", "fcs", "h5ad", "images")

GZIP = b"\x1f\x8b"
UNSUPPORTED = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as CSV"),
    **dict.fromkeys((".pkl", ".pickle"), "pickles can run code and are never opened; save it as .npz or Parquet"),
    ".mat": "save its array as .npy",
    ".rds": "save the frame as CSV or Parquet",
    ".zip": "unpack it first",
}


@cache
def formats() -> tuple[Format, ...]:
    """All formats."""
    return tuple(known for name in READERS for known in import_module(f"reduset.io.{name}").FORMATS)


def usual_suffixes(some: Iterable[Format] | None = None) -> str:
    """The usual suffix of each format, for messages and help."""
    return ", ".join(known.suffixes[0] for known in (formats() if some is None else some))


def written_suffixes() -> dict[str, Format]:
    """The suffixes of tables that can be written, with their formats."""
    return {suffix: known for known in formats() for suffix in known.written}


def format_by_suffix(path: str) -> Format | None:
    """The format by the suffix of a file; None if unknown, or if files of the format are not compressed by gzip."""
    suffix, packed = suffix_of(path)
    return next((known for known in formats() if suffix in known.suffixes and (known.gzipped or not packed)), None)


def _format_of(path: str) -> Format:
    """The format of a file by its suffix and its first bytes."""
    head = head_of(path)
    suffix, packed = suffix_of(path)
    by_suffix = format_by_suffix(path)
    by_bytes = next((known for known in formats() if head.startswith(known.magic)), None)
    if packed and (by_suffix is None or not head.startswith(GZIP)):
        gzipped = " and ".join(known.title for known in formats() if known.gzipped)
        raise FileError(f"{path}: only {gzipped} are read from gzip, and it must be gzip; unpack or rename it")
    if by_suffix is None:
        if suffix in UNSUPPORTED:
            raise FileError(f"{path}: {suffix} is not read; {UNSUPPORTED[suffix]}")
        if by_bytes is None or not by_bytes.sure:
            unknown = f"its format is not known by {suffix or 'a name without suffix'}"
            raise FileError(f"{path}: {unknown}; rename it to one of {usual_suffixes()}")
        return by_bytes
    other = None
    if not by_suffix.magic:  # text: two letters such as BM may begin a name
        if by_bytes is not None and (by_bytes.sure or b"\0" in head):
            other = by_bytes.title
        elif head.startswith(GZIP) and not packed:
            other = "gzip"
    elif by_bytes is not None:
        other = by_bytes.title if by_bytes is not by_suffix else None
    elif by_suffix.sure:
        raise FileError(f"{path}: ends in {suffix}, but begins with {head[:8]!r}; it is damaged, or something else")
    if other is not None:
        raise FileError(f"{path}: ends in {suffix}, but holds {other}; rename it")
    return by_suffix


def open_file(path: str, options: ReadOptions) -> FileReader:
    """A file, opened by the reader of its format. Any exception for a damaged file becomes a `FileError`."""
    known = _format_of(path)
    if options.key is not None and not known.keyed:
        keyed = usual_suffixes(other for other in formats() if other.keyed)
        raise FileError(f"{path}: key={options.key!r} is for files of several arrays ({keyed}); leave it out")
    if url_of(path) and not known.remote:
        some = usual_suffixes(other for other in formats() if other.remote)
        raise FileError(f"{path}: {known.title} is read from local files; copy it, or save it as one of {some}")
    need(f"{path}: reading {known.title}", *known.needs)
    with refusing(path, known.title):
        source = known.open(path, options)
    source.title = known.title
    return source


def files_of(paths: Any) -> list[str]:
    """The names of all files of one path or several. A folder means the files of data in it, a pattern with * all files it fits.

    These have the suffix of a format, all of one format, and are in natural order (part-2 before part-10). Names that begin with a
    dot or an underscore are skipped: hidden files, _SUCCESS, _metadata. Folders of Parquet or ORC, and those without files of data,
    are searched recursively.
    """
    given = [path_text(path) for path in ([paths] if not isinstance(paths, Sequence) or isinstance(paths, str) else paths)]
    if not given:
        raise FileError("no files were named")
    return [name for path in given for name in _files_of(path)]


def _files_of(path: str) -> list[str]:
    """The files of one path, URL or pattern."""
    if url_of(path):
        names = files_at(path)
        if names == [path]:
            return names
    elif os.path.isdir(path):
        return _files_in(path)
    elif "*" in path and not os.path.exists(path):
        names = glob(path, recursive=True)
    else:
        return [path]
    known = {name: known for name in sorted(names, key=counted_order) if (known := format_by_suffix(name)) is not None}
    return _of_one_format(path, known)


def _files_in(folder: str) -> list[str]:
    files, folders = _entries(folder)
    if all(known.nested for known in files.values()):
        while folders:
            inner, deeper = _entries(folders.pop(0))
            files |= inner
            folders = deeper + folders
    return _of_one_format(folder, files)


def _of_one_format(folder: str, files: dict[str, Format]) -> list[str]:
    if not files:
        raise FileError(f"{folder}: is a folder without files of data ({usual_suffixes()} and so on); name some")
    by_format: dict[str, str] = {}
    for name, known in files.items():
        by_format.setdefault(known.title, name)
    if len(by_format) > 1:
        (one, first), (other, second) = list(by_format.items())[:2]
        raise FileError(
            f"{folder}: is a folder of several formats, {one} ({os.path.relpath(first, folder)}) and {other} "
            f"({os.path.relpath(second, folder)}); name the files to read, such as {os.path.join(folder, '*' + Path(first).suffix)}"
        )
    return list(files)


def _entries(folder: str) -> tuple[dict[str, Format], list[str]]:
    """The files of data in a folder by format, and its folders, in order. Links to folders are not followed."""
    try:
        with os.scandir(folder) as scanned:
            entries = sorted(
                (entry for entry in scanned if not entry.name.startswith((".", "_"))), key=lambda entry: counted_order(entry.name)
            )
            files = {entry.path: format_by_suffix(entry.name) for entry in entries if entry.is_file()}
            folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        raise FileError(f"{folder}: cannot be searched ({one_line(error)})") from error
    return {name: known for name, known in files.items() if known is not None}, folders


def counted_order(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """A key for natural order: numbers in names by value, then the name itself (a01 before a1)."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts], name
