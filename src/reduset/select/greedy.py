"""Greedy selection by energy: sequential Bayesian quadrature, that is orthogonal matching pursuit on the mean.

The next atom is the candidate whose kernel function, made orthogonal to the span so far, explains most of the remainder of f. With
r = f − Pf and σ² the squared distance of the kernel function to the span, it adds r(x)²/σ²(x) to ‖Pf‖² (Huszár & Duvenaud 2012).
The published form evaluates f at all points, n² kernel evaluations. Here the candidates are bounded, O(n·q + q·m²) with q of them,
and memory O(q·m).

**Candidates.** A greedy step evaluates every candidate. Up to `EVERY_UP_TO` rows all are candidates. Beyond, `MIN_CANDIDATES` rows
are drawn by weight (or twice the number of atoms, if that is more), and drawn anew when they run out. f at the candidates is summed
over the data up to `PAIRS` kernel evaluations. Beyond, it is taken from a larger compression (a surrogate) whose measured error is
within `SURROGATE_TOL`. If the bandwidth is too small for such a surrogate, it is summed over the data after all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine import Pursuit, single_threaded_blas
from reduset._types import Indices, Report
from reduset.certificate.comparison import close_surrogate
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal
from reduset.select.random import draw

EVERY_UP_TO = 8192
MIN_CANDIDATES = 4096
PAIRS = 1 << 31  # kernel evaluations that a person would wait for
SURROGATE_ATOMS = 2048
SURROGATE_TOL = 0.01  # relative error of a surrogate that may be believed


@dataclass(frozen=True)
class Candidates:
    """Rows to choose from.

    Attributes
    ----------
    rows : (q,) distinct rows of the mean
    points : (q, d)
    values : (q,) ⟨f, φ(·, x)⟩ at each, in units where every bump has norm 1
    every : whether these are all rows of non-zero weight
    """

    rows: Indices
    points: NDArray[np.float64]
    values: NDArray[np.float64]
    every: bool

    def suffice_for(self, size: int) -> bool:
        """Whether there is something to choose from for the last of ``size`` atoms."""
        return self.every or 2 * size <= len(self.rows)


def candidates(mean: KernelMean, size: int, chosen: Indices, rng: np.random.Generator) -> Candidates:
    """All rows of non-zero weight, or a draw of them for ``size`` atoms, with f at each; those already chosen are among them."""
    able = int(np.count_nonzero(mean.weights))
    every = able <= max(EVERY_UP_TO, 2 * size)
    rows = np.flatnonzero(mean.weights) if every else np.union1d(draw(mean, max(MIN_CANDIDATES, 2 * size), rng), chosen)
    points = np.asarray(mean.atoms[rows], np.float64)
    source = mean
    if mean.size * len(rows) > PAIRS:
        source = close_surrogate(mean, SURROGATE_ATOMS, SURROGATE_TOL, rng)
    values = source.kernel.product_sums(source.atoms, source.weights, points, "double" if every else "auto")
    return Candidates(rows, points, values, every)


RENEWALS = 3  # of candidates that add nothing, before the data count as exhausted


@dataclass(frozen=True)
class Greedy(Selector):
    """Each atom the one that lowers the error most, all weights refitted.

    Parameters
    ----------
    after : rows that are atoms already, in this order; the others are chosen given these

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
        self._found: Candidates | None = None
        self._pursuit: Pursuit | None = None

    def extend(self, size: int, report: Report | None = None) -> None:
        renewals = 0
        with single_threaded_blas():
            while len(self._rows) < size:
                if self._pursuit is None or self._found is None or not self._found.suffice_for(size):
                    self._pursuit, self._found = self._renewed(size)
                if self._pursuit.choose():
                    self._rows = self._found.rows[np.array(self._pursuit.chosen, dtype=np.int64)]
                    if report is not None:
                        report(len(self._rows), size)
                elif self._found.every or renewals == RENEWALS:
                    return
                else:
                    renewals += 1
                    self._pursuit = None

    def _renewed(self, size: int) -> tuple[Pursuit, Candidates]:
        """A pursuit over fresh candidates that has made the choices so far."""
        found = candidates(self._mean, size, self._rows, self._rng)
        pursuit = Pursuit(found.values, self._mean.kernel.product_rows(found.points))
        for place in np.searchsorted(found.rows, self._rows):
            pursuit.take(int(place))
        return pursuit, found

    @property
    def indices(self) -> Indices:
        return self._rows
