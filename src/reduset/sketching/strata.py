"""One row of each stratum of equal mass, and a few rows for regions that strata may miss.

1. Covering rows: farthest-first rows (Gonzalez 1985), starting at the row nearest the mean. They exaggerate tails if weights are
   ignored, so by default there are few. Their number is at most `COVER_PROPORTION` of the size m (`MIN_COVERING` for a small one).
   They may raise the variance of a column by at most `EXCESS` of its standard error in m random rows. They may move its mean only
   as far as the other rows can offset (`_allowed_sums`).
2. Extreme rows, by default and for a kernel with scales, as for tables: rows with the minimum and the maximum of each column.
   They are at most `EXTREME_PROPORTION` of the size, and raise no variance by more than `EXTREME_EXCESS`. The limit for means is
   the same.
3. Strata: the other rows, in parts of equal mass (`_engine.strata`). A row with more weight than a stratum is always kept.
4. One row of each stratum, among `CANDIDATES` rows drawn by weight. The chosen rows bring the sketch nearest to all rows, in means,
   squares and deciles of the columns and in random Fourier features at three scales (`_engine.exchanging`). Here, covering and
   extreme rows have the weight 1/m, as in a sketch without weights. With a given ``coverage``, they have their own weight.
5. Groups without a row: the strata are cut into `CELLS` cells each. A group is a set of cells that are near each other and far from
   all cells with a row of the sketch. One of its rows replaces the drawn row of its stratum.

Some rows are nearer to a covering row than to the first candidate of their stratum. They are assigned to this covering row, and so
is the mass of any rare group that no stratum represents. The weight of a drawn row is the mass of its stratum, near 1/m. The weight
of a covering row is the mass assigned to it, and the weight of an extreme row is its own mass. O(n·d·log m) for the strata,
O(n·c·d) for c covering rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate, bandwidth
from reduset._engine import (
    SQUARED,
    ColumnGoals,
    Frame,
    blocks,
    equal_mass_strata,
    exchange,
    fourier_sums,
    in_memory,
    map_rows,
    nearest,
    nearest_by_block,
    on_device,
    rows_of,
    run_all,
    to_numpy,
)
from reduset._types import Array, Floats, Indices, Report
from reduset.mean import KernelMean
from reduset.select import KCenter, coordinates_of
from reduset.sketching.summaries import Summary

COVER_PROPORTION, MIN_COVERING = 0.01, 5
EXCESS = 0.7  # standard errors of a column's variance in random rows, which covering rows may add to it
EXTREME_PROPORTION, EXTREME_EXCESS = 0.05, 0.5  # of the size, and of a column's variance
SUM_EXCESS, OFFSET_PROPORTION = 0.25, 0.02  # of √m, and of m interquartile ranges: bounds on a column's sum over fixed rows
RARE_CATEGORY, SMALL_CATEGORY = 0.0005, 0.75  # proportions of the mass, and of a stratum
CANDIDATES, SWEEPS = 8, 2
# if extremes exceed `EXCESS`, or a column has heavy tails, there are more candidates and the column's squares have a larger factor
HEAVY_TAILS, OFFSET_CANDIDATES, OFFSET_FACTOR = 4.0, 32, 10 / 3  # tails by the standard deviation of standardised squares
CELLS, MIN_ROWS_PER_CELL, MEAN_ROWS = 4, 8, 16  # cells of a stratum
MAX_SIZE_FOR_GROUPS = 5000  # size of the largest sketch for which groups without a row are searched
DISTANCE_RATIO, MAX_GROUPS = 1.6, 100
LADDERS_PER_BLOCK = 32
LADDERS, RUNGS = 256, 3  # frequencies, from the median distance to a quarter of it
MEDIAN_ROWS = 2000
GOAL_ROWS, GOAL_ROWS_PER_STRATUM = 1 << 17, 32  # at most this number of rows estimates the random Fourier features of all rows
MATCHED_LEVELS = np.array([0.05, *np.arange(1, 10) / 10, 0.95])


@dataclass(frozen=True)
class StratifiedRows:
    """Rows in ascending order, with the masses of their strata, and a mask of covering and extreme rows."""

    rows: Indices
    weights: Array
    covering: NDArray[np.bool_]


def checked_coverage(coverage: float | None) -> float | None:
    """A proportion of the rows from 0 to 1, or None."""
    if coverage is None:
        return None
    proportion = _validate.at_least(coverage, "coverage", 0.0)
    if proportion > 1:
        raise ValueError(f"coverage must be at most 1, it is a proportion of the rows; got {coverage!r}")
    return proportion


def draw_rows(
    mean: KernelMean, summary: Summary, size: int, coverage: float | None, rng: np.random.Generator, report: Report | None = None
) -> StratifiedRows:
    """``size`` rows of the mean: covering rows and one row of each stratum, or all rows if there are fewer."""
    support = np.flatnonzero(mean.weights)
    mass = mean.magnitudes / mean.magnitudes.sum()
    if size >= len(support):
        return StratifiedRows(support, mean.magnitudes[support], np.zeros(len(support), bool))
    by_column = coverage is None and getattr(mean.kernel, "scales", None) is not None
    extremes = _extreme_rows(mean, summary, size) if by_column else np.empty(0, np.int64)
    cover = _covering_rows(mean, summary, size, coverage, extremes, report)
    if by_column:
        rare = _rare_category_rows(summary, size)
        cover, extremes = np.concatenate([rare, cover[~np.isin(cover, rare)]]), extremes[~np.isin(extremes, rare)]
    certain = _heavy_rows(mass, np.concatenate([cover, extremes]), size)
    fixed = np.concatenate([cover, extremes, certain])
    rest = support if not len(fixed) else np.setdiff1d(support, fixed, assume_unique=True)
    count = size - len(fixed)
    if not count:
        return _ascending(fixed, mean.magnitudes[fixed], len(cover) + len(extremes))
    points = mean.atoms if len(rest) == mean.size else rows_of(mean.atoms, rest)
    points = to_numpy(points) if on_device(points) else points
    frame, _ = coordinates_of(mean)
    # if a coverage is given, covering rows represent groups
    searched = not coverage and size <= MAX_SIZE_FOR_GROUPS and len(rest) >= MIN_ROWS_PER_CELL * CELLS * count
    cells = CELLS if searched else 1
    order, starts = equal_mass_strata(points, mass[rest], count, frame, cells)
    del points  # a copy of the rows
    strata = _Strata(mean, mass, rest[order], starts[::cells], starts, cover, extremes, certain, coverage is not None)
    return strata.sample(summary, rng)


def _ascending(rows: Indices, weights: Array, covers: int) -> StratifiedRows:
    order = np.argsort(rows)
    return StratifiedRows(rows[order], weights[order], order < covers)


def _covering_rows(
    mean: KernelMean, summary: Summary, size: int, coverage: float | None, extremes: Indices, report: Report | None
) -> Indices:
    """Farthest-first rows. By default so few that variances of columns hardly change if weights are ignored."""
    default = min(max(int(COVER_PROPORTION * size), MIN_COVERING), size // 10)
    count = default if coverage is None else min(round(coverage * size), size - 1)
    if not count:
        return np.empty(0, np.int64)
    frame, _ = coordinates_of(mean)
    _, squares = nearest(mean.atoms, summary.means[None], frame, SQUARED)
    first = int(np.argmin(np.where(mean.weights != 0, squares, np.inf)))
    traversal = KCenter(first=first).begin(mean, np.random.default_rng(0))  # no random numbers are drawn
    traversal.extend(count + 1, report)
    rows = np.asarray(traversal.indices)[1 : count + 1]
    if coverage is not None:
        return rows
    rows = rows[~np.isin(rows, extremes)]
    return _within_budget(mean, summary, size, rows, _allowed_squares(summary, size), extremes)


def _extreme_rows(mean: KernelMean, summary: Summary, size: int) -> Indices:
    """Rows with the minimum and the maximum of each column with more than two values, within the limits of variances."""
    columns = np.flatnonzero(~summary.binary)
    rows = np.unique(np.concatenate([summary.lowest[columns], summary.highest[columns]]))
    if len(rows) > EXTREME_PROPORTION * size:
        return np.empty(0, np.int64)
    return _within_budget(mean, summary, size, rows, np.full(mean.dimension, EXTREME_EXCESS * size))


def _rare_category_rows(summary: Summary, size: int) -> Indices:
    """A row of each category that may have no drawn row: below `SMALL_CATEGORY` of a stratum, and at least `RARE_CATEGORY`."""
    rows = []
    for column in np.flatnonzero(summary.binary & (summary.spreads > 0)):
        proportion = (summary.means[column] - summary.minima[column]) / (summary.maxima[column] - summary.minima[column])
        if RARE_CATEGORY * (1 - 1e-9) <= min(proportion, 1 - proportion) < SMALL_CATEGORY / size:
            rows.append(int((summary.highest if proportion < 0.5 else summary.lowest)[column]))
    distinct = np.unique(np.array(rows, np.int64))
    return distinct if len(distinct) <= EXTREME_PROPORTION * size else np.empty(0, np.int64)


def _standardised(mean: KernelMean, summary: Summary, rows: Indices) -> Array:
    """(k, d) standardised values of rows, 0 in constant columns."""
    values = np.asarray(to_numpy(rows_of(mean.atoms, rows)), np.float64)
    return np.asarray((values - summary.means) / np.where(summary.spreads > 0, summary.spreads, np.inf))


def _allowed_squares(summary: Summary, size: int) -> Array:
    """(d,) the largest sum of squares that fixed rows may add to a column without an offset."""
    return EXCESS * np.maximum(summary.square_spreads, 1.0) * np.sqrt(size)


def _allowed_sums(summary: Summary, size: int) -> Array:
    """(d,) bounds on the sum of fixed rows in a column: a part of its standard error, or the amount that other rows can offset."""
    lower, upper = summary.quantiles(np.array([0.25, 0.75]))
    widths = (upper - lower) / np.where(summary.spreads > 0, summary.spreads, np.inf)
    return np.maximum(SUM_EXCESS * np.sqrt(size), OFFSET_PROPORTION * size * widths)


def _within_budget(
    mean: KernelMean, summary: Summary, size: int, rows: Indices, squares: Array, before: Indices | None = None
) -> Indices:
    """The rows, in their order, that keep sums and squares of fixed rows within bounds. ``before`` are fixed already."""
    sums, used = np.zeros(mean.dimension), np.zeros(mean.dimension)
    if before is not None:
        fixed = _standardised(mean, summary, before)
        sums, used = fixed.sum(axis=0), np.square(fixed).sum(axis=0)
    allowed, kept = _allowed_sums(summary, size), []
    for row, values in zip(rows.tolist(), _standardised(mean, summary, rows), strict=True):
        more = used + np.square(values)
        if (more <= squares).all() and (np.abs(sums + values) <= np.maximum(allowed, np.abs(sums))).all():
            sums, used = sums + values, more
            kept.append(row)
    return np.array(kept, np.int64)


def _heavy_rows(mass: Array, cover: Indices, size: int) -> Indices:
    """Rows with at least the weight of a stratum of the other rows."""
    remaining, count = 1.0 - mass[cover].sum(), size - len(cover)
    free = np.ones(len(mass), bool)
    free[cover] = False
    heavy = np.empty(0, np.int64)
    while len(heavy) < count:
        more = np.flatnonzero(free & (mass * (count - len(heavy)) > remaining * (1 + 1e-9)))
        if not len(more):
            break
        more = more[np.argsort(-mass[more], kind="stable")][: count - len(heavy)]
        free[more] = False
        remaining -= mass[more].sum()
        heavy = np.concatenate([heavy, more])
    return heavy


@dataclass(frozen=True)
class _Strata:
    """Rows in the order of their strata, and the fixed rows of the sketch."""

    mean: KernelMean
    mass: Array
    order: Indices
    starts: Indices
    cells: Indices  # starts of the cells of strata; equal to ``starts`` for undivided strata
    cover: Indices
    extremes: Indices
    certain: Indices
    by_weight: bool  # whether covering rows have their own weights in the exchange, since the sketch needs weights

    def sample(self, summary: Summary, rng: np.random.Generator) -> StratifiedRows:
        """The fixed rows, and one row of each stratum."""
        keys = rng.exponential(size=len(self.order)) / self.mass[self.order]  # Efraimidis & Spirakis (2006)
        goals, count = self._goals(summary)
        candidates = self._candidates(keys, count)
        masses, covered = self.mass[self.order], np.zeros(len(self.cover))
        if len(self.cover):
            to = self._nearer_cover(candidates[:, 0])
            covered = np.bincount(to[to >= 0], masses[to >= 0], len(self.cover)).astype(np.float64)
            candidates = self._candidates(np.where(to >= 0, np.inf, keys), count)
            masses = np.where(to >= 0, 0.0, masses)
        strata = np.add.reduceat(masses, self.starts[:-1])
        fixed = np.concatenate([self.cover, self.extremes, self.certain])
        weights = np.concatenate([self.mass[self.cover] + covered, self.mass[self.extremes], self.mass[self.certain]])
        added = len(self.cover) + len(self.extremes)
        counted = weights.copy()
        if not self.by_weight:
            counted[:added] = (1 - self.mass[self.certain].sum()) / (len(strata) + added)
        equal = np.full(len(strata), (1 - counted.sum()) / len(strata))
        drawn = self._exchanged(candidates, equal, fixed, counted, goals, rng)
        if len(self.cells) > len(self.starts):
            cover = np.concatenate([self.cover, self.certain])  # an extreme row has too little weight to represent a group
            kept = self._with_groups(drawn, cover)
            if not np.array_equal(kept, drawn):  # these rows stay, and the other strata offset them
                locked = np.where((kept != drawn)[:, None] & (np.arange(candidates.shape[1]) > 0), -1, candidates)
                locked[:, 0] = np.where(kept != drawn, kept, drawn)
                drawn = self._with_groups(self._exchanged(locked, equal, fixed, counted, goals, rng), cover)
        total = float(self.mean.magnitudes.sum())
        return _ascending(np.concatenate([fixed, drawn]), total * np.concatenate([weights, strata]), added)

    def _goals(self, summary: Summary) -> tuple[ColumnGoals, int]:
        """Goals of the columns and the number of candidates, given extremes and heavy tails."""
        size = len(self.starts) - 1 + len(self.cover) + len(self.extremes) + len(self.certain)
        excess = np.square(_standardised(self.mean, summary, np.concatenate([self.cover, self.extremes]))).sum(axis=0)
        stressed = (
            ((excess > _allowed_squares(summary, size)) | (summary.square_spreads > HEAVY_TAILS))
            & ~summary.binary
            & (not self.by_weight)
        )
        return column_goals(summary, stressed), OFFSET_CANDIDATES if stressed.any() else CANDIDATES

    def _candidates(self, keys: Array, count: int) -> Indices:
        """(k, count) the rows of each stratum with the smallest finite keys, in their order; −1 after the last."""
        stratum = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        by_key = np.lexsort((keys, stratum))
        order = np.where(np.isfinite(keys[by_key]), self.order[by_key], -1)
        at = self.starts[:-1, None] + np.arange(count)
        return np.where(at < self.starts[1:, None], order[np.minimum(at, len(order) - 1)], -1)

    def _with_groups(self, drawn: Indices, fixed: Indices) -> Indices:
        """The drawn rows, with a row for each group of cells without one.

        A cell is represented if it contains a row of the sketch. A cell belongs to a group without a row if the nearest represented
        cell is `DISTANCE_RATIO` times as far as the nearest other unrepresented cell.
        """
        frame, _ = coordinates_of(self.mean)
        position = np.empty(self.mean.size, np.int64)
        position[self.order] = np.arange(len(self.order))
        lengths, per = np.diff(self.cells), (len(self.cells) - 1) // (len(self.starts) - 1)
        positions = self.cells[:-1, None] + lengths[:, None] * np.arange(MEAN_ROWS) // MEAN_ROWS
        rows = self.order[positions.ravel()]
        means = frame.apply(np.asarray(to_numpy(rows_of(self.mean.atoms, rows)), np.float64))
        means = means.reshape(len(lengths), MEAN_ROWS, -1).mean(axis=1)
        represented = np.zeros(len(means), bool)
        represented[np.searchsorted(self.cells, position[drawn], side="right") - 1] = True
        stays = frame.apply(np.asarray(to_numpy(rows_of(self.mean.atoms, fixed)), np.float64))
        plain = Frame(np.zeros(means.shape[1]), 1.0)
        result, others = drawn.copy(), np.flatnonzero(~represented)
        _, far = nearest(means[others], np.concatenate([means[represented], stays]), plain)
        near = _nearest_other(means[others])
        for _ in range(MAX_GROUPS):
            isolated = far > DISTANCE_RATIO * near
            if not isolated.any():
                break
            cell = int(others[np.argmax(np.where(isolated, far, 0.0))])
            result[cell // per] = self.order[self.cells[cell] + lengths[cell] // 2]
            far = np.minimum(far, np.linalg.norm(means[others] - means[cell], axis=1))
        return result

    def _nearer_cover(self, firsts: Indices) -> Indices:
        """For each row of the strata, the covering row that is nearer than the first candidate of its stratum; −1 if none."""
        frame, _ = coordinates_of(self.mean)
        cover = np.asarray(to_numpy(rows_of(self.mean.atoms, self.cover)), np.float64)
        first = frame.apply(np.asarray(to_numpy(rows_of(self.mean.atoms, firsts)), np.float64))
        stratum = np.full(self.mean.size, -1)
        stratum[self.order] = np.repeat(np.arange(len(firsts)), np.diff(self.starts))
        atoms = to_numpy(self.mean.atoms[:]) if on_device(self.mean.atoms) else self.mean.atoms
        return map_rows(atoms, partial(_nearer_than_first, cover, first, frame), stratum)[self.order]

    def _exchanged(
        self,
        candidates: Indices,
        weights: Array,
        fixed: Indices,
        fixed_weights: Array,
        goals: ColumnGoals,
        rng: np.random.Generator,
    ) -> Indices:
        """(k,) one candidate of each stratum."""
        atoms = self.mean.atoms
        frame, _ = coordinates_of(self.mean)
        subset = frame.apply(np.asarray(to_numpy(rows_of(atoms, self.order[:: max(1, len(self.order) // MEDIAN_ROWS)]))))
        moves = (subset != subset[0]).any(axis=0)
        width = bandwidth.median(subset) if moves.any() else 1.0
        rows, both = np.concatenate([fixed, candidates[:, 0]]), np.concatenate([fixed_weights, weights])
        points, at = atoms, candidates
        if not in_memory(atoms):
            points = atoms[np.maximum(candidates, 0).ravel()]
            at = np.where(candidates >= 0, np.arange(candidates.size).reshape(candidates.shape), -1)
        # with fewer rows than frequencies, the angles need less memory: keep them, and draw the frequencies in blocks
        keep_angles = len(points) < LADDERS
        left = np.empty((LADDERS, RUNGS), np.complex128)
        angles = np.empty((len(points) if keep_angles else 0, LADDERS))
        for a, b in blocks(LADDERS, LADDERS_PER_BLOCK if keep_angles else LADDERS):
            frequencies = rng.standard_normal((b - a, int(moves.sum())))
            frequencies /= width
            if not moves.all():
                drawn, frequencies = frequencies, np.zeros((b - a, self.mean.dimension))
                frequencies[:, moves] = drawn
            left[a:b] = self._all_features(frequencies, fixed) - fourier_sums(rows_of(atoms, rows), both, frequencies, frame, RUNGS)
            frequencies /= 2 * np.pi  # without a copy, since with many columns they are larger than the rows
            for c, e in blocks(len(angles), 8):
                angles[c:e, a:b] = frame.apply(np.asarray(points[c:e], np.float64)) @ frequencies.T
        stays = np.asarray(to_numpy(rows_of(atoms, fixed)), np.float64), fixed_weights

        def angles_of(which: Indices, values: Any) -> Array:
            return angles[which] if keep_angles else frame.apply(values) @ frequencies.T

        chosen = exchange(points, at, weights, angles_of, left, goals, stays, SWEEPS)
        return np.asarray(candidates[np.arange(len(candidates)), chosen])

    def _all_features(self, frequencies: Array, fixed: Indices) -> NDArray[np.complex128]:
        """The random Fourier features of all rows; for very many rows, estimated from a part of each stratum."""
        frame, _ = coordinates_of(self.mean)
        atoms, step = self.mean.atoms, len(self.order) // max(GOAL_ROWS, GOAL_ROWS_PER_STRATUM * (len(self.starts) - 1))
        if step < 2:
            return fourier_sums(atoms, self.mass, frequencies, frame, RUNGS)
        rows = self.order[step // 2 :: step]
        weights = self.mass[rows] * (self.mass[self.order].sum() / self.mass[rows].sum())
        sums = fourier_sums(rows_of(atoms, rows), weights, frequencies, frame, RUNGS)
        return sums + fourier_sums(rows_of(atoms, fixed), self.mass[fixed], frequencies, frame, RUNGS)


def _nearer_than_first(cover: Array, first: Array, frame: Frame, points: Floats, stratum: Indices) -> Indices:
    """(n,) the covering row nearer to each row than the first candidate of its stratum; −1 if none, or without a stratum."""
    result = np.full(len(points), -1)

    def note(_: int, which: Any, index: Any, distance: Array) -> None:
        to_first = frame.apply(points[which]) - first[stratum[which]]
        nearer = distance < np.sqrt(np.einsum("ij,ij->i", to_first, to_first))
        result[which] = np.where(nearer & (stratum[which] >= 0), index, -1)

    nearest_by_block(points, cover, frame, SQUARED, None, note)
    return result


def _nearest_other(points: Array) -> Array:
    """(n,) the distance of each point to the nearest other point."""
    distances, squares = np.empty(len(points)), np.einsum("ij,ij->i", points, points)

    def fill(a: int, b: int) -> None:
        products = points[a:b] @ (-2.0 * points.T)
        products += squares
        products[np.arange(b - a), np.arange(a, b)] = np.inf
        distances[a:b] = np.sqrt(np.maximum(products.min(axis=1, initial=np.inf) + squares[a:b], 0.0))

    run_all([partial(fill, a, b) for a, b in blocks(len(points), 512)])
    return distances


def column_goals(summary: Summary, stressed: NDArray[np.bool_]) -> ColumnGoals:
    """Goals of the exchange for the columns that are not constant. Squares of ``stressed`` columns (d,) have a larger factor."""
    moving = np.flatnonzero(summary.spreads > 0)
    square_spreads = np.maximum(summary.square_spreads, 1e-3)  # 0 for two values at the same distance from their mean
    square_spreads = np.where(stressed, square_spreads / OFFSET_FACTOR, square_spreads)
    limits = summary.quantiles(MATCHED_LEVELS)[:, moving]
    return ColumnGoals(
        moving,
        summary.means[moving],
        summary.spreads[moving],
        square_spreads[moving],
        limits,
        summary.below(MATCHED_LEVELS)[:, moving],
    )
