"""Bandwidth and ridge by artificial mixtures: the pair whose proportions are nearest to the truth, ℓ1, on rows held out.

Some rows are held out (stratified); the class means are of the rest. Mixtures of Dirichlet proportions, of several concentrations,
are drawn from the rows held out, and every pair is judged by the same ones (Cruz Cortés & Scott 2017, Section VI-B).

The atoms do not depend on the bandwidth, so they are selected once, and the distances to them serve all bandwidths (`sweeps`). A
point enters a mixture by its k values, so a mixture costs an average of them and no kernel evaluation. The rows held out are added
to the means in the same pass, so the means of all rows cost no pass of their own: O(n·m·d) in all, and O(n·m) a bandwidth.

Memory: four (m, m) matrices a bandwidth, and three for the best so far. Above m = 680 the bandwidths go in groups, as many as make
2²² entries of one kind (one from m = 1,450 on), each with a pass of its own: 0.13 GB beside what a single bandwidth takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from reduset._types import Array, Report
from reduset.kernels.base import Kernel, RadialKernel
from reduset.proportions.class_means import Basis, Everything, Labelled, Matcher, Moments, Observer, Seen, grams, ignore, moments
from reduset.proportions.kernel_blocks import product_blocks, product_values
from reduset.proportions.simplex_fit import Mixer

LADDER = tuple(2.0 ** (j / 2) for j in range(-6, 3))  # times the kernel's own bandwidth
LONGER, MOST_LONGER = 4, 2  # rungs added where the best is at the end, and how often
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
HELD_OUT = 8192
ENTRIES = 2**22  # of the matrices of a group of bandwidths, 32 MiB a kind
MIXTURES, MIXTURE_ROWS = 120, 500
CONCENTRATIONS = (0.2, 1.0, 3.0)

Ridges = tuple[float | None, ...]


@dataclass(frozen=True)
class Search:
    """What was tried and what came of it.

    Attributes
    ----------
    bandwidths : (b,)
    ridges : (r,) or (None,) where there is none
    errors : (b, r) mean ℓ1 error over the artificial mixtures
    """

    bandwidths: tuple[float, ...]
    ridges: Ridges
    errors: Array


def split(data: Labelled, rng: np.random.Generator) -> tuple[Labelled, Labelled] | None:
    """The rows that the means are of and those held out, in random order; None where a class has not enough rows for both."""
    if np.bincount(data.codes, minlength=data.classes).min() < 2:
        return None
    share = min(0.5, HELD_OUT / len(data.codes))
    out = np.zeros(len(data.codes), np.bool_)
    for code in range(data.classes):
        rows = rng.permutation(np.flatnonzero(data.codes == code))
        out[rows[: max(1, round(share * len(rows)))]] = True
    return data.part(rng.permutation(np.flatnonzero(~out))), data.part(rng.permutation(np.flatnonzero(out)))


def mixtures(held: Labelled, rng: np.random.Generator) -> tuple[Array, Array]:
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


def _error(mixer: Mixer, values: Array, counts: Array, truth: Array, solver: str) -> float:
    return float(np.abs(mixer.solve(counts @ values, solver) - truth).sum(axis=1).mean())


@dataclass(frozen=True)
class _Tried:
    """The errors of some bandwidths, (b, r), the ridge of the best, and what makes the best on all rows; it holds no others."""

    errors: Array
    ridge: int
    finish: Callable[[], Matcher]

    @property
    def least(self) -> float:
        return float(self.errors.min())


def _best(errors: Array) -> tuple[int, int]:
    s, r = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return int(s), int(r)


def _try_seen(
    fitted: Labelled, held: Labelled, kernels: Sequence[Kernel], atoms: Array, ridges: Ridges, drawn: tuple[Array, Array],
    solver: str, report: Report,
) -> _Tried:  # fmt: skip
    whitened = ridges != (None,)
    first = moments(fitted, kernels, atoms, whitened, report)
    gram = grams(kernels, atoms)
    mixers: list[list[Mixer]] = []
    directions: list[Array] = []
    for kernel, K, seen in zip(kernels, gram, first, strict=True):
        basis = Basis.of(K, seen.within, seen.rows)
        matchers = (Seen(kernel, atoms, basis, seen.kappa, ridge) for ridge in ridges)  # one at a time: each has a factor
        ready = [(matcher.mixer, matcher.directions) for matcher in matchers]
        mixers.append([mixer for mixer, _ in ready])
        directions.append(np.hstack([columns for _, columns in ready]))
    observer = Observer(held, len(kernels), len(atoms), whitened)
    values = [np.empty((len(held.codes), w.shape[1])) for w in directions]

    def use(s: int, a: int, b: int, K: Array) -> None:
        np.matmul(K, directions[s], out=values[s][a:b])
        observer.use(s, a, b, K)

    product_blocks(kernels, held.points, atoms, use)
    second = observer.result()
    k = held.classes
    errors = np.array([[_error(mixers[s][r], values[s][:, r * k : (r + 1) * k], *drawn, solver) for r in range(len(ridges))]
                       for s in range(len(kernels))])  # fmt: skip
    s, r = _best(errors)
    return _Tried(errors, r, partial(_finished, kernels[s], atoms, gram[s], first[s], second[s], ridges[r]))


def _finished(kernel: Kernel, atoms: Array, gram: Array, first: Moments, second: Moments, ridge: float | None) -> Matcher:
    both = first.with_(second)
    return Seen(kernel, atoms, Basis.of(gram, both.within, both.rows), both.kappa, ridge)


def _try_everything(
    fitted: Labelled, held: Labelled, kernels: Sequence[Kernel], data: Labelled, drawn: tuple[Array, Array], solver: str,
    report: Report,
) -> _Tried:  # fmt: skip
    weights = [fitted.columns(fitted.shares)] * len(kernels)
    seen = product_values(kernels, held.points, fitted.points, weights)
    own = product_values(kernels, fitted.points, fitted.points, weights)
    errors = []
    for values, inside in zip(seen, own, strict=True):
        products = weights[0].T @ inside
        errors.append([_error(Mixer((products + products.T) / 2), values, *drawn, solver)])
    best = kernels[_best(np.array(errors))[0]]
    return _Tried(np.array(errors), 0, lambda: Everything(best, data, report))


def _together(first: _Tried, second: _Tried) -> _Tried:
    """Both, the second's bandwidths after the first's."""
    best = second if second.least < first.least else first
    return replace(best, errors=np.concatenate([first.errors, second.errors]))


def search(
    data: Labelled, kernel: Kernel, atoms: Array | None, ridges: Ridges, bandwidths: bool, solver: str,
    rng: np.random.Generator, report: Report = ignore,
) -> tuple[Matcher, float | None, Search] | None:  # fmt: skip
    """The best of the bandwidths (around the kernel's own, or that alone) and ridges; None where no rows can be held out.

    ``atoms`` None means all rows.
    """
    parts = split(data, rng)
    if parts is None:
        return None
    drawn = mixtures(parts[1], rng)

    def attempt(kernels: Sequence[Kernel]) -> _Tried:
        if atoms is None:
            return _try_everything(*parts, kernels, data, drawn, solver, report)
        group = max(1, ENTRIES // len(atoms) ** 2)
        some = (kernels[a : a + group] for a in range(0, len(kernels), group))
        return reduce(_together, (_try_seen(*parts, part, atoms, ridges, drawn, solver, report) for part in some))

    if not bandwidths or not isinstance(kernel, RadialKernel):
        tried = attempt([kernel])
        width = kernel.width if isinstance(kernel, RadialKernel) else float("nan")
        return tried.finish(), ridges[tried.ridge], Search((width,), ridges, tried.errors)
    factors = np.array(LADDER)
    tried = attempt([replace(kernel, bandwidth=float(kernel.width * factor)) for factor in factors])
    for _ in range(MOST_LONGER):
        s = int(np.argmin(tried.errors.min(axis=1)))
        if 0 < s < len(factors) - 1:
            break
        step = 2.0 ** (np.arange(1, LONGER + 1) / 2)
        more = factors[-1] * step if s else factors[0] / step[::-1]
        others = attempt([replace(kernel, bandwidth=float(kernel.width * factor)) for factor in more])
        factors = np.concatenate([factors, more] if s else [more, factors])
        tried = _together(tried, others) if s else _together(others, tried)
    return tried.finish(), ridges[tried.ridge], Search(tuple(float(kernel.width * f) for f in factors), ridges, tried.errors)
