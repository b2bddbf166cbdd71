"""Bandwidth by held-out likelihood: for each of many, how probable does the rest of the data find points that were left out?

    score(h) = Σ_q w_q log Σᵢ wᵢ φ_h(q, xᵢ) / Σ_q w_q,        x among the rest, q left out

Two ways. "distances": the whole density, not a compressed one. One pass counts how far the points are from each q, and serves
every bandwidth (`_engine/histograms.py`), so that fifty cost little more than one: O(n·q·d). "atoms" (Cruz Cortés & Scott 2017,
Section VI-B, there for proportions): atoms are selected once, weights found for every bandwidth, O(m³) each; it asks what
suits the compressed density. Here too one pass over the data serves every bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from reduset import _validate
from reduset._engine import SOFT_CITYBLOCK, SQUARED, distance_histograms, distance_nodes, rows_of
from reduset._messages import warn
from reduset._types import Array, Floats, Indices, PointsLike, SeedLike, WeightsLike
from reduset._validate import rows as _rows
from reduset.kernels import FAMILIES, RadialKernel, listed
from reduset.mean import KernelMean
from reduset.select import KMeans
from reduset.weights import span_of

METHODS = ("distances", "atoms")
GRID, FROM, TO = 50, 0.03, 3.0  # bandwidths, as multiples of Scott's
LEFT_OUT = 2000  # points
FOLDS, FOLDS_UP_TO = 5, 10_000  # rows up to which every point is left out once
ATOMS = 500
DECADES = 5.0  # of bandwidths that one histogram serves; its distances span nine
FAINT = 1e-280  # a sum below it may have lost terms to underflow


@dataclass(frozen=True)
class BandwidthScores:
    """Bandwidths with their scores: mean log-density of points that were left out, and its standard error."""

    bandwidths: Array
    scores: Array
    errors: Array

    @property
    def best(self) -> float:
        return float(self.bandwidths[np.argmax(self.scores)])


def grid_for(X: Floats, kernel: RadialKernel, sample_weight: Array | None = None) -> Array:
    """Bandwidths worth a look, small to large, around Scott's rule in the coordinates of the kernel."""
    scott = replace(kernel, bandwidth="scott").resolve(X, sample_weight).width
    return scott * np.geomspace(FROM, TO, GRID)


def search_bandwidth(
    X: PointsLike,
    kernel: RadialKernel,
    bandwidths: ArrayLike | None = None,
    sample_weight: WeightsLike = None,
    method: str = "distances",
    size: int = ATOMS,
    rng: SeedLike = None,
) -> BandwidthScores:
    """Scores of the kernel with each of the bandwidths.

    Parameters
    ----------
    X : (n, d), at least two rows
    bandwidths : (k,) positive, or None for 50 around Scott's rule
    method : "distances" or "atoms"
    size : how many atoms the second looks at
    """
    given, X = X, _rows.points(X)
    _require_radial(kernel)
    _validate.one_of(method, "method", METHODS)
    rng = _validate.generator(rng)
    if len(X) < 2:
        raise ValueError("a search leaves points out, and needs at least 2; got 1. Give a number as bandwidth")
    weights = np.ones(len(X)) if sample_weight is None else _rows.weights(sample_weight, given, len(X))
    weights = weights / weights.max()  # so that sums are finite
    grid = grid_for(X, kernel, weights) if bandwidths is None else _given(bandwidths)
    score = _by_distances if method == "distances" else _by_atoms
    narrow = replace(kernel, bandwidth=float(grid[0])).resolve(X, weights)  # of all rows, where it has scales to find
    splits = list(_splits(weights, rng))
    logs = np.concatenate(
        [score(KernelMean.of_rows(rows_of(X, kept), narrow, weights[kept]), X[out], grid, rng, size) for kept, out in splits]
    )
    shares = np.concatenate([weights[out] for _, out in splits])
    shares = shares / shares.sum()
    scores = shares @ logs
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.sqrt(shares**2 @ np.square(logs - scores))
    found = BandwidthScores(grid, scores, errors)
    if len(grid) > 2 and found.best in (grid.min(), grid.max()):
        warn(
            f"the best bandwidth, {found.best:.3g}, is the {'least' if found.best == grid.min() else 'largest'} of the "
            f"{len(grid)} tried: give others as bandwidth, or look for repeated rows",
        )
    return found


def _given(bandwidths: ArrayLike) -> Array:
    grid = np.array([_validate.positive(h, "bandwidth") for h in np.ravel(bandwidths)])
    if len(grid) == 0:
        raise ValueError("bandwidth must hold at least one number to choose from, got none")
    return grid


