"""Rows merged in small cells: the density of a KernelMean changes little, and isolated rows are unchanged.

A grid of cells has sides of a fraction s of the bandwidth, in the coordinates in which the kernel is isotropic. The rows of a cell
become one atom at their weighted mean, with their total weight. First-order terms cancel. For a Gaussian kernel, the log of the
cell's sum changes by at most about ½ (s/√12)² (r/h)² at distance r. For s = 0.1 this is 0.001 at 2 bandwidths and 0.04 at 10
bandwidths. A cell with one row keeps it unchanged. Rows of low density, which determine the tails, are therefore kept.
The cost is O(n·(d + log n)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset._engine import Frame, add, over_blocks, rows_of
from reduset._types import Array, Floats
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean

HASH_SEED = 0x5E6D


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
