"""NumPy's own files. Pickles are never opened, and shapes are checked against the file and the memory before allocation."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from reduset._archive import npy_header
from reduset.io.guard import check_bomb, check_room
from reduset.io.reader import Block, FileReader, Format, Numbers, ReadOptions, block_of, encode, kind_of_dtype
from reduset.io.table import FileError, listed, nearest, one_line

PART = 1 << 20  # bytes unpacked at a time


class _Header(NamedTuple):
    """Shape, order and type of a stored array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @classmethod
    def read(cls, path: str, stream: Any, title: str) -> _Header:
        """The header of an array."""
        try:
            return cls(*npy_header(stream, title))
        except ValueError as error:
            raise FileError(f"{path}: {one_line(error)}") from error

    def check(self, path: str, available: int, title: str) -> int:
        """The number of bytes, after checking that values are plain and all of them are in the file."""
        if self.dtype.hasobject:
            raise FileError(f"{path}: {title} holds Python objects, which are never unpickled; save it as numbers")
        size = int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize
        if size > available or min(self.shape, default=0) < 0:
            raise FileError(f"{path}: cut short or damaged: {title} should have {size:,} bytes, and has {available:,}")
        return size


class _ArrayColumns:
    """The columns of an array: x0, x1, …, or its fields."""

    def __init__(self, path: str, header: _Header, title: str) -> None:
        shape, _, dtype = header
        if len(shape) not in ((1,) if dtype.names else (1, 2)):
            raise FileError(f"{path}: {title} must have two dimensions (rows, columns), got shape {shape}; reshape it")
        if dtype.names:
            self.kinds = {name: kind_of_dtype(dtype[name]) for name in dtype.names}
        else:
            width = 1 if len(shape) == 1 else shape[1]
            check_room(path, 100.0 * width, f"{width:,} columns")
            self.kinds = dict.fromkeys((f"x{k}" for k in range(width)), kind_of_dtype(dtype))
        self._positions = {name: position for position, name in enumerate(self.kinds)}

    def column(self, block: Numbers, name: str) -> Numbers:
        """A column of a block of rows."""
        if block.dtype.names:
            return block[name]
        return block if block.ndim == 1 else block[:, self._positions[name]]


def _mappable(path: str) -> tuple[_Header, Any]:
    """The header of a .npy file and a function that maps its array into memory, or None if that is empty."""
    with open(path, "rb") as stream:
        header = _Header.read(path, stream, "its array")
        offset = stream.tell()
        size = header.check(path, stream.seek(0, 2) - offset, "its array")
    order = "F" if header.fortran else "C"
    return header, partial(np.memmap, path, header.dtype, "r", offset, header.shape, order) if size else None


def mapped_array(path: str) -> Numbers:
    """The array of a .npy file, mapped into memory."""
    try:
        header, mapped = _mappable(path)
    except FileError:
        raise
    except Exception as error:  # NumPy evaluates the header with Python's parser, which raises many kinds of errors
        raise FileError(f"{path}: cannot be read ({one_line(error)})") from error
    if header.dtype.kind == "c":
        raise FileError(f"{path}: must hold real numbers, got {header.dtype}; save its real and imaginary parts as columns")
    if mapped is None:
        raise FileError(f"{path}: must hold at least one row and one column, got shape {header.shape}")
    return mapped()


