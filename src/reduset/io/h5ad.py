"""AnnData files, read by h5py: X or raw/X (dense, or sparse by rows or columns), an array of obsm or layers, or obs.

Columns have the names in var for X and layers, those in raw/var for raw/X, and key and position in obsm (X_pca-0, X_pca-1, …)
unless that is a frame. Weights and groups come from obs. Data in other files (external links) raise an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reduset.io.guard import check_room
from reduset.io.h5ad_frames import StoredFrame, StoredItems
from reduset.io.reader import Block, FileReader, Format, Numbers, ReadOptions, kind_of_dtype, text_of
from reduset.io.table import FileError, listed, nearest

PART = 1 << 26  # bytes of dense rows in memory

Part = tuple[int, int, list[Numbers]]  # first row, end, the chosen columns of these rows


class H5adReader(FileReader):
    """One array of an .h5ad file."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        self._items = StoredItems(path)
        try:
            self._settle(path, "X" if options.key is None else options.key)
        except BaseException:
            self._items.file.close()  # the error may be kept, and this object with it
            raise

    def _settle(self, path: str, key: str) -> None:
        self._obs = self._frame = StoredFrame(self._items, "obs")
        self._matrix: _Dense | _Sparse | None = None
        self._positions: dict[str, int] = {}
        if key != "obs":
            keys, stored = self._items.keys(), self._items.stored_key(key)
            if key not in keys or stored is None:
                raise FileError(f"{path}: has no array {key!r}{nearest(key, keys)}; it holds {listed(keys)}")
            key, item = stored, self._items.get(stored)
            if key.startswith("obsm/") and not hasattr(item, "shape") and "indptr" not in item and "_index" in item.attrs:
                self._frame = StoredFrame(self._items, key)
            else:
                self._matrix = _matrix(path, key, self._items, self._obs.rows)
        if self._frame.rows != self._obs.rows:
            raise FileError(f"{path}: {key!r} must have {self._obs.rows:,} rows like obs, got {self._frame.rows:,}")
        if self._matrix is None:
            super().__init__(path, self._frame.kinds, self._obs.rows)
            self.ordered = frozenset(name for name in self.kinds if self._frame.is_ordered(name))
        else:
            names = self._names(key, self._matrix.shape[1])
            super().__init__(path, dict.fromkeys(names, kind_of_dtype(self._matrix.dtype)), self._obs.rows)
            self._positions = {name: position for position, name in enumerate(names)}
            self.in_one_unit = key.startswith("obsm/")  # a representation, such as principal components
        if key != "obs":
            self.aside = {name: kind for name, kind in self._obs.kinds.items() if name not in self.kinds}

    def _names(self, key: str, width: int) -> list[str]:
        if key.startswith("obsm/"):
            return [f"{key.removeprefix('obsm/')}-{position}" for position in range(width)]
        names = StoredFrame(self._items, key[:-1] + "var" if key.startswith("raw") else "var").index()
        if len(set(names)) < width or len(names) != width:
            raise FileError(
                f"{self._items.path}: the names in var must be {width:,} different ones, got {len(set(names)):,}; make them unique"
            )
        return names

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        frames = {name: self._frame if name in self.kinds else self._obs for name in names if name not in self._positions}
        columns = {name: frame.numbers(name) for name, frame in frames.items()}
        coded = []
        for name in labels:
            frame = self._frame if name in self._frame.kinds else self._obs
            if name not in frame.kinds:
                raise FileError(f"{self.path}: groups come from obs, which has no column {name!r}")
            coded.append(frame.labels(name))
        if self._matrix is not None:
            parts = self._matrix.parts([self._positions[name] for name in names if name in self._positions], rows)
        else:
            count = self._obs.rows
            parts = ((first, min(first + rows, count), []) for first in range(0, count, rows))
        for first, stop, part in parts:
            of_matrix = iter(part)
            values = [columns[name][first:stop] if name in columns else next(of_matrix) for name in names]
            yield Block(first, values, [column.rows(slice(first, stop)) for column in coded])


