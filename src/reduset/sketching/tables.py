"""Rows of a table: frames as numbers for a sketch, and rows of the sketch in the type of the data.

Frames use the encoders of `reduset.io`, as files do, so Python and the command give equal results. Text and categories become
columns of 0 and 1, and dates become days. Columns that look like identifiers are not used. Columns of frames and of tables that
`reduset.io` read may have different units. They are divided by their interquartile ranges, unless the table has one unit.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reduset._engine import in_blocks
from reduset._frames import framed, is_annotated
from reduset._types import Array, Indices
from reduset.data import has_paths, opened
from reduset.io import Table, as_table, on_estimated_scales, open_files

TRANSFORMED = "statistics of columns, distances and the error are of the transformed values; kept rows have the values of the file"
DIVIDED = "columns are divided by their interquartile ranges; scales=None uses them as they are"
PANDAS, POLARS, ARROW, ARRAY = "pandas", "polars", "pyarrow", "array"


@dataclass(frozen=True)
class TableRows:
    """The rows of the data as numbers.

    Attributes
    ----------
    values : The data, or the numbers of a frame.
    names : Names of the columns; None for x0, x1, …
    notes : Notes on encoded and omitted columns of a frame.
    has_units : Whether columns may have different units.
    encoding : How columns without numbers were encoded, in the form of `reduset.io.read`.
    scales : The transform of each transformed column.
    """

    values: Any
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    has_units: bool = False
    encoding: dict[str, Any] = field(default_factory=dict)
    scales: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any, encode: Any, identifiers: str, weight_column: str | None = None) -> TableRows:
        """The numbers of a pandas, polars or Arrow frame, or of a table of FCS files on estimated scales; other data unchanged."""
        if has_paths(data):
            data = open_files(data, transform="auto", encode=encode, identifiers=identifiers, weight_column=weight_column)
        data = opened(data, weight_column)
        if in_blocks(data):
            names = None if data.columns is None else tuple(map(str, data.columns))
            return cls(data, names, data.notes, names is not None and not data.in_one_unit)
        if isinstance(data, Table):
            table = on_estimated_scales(data)
            notes = (*table.notes, *([TRANSFORMED] if data.channels else []))
            return cls(table, table.columns, notes, not table.in_one_unit, table.encoding, table.scales)
        library = type(data).__module__.split(".")[0]
        if library not in (PANDAS, POLARS, ARROW) or not (hasattr(data, "columns") and hasattr(data, "shape")):
            return cls(data)
        table = as_table(data, encode=encode, identifiers=identifiers)
        return cls(table.values, table.columns, table.notes, True, table.encoding)


@dataclass(frozen=True)
class KeptRows:
    """The rows of a table that a sketch keeps."""

    kind: str
    rows: Any
    names: tuple[str, ...]

    @classmethod
    def of(cls, data: Any, indices: Indices, atoms: Array, titles: tuple[str, ...] | None = None) -> KeptRows:
        """The rows of the data at ``indices``; ``atoms`` (m, d) are their numbers, in columns of these titles."""
        names = column_names(data, atoms.shape[1]) if titles is None else titles
        if isinstance(data, Table):
            return cls(ARRAY, data.values[indices], names)  # values of the file, not on the scales of distances
        library = type(data).__module__.split(".")[0]
        if library == PANDAS and hasattr(data, "iloc"):
            return cls(PANDAS, data.iloc[indices].copy(), names)
        if library == POLARS:
            table = data.collect() if hasattr(data, "collect") else data
            return cls(POLARS, table[indices], names)
        if library == ARROW and hasattr(data, "take"):
            return cls(ARROW, data.take(indices), names)
        return cls(ARRAY, atoms, names)

    def with_column(self, name: str, values: Array) -> Any:
        """The rows with a new column. Its name must be new."""
        if name in self.names or (self.kind != ARRAY and name in _titles(self.rows)):
            raise ValueError(f"weight must be a name that no column has, got {name!r}; choose another")
        if self.kind == PANDAS:
            return self.rows.assign(**{name: values})
        if self.kind == POLARS:
            polars = importlib.import_module("polars")
            return self.rows.with_columns(polars.Series(name, values))
        if self.kind == ARROW:
            arrow = importlib.import_module("pyarrow")
            if not hasattr(self.rows, "append_column"):
                return arrow.Table.from_batches([self.rows]).append_column(name, arrow.array(values))
            return self.rows.append_column(name, arrow.array(values))
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise ImportError("to_frame of an array needs pandas, which is not installed: pip install pandas") from error
        return pandas.DataFrame(self.rows, columns=list(self.names)).assign(**{name: values})


def _titles(table: Any) -> list[str]:
    return list(table.schema.names if type(table).__module__.startswith(ARROW) else table.columns)


def column_names(data: Any, count: int) -> tuple[str, ...]:
    """The names of the columns, or x0, x1, … without names."""
    frame = framed(data) if is_annotated(data) or type(data).__module__.startswith(ARROW) else data
    names = getattr(frame, "columns", None)
    if names is None or callable(names) or isinstance(names, np.ndarray) or len(names) != count:
        return tuple(f"x{j}" for j in range(count))
    return tuple(map(str, names))
