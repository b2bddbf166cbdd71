"""Bandwidth search by the log-likelihood of held-out points.

    score(h) = Σ_q w_q log Σᵢ wᵢ φ_h(q, xᵢ) / Σ_q w_q,        xᵢ training points, q held-out points

There are two methods, and each reads the data once for all bandwidths.

- Without a size, the full density is evaluated. One pass makes a histogram of the distances of the points from each q
  (`_engine/kernel_blocks.py`), which serves every bandwidth. Fifty bandwidths cost little more than one: O(n·q·d).
- With a size, the compressed density is evaluated (Cruz Cortés & Scott 2017, Section VI-B, there for proportions). Atoms are
  selected once, and their weights are computed for every bandwidth, O(m³) each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from reduset import _validate
from reduset._engine import SOFT_CITYBLOCK, SQUARED, distance_histograms, distance_nodes, rows_of
from reduset._messages import warn
from reduset._types import Array, Floats, Indices, PointsLike, SeedLike, WeightsLike
from reduset.kernels import FAMILIES, RadialKernel, listed
from reduset.mean import KernelMean
from reduset.select import KMeans
from reduset.weights import span_of

GRID_SIZE, MIN_FACTOR, MAX_FACTOR = 50, 0.03, 3.0  # number of bandwidths, and their range as multiples of Scott's rule
HELD_OUT_POINTS = 2000
FOLDS, MAX_FOLD_ROWS = 5, 10_000  # cross-validation is used up to this number of rows
DECADES = 5.0  # of bandwidths per histogram, whose distances span nine decades
MIN_SUM = 1e-280  # a sum below is recomputed, because terms may have underflowed


@dataclass(frozen=True)
class BandwidthScores:
    """Bandwidths with their scores: the mean log density of held-out points, and its standard error."""

    bandwidths: Array
    scores: Array
    errors: Array

    @property
    def best(self) -> float:
        return float(self.bandwidths[np.argmax(self.scores)])


def grid_for(X: Floats, kernel: RadialKernel, sample_weight: Array | None = None) -> Array:
    """Candidate bandwidths in increasing order, around Scott's rule in the coordinates of the kernel."""
    scott = replace(kernel, bandwidth="scott").resolve(X, sample_weight).width
    return scott * np.geomspace(MIN_FACTOR, MAX_FACTOR, GRID_SIZE)


def search_bandwidth(
    X: PointsLike,
    kernel: RadialKernel,
    bandwidths: ArrayLike | None = None,
    sample_weight: WeightsLike = None,
    size: int | None = None,
    rng: SeedLike = None,
) -> BandwidthScores:
    """The scores of the kernel with each of the bandwidths.

    Parameters
    ----------
    X : (n, d), at least two rows
    kernel : RadialKernel
    bandwidths : (k,) positive, or None for 50 around Scott's rule
    sample_weight : (n,) non-negative, optional
    size : number of atoms of a compressed density, or None for the full density
    rng : seed or Generator
    """
    given, X = X, _validate.rows.points(X)
    _require_radial(kernel)
    rng = _validate.generator(rng)
    if len(X) < 2:
        raise ValueError("a bandwidth search holds points out, so X needs at least 2 points, got 1; pass a number as bandwidth")
    weights = np.ones(len(X)) if sample_weight is None else _validate.rows.weights(sample_weight, given, len(X))
    weights = weights / weights.max()  # so that sums are finite
    grid = grid_for(X, kernel, weights) if bandwidths is None else _validated(bandwidths)
    score = _by_distances if size is None else partial(_by_atoms, rng=rng, size=size)
    narrow = replace(kernel, bandwidth=float(grid[0])).resolve(X, weights)  # from all rows, if scales are to be computed
    splits = list(_splits(weights, rng))
    logs = np.concatenate(
        [
            score(KernelMean.of_rows(rows_of(X, training), narrow, weights[training]), X[held_out], grid)
            for training, held_out in splits
        ]
    )
    proportions = np.concatenate([weights[held_out] for _, held_out in splits])
    proportions = proportions / proportions.sum()
    scores = proportions @ logs
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.sqrt(proportions**2 @ np.square(logs - scores))
    result = BandwidthScores(grid, scores, errors)
    if len(grid) > 2 and result.best in (grid.min(), grid.max()):
        warn(
            f"the best bandwidth, {result.best:.3g}, is the {'smallest' if result.best == grid.min() else 'largest'} of the "
            f"{len(grid)} tried: pass a wider range as bandwidth, or check X for repeated rows",
        )
    return result


def _validated(bandwidths: ArrayLike) -> Array:
    grid = np.array([_validate.positive(h, "bandwidth") for h in np.ravel(bandwidths)])
    if len(grid) == 0:
        raise ValueError("bandwidth must hold at least one number to choose from, got none")
    return grid


