"""AnnData files, read by h5py: X or raw/X (dense, or sparse by rows or columns), an array of obsm or layers, or obs.

Columns have the names in var for X and layers, those in raw/var for raw/X, and key and position in obsm (X_pca-0, X_pca-1, …)
unless that is a frame. Weights and groups come from obs. Only items of the file itself are read: data in other files (external
links) raise an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from reduset.io.guard import check_room, need
from reduset.io.reader import (
    CATEGORIES,
    TEXT,
    Block,
    CodedLabels,
    FileReader,
    Format,
    Numbers,
    ReadOptions,
    encode,
    kind_of_dtype,
    text_of,
)
from reduset.io.table import FileError, listed, nearest

PART = 1 << 26  # bytes of dense rows in memory

Part = tuple[int, int, list[Numbers]]  # first row, end, the chosen columns of these rows


class H5adReader(FileReader):
    """One array of an .h5ad file."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        self._items = _Items(path)
        try:
            self._settle(path, "X" if options.key is None else options.key)
        except BaseException:
            self._items.file.close()  # the error may be kept, and this object with it
            raise

    def _settle(self, path: str, key: str) -> None:
        self._obs = self._frame = _Frame(self._items, "obs")
        self._matrix: _Dense | _Sparse | None = None
        self._positions: dict[str, int] = {}
        if key != "obs":
            keys, stored = self._items.keys(), self._items.stored_key(key)
            if key not in keys or stored is None:
                raise FileError(f"{path}: has no array {key!r}{nearest(key, keys)}; it holds {listed(keys)}")
            key, item = stored, self._items.get(stored)
            if key.startswith("obsm/") and not hasattr(item, "shape") and "indptr" not in item and "_index" in item.attrs:
                self._frame = _Frame(self._items, key)
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
        names = _Frame(self._items, key[:-1] + "var" if key.startswith("raw") else "var").index()
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


def _matrix(path: str, key: str, items: _Items, rows: int) -> _Dense | _Sparse:
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


class _Column(NamedTuple):
    """A column of a frame: numbers, text or codes, and optionally the mask of missing values and the categories."""

    values: Any
    mask: Any = None
    categories: Any = None
    is_ordered: bool = False


class _Frame:
    """A frame: obs, var or one of obsm, as a group of columns or, before anndata 0.7, a compound dataset.

    Categories are a group of codes and categories since 0.8, in `__categories` next to the columns in 0.7, and in uns as
    `<column>_categories` in 0.6. Nullable columns, and text since pandas 3, are groups of values and a mask.

    Attributes
    ----------
    kinds : type of each column.
    rows : number of rows.
    """

    def __init__(self, items: _Items, name: str) -> None:
        self._items, self._name = items, name
        item = items.get(name)
        self._is_compound = hasattr(item, "shape")
        if self._is_compound:
            if not item.dtype.names or len(item.shape) != 1:
                raise FileError(f"{items.path}: {name!r} must be a table of columns, got {item.dtype} of shape {item.shape}")
            columns = list(item.dtype.names)
            self._index = next((column for column in ("_index", "index") if column in columns), columns[0])
        else:
            columns, self._index = list(item), text_of(item.attrs.get("_index", "_index"))
        self.rows = int((item if self._is_compound else self._column(self._index).values).shape[0])
        self.kinds = {column: self._kind(column) for column in columns if column not in (self._index, "__categories")}

    def index(self) -> list[str]:
        """The names of the rows."""
        return [text_of(name) for name in np.asarray(self._column(self._index).values[()]).tolist()]

    def numbers(self, name: str) -> Numbers:
        """A column of numbers; NaN for masked values."""
        values, mask, *_ = self._column(name)
        values = np.asarray(values[()])
        return values if mask is None else np.where(np.asarray(mask[()], bool), np.nan, values.astype(np.float64))

    def labels(self, name: str) -> CodedLabels:
        """A column as labels, with its own categories if it has some."""
        values, mask, categories, _ = self._column(name)
        if categories is None:
            if self.kinds[name] != TEXT or mask is None:
                return encode(self.numbers(name))
            texts = np.asarray(values[()]).astype(object)
            texts[np.asarray(mask[()], bool)] = None
            return encode(texts)
        codes, known = np.asarray(values[()], np.int64), np.atleast_1d(np.asarray(categories[()])).tolist()
        if len(codes) and codes.max() >= len(known):
            raise FileError(
                f"{self._items.path}: the codes of {self._name}/{name} exceed its {len(known)} categories; it is damaged"
            )
        return CodedLabels(codes, [category if isinstance(category, int) else text_of(category) for category in known])

    def is_ordered(self, name: str) -> bool:
        """Whether a column has ordered categories."""
        return self._column(name).is_ordered

    def _column(self, name: str) -> _Column:
        get, path = self._items.get, f"{self._name}/{name}"
        if self._is_compound:
            values = get(path)
            has_list = values.dtype.kind in "iu" and "uns" in get("/") and f"{name}_categories" in get("uns")
            return _Column(values, categories=get(f"uns/{name}_categories") if has_list else None)
        item = get(path)
        if hasattr(item, "shape"):
            listed = get(f"{self._name}/__categories/{name}") if "categories" in item.attrs else None
            return _Column(item, categories=listed, is_ordered=listed is not None and bool(listed.attrs.get("ordered", False)))
        if "codes" in item and "categories" in item:
            listed = get(f"{path}/categories")
            listed = listed if hasattr(listed, "shape") else get(f"{path}/categories/values")
            return _Column(get(f"{path}/codes"), categories=listed, is_ordered=bool(item.attrs.get("ordered", False)))
        if "values" in item and "mask" in item:
            return _Column(get(f"{path}/values"), get(f"{path}/mask"))
        return _Column(None)

    def _kind(self, name: str) -> str:
        column = self._column(name)
        if column.categories is not None:
            return CATEGORIES
        return "something else" if column.values is None else kind_of_dtype(column.values.dtype)


