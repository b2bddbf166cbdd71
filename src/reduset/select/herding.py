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
from numpy.typing import NDArray

from reduset.mean import KernelMean
from reduset.select.candidates import candidates
from reduset.select.selection import Indices, Report, Selector, Traversal

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

    def __post_init__(self) -> None:
        if not isinstance(self.line_search, bool | np.bool_):
            raise TypeError(f"line_search must be True or False, got {self.line_search!r}")

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Walk(mean, bool(self.line_search), rng)


class _Walk(Traversal):
    def __init__(self, mean: KernelMean, line_search: bool, rng: np.random.Generator) -> None:
        self._line_search = line_search
        self._found = candidates(mean, rng)
        self._row = mean.kernel.product_rows(self._found.points)
        self._signs = np.sign(mean.weights[self._found.rows])
        self._total = float(mean.magnitudes.sum())
        self._here = np.zeros(len(self._found.rows))  # f_t at the candidates
        self._square = self._inner = 0.0  # ‖f_t‖² and ⟨f, f_t⟩
        self._steps = self._repeats = 0
        self._order: list[int] = []
        self._met = np.zeros(len(self._found.rows), np.bool_)
        self._shares = np.zeros(len(self._found.rows))  # of the hull, a share a candidate

    def extend(self, size: int, report: Report | None = None) -> None:
        size = min(size, len(self._found.rows))
        while len(self._order) < size:
            self._step()
            if report is not None:
                report(len(self._order), size)

    def _step(self) -> None:
        values, signs, total = self._found.values, self._signs, self._total
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
            rate = 1.0 if not self._order else min(max(ahead / length, 0.0), 1.0) if length > 0 else 0.0
        column = self._row(best)
        self._square = (1 - rate) ** 2 * self._square + 2 * rate * (1 - rate) * with_here + (rate * total) ** 2
        self._inner += rate * (with_f - self._inner)
        self._here += rate * (total * signs[best] * column - self._here)
        self._shares *= 1 - rate
        self._shares[best] += rate
        self._steps += 1
        if self._met[best]:
            self._repeats += 1
        else:
            self._order.append(best)
            self._met[best] = True
            self._repeats = 0

    @property
    def indices(self) -> Indices:
        return self._found.rows[np.array(self._order, dtype=np.int64)]

    def weights(self) -> NDArray[np.float64]:
        chosen = np.array(self._order, dtype=np.int64)
        return np.asarray(self._total * self._signs[chosen] * self._shares[chosen])
