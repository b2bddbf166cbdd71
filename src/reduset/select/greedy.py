"""Greedy selection by energy: sequential Bayesian quadrature, equivalent to orthogonal matching pursuit on the mean.

Each step makes the kernel functions of all candidates orthogonal to the span so far. The next atom is the candidate that explains
most of the remainder r = f − Pf. It adds r(x)²/σ²(x) to ‖Pf‖², where σ² is the squared distance of the kernel function to the span
(Huszár & Duvenaud 2012). The published form evaluates f at all points, with n² kernel evaluations. Here the number q of candidates
is bounded. The cost is O(n·q + q·m²), and the memory O(q·m).

**Candidates.** A greedy step evaluates every candidate. Up to `ALL_ROWS_UP_TO` rows, all are candidates. Beyond, `MIN_CANDIDATES`
rows are drawn by weight, or twice the number of atoms if that is more. They are drawn again when they run out. The values of f at
the candidates are sums over the data up to `PAIRS` kernel evaluations. Beyond, they come from a larger compression (a surrogate)
with a measured error of at most `SURROGATE_TOL`. If the bandwidth is too small for such a surrogate, the data are summed after all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import Pursuit, single_threaded_blas
from reduset._types import Indices, Report
from reduset.certificate import distance_from, surrogate
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal
from reduset.select.random import draw

ALL_ROWS_UP_TO = 8192
MIN_CANDIDATES = 4096
PAIRS = 1 << 31  # kernel evaluations that take an acceptable time
SURROGATE_ATOMS = 2048
SURROGATE_TOL = 0.01  # largest relative error of a surrogate


@dataclass(frozen=True)
class Candidates:
    """Rows to choose from.

    Attributes
    ----------
    rows : (q,) array
        Distinct rows of the mean.
    points : (q, d) array
    values : (q,) array
        ⟨f, φ(·, x)⟩ at each row. The norm of every kernel function is 1.
    every : whether these are all rows of non-zero weight
    """

    rows: Indices
    points: NDArray[np.float64]
    values: NDArray[np.float64]
    every: bool

    def suffice_for(self, size: int) -> bool:
        """Whether there are enough candidates for the last of ``size`` atoms."""
        return self.every or 2 * size <= len(self.rows)


def candidates(mean: KernelMean, size: int, chosen: Indices, rng: np.random.Generator) -> Candidates:
    """All rows of non-zero weight or a sample of them for ``size`` atoms, with f at each. The sample includes the chosen rows."""
    weighted = int(np.count_nonzero(mean.weights))
    every = weighted <= max(ALL_ROWS_UP_TO, 2 * size)
    rows = np.flatnonzero(mean.weights) if every else np.union1d(draw(mean, max(MIN_CANDIDATES, 2 * size), rng), chosen)
    points = np.asarray(mean.atoms[rows], np.float64)
    source = mean
    if mean.size * len(rows) > PAIRS:
        smaller = surrogate(mean, SURROGATE_ATOMS, rng)
        source = smaller if distance_from(mean, smaller, rng) <= SURROGATE_TOL else mean
    values = source.kernel.product_sums(source.atoms, source.weights, points, "double" if every else "auto")
    return Candidates(rows, points, values, every)


RENEWALS = 3  # draws of candidates that add nothing, after which the data count as exhausted


@dataclass(frozen=True)
class Greedy(Selector):
    """Each atom is the row that lowers the error most when all weights are refitted.

    Parameters
    ----------
    after : existing atoms as rows, in this order. The other atoms are chosen given these.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Greedy
    >>> f = KernelMean.from_samples(np.array([[0.0], [0.1], [0.2], [5.0]]), kernel=Gaussian(1.0))
    >>> Greedy().select(f, 2).indices
    array([1, 3])
    """

    after: tuple[int, ...] = field(default=(), repr=False)

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        rows = np.array(
            [_validate.whole(row, "after", 0, mean.size - 1, "they are rows of the data") for row in self.after], np.int64
        )
        return _Pursuit(mean, rng, rows)


class _Pursuit(Traversal):
    def __init__(self, mean: KernelMean, rng: np.random.Generator, rows: Indices) -> None:
        self._mean, self._rng, self._rows = mean, rng, rows
        self._candidates: Candidates | None = None
        self._pursuit: Pursuit | None = None

    def extend(self, size: int, report: Report | None = None) -> None:
        renewals = 0
        with single_threaded_blas():
            while len(self._rows) < size:
                if self._pursuit is None or self._candidates is None or not self._candidates.suffice_for(size):
                    self._pursuit, self._candidates = self._renewed(size)
                if self._pursuit.choose():
                    self._rows = self._candidates.rows[np.array(self._pursuit.chosen, dtype=np.int64)]
                    if report is not None:
                        report(len(self._rows), size)
                elif self._candidates.every or renewals == RENEWALS:
                    return
                else:
                    renewals += 1
                    self._pursuit = None

    def _renewed(self, size: int) -> tuple[Pursuit, Candidates]:
        """A pursuit over new candidates that begins with the atoms so far."""
        new = candidates(self._mean, size, self._rows, self._rng)
        pursuit = Pursuit(new.values, self._mean.kernel.product_rows(new.points))
        for position in np.searchsorted(new.rows, self._rows):
            pursuit.take(int(position))
        return pursuit, new

    @property
    def indices(self) -> Indices:
        return self._rows
