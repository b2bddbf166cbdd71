"""Tabular objects as frames, such as in pandas and polars: Arrow tables through narwhals, AnnData by its X."""

from __future__ import annotations

import importlib
import math
from typing import Any

from reduset._engine import physical_memory

UNKNOWN_MEMORY = 16 << 30


def framed(value: Any) -> Any:
    """An Arrow table or record batch as a frame, AnnData by its X, a lazy polars frame collected; other values unchanged.

    An Arrow table with one column of tensors, such as a block of Ray, becomes an array.
    """
    if type(value).__module__ == "numpy":
        return value
    if is_annotated(value):
        return AnnotatedRows(value)
    if _library(value) == "polars" and hasattr(value, "collect"):
        return value.collect()
    if _library(value) != "pyarrow" or not hasattr(value, "schema") or not hasattr(value, "num_rows"):
        return value
    try:
        narwhals = importlib.import_module("narwhals")
    except ImportError as error:
        raise ImportError("Arrow tables need narwhals, which is not installed: pip install 'reduset[tables]'") from error
    if not hasattr(value, "combine_chunks"):  # a record batch
        value = importlib.import_module("pyarrow").Table.from_batches([value])
    if not value.num_columns:  # narwhals cannot make an array of it
        return importlib.import_module("numpy").empty((value.num_rows, 0))
    if value.num_columns == 1 and hasattr(value.schema.types[0], "shape"):
        return _tensors(value.column(0).combine_chunks())
    return narwhals.from_native(value, eager_only=True)


def _tensors(column: Any) -> Any:
    """(n, …) the tensors of a column of Arrow's own type, or of Ray's."""
    return column.to_numpy_ndarray() if hasattr(column, "to_numpy_ndarray") else column.to_numpy(zero_copy_only=False)


def _library(value: Any) -> str:
    return type(value).__module__.split(".")[0]


def is_sparse(value: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy. SciPy is not imported."""
    return hasattr(value, "nnz") and hasattr(value, "toarray")


def names_of(value: Any) -> list[Any] | None:
    """The names of the columns of a frame or of a table of `reduset.io`; None for other values."""
    names = getattr(framed(value), "columns", None)
    return None if names is None or callable(names) else list(names)


def odd_column(value: Any) -> tuple[Any, Any] | None:
    """The first column of a frame with text, dates, lists or similar, and one of these entries; None if all columns are numeric."""
    if _library(value) == "pandas" and hasattr(value, "dtypes") and hasattr(value, "columns"):
        return _odd_of_pandas(value)
    if not hasattr(value, "columns") or not hasattr(value, "schema"):
        return None
    for name, kind in value.schema.items():
        is_numeric = getattr(kind, "is_numeric", None)
        if is_numeric is None or is_numeric() or str(kind) in ("Boolean", "Unknown", "Null"):
            continue
        column = value[name].drop_nulls()
        if str(kind) != "Object":
            entry = column[0] if len(column) else f"the type {kind}"
            return name, (entry.to_list() if hasattr(entry, "to_list") else entry)
        for entry in column.to_list():
            if not _is_number(entry):
                return name, entry
    return None


def _odd_of_pandas(frame: Any) -> tuple[Any, Any] | None:
    for position, kind in enumerate(frame.dtypes):
        if kind.kind not in "OMm":
            continue
        column = frame.iloc[:, position].dropna()
        if kind.kind != "O":
            return frame.columns[position], (column.iloc[0] if len(column) else f"the type {kind}")
        for entry in column:
            if not _is_number(entry):
                return frame.columns[position], entry
    return None


def _is_number(entry: Any) -> bool:
    """Whether an object is a single number. Text, dates, lists and arrays are not."""
    return hasattr(type(entry), "__float__") and getattr(entry, "ndim", 0) == 0


def is_annotated(value: Any) -> bool:
    """Whether it is an AnnData object, by its name and its parts. The library is not imported."""
    return type(value).__name__ == "AnnData" and all(hasattr(value, part) for part in ("X", "obs", "var", "obsm"))


class AnnotatedRows:
    """X of an AnnData object as a frame of cells by genes, with the labels of cells in ``obs``.

    A sparse X is converted to a dense array if that fits in memory. Without `to_numpy`, NumPy would read one cell after another.
    """

    def __init__(self, annotated: Any) -> None:
        self.obs = annotated.obs
        if annotated.X is None:
            arrays = ", ".join(f"obsm[{key!r}]" for key in annotated.obsm)
            way_out = f"pass one of its arrays ({arrays})" if arrays else "set X, since obsm is empty too"
            raise ValueError(f"an AnnData must have X to be used as rows, got None; {way_out}")
        self._values = annotated.X
        self.columns = list(annotated.var_names)
        self.shape = tuple(self._values.shape)

    def __len__(self) -> int:
        return int(self.shape[0])

    def to_numpy(self) -> Any:
        """All values, (n, d)."""
        values = self._values
        if hasattr(values, "toarray") or hasattr(values, "to_memory"):  # sparse, in memory or backed by a file
            size = math.prod(self.shape) * values.dtype.itemsize
            room = physical_memory(unknown=UNKNOWN_MEMORY)
            if size > room / 2:
                raise ValueError(
                    f"X of an AnnData must fit in memory, got a sparse one of {self.shape[0]:,} × {self.shape[1]:,}, dense "
                    f"{size / 2**30:,.1f} GiB of {room / 2**30:,.1f}; pass fewer columns, or adata.obsm['X_pca']"
                )
            return (values if hasattr(values, "toarray") else values.to_memory()).toarray()
        return values[()] if hasattr(values, "file") else values  # backed by a file, or in memory


def table_weights(value: Any) -> Any:
    """The weights of a table of `reduset.io`; None for a table without weights and for other values."""
    return value.weights if is_table(value) else None


def is_table(value: Any) -> bool:
    """Whether it is a table of `reduset.io`."""
    return type(value).__module__ == "reduset.io.table" and hasattr(value, "values")