class NpyReader(FileReader):
    """A .npy file. Each block maps the file anew, so that rows read earlier do not stay in memory."""

    may_number_rows = True

    def __init__(self, path: str, _: ReadOptions) -> None:
        header, self._map = _mappable(path)
        self._layout = _ArrayColumns(path, header, "its array")
        super().__init__(path, self._layout.kinds, header.shape[0])

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        if self._map is None:
            return
        for first in range(start // rows * rows, self.rows or 0, rows):
            block = np.asarray(self._map()[first : first + rows])
            yield block_of(first, partial(self._layout.column, block), names, labels)


class _Member(NamedTuple):
    """An array of an archive."""

    header: _Header
    info: zipfile.ZipInfo

    def check(self, path: str) -> None:
        """Check the compression ratio, the memory and the size before anything is unpacked."""
        name, size = self.info.filename.removesuffix(".npy"), self.info.file_size
        check_bomb(path, self.info.compress_size, size, name)
        check_room(path, size, f"its array {name!r}")
        self.header.check(path, size, f"its array {name!r}")


class NpzReader(FileReader):
    """One array of an .npz file in blocks of rows; one-dimensional arrays of the same length may be weights or groups."""

    may_number_rows = True

    def __init__(self, path: str, options: ReadOptions) -> None:
        members = {}
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".npy"):
                    with archive.open(info) as stream:
                        header = _Header.read(path, stream, f"its member {info.filename!r}")
                    members[info.filename.removesuffix(".npy")] = _Member(header, info)
        self._key, self._members = _chosen(path, options.key, members), members
        members[self._key].check(path)
        shape = members[self._key].header.shape
        self._layout = _ArrayColumns(path, members[self._key].header, f"its array {self._key!r}")
        super().__init__(path, self._layout.kinds, shape[0])
        self.aside = {
            name: kind_of_dtype(header.dtype)
            for name, (header, _) in members.items()
            if name != self._key and header.shape == shape[:1] and not header.dtype.hasobject and not header.dtype.names
        }
        if sum(len(member.header.shape) == 2 for member in members.values()) > 1 and options.key is None:
            self.notes.append(f"read its array {self._key!r} of {listed(members)}")

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        with zipfile.ZipFile(self.path) as archive:
            aside = {name: self._whole(archive, name) for name in {*names, *labels} if name in self.aside}
            coded = {name: encode(aside[name]) for name in labels if name in aside}
            for first, values in self._row_blocks(archive, rows):
                here = slice(first, first + len(values))
                columns = {name: whole[here] for name, whole in aside.items()}
                columns |= {name: self._layout.column(values, name) for name in (*names, *labels) if name not in aside}
                block = block_of(first, columns.__getitem__, names, [])
                yield block._replace(labels=[coded[name].rows(here) if name in coded else encode(columns[name]) for name in labels])

    def _row_blocks(self, archive: zipfile.ZipFile, rows: int) -> Iterator[tuple[int, Numbers]]:
        """Blocks of rows, each with the number of rows before it."""
        (shape, fortran, dtype), info = self._members[self._key]
        if fortran:  # rows are not contiguous
            whole = self._whole(archive, self._key)
            yield from ((first, whole[first : first + rows]) for first in range(0, len(whole), rows))
            return
        with archive.open(info) as stream:
            _Header.read(self.path, stream, f"its array {self._key!r}")
            row_size = int(np.prod(shape[1:], dtype=object)) * dtype.itemsize
            rows = max(1, min(rows, PART // max(row_size, 1)))
            for first in range(0, shape[0], rows):
                count = min(rows, shape[0] - first)
                data = stream.read(count * row_size)
                if len(data) < count * row_size:
                    last = first + len(data) // max(row_size, 1)
                    raise FileError(f"{self.path}: cut short: its array {self._key!r} ends in row {last}")
                yield first, np.frombuffer(data, dtype).reshape(count, *shape[1:])

    def _whole(self, archive: zipfile.ZipFile, name: str) -> Numbers:
        self._members[name].check(self.path)
        with archive.open(self._members[name].info) as stream:
            return np.asarray(npy.read_array(stream, allow_pickle=False))


def _chosen(path: str, key: str | None, members: dict[str, _Member]) -> str:
    """The array to read: ``key``, the only table, or the one with a usual name."""
    if key is not None:
        if key not in members:
            raise FileError(f"{path}: has no array {key!r}{nearest(key, members)}; it holds {listed(members)}")
        return key
    tables = [name for name, (header, _) in members.items() if len(header.shape) == 2 or header.dtype.names]
    for name in tables if len(tables) == 1 else ["X", "x", "data"]:
        if name in tables:
            return name
    if not members:
        raise FileError(f"{path}: holds no arrays")
    if not tables and len(members) == 1:
        return next(iter(members))
    raise FileError(f"{path}: holds {listed(members)}; choose one with key=")


FORMATS = (
    Format("a NumPy array", (".npy",), NpyReader, magic=(b"\x93NUMPY",)),
    Format("NumPy arrays (.npz)", (".npz",), NpzReader, magic=(b"PK\x03\x04", b"PK\x05\x06"), keyed=True),
)
