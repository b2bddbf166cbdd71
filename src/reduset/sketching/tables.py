"""Rows of a table in the type that came in: pandas, polars and Arrow keep theirs; arrays become a pandas frame when asked for."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._frames import framed, is_annotated
from reduset._types import Array, Indices

PANDAS, POLARS, ARROW, ARRAY = "pandas", "polars", "pyarrow", "array"


@dataclass(frozen=True)
class KeptRows:
    """Some rows of a table."""

    kind: str
    rows: Any
    names: tuple[str, ...]

    @classmethod
    def of(cls, data: Any, indices: Indices, atoms: Array) -> KeptRows:
        """The rows at ``indices`` of what came in; ``atoms`` (m, d) are their numbers."""
        names = column_names(data, atoms.shape[1])
        home = type(data).__module__.split(".")[0]
        if home == PANDAS and hasattr(data, "iloc"):
            return cls(PANDAS, data.iloc[indices].copy(), names)
        if home == POLARS:
            table = data.collect() if hasattr(data, "collect") else data
            return cls(POLARS, table[indices], names)
        if home == ARROW and hasattr(data, "take"):
            return cls(ARROW, data.take(indices), names)
        return cls(ARRAY, atoms, names)

    def with_column(self, name: str, values: Array) -> Any:
        """These rows and one more column, which must not be there yet."""
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
    """The names of the columns; x0, x1, … where there are none."""
    frame = framed(data) if is_annotated(data) or type(data).__module__.startswith(ARROW) else data
    names = getattr(frame, "columns", None)
    if names is None or callable(names) or isinstance(names, np.ndarray) or len(names) != count:
        return tuple(f"x{j}" for j in range(count))
    return tuple(map(str, names))
