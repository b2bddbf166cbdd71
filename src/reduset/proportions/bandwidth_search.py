"""Bandwidth and ridge by rows held out: the pair that tells artificial mixtures of them best, or their labels.

Some rows are held out (stratified); the class means are of the rest. Mixtures of Dirichlet proportions, of several concentrations,
are drawn from the rows held out, and every pair is judged by the same ones, ℓ1 (Cruz Cortés & Scott 2017, Section VI-B). Where
proportions are by likelihood, so is the choice: the pair by which the labels of the rows held out are most likely.

The atoms do not depend on the bandwidth, so they are selected once, and the distances to them serve all bandwidths. A point enters
a mixture by its k values, so a mixture costs an average of them and no kernel evaluation. The rows held out are added to the means
in the same pass, so the means of all rows cost no pass of their own: O(n·m·d) in all, and O(n·m) a bandwidth.

Memory: four (m, m) matrices a bandwidth, and two for the best so far. Above m = 680 the bandwidths go in groups, as many as make
2²² entries of one kind (one from m = 1,450 on), each with a pass of its own: 0.13 GB beside what a single bandwidth takes.
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

LADDER = tuple(2.0 ** (j / 2) for j in range(-6, 3))  # times the kernel's own bandwidth
LONGER, MOST_LONGER = 4, 2  # rungs added where the best is at the end, and how often
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
HELD_OUT = 8192
ENTRIES = 2**22  # of the matrices of a group of bandwidths, 32 MiB a kind
MIXTURES, MIXTURE_ROWS = 120, 500
CONCENTRATIONS = (0.2, 1.0, 3.0)

Ridges = tuple[float | None, ...]


@dataclass(frozen=True)
class ProportionsSearch:
    """A search of bandwidths and ridges: what was tried and what came of it.

    Attributes
    ----------
    bandwidths : (b,)
    ridges : (r,) or (None,) where there is none
    errors : (b, r) mean ℓ1 error over the artificial mixtures; of "likelihood" the mean of −log P(label) of the rows held out
    """

    bandwidths: tuple[float, ...]
    ridges: Ridges
    errors: Array


def split(data: LabelledPoints, rng: np.random.Generator) -> tuple[LabelledPoints, LabelledPoints] | None:
    """The rows that the means are of and those held out, in random order; None where a class has not enough rows for both."""
    if np.bincount(data.codes, minlength=data.classes).min() < 2:
        return None
    share = min(0.5, HELD_OUT / len(data.codes))
    out = np.zeros(len(data.codes), np.bool_)
    for code in range(data.classes):
        rows = rng.permutation(np.flatnonzero(data.codes == code))
        out[rows[: max(1, round(share * len(rows)))]] = True
    return data.part(rng.permutation(np.flatnonzero(~out))), data.part(rng.permutation(np.flatnonzero(out)))


def label_loss(rows: LabelledPoints, nearer: Array) -> float:
    """The mean of −log P(class | x) with log P = log share + a·discriminant, at the best a ≥ 0: convex in a."""
    weights = rows.weights / rows.weights.sum()
    base = np.log(np.maximum(rows.masses, 1e-300) / rows.masses.sum())
    own = (np.arange(len(rows.codes)), rows.codes)
    nearer = nearer / max(float(np.sqrt(weights @ np.square(nearer).mean(axis=1))), 1e-300)

    def loss(a: float) -> float:
        return -float(weights @ log_softmax(base + a * nearer, axis=1)[own])

    return float(minimize_scalar(loss, bounds=(0.0, 100.0), method="bounded", options={"xatol": 1e-2}).fun)


def mixtures(held: LabelledPoints, rng: np.random.Generator) -> tuple[Array, Array]:
    """(t, n) the share of every row in every mixture, and (t, k) the proportions that these make."""
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
    """Hold-out validation: the rows that means are of, those held out, and artificial mixtures of these that judge all pairs."""

    fitted: LabelledPoints
    held: LabelledPoints
    counts: Array
    truth: Array
    solver: str | None
    report: Report

    def error(self, fit: SimplexFit, values: Array) -> float:
        """The mean ℓ1 error over the mixtures, or the loss of labels, from the values (n, k) of the rows held out."""
        if self.solver is None:
            return label_loss(self.held, discriminants(fit.products, values))
        return float(np.abs(fit.solve(self.counts @ values, self.solver) - self.truth).sum(axis=1).mean())


@dataclass(frozen=True)
class _Trial:
    """The errors of some bandwidths, (b, r), the ridge of the best, and what makes the best on all rows; it holds no others."""

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
    """All pairs on shared atoms, in two passes over the rows however many pairs there are.

    The first pass takes the class moments of the fitted rows, which give class means for every kernel and ridge. The second takes
    the values of the rows held out, by which each pair is judged, and their moments too: added to the first they are those of all
    rows, from which the best pair is made once more.
    """
    whitened = ridges != (None,)
    first = class_moments(validation.fitted, kernels, atoms, whitened, validation.report)
    gram = grams(kernels, atoms)
    fits: list[list[SimplexFit]] = []
    directions: list[Array] = []
    for kernel, K, moments in zip(kernels, gram, first, strict=True):
        basis = AtomBasis.of(K, moments)
        means = (ProjectedClassMeans(kernel, atoms, basis, moments.kappa, ridge) for ridge in ridges)
        ready = [(each.fit, each.directions) for each in means]  # one at a time: each has a factor
        fits.append([fit for fit, _ in ready])
        directions.append(np.hstack([columns for _, columns in ready]))
    values = [np.empty((len(validation.held.codes), columns.shape[1])) for columns in directions]

    def evaluate(s: int, a: int, b: int, K: Array) -> None:
        np.matmul(K, directions[s], out=values[s][a:b])

    second = class_moments(validation.held, kernels, atoms, whitened, also=evaluate)
    parts = [np.split(each, len(ridges), axis=1) for each in values]
    errors = np.array([list(map(validation.error, *pair)) for pair in zip(fits, parts, strict=True)])
    s, r = _best(errors)
    both = first[s].with_(second[s])
    return _Trial(errors, r, partial(ProjectedClassMeans.of, kernels[s], atoms, gram[s], both, ridges[r]))


def _try_on_all_rows(validation: _Validation, kernels: Sequence[Kernel], data: LabelledPoints) -> _Trial:
    """All bandwidths without compression: every fitted row is an atom."""
    fitted, held = validation.fitted, validation.held
    weights = [fitted.columns(fitted.shares)] * len(kernels)
    seen = product_values(kernels, held.points, fitted.points, weights)
    own = product_values(kernels, fitted.points, fitted.points, weights)
    products = [weights[0].T @ inside for inside in own]
    errors = np.array([[validation.error(SimplexFit((G + G.T) / 2), values)] for G, values in zip(products, seen, strict=True)])
    return _Trial(errors, 0, partial(FullClassMeans, kernels[_best(errors)[0]], data, validation.report))


def search(
    data: LabelledPoints, kernel: Kernel, atoms: Array | None, ridges: Ridges, bandwidths: bool, solver: str | None,
    rng: np.random.Generator, report: Report = ignore,
) -> tuple[ClassMeans, float | None, ProportionsSearch] | None:  # fmt: skip
    """The best of the bandwidths (around the kernel's own, or that alone) and ridges; None where no rows can be held out.

    ``atoms`` None means all rows, ``solver`` None that pairs are judged by the labels' likelihood.
    """
    parts = split(data, rng)
    if parts is None:
        return None
    none = np.empty((0, 0))
    validation = _Validation(*parts, *(mixtures(parts[1], rng) if solver else (none, none)), solver, report)

    def attempt(kernels: Sequence[Kernel]) -> _Trial:
        if atoms is None:
            return _try_on_all_rows(validation, kernels, data)
        group = max(1, ENTRIES // len(atoms) ** 2)
        some = (kernels[a : a + group] for a in range(0, len(kernels), group))
        return reduce(_Trial.followed_by, (_try_on_atoms(validation, each, atoms, ridges) for each in some))

    if bandwidths and isinstance(kernel, RadialKernel):
        trial, widths = _along_ladder(kernel, attempt)
    else:
        trial, widths = attempt([kernel]), [kernel.width if isinstance(kernel, RadialKernel) else float("nan")]
    return trial.finish(), ridges[trial.ridge], ProportionsSearch(tuple(widths), ridges, trial.errors)


def _along_ladder(kernel: RadialKernel, attempt: Callable[[Sequence[Kernel]], _Trial]) -> tuple[_Trial, list[float]]:
    """The bandwidths of the ladder, made longer where the best is at its end."""

    def at(factors: Array) -> _Trial:
        return attempt([replace(kernel, bandwidth=float(kernel.width * factor)) for factor in factors])

    factors = np.array(LADDER)
    trial = at(factors)
    for _ in range(MOST_LONGER):
        s = int(np.argmin(trial.errors.min(axis=1)))
        if 0 < s < len(factors) - 1:
            break
        step = 2.0 ** (np.arange(1, LONGER + 1) / 2)
        if s:
            more = factors[-1] * step
            factors, trial = np.concatenate([factors, more]), trial.followed_by(at(more))
        else:
            more = factors[0] / step[::-1]
            factors, trial = np.concatenate([more, factors]), at(more).followed_by(trial)
    return trial, [float(kernel.width * factor) for factor in factors]
