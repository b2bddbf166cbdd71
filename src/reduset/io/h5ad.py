"""AnnData's files, read by h5py alone: X or raw/X (dense, or sparse by rows or columns), an array of obsm or layers, or obs.

Columns are called by var's index in X and layers, by that of raw/var in raw/X, by key and place in obsm (X_pca-0, X_pca-1, …)
unless a frame lies there. Weights and groups come from obs, whichever array is read; categories stay what they are. Data that lie
in other files (external links) are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reduset.io.guard import check_room
from reduset.io.h5ad_frames import StoredFrame
from reduset.io.h5ad_items import StoredItems
from reduset.io.reader import Block, CodedLabels, FileReader, Format, Numbers, ReadOptions, kind_of_dtype, text_of
from reduset.io.table import FileError, listed, nearest

PART = 1 << 26  # bytes of dense rows held at a time

Part = tuple[int, int, list[Numbers]]  # from row, to row, the chosen columns of these


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
        """Find what was asked for."""
        self._obs = StoredFrame(path, self._items.get, "obs")
        rows = self._obs.rows
        self._matrix: _Dense | _Sparse | None = None
        self._places: dict[str, int] = {}
        self._frame = self._obs
        if key != "obs":
            key = self._found(path, key)
            if self._is_frame(key):
                self._frame = StoredFrame(path, self._items.get, key)
                if self._frame.rows != rows:
                    raise FileError(f"{path}: {key!r} must have {rows:,} rows like obs, got {self._frame.rows:,}")
            else:
                self._matrix = _matrix(path, key, self._items.get, rows)
        if self._matrix is None:
            super().__init__(path, self._frame.kinds, rows)
            self.ordered = frozenset(name for name in self.kinds if self._frame.is_ordered(name))
        else:
            names = self._names(key, self._matrix.shape[1])
            super().__init__(path, dict.fromkeys(names, kind_of_dtype(self._matrix.dtype)), rows)
            self._places = {name: place for place, name in enumerate(names)}
            self.in_one_unit = key.startswith("obsm/")  # a representation, such as principal components
        if key != "obs":
            self.aside = {name: kind for name, kind in self._obs.kinds.items() if name not in self.kinds}

    def _found(self, path: str, key: str) -> str:
        """The array asked for, as the file calls it."""
        found, keys = self._items.found(key), self._items.keys()
        if key not in keys or found is None:
            raise FileError(f"{path}: has no array {key!r}{nearest(key, keys)}; it holds {listed(keys)}")
        return found

    def _is_frame(self, key: str) -> bool:
        item = self._items.get(key)
        return key.startswith("obsm/") and not hasattr(item, "shape") and "indptr" not in item and "_index" in item.attrs

    def _names(self, key: str, width: int) -> list[str]:
        if key.startswith("obsm/"):
            return [f"{key.removeprefix('obsm/')}-{place}" for place in range(width)]
        names = StoredFrame(self._items.own, self._items.get, key[:-1] + "var" if key.startswith("raw") else "var").index()
        if len(set(names)) < width or len(names) != width:
            raise FileError(
                f"{self._items.own}: the names in var must be {width:,} different ones, got {len(set(names)):,}; make them unique"
            )
        return names

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        frames = {name: self._frame if name in self.kinds else self._obs for name in names if name not in self._places}
        beside = {name: frame.numbers(name) for name, frame in frames.items()}
        coded = [self._labels(name) for name in labels]
        if self._matrix is not None:
            parts = self._matrix.parts([self._places[name] for name in names if name in self._places], rows)
        else:
            count = int(self.rows or 0)
            parts = ((first, min(first + rows, count), []) for first in range(0, count, rows))
        for first, stop, part in parts:
            columns = iter(part)
            out = [beside[name][first:stop] if name in beside else next(columns) for name in names]
            yield Block(first, out, [each.rows(slice(first, stop)) for each in coded])

    def _labels(self, name: str) -> CodedLabels:
        frame = self._frame if name in self._frame.kinds else self._obs
        if name not in frame.kinds:
            raise FileError(f"{self.path}: groups come from obs, which has no column {name!r}")
        return frame.labels(name)


def _matrix(path: str, key: str, get: Any, rows: int) -> _Dense | _Sparse:
    item = get(key)
    found: _Dense | _Sparse
    if hasattr(item, "shape"):
        found = _Dense(item)
    elif "indptr" in item:
        kind = text_of(item.attrs.get("encoding-type", item.attrs.get("h5sparse_format", "csr_matrix")))
        shape = item.attrs.get("shape", item.attrs.get("h5sparse_shape"))
        found = _Sparse(path, [get(f"{key}/{name}") for name in ("data", "indices", "indptr")], shape, kind.startswith("csc"))
    else:
        raise FileError(f"{path}: {key!r} is no array of numbers; choose another key")
    if len(found.shape) != 2 or found.shape[0] != rows:
        raise FileError(f"{path}: {key!r} must have {rows:,} rows like obs, and columns; got shape {tuple(found.shape)}")
    return found


class _Dense:
    """An array, read in whole rows: its chunks hold all columns."""

    def __init__(self, item: Any) -> None:
        self._item = item
        self.shape = tuple(int(side) for side in item.shape)
        self.dtype = item.dtype

    def parts(self, places: list[int], rows: int) -> Iterator[Part]:
        count = max(1, min(rows, PART // max(1, self.shape[1] * self.dtype.itemsize)))
        for start in range(0, self.shape[0], count):
            stop = min(start + count, self.shape[0])
            block = self._item[start:stop]
            yield start, stop, [block[:, place] for place in places]


class _Sparse:
    """A sparse matrix by rows (CSR) or columns (CSC); only what lies in the chosen columns becomes dense."""

    def __init__(self, path: str, arrays: list[Any], shape: Any, by_columns: bool) -> None:
        self._path = path
        self._data, self._indices, pointers = arrays
        self.shape = tuple(int(side) for side in shape)
        self.dtype = self._data.dtype
        self._by_columns = by_columns
        if pointers.shape != (self.shape[by_columns] + 1,) or self._data.shape != self._indices.shape:
            raise FileError(f"{path}: its sparse matrix does not fit its shape {self.shape}; it is damaged")
        self._pointers = np.asarray(pointers[()], np.int64)
        if (np.diff(self._pointers) < 0).any() or self._pointers[0] < 0 or self._pointers[-1] > self._data.shape[0]:
            raise FileError(f"{path}: the rows of its sparse matrix lie outside it; it is damaged")

    def parts(self, places: list[int], rows: int) -> Iterator[Part]:
        return self._whole(places) if self._by_columns else self._rows(places, rows)

    def _rows(self, places: list[int], rows: int) -> Iterator[Part]:
        seat = np.full(self.shape[1], -1)
        seat[places] = np.arange(len(places))
        count = max(1, min(rows, PART // max(1, len(places) * self.dtype.itemsize)))
        for start in range(0, self.shape[0], count):
            stop = min(start + count, self.shape[0])
            first, last = self._pointers[start], self._pointers[stop]
            columns = self._checked(self._indices[first:last], self.shape[1])
            row = np.repeat(np.arange(stop - start), np.diff(self._pointers[start : stop + 1]))
            chosen = seat[columns] >= 0
            block = np.zeros((len(places), stop - start), self.dtype)
            np.add.at(block, (seat[columns[chosen]], row[chosen]), self._data[first:last][chosen])
            yield start, stop, list(block)

    def _whole(self, places: list[int]) -> Iterator[Part]:
        check_room(self._path, 2.0 * len(places) * self.shape[0] * self.dtype.itemsize)
        block = np.zeros((len(places), self.shape[0]), self.dtype)
        for seat, place in enumerate(places):
            first, last = self._pointers[place : place + 2]
            np.add.at(block[seat], self._checked(self._indices[first:last], self.shape[0]), self._data[first:last])
        yield 0, self.shape[0], list(block)

    def _checked(self, indices: Numbers, count: int) -> Numbers:
        if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < count:
            raise FileError(f"{self._path}: entries of its sparse matrix lie outside it; it is damaged")
        return indices


FORMATS = (
    Format("AnnData (HDF5)", (".h5ad", ".h5"), H5adReader, magic=(b"\x89HDF\r\n\x1a\n",), needs=("h5py", "h5ad"), keyed=True),
)
