"""Sites: places at which the inner products of a growing mean are kept, some more of them than atoms will be asked for.

κ(s) = Σ w g(x, s) is a sum over rows, so at a site that was there from the beginning it is exact whatever came since. What a new
site has missed is read off the projection onto those before it, P f(s), which errs by at most ‖f − Pf‖ times the distance of the
site's bump from their span, and of that error a sample of the rows tells what it can. How much of the stream each site knows only
in that way is on record, and what it did to the result is in the certificate, which is measured on other sums.

Sites are added where the span misses more of the mean of a chunk than a quarter of what a result loses in any case: those rows
of the chunk that explain most of what is missed, by pursuit. Where there are too many, those are kept that explain most of f, with
their κ as they are.

A chunk of n rows costs O(n·M), a change of the sites O(M³).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from reduset._engine import Pursuit
from reduset._types import Array, Floats
from reduset.kernels.base import RadialKernel
from reduset.mean import KernelMean
from reduset.select import Selector
from reduset.stream.reservoir import Reservoir
from reduset.weights.span import FactoredSpan

LOOKED_AT, MOST_LOOKED_AT, LOOKED_COST = 128, 1024, 1 << 26  # rows of a chunk: to see whether it is news
CANDIDATES = 512  # rows of it that may become sites
PARTS = 8  # of a sample, to tell its noise
ASSESSED = 768  # rows of a fair sample, where sites changed
WORTH, NEWER = 0.25, 1.5  # of the loss, and of what it missed before: what the span may miss of a chunk
ERRORS = 3.0  # how sure it must be that it misses more
SPARE, MOST_SPARE = 0.4, 3.0  # sites for each atom: beyond it at first, and at most where a stream changes
KEPT = 0.8  # of the most there may be, where there were more
NOTHING = 3e-13  # squared distances below this are rounding


@dataclass(frozen=True)
class Basis:
    """The span of bumps at some places; what is worked out for it serves as long as the places stay."""

    kernel: RadialKernel
    places: Array

    def __getstate__(self) -> dict[str, Any]:
        """What is sent and copied: the factor, a matrix, is worked out again."""
        return {"kernel": self.kernel, "places": self.places}

    @cached_property
    def factor(self) -> tuple[NDArray[np.int64], Array]:
        """Places that are independent to rounding, and L of K = L Lᵀ of these.

        With pivoting, the largest first: projections are then good to rounding, however nearly dependent the others are.
        """
        packed, pivots, rank, _ = dpstrf(self.kernel.product_gram(self.places, self.places), lower=1, tol=NOTHING)
        return pivots[:rank].astype(np.int64) - 1, np.tril(packed[:rank, :rank])

    def coordinates(self, kappa: Array) -> Array:
        """Pf in an orthonormal basis, from κ at the places."""
        kept, L = self.factor
        return np.asarray(solve_triangular(L, kappa[kept], lower=True, check_finite=False))

    def inside(self, points: Array) -> Array:
        """The bumps of other points in that basis, (M, k)."""
        kept, L = self.factor
        return np.asarray(solve_triangular(L, self.kernel.product_gram(self.places[kept], points), lower=True, check_finite=False))


@dataclass(frozen=True)
class Watch:
    """What was missed of some chunks: each tells little, together they tell a slow drift."""

    chunks: int = 0
    missed: float = 0.0
    variance: float = 0.0

    def seeing(self, missed: float, error: float) -> Watch:
        """After one more chunk."""
        return Watch(self.chunks + 1, self.missed + missed, self.variance + error**2)

    def is_above(self, level: float) -> bool:
        """Whether the mean over the chunks is above a level, and surely so."""
        return self.missed > self.chunks * (level + NOTHING**2) + ERRORS * float(np.sqrt(self.variance))


@dataclass(frozen=True)
class Sites:
    """Places and what is known there.

    Attributes
    ----------
    size : atoms that will be asked for
    most : how many sites there may be
    kappa : (M,) Σ w g(x, s), in units where every bump has norm 1
    missed : (M,) the part of Σ w that was read off the other sites
    first : how many at the beginning were selected together, as atoms; 0 where not all of them are left
    loss : what the best ``size`` of them leave to the others of ‖f‖², when the sites last changed: about what a result loses
    usual : what the span missed then of ‖f‖²
    watched : what it missed of the chunks since
    """

    basis: Basis
    size: int
    most: int
    kappa: Array
    missed: Array
    first: int = 0
    loss: float = 0.0
    usual: float = 0.0
    watched: Watch = Watch()

    @property
    def kernel(self) -> RadialKernel:
        return self.basis.kernel

    @property
    def places(self) -> Array:
        """(M, d)."""
        return self.basis.places

    @classmethod
    def begun(cls, mean: KernelMean, mass: float, size: int, selector: Selector, rng: np.random.Generator) -> Sites:
        """From a first chunk, given as a mean of weights that sum to 1 and what they sum to, for ``size`` atoms."""
        traversal = selector.begin(mean, rng)
        traversal.extend(min(size, mean.size))
        rows = traversal.indices
        chosen = np.array(traversal.points if rows is None else mean.atoms[rows], np.float64)[:size]
        weights = mass * mean.weights
        kappa = mean.kernel.product_sums(mean.atoms, weights, chosen)
        sites = cls(Basis(_radial(mean), chosen), size, most_sites(size), kappa, np.zeros(len(chosen)))
        spare = sites._widest(mean.atoms, weights, sites.kappa, 0.0, rng)[: max(1, int(np.ceil(SPARE * size)))]
        places = np.asarray(mean.atoms[spare], np.float64)
        grown = sites._with(places, mean.kernel.product_sums(mean.atoms, weights, places), np.zeros(len(places)))
        fair = mean.atoms[mean.draw_rows(min(ASSESSED, mean.size), rng)]
        return replace(grown, first=len(sites.places))._assessed(mass, np.asarray(fair, np.float64))

    def _some(self, which: NDArray[np.int64]) -> Sites:
        basis = Basis(self.kernel, self.places[which])
        return replace(self, basis=basis, kappa=self.kappa[which], missed=self.missed[which], first=0)

    def values(self, points: Array) -> Array:
        """⟨Pf, φ(·, x)⟩ at other places."""
        return self.basis.coordinates(self.kappa) @ self.basis.inside(points)

    def estimated(self, points: Array, mass: float, sample: Reservoir) -> Array:
        """⟨f, φ(·, x)⟩ at other places: Pf there, and of f − Pf what a fair sample of the rows tells beyond its own noise.

        The sample is cut into parts; where their verdicts differ as much as they say, nothing is added.
        """
        if not len(sample.points):
            return np.zeros(len(points))
        if sample.is_everything:
            return self.kernel.product_sums(sample.points, sample.weights, points)
        inside, shares = self.basis.inside(points), sample.shares
        parts = np.empty((PARTS, len(points)))
        for k in range(PARTS):
            rows, w = sample.points[k::PARTS], shares[k::PARTS] / shares[k::PARTS].sum()
            there = self.basis.coordinates(self.kernel.product_sums(rows, w, self.places))
            parts[k] = self.kernel.product_sums(rows, w, points) - there @ inside
        beyond, noise = parts.mean(axis=0), float(parts.var(axis=0, ddof=1).sum()) / PARTS
        surely = max(1.0 - noise / max(float(beyond @ beyond), 1e-300), 0.0)
        return np.asarray(self.basis.coordinates(self.kappa) @ inside + mass * surely * beyond)

    def absorb(self, points: Array, weights: Array, mass: float, before: Reservoir, rng: np.random.Generator) -> Sites:
        """After a chunk of rows; ``mass`` is Σ w of those before, of which ``before`` is a sample."""
        kappa = self.kernel.product_sums(points, weights, self.places)
        watched = self.watched.seeing(*self._missed_of(points[_rows(weights, self._looked_at(len(points)), rng)]))
        now = replace(self, kappa=self.kappa + kappa, watched=watched)
        worth = WORTH * self.loss
        if not watched.is_above(worth + NEWER * self.usual):
            return now
        added = self._widest(points, weights, kappa, worth / self.size, rng)
        if not len(added):
            return now
        places = np.asarray(points[added], np.float64)
        later = self.estimated(places, mass, before) + self.kernel.product_sums(points, weights, places)
        grown = now._with(places, later, np.full(len(places), mass))._reduced()
        fair = before.points[:ASSESSED] if len(before.points) else np.asarray(points[_rows(weights, ASSESSED, rng)], np.float64)
        return grown._assessed(mass + float(weights.sum()), fair)

    def _with(self, places: Array, kappa: Array, missed: Array) -> Sites:
        return replace(
            self,
            basis=Basis(self.kernel, np.concatenate([self.places, places])),
            kappa=np.concatenate([self.kappa, kappa]),
            missed=np.concatenate([self.missed, missed]),
        )

    def _assessed(self, mass: float, sample: Array) -> Sites:
        """With what a result of now would lose on record, and what the span misses of a fair sample of the rows."""
        left = float(np.sum(self.basis.coordinates(self.kappa) ** 2)) - self._explained(self.best(self.size))
        missed, error = self._missed_of(sample)
        return replace(self, loss=max(left, 0.0) / mass / mass, usual=max(missed, 0.0) + error, watched=Watch())

    def _explained(self, which: NDArray[np.int64]) -> float:
        span = FactoredSpan(self.kernel, self.places[which], self.kappa[which])
        return span.energy(span.size)

    def best(self, count: int) -> NDArray[np.int64]:
        """Those that explain most of f, in the order of what each adds; fewer where the others add nothing.

        By pursuit, or those that were selected together at first, where these explain more.
        """
        pursuit = Pursuit(self.kappa, self.kernel.product_rows(self.places))
        while len(pursuit.chosen) < count and pursuit.choose():
            pass
        chosen, together = np.array(pursuit.chosen, np.int64), np.arange(self.first)
        return together if self.first == count and self._explained(together) > self._explained(chosen) else chosen

    def _looked_at(self, rows: int) -> int:
        """How many of so many rows: few of a hundred show what is rare, and many sites make each dear."""
        return max(LOOKED_AT, min(rows // 2, MOST_LOOKED_AT, LOOKED_COST // len(self.places) ** 2))

    def _missed_of(self, rows: Floats) -> tuple[float, float]:
        """What the span misses of the mean of the stream that the rows were drawn from, ‖f − Pf‖², and its standard error.

        From pairs of different rows, whose products beyond the span are 0 in the mean where nothing is missed.
        """
        some = np.asarray(rows, np.float64)
        inside = self.basis.inside(some)
        beyond = self.kernel.product_gram(some, some) - inside.T @ inside
        np.fill_diagonal(beyond, 0.0)
        pairs = max(len(some) * (len(some) - 1), 1)
        return float(beyond.sum()) / pairs, float(np.sqrt(2 * np.square(beyond).sum())) / pairs

    def _widest(self, points: Floats, weights: Array, kappa: Array, worth: float, rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows of a chunk that explain most of what the span misses of its mean, as long as each is worth it."""
        mass = float(weights.sum())
        rows = _rows(weights, CANDIDATES, rng)
        some = np.asarray(points[rows], np.float64)
        inside = self.basis.inside(some)
        left = (self.kernel.product_sums(points, weights, some) - self.basis.coordinates(kappa) @ inside) / mass
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

    def merge(self, other: Sites, masses: tuple[float, float], samples: tuple[Reservoir, Reservoir]) -> Sites:
        """The sites of both parts, each of which the other knows only by its own; those that explain most are kept."""
        if np.array_equal(self.places, other.places):
            return replace(self, kappa=self.kappa + other.kappa, missed=self.missed + other.missed)
        mine = self.kappa + other.estimated(self.places, masses[1], samples[1])
        theirs = other.kappa + self.estimated(other.places, masses[0], samples[0])
        both = replace(self, kappa=mine, missed=self.missed + masses[1])._with(other.places, theirs, other.missed + masses[0])
        return both._reduced()._assessed(sum(masses), samples[0].merge(samples[1]).points[:ASSESSED])

    def faded(self, factor: float) -> Sites:
        """After all weights shrank by a factor."""
        return replace(self, kappa=self.kappa * factor, missed=self.missed * factor)


def most_sites(size: int) -> int:
    """How many sites there may be for so many atoms."""
    return int(np.ceil(MOST_SPARE * size))


def _rows(weights: Array, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Different rows, drawn by weight."""
    ends = np.cumsum(weights)
    return np.unique(np.minimum(np.searchsorted(ends, rng.random(count) * ends[-1], side="right"), len(ends) - 1))


def _radial(mean: KernelMean) -> RadialKernel:
    if not isinstance(mean.kernel, RadialKernel):
        raise TypeError(f"a stream needs Gaussian, Laplacian or Student, whose waves can be added up; got {mean.kernel!r}")
    return mean.kernel
