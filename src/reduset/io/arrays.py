"""NumPy's own files. Pickles are never opened; shapes are checked against the file and the memory before anything is allocated."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib import format as npy

from reduset.io.guard import check_bomb, check_room
from reduset.io.source import FLAG, NUMBER, SINGLE, TEXT, Block, Labels, Numbers, Source, encode
from reduset.io.table import FileError, listed, nearest, refusing

PART = 1 << 20  # bytes unpacked at a time


def _kind(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "f":
        return SINGLE if dtype.itemsize <= 4 else NUMBER
    return {"i": NUMBER, "u": NUMBER, "b": FLAG, "U": TEXT, "S": TEXT}.get(dtype.kind, f"{dtype}")


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


class _Layout:
    """Columns of an array: x0, x1, … of a plain one, the fields of one with names."""

    def __init__(self, path: str, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
        if len(shape) not in ((1,) if dtype.names else (1, 2)):
            raise FileError(f"{path}: {what} must have two dimensions (rows, columns), got shape {shape}; reshape it")
        self.rows = shape[0]
        if dtype.names:
            self.kinds = {name: _kind(dtype[name]) for name in dtype.names}
        else:
            width = 1 if len(shape) == 1 else shape[1]
            check_room(path, 100.0 * width, f"{width:,} columns")
            self.kinds = dict.fromkeys((f"x{k}" for k in range(width)), _kind(dtype))
        self._maps = {name: place for place, name in enumerate(self.kinds)}
        self._flat = len(shape) == 1

    def column(self, block: Numbers, name: str) -> Numbers:
        """One column of some rows."""
        if block.dtype.names:
            return block[name]
        return block if self._flat else block[:, self._maps[name]]


class NpySource(Source):
    """A .npy file, mapped into memory for each block anew: only the rows at hand are read, and no others stay."""

    format = "a NumPy array"

    def __init__(self, path: str) -> None:
        with refusing(path, self.format):
            with open(path, "rb") as stream:
                shape, fortran, dtype = _header(path, stream, "its array")
                offset = stream.tell()
                size = _check(path, shape, dtype, stream.seek(0, 2) - offset, "its array")
            self._layout = _Layout(path, shape, dtype, "its array")
            super().__init__(path, self._layout.kinds, shape[0])
            self._map = partial(np.memmap, path, dtype, "r", offset, shape, "F" if fortran else "C") if size else None

    def blocks(self, names: Sequence[str], label: str | None, rows: int) -> Iterator[Block]:
        return (block for _, block in self.blocks_from(names, label, rows, 0))

    def blocks_from(self, names: Sequence[str], label: str | None, rows: int, start: int) -> Iterator[tuple[int, Block]]:
        if self._map is None:  # nothing cannot be mapped
            return
        for first in range(start // rows * rows, self._layout.rows, rows):
            with refusing(self.path, self.format):
                block = np.asarray(self._map()[first : first + rows])
            found = None if label is None else encode(self._layout.column(block, label))
            yield first, ([self._layout.column(block, name) for name in names], found)


class NpzSource(Source):
    """One array of an .npz file, row block by row block; arrays of one dimension and as many entries may be weights or groups."""

    format = "NumPy arrays (.npz)"

    def __init__(self, path: str, key: str | None) -> None:
        with refusing(path, self.format), zipfile.ZipFile(path) as archive:
            headers = {}
            for info in archive.infolist():
                if info.filename.endswith(".npy"):
                    with archive.open(info) as stream:
                        shape, fortran, dtype = _header(path, stream, f"its member {info.filename!r}")
                    headers[info.filename.removesuffix(".npy")] = (shape, fortran, dtype, info)
        self._key = _chosen(path, key, headers)
        shape, self._fortran, self._dtype, info = headers[self._key]
        _check_member(path, info, self._key, shape, self._dtype)
        self._shape = shape
        self._layout = _Layout(path, shape, self._dtype, f"its array {self._key!r}")
        super().__init__(path, self._layout.kinds, shape[0])
        self.aside = {
            name: _kind(other[2])
            for name, other in headers.items()
            if name != self._key and other[0] == (shape[0],) and not other[2].hasobject and not other[2].names
        }
        self._infos = {name: headers[name][3] for name in [self._key, *self.aside]}
        self._aside_types = {name: (headers[name][0], headers[name][2]) for name in self.aside}
        if sum(len(header[0]) == 2 for header in headers.values()) > 1 and key is None:
            self.notes.append(f"read its array {self._key!r} of {listed(headers)}")

    def blocks(self, names: Sequence[str], label: str | None, rows: int) -> Iterator[Block]:
        with refusing(self.path, self.format), zipfile.ZipFile(self.path) as archive:
            beside = {name: self._whole(archive, name) for name in {*names, label} if name is not None and name in self.aside}
            labels = encode(beside[label]) if label is not None and label in beside else None
            start = 0
            for block in self._row_blocks(archive, rows):
                here = slice(start, start + len(block))
                found = None
                if labels is not None:
                    found = Labels(labels.codes[here], labels.categories)
                elif label is not None:
                    found = encode(self._layout.column(block, label))
                yield [beside[name][here] if name in beside else self._layout.column(block, name) for name in names], found
                start += len(block)

    def _row_blocks(self, archive: zipfile.ZipFile, rows: int) -> Iterator[Numbers]:
        if self._fortran:  # its rows lie scattered
            whole = self._read(archive, self._key)
            yield from (whole[start : start + rows] for start in range(0, len(whole), rows))
            return
        with archive.open(self._infos[self._key]) as stream:
            _header(self.path, stream, f"its array {self._key!r}")
            row = int(np.prod(self._shape[1:], dtype=object)) * self._dtype.itemsize
            rows = max(1, min(rows, PART // max(row, 1)))
            for start in range(0, self._shape[0], rows):
                count = min(rows, self._shape[0] - start)
                data = stream.read(count * row)
                if len(data) < count * row:
                    raise FileError(
                        f"{self.path}: cut short: its array {self._key!r} ends in row {start + len(data) // max(row, 1)}"
                    )
                yield np.frombuffer(data, self._dtype).reshape(count, *self._shape[1:])

    def _whole(self, archive: zipfile.ZipFile, name: str) -> Numbers:
        _check_member(self.path, self._infos[name], name, *self._aside_types[name])
        return self._read(archive, name)

    def _read(self, archive: zipfile.ZipFile, name: str) -> Numbers:
        with archive.open(self._infos[name]) as stream:
            return np.asarray(npy.read_array(stream, allow_pickle=False))


def _check_member(path: str, info: zipfile.ZipInfo, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Before anything is unpacked: no bomb, room in memory, plain numbers, all of them there."""
    check_bomb(path, info.compress_size, info.file_size, name)
    check_room(path, info.file_size, f"its array {name!r}")
    _check(path, shape, dtype, info.file_size, f"its array {name!r}")


def _chosen(path: str, key: str | None, headers: dict[str, Any]) -> str:
    if key is not None:
        if key not in headers:
            raise FileError(f"{path}: has no array {key!r}{nearest(key, headers)}; it holds {listed(headers)}")
        return key
    tables = [name for name, header in headers.items() if len(header[0]) == 2 or header[2].names]
    for name in tables if len(tables) == 1 else ["X", "x", "data"]:
        if name in tables:
            return name
    if not headers:
        raise FileError(f"{path}: holds no arrays")
    if not tables and len(headers) == 1:
        return next(iter(headers))
    raise FileError(f"{path}: holds {listed(headers)}; say which with key=")
