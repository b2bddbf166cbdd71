"""The formats that are known, and which of them a file has: its suffix says so, and its first bytes must agree.

Files without a known suffix go by their bytes. Readers are imported when the first file is looked at, and the library of a format
when the first such file is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module

from reduset.io.guard import need
from reduset.io.paths import head_of, suffix_of
from reduset.io.reader import FileReader, Format, ReadOptions
from reduset.io.table import FileError, refusing

# A reader a module, with its FORMATS; in the order in which messages name them.
READERS = ("arrow", "orc", "delimited", "arrays", "fcs", "h5ad", "images")

GZIP = b"\x1f\x8b"
OTHERS = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as CSV"),
    **dict.fromkeys((".pkl", ".pickle"), "pickles can run code and are never opened; save it as .npz or Parquet"),
    ".mat": "save its array as .npy",
    ".rds": "save the frame as CSV or Parquet",
    ".zip": "unpack it first",
}


@cache
def formats() -> tuple[Format, ...]:
    """All formats."""
    return tuple(each for name in READERS for each in import_module(f"reduset.io.{name}").FORMATS)


def usual_suffixes(some: Iterable[Format] | None = None) -> str:
    """The usual suffix of each format, for messages and help."""
    return ", ".join(each.suffixes[0] for each in (formats() if some is None else some))


def written_suffixes() -> dict[str, Format]:
    """The suffixes that are offered for tables, with their formats."""
    return {suffix: each for each in formats() for suffix in each.written}


def format_by_suffix(path: str) -> Format | None:
    """The format that a file's suffix says; None for none that is known, or not if packed."""
    suffix, packed = suffix_of(path)
    return next((each for each in formats() if suffix in each.suffixes and (each.gzipped or not packed)), None)


def format_by_content(head: bytes) -> Format | None:
    """The format that the first bytes belong to; None for what may be text."""
    return next((each for each in formats() if head.startswith(each.magic)), None)


def format_of(path: str) -> Format:
    """The format of a file, by its suffix and its first bytes."""
    head = head_of(path)
    suffix, packed = suffix_of(path)
    said, seen = format_by_suffix(path), format_by_content(head)
    if packed and (said is None or not head.startswith(GZIP)):
        packable = " and ".join(each.title for each in formats() if each.gzipped)
        raise FileError(f"{path}: only {packable} are read from gzip, and it must be gzip; unpack or rename it")
    if said is None:
        return _by_bytes(path, suffix, seen)
    if not said.magic:  # text: two letters such as BM may well begin a name
        binary = seen is not None and (seen.sure or b"\0" in head)
        other = seen.title if seen is not None and binary else "gzip" if head.startswith(GZIP) and not packed else None
    elif seen is not None:
        other = seen.title if seen is not said else None
    elif said.sure:
        raise FileError(f"{path}: ends in {suffix}, but begins with {head[:8]!r}; it is damaged, or something else")
    else:
        other = None  # for its own reader to judge
    if other is not None:
        raise FileError(f"{path}: ends in {suffix}, but holds {other}; rename it")
    return said


def _by_bytes(path: str, suffix: str, seen: Format | None) -> Format:
    """The format of a file without a known suffix."""
    if suffix in OTHERS:
        raise FileError(f"{path}: {suffix} is not read; {OTHERS[suffix]}")
    if seen is None or not seen.sure:
        known = f"its format is not known by {suffix or 'a name without suffix'}"
        raise FileError(f"{path}: {known}; rename it to one of {usual_suffixes()}")
    return seen


def open_file(path: str, options: ReadOptions) -> FileReader:
    """A file, opened by the reader of its format; whatever a damaged one provokes is refused in one line."""
    found = format_of(path)
    if options.key is not None and not found.keyed:
        keyed = usual_suffixes(each for each in formats() if each.keyed)
        raise FileError(f"{path}: key={options.key!r} is for files of several arrays ({keyed}); leave it out")
    need(f"{path}: reading {found.title}", *found.needs)
    with refusing(path, found.title):
        source = found.open(path, options)
    source.title = found.title
    return source
