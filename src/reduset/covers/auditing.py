"""audit: how well a list of kept rows covers the data. The list may come from any program.

The covering radius is exact: the nearest kept row of every row is found among all of them, and close decisions are made in double
precision. No cover of as many rows can have less than half of the farthest-first radius. The reason is that m + 1 rows that are at
least r apart need more than m balls of radius r/2 (Gonzalez 1985). For the cosine distance the factor is four.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from reduset import _validate
from reduset._describe import Description, Row
from reduset._engine import LazyCover, blocks, defining, near_rows, to_numpy
from reduset._progress import Progress
from reduset._types import Array, Indices, ProgressLike, Report, SeedLike
from reduset._validate import seeded
from reduset.covers.memory import Memory, for_audit, memory_rows
from reduset.covers.near import Pairs
from reduset.covers.rows import (
    METRICS,
    held,
    in_metric,
    open_rows,
    radius_of,
    row_near_mean,
    squared,
)

QUANTILES = (0.5, 0.9, 0.99)
MIN_PIVOTED, PIVOTED = 1024, 5  # kept rows from which there are pivots, and kept rows for each of these
SAMPLED, MAX_WORK = 8192, 0.5  # rows of a sample, and the proportion of all distances above which pivots are not worth their cost
ROUNDING = 1e-5  # relative rounding of distances to pivots
DOUBLED = np.array([0, 1, 2, 4, 8, 16, 32])  # parts of the random rows that are added one after the other


@dataclass(frozen=True)
class Audit:
    """How well some kept rows cover the data.

    Attributes
    ----------
    kept : (m,) array
        The kept rows.
    radius : float
        Exact covering radius: the largest distance of a row to its nearest kept row.
    assignments : (n,) array
        The nearest kept row of each row, as a position in ``kept``.
    distances : (n,) array
        The distance of each row to its nearest kept row.
    limit : float or None
        The radius that was asked for.
    uncovered : array
        The rows farther than ``limit`` from all kept rows. The farthest is first.
    close : Pairs or None
        Pairs of kept rows within ``limit`` of each other. None without a limit.
    best : float or None
        Lower bound on the covering radius of any list of as many rows. None without a comparison.
    farthest_first : float or None
        The covering radius of as many farthest-first rows.
    random_rows : float or None
        The covering radius of as many random rows.
    metric : "euclidean" or "cosine"
        The cosine distance is 1 − cos.
    """

    kept: Indices
    radius: float
    assignments: Indices = field(repr=False)
    distances: Array = field(repr=False)
    limit: float | None
    uncovered: Indices = field(repr=False)
    close: Pairs | None = field(repr=False)
    best: float | None
    farthest_first: float | None
    random_rows: float | None
    metric: str
    _memory: Memory | None = field(default=None, repr=False, compare=False)  # the estimate before the start

    @property
    def factor(self) -> float | None:
        """The covering radius relative to the lower bound on the best possible one. None without a comparison."""
        if self.best is None:
            return None
        return self.radius / self.best if self.best > 0 else (1.0 if self.radius == 0 else np.inf)

    def worst(self, count: int = 10) -> Indices:
        """The rows that are farthest from all kept rows, the farthest first."""
        return np.lexsort((np.arange(len(self.distances)), -self.distances))[:count]

    def describe(self) -> Description:
        """Radius, comparison, uncovered rows and close pairs as rows of (label, value, explanation)."""
        n, m = len(self.distances), len(self.kept)
        kind = "cosine distance" if self.metric == "cosine" else "distance"
        middle = np.quantile(self.distances, QUANTILES)
        rows = [
            Row(
                "radius",
                f"{self.radius:.4g}, the largest {kind} of a row to its nearest kept row "
                f"(median {middle[0]:.4g}, 90 % {middle[1]:.4g}, 99 % {middle[2]:.4g})",
                "The largest distance of a row to its nearest kept row, and quantiles of these distances.",
                {
                    "n": n,
                    "kept": m,
                    "radius": self.radius,
                    "metric": self.metric,
                    "median": middle[0],
                    "q90": middle[1],
                    "q99": middle[2],
                },
            ),
            Row(
                "comparison",
                "not made: pass compare=True (the default compares if at most a tenth of the rows are kept)"
                if self.best is None
                else f"{m:,} farthest-first rows: {self.farthest_first:.4g}; {m:,} random rows: {self.random_rows:.4g}; "
                f"at most {self.factor:.3g} times the best possible",
                "The covering radius of as many rows chosen in other ways, and the ratio to a lower bound for any choice.",
                {"farthest_first": self.farthest_first, "random_rows": self.random_rows, "factor": self.factor},
            ),
        ]
        if self.limit is not None and self.close is not None:
            covered, pairs = len(self.uncovered), len(self.close.first)
            share = f"{covered:,} rows ({covered / n:.2%}) are farther than {self.limit:.4g} from all kept rows"
            rows.append(
                Row("uncovered", share if covered else f"no row is farther than {self.limit:.4g}", "", {"uncovered": covered})
            )
            near = f"{pairs:,} pairs of kept rows are within {self.limit:.4g} of each other"
            rows.append(
                Row("redundant", near if pairs else f"no two kept rows are within {self.limit:.4g}", "", {"close_pairs": pairs})
            )
        return Description(f"Audit: {m:,} of {n:,} rows kept", (*rows, *memory_rows(self._memory)))

    def __str__(self) -> str:
        return str(self.describe())


@seeded
def audit(
    data: Any,
    keep: Any,
    radius: float | None = None,
    *,
    metric: str = "euclidean",
    compare: bool | None = None,
    column: str | None = None,
    max_memory: float | str | None = None,
    rng: SeedLike = 0,
    progress: ProgressLike = False,
) -> Audit:
    """Measure how well a list of kept rows covers the data.

    Parameters
    ----------
    data : array, frame, files, Dask collection or GPU array
        The rows, as for `cover` with ``radius`` alone.
    keep : (m,) row numbers, or a mask of n truth values
        The kept rows, each at most once.
    radius : float, optional
        Rows farther than this from all kept rows are listed, and so are pairs of kept rows within it.
    metric : "euclidean" or "cosine"
        The cosine distance is 1 − cos.
    compare : bool, optional
        Compare with as many farthest-first and random rows. This takes long if many rows are kept. By default, the comparison is
        made if at most a tenth of the rows are kept.
    column : str
        Name of the column of lists in a table, or of the tensor in a safetensors file.
    max_memory : number of bytes, or text such as "16GB"
        Largest amount of memory for rows that are loaded and for the working set, as for `cover`. If it does not suffice for all
        kept rows, they are compared in parts.
    rng : int or generator
        Seed of the random rows of the comparison.
    progress : bool, or a function of (stage, done, total)

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.covers import audit
    >>> E = np.random.default_rng(0).normal(size=(1000, 8))
    >>> audit(E, np.arange(50)).factor > 1
    True
    """
    cosine = _validate.one_of(metric, "metric", METRICS) == "cosine"
    limit = None if radius is None else radius_of(radius)
    rows = held(open_rows(data, column, cosine, max_memory))
    kept = _kept_rows(keep, rows.count)
    generator = _validate.generator(rng)
    display = Progress(progress)
    compares = len(kept) * 10 <= rows.count if compare is None else compare
    try:
        memory, part = for_audit(rows, len(kept), compares, limit is not None, display)
        assignments, squares = _nearest_kept(rows, cosine, kept, part, display)
        measured = in_metric(np.sqrt(squares), cosine)
        farthest = random = best = None
        if compares:
            farthest, random = _radii_of_others(rows, cosine, len(kept), generator, display)
            best = farthest / (4 if cosine else 2)
        close = None if limit is None else _close_pairs(rows, kept, limit, cosine)
    finally:
        display.close()
    over = np.empty(0, np.int64) if limit is None else np.flatnonzero(measured > limit)
    return Audit(
        kept=kept,
        radius=float(measured.max()),
        assignments=assignments,
        distances=measured,
        limit=limit,
        uncovered=over[np.lexsort((over, -measured[over]))],
        close=close,
        best=best,
        farthest_first=farthest,
        random_rows=random,
        metric=metric,
        _memory=memory,
    )


def _kept_rows(keep: Any, n: int) -> Indices:
    """The checked row numbers."""
    rows = np.asarray(to_numpy(keep))
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        raise ValueError(f"keep must hold row numbers, or a truth value for each of the {n:,} rows; got {rows.dtype} {rows.shape}")
    unknown = rows[(rows < 0) | (rows >= n)]
    if len(unknown):
        raise ValueError(f"keep must hold row numbers from 0 to {n - 1:,}, got {unknown[0]:,} ({len(unknown):,} are unknown)")
    values, counts = np.unique(rows, return_counts=True)
    if counts.max() > 1:
        raise ValueError(
            f"keep must hold each row once, got row {values[counts > 1][0]:,} {counts.max():,} times; remove repeated rows"
        )
    return rows.astype(np.int64)


def _nearest_kept(rows: Any, cosine: bool, kept: Indices, part: int, display: Progress) -> tuple[Indices, Array]:
    """(n,) the nearest kept row of each row, as a position in ``kept``, and its squared distance; kept rows have their own.

    Kept rows are compared ``part`` at a time.
    """
    assignments, squares = np.full(rows.count, -1, np.int64), np.zeros(rows.count)
    assignments[kept] = np.arange(len(kept))
    others = np.flatnonzero(assignments < 0)
    squares[others] = np.inf
    parts = blocks(len(kept) if len(others) else 0, part)
    report, done, total = display.stage("nearest"), [0], len(parts) * len(others)

    def reported(count: int, _: int) -> None:
        report(done[0] + count, total)

    for a, b in parts:
        for members, near in _neighbourhoods(rows, cosine, others, kept[a:b]):
            store, centres = rows.among(members), kept[a + near]
            nearest, _ = _assigned(store, cosine, rows.take(rows.arrays.asarray(centres)), reported)
            exact = _squares(store, rows, centres[nearest], cosine)
            nearer = exact < squares[members]
            assignments[members[nearer]], squares[members[nearer]] = a + near[nearest[nearer]], exact[nearer]
            done[0] += len(members)
    return assignments, squares


def _assigned(store: Any, cosine: bool, centres: Any, report: Report | None = None) -> tuple[Indices, Any]:
    """The nearest centre of each row of a store, and its distance."""
    traversal = LazyCover(store, cosine)
    traversal.add(centres)
    return traversal.assignments(report)


def _neighbourhoods(rows: Any, cosine: bool, others: Indices, kept: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Parts of the rows, and for each part the kept rows that may be nearest to its rows, as positions.

    Some kept rows far from each other are pivots. A row within r of its pivot has its nearest kept row within 2r of this pivot.
    """
    every, m = np.arange(len(kept)), len(kept)
    if m < MIN_PIVOTED or rows.arrays is not np:  # on a GPU, many small products take longer than one large product
        yield others, every
        return
    traversal = LazyCover(rows.among(kept), cosine)
    traversal.add_rows(every[:1])
    traversal.extend(m // PIVOTED)
    pivots = np.array([0, *traversal.indices])
    del traversal
    exact = defining(rows.take(kept), cosine)
    exact -= exact.mean(axis=0)
    norms = np.einsum("ij,ij->i", exact, exact)
    slack = ROUNDING * float(np.sqrt(norms.max()))

    def parts(members: Indices) -> Iterator[tuple[Indices, Indices]]:
        nearest, distances = _assigned(rows.among(members), cosine, rows.take(kept[pivots]))
        order = np.lexsort((distances, nearest))
        ends = np.searchsorted(nearest, np.arange(len(pivots) + 1), sorter=order)
        for a, b in blocks(len(pivots), max(1, rows.entries // (8 * m))):
            gaps = norms[pivots[a:b], None] - 2 * exact[pivots[a:b]] @ exact.T + norms
            gaps = np.sqrt(np.maximum(gaps, 0, out=gaps), out=gaps)
            for k in range(a, b):
                part = order[ends[k] : ends[k + 1]]
                for some in np.split(part, [len(part) * 9 // 10]):  # a few far rows need more kept rows than the others
                    if len(some):
                        reach = 2 * float(distances[some[-1]]) * (1 + ROUNDING) + slack
                        yield members[some], np.flatnonzero(gaps[k - a] <= reach)

    sample = others[:: max(1, len(others) // SAMPLED)]
    work = sum(len(members) * len(near) for members, near in parts(sample))
    if work > MAX_WORK * len(sample) * m:
        yield others, every
    else:
        yield from parts(others)


def _radii_of_others(rows: Any, cosine: bool, size: int, generator: np.random.Generator, display: Progress) -> tuple[float, float]:
    """The covering radii of as many farthest-first rows, and of as many random rows."""
    farthest = LazyCover(rows, cosine)
    farthest.add_rows(np.array([row_near_mean(farthest)]))
    squares = [farthest.extend(size - 1, 0.0, display.stage("farthest first"))]
    del farthest  # its bounds of all rows
    random = LazyCover(rows, cosine)
    chosen = generator.choice(rows.count, size, replace=False)
    for a, b in pairwise(np.unique(size * DOUBLED // DOUBLED[-1])):  # few of them already show which rows may be the farthest
        random.add_rows(chosen[a:b])
        square = random.extend(0, 0.0, display.stage("random rows"))
    radii = in_metric(np.sqrt([*squares, square]), cosine)
    return float(radii[0]), float(radii[1])


def _squares(some: Any, rows: Any, others: Indices, cosine: bool) -> Array:
    """Squared distances of some rows, each to another row, in double precision."""
    xp, squares = rows.arrays, np.empty(some.count)
    for a, b, part in some.parts(max(1, rows.entries // (4 * rows.dimension))):
        exact = defining(part, cosine)
        exact -= defining(rows.take(xp.asarray(others[a:b])), cosine)
        squares[a:b] = to_numpy((exact * exact).sum(axis=1))
    return squares


def _close_pairs(rows: Any, kept: Indices, limit: float, cosine: bool) -> Pairs:
    """Pairs of kept rows within a distance."""
    every = np.arange(len(kept))
    one, other, squares = near_rows(rows.among(kept), cosine, squared(limit, cosine)).pairs(every, every)
    one, other = kept[one], kept[other]
    lower = np.flatnonzero(one < other)
    lower = lower[np.lexsort((other[lower], one[lower]))]
    return Pairs(one[lower], other[lower], in_metric(np.sqrt(squares[lower]), cosine))
