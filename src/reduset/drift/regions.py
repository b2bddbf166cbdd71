"""Where mass was gained or lost: the cells of the atoms, and unions of them, in which the share of rows changed.

Rows belong to their nearest atom. The cells are merged by Ward's method to a tree of 2m − 1 regions of every size; in each the
shares before and after are compared on the scale of the arcsine, and the largest of all under chance alone (draws
of the counts) says which are sure. They are told in the order of how sure they are, each given those told before: where one place
gains, all others lose in proportion, and that is not told again. What was added (or taken) is located by the difference of the
sums, so a crowd far outside is found where it is, though it lies in the cell of an atom at the rim. O(n·m) for the cells, O(m²)
for the tree.
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
    blocks,
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
EXAMPLES = 3  # rows of each cell
COLUMNS_A_BLOCK = 256
COLUMNS_A_BLOCK = 256
MOST_REGIONS = 10
FEWEST = 5.0  # rows of both samples in a region, below which it is looked at as a part of larger ones alone
APART = 1.0  # standard deviations from the mean of all rows, beyond which a column says where a region is


@dataclass(frozen=True)
class CellSums:
    """What is known of the rows of a sample by cell.

    Attributes
    ----------
    rows : how many rows the noise is that of: their number, or the effective one where they have weights
    shares : (m,) of the weight in each cell
    sums, squares : (m, d) Σ share·x and Σ share·x² of the rows in each
    examples : (m, 3) the rows of each cell that are nearest to its atom, -1 where there are fewer
    """

    rows: float
    shares: Array
    sums: Array
    squares: Array
    examples: Indices

    @classmethod
    def of(cls, features: FeatureMap, rows: Floats, weights: Array) -> CellSums:
        """Of rows (n, d) with weights (n,) that sum to 1."""
        found = CellRows.of(features, rows, weights)
        return cls(found.rows, found.shares, *found.by_cell(), found.examples)

    @classmethod
    def without_rows(cls, rows: float, shares: Array, sums: Array, squares: Array) -> CellSums:
        """Of rows that are not at hand."""
        return cls(rows, shares, sums, squares, np.full((len(shares), EXAMPLES), -1, np.int64))

    def by_cell(self) -> tuple[Array, Array]:
        """(m, d) sums and squares."""
        return self.sums, self.squares

    def over(self, cells: NDArray[np.bool_]) -> tuple[Array, Array]:
        """(d,) sums and squares of the rows in these cells."""
        return self.sums[cells].sum(axis=0), self.squares[cells].sum(axis=0)


@dataclass(frozen=True)
class CellRows:
    """The same for rows in memory: sums are computed on demand, since they may be larger than the rows.

    Attributes
    ----------
    rows, shares, examples : as in `CellSums`
    values : (n, d) the rows; weights : (n,), which sum to 1
    cells : (n,) the cell of each row
    """

    rows: float
    shares: Array
    examples: Indices
    values: Floats
    weights: Array
    cells: Any

    @classmethod
    def of(cls, features: FeatureMap, rows: Floats, weights: Array) -> CellRows:
        """Of rows (n, d) with weights (n,) that sum to 1."""
        index, distance = nearest_cells(features, rows)
        m = len(features.atoms)
        with device_of(rows):
            shares, examples = LabelSums(index, m).of(to_device_of(index, weights)), _examples(index, distance, m)
        square = float(weights @ weights) or 1.0  # a block of rows may have no weight
        return cls(float(weights.sum()) ** 2 / square, shares, examples, rows, weights, index)

    def by_cell(self) -> tuple[Array, Array]:
        """(m, d) sums and squares."""
        return self._sums(0, self.values.shape[1])

    def over(self, cells: NDArray[np.bool_]) -> tuple[Array, Array]:
        """(d,) sums and squares of the rows in these cells."""
        d = self.values.shape[1]
        sums, squares = np.empty(d), np.empty(d)
        for a, b in blocks(d, COLUMNS_A_BLOCK):
            sums[a:b], squares[a:b] = (each[cells].sum(axis=0) for each in self._sums(a, b))
        return sums, squares

    def _sums(self, first: int, end: int) -> tuple[Array, Array]:
        """(m, end − first) sums and squares of some columns."""
        m = len(self.shares)
        sums, squares = np.empty((m, end - first)), np.empty((m, end - first))
        with device_of(self.values):
            by_cell, masses = LabelSums(self.cells, m), to_device_of(self.cells, self.weights)
            for k in range(first, end):
                column = column_of(self.values, k)
                sums[:, k - first] = by_cell.of(masses * column)
                squares[:, k - first] = by_cell.of(masses * np.square(column))
        return sums, squares


Cells = CellSums | CellRows


@dataclass(frozen=True)
class Region:
    """A place where the share of rows changed.

    Attributes
    ----------
    centre : (d,) where what was gained or lost lies, in the units of the data
    extent : (d,) its standard deviation in every column
    before, after : the shares of the rows there, in the reference and now
    p_value : how often chance alone would show a change as large as this in any region
    columns : those in which the place is out of the ordinary, the most first
    rows : some of the new rows there, by number
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
        """The share of all rows that was gained (above 0) or lost."""
        return self.after - self.before

    def __str__(self) -> str:
        verb = "gained" if self.change > 0 else "lost"
        place = f" ({', '.join(self.columns[:4])})" if self.columns else ""
        return f"{verb} {abs(self.change):.2%} of the rows: {self.before:.2%} before, {self.after:.2%} now{place}"


