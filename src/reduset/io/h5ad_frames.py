"""Items and frames of AnnData files. Only items of the file itself are read, not those of other files that it links to.

The frames are obs, var and some of obsm. They are groups of columns, or compound datasets before anndata 0.7. Categories are
integer codes with a list of categories: a group of both since 0.8, in `__categories` next to the columns in 0.7, and in uns as
`<column>_categories` in 0.6. Nullable columns, and text since pandas 3, are groups of values and a mask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset.io.guard import need
from reduset.io.reader import CATEGORIES, TEXT, CodedLabels, Numbers, encode, kind_of_dtype, text_of
from reduset.io.table import FileError


class StoredItems:
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


class StoredFrame:
    """A frame in a file.

    Attributes
    ----------
    kinds : type of each column.
    rows : number of rows.
    """

    def __init__(self, items: StoredItems, name: str) -> None:
        self._path, self._get, self._name = items.path, items.get, name
        item = self._get(name)
        self._is_compound = hasattr(item, "shape")
        if self._is_compound:
            if not item.dtype.names or len(item.shape) != 1:
                raise FileError(f"{self._path}: {name!r} must be a table of columns, got {item.dtype} of shape {item.shape}")
            columns, self.rows = list(item.dtype.names), int(item.shape[0])
            self._index = next((column for column in ("_index", "index") if column in columns), columns[0])
        else:
            self._index = text_of(item.attrs.get("_index", "_index"))
            columns, self.rows = list(item), int(self._array(f"{name}/{self._index}").shape[0])
        self.kinds = {column: self._kind(column) for column in columns if column not in (self._index, "__categories")}

    def index(self) -> list[str]:
        """The names of the rows."""
        return [text_of(name) for name in self._column(self._index).tolist()]

    def numbers(self, name: str) -> Numbers:
        """A column of numbers; NaN for masked values."""
        mask = self._mask(name)
        return self._column(name) if mask is None else np.where(mask, np.nan, self._column(name).astype(np.float64))

    def labels(self, name: str) -> CodedLabels:
        """A column as labels, with its own categories if it has some."""
        if self.kinds[name] != CATEGORIES:
            mask = self._mask(name) if self.kinds[name] == TEXT else None
            if mask is None:
                return encode(self.numbers(name))
            texts = self._column(name).astype(object)
            texts[mask] = None
            return encode(texts)
        path = self._categories(name)
        is_group = path == f"{self._name}/{name}/categories"
        codes = np.asarray(self._get(f"{self._name}/{name}/codes")[()] if is_group else self._column(name), np.int64)
        categories = np.atleast_1d(np.asarray(self._array(str(path))[()])).tolist()
        if len(codes) and codes.max() >= len(categories):
            raise FileError(
                f"{self._path}: the codes of {self._name}/{name} exceed its {len(categories)} categories; it is damaged"
            )
        return CodedLabels(codes, [category if isinstance(category, int) else text_of(category) for category in categories])

    def is_ordered(self, name: str) -> bool:
        """Whether a column has ordered categories."""
        path = self._categories(name)
        if path is None or self._is_compound:
            return False
        holder = path.removesuffix("/categories") if path == f"{self._name}/{name}/categories" else path
        return bool(self._get(holder).attrs.get("ordered", False))

    def _column(self, name: str) -> Numbers:
        if self._is_compound:
            return np.asarray(self._get(self._name)[name])
        return np.asarray(self._array(f"{self._name}/{name}")[()])

    def _array(self, path: str) -> Any:
        """An array in the file, or the values of one with a mask."""
        item = self._get(path)
        return item if hasattr(item, "shape") else self._get(f"{path}/values")

    def _mask(self, name: str) -> Numbers | None:
        """Which values of a nullable column are missing."""
        item = None if self._is_compound else self._get(f"{self._name}/{name}")
        if item is None or hasattr(item, "shape") or "mask" not in item:
            return None
        return np.asarray(self._get(f"{self._name}/{name}/mask")[()], bool)

    def _kind(self, name: str) -> str:
        if self._categories(name) is not None:
            return CATEGORIES
        if self._is_compound:
            return kind_of_dtype(self._get(self._name).dtype[name])
        item = self._get(f"{self._name}/{name}")
        if hasattr(item, "shape"):
            return kind_of_dtype(item.dtype)
        if "values" in item and "mask" in item:
            return kind_of_dtype(self._get(f"{self._name}/{name}/values").dtype)
        return "something else"

    def _categories(self, name: str) -> str | None:
        """The path of the categories of a column, if it has some."""
        if self._is_compound:
            are_codes = self._get(self._name).dtype[name].kind in "iu"
            has_list = are_codes and "uns" in self._get("/") and f"{name}_categories" in self._get("uns")
            return f"uns/{name}_categories" if has_list else None
        item = self._get(f"{self._name}/{name}")
        if not hasattr(item, "shape"):
            return f"{self._name}/{name}/categories" if "codes" in item and "categories" in item else None
        return f"{self._name}/__categories/{name}" if "categories" in item.attrs else None
