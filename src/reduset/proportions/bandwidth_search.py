"""Bandwidth and ridge by held-out rows: the pair that best estimates artificial mixtures of them, or predicts their labels.

A stratified sample of the rows is held out. The class means are computed from the other rows. Mixtures with Dirichlet proportions
of several concentrations are drawn from the held-out rows. Every pair is evaluated on the same mixtures by the ℓ1 error (Cruz
Cortés & Scott 2017, Section VI-B). If proportions are estimated by likelihood, the best pair makes the held-out labels most likely.

The atoms do not depend on the bandwidth, so they are selected once. The distances to them are used for all bandwidths. Each point
enters a mixture by k values. A mixture therefore costs an average of these values and no kernel evaluation. The held-out rows are
added to the means in the same pass, so the means of all rows need no further pass. The cost is O(n·m·d), plus O(n·m) per bandwidth.

Memory: four (m, m) matrices per bandwidth, and two for the best so far. Above m = 680 the bandwidths are divided into groups, so
that each kind of matrix has at most 2²² entries. From m = 1,450 on, a group is one bandwidth. Each group needs a further pass. This
takes 0.13 GB more than a single bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from reduset._types import Array, Report
from reduset.kernels import Kernel, RadialKernel
from reduset.proportions.class_means import (
    AtomBasis,
    ClassMeans,
    FullClassMeans,
    LabelledPoints,
    ProjectedClassMeans,
    class_moments,
    discriminants,
    grams,
    ignore,
)
from reduset.proportions.kernel_blocks import product_values
from reduset.proportions.simplex_fit import SimplexFit

LADDER = tuple(2.0 ** (j / 2) for j in range(-6, 3))  # factors of the kernel's bandwidth
ADDED_RUNGS, MAX_EXTENSIONS = 4, 2  # bandwidths added if the best is at the end, and how often
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
HELD_OUT = 8192
ENTRIES = 2**22  # entries of the matrices of one kind in a group of bandwidths, 32 MiB
MIXTURES, MIXTURE_ROWS = 120, 500
CONCENTRATIONS = (0.2, 1.0, 3.0)

Ridges = tuple[float | None, ...]


@dataclass(frozen=True)
class ProportionsSearch:
    """A search of bandwidths and ridges, with the error of every pair.

    Attributes
    ----------
    bandwidths : (b,)
    ridges : (r,), or (None,) if there is no ridge
    errors : (b, r) array
        Mean ℓ1 error over the artificial mixtures. For "likelihood", the mean of −log P(label) over the held-out rows.
    """

    bandwidths: tuple[float, ...]
    ridges: Ridges
    errors: Array


def split(data: LabelledPoints, rng: np.random.Generator) -> tuple[LabelledPoints, LabelledPoints] | None:
    """The rows for the means and the held-out rows, in random order. None if a class has only one row."""
    if np.bincount(data.codes, minlength=data.classes).min() < 2:
        return None
    fraction = min(0.5, HELD_OUT / len(data.codes))
    out = np.zeros(len(data.codes), np.bool_)
    for code in range(data.classes):
        rows = rng.permutation(np.flatnonzero(data.codes == code))
        out[rows[: max(1, round(fraction * len(rows)))]] = True
    return data.part(rng.permutation(np.flatnonzero(~out))), data.part(rng.permutation(np.flatnonzero(out)))


def label_loss(rows: LabelledPoints, nearer: Array) -> float:
    """The mean of −log P(class | x) with log P = log proportion + a·discriminant, at the best a ≥ 0. It is convex in a."""
    weights = rows.weights / rows.weights.sum()
    base = np.log(np.maximum(rows.masses, 1e-300) / rows.masses.sum())
    labelled = (np.arange(len(rows.codes)), rows.codes)
    nearer = nearer / max(float(np.sqrt(weights @ np.square(nearer).mean(axis=1))), 1e-300)

    def loss(a: float) -> float:
        return -float(weights @ log_softmax(base + a * nearer, axis=1)[labelled])

    return float(minimize_scalar(loss, bounds=(0.0, 100.0), method="bounded", options={"xatol": 1e-2}).fun)


def mixtures(held: LabelledPoints, rng: np.random.Generator) -> tuple[Array, Array]:
    """(t, n) weight of every row in every mixture, and (t, k) class proportions of the mixtures."""
    k = held.classes
    rows = [np.flatnonzero(held.codes == code) for code in range(k)]
    size = min(MIXTURE_ROWS, len(held.codes))
    counts = np.zeros((MIXTURES, len(held.codes)))
    truth = np.empty((MIXTURES, k))
    for t in range(MIXTURES):
        drawn = rng.multinomial(size, rng.dirichlet(np.full(k, CONCENTRATIONS[t % len(CONCENTRATIONS)])))
        truth[t] = drawn / size
        for code in range(k):
            weights = held.weights[rows[code]]
            np.add.at(counts[t], rng.choice(rows[code], drawn[code], p=weights / weights.sum()), 1.0 / size)
    return counts, truth


@dataclass(frozen=True)
class _Validation:
    """Hold-out validation: the rows for the means, the held-out rows, and artificial mixtures of these for all pairs."""

    fitted: LabelledPoints
    held: LabelledPoints
    counts: Array
    truth: Array
    solver: str | None
    report: Report

    def error(self, fit: SimplexFit, values: Array) -> float:
        """The mean ℓ1 error over the mixtures, or the loss of the labels, from the values (n, k) of the held-out rows."""
        if self.solver is None:
            return label_loss(self.held, discriminants(fit.products, values))
        return float(np.abs(fit.solve(self.counts @ values, self.solver) - self.truth).sum(axis=1).mean())


@dataclass(frozen=True)
class _Trial:
    """The errors of several bandwidths, (b, r), the index of the best ridge, and a function that fits the best pair to all rows.

    Class means of other pairs are not kept.
    """

    errors: Array
    ridge: int
    finish: Callable[[], ClassMeans]

    def followed_by(self, other: _Trial) -> _Trial:
        """Both, the other's bandwidths after these."""
        best = other if other.errors.min() < self.errors.min() else self
        return replace(best, errors=np.concatenate([self.errors, other.errors]))