def nearest_cells(features: FeatureMap, rows: Any) -> tuple[Any, Any]:
    """The cell of every row, and how far the atom is, where the rows lie."""
    kernel = features.kernels[0]
    xp = array_module(rows.values) if on_device(rows) else np
    with device_of(rows):
        index, distance = xp.empty(len(rows), np.int64), xp.empty(len(rows))

    def note(_: int, there: Any, nearest: NDArray[np.int32], far: Array) -> None:
        index[there], distance[there] = nearest, far

    nearest_by_block(rows, features.atoms, kernel.plain_frame(rows), 0, None, note, there=on_device(rows))
    return index, distance


def _examples(index: Any, distance: Any, m: int) -> Indices:
    """(m, 3) the rows of each cell that are nearest to its atom, -1 where there are fewer."""
    xp = array_module(index)
    order = np.lexsort((distance, index)) if xp is np else xp.lexsort(xp.stack([distance, index.astype(np.float64)]))
    first = to_numpy(xp.searchsorted(index[order], xp.arange(m)))
    examples = np.full((m, EXAMPLES), -1, np.int64)
    for k in range(EXAMPLES):
        at = np.minimum(first + k, len(order) - 1)
        rows = to_numpy(order[xp.asarray(at)])
        there = to_numpy(index[xp.asarray(rows)]) == np.arange(m)
        there &= first + k < len(order)
        examples[there, k] = rows[there]
    return examples


def changed_regions(
    features: FeatureMap, before: Cells, after: Cells, names: tuple[str, ...], alpha: float, rng: np.random.Generator
) -> list[Region]:
    """The regions whose change is sure at level ``alpha`` for all of them together, the surest first."""
    members = _tree(features)
    both, all_rows = _both_shares(before, after), before.rows + after.rows
    spread = _mean_and_deviation(before, after)
    found: list[tuple[NDArray[np.bool_], Region]] = []
    left = np.ones(len(before.shares), np.bool_)
    while left.any() and len(found) < MOST_REGIONS:
        inside = members[:, left].astype(np.float64)
        counted = inside @ both[left] * all_rows
        usable = (counted >= FEWEST) & (inside.sum(axis=1) < left.sum())
        total = (float(before.shares[left].sum()), float(after.shares[left].sum()))
        if not usable.any() or min(total) * min(before.rows, after.rows) < 1:
            break
        inside = inside[usable]
        rows = (before.rows * total[0], after.rows * total[1])
        seen = _on_normal_scale(inside @ before.shares[left] / total[0], inside @ after.shares[left] / total[1], *rows)
        chance = np.maximum(both[left], 0.0)
        largest = _largest_by_chance(inside, chance / chance.sum(), rows, rng)
        best = int(np.abs(seen).argmax())
        above = int((largest >= abs(seen[best])).sum())
        p_value = (1 + above) / (1 + DRAWS)
        if not above:  # beyond the draws: a bound for as many regions as there are
            p_value = min(p_value, 2 * len(seen) * float(ndtr(-abs(seen[best]))))
        if p_value > alpha:
            break
        cells = np.zeros(len(left), np.bool_)
        cells[np.flatnonzero(left)[inside[best] > 0]] = True
        found.append((cells, _described(cells, before, after, spread, names, p_value)))
        left &= ~cells
    return _joined(found, features.scales, lambda cells, p_value: _described(cells, before, after, spread, names, p_value))


