"""Bandwidth and ridge by artificial mixtures: the pair whose proportions are nearest to the truth, ℓ1, on rows held out.

Some rows are held out (stratified); the class means are of the rest. Mixtures of Dirichlet proportions, of several concentrations,
are drawn from the rows held out, and every pair is judged by the same ones (Cruz Cortés & Scott 2017, Section VI-B).

The atoms do not depend on the bandwidth, so they are selected once, and the distances to them serve all bandwidths (`sweeps`). A
point enters a mixture by its k values, so a mixture costs an average of them and no kernel evaluation. The rows held out are added
to the means in the same pass, so the means of all rows cost no pass of their own: O(n·m·d) in all, and O(n·m) a bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reduset.matching import Basis, Everything, Labelled, Matcher, Moments, Observer, Report, Seen, grams, ignore, moments
from reduset.mixing import Mixer
from reduset.radial import Array, Kernel, RadialKernel
from reduset.sweeps import product_blocks, product_values

LADDER = tuple(2.0 ** (j / 2) for j in range(-6, 3))  # times the kernel's own bandwidth
LONGER, MOST_LONGER = 4, 2  # rungs added where the best is at the end, and how often
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
HELD_OUT = 8192
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
    """The errors of some bandwidths, (b, r), and what it takes to make the best of them on all rows."""

    errors: Array
    finish: Callable[[int, int], Matcher]


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
        matchers = [Seen(kernel, atoms, basis, seen.kappa, ridge) for ridge in ridges]
        mixers.append([matcher.mixer for matcher in matchers])
        directions.append(np.hstack([matcher.directions for matcher in matchers]))
    observer = Observer(held, len(kernels), len(atoms), whitened)
    values = [np.empty((len(held.codes), w.shape[1])) for w in directions]

    def use(s: int, a: int, b: int, K: Array) -> None:
        np.matmul(K, directions[s], out=values[s][a:b])
        observer.use(s, a, b, K)

    product_blocks(kernels, held.points, atoms, use)
    second = observer.result()
    k = held.classes
    errors = [[_error(mixers[s][r], values[s][:, r * k : (r + 1) * k], *drawn, solver) for r in range(len(ridges))]
              for s in range(len(kernels))]  # fmt: skip

    def finish(s: int, r: int) -> Matcher:
        both: Moments = first[s].with_(second[s])
        return Seen(kernels[s], atoms, Basis.of(gram[s], both.within, both.rows), both.kappa, ridges[r])

    return _Tried(np.array(errors), finish)


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
    return _Tried(np.array(errors), lambda s, r: Everything(kernels[s], data, report))


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
        return _try_seen(*parts, kernels, atoms, ridges, drawn, solver, report)

    if not bandwidths or not isinstance(kernel, RadialKernel):
        tried = attempt([kernel])
        r = int(np.argmin(tried.errors[0]))
        width = kernel.width if isinstance(kernel, RadialKernel) else float("nan")
        return tried.finish(0, r), ridges[r], Search((width,), ridges, tried.errors)
    factors = np.array(LADDER)
    kernels = [replace(kernel, bandwidth=float(kernel.width * factor)) for factor in factors]
    tried = attempt(kernels)
    errors, best = tried.errors, np.unravel_index(int(np.argmin(tried.errors)), tried.errors.shape)
    winner, ridge = (tried, int(best[0])), int(best[1])
    for _ in range(MOST_LONGER):
        s = int(np.argmin(errors.min(axis=1)))
        if 0 < s < len(factors) - 1:
            break
        step = 2.0 ** (np.arange(1, LONGER + 1) / 2)
        more = factors[-1] * step if s else factors[0] / step[::-1]
        tried = attempt([replace(kernel, bandwidth=float(kernel.width * factor)) for factor in more])
        if tried.errors.min() < errors.min():
            best = np.unravel_index(int(np.argmin(tried.errors)), tried.errors.shape)
            winner, ridge = (tried, int(best[0])), int(best[1])
        factors = np.concatenate([factors, more] if s else [more, factors])
        errors = np.concatenate([errors, tried.errors] if s else [tried.errors, errors])
    matcher = winner[0].finish(winner[1], ridge)
    return matcher, ridges[ridge], Search(tuple(float(kernel.width * f) for f in factors), ridges, errors)
