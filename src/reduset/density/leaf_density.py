"""A log density that is accurate in the tails: merged rows in the leaves of a tree, with a measured relative error.

    rows → merged in cells of a tenth of a bandwidth → leaves → near leaves row by row, far leaves by their moments

A small L2 error does not bound the error at low densities. For example, 127 atoms within 3 % of f in L2 have a log density with an
error of up to 22 at an outlier. Here every row of low density is an atom (`merge_rows`), and the sum at a query has a bounded
relative error (`LeafSums`). The bound ρ is halved until the error at held-out rows is at most half the tolerance. For each ρ, the
density of the other rows is compared with the exact one (`log_error`). Fitting costs O(n·(d + log n)) and one exact sum over n rows
for each held-out row.

**Merging.** A grid of cells has sides of a fraction s of the bandwidth, in the coordinates in which the kernel is isotropic. The
rows of a cell become one atom at their weighted mean, with their total weight. First-order terms cancel. For a Gaussian kernel, the
log of the cell's sum changes by at most about ½ (s/√12)² (r/h)² at distance r. For s = 0.1 this is 0.001 at 2 bandwidths and 0.04
at 10 bandwidths. A cell with one row keeps it unchanged. Rows of low density, which determine the tails, are therefore kept. The
cost is O(n·(d + log n)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from reduset._engine import CITYBLOCK, SQUARED, Frame, LeafSums, add, over_blocks, rows_of
from reduset._messages import NotReachedWarning, warn
from reduset._types import Array, Floats
from reduset.density.log_error import EXACT, LogError, held_out_split
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean

MAX_EXACT_ROWS = 2048  # rows or atoms: summing up to this number is faster than a tree
MAX_TREE_COLUMNS = 16  # with more columns, the bounding boxes of a tree are too large to skip leaves
MAX_ATOMS = 1 << 20
MAX_CELL_SIDE = 0.25  # bandwidths
LOW_DIMENSION = 3  # up to which a small ρ takes at most a third more time, and keeps the ranks of outliers of similar density
MAX_RATIO, MAX_RATIO_LOW_DIMENSION = 2.0, 0.25  # first values of ρ, which is halved until the tolerance is met
MIN_SINGLE_LOG = -2e4  # logarithms below are computed in float64, because float32 rounds their exponents by more than 0.005
MAX_LEAF_SIZE, MIN_LEAF_SIZE, MIN_LEAVES = 128, 16, 256  # atoms of a leaf, and the number of leaves
HASH_SEED = 0x5E6D
SAFETY_FACTOR = 0.5  # of the tolerance at held-out rows, so that new rows meet the tolerance


@dataclass(frozen=True)
class LeafDensity:
    """A mean with a log density evaluated by leaves, or from all atoms if there are few atoms or many columns."""

    mean: KernelMean
    sums: LeafSums | None
    ratio: float

    @classmethod
    def of(cls, mean: KernelMean, kernel: RadialKernel, ratio: float, length: int | None = None) -> LeafDensity:
        """Sort the atoms into leaves of at most ``length`` atoms. The default depends on the number of atoms."""
        shape = kernel.bump(mean.dimension)
        by_leaves = (
            mean.size > MAX_EXACT_ROWS and mean.dimension <= MAX_TREE_COLUMNS and shape.profile.metric in (SQUARED, CITYBLOCK)
        )
        if not by_leaves:
            return cls(mean, None, ratio)
        frame, length = kernel.frame(mean.atoms, shape), length or _leaf_length(mean.size)
        return cls(mean, LeafSums.of(mean.atoms, mean.weights, frame, shape.profile, length), ratio)

    def log_density(self, Q: Floats, ratio: float | None = None) -> Array:
        """The log density at each row of Q, (q,)."""
        if self.sums is None:
            return self.mean.log_density(Q)
        logs = self.sums.logs(Q, self.ratio if ratio is None else ratio)
        far = np.flatnonzero(~(logs > MIN_SINGLE_LOG))  # also NaN, where squares overflow
        logs += self.mean.kernel.density_log_peak(self.mean.dimension)
        if len(far):
            logs[far] = self.mean.log_density(Q[far], "double")
        return logs


def fit_leaves(
    full: KernelMean, kernel: RadialKernel, log_tol: float, max_size: int | None, rng: np.random.Generator
) -> tuple[LeafDensity, LogError]:
    """The density of all rows, and its error at held-out rows.

    ``kernel`` is the kernel of ``full``. Warns if ``log_tol`` takes more than ``max_size`` atoms.
    """
    limit = MAX_ATOMS if max_size is None else max_size
    side, mean = _merged_within(full, kernel, log_tol, limit)
    if side == 0 and (mean.size <= MAX_EXACT_ROWS or mean.dimension > MAX_TREE_COLUMNS):
        return LeafDensity(mean, None, 0.0), EXACT
    others, queries = held_out_split(full, rng)
    ratio, error = _calibrated(mean.size, others, queries, kernel, side, log_tol)
    if error.q99 > log_tol and side <= _default_side(full, log_tol):  # dense cells far from a query: merge coincident rows only
        distinct = merge_rows(full, kernel, 0.0, limit)
        if distinct is not None:
            mean, (ratio, error) = distinct, _calibrated(distinct.size, others, queries, kernel, 0.0, log_tol)
    if error.q99 > log_tol:
        warn(
            f"log_tol={log_tol:g} takes more than {limit:,} atoms for {full.size:,} points: the error of the log density exceeds "
            f"{error.q99:.2g} at 1 % of held-out rows. Increase max_size, log_tol or the bandwidth",
            NotReachedWarning,
        )
    return LeafDensity.of(mean, kernel, ratio), error


def _calibrated(
    size: int, others: KernelMean, queries: Floats, kernel: RadialKernel, side: float, log_tol: float
) -> tuple[float, LogError]:
    """The largest ρ that meets the tolerance at held-out rows, by the measured error or by the bound, and the measured error.

    ``size`` is the number of atoms including the held-out rows. Leaves are shorter without them, so that their number is the same.
    """
    ratio = MAX_RATIO_LOW_DIMENSION if others.dimension <= LOW_DIMENSION else MAX_RATIO
    if len(queries) == 0:
        return ratio, LogError.of(np.empty(0), np.empty(0))
    exact = others.log_density(queries)
    merged = cast(KernelMean, merge_rows(others, kernel, side))
    trial = LeafDensity.of(merged, kernel, ratio, -(-_leaf_length(size) * merged.size // size))
    while True:
        error = LogError.of(trial.log_density(queries, ratio), exact)
        if trial.sums is None or error.q99 <= SAFETY_FACTOR * log_tol or np.log1p(ratio) <= SAFETY_FACTOR * log_tol:
            return ratio, error
        ratio /= 2


def _leaf_length(size: int) -> int:
    """The largest number of atoms of a leaf."""
    return int(np.clip(size // MIN_LEAVES, MIN_LEAF_SIZE, MAX_LEAF_SIZE))


def _default_side(full: KernelMean, log_tol: float) -> float:
    """The side of cells for the tolerance, in bandwidths; 0, to merge coincident rows only, if there are few rows."""
    return 0.0 if np.count_nonzero(full.weights) <= MAX_EXACT_ROWS else min(log_tol, MAX_CELL_SIDE)


def _merged_within(full: KernelMean, kernel: RadialKernel, log_tol: float, limit: int) -> tuple[float, KernelMean]:
    """The side of cells, in bandwidths, and the merged mean: the side is doubled until there are at most ``limit`` cells."""
    side = _default_side(full, log_tol)
    while (mean := merge_rows(full, kernel, side, limit)) is None:
        side = 2 * side if side else min(log_tol, MAX_CELL_SIDE)
    return side, mean


def merge_rows(full: KernelMean, kernel: RadialKernel, side: float, max_cells: float = np.inf) -> KernelMean | None:
    """One atom for the rows of each cell. ``side`` is in bandwidths; 0 merges coincident rows only. Rows of weight 0 are omitted.

    None if there are more than ``max_cells`` cells.
    """
    present = np.flatnonzero(full.weights)
    points = full.atoms if len(present) == full.size else rows_of(full.atoms, present)
    low = np.asarray(points.min(axis=0), np.float64)  # unchanged by repeated rows, and shifted with the data
    weights = full.weights if len(present) == full.size else full.weights[present]
    cells = _cells_of(points, weights, low, kernel.plain_frame(points).matrix, side, max_cells)
    if len(cells.weights) > max_cells:
        return None
    if side == 0:
        return KernelMean(cells.coordinates, cells.weights, full.kernel)
    atoms = low + cells.moments / cells.weights[:, None]
    atoms[cells.is_single] = cells.rows[cells.is_single]  # exact, without rounding
    return KernelMean(atoms, cells.weights, full.kernel)


@dataclass(frozen=True)
class _Cells:
    """Occupied cells: their coordinates, weights Σw, moments Σw (x − low), whether they have one row, and one of their rows.

    A sum of more than ``limit`` cells is not completed, because `merge_rows` then returns None.
    """

    coordinates: Array
    weights: Array
    moments: Array
    is_single: NDArray[np.bool_]
    rows: Array
    limit: float

    def __add__(self, other: _Cells) -> _Cells:
        if max(len(self.weights), len(other.weights)) > self.limit:
            return self if len(self.weights) > self.limit else other
        coordinates, weights, moments, is_single, rows = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("coordinates", "weights", "moments", "is_single", "rows")
        )
        return _grouped(coordinates, weights, moments, is_single, rows, self.limit)


def _grouped(coordinates: Array, weights: Array, moments: Array, is_single: NDArray[np.bool_], rows: Array, limit: float) -> _Cells:
    """Cells from entries with repeated coordinates, which are added."""
    order, starts = _groups(coordinates)
    first = order[starts]
    has_one_entry = np.diff(np.append(starts, len(order))) == 1
    weights, moments = np.add.reduceat(weights[order], starts), np.add.reduceat(moments[order], starts)
    return _Cells(coordinates[first], weights, moments, is_single[first] & has_one_entry, rows[first], limit)


@over_blocks(add)
def _cells_of(points: Floats, weights: Array, low: Array, matrix: float | Array, side: float, limit: float) -> _Cells:
    """The cells of rows."""
    rows = np.asarray(points, np.float64)
    coordinates = rows
    if side > 0:
        with np.errstate(over="ignore"):  # coordinates may overflow; such rows are cells with one row
            coordinates = np.floor(Frame(low, matrix).apply(rows) / side)
    moments = weights[:, None] * (rows - low) if side > 0 else np.empty((len(rows), 0))
    coordinates = coordinates + 0.0  # replaces −0 by 0
    return _grouped(coordinates, np.array(weights, np.float64), moments, np.ones(len(rows), np.bool_), rows, limit)


def _groups(coordinates: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order of the rows in which equal rows are adjacent, and the start of each group.

    Rows are sorted by a hash of the coordinates. If two different rows have the same hash, their groups may be cut into several
    groups, but are never joined.
    """
    bits = np.ascontiguousarray(coordinates).view(np.uint64)
    odd = np.random.default_rng(HASH_SEED).integers(1 << 63, size=bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (bits ^ (bits >> np.uint64(32))) * odd
    hashes = np.bitwise_xor.reduce(mixed ^ (mixed >> np.uint64(29)), axis=1)
    order = np.argsort(hashes, kind="stable")
    ordered = coordinates[order]
    is_start = np.ones(len(order), np.bool_)
    is_start[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order, np.flatnonzero(is_start)
