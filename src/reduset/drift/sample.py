"""A sample to be compared: rows, weights that sum to 1, names of columns, and a warning about copies.

A table joined twice or a log sent again has rows that are copies of others. Copies count as rows, so sampling variation looks like
drift. Equal rows may also be equal by coincidence if columns hold few values. So pairs of equal rows are counted in as many rows of
either sample, and the warning is given only if one sample has many more of them than the other. O(n log n).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset._engine import in_blocks, map_rows, rows_by_weight, rows_of
from reduset._frames import framed
from reduset._messages import printable, warn
from reduset._types import Array, Floats, Indices
from reduset._validate import rows as _rows
from reduset.data import as_source, opened, row_weights

FEWEST_ROWS = 2
COMPARED_ROWS = 8192  # of either sample, for copies
FEWEST_EQUAL_PAIRS, PAIRS_RATIO = 10, 4  # the ratio to the other sample's


@dataclass(frozen=True)
class Sample:
    """Rows (n, d) and weights (n,) that sum to 1.

    Attributes
    ----------
    names : of the columns, "x1", "x2", … where none are known
    named : whether the names are the user's
    """

    rows: Floats
    weights: Array
    names: tuple[str, ...]
    named: bool

    @classmethod
    def checked(cls, X: Any, sample_weight: Any = None, name: str = "X", fewest: int = FEWEST_ROWS) -> Sample:
        """From what a user gives: an array, a frame, or a table with weights; rows of weight 0 are left out."""
        given = framed(opened(X, sample_weight if isinstance(sample_weight, str) else None))
        sample_weight = row_weights(X, given, sample_weight)
        columns = getattr(given, "columns", None)
        told = None if columns is None else [str(column) for column in columns]
        rows = as_source(given, name)
        weights = np.full(len(rows), 1.0)
        if sample_weight is not None:
            weights = _rows.weights(sample_weight, given, len(rows))
            weights = weights / weights.max()
            present = weights > 0
            if not present.all():
                rows, weights = rows_of(rows, present), weights[present]
        if rows.dtype.kind != "f":
            rows = rows.astype(np.float64)
        found = cls.of(rows, weights, told)
        found.require_rows(name, fewest)
        return found

    @classmethod
    def of(cls, rows: Floats, weights: Array, names: Iterable[Any] | None) -> Sample:
        """Rows with weights of any sum and the names of their columns, where they have some."""
        told = names_of(names, rows.shape[1])
        return cls(rows, weights / weights.sum(), told, names is not None)

    def require_rows(self, name: str, fewest: int = FEWEST_ROWS) -> None:
        """Refuse too few."""
        if self.size < fewest:
            raise ValueError(
                f"{name} must hold at least {fewest} rows (of weight), got {self.size}; one row tells no change of a law"
            )

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def is_uniform(self) -> bool:
        """Whether all rows weigh the same."""
        return bool((self.weights == self.weights[0]).all())

    @property
    def effective(self) -> float:
        """How many rows of equal weight would have as much noise."""
        return float(self.size) if self.is_uniform else 1.0 / float(self.weights @ self.weights)

    def loaded(self) -> Sample:
        """The same with rows of the processor."""
        return Sample(self.rows[:], self.weights, self.names, self.named)

    def drawn(self, count: int, rng: np.random.Generator, among: Indices | None = None) -> Indices:
        """So many rows, each as probable as its weight, of all or of some; without repetition where all weigh the same."""
        among = np.arange(self.size) if among is None else among
        if self.is_uniform:
            return np.asarray(np.sort(rng.choice(among, min(count, len(among)), replace=False)), np.int64)
        return np.asarray(among[rows_by_weight(self.weights[among], rng.random(count))], np.int64)

    def like(self, names: tuple[str, ...], named: bool, name: str = "X") -> Sample:
        """The same with its columns in the order of the reference, by name where both have names; rows in blocks are loaded."""
        if in_blocks(self.rows):
            return self.loaded().like(names, named, name)
        if not (self.named and named):
            if len(self.names) != len(names):
                raise ValueError(f"{name} must have the {len(names)} columns of the reference, got {len(self.names)}")
            return Sample(self.rows, self.weights, names, named)
        if self.names == names:
            return self
        twice = sorted({each for each in (*self.names, *names) if max(self.names.count(each), names.count(each)) > 1})
        if twice:
            raise ValueError(
                f"{name} and the reference must name a column once to be compared by name, got {_some(twice)} twice; rename them"
            )
        lacking, strange = [each for each in names if each not in self.names], [each for each in self.names if each not in names]
        if lacking or strange:
            said = [f"lacks {_some(lacking)}"] if lacking else []
            said += [f"has {_some(strange)}, which it does not"] if strange else []
            raise ValueError(f"{name} must have the columns of the reference: it {' and '.join(said)}; select or rename them")
        order = [self.names.index(each) for each in names]
        return Sample(self.rows[:, order], self.weights, names, named)


def names_of(names: Iterable[Any] | None, count: int) -> tuple[str, ...]:
    """The names of columns as texts; "x1", "x2", … where there are none."""
    return tuple(f"x{k + 1}" for k in range(count)) if names is None else tuple(map(str, names))


def _some(names: list[str], most: int = 8) -> str:
    return printable(", ".join(map(repr, names[:most]))) + (" …" if len(names) > most else "")


def warn_of_copies(name: str, rows: Floats, others: Floats) -> None:
    """One sentence where rows repeat each other, as those of another sample of the same law do not."""
    count, rng = min(len(rows), len(others), COMPARED_ROWS), np.random.default_rng(0)
    mine, theirs = (_pairs(each[rng.choice(len(each), count, replace=False)]) for each in (rows, others))
    if mine < FEWEST_EQUAL_PAIRS or mine <= PAIRS_RATIO * (theirs + 1):
        return
    repeated = len(rows) - len(np.unique(map_rows(rows, _marks)))
    warn(
        f"{repeated:,} of the {len(rows):,} rows of {name} repeat others exactly, as rows of the other sample do not; where they "
        "are copies, leave them out (drop_duplicates): each counts as a row of its own, and chance then looks like drift"
    )


def _pairs(rows: Floats) -> int:
    """How many pairs of rows are equal."""
    counts = np.unique(_marks(rows), return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _marks(rows: Floats) -> Array:
    """(n,) a number a row, the same for equal rows and for no others that one is likely to meet."""
    factors = np.random.default_rng(1).standard_normal(rows.shape[1])
    return np.asarray((rows * factors).sum(axis=1))
