"""Frames of AnnData's files: obs, var, and frames in obsm, as groups of columns or, before anndata 0.7, as compound datasets.

Categories are codes into categories: a group of both since 0.8, `__categories` beside the columns in 0.7, and in 0.6 a list in uns
that is called by the column, `kind_categories`. Columns that may lack values, and since pandas 3 all of text, the index among
them, are a group of values and a mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reduset.io.reader import CATEGORIES, TEXT, CodedLabels, Numbers, encode, kind_of_dtype, text_of
from reduset.io.table import FileError

INDEX = ("_index", "index")

Get = Callable[[str], Any]


class StoredFrame:
    """A frame in a file, whose items ``get`` gives by name.

    Attributes
    ----------
    kinds : what each column holds.
    rows : how many.
    """

    def __init__(self, path: str, get: Get, name: str) -> None:
        self._path, self._get, self.name = path, get, name
        item = get(name)
        self._compound = hasattr(item, "shape")
        if self._compound:
            if not item.dtype.names or len(item.shape) != 1:
                raise FileError(f"{path}: {name!r} must be a table of columns, got {item.dtype} of shape {item.shape}")
            self._index = next((each for each in INDEX if each in item.dtype.names), item.dtype.names[0])
            columns, self.rows = list(item.dtype.names), int(item.shape[0])
        else:
            self._index = text_of(item.attrs.get("_index", "_index"))
            columns, self.rows = list(item), int(self._array(f"{name}/{self._index}").shape[0])
        self.kinds = {each: self._kind(each) for each in columns if each not in (self._index, "__categories")}

    def index(self) -> list[str]:
        """The names of its rows."""
        return [text_of(name) for name in self._column(self._index).tolist()]

    def numbers(self, name: str) -> Numbers:
        """A column of numbers; NaN where one is masked."""
        mask = self._mask(name)
        return self._column(name) if mask is None else np.where(mask, np.nan, self._column(name).astype(np.float64))

    def labels(self, name: str) -> CodedLabels:
        """A column as labels; categories stay what they are."""
        if self.kinds[name] != CATEGORIES:
            mask = self._mask(name) if self.kinds[name] == TEXT else None
            if mask is None:
                return encode(self.numbers(name))
            texts = self._column(name).astype(object)
            texts[mask] = None
            return encode(texts)
        where = self._categories(name)
        own = where == f"{self.name}/{name}/categories"
        codes = np.asarray(self._get(f"{self.name}/{name}/codes")[()] if own else self._column(name), np.int64)
        found = np.atleast_1d(self._stored(str(where))).tolist()
        if len(codes) and codes.max() >= len(found):
            raise FileError(f"{self._path}: the codes of {self.name}/{name} go beyond its {len(found)} categories; it is damaged")
        return CodedLabels(codes, [each if isinstance(each, int) else text_of(each) for each in found])

    def is_ordered(self, name: str) -> bool:
        """Whether a column holds categories that have an order."""
        where = self._categories(name)
        if where is None or self._compound:
            return False
        holder = where.removesuffix("/categories") if where == f"{self.name}/{name}/categories" else where
        return bool(self._get(holder).attrs.get("ordered", False))

    def _column(self, name: str) -> Numbers:
        if self._compound:
            return np.asarray(self._get(self.name)[name])
        return self._stored(f"{self.name}/{name}")

    def _stored(self, where: str) -> Numbers:
        return np.asarray(self._array(where)[()])

    def _array(self, where: str) -> Any:
        """An array in the file, or the values of one that has a mask."""
        item = self._get(where)
        return item if hasattr(item, "shape") else self._get(f"{where}/values")

    def _mask(self, name: str) -> Numbers | None:
        """Which values are missing, where a column says so beside its values."""
        item = None if self._compound else self._get(f"{self.name}/{name}")
        if item is None or hasattr(item, "shape") or "mask" not in item:
            return None
        return np.asarray(self._get(f"{self.name}/{name}/mask")[()], bool)

    def _kind(self, name: str) -> str:
        if self._categories(name) is not None:
            return CATEGORIES
        if self._compound:
            return kind_of_dtype(self._get(self.name).dtype[name])
        item = self._get(f"{self.name}/{name}")
        if hasattr(item, "shape"):
            return kind_of_dtype(item.dtype)
        if "values" in item and "mask" in item:
            return kind_of_dtype(self._get(f"{self.name}/{name}/values").dtype)
        return "something else"

    def _categories(self, name: str) -> str | None:
        """Where the categories of a column are, if it has some."""
        if self._compound:
            beside = f"uns/{name}_categories"
            whole = self._get(self.name).dtype[name].kind in "iu"
            return beside if whole and "uns" in self._get("/") and f"{name}_categories" in self._get("uns") else None
        item = self._get(f"{self.name}/{name}")
        if not hasattr(item, "shape"):
            return f"{self.name}/{name}/categories" if "codes" in item and "categories" in item else None
        return f"{self.name}/__categories/{name}" if "categories" in item.attrs else None
