"""Kernel herding (Chen, Welling & Smola 2010) and its line-search form, the HERD of Cruz Cortés & Scott 2017 (Bach et al. 2012).

Frank–Wolfe towards f in the convex hull of the points' bumps: each step goes from f_t a share ρ of the way towards the bump at
which f − f_t is largest. ρ = 1/(t + 1) keeps all weights equal (plain herding), the line search takes the best ρ. A point may be
met again, and then its weight grows; after `REPEATS` steps without a new one the next is the best of those not yet chosen, so that
any number of atoms is reached.

O(n·q + q·steps) with q candidates (`candidates`), memory O(n). For signed means the hull is that of the bumps with their weights'
signs.
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
    """Atoms in the order in which herding meets them; its own weights are those of the walk.

    Parameters
    ----------
    line_search : bool
        The best step each time; False is plain herding, with equal weights.

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
        self._shares: Array = np.empty(0)  # of the hull, one a row
        self._found: Candidates | None = None

    def extend(self, size: int, report: Report | None = None) -> None:
        size = min(size, int(np.count_nonzero(self._mean.weights)))
        while len(self._rows) < size:
            if self._found is None or not self._found.suffice_for(size):
                self._found = self._renewed(size)
            self._step(self._found)
            if report is not None:
                report(len(self._rows), size)

    def _renewed(self, size: int) -> Candidates:
        """Fresh candidates, and where the walk stands seen from them."""
        mean = self._mean
        found = candidates(mean, size, self._rows, self._rng)
        self._row = mean.kernel.product_rows(found.points)
        self._signs = np.sign(mean.weights[found.rows])
        self._places = np.searchsorted(found.rows, self._rows)
        self._met = np.zeros(len(found.rows), np.bool_)
        self._met[self._places] = True
        self._here = np.zeros(len(found.rows))  # f_t at the candidates
        if len(self._rows):
            self._here = mean.kernel.product_sums(mean.atoms[self._rows], self.weights(), found.points)
        return found

    def _step(self, found: Candidates) -> None:
        values, signs, total = found.values, self._signs, self._total
        pull = signs * (values - self._here)
        best = int(np.argmax(pull))
        if self._met[best] and self._repeats == REPEATS:
            best = int(np.argmax(np.where(self._met, -np.inf, pull)))
        # towards v = total·sign·φ(·, x): its products with f and f_t
        with_f, with_here = (total * float(signs[best] * at[best]) for at in (values, self._here))
        if not self._line_search:
            rate = 1.0 / (self._steps + 1)
        else:
            ahead, length = with_f - self._inner - with_here + self._square, total**2 - 2 * with_here + self._square
            rate = 1.0 if not len(self._rows) else min(max(ahead / length, 0.0), 1.0) if length > 0 else 0.0
        self._square = (1 - rate) ** 2 * self._square + 2 * rate * (1 - rate) * with_here + (rate * total) ** 2
        self._inner += rate * (with_f - self._inner)
        self._here += rate * (total * signs[best] * self._row(best) - self._here)
        self._shares = self._shares * (1 - rate)
        self._steps += 1
        if self._met[best]:
            self._shares[np.flatnonzero(self._places == best)] += rate
            self._repeats += 1
        else:
            self._rows, self._places = np.append(self._rows, found.rows[best]), np.append(self._places, best)
            self._shares = np.append(self._shares, rate)
            self._met[best] = True
            self._repeats = 0

    @property
    def indices(self) -> Indices:
        return self._rows

    def weights(self) -> Array:
        return np.asarray(self._total * np.sign(self._mean.weights[self._rows]) * self._shares)