def _matrix(path: str, key: str, items: StoredItems, rows: int) -> _Dense | _Sparse:
    item = items.get(key)
    matrix: _Dense | _Sparse
    if hasattr(item, "shape"):
        matrix = _Dense(item)
    elif "indptr" in item:
        kind = text_of(item.attrs.get("encoding-type", item.attrs.get("h5sparse_format", "csr_matrix")))
        shape = item.attrs.get("shape", item.attrs.get("h5sparse_shape"))
        arrays = [items.get(f"{key}/{name}") for name in ("data", "indices", "indptr")]
        matrix = _Sparse(path, arrays, shape, kind.startswith("csc"))
    else:
        raise FileError(f"{path}: {key!r} is no array of numbers; choose another key")
    if len(matrix.shape) != 2 or matrix.shape[0] != rows:
        raise FileError(f"{path}: {key!r} must have {rows:,} rows like obs, and columns; got shape {tuple(matrix.shape)}")
    return matrix


class _Dense:
    """An array, read in whole rows, because its chunks hold all columns."""

    def __init__(self, item: Any) -> None:
        self._item = item
        self.shape = tuple(int(length) for length in item.shape)
        self.dtype = item.dtype

    def parts(self, positions: list[int], rows: int) -> Iterator[Part]:
        count = max(1, min(rows, PART // max(1, self.shape[1] * self.dtype.itemsize)))
        for start in range(0, self.shape[0], count):
            stop = min(start + count, self.shape[0])
            block = self._item[start:stop]
            yield start, stop, [block[:, position] for position in positions]


class _Sparse:
    """A sparse matrix by rows (CSR) or columns (CSC). Only the chosen columns become dense."""

    def __init__(self, path: str, arrays: list[Any], shape: Any, by_columns: bool) -> None:
        self._path = path
        self._data, self._indices, pointers = arrays
        self.shape = tuple(int(length) for length in shape)
        self.dtype = self._data.dtype
        self._by_columns = by_columns
        if pointers.shape != (self.shape[by_columns] + 1,) or self._data.shape != self._indices.shape:
            raise FileError(f"{path}: its sparse matrix does not fit its shape {self.shape}; it is damaged")
        self._pointers = np.asarray(pointers[()], np.int64)
        if (np.diff(self._pointers) < 0).any() or self._pointers[0] < 0 or self._pointers[-1] > self._data.shape[0]:
            raise FileError(f"{path}: the pointers of its sparse matrix are out of range; it is damaged")

    def parts(self, positions: list[int], rows: int) -> Iterator[Part]:
        return self._whole(positions) if self._by_columns else self._rows(positions, rows)

    def _rows(self, positions: list[int], rows: int) -> Iterator[Part]:
        target = np.full(self.shape[1], -1)
        target[positions] = np.arange(len(positions))
        count = max(1, min(rows, PART // max(1, len(positions) * self.dtype.itemsize)))
        for start in range(0, self.shape[0], count):
            stop = min(start + count, self.shape[0])
            columns, values = self._entries(self._pointers[start], self._pointers[stop], self.shape[1])
            row = np.repeat(np.arange(stop - start), np.diff(self._pointers[start : stop + 1]))
            chosen = target[columns] >= 0
            block = np.zeros((len(positions), stop - start), self.dtype)
            np.add.at(block, (target[columns[chosen]], row[chosen]), values[chosen])
            yield start, stop, list(block)

    def _whole(self, positions: list[int]) -> Iterator[Part]:
        check_room(self._path, 2.0 * len(positions) * self.shape[0] * self.dtype.itemsize)
        block = np.zeros((len(positions), self.shape[0]), self.dtype)
        for column, position in zip(block, positions, strict=True):
            np.add.at(column, *self._entries(self._pointers[position], self._pointers[position + 1], self.shape[0]))
        yield 0, self.shape[0], list(block)

    def _entries(self, first: int, last: int, count: int) -> tuple[Numbers, Numbers]:
        """The indices, all below ``count``, and the values of some entries."""
        indices = self._indices[first:last]
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < count:
            raise FileError(f"{self._path}: indices of its sparse matrix are out of range; it is damaged")
        return indices, self._data[first:last]


FORMATS = (
    Format("AnnData (HDF5)", (".h5ad", ".h5"), H5adReader, magic=(b"\x89HDF\r\n\x1a\n",), needs=("h5py", "h5ad"), keyed=True),
)
