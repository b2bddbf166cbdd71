"""Components for rows: a small mixture of normal distributions that approximates the kernel mean (after Zhang & Kwok 2010).

    k-means → moments of each group of rows → joint descent on substitutes for the rows → weights by all rows

Each cell of rows has two substitutes: its mean plus and minus the difference to one of its rows, drawn by weight. They have the
mass and the mean of the cell, and its covariance in expectation. So a sum over some ten thousand substitutes equals the sum over
all rows up to third moments of the cells. The cost of the descent (`simplification.joint_fit`) does not depend on n. The first
moments, the final weights and the error are computed from all rows. The frame has the coordinates of the kernel's product. There, a
row is N(x, ¼I) in L2 and a component is N(c, S + ¼I). O(n·m·d²).

Components depend on the bandwidth for which they were fitted. So the search for the resolution fits twice. The first fit is at the
scale at which the moments of groups of rows are near the tolerance. The second is at the scale at which the first components are.
If the certificate exceeds the tolerance, the same components are measured with a wider kernel.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from reduset._engine import SQUARED, Components, Frame, blocks, leaf_order, nearest_by_block
from reduset._types import Array, Report
from reduset.certificate import ErrorProfile, Scales, bandwidth_where
from reduset.compression.plan import Plan
from reduset.compression.resolution import at_coarser_scales
from reduset.compression.stages import Atoms, Run, SearchResult, Target, certify, weigh_atoms
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean, with_bandwidth
from reduset.mixture import OWN, ComponentPieces, frame_of, mean_of, symmetric
from reduset.select import KMeans, support
from reduset.simplification import ComponentArrays, JointFit, fewest

KMEANS_ROWS = 1 << 17
MAX_CELLS, MIN_CELLS, CELLS_PER_COMPONENT = 1 << 15, 1 << 11, 8
MAX_PAIRS = 5e8  # pairs of a substitute and a component in a step of the descent, times d²
MAX_STEPS, MIN_STEPS = 80, 8  # of the descent
ROW_VARIANCE = OWN / 2  # in L2
MIN_VARIANCE = 0.02  # at the start of a descent, times the variance of the kernel, over all columns together
ROWS_AT_ONCE = 1 << 18
SIZE_RESOLUTION = 10  # the size for a tolerance may be too large by 1/10
GAIN_OF_DESCENT = 3.0  # the factor by which it decreases the errors of moments of groups
TRIES, WIDER = 24, 2**0.125


def find_components(full: KernelMean, plan: Plan, run: Run) -> SearchResult:
    """The components of a plan at the bandwidth of the mean."""
    if plan.size is not None:
        return _fitted(run.target(full), plan, plan.size)
    tol = cast(float, plan.tol)
    result, reached = fewest(
        lambda size: _fitted(run.target(full), plan, size),
        lambda result: result.prefixes.error(result.size).interval[1] <= tol,
        plan.most,
        SIZE_RESOLUTION,
    )
    return replace(result, reached=reached)


def find_component_bandwidth(full: KernelMean, plan: Plan, run: Run) -> SearchResult:
    """The components of a plan at their resolution: the finest bandwidth within the tolerance, there and at coarser scales."""
    size, tol, median = plan.size or plan.most, cast(float, plan.tol), cast(RadialKernel, full.kernel).width
    start = run.target(full)
    bandwidth = _finest(_profile(start, plan, fit_moments(full, size, run.rng)), GAIN_OF_DESCENT * tol)
    for _ in range(2):
        target = run.target(with_bandwidth(full, bandwidth))
        pieces = _fit(target, size)
        bandwidth = _finest(_profile(target, plan, pieces), tol)
    for _ in range(TRIES):
        target = run.target(with_bandwidth(full, bandwidth))
        result, _high = at_coarser_scales(_certified(target, plan, pieces), tol, median, size)
        if result.reached:
            break
        bandwidth *= WIDER
    return result


def _fit(target: Target, size: int) -> ComponentPieces:
    with target.run.clock.stage("fit"):
        return fit_components(target.full, size, target.run.rng, target.run.progress.stage("fitting"))


def _fitted(target: Target, plan: Plan, size: int) -> SearchResult:
    return _certified(target, plan, _fit(target, size))


def _certified(target: Target, plan: Plan, pieces: ComponentPieces) -> SearchResult:
    weighed = weigh_atoms(target, Atoms(pieces, in_order=False))
    prefixes = certify(target, weighed, plan.weighting)
    return SearchResult(target, weighed, prefixes, len(prefixes.atoms), True, selection=plan.name)


def _profile(target: Target, plan: Plan, pieces: ComponentPieces) -> ErrorProfile:
    """The errors at every scale, with the best weights at the scale of the target."""
    span = weigh_atoms(target, Atoms(pieces, in_order=False)).span
    scales = cast(Scales, target.scales(span.size, required=True))
    small = mean_of(span.atoms, span.weights(plan.weighting, target.full.mass, span.size), target.full.kernel)
    return scales.profile(small, scales.bandwidths, 0.95, len(pieces))


def _finest(profile: ErrorProfile, tol: float) -> float:
    """The finest bandwidth within the tolerance, or the coarsest if there is none."""
    bandwidth = bandwidth_where(profile.bandwidths, profile.intervals[:, 1], tol)
    return float(profile.bandwidths[0]) if bandwidth is None else bandwidth


def fit_components(full: KernelMean, size: int, rng: np.random.Generator, report: Report) -> ComponentPieces:
    """At most ``size`` components, fewer if fewer rows are distinct."""
    full = _with_weight(full)
    d = full.dimension
    if size >= full.size:  # a component without covariance for each row
        return ComponentPieces(np.asarray(full.atoms, np.float64), np.zeros((full.size, d, d)))
    frame = frame_of(full.kernel, full.atoms)
    start = _groups(full, size, frame, rng)
    cells = int(np.clip(MAX_PAIRS / (2 * start.size * d**2), max(MIN_CELLS, CELLS_PER_COMPONENT * start.size), MAX_CELLS))
    z, weights = substitutes(full, frame, cells, rng)
    joint = JointFit(Components(weights, z, np.broadcast_to(ROW_VARIANCE, len(z)), True), full.mass)
    steps = int(np.clip(MAX_STEPS * 2 * MAX_PAIRS / (len(z) * start.size * d**2), MIN_STEPS, MAX_STEPS))
    done = 0

    def step(_: float) -> None:
        nonlocal done
        done += 1
        report(min(done, steps), steps)

    return _in_units(joint.descend(joint.refit(start), steps, step, ROW_VARIANCE), frame)


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


def _in_units(fitted: ComponentArrays, frame: Frame) -> ComponentPieces:
    """Components in a frame, in the units of the rows."""
    covariances = symmetric(fitted.covariances - ROW_VARIANCE * np.eye(fitted.dimension))
    return ComponentPieces.from_frame(fitted.means, covariances, frame)


def group_moments(full: KernelMean, centres: Array, frame: Frame) -> ComponentArrays:
    """Mass, mean and covariance of the rows nearest to each centre, in the frame; centres without rows are omitted."""
    m, d = centres.shape
    z = frame.apply(centres)
    lower = np.tril_indices(d)
    parts: dict[int, Array] = {}

    def add(block: int, rows: Any, nearest: Any, _: Any) -> None:
        differences = frame.apply(full.atoms[rows]) - z[nearest]
        weights = full.weights[rows]
        sums = parts[block] = np.empty((1 + d + len(lower[0]), m))
        sums[0] = np.bincount(nearest, weights, m)
        for r in range(d):
            sums[1 + r] = np.bincount(nearest, weights * differences[:, r], m)
        for k, (row, column) in enumerate(zip(*lower, strict=True)):
            sums[1 + d + k] = np.bincount(nearest, weights * differences[:, row] * differences[:, column], m)

    nearest_by_block(full.atoms, centres, frame, SQUARED, None, add)
    sums = np.sum([parts[block] for block in sorted(parts)], axis=0)  # in the order of the rows, as without threads
    occupied = sums[0] > 0
    mass, shift = sums[0, occupied], (sums[1 : 1 + d, occupied] / sums[0, occupied]).T
    covariances = np.empty((len(mass), d, d))
    covariances[:, lower[0], lower[1]] = (sums[1 + d :, occupied] / mass).T
    covariances[:, lower[1], lower[0]] = covariances[:, lower[0], lower[1]]
    covariances -= shift[:, :, None] * shift[:, None, :]
    # a component that is flat to rounding would never widen in the descent
    values, vectors = np.linalg.eigh(covariances)
    raised = np.maximum(values, MIN_VARIANCE * OWN / d)  # divided by d: the volume of a peak shrinks with every column
    covariances = symmetric((vectors * raised[:, None, :]) @ vectors.transpose(0, 2, 1))
    return ComponentArrays(mass, z[occupied] + shift, covariances + ROW_VARIANCE * np.eye(d))


def substitutes(full: KernelMean, frame: Frame, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Two points for each of about ``count`` cells of rows, with weights. At most ``2 * count`` rows are returned unchanged."""
    if full.size <= 2 * count:
        return frame.apply(full.atoms), np.array(full.weights)
    order, starts = leaf_order(full.atoms, frame, max(full.size // count, 2))
    quantiles = rng.random(len(starts) - 1)
    # cells in runs of about ROWS_AT_ONCE rows
    ends = np.searchsorted(starts, [b for _, b in blocks(int(starts[-1]), ROWS_AT_ONCE)], side="right") - 1
    ends[-1] = len(starts) - 1
    edges = np.unique(np.append(0, ends)).tolist()
    parts = [_of_cells(full, frame, order, starts[a : b + 1], quantiles[a:b]) for a, b in pairwise(edges)]
    return np.concatenate([z for z, _ in parts]), np.concatenate([weights for _, weights in parts])


def _of_cells(full: KernelMean, frame: Frame, order: Any, starts: Any, quantiles: Array) -> tuple[Array, Array]:
    rows = order[starts[0] : starts[-1]]
    begin, length = starts[:-1] - starts[0], np.diff(starts)
    z, weights = frame.apply(full.atoms[rows]), np.asarray(full.weights[rows])
    mass = np.add.reduceat(weights, begin)
    mean = np.add.reduceat(weights[:, None] * z, begin) / mass[:, None]
    before = np.append(0.0, np.cumsum(weights))
    drawn = np.searchsorted(before, before[begin] + quantiles * mass, side="right") - 1
    difference = z[np.clip(drawn, begin, begin + length - 1)] - mean
    return np.concatenate([mean + difference, mean - difference]), np.tile(mass / 2, 2)