class _Items:
    """The groups and arrays of a file.

    It has no reference to its reader, so that the file is closed with the reader. An open file would hide later changes to it.

    Attributes
    ----------
    file : as opened by h5py.
    path : name of the file.
    """

    def __init__(self, path: str) -> None:
        self.file = _opened(path)
        self.path = self.file.filename

    def get(self, name: str) -> Any:
        """A group or an array; for a field of a compound array, its rows."""
        group, _, field = name.rpartition("/")
        outer = self.file[group] if group and group in self.file else None
        if outer is not None and hasattr(outer, "shape"):  # obsm before anndata 0.7
            self._check_own(outer, group)
            return np.asarray(outer[field])
        item = self.file[name]
        self._check_own(item, name)
        return item

    def keys(self) -> list[str]:
        """The arrays and frames that ``key`` may name."""
        names = []
        for group in ("obsm", "layers"):
            if group in self.file:
                item = self.get(group)
                names += [f"{group}/{name}" for name in ((item.dtype.names or ()) if hasattr(item, "shape") else item)]
        raw = ["raw/X"] if self.stored_key("raw/X") is not None else []
        return [*(["X"] if "X" in self.file else []), *names, *raw, "obs"]

    def stored_key(self, key: str) -> str | None:
        """The name of an array in the file: raw/X was raw.X before anndata 0.7."""
        return key if key != "raw/X" else next((name for name in (key, "raw.X") if name in self.file), None)

    def _check_own(self, item: Any, name: str) -> None:
        if item.file.filename != self.path or (hasattr(item, "shape") and (item.external or item.is_virtual)):
            raise FileError(f"{self.path}: {name!r} lies in another file, which is not followed")


def _opened(path: str) -> Any:
    """A file without a lock. A file that this process has open already must be opened in the same way."""
    h5py = need("reading AnnData", "h5py", "h5ad")
    for locking in (False, None, True, "best-effort"):
        try:
            return h5py.File(path, "r", locking=locking)
        except OSError as error:
            if "file locking" not in str(error):
                raise
            last = error
    raise FileError(f"{path}: is open in another way, perhaps in this process; close it there first") from last


FORMATS = (
    Format("AnnData (HDF5)", (".h5ad", ".h5"), H5adReader, magic=(b"\x89HDF\r\n\x1a\n",), needs=("h5py", "h5ad"), keyed=True),
)