def _splits(weights: Array, rng: np.random.Generator) -> Iterator[tuple[Indices, Indices]]:
    """Rows that stay and rows that are left out; those without weight are neither."""
    order = rng.permutation(np.flatnonzero(weights))
    if len(order) < 2:
        raise ValueError("a search leaves points out, and needs at least 2 of weight above 0; got 1. Give a number as bandwidth")
    shares = weights[order] / weights[order].max()
    effective = float(shares.sum() ** 2 / np.square(shares).sum())
    if len(order) > FOLDS_UP_TO and effective > FOLDS_UP_TO:
        yield order[LEFT_OUT:], order[:LEFT_OUT]
        return
    for out in np.array_split(order, min(FOLDS, len(order))):
        kept = np.setdiff1d(order, out)
        if len(out) > LEFT_OUT:  # those that carry the weight: each among the first by chance, the heavier the sooner
            out = out[np.argsort(rng.exponential(size=len(out)) / weights[out])[:LEFT_OUT]]
        yield kept, out


def _by_histograms(mean: KernelMean, queries: Floats, grid: Array, product: bool) -> Iterator[tuple[Indices, Array, Array]]:
    """For some of the bandwidths at a time, which: how much weight is at each distance of each query, (q, t), and the depth of φ
    (or g) there for each of these bandwidths, (k, t).

    A histogram spans some powers of ten, so bandwidths much farther apart than anyone tries take several.
    """
    decade = np.log10(grid) - np.log10(grid.min())
    for part in np.unique(decade // DECADES):
        some = np.flatnonzero(decade // DECADES == part)
        middle = float(np.sqrt(grid[some].min()) * np.sqrt(grid[some].max()))
        scaled = replace(_require_radial(mean.kernel), bandwidth=middle)
        shape = (scaled.product if product else scaled.bump)(mean.dimension)
        profile = shape.profile
        counts = distance_histograms(mean.atoms, mean.weights, queries, scaled.frame(mean.atoms, shape), profile.metric)
        power = 2 if profile.metric == SQUARED else 1
        depths = np.outer((middle / grid[some]) ** power, distance_nodes())
        for row in depths:
            profile.to_exponents(row)
        yield some, counts, depths


def _by_distances(mean: KernelMean, queries: Floats, grid: Array, rng: np.random.Generator, size: int) -> Array:
    """log f_h at each query for each bandwidth, (q, k), from all the points."""
    logs = np.empty((len(queries), len(grid)))
    kernels = _with_each(mean.kernel, grid)
    for some, counts, depths in _by_histograms(mean, queries, grid, product=False):
        sums = counts @ np.exp(-depths).T
        with np.errstate(divide="ignore"):
            logs[:, some] = np.log(sums)
        for k in np.flatnonzero((sums < FAINT).any(axis=1)):
            present = counts[k] > 0
            logs[k, some] = logsumexp(-depths[:, present], b=counts[k, present], axis=1)
        beyond = ~counts[:, :-2].any(axis=1)  # all the points are farther than the histogram reaches
        if beyond.any():
            for k in some:
                logs[beyond, k] = kernels[k].log_sums(mean.atoms, mean.weights, queries[beyond])
    return logs + np.array([kernel.density_log_peak(mean.dimension) for kernel in kernels])


def _by_atoms(mean: KernelMean, queries: Floats, grid: Array, rng: np.random.Generator, size: int) -> Array:
    """log of the compressed f_h, (q, k): k-means centres, which do not depend on the bandwidth, weighed anew for each."""
    atoms = KMeans().select(mean, min(size, mean.size), rng).atoms
    kernels = _with_each(mean.kernel, grid)
    kappas = np.empty((len(atoms), len(grid)))
    if kernels[0].product(mean.dimension).profile.metric == SOFT_CITYBLOCK:  # whose gaps do not scale with the bandwidth
        for k, kernel in enumerate(kernels):
            kappas[:, k] = kernel.product_sums(mean.atoms, mean.weights, atoms)
    else:
        for some, counts, depths in _by_histograms(mean, atoms, grid, product=True):
            kappas[:, some] = counts @ np.exp(-depths).T
    logs = np.empty((len(queries), len(grid)))
    for k, kernel in enumerate(kernels):
        basis = span_of(kernel, atoms, kappas[:, k])
        weights = basis.weights("simplex_projection", 1.0, basis.size)
        logs[:, k] = KernelMean(basis.atoms, weights, kernel).log_density(queries)
    return logs


def _with_each(kernel: Any, grid: Array) -> list[RadialKernel]:
    return [replace(_require_radial(kernel), bandwidth=float(h)) for h in grid]


def _require_radial(kernel: Any) -> RadialKernel:
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"bandwidths are searched for {listed(FAMILIES.values(), 'and')} kernels, got {kernel!r}")
    return kernel
