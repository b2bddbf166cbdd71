"""Regions whose proportion of the rows changed: the cells of the atoms, and unions of cells.

A cell contains the rows that are nearest to one atom. Ward's method merges the cells into a tree of 2m − 1 regions of every size.
In each region, the proportions before and after are compared by their arcsines. The largest change of all regions is compared with
its null distribution, from draws of the counts. Regions are reported in order of significance, each conditional on the regions
before it. If one region gains rows, all others lose in proportion, and these losses are not reported again.

The centre of the rows gained or lost is a difference of sums over the rows. A distant cluster is therefore located correctly, even
though it belongs to the cell of an atom at the edge of the reference. O(n·m) for the cells, O(m²) for the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.special import ndtr

from reduset._engine import (
    LabelSums,
    array_module,
    column_of,
    device_of,
    nearest_by_block,
    on_device,
    to_device_of,
    to_numpy,
)
from reduset._types import Array, Floats, Indices
from reduset.drift.feature_map import FeatureMap

DRAWS = 499
EXAMPLES = 3  # rows listed for each cell
MAX_REGIONS = 10
MIN_ROWS = 5.0  # of both samples together; smaller regions are tested only as parts of larger regions
MIN_DEVIATION = 1.0  # standard deviations from the mean of all rows; columns beyond it describe the location of a region


@dataclass(frozen=True)
class Cells:
    """Sums over the rows of a sample, by cell. Sums are kept for cells with rows only, so that they take no more than the rows.

    Attributes
    ----------
    rows : Sample size; the effective size for weighted rows.
    shares : (m,) proportion of the weight in each cell.
    occupied : (k,) the cells with rows.
    sums, squares : (k, d) Σ wx and Σ wx² over the rows of each of these, for weights w that sum to 1.
    examples : (m, 3) the rows of each cell that are nearest to its atom; -1 if the cell has fewer rows.
    """

    rows: float
    shares: Array
    occupied: Indices
    sums: Array
    squares: Array
    examples: Indices

    @classmethod
    def of(cls, features: FeatureMap, rows: Floats, weights: Array) -> Cells:
        """The sums over rows (n, d) with weights (n,) that sum to 1."""
        index, distance = nearest_cells(features, rows)
        m, d = len(features.atoms), rows.shape[1]
        with device_of(rows):
            occupied, labels = array_module(index).unique(index, return_inverse=True)
            by_cell, there = LabelSums(labels, len(occupied)), to_device_of(index, weights)
            sums, squares = np.empty((len(occupied), d)), np.empty((len(occupied), d))
            for k in range(d):
                column = column_of(rows, k)
                sums[:, k], squares[:, k] = by_cell.of(there * column), by_cell.of(there * np.square(column))
            shares, examples = LabelSums(index, m).of(there), _examples(index, distance, m)
        square = float(weights @ weights) or 1.0  # all weights of a block may be 0
        return cls(float(weights.sum()) ** 2 / square, shares, to_numpy(occupied), sums, squares, examples)

    @classmethod
    def without_rows(cls, rows: float, shares: Array, sums: Array, squares: Array) -> Cells:
        """From sums over rows that are not available. There are no examples."""
        m = len(shares)
        return cls(rows, shares, np.arange(m), sums, squares, np.full((m, EXAMPLES), -1, np.int64))

    def by_cell(self) -> tuple[Array, Array]:
        """(m, d) sums and squares by cell."""
        sums, squares = np.zeros((2, len(self.shares), self.sums.shape[1]))
        sums[self.occupied], squares[self.occupied] = self.sums, self.squares
        return sums, squares

    def over(self, cells: NDArray[np.bool_]) -> tuple[Array, Array]:
        """(d,) sums and squares over the rows in these cells."""
        used = cells[self.occupied]
        return self.sums[used].sum(axis=0), self.squares[used].sum(axis=0)


@dataclass(frozen=True)
class Region:
    """A region whose proportion of the rows changed.

    Attributes
    ----------
    centre : (d,) array
        Centre of the rows that were gained or lost, in the units of the data.
    extent : (d,) array
        Standard deviation of these rows in every column.
    before, after : float
        Proportions of the rows in the region, in the reference and in the new rows.
    p_value : float
        The probability under the null hypothesis that any region shows a change at least as large.
    columns : tuple of str
        Columns in which the centre is more than one standard deviation from the mean of all rows, the most extreme first.
    rows : tuple of int
        Positions of up to three of the new rows in the region.
    """

    centre: Array
    extent: Array
    before: float
    after: float
    p_value: float
    columns: tuple[str, ...]
    rows: tuple[int, ...]

    @property
    def change(self) -> float:
        """The proportion of all rows that was gained (positive) or lost (negative)."""
        return self.after - self.before

    def __str__(self) -> str:
        verb = "gained" if self.change > 0 else "lost"
        columns = f" ({', '.join(self.columns[:4])})" if self.columns else ""
        return f"{verb} {abs(self.change):.2%} of the rows: {self.before:.2%} before, {self.after:.2%} now{columns}"


def nearest_cells(features: FeatureMap, rows: Any) -> tuple[Any, Any]:
    """The cell of every row and the distance to its atom, on the device of the rows."""
    kernel = features.kernels[0]
    xp = array_module(rows.values) if on_device(rows) else np
    with device_of(rows):
        index, distance = xp.empty(len(rows), np.int64), xp.empty(len(rows))

    def store(_: int, positions: Any, nearest: NDArray[np.int32], distances: Array) -> None:
        index[positions], distance[positions] = nearest, distances

    nearest_by_block(rows, features.atoms, kernel.plain_frame(rows), 0, None, store, there=on_device(rows))
    return index, distance


def _examples(index: Any, distance: Any, m: int) -> Indices:
    """(m, 3) the rows of each cell that are nearest to its atom; -1 if the cell has fewer rows."""
    xp = array_module(index)
    order = np.lexsort((distance, index)) if xp is np else xp.lexsort(xp.stack([distance, index.astype(np.float64)]))
    first = to_numpy(xp.searchsorted(index[order], xp.arange(m)))
    examples = np.full((m, EXAMPLES), -1, np.int64)
    for k in range(EXAMPLES):
        at = np.minimum(first + k, len(order) - 1)
        rows = to_numpy(order[xp.asarray(at)])
        occupied = to_numpy(index[xp.asarray(rows)]) == np.arange(m)
        occupied &= first + k < len(order)
        examples[occupied, k] = rows[occupied]
    return examples


def changed_regions(
    features: FeatureMap, before: Cells, after: Cells, names: tuple[str, ...], alpha: float, rng: np.random.Generator
) -> list[Region]:
    """The regions that changed significantly, in the order of detection. The level ``alpha`` holds for all regions together."""
    members = _tree(features)
    all_rows = before.rows + after.rows
    weight = before.rows / all_rows
    pooled = weight * before.shares + (1 - weight) * after.shares  # of both samples together
    spread = _mean_and_deviation(before, after)
    regions: list[tuple[NDArray[np.bool_], Region]] = []
    remaining = np.ones(len(before.shares), np.bool_)
    while remaining.any() and len(regions) < MAX_REGIONS:
        inside = members[:, remaining].astype(np.float64)
        sizes = inside @ pooled[remaining] * all_rows
        usable = (sizes >= MIN_ROWS) & (inside.sum(axis=1) < remaining.sum())
        total = (float(before.shares[remaining].sum()), float(after.shares[remaining].sum()))
        if not usable.any() or min(total) * min(before.rows, after.rows) < 1:
            break
        inside = inside[usable]
        rows = (before.rows * total[0], after.rows * total[1])
        z = _z_scores(inside @ before.shares[remaining] / total[0], inside @ after.shares[remaining] / total[1], *rows)
        expected = np.maximum(pooled[remaining], 0.0)
        # the largest change of any region in each draw, if both samples have the same expected proportions
        shares, counts = expected / expected.sum(), [max(round(size), 1) for size in rows]
        drawn = [rng.multinomial(count, shares, size=DRAWS) / count for count in counts]
        largest = np.abs(_z_scores(drawn[0] @ inside.T, drawn[1] @ inside.T, *rows)).max(axis=1)
        best = int(np.abs(z).argmax())
        above = int((largest >= abs(z[best])).sum())
        p_value = (1 + above) / (1 + DRAWS)
        if not above:  # beyond all draws, use the Bonferroni bound over the regions
            p_value = min(p_value, 2 * len(z) * float(ndtr(-abs(z[best]))))
        if p_value > alpha:
            break
        cells = np.zeros(len(remaining), np.bool_)
        cells[np.flatnonzero(remaining)[inside[best] > 0]] = True
        regions.append((cells, _region(cells, before, after, spread, names, p_value)))
        remaining &= ~cells
    return _merged(regions, features.scales, lambda cells, p_value: _region(cells, before, after, spread, names, p_value))


def _merged(
    regions: list[tuple[NDArray[np.bool_], Region]], scales: Array, described: Callable[[NDArray[np.bool_], float], Region]
) -> list[Region]:
    """Merge overlapping regions if both gained or both lost rows."""
    merged: list[tuple[NDArray[np.bool_], Region]] = []
    for cells, region in regions:
        for k, (others, other) in enumerate(merged):
            reach = (region.extent + other.extent) / scales
            if (
                region.change * other.change > 0
                and np.square((region.centre - other.centre) / scales).sum() <= np.square(reach).sum()
            ):
                merged[k] = (others | cells, described(others | cells, min(region.p_value, other.p_value)))
                break
        else:
            merged.append((cells, region))
    return [region for _, region in merged]


def _tree(features: FeatureMap) -> NDArray[np.bool_]:
    """(2m − 1, m) membership of the cells in each region."""
    atoms = features.atoms / features.scales
    m = len(atoms)
    members = np.zeros((2 * m - 1, m), np.bool_)
    members[:m] = np.eye(m, dtype=np.bool_)
    if m > 1:
        for k, (one, two) in enumerate(linkage(atoms, "ward")[:, :2].astype(np.int64)):
            members[m + k] = members[one] | members[two]
    return members


def _z_scores(before: Array, after: Array, n: float, new: float) -> Array:
    """Changes of proportions in standard deviations. The arcsine makes the variance equal for all proportions."""
    first, second = (np.arcsin(np.sqrt(np.clip(shares, 0.0, 1.0))) for shares in (before, after))
    return np.asarray(2 * (second - first) / np.sqrt(1 / n + 1 / new))


def _mean_and_deviation(before: Cells, after: Cells) -> tuple[Array, Array]:
    """(d,) means and standard deviations of the columns over both samples together."""
    weight, every = before.rows / (before.rows + after.rows), np.ones(len(before.shares), np.bool_)
    mean, square = (weight * one + (1 - weight) * two for one, two in zip(before.over(every), after.over(every), strict=True))
    return mean, np.sqrt(np.maximum(square - np.square(mean), 0.0))


def _region(
    cells: NDArray[np.bool_], before: Cells, after: Cells, spread: tuple[Array, Array], names: tuple[str, ...], p_value: float
) -> Region:
    """The union of these cells as a region."""
    shares = (float(before.shares[cells].sum()), float(after.shares[cells].sum()))
    change = shares[1] - shares[0]
    all_mean, all_deviation = spread
    (old, old_squares), (new, new_squares) = before.over(cells), after.over(cells)
    larger = (new, new_squares) if change > 0 else (old, old_squares)
    mean, mean_square = (sums / shares[change > 0] for sums in larger)
    deviation = np.sqrt(np.maximum(mean_square - np.square(mean), 0.0))
    centre = (new - old) / change
    # The small difference of two large proportions is mostly noise, so that the centre is limited to 3 standard deviations
    # from the mean of the region's rows.
    centre = np.clip(centre, mean - 3 * deviation, mean + 3 * deviation)
    second = (new_squares - old_squares) / change
    extent = np.sqrt(np.maximum(second - np.square(centre), 0.0))
    extent = np.where((extent > 0) & (extent <= 3 * deviation), extent, deviation)
    deviations = np.abs(centre - all_mean) / np.where(all_deviation > 0, all_deviation, np.inf)
    columns = tuple(names[k] for k in np.argsort(-deviations) if deviations[k] > MIN_DEVIATION)
    order = np.argsort(-(after.shares - before.shares)[cells])
    rows = tuple(int(row) for row in after.examples[cells][order].ravel() if row >= 0)[:EXAMPLES]
    return Region(centre, extent, shares[0], shares[1], p_value, columns, rows)
