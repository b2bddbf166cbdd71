"""KDE paring (Freedman & Kisilev 2010): a density replaced by few independent draws from itself.

m rows are drawn by |w| *with* replacement, each with the same share of the weight: f_m is unbiased, with an expected squared error
of ((Σ|w|)² κ − ‖f‖²)/m. With a ``blur`` b, b times a draw of the kernel's own noise is added to each.

Without a blur, equal draws are one atom, with the share of draws that met it. The atoms of size m are the first m *distinct* rows
of an endless sequence of draws; those that were first met after the m-th draw fill the places that repetitions leave, without a
weight of their own. Their order is that of exponential clocks (`Clocks`, the order of `Random`); a draw then meets a row met before
by its weight, and otherwise the next in order, so that rows of hardly any weight need no long wait. O(n + m log m), and nested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset import _validate
from reduset._types import Array, Report
from reduset.mean import KernelMean
from reduset.select.contract import Selector, Traversal
from reduset.select.random import Clocks

AT_ONCE = 512  # blurred draws: always so many, so that a short selection begins a longer one


@dataclass(frozen=True)
class Paring(Selector):
    """Independent draws from the density; their own weights are equal shares, added up where a row was drawn twice.

    Parameters
    ----------
    blur : float
        The noise added to a row, in units of the kernel's own: 1 draws from the density that f is, as in the paper of paring, which
        narrows the bandwidth afterwards. Here the kernel stays what it was, as in reduced kernel PCA (Kingravi, Vela & Gray 2013,
        who pare to a subsample), and a blur would smooth twice; so it is 0. Blurred atoms are new points, without indices.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean
    >>> from reduset.select import Paring
    >>> f = KernelMean(np.arange(3.0).reshape(-1, 1), [0.8, 0.1, 0.1], kernel=Gaussian(1.0))
    >>> chosen = Paring().select(f, 3, rng=0)
    >>> sorted(chosen.indices.tolist()), round(float(chosen.weights.sum()), 12)
    ([0, 1, 2], 1.0)
    """

    blur: float = 0.0
    weighs = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "blur", _validate.at_least(self.blur, "blur", 0.0))

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _Blurred(mean, self.blur, rng) if self.blur > 0 else _Met(mean, rng)


class _Met(Clocks):
    """Rows in the order in which draws meet them."""

    def __init__(self, mean: KernelMean, rng: np.random.Generator) -> None:
        super().__init__(mean, mean.magnitudes, rng)
        self._rng = rng
        self._chances: Array = np.empty(0)  # one a draw

    def extend(self, size: int, report: Report | None = None) -> None:
        if size > len(self._chances):
            self._chances = np.concatenate([self._chances, self._rng.random(size - len(self._chances))])
        super().extend(size, report)

    def weights(self) -> Array:
        """The share of draws that met each row, of Σ|w|, with the sign of its weight."""
        mean, total = self._mean, self._mean.total
        ends = np.cumsum(mean.magnitudes[self._order])
        places = np.minimum(np.searchsorted(ends, self._chances * total, side="right"), len(ends) - 1)
        counts, met = np.zeros(len(ends)), 0
        for place in places.tolist():
            counts[min(place, met)] += 1  # beyond those met lies the next of them
            met += place >= met
        return np.asarray(np.sign(mean.weights[self._order]) * counts * (total / len(places)))


class _Blurred(Traversal):
    """Rows with noise: new points, all of the same weight."""

    indices = None

    def __init__(self, mean: KernelMean, blur: float, rng: np.random.Generator) -> None:
        self._mean, self._blur, self._rng = mean, blur, rng
        self._points: Array = np.empty((0, mean.dimension))
        self._signs: Array = np.empty(0)
        self._size = 0

    @property
    def points(self) -> Array:
        return self._points[: self._size]

    def extend(self, size: int, report: Report | None = None) -> None:
        points, signs = [self._points], [self._signs]
        for begun in range(len(self._points), size, AT_ONCE):
            rows = self._mean.draw_rows(AT_ONCE, self._rng)
            points.append(self._mean.atoms[rows] + self._blur * self._mean.kernel.noise(AT_ONCE, self._mean.dimension, self._rng))
            signs.append(np.sign(self._mean.weights[rows]))
            if report is not None:
                report(min(begun + AT_ONCE, size), size)
        self._points, self._signs = np.concatenate(points), np.concatenate(signs)
        self._size = max(size, self._size)

    def weights(self) -> Array:
        return self._signs[: self._size] * (self._mean.total / self._size)