def _splits(weights: Array, rng: np.random.Generator) -> Iterator[tuple[Indices, Indices]]:
    """Training rows and held-out rows; rows of weight 0 are in neither."""
    order = rng.permutation(np.flatnonzero(weights))
    if len(order) < 2:
        raise ValueError(
            "a bandwidth search holds points out, so X needs at least 2 points of weight above 0, got 1; pass a number as bandwidth"
        )
    relative = weights[order] / weights[order].max()
    effective = float(relative.sum() ** 2 / np.square(relative).sum())
    if len(order) > MAX_FOLD_ROWS and effective > MAX_FOLD_ROWS:
        yield order[HELD_OUT_POINTS:], order[:HELD_OUT_POINTS]
        return
    for held_out in np.array_split(order, min(FOLDS, len(order))):
        training = np.setdiff1d(order, held_out)
        if len(held_out) > HELD_OUT_POINTS:  # drawn with probabilities proportional to their weights
            held_out = held_out[np.argsort(rng.exponential(size=len(held_out)) / weights[held_out])[:HELD_OUT_POINTS]]
        yield training, held_out


def _by_histograms(mean: KernelMean, queries: Floats, grid: Array, product: bool) -> Iterator[tuple[Indices, Array, Array]]:
    """Groups of bandwidths, each with a histogram of distances and the exponents of the kernel.

    Yields the positions of k bandwidths in the grid, the weight at each distance of each query, (q, t), and the exponents of φ (or
    g) at these distances, (k, t). A histogram spans `DECADES` powers of ten of bandwidths. Wider grids take several histograms.
    """
    decade = np.log10(grid) - np.log10(grid.min())
    for part in np.unique(decade // DECADES):
        members = np.flatnonzero(decade // DECADES == part)
        middle = float(np.sqrt(grid[members].min()) * np.sqrt(grid[members].max()))
        scaled = replace(_require_radial(mean.kernel), bandwidth=middle)
        shape = (scaled.product if product else scaled.bump)(mean.dimension)
        profile = shape.profile
        counts = distance_histograms(mean.atoms, mean.weights, queries, scaled.frame(mean.atoms, shape), profile.metric)
        power = 2 if profile.metric == SQUARED else 1
        exponents = np.outer((middle / grid[members]) ** power, distance_nodes())
        for row in exponents:
            profile.to_exponents(row)
        yield members, counts, exponents


def _by_distances(mean: KernelMean, queries: Floats, grid: Array) -> Array:
    """log f_h at each query for each bandwidth, (q, k), from all points."""
    logs = np.empty((len(queries), len(grid)))
    kernels = _kernels_at(mean.kernel, grid)
    for members, counts, exponents in _by_histograms(mean, queries, grid, product=False):
        sums = counts @ np.exp(-exponents).T
        with np.errstate(divide="ignore"):
            logs[:, members] = np.log(sums)
        for k in np.flatnonzero((sums < MIN_SUM).any(axis=1)):
            present = counts[k] > 0
            logs[k, members] = logsumexp(-exponents[:, present], b=counts[k, present], axis=1)
        out_of_range = ~counts[:, :-2].any(axis=1)  # all points are farther than the largest distance of the histogram
        if out_of_range.any():
            for k in members:
                logs[out_of_range, k] = kernels[k].log_sums(mean.atoms, mean.weights, queries[out_of_range])
    return logs + np.array([kernel.density_log_peak(mean.dimension) for kernel in kernels])


def _by_atoms(mean: KernelMean, queries: Floats, grid: Array, rng: np.random.Generator, size: int) -> Array:
    """log of the compressed f_h, (q, k): k-means centres, which do not depend on the bandwidth, with weights for each bandwidth."""
    atoms = KMeans().select(mean, min(size, mean.size), rng).atoms
    kernels = _kernels_at(mean.kernel, grid)
    kappas = np.empty((len(atoms), len(grid)))
    if kernels[0].product(mean.dimension).profile.metric == SOFT_CITYBLOCK:  # its distances do not scale with the bandwidth
        for k, kernel in enumerate(kernels):
            kappas[:, k] = kernel.product_sums(mean.atoms, mean.weights, atoms)
    else:
        for members, counts, exponents in _by_histograms(mean, atoms, grid, product=True):
            kappas[:, members] = counts @ np.exp(-exponents).T
    logs = np.empty((len(queries), len(grid)))
    for k, kernel in enumerate(kernels):
        basis = span_of(kernel, atoms, kappas[:, k])
        weights = basis.weights("simplex_projection", 1.0, basis.size)
        logs[:, k] = KernelMean(basis.atoms, weights, kernel).log_density(queries)
    return logs


def _kernels_at(kernel: Any, grid: Array) -> list[RadialKernel]:
    return [replace(_require_radial(kernel), bandwidth=float(h)) for h in grid]


def _require_radial(kernel: Any) -> RadialKernel:
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"kernel must be a {listed(FAMILIES.values(), 'or')} kernel for a bandwidth search, got {kernel!r}")
    return kernel
