"""The symmetrised Kullback-Leibler divergence of densities, J(p, q) = KL(p‖q) + KL(q‖p), by Monte Carlo.

J = ∫ (p − q) log(p/q). Let t = log p/q. With draws from the mixture (p + q)/2, half of them from each density,

    J = E[ 2 t tanh(t/2) ].

Every term is at least 0, exactly 0 where p = q, and at most 2|t|. So the estimate is symmetric and not negative, and its standard
error vanishes with the divergence. Averages of log p/q lack these properties. J is the dissimilarity of the "KDE case" of Cruz
Cortés & Scott 2017, Section VI-A. Densities are kernel means or mixtures, and a list may contain both.

Cost for S draws from each of N densities: if all are on the same m atoms, O(N·S·m) kernel values and a matrix product with the
weights. If they have different atoms or components, O(N·S·Σm). Memory O(S·N).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from reduset import _validate
from reduset._engine import blocks, single_threaded_blas
from reduset._progress import Progress
from reduset._types import Array, Floats, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.cohort.distances import checked, on_same_atoms
from reduset.kernels import ANY_FAMILY, Kernel, RadialKernel
from reduset.mean import KernelMean
from reduset.mixture import Mixture

Density = KernelMean | Mixture

BLOCK_ENTRIES = 1 << 22
UNDERFLOW = 1e-200  # smaller sums may contain underflowed terms


class Divergences(NamedTuple):
    """Estimates and their standard errors, (N, M) each."""

    values: Array
    errors: Array


@seeded
def divergences(
    means: Sequence[Density],
    others: Sequence[Density] | None = None,
    *,
    draws: int = 1000,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Divergences:
    """The symmetrised divergences between densities, with their Monte-Carlo standard errors.

    Parameters
    ----------
    means : List of KernelMean or Mixture with non-negative weights, which are scaled to the sum 1.
    others : List of KernelMean or Mixture, optional. By default, ``means`` are compared with each other.
    draws : Number of draws from each density.
    rng : None, seed or Generator.
    progress : bool, or a function of (stage, done, total).

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.cohort import divergences
    >>> p, q = (KernelMean(np.array([[x]]), np.ones(1), Gaussian(1.0)) for x in (0.0, 1.0))
    >>> found = divergences([p, q], draws=20_000, rng=0)  # exactly: (0 − 1)² = 1
    >>> bool(abs(found.values[0, 1] - 1) < 3 * found.errors[0, 1] < 0.1)
    True
    """
    draws = _validate.whole(draws, "draws", 2, None, "a standard error needs at least two")
    rows = _densities(means, "means")
    columns = rows if others is None else _densities(others, "others")
    for name, listed in (("means", rows), ("others", columns)):
        for k, density in enumerate(listed):
            if density.dimension != rows[0].dimension:
                raise ValueError(f"{name}[{k}] must have the dimension of means[0], {rows[0].dimension}, got {density.dimension}")
    kernel_means = [density for density in (*rows, *columns) if isinstance(density, KernelMean)]
    for other in kernel_means[1:]:
        kernel_means[0]._require_compatible(other)
    with closing(Progress(progress)) as shown:
        return estimate(rows, None if others is None else columns, draws, _validate.generator(rng), shown)


def estimate(
    means: Sequence[Density], others: Sequence[Density] | None, draws: int, rng: np.random.Generator, progress: Progress
) -> Divergences:
    """The divergences of checked lists of densities.

    With others, the draws from every mean use the same random numbers, so that its row does not depend on the rest of the list.
    """
    report = progress.stage("drawing")
    if others is None:
        drawn = back = _averages(means, means, draws, [rng] * len(means), lambda k: report(k, len(means)))
    else:
        seed, total = int(rng.integers(2**63)), len(means) + len(others)
        drawn = _averages(means, others, draws, [np.random.default_rng(seed) for _ in means], lambda k: report(k, total))
        back = _averages(others, means, draws, [rng] * len(others), lambda k: report(len(means) + k, total))
    values = (drawn[0] + back[0].T) / 2
    errors = np.sqrt(drawn[1] + back[1].T) / 2
    if others is None:
        np.fill_diagonal(values, 0.0)
        np.fill_diagonal(errors, 0.0)
    return Divergences(values, errors)


def _densities(means: Any, name: str) -> list[Density]:
    """A list of densities of mass 1."""
    listed: list[Density] = []
    for k, mean in enumerate(checked(means, name, (KernelMean, Mixture))):
        if isinstance(mean, KernelMean) and not isinstance(mean.kernel, RadialKernel):
            raise TypeError(f"{name}[{k}] must be a density, but {mean.kernel!r} is no density; use {ANY_FAMILY}")
        least = mean.weights.min()
        if least < 0:
            way_out = "compress with weights='simplex'"
            raise ValueError(f"{name}[{k}] must have non-negative weights, got a weight of {least:.3g}; {way_out}")
        listed.append(mean if abs(mean.mass - 1) < 1e-12 else mean / mean.mass)
    return listed


def _averages(
    sources: Sequence[Density],
    targets: Sequence[Density],
    draws: int,
    rngs: list[np.random.Generator],
    report: Callable[[int], None],
) -> tuple[Array, Array]:
    """The mean of 2 t tanh(t/2) over draws from each source, for each target, and its squared standard error."""
    average = np.empty((len(sources), len(targets)))
    square = np.empty_like(average)
    for i, (source, rng) in enumerate(zip(sources, rngs, strict=True)):
        report(i)
        Q = source.sample(draws, rng)
        with np.errstate(invalid="ignore"):  # inf − inf where both densities underflow
            t = log_densities([source], Q) - log_densities(targets, Q)
        terms = 2 * t * np.tanh(t / 2)
        average[i] = terms.mean(axis=0)
        square[i] = terms.var(axis=0, ddof=1) / draws
    return average, square


def overlooked(points: Floats, small: Density, kernel: Kernel) -> float:
    """An approximate lower bound on the part of KL(full‖small) from points of a bag that ``small`` misses; O(n·m).

    At each of its points, the full density is at least the value of one weighted kernel function. Points far from all atoms change
    the norm of a mean very little. They can dominate a divergence, because logarithms are not bounded.
    """
    full = KernelMean.of_rows(points, kernel)
    single = np.log(full.weights) + cast(RadialKernel, kernel).density_log_peak(full.dimension)
    return float(full.weights @ np.maximum(single - small.log_density(full.atoms[:]), 0.0))


def log_densities(densities: Sequence[Density], Q: Array) -> Array:
    """(q, N) the logarithm of every density at the rows of Q; kernel values are computed once if all are on the same atoms."""
    means = [density for density in densities if isinstance(density, KernelMean)]
    if len(densities) == 1 or len(means) < len(densities) or not on_same_atoms(means):
        return np.stack([density.log_density(Q) for density in densities], axis=1)
    first = means[0]
    kernel = cast(RadialKernel, first.kernel)
    plain = replace(kernel, space="rkhs")  # inner products are then kernel values, 1 at the centre
    weights = np.stack([mean.weights for mean in means], axis=1)
    sums = np.empty((len(Q), len(means)))
    with single_threaded_blas():
        for a, b in blocks(len(Q), max(1, BLOCK_ENTRIES // first.size)):
            sums[a:b] = plain.product_gram(Q[a:b], first.atoms) @ weights
    with np.errstate(divide="ignore"):
        logs = np.log(sums) + kernel.density_log_peak(first.dimension)
    for j in np.flatnonzero((sums < UNDERFLOW).any(axis=0)).tolist():
        rows = np.flatnonzero(sums[:, j] < UNDERFLOW)
        logs[rows, j] = means[j].log_density(Q[rows])
    return logs
