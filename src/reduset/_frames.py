"""Arrow tables as frames like those of pandas and polars, with names of columns and rows as a NumPy array: through narwhals."""

from __future__ import annotations

import importlib
from typing import Any


def framed(value: Any) -> Any:
    """An Arrow table or batch of records as a frame, a lazy polars frame collected; everything else as it is."""
    home = type(value).__module__.split(".")[0]
    if home == "polars" and hasattr(value, "collect"):
        return value.collect()
    if home != "pyarrow" or not hasattr(value, "schema") or not hasattr(value, "num_rows"):
        return value
    try:
        narwhals = importlib.import_module("narwhals")
    except ImportError as error:
        raise ImportError("Arrow tables need narwhals, which is not installed: pip install 'reduset[tables]'") from error
    if not hasattr(value, "combine_chunks"):  # a batch of records
        value = importlib.import_module("pyarrow").Table.from_batches([value])
    if not value.num_columns:  # which narwhals cannot make an array of
        return importlib.import_module("numpy").empty((value.num_rows, 0))
    return narwhals.from_native(value, eager_only=True)


def odd_column(value: Any) -> tuple[Any, Any] | None:
    """The first column of a frame that holds text, dates or the like, and its first entry; None where there is none."""
    if not hasattr(value, "columns") or not hasattr(value, "schema"):
        return None
    for name, kind in value.schema.items():
        is_number = getattr(kind, "is_numeric", None)
        if is_number is not None and not is_number() and str(kind) not in ("Boolean", "Object", "Unknown", "Null"):
            column = value[name].drop_nulls()
            return name, (column[0] if len(column) else f"the type {kind}")
    return None
