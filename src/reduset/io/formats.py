"""Which format a file has: its suffix says so, and its first bytes must agree. Files without a known suffix go by their bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from reduset.io.table import FileError, nearest, one_line

SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "arrow",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".fcs": "fcs",
    ".lmd": "fcs",
    ".h5ad": "h5ad",
    ".h5": "h5ad",
    ".png": "image",
    ".jpg": "image",
    ".jpeg": "image",
    ".tif": "image",
    ".tiff": "image",
    ".bmp": "image",
    ".gif": "image",
    ".webp": "image",
    ".ppm": "image",
    ".pgm": "image",
}

MAGIC = [
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"\x93NUMPY", "npy"),
    (b"PK\x03\x04", "npz"),
    (b"PK\x05\x06", "npz"),
    (b"FCS", "fcs"),
    (b"\x89HDF\r\n\x1a\n", "h5ad"),
    (b"\x89PNG", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"II*\x00", "image"),
    (b"MM\x00*", "image"),
    (b"GIF8", "image"),
    (b"BM", "image"),
    (b"RIFF", "image"),
    (b"P5", "image"),
    (b"P6", "image"),
]

TITLES = {
    "csv": "CSV",
    "tsv": "TSV",
    "parquet": "Parquet",
    "arrow": "Arrow or Feather",
    "npy": "a NumPy array",
    "npz": "NumPy arrays (.npz)",
    "fcs": "FCS",
    "h5ad": "AnnData (HDF5)",
    "image": "an image",
}

OTHERS = {
    ".xlsx": "save the sheet as CSV",
    ".xls": "save the sheet as CSV",
    ".ods": "save the sheet as CSV",
    ".pkl": "pickles can run code and are never opened; save it as .npz or Parquet",
    ".pickle": "pickles can run code and are never opened; save it as .npz or Parquet",
    ".mat": "save its array as .npy",
    ".rds": "save the frame as CSV or Parquet",
    ".zip": "unpack it first",
}


def named(path: Any) -> str:
    """A path as text; anything else is refused."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"a file must be named by a path, got {path!r}; for frames there is as_table")
    text = os.fspath(path)
    return text if isinstance(text, str) else os.fsdecode(text)


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


def by_magic(head: bytes) -> str | None:
    """The format that the first bytes belong to; None for what may be text."""
    return next((name for start, name in MAGIC if head.startswith(start)), None)


def suffix_of(path: str) -> tuple[str, bool]:
    """The suffix of a file, in small letters and without that of gzip, and whether it had that."""
    name = Path(path).name.lower()
    packed = name.endswith((".gz", ".gzip"))
    return Path(name.removesuffix(".gz").removesuffix(".gzip") if packed else name).suffix, packed


def format_of(path: str) -> tuple[str, bool]:
    """The format of a file, and whether it is packed by gzip."""
    head = head_of(path)
    suffix, packed = suffix_of(path)
    said = SUFFIXES.get(suffix)
    if packed and (said not in ("csv", "tsv") or not head.startswith(b"\x1f\x8b")):
        raise FileError(f"{path}: only CSV and TSV are read from gzip, and it must be gzip; unpack or rename it")
    seen = by_magic(head)
    if said in ("csv", "tsv"):
        # two letters such as BM may well begin a name
        if seen not in (None, "image") or (not packed and head.startswith(b"\x1f\x8b")):
            raise FileError(f"{path}: ends in {suffix}, but holds {TITLES.get(seen or '', 'gzip')}; rename it")
        return said, packed
    if said is not None and seen != said:
        if said == "image" and seen is None:
            return said, False  # for its own reader to judge
        saw = f"holds {TITLES[seen]}; rename it" if seen else f"begins with {head[:8]!r}; it is damaged, or something else"
        raise FileError(f"{path}: ends in {suffix}, but {saw}")
    if said is None and suffix in OTHERS:
        raise FileError(f"{path}: {suffix} is not read; {OTHERS[suffix]}")
    if said is None and seen in (None, "image"):
        raise FileError(
            f"{path}: its format is not known by {suffix or 'a name without suffix'}; rename it to one of {_suffixes()}"
        )
    return said or str(seen), False


def _suffixes() -> str:
    return ".csv, .tsv, .parquet, .feather, .npy, .npz, .fcs, .h5ad, .png"
