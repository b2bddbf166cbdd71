"""Components for rows: few normal laws whose bumps come closest to those of all rows (after Zhang & Kwok 2010).

    k-means → moments of each group of rows → joint descent on stand-ins for the rows → weights by all rows

A cell's stand-ins are its mean plus and minus the way to one of its rows, drawn by weight: they have the cell's mass and mean, and
its covariance on average, so that the sum over some ten thousand of them is that over all rows up to third moments of cells. The
descent (`simplification.joint_fit`) costs what the stand-ins cost, whatever n; first moments, last weights and the error are of all
rows. In the coordinates of the kernel's product, in which a row is N(x, ¼I) in L2 and a component N(c, S + ¼I). O(n·m·d²).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset._engine import SQUARED, Components, Frame, blocks, cells, each_nearest
from reduset._types import Array, Report
from reduset.mean import KernelMean
from reduset.mixture.covariances import symmetric
from reduset.mixture.pieces import OWN, ComponentPieces, frame_of
from reduset.select import KMeans
from reduset.select.contract import support
from reduset.simplification.joint_fit import JointFit
from reduset.simplification.local_fit import ComponentArrays

KMEANS_ROWS = 1 << 17
MOST_CELLS, FEWEST_CELLS, A_COMPONENT = 1 << 15, 1 << 11, 8  # in all, and for each component at least
PAIRS = 5e8  # of stand-ins and components, times d²: what a step of the descent may take
STEPS, FEWEST_STEPS = 80, 8  # of the descent; the fewer where one takes longer than that
HALF = OWN / 2  # the variance of a row in L2
THINNEST = 0.02  # times the kernel's own, over all columns together: the spread from which a descent may start
ROWS_AT_ONCE = 1 << 18


def fit_components(full: KernelMean, size: int, rng: np.random.Generator, report: Report) -> ComponentPieces:
    """At most ``size`` laws, fewer where fewer rows are distinct."""
    full = _with_weight(full)
    if size >= full.size:  # every row as it is
        return ComponentPieces(np.asarray(full.atoms, np.float64), np.zeros((full.size, full.dimension, full.dimension)))
    frame = frame_of(full.kernel, full.atoms)
    start = _groups(full, size, frame, rng)
    z, weights = stand_ins(full, frame, _cells_for(start.size, full.dimension), rng)
    joint = JointFit(Components(weights, z, np.broadcast_to(HALF, len(z)), True), full.mass)
    steps = _steps_for(len(z), start.size, full.dimension)
    done = 0

    def step(_: float) -> None:
        nonlocal done
        done += 1
        report(min(done, steps), steps)

    few = joint.descend(joint.refit(start), steps, step, HALF)
    return _in_units(few, frame)


def fit_moments(full: KernelMean, size: int, rng: np.random.Generator) -> ComponentPieces:
    """Laws with the moments of groups by k-means: where a fit starts."""
    full = _with_weight(full)
    frame = frame_of(full.kernel, full.atoms)
    return _in_units(_groups(full, size, frame, rng), frame)


def _with_weight(full: KernelMean) -> KernelMean:
    """The mean without rows of no weight."""
    points, rows = support(full)
    return full if rows is None else KernelMean(points, full.weights[rows], full.kernel)


def _groups(full: KernelMean, size: int, frame: Frame, rng: np.random.Generator) -> ComponentArrays:
    return group_moments(full, np.asarray(KMeans(rows=KMEANS_ROWS).select(full, size, rng).atoms, np.float64), frame)


def _cells_for(size: int, dimension: int) -> int:
    """How many cells a step of the descent can afford."""
    return int(np.clip(PAIRS / (2 * size * dimension**2), max(FEWEST_CELLS, A_COMPONENT * size), MOST_CELLS))


def _steps_for(rows: int, size: int, dimension: int) -> int:
    """How many steps can be afforded, where cells may be twice as many as were asked for."""
    return int(np.clip(STEPS * 2 * PAIRS / (rows * size * dimension**2), FEWEST_STEPS, STEPS))


def _in_units(few: ComponentArrays, frame: Frame) -> ComponentPieces:
    """Components in a frame as laws in the units of the rows."""
    return ComponentPieces.from_frame(few.means, symmetric(few.covariances - HALF * np.eye(few.dimension)), frame)


def group_moments(full: KernelMean, centres: Array, frame: Frame) -> ComponentArrays:
    """Mass, mean and covariance of the rows nearest to each centre, in the frame; centres without rows are left out."""
    m, d = centres.shape
    z = frame.apply(centres)
    lower = np.tril_indices(d)
    parts: dict[int, Array] = {}

    def add(block: int, which: Any, owner: Any, _: Any) -> None:
        away = frame.apply(full.atoms[which]) - z[owner]
        weights = full.weights[which]
        out = parts[block] = np.empty((1 + d + len(lower[0]), m))
        out[0] = np.bincount(owner, weights, m)
        for r in range(d):
            out[1 + r] = np.bincount(owner, weights * away[:, r], m)
        for k, (row, column) in enumerate(zip(*lower, strict=True)):
            out[1 + d + k] = np.bincount(owner, weights * away[:, row] * away[:, column], m)

    each_nearest(full.atoms, centres, frame, SQUARED, None, add)
    sums = np.sum([parts[block] for block in sorted(parts)], axis=0)  # in the order of the rows, whoever was quicker
    there = sums[0] > 0
    mass, shift = sums[0, there], (sums[1 : 1 + d, there] / sums[0, there]).T
    spreads = np.empty((len(mass), d, d))
    spreads[:, lower[0], lower[1]] = (sums[1 + d :, there] / mass).T
    spreads[:, lower[1], lower[0]] = spreads[:, lower[0], lower[1]]
    spreads -= shift[:, :, None] * shift[:, None, :]
    return ComponentArrays(mass, z[there] + shift, _thick(spreads) + HALF * np.eye(d))


def _thick(spreads: Array) -> Array:
    """Spreads that a descent can start from: a law that is flat to rounding would never widen."""
    values, vectors = np.linalg.eigh(spreads)
    raised = np.maximum(values, THINNEST * OWN / spreads.shape[1])  # in many columns a little more in each takes much of a peak
    return symmetric((vectors * raised[:, None, :]) @ vectors.transpose(0, 2, 1))


def stand_ins(full: KernelMean, frame: Frame, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Two points for each of about ``count`` cells of rows, or the rows themselves where these are no more; and their weights."""
    if full.size <= 2 * count:
        return frame.apply(full.atoms), np.array(full.weights)
    order, starts = cells(full.atoms, frame, max(full.size // count, 2))
    chance = rng.random(len(starts) - 1)
    found = [_of_cells(full, frame, order, starts[a : b + 1], chance[a:b]) for a, b in _runs(starts)]
    return np.concatenate([z for z, _ in found]), np.concatenate([w for _, w in found])


def _runs(starts: Any) -> list[tuple[int, int]]:
    """Cells in runs of about so many rows as are looked at at once."""
    ends = np.searchsorted(starts, [b for _, b in blocks(int(starts[-1]), ROWS_AT_ONCE)], side="right") - 1
    ends[-1] = len(starts) - 1
    edges = np.unique(np.append(0, ends))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _of_cells(full: KernelMean, frame: Frame, order: Any, starts: Any, chance: Array) -> tuple[Array, Array]:
    rows = order[starts[0] : starts[-1]]
    begin, length = starts[:-1] - starts[0], np.diff(starts)
    z, weights = frame.apply(full.atoms[rows]), np.asarray(full.weights[rows])
    mass = np.add.reduceat(weights, begin)
    mean = np.add.reduceat(weights[:, None] * z, begin) / mass[:, None]
    before = np.append(0.0, np.cumsum(weights))
    drawn = np.searchsorted(before, before[begin] + chance * mass, side="right") - 1
    away = z[np.clip(drawn, begin, begin + length - 1)] - mean
    return np.concatenate([mean + away, mean - away]), np.tile(mass / 2, 2)
