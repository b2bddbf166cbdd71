"""Greedy selection by energy: sequential Bayesian quadrature, that is orthogonal matching pursuit on the mean.

The next atom is the candidate whose bump, made orthogonal to the span so far, explains most of what is left of f: with r = f − Pf
and σ² the squared distance of the bump to the span it adds r(x)²/σ²(x) to ‖Pf‖² (Huszár & Duvenaud 2012). The published form
evaluates f at all points, n² kernel evaluations; here the candidates are bounded (`candidates`), O(n·q + q·m²) with q of them, and
memory O(q·m).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reduset import _validate
from reduset._engine import Pursuit, single_threaded_blas
from reduset._types import Indices, Report
from reduset.mean import KernelMean
from reduset.select.candidates import Candidates, candidates
from reduset.select.contract import Selector, Traversal

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
