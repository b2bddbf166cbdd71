"""Candidate atoms: places at which the inner products of a growing mean are kept, some more of them than atoms will be asked for.

κ(s) = Σ w g(x, s) is a sum over rows, so at a candidate that was there from the beginning it is exact whatever came since. What a
new one has missed is read off the projection onto those before it, P f(s), which errs by at most ‖f − Pf‖ times the distance of
its bump from their span, and of that error a sample of the rows tells what it can. How much of the stream each candidate knows only
in that way is on record, and what it did to the result is in the certificate, which is measured on other sums.

Candidates are added where the span misses more of the mean of a chunk than a quarter of what a result loses in any case: those rows
of the chunk that explain most of what is missed, by pursuit. Where there are too many, those are kept that explain most of f, with
their κ as they are.

A chunk of n rows costs O(n·M), a change of the candidates O(M³).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from reduset._engine import Pursuit, cached_property, rows_by_weight
from reduset._types import Array, Floats, Indices
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.select import Selector
from reduset.stream.reservoir import Reservoir
from reduset.weights import FactoredSpan

INSPECTED, MOST_INSPECTED, INSPECTION_COST = 128, 1024, 1 << 26  # rows of a chunk: to see whether it is news
ELIGIBLE = 2048  # rows of it that may become candidates: what is missed may lie in rare ones
PARTS = 8  # of a sample, to tell its noise
ASSESSED = 768  # rows of a fair sample, where candidates changed
WORTH, NEWER = 0.25, 1.5  # of the loss, and of what it missed before: what the span may miss of a chunk
ERRORS = 3.0  # how sure it must be that it misses more
SPARE, MOST_SPARE = 0.4, 3.0  # candidates for each atom: beyond it at first, and at most where a stream changes
KEPT = 0.8  # of the most there may be, where there were more
NOTHING = 3e-13  # squared distances below this are rounding
ROUNDING = 1e-12  # of energies, where bumps are nearly dependent


@dataclass(frozen=True)
class PivotedBasis:
    """An orthonormal basis of the span of bumps, by pivoted Cholesky; what is worked out serves as long as the places stay."""

    kernel: RadialKernel
    places: Array

    def __getstate__(self) -> dict[str, Any]:
        """What is sent and copied: the factor, a matrix, is worked out again."""
        return {"kernel": self.kernel, "places": self.places}

    @cached_property
    def factor(self) -> tuple[Indices, Array]:
        """Places that are independent to rounding, and L of K = L Lᵀ of these.

        With pivoting, the largest first: projections are then good to rounding, however nearly dependent the others are.
        """
        packed, pivots, rank, _ = dpstrf(self.kernel.product_gram(self.places, self.places), lower=1, tol=NOTHING)
        return pivots[:rank].astype(np.int64) - 1, np.tril(packed[:rank, :rank])

    def coordinates(self, kappa: Array) -> Array:
        """Pf in the basis, from κ at the places."""
        kept, L = self.factor
        return np.asarray(solve_triangular(L, kappa[kept], lower=True, check_finite=False))

    def inside(self, points: Array) -> Array:
        """The bumps of other points in the basis, (M, k)."""
        kept, L = self.factor
        return np.asarray(solve_triangular(L, self.kernel.product_gram(self.places[kept], points), lower=True, check_finite=False))

    def products_beyond(self, points: Array, inside: Array) -> Array:
        """The products of what bumps have beyond the span, (k, k), from what they have inside."""
        return np.asarray(self.kernel.product_gram(points, points) - inside.T @ inside)


@dataclass(frozen=True)
class DriftDetector:
    """A one-sided test on what was missed of several chunks: each tells little, together they tell a slow drift."""

    chunks: int = 0
    missed: float = 0.0
    variance: float = 0.0

    def updated(self, missed: float, error: float) -> DriftDetector:
        """After one more chunk."""
        return DriftDetector(self.chunks + 1, self.missed + missed, self.variance + error**2)

    def is_above(self, level: float) -> bool:
        """Whether the mean over the chunks is above a level, and surely so."""
        return self.missed > self.chunks * (level + NOTHING**2) + ERRORS * float(np.sqrt(self.variance))


@dataclass(frozen=True)
class CandidateAtoms:
    """Candidate atoms and what is known there of f = Σ w φ(·, x).

    Attributes
    ----------
    size : atoms that will be asked for
    most : how many candidates there may be
    kappa : (M,) Σ w g(x, s), in units where every bump has norm 1
    missed : (M,) the part of Σ w that was read off the other candidates
    initial : how many at the beginning were selected together, as atoms; 0 where not all of them are left
    loss : what the best ``size`` of them leave to the others of ‖f‖², when the candidates last changed: about what a result loses
    usual : what the span missed then of ‖f‖²
    drift : what it missed of the chunks since
    """

    basis: PivotedBasis
    size: int
    most: int
    kappa: Array
    missed: Array
    initial: int = 0
    loss: float = 0.0
    usual: float = 0.0
    drift: DriftDetector = DriftDetector()

    @property
    def kernel(self) -> RadialKernel:
        return self.basis.kernel

    @property
    def places(self) -> Array:
        """(M, d)."""
        return self.basis.places

    @classmethod
    def from_first_chunk(
        cls, points: Array, weights: Array, kernel: RadialKernel, size: int, selector: Selector, rng: np.random.Generator
    ) -> CandidateAtoms:
        """The ``size`` atoms that a selector finds for a first chunk, and rows of it that explain most of what these miss."""
        mass = float(weights.sum())
        mean = KernelMean(points, weights / weights.sum(), kernel)
        traversal = selector.begin(mean, rng)
        traversal.extend(min(size, mean.size))
        rows = traversal.indices
        selected = np.array(traversal.points if rows is None else mean.atoms[rows], np.float64)[:size]
        scaled = mass * mean.weights
        kappa = kernel.product_sums(mean.atoms, scaled, selected)
        initial = cls(PivotedBasis(kernel, selected), size, max_candidates(size), kappa, np.zeros(len(selected)), len(selected))
        spare = initial._rows_missed(mean.atoms, scaled, kappa, 0.0, rng)[: max(1, int(np.ceil(SPARE * size)))]
        places = np.asarray(mean.atoms[spare], np.float64)
        grown = initial._extended(places, kernel.product_sums(mean.atoms, scaled, places), np.zeros(len(places)))
        fair = mean.atoms[mean.draw_rows(min(ASSESSED, mean.size), rng)]
        return grown._assessed(mass, np.asarray(fair, np.float64))

    # -- what is known at other places --------------------------------------------------------------------------------------

    def projected(self, points: Array) -> Array:
        """⟨Pf, φ(·, x)⟩ at other places."""
        return self.basis.coordinates(self.kappa) @ self.basis.inside(points)

    def estimated(self, points: Array, mass: float, sample: Reservoir) -> Array:
        """⟨f, φ(·, x)⟩ at other places, from κ here and a fair sample of the rows, whose weight is ``mass``.

        Where the sample holds every row, it is their sum. Else f = Pf + (f − Pf): of Pf all is known here, of f − Pf what the
        sample tells, shrunk towards 0 by as much of it as is noise.
        """
        if not len(sample.points):
            return np.zeros(len(points))
        if sample.is_everything:
            return self.kernel.product_sums(sample.points, sample.weights, points)
        inside = self.basis.inside(points)
        verdicts = self._missed_by_parts(points, inside, sample)
        missed = verdicts.mean(axis=0)
        return np.asarray(self.basis.coordinates(self.kappa) @ inside + mass * _shrinkage(verdicts, missed) * missed)

    def _missed_by_parts(self, points: Array, inside: Array, sample: Reservoir) -> Array:
        """⟨f − Pf, φ(·, x)⟩ for f of mass 1, as each of the parts tells it into which a sample is cut, (PARTS, k)."""
        shares = sample.shares
        verdicts = np.empty((PARTS, len(points)))
        for k in range(PARTS):
            rows, w = sample.points[k::PARTS], shares[k::PARTS] / shares[k::PARTS].sum()
            projected = self.basis.coordinates(self.kernel.product_sums(rows, w, self.places))
            verdicts[k] = self.kernel.product_sums(rows, w, points) - projected @ inside
        return verdicts

    # -- more rows ----------------------------------------------------------------------------------------------------------

    def absorb(self, points: Array, weights: Array, mass: float, before: Reservoir, rng: np.random.Generator) -> CandidateAtoms:
        """After a chunk of rows; ``mass`` is Σ w of those before, of which ``before`` is a sample.

        The sums grow by those over the chunk, which are exact. Where the span surely misses more of the chunks since the last
        change than it may, rows of this chunk become candidates: of the chunk they know all, of the rows before it an estimate.
        """
        kappa = self.kernel.product_sums(points, weights, self.places)
        inspected = points[_drawn_by_weight(weights, self._inspected(len(points)), rng)]
        now = replace(self, kappa=self.kappa + kappa, drift=self.drift.updated(*self._missed_of(inspected)))
        worth = WORTH * self.loss
        if not now.drift.is_above(worth + NEWER * self.usual):
            return now
        rows = self._rows_missed(points, weights, kappa, worth / self.size, rng)
        if not len(rows):
            return now
        places = np.asarray(points[rows], np.float64)
        known = self.estimated(places, mass, before) + self.kernel.product_sums(points, weights, places)
        grown = now._extended(places, known, np.full(len(places), mass))._reduced()
        some = before.points[:ASSESSED] if len(before.points) else points[_drawn_by_weight(weights, ASSESSED, rng)]
        return grown._assessed(mass + float(weights.sum()), np.asarray(some, np.float64))

    def _inspected(self, rows: int) -> int:
        """How many of so many rows: few of a hundred show what is rare, and many candidates make each dear."""
        return max(INSPECTED, min(rows // 2, MOST_INSPECTED, INSPECTION_COST // len(self.places) ** 2))

    def _missed_of(self, rows: Floats) -> tuple[float, float]:
        """What the span misses of the mean of the stream that the rows were drawn from, ‖f − Pf‖², and its standard error.

        From pairs of different rows, whose products beyond the span are 0 in the mean where nothing is missed.
        """
        some = np.asarray(rows, np.float64)
        beyond = self.basis.products_beyond(some, self.basis.inside(some))
        np.fill_diagonal(beyond, 0.0)
        pairs = max(len(some) * (len(some) - 1), 1)
        return float(beyond.sum()) / pairs, float(np.sqrt(2 * np.square(beyond).sum())) / pairs

    def _rows_missed(self, points: Floats, weights: Array, kappa: Array, worth: float, rng: np.random.Generator) -> Indices:
        """Rows of a chunk that explain most of what the span misses of its mean, as long as each is worth it."""
        rows = _drawn_by_weight(weights, ELIGIBLE, rng)
        some = np.asarray(points[rows], np.float64)
        inside = self.basis.inside(some)
        missed = self.kernel.product_sums(points, weights, some) - self.basis.coordinates(kappa) @ inside
        products, room = self.kernel.product_rows(some), 1.0 - np.square(inside).sum(axis=0)
        pursuit = Pursuit(missed / float(weights.sum()), lambda k: products(k) - inside[:, k] @ inside, room, NOTHING)
        while len(pursuit.chosen) < min(len(rows), self.most) and pursuit.choose(worth):
            pass
        return rows[pursuit.chosen]

    # -- other candidates ---------------------------------------------------------------------------------------------------

    def best(self, count: int) -> Indices:
        """Those that explain most of f, in the order of what each adds; fewer where the others add nothing.

        By pursuit, or those that were selected together at first, where these surely explain more. Of bumps that depend on each
        other to rounding only some take part: a pursuit that could take any would follow the rounding of κ.
        """
        kept = np.sort(self.basis.factor[0])
        pursuit = Pursuit(self.kappa[kept], self.kernel.product_rows(self.places[kept]))
        while len(pursuit.chosen) < count and pursuit.choose():
            pass
        chosen, together = kept[np.array(pursuit.chosen, np.int64)], np.arange(self.initial)
        surely = self.initial == count and self._energy(together) > (1 + ROUNDING) * self._energy(chosen)
        return together if surely else chosen

    def _energy(self, which: Indices) -> float:
        """‖Pf‖² for the span of some."""
        span = FactoredSpan(self.kernel, self.places[which], self.kappa[which])
        return span.energy(span.size)

    def _extended(self, places: Array, kappa: Array, missed: Array) -> CandidateAtoms:
        return replace(
            self,
            basis=PivotedBasis(self.kernel, np.concatenate([self.places, places])),
            kappa=np.concatenate([self.kappa, kappa]),
            missed=np.concatenate([self.missed, missed]),
        )

    def _reduced(self) -> CandidateAtoms:
        """Where there are more than there may be, those that explain most; their number then has room to grow."""
        if len(self.places) <= self.most:
            return self
        kept = self.best(int(np.ceil(KEPT * self.most)))
        basis = PivotedBasis(self.kernel, self.places[kept])
        return replace(self, basis=basis, kappa=self.kappa[kept], missed=self.missed[kept], initial=0)

    def _assessed(self, mass: float, sample: Array) -> CandidateAtoms:
        """With what a result of now would lose on record, and what the span misses of a fair sample of the rows."""
        left = float(np.sum(self.basis.coordinates(self.kappa) ** 2)) - self._energy(self.best(self.size))
        missed, error = self._missed_of(sample)
        return replace(self, loss=max(left, 0.0) / mass / mass, usual=max(missed, 0.0) + error, drift=DriftDetector())

    def merge(self, other: CandidateAtoms, masses: tuple[float, float], samples: tuple[Reservoir, Reservoir]) -> CandidateAtoms:
        """The candidates of both parts, those that explain most; what one part has seen at those of the other alone is estimated.

        Siblings have most of theirs in common, where their sums are added, though each may have found more.
        """
        if np.array_equal(self.places, other.places):
            return replace(self, kappa=self.kappa + other.kappa, missed=self.missed + other.missed)
        mine, missed = self.kappa + other.estimated(self.places, masses[1], samples[1]), self.missed + masses[1]
        theirs = other.kappa + self.estimated(other.places, masses[0], samples[0])
        _, here, there = np.intersect1d(_as_keys(self.places), _as_keys(other.places), return_indices=True)
        mine[here], missed[here] = self.kappa[here] + other.kappa[there], self.missed[here] + other.missed[there]
        new = np.setdiff1d(np.arange(len(other.places)), there)
        both = replace(self, kappa=mine, missed=missed)
        both = both._extended(other.places[new], theirs[new], other.missed[new] + masses[0])
        return both._reduced()._assessed(sum(masses), samples[0].merge(samples[1]).points[:ASSESSED])

    def faded(self, factor: float) -> CandidateAtoms:
        """After all weights shrank by a factor."""
        return replace(self, kappa=self.kappa * factor, missed=self.missed * factor)


def max_candidates(size: int) -> int:
    """How many candidates there may be for so many atoms."""
    return int(np.ceil(MOST_SPARE * size))


def _as_keys(places: Array) -> NDArray[np.void]:
    """Each place as one value, to be found among others."""
    rows = np.ascontiguousarray(places) + 0.0  # −0 is 0
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]


def _drawn_by_weight(weights: Array, count: int, rng: np.random.Generator) -> Indices:
    """Different rows, drawn by weight."""
    return np.unique(rows_by_weight(weights, rng.random(count)))


def _shrinkage(verdicts: Array, mean: Array) -> float:
    """How much of the mean of several verdicts is more than noise (James & Stein): 1 − noise / ‖mean‖², at least 0.

    The noise is the variance of the mean as their differences tell it: where they differ as much as they say, nothing is left.
    """
    noise = float(verdicts.var(axis=0, ddof=1).sum()) / PARTS
    return max(1.0 - noise / max(float(mean @ mean), 1e-300), 0.0)
