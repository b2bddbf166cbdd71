"""The best of several selectors at the requested size, within a time budget.

For fixed atoms with the best weights the squared error is ‖f‖² − ‖Pf‖². The largest energy ‖Pf‖² = κᵀK⁻¹κ thus has the least error.
Comparing selectors takes one pass for κ and one factorisation each, and no measurement of the error. Selectors are tried in this
order while the budget lasts, by the estimates of `costs`:

1. k-means, always,
2. greedy, the best at small bandwidths,
3. k-centre, the best in few dimensions at large sizes,
4. randomly pivoted Cholesky.

The remark lists the selectors that were tried, the energy of each, and the selectors that were skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reduset import _engine, _validate
from reduset._types import Array, Indices, Report
from reduset.mean import KernelMean
from reduset.select.cholesky import Cholesky
from reduset.select.contract import Selector, Traversal
from reduset.select.greedy import ALL_ROWS_UP_TO, MIN_CANDIDATES, Greedy
from reduset.select.kcenter import KCenter
from reduset.select.kmeans import KMeans, largest_batch
from reduset.weights import span_of

Cost = Callable[[int, int, int], float]  # seconds, from n, m and d
Tried = Sequence[tuple[Selector, Cost]]

BUDGET = 1.5
KMEANS_ROWS = 1 << 17
TIE = 1e-12  # relative difference of equal energies, at which rows of the data are preferred to new points
ROUNDING = 4 * float(np.finfo(np.float64).eps)  # relative to (Σ|α|)²: the rounding error of energies with large signed weights


def _kcenter(n: int, m: int, d: int) -> float:
    return n * d * 2e-8 + 0.1 * _engine.costs.of_sums(n, m, d) if d < _engine.costs.MANY else n * d * (5e-9 + 1.3e-10 * m)


def of_kmeans(n: int, m: int, d: int) -> float:
    """Seconds that k-means takes."""
    rows = largest_batch(n, m, d, KMEANS_ROWS)
    return rows * (1.6e-6 + 8e-8 * d) + (1.3 if d < _engine.costs.MANY else 12) * _engine.costs.of_sums(rows, m, d)


def of_greedy(n: int, m: int, d: int) -> float:
    """Seconds that greedy selection takes."""
    q = n if n <= ALL_ROWS_UP_TO else MIN_CANDIDATES
    return _engine.costs.of_sums(n, q, d) + 2.5e-10 * q * m * m / 2 + m * _engine.costs.of_sums(1, q, d)


def _cholesky(n: int, m: int, d: int) -> float:
    return _engine.costs.of_sums(n, m, d) + _engine.costs.FLOP * n * m * m


TRIED: Tried = (
    (KMeans(rows=KMEANS_ROWS), of_kmeans),
    (Greedy(), of_greedy),
    (KCenter(), _kcenter),
    (Cholesky(), _cholesky),
)


@dataclass(frozen=True)
class Auto(Selector):
    """Several selectors within a time budget. The one with the least error is kept.

    Parameters
    ----------
    budget : float
        Estimated seconds on two cores. K-means is tried at any budget.

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
    automatic = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", _validate.positive(self.budget, "budget", "it is a number of seconds"))

    def for_part_of(self, parts: int) -> Auto:
        return replace(self, budget=self.budget / parts)

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return Contest(mean, TRIED, self.budget, rng.spawn(len(TRIED)))


class _Contestant:
    """One selector, its traversal, which is continued if possible, and κ of its atoms."""

    def __init__(self, mean: KernelMean, selector: Selector, cost: Cost, rng: np.random.Generator) -> None:
        self._mean, self._selector, self._cost, self._rng = mean, selector, cost, rng
        self._traversal: Traversal | None = None
        self.name = str(selector)
        self.points: Array = np.empty((0, mean.dimension))
        self.kappa: Array = np.empty(0)
        self.rows: Indices | None = None

    def seconds(self, size: int) -> float:
        """Estimated seconds for the selection, κ and the factorisation."""
        n, d = self._mean.size, self._mean.dimension
        return self._cost(n, size, d) + _engine.costs.of_sums(n, size, d) + _engine.costs.of_factor(size)

    def extend(self, size: int, report: Report | None) -> None:
        mean = self._mean
        if self._traversal is None:
            self._traversal = self._selector.begin(mean, self._rng)
        traversal = self._traversal
        traversal.extend(size, report)
        self.rows = traversal.indices
        self.points = traversal.points if self.rows is None else np.asarray(mean.atoms[self.rows], np.float64)
        known = self.kappa if traversal.nested else np.empty(0)
        if len(self.points) > len(known):
            fresh = mean.kernel.product_sums(mean.atoms, mean.weights, self.points[len(known) :])
            self.kappa = np.concatenate([known, fresh])

    def energy(self) -> float:
        """The energy ‖Pf‖² that the atoms explain, less its rounding error."""
        span = span_of(self._mean.kernel, self.points, self.kappa)
        alpha = span.weights("free", self._mean.mass, span.size)
        return span.energy(span.size) - ROUNDING * float(np.abs(alpha).sum()) ** 2

    def weights(self) -> Array | None:
        return None if self._traversal is None else self._traversal.weights()


class Contest(Traversal):
    """The atoms of the selector that explains the most energy, among several selectors with known costs, within a budget."""

    nested = False

    def __init__(self, mean: KernelMean, tried: Tried, budget: float, streams: Sequence[np.random.Generator]) -> None:
        self._contestants = [
            _Contestant(mean, selector, cost, stream) for (selector, cost), stream in zip(tried, streams, strict=True)
        ]
        self._budget = budget
        self._chosen = self._contestants[0]
        self.points = self._chosen.points

    def extend(self, size: int, report: Report | None = None) -> None:
        remaining, best = self._budget, -np.inf
        tried: list[str] = []
        skipped: list[str] = []
        for contestant in self._contestants:
            seconds = contestant.seconds(size)
            if tried and seconds > remaining:
                skipped.append(f"{contestant.name} ({seconds:.1f} s)")
                continue
            remaining -= seconds
            contestant.extend(size, report)
            energy = contestant.energy()
            tried.append(f"{contestant.name} {energy:.6g}")
            keeps_rows = self._chosen.rows is None and contestant.rows is not None
            if energy > best or (keeps_rows and energy >= best * (1 - TIE)):
                best, self._chosen = energy, contestant
        self.kappa, self.points = self._chosen.kappa, self._chosen.points
        self.remark = f"{self._chosen.name}, which explains most of ‖f‖²: {', '.join(tried)}"
        if skipped:
            self.remark += f"; skipped, with {max(remaining, 0):.2g} s left of {self._budget:.3g} s: {', '.join(skipped)}"

    @property
    def indices(self) -> Indices | None:
        return self._chosen.rows

    def weights(self) -> Array | None:
        return self._chosen.weights()
