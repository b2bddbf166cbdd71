"""Greedy selection by energy: sequential Bayesian quadrature, that is orthogonal matching pursuit on the mean.

The next atom is the candidate whose bump, made orthogonal to the span so far, explains most of what is left of f: with r = f − Pf and
σ² the squared distance of the bump to the span it adds r(x)²/σ²(x) to ‖Pf‖² (Huszár & Duvenaud 2012). The published form evaluates f
at all points, n² kernel evaluations; here the candidates are bounded (`candidates`), O(n·q + q·m²) with q of them, and memory O(q·m).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._engine.factor import pivot_floor
from reduset.mean import KernelMean
from reduset.select.candidates import candidates
from reduset.select.selection import Indices, Report, Selector, Traversal


@dataclass(frozen=True)
class Greedy(Selector):
    """Each atom the one that lowers the error most, all weights refitted.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Greedy
    >>> f = KernelMean.from_samples(np.array([[0.0], [0.1], [0.2], [5.0]]), kernel=Gaussian(1.0))
    >>> Greedy().select(f, 2).indices
    array([1, 3])
    """

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Pursuit(mean, rng)


class _Pursuit(Traversal):
    def __init__(self, mean: KernelMean, rng: np.random.Generator) -> None:
        self._kernel = mean.kernel
        found = candidates(mean, rng)
        self._rows, self._points = found.rows, found.points
        self._left = found.values.copy()  # r at the candidates
        self._room = np.ones(len(found.rows))  # σ² at the candidates
        self._factor = np.empty((64, len(found.rows)))  # row j: the j-th orthonormal direction at every candidate
        self._chosen: list[int] = []

    def extend(self, size: int, report: Report | None = None) -> None:
        while len(self._chosen) < size:
            if not self._choose():
                return
            if report is not None:
                report(len(self._chosen), size)

    def _choose(self) -> bool:
        done = len(self._chosen)
        floor = pivot_floor(done + 1)
        able = self._room > floor
        if not able.any():
            return False
        gain = np.where(able, np.square(self._left) / np.maximum(self._room, floor), -1.0)
        best = int(np.argmax(gain))
        if done == len(self._factor):
            self._factor = np.concatenate([self._factor, np.empty_like(self._factor)])
        column = self._kernel.product_gram(self._points[best : best + 1], self._points)[0]
        column -= self._factor[:done, best] @ self._factor[:done]
        root = float(np.sqrt(self._room[best]))
        column /= root
        self._left -= (self._left[best] / root) * column
        self._room -= np.square(column)
        self._room[best] = 0.0  # it is in the span now, whatever rounding says
        self._factor[done] = column
        self._chosen.append(best)
        return True

    @property
    def indices(self) -> Indices:
        return self._rows[np.array(self._chosen, dtype=np.int64)]
