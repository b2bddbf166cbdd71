"""Sites: places at which the inner products of a growing mean are kept, some more of them than atoms will be asked for.

κ(s) = Σ w g(x, s) is a sum over rows, so at a site that was there from the beginning it is exact whatever came since. What a new
site has missed is read off the projection onto those before it, P f(s), which errs by at most ‖f − Pf‖ times the distance of the
site's bump from their span; how much of the stream each site knows only in that way is on record, and what it did to the result is
in the certificate, which is measured on other sums.

A site is added where rows of a chunk lie farther from the span than rows of all the stream so far do: drawn with chances
proportional to their squared distances to it, as in randomly pivoted Cholesky. Where there are too many, those are kept that explain
most of f (`order_by_energy`), with their κ as they are.

A chunk of n rows costs O(n·M), a change of the sites O(M³).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from reduset._engine.pursuit import Pursuit
from reduset.mean import KernelMean
from reduset.radial import Array, RadialKernel
from reduset.select import Selector
from reduset.weigh import FactoredSpan

LOOKED_AT, CANDIDATES = 256, 512  # rows of a chunk: to see whether it is news, and to become sites
WORTH, ERRORS = 0.25, 2.0  # of the loss: what the span may miss of a chunk; and how sure it must be that it misses more
SPARE, MOST_SPARE = 1.5, 3.0  # sites for each atom, at first and where a stream changes
KEPT = 0.8  # of the most there may be, where there were more
NOTHING = 1e-11  # squared distances below this are rounding


@dataclass(frozen=True)
class Sites:
    """Places and what is known there.

    Attributes
    ----------
    size : atoms that will be asked for
    most : how many sites there may be
    places : (M, d)
    kappa : (M,) Σ w g(x, s), in units where every bump has norm 1
    missed : (M,) the part of Σ w that was read off the other sites
    loss : what the best ``size`` of them leave to the others of ‖f‖², when the sites last changed: about what a result loses
    """

    kernel: RadialKernel
    size: int
    most: int
    places: Array
    kappa: Array
    missed: Array
    loss: float = 0.0

    @cached_property
    def span(self) -> FactoredSpan:
        """The span of their bumps."""
        return FactoredSpan(self.kernel, self.places, self.kappa)

    @classmethod
    def begun(cls, mean: KernelMean, mass: float, size: int, selector: Selector, rng: np.random.Generator) -> Sites:
        """From a first chunk, given as a mean of weights that sum to 1 and what they sum to, for ``size`` atoms."""
        first, most = (max(size + 1, int(np.ceil(spare * size))) for spare in (SPARE, MOST_SPARE))
        first = min(first, mean.size)
        traversal = selector.begin(mean, rng)
        traversal.extend(first)
        rows = traversal.indices
        places = np.array(traversal.points if rows is None else mean.atoms[rows], np.float64)[:first]
        kappa = mass * mean.kernel.product_sums(mean.atoms, mean.weights, places)
        sites = cls(_radial(mean), size, most, places, kappa, np.zeros(len(places)))
        return sites._some(sites.best(len(places)))._assessed(mass)

    def _some(self, which: Array) -> Sites:
        return replace(self, places=self.places[which], kappa=self.kappa[which], missed=self.missed[which])

    def values(self, points: Array) -> Array:
        """⟨Pf, φ(·, x)⟩ at other places."""
        weights = self.span.weights("free", 1.0, self.span.size)
        return self.kernel.product_sums(self.span.atoms, weights, points)

    def absorb(self, points: Array, weights: Array, mass: float, rng: np.random.Generator) -> Sites:
        """After a chunk of rows; ``mass`` is Σ w of those before."""
        kappa = self.kernel.product_sums(points, weights, self.places)
        now = replace(self, kappa=self.kappa + kappa)
        worth = WORTH * self.loss
        if not self._is_news(points, weights, worth, rng):
            return now
        added = self._widest(points, weights, kappa, worth / self.size, rng)
        if not len(added):
            return now
        places = np.asarray(points[added], np.float64)
        later = self.values(places) + self.kernel.product_sums(points, weights, places)
        grown = now._with(places, later, np.full(len(places), mass))._reduced()
        return grown._assessed(mass + float(weights.sum()))

    def _with(self, places: Array, kappa: Array, missed: Array) -> Sites:
        return replace(
            self,
            places=np.concatenate([self.places, places]),
            kappa=np.concatenate([self.kappa, kappa]),
            missed=np.concatenate([self.missed, missed]),
        )

    def _assessed(self, mass: float) -> Sites:
        """With what a result of now would lose on record."""
        chosen = self.best(self.size)
        explained = FactoredSpan(self.kernel, self.places[chosen], self.kappa[chosen])
        return replace(self, loss=max(self.span.energy(self.span.size) - explained.energy(explained.size), 0.0) / mass**2)

    def best(self, count: int) -> NDArray[np.int64]:
        """Those that explain most of f, in the order of what each adds; fewer where the others add nothing."""
        pursuit = Pursuit(self.kappa, self.kernel.product_rows(self.places))
        while len(pursuit.chosen) < count and pursuit.choose():
            pass
        return np.array(pursuit.chosen, np.int64)

    def _is_news(self, points: Array, weights: Array, worth: float, rng: np.random.Generator) -> bool:
        """Whether what the span misses of the mean of a chunk, ‖f − Pf‖², is more than it is worth, and surely so.

        From pairs of different rows, whose products beyond the span are 0 in the mean where nothing is missed.
        """
        some = np.asarray(points[_rows(weights, LOOKED_AT, rng)], np.float64)
        inside = self._inside(some)
        beyond = self.kernel.product_gram(some, some) - inside.T @ inside
        np.fill_diagonal(beyond, 0.0)
        pairs = len(some) * (len(some) - 1)
        missed, error = beyond.sum() / max(pairs, 1), np.sqrt(2 * np.square(beyond).sum()) / max(pairs, 1)
        return bool(missed > worth + ERRORS * error + NOTHING)

    def _inside(self, points: Array) -> Array:
        """The points' bumps in the orthonormal basis of the span, (M, k)."""
        return np.asarray(
            solve_triangular(self.span.L, self.kernel.product_gram(self.span.atoms, points), lower=True, check_finite=False)
        )

    def _widest(self, points: Array, weights: Array, kappa: Array, worth: float, rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows of a chunk that explain most of what the span misses of its mean, as long as each is worth it."""
        mass = float(weights.sum())
        rows = _rows(weights, CANDIDATES, rng)
        some = np.asarray(points[rows], np.float64)
        inside = self._inside(some)
        projected = solve_triangular(self.span.L, kappa[self.span.kept], lower=True, check_finite=False)
        left = (self.kernel.product_sums(points, weights, some) - projected @ inside) / mass
        rest = self.kernel.product_gram(some, some) - inside.T @ inside
        room = np.diagonal(rest).copy()
        added: list[int] = []
        while len(added) < len(rows):
            gains = np.where(room > NOTHING, np.square(left) / np.maximum(room, NOTHING), 0.0)
            k = int(np.argmax(gains))
            if gains[k] <= worth:
                break
            direction = rest[k] / np.sqrt(room[k])
            left -= (left[k] / np.sqrt(room[k])) * direction
            room -= direction**2
            rest -= np.outer(direction, direction)
            room[k] = 0.0
            added.append(k)
        return rows[added]

    def _reduced(self) -> Sites:
        """Where there are more than there may be, those that explain most; their number then has room to grow."""
        if len(self.places) <= self.most:
            return self
        return self._some(self.best(int(np.ceil(KEPT * self.most))))

    def merge(self, other: Sites, mass: float, mass_of_other: float) -> Sites:
        """The sites of both parts, each of which the other knows only by its own; those that explain most are kept."""
        if np.array_equal(self.places, other.places):
            return replace(self, kappa=self.kappa + other.kappa, missed=self.missed + other.missed)
        mine = replace(self, kappa=self.kappa + other.values(self.places), missed=self.missed + mass_of_other)
        return (
            mine._with(other.places, other.kappa + self.values(other.places), other.missed + mass)
            ._reduced()
            ._assessed(mass + mass_of_other)
        )

    def faded(self, factor: float) -> Sites:
        """After all weights shrank by a factor."""
        return replace(self, kappa=self.kappa * factor, missed=self.missed * factor)


def _rows(weights: Array, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Different rows, drawn by weight."""
    ends = np.cumsum(weights)
    return np.unique(np.minimum(np.searchsorted(ends, rng.random(count) * ends[-1], side="right"), len(ends) - 1))


def _radial(mean: KernelMean) -> RadialKernel:
    if not isinstance(mean.kernel, RadialKernel):
        raise TypeError(f"a stream needs Gaussian, Laplacian or Student, whose waves can be added up; got {mean.kernel!r}")
    return mean.kernel
