"""Samples to be compared: rows, weights that sum to 1, names of columns, and a warning about duplicate rows.

If a table was joined twice or a log was sent again, some rows are copies of others. Copies count as independent rows, so that
sampling variation looks like drift. Rows may also be equal by coincidence, if columns hold few distinct values. The number of pairs
of equal rows is therefore compared in equally many rows of both samples. The warning is given only if one sample has many more of
these pairs than the other. O(n log n).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import in_blocks, map_rows, rows_by_weight, rows_of
from reduset._frames import framed
from reduset._messages import printable, warn
from reduset._types import Array, Floats, Indices
from reduset.data import as_source, opened, row_weights

MIN_ROWS = 2
COMPARED_ROWS = 8192  # of each sample, in which pairs of equal rows are counted
MIN_EQUAL_PAIRS, PAIRS_RATIO = 10, 4  # for a warning: number of equal pairs, and its ratio to the number in the other sample


@dataclass(frozen=True)
class Sample:
    """A sample: rows with weights and names of columns.

    Attributes
    ----------
    rows : (n, d)
    weights : (n,) weights that sum to 1.
    names : Names of the columns; "x1", "x2", … if the input has none.
    named : Whether the names are the user's names.
    """

    rows: Floats
    weights: Array
    names: tuple[str, ...]
    named: bool

    @classmethod
    def checked(cls, X: Any, sample_weight: Any = None, name: str = "X", fewest: int = MIN_ROWS) -> Sample:
        """A validated sample from an array, a frame or a table, with optional weights. Rows of weight 0 are omitted."""
        given = framed(opened(X, sample_weight if isinstance(sample_weight, str) else None))
        sample_weight = row_weights(X, given, sample_weight)
        columns = getattr(given, "columns", None)
        names = None if columns is None else [str(column) for column in columns]
        rows = as_source(given, name)
        weights = np.full(len(rows), 1.0)
        if sample_weight is not None:
            weights = _validate.rows.weights(sample_weight, given, len(rows))
            weights = weights / weights.max()
            present = weights > 0
            if not present.all():
                rows, weights = rows_of(rows, present), weights[present]
        if rows.dtype.kind != "f":
            rows = rows.astype(np.float64)
        sample = cls.of(rows, weights, names)
        sample.require_rows(name, fewest)
        return sample

    @classmethod
    def of(cls, rows: Floats, weights: Array, names: Iterable[Any] | None) -> Sample:
        """A sample from rows, weights of any sum, and names of columns or None."""
        return cls(rows, weights / weights.sum(), names_of(names, rows.shape[1]), names is not None)

    def require_rows(self, name: str, fewest: int = MIN_ROWS) -> None:
        """Raise `ValueError` for fewer than ``fewest`` rows."""
        if self.size < fewest:
            raise ValueError(f"{name} must hold at least {fewest} rows of positive weight, got {self.size}; pass more rows")

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def is_uniform(self) -> bool:
        """Whether all weights are equal."""
        return bool((self.weights == self.weights[0]).all())

    @property
    def effective(self) -> float:
        """The effective size: the number of rows of equal weight with the same sampling variance."""
        return float(self.size) if self.is_uniform else 1.0 / float(self.weights @ self.weights)

    def loaded(self) -> Sample:
        """The same sample with all rows in main memory."""
        return Sample(self.rows[:], self.weights, self.names, self.named)

    def drawn(self, count: int, rng: np.random.Generator, among: Indices | None = None) -> Indices:
        """Positions of ``count`` random rows, drawn in proportion to their weights.

        Rows of equal weight are drawn without replacement, rows of unequal weight with replacement.

        Parameters
        ----------
        among : Positions of the rows to draw from. By default, all rows.
        """
        among = np.arange(self.size) if among is None else among
        if self.is_uniform:
            return np.asarray(np.sort(rng.choice(among, min(count, len(among)), replace=False)), np.int64)
        return np.asarray(among[rows_by_weight(self.weights[among], rng.random(count))], np.int64)

    def like(self, names: tuple[str, ...], named: bool, name: str = "X") -> Sample:
        """The same sample with its columns in the order of the reference. Rows in blocks are loaded.

        Columns are matched by name if both samples have names.

        Parameters
        ----------
        names, named : Names of the columns of the reference, and whether they are the user's names.
        name : Name of the sample in error messages.
        """
        if in_blocks(self.rows):
            return self.loaded().like(names, named, name)
        if not (self.named and named):
            if len(self.names) != len(names):
                raise ValueError(f"{name} must have the {len(names)} columns of the reference, got {len(self.names)}")
            return Sample(self.rows, self.weights, names, named)
        if self.names == names:
            return self
        repeated = sorted({column for column in (*self.names, *names) if max(self.names.count(column), names.count(column)) > 1})
        if repeated:
            raise ValueError(
                f"{name} and the reference must have unique column names to be compared by name, got {_listed(repeated)} twice; "
                "rename these columns"
            )
        missing = [column for column in names if column not in self.names]
        additional = [column for column in self.names if column not in names]
        if missing or additional:
            differences = [f"lacks {_listed(missing)}"] if missing else []
            differences += [f"has {_listed(additional)}, unlike the reference"] if additional else []
            raise ValueError(
                f"{name} must have the columns of the reference, but it {' and '.join(differences)}; select or rename columns"
            )
        order = [self.names.index(column) for column in names]
        return Sample(self.rows[:, order], self.weights, names, named)


def names_of(names: Iterable[Any] | None, count: int) -> tuple[str, ...]:
    """The names of columns as strings; "x1", "x2", … for None."""
    return tuple(f"x{k + 1}" for k in range(count)) if names is None else tuple(map(str, names))


def _listed(names: list[str], limit: int = 8) -> str:
    """The first names for an error message."""
    return printable(", ".join(map(repr, names[:limit]))) + (" …" if len(names) > limit else "")


def warn_of_copies(name: str, rows: Floats, others: Floats) -> None:
    """Warn if a sample has many more pairs of equal rows than another sample."""
    count, rng = min(len(rows), len(others), COMPARED_ROWS), np.random.default_rng(0)
    drawn = (sample[rng.choice(len(sample), count, replace=False)] for sample in (rows, others))
    repeats = (np.unique(_hashes(sample), return_counts=True)[1] for sample in drawn)
    pairs, other_pairs = (int((times * (times - 1) // 2).sum()) for times in repeats)
    if pairs < MIN_EQUAL_PAIRS or pairs <= PAIRS_RATIO * (other_pairs + 1):
        return
    repeated = len(rows) - len(np.unique(map_rows(rows, _hashes)))
    warn(
        f"{repeated:,} of the {len(rows):,} rows of {name} are exact duplicates of other rows, many more than in the other sample; "
        "if they are copies, remove them (drop_duplicates), because duplicates make sampling variation look like drift"
    )


def _hashes(rows: Floats) -> Array:
    """(n,) one number for each row: equal for equal rows, and almost surely different for different rows."""
    factors = np.random.default_rng(1).standard_normal(rows.shape[1])
    return np.asarray((rows * factors).sum(axis=1))
