"""Rows merged in small cells: the density of a KernelMean changes little, and keeps every row that is alone.

A grid of cells has sides of a fraction s of the bandwidth, in the coordinates in which the kernel is isotropic. The rows of a cell
become one atom at their weighted mean, with their weight. First-order terms cancel. For a Gaussian kernel the log of the cell's sum
changes by at most about ½ (s/√12)² (r/h)² at distance r: 0.001 at 2 bandwidths and 0.04 at 10 bandwidths for s = 0.1. A cell with
one row changes nothing, so that the rows of low density, which decide the tails, stay as they are. O(n·(d + log n)).
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


def merge_rows(full: KernelMean, kernel: RadialKernel, side: float, most: float = np.inf) -> KernelMean | None:
    """One atom for the rows of each cell; ``side`` is in bandwidths, and 0 merges coincident rows only. Rows without weight go.

    None if there are more than ``most`` cells.
    """
    present = np.flatnonzero(full.weights)
    points = full.atoms if len(present) == full.size else rows_of(full.atoms, present)
    low = np.asarray(points.min(axis=0), np.float64)  # the same for repeated rows, and moves with the data
    weights = full.weights if len(present) == full.size else full.weights[present]
    cells = _cells_of(points, weights, low, kernel.plain_frame(points).matrix, side, most)
    if len(cells.mass) > most:
        return None
    if side == 0:
        return KernelMean(cells.cells, cells.mass, full.kernel)
    atoms = low + cells.away / cells.mass[:, None]
    atoms[cells.alone] = cells.some[cells.alone]  # to the last digit
    return KernelMean(atoms, cells.mass, full.kernel)


@dataclass(frozen=True)
class _Cells:
    """Occupied cells: their coordinates, mass Σw, Σw (x − low), whether they have one row, and one of their rows.

    Beyond ``most`` cells, only these are kept: they are too many.
    """

    cells: Array
    mass: Array
    away: Array
    alone: NDArray[np.bool_]
    some: Array
    most: float

    def __add__(self, other: _Cells) -> _Cells:
        if max(len(self.mass), len(other.mass)) > self.most:
            return self if len(self.mass) > self.most else other
        cells, mass, away, alone, some = (
            np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("cells", "mass", "away", "alone", "some")
        )
        return _grouped(cells, mass, away, alone, some, self.most)


def _grouped(cells: Array, mass: Array, away: Array, alone: NDArray[np.bool_], some: Array, most: float) -> _Cells:
    """Entries of the same cell added up."""
    order, starts = _groups(cells)
    first = order[starts]
    single = np.diff(np.append(starts, len(order))) == 1
    mass, away = np.add.reduceat(mass[order], starts), np.add.reduceat(away[order], starts)
    return _Cells(cells[first], mass, away, alone[first] & single, some[first], most)


@over_blocks(add)
def _cells_of(points: Floats, weights: Array, low: Array, matrix: float | Array, side: float, most: float) -> _Cells:
    """The cells of rows."""
    rows = np.asarray(points, np.float64)
    cells = rows
    if side > 0:
        with np.errstate(over="ignore"):  # so far away that every row has a cell of its own
            cells = np.floor(Frame(low, matrix).apply(rows) / side)
    away = weights[:, None] * (rows - low) if side > 0 else np.empty((len(rows), 0))
    return _grouped(cells + 0.0, np.array(weights, np.float64), away, np.ones(len(rows), np.bool_), rows, most)  # −0 is 0


def _groups(cells: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An order of the rows in which equal ones are neighbours, and where each group starts.

    By a hash of the coordinates. Where two different rows share one, their groups may be cut into several, and are never joined.
    """
    bits = np.ascontiguousarray(cells).view(np.uint64)
    odd = np.random.default_rng(HASH_SEED).integers(1 << 63, size=bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (bits ^ (bits >> np.uint64(32))) * odd
    hashes = np.bitwise_xor.reduce(mixed ^ (mixed >> np.uint64(29)), axis=1)
    order = np.argsort(hashes, kind="stable")
    ordered = cells[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order, np.flatnonzero(new)
