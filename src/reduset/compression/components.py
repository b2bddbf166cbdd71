"""Components for rows: few normal distributions whose kernel functions come closest to those of all rows (after Zhang & Kwok 2010).

    k-means → moments of each group of rows → joint descent on stand-ins for the rows → weights by all rows

The stand-ins of a cell of rows are its mean plus and minus the difference to one of its rows, drawn by weight. They have the cell's
mass and mean, and its covariance on average. So the sum over some ten thousand of them is that over all rows up to third moments of
cells. The descent (`simplification.joint_fit`) costs what the stand-ins cost, whatever n; first moments, last weights and the
error are of all rows. In the coordinates of the kernel's product, in which a row is N(x, ¼I) in L2 and a component N(c, S + ¼I).
O(n·m·d²).

Components depend on the bandwidth for which they were fitted. So the resolution is found by fitting twice: for the scale at which
the moments of groups of rows are near the tolerance, then for the one at which these first components are. If the certificate is
above the tolerance, the same components are measured with a wider kernel.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from reduset._engine import SQUARED, Components, Frame, blocks, leaf_order, nearest_by_block
from reduset._types import Array, Report
from reduset.certificate.by_scale import ErrorProfile, bandwidth_where
from reduset.compression.certifying import Found, certify
from reduset.compression.plan import Plan
from reduset.compression.resolution import at_coarser_scales, require_scales
from reduset.compression.selecting import Atoms
from reduset.compression.target import Run, Target
from reduset.compression.weighing import weigh
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean, with_bandwidth
from reduset.mixture.component_mean import mean_of
from reduset.mixture.covariances import symmetric
from reduset.mixture.pieces import OWN, ComponentPieces, frame_of
from reduset.select import KMeans
from reduset.select.contract import support
from reduset.simplification.joint_fit import JointFit
from reduset.simplification.local_fit import ComponentArrays
from reduset.simplification.pipeline import fewest

KMEANS_ROWS = 1 << 17
MOST_CELLS, FEWEST_CELLS, CELLS_A_COMPONENT = 1 << 15, 1 << 11, 8
PAIRS = 5e8  # of stand-ins and components, times d²: the most in a step of the descent
STEPS, FEWEST_STEPS = 80, 8  # of the descent; fewer if one takes longer than that
HALF = OWN / 2  # the variance of a row in L2
THINNEST = 0.02  # times the kernel's own, over all columns together: the spread from which a descent may start
ROWS_AT_ONCE = 1 << 18
SIZE_WITHIN = 10  # the size found for a tolerance may be too large by one part in so many
LOOSE = 3.0  # times the tolerance, for moments of groups: the descent improves them by so much
TRIES, WIDER = 24, 2**0.125


def find_components(full: KernelMean, plan: Plan, run: Run) -> Found:
    """The components of a plan at the bandwidth of the mean."""
    if plan.size is not None:
        return _fitted(run.target(full), plan, plan.size)
    tol = plan.tol or 0.0
    found, reached = fewest(
        lambda size: _fitted(run.target(full), plan, size),
        lambda found: found.prefixes.error(found.size).interval[1] <= tol,
        plan.most,
        SIZE_WITHIN,
    )
    return replace(found, reached=reached)


def find_component_bandwidth(full: KernelMean, plan: Plan, run: Run) -> Found:
    """The components of a plan at the finest bandwidth at which they are within the tolerance, there and at coarser scales."""
    size, tol, median = plan.size or plan.most, cast(float, plan.tol), cast(RadialKernel, full.kernel).width
    start = run.target(full)
    bandwidth = _finest(_profile(start, plan, fit_moments(full, size, run.rng)), LOOSE * tol)
    for _ in range(2):
        target = run.target(with_bandwidth(full, bandwidth))
        pieces = _fit(target, size)
        bandwidth = _finest(_profile(target, plan, pieces), tol)
    for _ in range(TRIES):
        found, _high = at_coarser_scales(_certified(run.target(with_bandwidth(full, bandwidth)), plan, pieces), tol, median, size)
        if found.reached:
            break
        bandwidth *= WIDER
    return found


def _fit(target: Target, size: int) -> ComponentPieces:
    with target.run.clock.stage("fit"):
        return fit_components(target.full, size, target.run.rng, target.run.progress.stage("fitting"))


def _fitted(target: Target, plan: Plan, size: int) -> Found:
    return _certified(target, plan, _fit(target, size))


def _certified(target: Target, plan: Plan, pieces: ComponentPieces) -> Found:
    weighed = weigh(target, Atoms(pieces, in_order=False))
    prefixes = certify(target, weighed, plan.weighting)
    return Found(target, weighed, prefixes, len(prefixes.atoms), True, selection=plan.name)


def _profile(target: Target, plan: Plan, pieces: ComponentPieces) -> ErrorProfile:
    """The errors at every scale, with the best weights at that of the target."""
    span = weigh(target, Atoms(pieces, in_order=False)).span
    scales = require_scales(target.scales(span.size))
    small = mean_of(span.atoms, span.weights(plan.weighting, target.full.mass, span.size), target.full.kernel)
    return scales.profile(small, scales.bandwidths, 0.95, len(pieces))


def _finest(profile: ErrorProfile, tol: float) -> float:
    """The finest bandwidth within the tolerance, or the coarsest there is."""
    found = bandwidth_where(profile.bandwidths, profile.intervals[:, 1], tol)
    return float(profile.bandwidths[0]) if found is None else found


def fit_components(full: KernelMean, size: int, rng: np.random.Generator, report: Report) -> ComponentPieces:
    """At most ``size`` components, fewer if fewer rows are distinct."""
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
    """Components with the moments of groups by k-means: the start of a fit."""
    full = _with_weight(full)
    frame = frame_of(full.kernel, full.atoms)
    return _in_units(_groups(full, size, frame, rng), frame)


def _with_weight(full: KernelMean) -> KernelMean:
    """The mean without rows of weight 0."""
    points, rows = support(full)
    return full if rows is None else KernelMean.unchecked(points, full.weights[rows], full.kernel)


def _groups(full: KernelMean, size: int, frame: Frame, rng: np.random.Generator) -> ComponentArrays:
    return group_moments(full, np.asarray(KMeans(rows=KMEANS_ROWS).select(full, size, rng).atoms, np.float64), frame)


def _cells_for(size: int, dimension: int) -> int:
    """How many cells a step of the descent can afford."""
    return int(np.clip(PAIRS / (2 * size * dimension**2), max(FEWEST_CELLS, CELLS_A_COMPONENT * size), MOST_CELLS))


def _steps_for(rows: int, size: int, dimension: int) -> int:
    """How many steps can be afforded, where cells may be twice as many as were asked for."""
    return int(np.clip(STEPS * 2 * PAIRS / (rows * size * dimension**2), FEWEST_STEPS, STEPS))


def _in_units(few: ComponentArrays, frame: Frame) -> ComponentPieces:
    """Components in a frame, in the units of the rows."""
    return ComponentPieces.from_frame(few.means, symmetric(few.covariances - HALF * np.eye(few.dimension)), frame)


def group_moments(full: KernelMean, centres: Array, frame: Frame) -> ComponentArrays:
    """Mass, mean and covariance of the rows nearest to each centre, in the frame; centres without rows are omitted."""
    m, d = centres.shape
    z = frame.apply(centres)
    lower = np.tril_indices(d)
    parts: dict[int, Array] = {}

    def add(block: int, which: Any, nearest: Any, _: Any) -> None:
        away = frame.apply(full.atoms[which]) - z[nearest]
        weights = full.weights[which]
        out = parts[block] = np.empty((1 + d + len(lower[0]), m))
        out[0] = np.bincount(nearest, weights, m)
        for r in range(d):
            out[1 + r] = np.bincount(nearest, weights * away[:, r], m)
        for k, (row, column) in enumerate(zip(*lower, strict=True)):
            out[1 + d + k] = np.bincount(nearest, weights * away[:, row] * away[:, column], m)

    nearest_by_block(full.atoms, centres, frame, SQUARED, None, add)
    sums = np.sum([parts[block] for block in sorted(parts)], axis=0)  # in the order of the rows, so that threads do not matter
    there = sums[0] > 0
    mass, shift = sums[0, there], (sums[1 : 1 + d, there] / sums[0, there]).T
    spreads = np.empty((len(mass), d, d))
    spreads[:, lower[0], lower[1]] = (sums[1 + d :, there] / mass).T
    spreads[:, lower[1], lower[0]] = spreads[:, lower[0], lower[1]]
    spreads -= shift[:, :, None] * shift[:, None, :]
    return ComponentArrays(mass, z[there] + shift, _thick(spreads) + HALF * np.eye(d))


def _thick(spreads: Array) -> Array:
    """Spreads that a descent can start from: a component that is flat to rounding would never widen."""
    values, vectors = np.linalg.eigh(spreads)
    raised = np.maximum(values, THINNEST * OWN / spreads.shape[1])  # in many columns a little more in each takes much of a peak
    return symmetric((vectors * raised[:, None, :]) @ vectors.transpose(0, 2, 1))


def stand_ins(full: KernelMean, frame: Frame, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Two points for each of about ``count`` cells of rows, or the rows themselves where these are no more; and their weights."""
    if full.size <= 2 * count:
        return frame.apply(full.atoms), np.array(full.weights)
    order, starts = leaf_order(full.atoms, frame, max(full.size // count, 2))
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
