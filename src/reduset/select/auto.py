"""The best of several selectors at the size asked for, within a time budget.

For fixed atoms the best weights lose ‖f‖² − ‖Pf‖², so the largest energy ‖Pf‖² = κᵀK⁻¹κ is the least error, and comparing selectors
takes no measurement of the error itself: one pass for κ and one factorisation each. Tried in this order, as long as the budget
lasts (by the estimates of `effort`): k-means, always; greedy, the best at small bandwidths; k-centre, the best in few dimensions at
large sizes; randomly pivoted Cholesky. What was tried, what each explained and what was left out is in the remark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reduset import _validate, effort
from reduset.mean import KernelMean
from reduset.select.candidates import EVERY_UP_TO, SOME
from reduset.select.cholesky import Cholesky
from reduset.select.greedy import Greedy
from reduset.select.kcenter import KCenter
from reduset.select.kmeans import KMeans, rows_looked_at
from reduset.select.selection import Indices, Report, Selection, Selector, Traversal
from reduset.weigh import span

Array = NDArray[np.float64]

BUDGET = 2.0
ROUNDING = 4 * float(np.finfo(np.float64).eps)  # of (Σ|α|)²: energy that large weights of both signs only seem to explain


def _kcenter(n: int, m: int, d: int) -> float:
    return n * d * 2e-8 + 0.1 * effort.of_sums(n, m, d)


def _kmeans(n: int, m: int, d: int) -> float:
    rows = rows_looked_at(n, m, d)
    return 8 * (effort.of_sums(rows, m, d) / 3 + rows * d * 4e-9)


def _greedy(n: int, m: int, d: int) -> float:
    q = n if n <= EVERY_UP_TO else SOME
    return (1.0 if q == n else 0.4) * effort.of_sums(n, q, d) + 1e-9 * q * m * m / 2 + m * effort.of_sums(1, q, d)


def _cholesky(n: int, m: int, d: int) -> float:
    return 2 * effort.of_sums(n, m, d) + 2 * effort.FLOP * n * m * m


TRIED: tuple[tuple[Selector, Callable[[int, int, int], float]], ...] = (
    (KMeans(), _kmeans),
    (Greedy(), _greedy),
    (KCenter(), _kcenter),
    (Cholesky(), _cholesky),
)


@dataclass(frozen=True)
class Auto(Selector):
    """The selector that loses least at the given size, of those that the budget allows.

    Parameters
    ----------
    budget : float
        Seconds on two cores, by estimate; k-means is tried however small it is.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, compress
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> best = compress(X, Gaussian("scott"), size=20, select="auto", rng=0).certificate.relative_error
    >>> best <= compress(X, Gaussian("scott"), size=20, select="kcenter", rng=0).certificate.relative_error
    True
    """

    budget: float = BUDGET

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", _validate.positive(self.budget, "budget", "it is a number of seconds"))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Best(mean, self.budget, rng)


class _Best(Traversal):
    nested = False

    def __init__(self, mean: KernelMean, budget: float, rng: np.random.Generator) -> None:
        self._mean, self._budget = mean, budget
        self._streams = rng.spawn(len(TRIED))
        self._chosen: Selection | None = None
        self._kappa: Array = np.empty(0)
        self._remark = ""

    def extend(self, size: int, report: Report | None = None) -> None:
        mean, n, d = self._mean, self._mean.size, self._mean.dimension
        left, best = self._budget, -np.inf
        tried: list[str] = []
        skipped: list[str] = []
        for (selector, cost), stream in zip(TRIED, self._streams, strict=True):
            price = cost(n, size, d) + effort.of_sums(n, size, d) + effort.of_factor(size)
            if tried and price > left:
                skipped.append(f"{selector} would take {price:.1f} s")
                continue
            left -= price
            found = selector.select(mean, size, stream, report)
            kappa = mean.kernel.product_sums(mean.atoms, mean.weights, found.atoms)
            explained = span(mean.kernel, found.atoms, kappa)
            alpha = explained.weights("free", mean.mass, explained.size)
            energy = explained.energy(explained.size) - ROUNDING * float(np.abs(alpha).sum()) ** 2
            tried.append(f"{selector} {energy:.6g}")
            if energy > best:
                best, self._chosen, self._kappa, name = energy, found, kappa, str(selector)
        self._remark = f"{name}, which explains most of ‖f‖²: {', '.join(tried)}"
        if skipped:
            self._remark += f"; beyond the budget of {self._budget:g} s: {', '.join(skipped)}"

    @property
    def indices(self) -> Indices | None:
        return None if self._chosen is None else self._chosen.indices

    @property
    def points(self) -> Array:
        return np.empty((0, self._mean.dimension)) if self._chosen is None else self._chosen.atoms

    @property
    def kappa(self) -> Array:
        return self._kappa

    def weights(self) -> Array | None:
        return None if self._chosen is None else self._chosen.weights

    def remark(self) -> str:
        return self._remark
