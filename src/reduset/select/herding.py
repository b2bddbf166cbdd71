"""Kernel herding (Chen, Welling & Smola 2010) and its line-search form, the HERD of Cruz Cortés & Scott 2017 (Bach et al. 2012).

This is the Frank–Wolfe algorithm for f in the convex hull of the kernel functions. Each step moves from f_t by a fraction ρ towards
the kernel function at the largest f − f_t. Plain herding uses ρ = 1/(t + 1), which keeps all weights equal. The line search uses
the best ρ. A point that is met again gains weight. After `REPEATS` steps without a new point, the next step uses the best point not
yet chosen. Any number of atoms is therefore reached.

O(n·q + q·steps) with q candidates (`candidates`), memory O(n). For signed means each kernel function in the hull has the sign of
its weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._types import Array, Indices, Report
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal
from reduset.select.greedy import Candidates, candidates

REPEATS = 16


@dataclass(frozen=True)
class Herding(Selector):
    """Atoms in the order in which herding meets them. Its own weights are the sums of the steps.

    Parameters
    ----------
    line_search : bool
        Use the best step size each time. False is plain herding with equal weights.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Herding
    >>> f = KernelMean.from_samples(np.arange(9.0).reshape(-1, 1), kernel=Gaussian(2.0))
    >>> Herding(line_search=False).select(f, 3).indices
    array([4, 0, 7])
    """

    line_search: bool = True
    weighs = True

    def __post_init__(self) -> None:
        if not isinstance(self.line_search, bool | np.bool_):
            raise TypeError(f"line_search must be True or False, got {self.line_search!r}")

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Walk(mean, bool(self.line_search), rng)


class _Walk(Traversal):
    def __init__(self, mean: KernelMean, line_search: bool, rng: np.random.Generator) -> None:
        self._mean, self._line_search, self._rng = mean, line_search, rng
        self._total = mean.total
        self._square = self._inner = 0.0  # ‖f_t‖² and ⟨f, f_t⟩
        self._steps = self._repeats = 0
        self._rows: Indices = np.empty(0, np.int64)
        self._coefficients: Array = np.empty(0)  # one per row, with sum 1
        self._candidates: Candidates | None = None

    def extend(self, size: int, report: Report | None = None) -> None:
        size = min(size, int(np.count_nonzero(self._mean.weights)))
        while len(self._rows) < size:
            if self._candidates is None or not self._candidates.suffice_for(size):
                self._candidates = self._renewed(size)
            self._step(self._candidates)
            if report is not None:
                report(len(self._rows), size)

    def _renewed(self, size: int) -> Candidates:
        """New candidates, with f_t evaluated at them."""
        mean = self._mean
        new = candidates(mean, size, self._rows, self._rng)
        self._row = mean.kernel.product_rows(new.points)
        self._signs = np.sign(mean.weights[new.rows])
        self._positions = np.searchsorted(new.rows, self._rows)
        self._met = np.zeros(len(new.rows), np.bool_)
        self._met[self._positions] = True
        self._current = np.zeros(len(new.rows))  # f_t at the candidates
        if len(self._rows):
            self._current = mean.kernel.product_sums(mean.atoms[self._rows], self.weights(), new.points)
        return new

    def _step(self, pool: Candidates) -> None:
        values, signs, total = pool.values, self._signs, self._total
        pull = signs * (values - self._current)
        best = int(np.argmax(pull))
        if self._met[best] and self._repeats == REPEATS:
            best = int(np.argmax(np.where(self._met, -np.inf, pull)))
        # The step goes towards v = total·sign·φ(·, x). These are the products of v with f and f_t.
        with_f, with_current = (total * float(signs[best] * at[best]) for at in (values, self._current))
        if not self._line_search:
            rate = 1.0 / (self._steps + 1)
        else:
            ahead, length = with_f - self._inner - with_current + self._square, total**2 - 2 * with_current + self._square
            rate = 1.0 if not len(self._rows) else min(max(ahead / length, 0.0), 1.0) if length > 0 else 0.0
        self._square = (1 - rate) ** 2 * self._square + 2 * rate * (1 - rate) * with_current + (rate * total) ** 2
        self._inner += rate * (with_f - self._inner)
        self._current += rate * (total * signs[best] * self._row(best) - self._current)
        self._coefficients = self._coefficients * (1 - rate)
        self._steps += 1
        if self._met[best]:
            self._coefficients[np.flatnonzero(self._positions == best)] += rate
            self._repeats += 1
        else:
            self._rows, self._positions = np.append(self._rows, pool.rows[best]), np.append(self._positions, best)
            self._coefficients = np.append(self._coefficients, rate)
            self._met[best] = True
            self._repeats = 0

    @property
    def indices(self) -> Indices:
        return self._rows

    def weights(self) -> Array:
        return np.asarray(self._total * np.sign(self._mean.weights[self._rows]) * self._coefficients)