def _joined(
    found: list[tuple[NDArray[np.bool_], Region]], scales: Array, described: Callable[[NDArray[np.bool_], float], Region]
) -> list[Region]:
    """Those that gained, or lost, at one place as one: where each reaches the other."""
    whole: list[tuple[NDArray[np.bool_], Region]] = []
    for cells, region in found:
        for k, (others, other) in enumerate(whole):
            reach = (region.extent + other.extent) / scales
            if (
                region.change * other.change > 0
                and np.square((region.centre - other.centre) / scales).sum() <= np.square(reach).sum()
            ):
                whole[k] = (others | cells, described(others | cells, min(region.p_value, other.p_value)))
                break
        else:
            whole.append((cells, region))
    return [region for _, region in whole]


def _tree(features: FeatureMap) -> NDArray[np.bool_]:
    """(2m − 1, m) which cells belong to each region."""
    atoms = features.atoms / features.scales
    m = len(atoms)
    members = np.zeros((2 * m - 1, m), np.bool_)
    members[:m] = np.eye(m, dtype=np.bool_)
    if m > 1:
        for k, (one, two) in enumerate(linkage(atoms, "ward")[:, :2].astype(np.int64)):
            members[m + k] = members[one] | members[two]
    return members


def _on_normal_scale(before: Array, after: Array, n: float, new: float) -> Array:
    """The change of shares in standard deviations, by the arcsine, which makes these the same for every share."""
    angles = (np.arcsin(np.sqrt(np.clip(each, 0.0, 1.0))) for each in (before, after))
    first, second = angles
    return np.asarray(2 * (second - first) / np.sqrt(1 / n + 1 / new))


def _largest_by_chance(inside: Array, shares: Array, rows: tuple[float, float], rng: np.random.Generator) -> Array:
    """(DRAWS,) the largest change of any region where both samples have the same shares."""
    counts = [rng.multinomial(max(round(each), 1), shares, size=DRAWS) / max(round(each), 1) for each in rows]
    return np.abs(_on_normal_scale(counts[0] @ inside.T, counts[1] @ inside.T, *rows)).max(axis=1)


def _both_shares(before: Cells, after: Cells) -> Array:
    """(m,) the shares of the cells in the rows of both, each sample weighed by how many rows it has."""
    mine = before.rows / (before.rows + after.rows)
    return mine * before.shares + (1 - mine) * after.shares


def _mean_and_deviation(before: Cells, after: Cells) -> tuple[Array, Array]:
    """(d,) means and standard deviations of the columns over the rows of both."""
    mine, every = before.rows / (before.rows + after.rows), np.ones(len(before.shares), np.bool_)
    mean, square = (mine * one + (1 - mine) * two for one, two in zip(before.over(every), after.over(every), strict=True))
    return mean, np.sqrt(np.maximum(square - np.square(mean), 0.0))


def _described(
    cells: NDArray[np.bool_], before: Cells, after: Cells, spread: tuple[Array, Array], names: tuple[str, ...], p_value: float
) -> Region:
    share = (float(before.shares[cells].sum()), float(after.shares[cells].sum()))
    change = share[1] - share[0]
    all_mean, deviation = spread
    (old, old_squares), (new, new_squares) = before.over(cells), after.over(cells)
    own, own_squares = (each / share[change > 0] for each in ((new, new_squares) if change > 0 else (old, old_squares)))
    own_spread = np.sqrt(np.maximum(own_squares - np.square(own), 0.0))
    centre = (new - old) / change
    # a small difference of large shares is noise: never farther from the region's rows than these reach
    centre = np.clip(centre, own - 3 * own_spread, own + 3 * own_spread)
    second = (new_squares - old_squares) / change
    extent = np.sqrt(np.maximum(second - np.square(centre), 0.0))
    extent = np.where((extent > 0) & (extent <= 3 * own_spread), extent, own_spread)
    apart = np.abs(centre - all_mean) / np.where(deviation > 0, deviation, np.inf)
    told = tuple(names[k] for k in np.argsort(-apart) if apart[k] > APART)
    order = np.argsort(-(after.shares - before.shares)[cells])
    rows = tuple(int(each) for each in after.examples[cells][order].ravel() if each >= 0)[:EXAMPLES]
    return Region(centre, extent, share[0], share[1], p_value, told, rows)
