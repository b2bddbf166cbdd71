"""NumPy's own files. Pickles are never opened; shapes are checked against the file and the memory before anything is allocated."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from reduset.io.guard import check_bomb, check_room
from reduset.io.reader import Block, FileReader, Format, Numbers, ReadOptions, block_of, encode, kind_of_dtype
from reduset.io.table import FileError, listed, nearest, one_line

PART = 1 << 20  # bytes unpacked at a time


def _header(path: str, stream: Any, what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array, where these are written in a way that is known."""
    version = npy.read_magic(stream)
    reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if reader is None:
        raise FileError(f"{path}: {what} is written in version {version} of the format, which is not read")
    return reader(stream)


def _check(path: str, shape: tuple[int, ...], dtype: np.dtype[Any], there: int, what: str) -> int:
    """How many bytes an array has: plain ones, all of them in the file."""
    if dtype.hasobject:
        raise FileError(f"{path}: {what} holds Python objects, which are never unpickled; save it as numbers")
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if size > there or min(shape, default=0) < 0:
        raise FileError(f"{path}: cut short or damaged: {what} should have {size:,} bytes, and has {there:,}")
    return size


class _ArrayColumns:
    """Columns of an array: x0, x1, … of a plain one, the fields of one with names."""

    def __init__(self, path: str, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
        if len(shape) not in ((1,) if dtype.names else (1, 2)):
            raise FileError(f"{path}: {what} must have two dimensions (rows, columns), got shape {shape}; reshape it")
        self.rows = shape[0]
        if dtype.names:
            self.kinds = {name: kind_of_dtype(dtype[name]) for name in dtype.names}
        else:
            width = 1 if len(shape) == 1 else shape[1]
            check_room(path, 100.0 * width, f"{width:,} columns")
            self.kinds = dict.fromkeys((f"x{k}" for k in range(width)), kind_of_dtype(dtype))
        self._maps = {name: place for place, name in enumerate(self.kinds)}
        self._flat = len(shape) == 1

    def column(self, block: Numbers, name: str) -> Numbers:
        """One column of some rows."""
        if block.dtype.names:
            return block[name]
        return block if self._flat else block[:, self._maps[name]]


def mapped_array(path: str) -> Numbers:
    """The array of a .npy file, mapped into memory: what is looked at is read, and nothing else."""
    try:
        with open(path, "rb") as stream:
            shape, fortran, dtype = _header(path, stream, "its array")
            offset = stream.tell()
            size = _check(path, shape, dtype, stream.seek(0, 2) - offset, "its array")
    except FileError:
        raise
    except Exception as error:  # a damaged header is refused by the parser of Python, in many ways
        raise FileError(f"{path}: cannot be read ({one_line(error)})") from error
    if dtype.kind == "c":
        raise FileError(f"{path}: must hold real numbers, got {dtype}; save its real and imaginary parts as columns")
    if not size:
        raise FileError(f"{path}: must hold at least one row and one column, got shape {shape}")
    return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")


class NpyReader(FileReader):
    """A .npy file, mapped into memory for each block anew: only the rows at hand are read, and no others stay."""

    may_number_rows = True

    def __init__(self, path: str, _: ReadOptions) -> None:
        with open(path, "rb") as stream:
            shape, fortran, dtype = _header(path, stream, "its array")
            offset = stream.tell()
            size = _check(path, shape, dtype, stream.seek(0, 2) - offset, "its array")
        self._layout = _ArrayColumns(path, shape, dtype, "its array")
        super().__init__(path, self._layout.kinds, shape[0])
        self._map = partial(np.memmap, path, dtype, "r", offset, shape, "F" if fortran else "C") if size else None

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        if self._map is None:  # nothing cannot be mapped
            return
        for first in range(start // rows * rows, self._layout.rows, rows):
            block = np.asarray(self._map()[first : first + rows])
            yield block_of(first, partial(self._layout.column, block), names, labels)


class _Member(NamedTuple):
    """An array of an archive, as its header says."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    info: zipfile.ZipInfo

    def check(self, path: str) -> None:
        """Before anything is unpacked: no bomb, room in memory, plain numbers, all of them there."""
        name, size = self.info.filename.removesuffix(".npy"), self.info.file_size
        check_bomb(path, self.info.compress_size, size, name)
        check_room(path, size, f"its array {name!r}")
        _check(path, self.shape, self.dtype, size, f"its array {name!r}")


class NpzReader(FileReader):
    """One array of an .npz file, row block by row block; arrays of one dimension and as many entries may be weights or groups."""

    may_number_rows = True

    def __init__(self, path: str, options: ReadOptions) -> None:
        members = {}
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".npy"):
                    with archive.open(info) as stream:
                        header = _header(path, stream, f"its member {info.filename!r}")
                    members[info.filename.removesuffix(".npy")] = _Member(*header, info)
        self._key, self._members = _chosen(path, options.key, members), members
        mine = members[self._key]
        mine.check(path)
        self._layout = _ArrayColumns(path, mine.shape, mine.dtype, f"its array {self._key!r}")
        super().__init__(path, self._layout.kinds, mine.shape[0])
        self.aside = {
            name: kind_of_dtype(other.dtype)
            for name, other in members.items()
            if name != self._key and other.shape == mine.shape[:1] and not other.dtype.hasobject and not other.dtype.names
        }
        if sum(len(each.shape) == 2 for each in members.values()) > 1 and options.key is None:
            self.notes.append(f"read its array {self._key!r} of {listed(members)}")

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        with zipfile.ZipFile(self.path) as archive:
            beside = {name: self._whole(archive, name) for name in {*names, *labels} if name in self.aside}
            coded = {name: encode(beside[name]) for name in labels if name in beside}  # of all rows at once
            for first, some in self._row_blocks(archive, rows):
                here = slice(first, first + len(some))
                cut = {name: whole[here] for name, whole in beside.items()}
                block = block_of(first, partial(self._column, some, cut), names, [])
                found = [coded[name].rows(here) if name in coded else encode(self._layout.column(some, name)) for name in labels]
                yield block._replace(labels=found)

    def _column(self, some: Numbers, beside: dict[str, Numbers], name: str) -> Numbers:
        return beside[name] if name in beside else self._layout.column(some, name)

    def _row_blocks(self, archive: zipfile.ZipFile, rows: int) -> Iterator[tuple[int, Numbers]]:
        """Some rows after the other, with the number of rows before them."""
        shape, fortran, dtype, info = self._members[self._key]
        if fortran:  # its rows lie scattered
            whole = self._whole(archive, self._key)
            yield from ((first, whole[first : first + rows]) for first in range(0, len(whole), rows))
            return
        with archive.open(info) as stream:
            _header(self.path, stream, f"its array {self._key!r}")
            row = int(np.prod(shape[1:], dtype=object)) * dtype.itemsize
            rows = max(1, min(rows, PART // max(row, 1)))
            for first in range(0, shape[0], rows):
                count = min(rows, shape[0] - first)
                data = stream.read(count * row)
                if len(data) < count * row:
                    last = first + len(data) // max(row, 1)
                    raise FileError(f"{self.path}: cut short: its array {self._key!r} ends in row {last}")
                yield first, np.frombuffer(data, dtype).reshape(count, *shape[1:])

    def _whole(self, archive: zipfile.ZipFile, name: str) -> Numbers:
        self._members[name].check(self.path)
        with archive.open(self._members[name].info) as stream:
            return np.asarray(npy.read_array(stream, allow_pickle=False))


def _chosen(path: str, key: str | None, members: dict[str, _Member]) -> str:
    """The array to read: the one asked for, the only table, or the one with a usual name."""
    if key is not None:
        if key not in members:
            raise FileError(f"{path}: has no array {key!r}{nearest(key, members)}; it holds {listed(members)}")
        return key
    tables = [name for name, member in members.items() if len(member.shape) == 2 or member.dtype.names]
    for name in tables if len(tables) == 1 else ["X", "x", "data"]:
        if name in tables:
            return name
    if not members:
        raise FileError(f"{path}: holds no arrays")
    if not tables and len(members) == 1:
        return next(iter(members))
    raise FileError(f"{path}: holds {listed(members)}; say which with key=")


FORMATS = (
    Format("a NumPy array", (".npy",), NpyReader, magic=(b"\x93NUMPY",)),
    Format("NumPy arrays (.npz)", (".npz",), NpzReader, magic=(b"PK\x03\x04", b"PK\x05\x06"), keyed=True),
)