def _best(errors: Array) -> tuple[int, int]:
    s, r = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return int(s), int(r)


def _try_on_atoms(validation: _Validation, kernels: Sequence[Kernel], atoms: Array, ridges: Ridges) -> _Trial:
    """All pairs on shared atoms, in two passes over the rows for any number of pairs.

    The first pass computes the class moments of the fitted rows, which give class means for every kernel and ridge. The second pass
    computes the values of the held-out rows, which give the error of each pair. It also computes their moments. The sum of both
    moments belongs to all rows, and the best pair is fitted to it.
    """
    whitened = ridges != (None,)
    first = class_moments(validation.fitted, kernels, atoms, whitened, validation.report)
    gram = grams(kernels, atoms)
    fits: list[list[SimplexFit]] = []
    directions: list[Array] = []
    for kernel, K, moments in zip(kernels, gram, first, strict=True):
        basis = AtomBasis.of(K, moments)
        means = (ProjectedClassMeans(kernel, atoms, basis, moments.kappa, ridge) for ridge in ridges)
        ready = [(mean.fit, mean.directions) for mean in means]  # The generator keeps only one factor in memory.
        fits.append([fit for fit, _ in ready])
        directions.append(np.hstack([columns for _, columns in ready]))
    values = [np.empty((len(validation.held.codes), columns.shape[1])) for columns in directions]

    def evaluate(s: int, a: int, b: int, K: Array) -> None:
        np.matmul(K, directions[s], out=values[s][a:b])

    second = class_moments(validation.held, kernels, atoms, whitened, also=evaluate)
    parts = [np.split(block, len(ridges), axis=1) for block in values]
    errors = np.array([list(map(validation.error, *pair)) for pair in zip(fits, parts, strict=True)])
    s, r = _best(errors)
    both = first[s].merged_with(second[s])
    return _Trial(errors, r, partial(ProjectedClassMeans.of, kernels[s], atoms, gram[s], both, ridges[r]))


def _try_on_all_rows(validation: _Validation, kernels: Sequence[Kernel], data: LabelledPoints) -> _Trial:
    """All bandwidths without compression: every fitted row is an atom."""
    fitted, held = validation.fitted, validation.held
    weights = [fitted.columns(fitted.row_weights)] * len(kernels)
    held_values = product_values(kernels, held.points, fitted.points, weights)
    fitted_values = product_values(kernels, fitted.points, fitted.points, weights)
    products = [weights[0].T @ values for values in fitted_values]
    errors = np.array(
        [[validation.error(SimplexFit((G + G.T) / 2), values)] for G, values in zip(products, held_values, strict=True)]
    )
    return _Trial(errors, 0, partial(FullClassMeans, kernels[_best(errors)[0]], data, validation.report))


def search(
    data: LabelledPoints, kernel: Kernel, atoms: Array | None, ridges: Ridges, bandwidths: bool, solver: str | None,
    rng: np.random.Generator, report: Report = ignore,
) -> tuple[ClassMeans, float | None, ProportionsSearch] | None:  # fmt: skip
    """The best bandwidth and ridge, or None if no rows can be held out.

    ``bandwidths`` searches around the kernel's bandwidth. Otherwise only that bandwidth is used. ``atoms=None`` uses all rows.
    ``solver=None`` evaluates pairs by the likelihood of the labels.
    """
    parts = split(data, rng)
    if parts is None:
        return None
    none = np.empty((0, 0))
    validation = _Validation(*parts, *(mixtures(parts[1], rng) if solver else (none, none)), solver, report)

    def attempt(kernels: Sequence[Kernel]) -> _Trial:
        if atoms is None:
            return _try_on_all_rows(validation, kernels, data)
        size = max(1, ENTRIES // len(atoms) ** 2)
        groups = (kernels[a : a + size] for a in range(0, len(kernels), size))
        return reduce(_Trial.followed_by, (_try_on_atoms(validation, group, atoms, ridges) for group in groups))

    if bandwidths and isinstance(kernel, RadialKernel):
        trial, widths = _along_ladder(kernel, attempt)
    else:
        trial, widths = attempt([kernel]), [kernel.width if isinstance(kernel, RadialKernel) else float("nan")]
    return trial.finish(), ridges[trial.ridge], ProportionsSearch(tuple(widths), ridges, trial.errors)


def _along_ladder(kernel: RadialKernel, attempt: Callable[[Sequence[Kernel]], _Trial]) -> tuple[_Trial, list[float]]:
    """The bandwidths of the ladder, which is extended if the best is at its end."""

    def at(factors: Array) -> _Trial:
        return attempt([replace(kernel, bandwidth=float(kernel.width * factor)) for factor in factors])

    factors = np.array(LADDER)
    trial = at(factors)
    for _ in range(MAX_EXTENSIONS):
        s = int(np.argmin(trial.errors.min(axis=1)))
        if 0 < s < len(factors) - 1:
            break
        step = 2.0 ** (np.arange(1, ADDED_RUNGS + 1) / 2)
        if s:
            more = factors[-1] * step
            factors, trial = np.concatenate([factors, more]), trial.followed_by(at(more))
        else:
            more = factors[0] / step[::-1]
            factors, trial = np.concatenate([more, factors]), at(more).followed_by(trial)
    return trial, [float(kernel.width * factor) for factor in factors]
