"""Candidate atoms: points at which the inner products κ(s) = Σ w g(x, s) with a growing mean f are kept.

κ is a sum over rows, so it is exact at candidates that exist from the beginning. A new candidate has missed the rows before it. For
these rows, κ is interpolated: the projection P f onto the other candidates is evaluated at the new one. The error is at most
‖f − P f‖ times the distance of its kernel function from their span. `missed` records the interpolated weight. The certificate is
measured on other sums, so it includes the error of the interpolation.

Candidates are added if their span misses more of a chunk's mean than a quarter of the error of a result. A pursuit then takes the
rows of the chunk that explain most of the rest. With too many candidates, a pursuit keeps the ones that explain most of f.

`Assignments` sum, over the rows nearest to each candidate, the distances that the a-priori bound needs.

A chunk of n rows costs O(n·M), a change of the candidates O(M³).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from reduset._engine import Pursuit, cached_property, nearest, rows_by_weight
from reduset._types import Array, Floats, Indices
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.select import Selector
from reduset.weights import FactoredSpan

MIN_TESTED, MAX_TESTED, TEST_COST = 128, 1024, 1 << 26  # rows of a chunk that are tested for drift
ELIGIBLE_ROWS = 2048  # rows of a chunk that may become candidates
ASSESSED_ROWS = 768  # rows of a uniform sample, after a change of the candidates
LOSS_RATIO, BASELINE_RATIO = 0.25, 1.5  # the span may miss these multiples of the error of a result and of the baseline
STANDARD_ERRORS = 3.0
FIRST_SPARE, MAX_RATIO = 0.4, 3.0  # candidates for each atom: added to the first ones, and at most
KEPT_RATIO = 0.8  # of the largest number of candidates, when there are too many
PIVOT_TOLERANCE = 3e-13  # squared distances below this are rounding
ENERGY_TOLERANCE = 1e-12  # of energies of nearly dependent kernel functions


@dataclass(frozen=True)
class PivotedBasis:
    """An orthonormal basis of the span of kernel functions, by pivoted Cholesky; the factor is computed once."""

    kernel: RadialKernel
    points: Array

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles omit the factor and compute it again."""
        return {"kernel": self.kernel, "points": self.points}

    @cached_property
    def factor(self) -> tuple[Indices, Array]:
        """The points that are independent up to rounding, and L of K = L Lᵀ of these.

        Pivoting takes the largest first. Projections are then precise, however dependent the others are.
        """
        packed, pivots, rank, _ = dpstrf(self.kernel.product_gram(self.points, self.points), lower=1, tol=PIVOT_TOLERANCE)
        return pivots[:rank].astype(np.int64) - 1, np.tril(packed[:rank, :rank])

    def coordinates(self, kappa: Array) -> Array:
        """The coordinates of P f, from κ at the points."""
        kept, L = self.factor
        return np.asarray(solve_triangular(L, kappa[kept], lower=True, check_finite=False))

    def projections(self, rows: Array) -> Array:
        """(M, k) the coordinates of the kernel functions of k rows, projected onto the span."""
        kept, L = self.factor
        return np.asarray(solve_triangular(L, self.kernel.product_gram(self.points[kept], rows), lower=True, check_finite=False))


@dataclass(frozen=True)
class DriftDetector:
    """A one-sided test of the energy that the span misses, over several chunks: together they show a slow drift."""

    chunks: int = 0
    missed: float = 0.0
    variance: float = 0.0

    def updated(self, missed: float, error: float) -> DriftDetector:
        """After one more chunk."""
        return DriftDetector(self.chunks + 1, self.missed + missed, self.variance + error**2)

    def is_above(self, level: float) -> bool:
        """Whether the mean over the chunks is significantly above a level."""
        return self.missed > self.chunks * (level + PIVOT_TOLERANCE**2) + STANDARD_ERRORS * float(np.sqrt(self.variance))


@dataclass(frozen=True)
class Assignments:
    """Sums over the rows that are assigned to each candidate.

    Attributes
    ----------
    weights : (M,) Σ w.
    chords : (M,) Upper bound on Σ w‖φ(·, x) − φ(·, s)‖.
    reach : (M,) Upper bound on the distance of a row from its candidate, in the coordinates of the kernel's product.
    """

    weights: Array
    chords: Array
    reach: Array

    @classmethod
    def empty(cls, count: int) -> Assignments:
        return cls(np.zeros(count), np.zeros(count), np.zeros(count))

    def __add__(self, other: Assignments) -> Assignments:
        return Assignments(self.weights + other.weights, self.chords + other.chords, np.maximum(self.reach, other.reach))

    def moved(self, kernel: RadialKernel, dimension: int, index: NDArray[np.integer], distance: Array, count: int) -> Assignments:
        """The same rows assigned to ``count`` other points. Entry i moves to point ``index[i]`` at ``distance[i]``."""
        chord = np.sqrt(np.maximum(2 - 2 * kernel.product_at(distance, dimension), 0.0))
        reach = np.zeros(count)
        np.maximum.at(reach, index, np.where(self.weights > 0, distance + self.reach, 0.0))
        sums = (np.bincount(index, values, count) for values in (self.weights, self.chords + self.weights * chord))
        weights, chords = (np.asarray(values, np.float64) for values in sums)
        return Assignments(weights, chords, reach)

    def faded(self, factor: float) -> Assignments:
        """After all weights shrank by a factor."""
        return Assignments(self.weights * factor, self.chords * factor, self.reach)


@dataclass(frozen=True)
class CandidateAtoms:
    """Candidate atoms, and the inner products of f = Σ w φ(·, x) with their kernel functions.

    Attributes
    ----------
    size : Number of atoms of a result.
    max_count : Largest number of candidates.
    kappa : (M,) Σ w g(x, s), in units where every kernel function has norm 1.
    missed : (M,) part of Σ w for which κ was interpolated.
    assignments : Assignments of the rows so far.
    initial : Number of first candidates that a selector chose together; 0 if some of them were removed.
    loss : Energy of f in the span that the best ``size`` candidates do not explain, relative to the squared mass. It was computed
        at the last change of the candidates, and is close to the squared error of a result.
    baseline : Energy that the span missed at that time.
    drift : Energy that the span missed in the chunks since then.
    """

    basis: PivotedBasis
    size: int
    max_count: int
    kappa: Array
    missed: Array
    assignments: Assignments
    initial: int = 0
    loss: float = 0.0
    baseline: float = 0.0
    drift: DriftDetector = DriftDetector()

    @property
    def kernel(self) -> RadialKernel:
        return self.basis.kernel

    @property
    def points(self) -> Array:
        """(M, d)."""
        return self.basis.points

    @classmethod
    def from_first_chunk(
        cls, rows: Array, weights: Array, kernel: RadialKernel, size: int, selector: Selector, rng: np.random.Generator
    ) -> CandidateAtoms:
        """``size`` atoms of a first chunk, chosen by a selector, and further rows that explain most of the rest."""
        mass = float(weights.sum())
        mean = KernelMean(rows, weights / weights.sum(), kernel)
        traversal = selector.begin(mean, rng)
        traversal.extend(min(size, mean.size))
        indices = traversal.indices
        selected = np.array(traversal.points if indices is None else mean.atoms[indices], np.float64)[:size]
        scaled, count = mass * mean.weights, len(selected)
        kappa = kernel.product_sums(mean.atoms, scaled, selected)
        basis = PivotedBasis(kernel, selected)
        first = cls(basis, size, max_candidates(size), kappa, np.zeros(count), Assignments.empty(count), count)
        spare = first._missed_rows(mean.atoms, scaled, kappa, 0.0, rng)[: max(1, int(np.ceil(FIRST_SPARE * size)))]
        points = np.asarray(mean.atoms[spare], np.float64)
        grown = first._extended(points, kernel.product_sums(mean.atoms, scaled, points), np.zeros(len(points)))
        sample = mean.atoms[mean.draw_rows(min(ASSESSED_ROWS, mean.size), rng)]
        return grown._with_rows(mean.atoms, scaled)._assessed(mass, np.asarray(sample, np.float64))

    def blank(self) -> CandidateAtoms:
        """The same candidates for a stream without rows."""
        zero = np.zeros(len(self.kappa))
        return replace(self, kappa=zero, missed=zero, assignments=Assignments.empty(len(zero)))

    def faded(self, factor: float) -> CandidateAtoms:
        """After all weights shrank by a factor."""
        assignments = self.assignments.faded(factor)
        return replace(self, kappa=self.kappa * factor, missed=self.missed * factor, assignments=assignments)

    def interpolated(self, rows: Array) -> Array:
        """⟨P f, φ(·, x)⟩ at other points."""
        return self.basis.coordinates(self.kappa) @ self.basis.projections(rows)

    # -- more rows ----------------------------------------------------------------------------------------------------------

    def absorb(self, rows: Array, weights: Array, mass: float, sample: Array, rng: np.random.Generator) -> CandidateAtoms:
        """After a chunk of rows. Rows of it become candidates if the span misses significantly more than the limit.

        Parameters
        ----------
        mass : Σ w of the rows before the chunk
        sample : a uniform sample of these
        """
        kappa = self.kernel.product_sums(rows, weights, self.points)
        # more tested rows find rarer changes, and many candidates make each expensive
        count = max(MIN_TESTED, min(len(rows) // 2, MAX_TESTED, TEST_COST // len(self.points) ** 2))
        tested = rows[_rows_by_weight(weights, count, rng)]
        now = replace(self, kappa=self.kappa + kappa, drift=self.drift.updated(*self._missed_energy(tested)))
        worth = LOSS_RATIO * self.loss
        added: Indices = np.empty(0, np.int64)
        is_short = mass == 0 and len(rows) <= self.size  # the first rows of a sibling, too few for the test
        if is_short or now.drift.is_above(worth + BASELINE_RATIO * self.baseline):
            added = self._missed_rows(rows, weights, kappa, worth / self.size, rng)
        if not len(added):
            return now._with_rows(rows, weights)
        points = np.asarray(rows[added], np.float64)
        known = self.interpolated(points) + self.kernel.product_sums(rows, weights, points)
        grown = now._extended(points, known, np.full(len(points), mass))._with_rows(rows, weights)._reduced()
        assessed = sample[:ASSESSED_ROWS] if len(sample) else rows[_rows_by_weight(weights, ASSESSED_ROWS, rng)]
        return grown._assessed(mass + float(weights.sum()), np.asarray(assessed, np.float64))

    def _with_rows(self, rows: Floats, weights: Array) -> CandidateAtoms:
        """With every row assigned to its nearest candidate."""
        zero = np.zeros(len(weights))
        added = self._moved(Assignments(weights, zero, zero), rows, self.points)
        return replace(self, assignments=self.assignments + added)

    def _moved(self, assignments: Assignments, rows: Floats, points: Array) -> Assignments:
        """Assignments to ``rows``, moved to the nearest of the points."""
        product = self.kernel.product(points.shape[1])
        index, distance = nearest(rows, points, self.kernel.frame(rows, product), product.profile.ranking)
        return assignments.moved(self.kernel, points.shape[1], index, distance, len(points))

    def _missed_energy(self, rows: Floats) -> tuple[float, float]:
        """‖f − P f‖² for the mean f of the distribution that the rows were drawn from, and its standard error.

        From pairs of different rows. Their products beyond the span are 0 on average if nothing is missed.
        """
        drawn = np.asarray(rows, np.float64)
        inside = self.basis.projections(drawn)
        beyond = np.asarray(self.kernel.product_gram(drawn, drawn) - inside.T @ inside)
        np.fill_diagonal(beyond, 0.0)
        pairs = max(len(drawn) * (len(drawn) - 1), 1)
        return float(beyond.sum()) / pairs, float(np.sqrt(2 * np.square(beyond).sum())) / pairs

    def _missed_rows(self, rows: Floats, weights: Array, kappa: Array, worth: float, rng: np.random.Generator) -> Indices:
        """Rows of a chunk that explain most of what the span misses of its mean, while each explains at least ``worth``."""
        eligible = _rows_by_weight(weights, ELIGIBLE_ROWS, rng)
        points = np.asarray(rows[eligible], np.float64)
        inside = self.basis.projections(points)
        missed = self.kernel.product_sums(rows, weights, points) - self.basis.coordinates(kappa) @ inside
        products, room = self.kernel.product_rows(points), 1.0 - np.square(inside).sum(axis=0)
        pursuit = Pursuit(missed / float(weights.sum()), lambda k: products(k) - inside[:, k] @ inside, room, PIVOT_TOLERANCE)
        while len(pursuit.chosen) < min(len(eligible), self.max_count) and pursuit.choose(worth):
            pass
        return eligible[pursuit.chosen]

    # -- other candidates ---------------------------------------------------------------------------------------------------

    def best(self, count: int) -> Indices:
        """The candidates that explain most of f, in the order of the energy that each adds; fewer if the others add none.

        By pursuit, or those that were selected together if these explain more. The pursuit is limited to candidates that are
        independent up to rounding, so that it does not follow the rounding of κ.
        """
        kept = np.sort(self.basis.factor[0])
        pursuit = Pursuit(self.kappa[kept], self.kernel.product_rows(self.points[kept]))
        while len(pursuit.chosen) < count and pursuit.choose():
            pass
        chosen, together = kept[np.array(pursuit.chosen, np.int64)], np.arange(self.initial)
        is_better = self.initial == count and self._energy(together) > (1 + ENERGY_TOLERANCE) * self._energy(chosen)
        return together if is_better else chosen

    def _energy(self, chosen: Indices) -> float:
        """‖P f‖² for the span of some candidates."""
        span = FactoredSpan(self.kernel, self.points[chosen], self.kappa[chosen])
        return span.energy(span.size)

    def _extended(self, points: Array, kappa: Array, missed: Array) -> CandidateAtoms:
        pairs = zip(vars(self.assignments).values(), vars(Assignments.empty(len(points))).values(), strict=True)
        return replace(
            self,
            basis=PivotedBasis(self.kernel, np.concatenate([self.points, points])),
            kappa=np.concatenate([self.kappa, kappa]),
            missed=np.concatenate([self.missed, missed]),
            assignments=Assignments(*(np.concatenate(pair) for pair in pairs)),
        )

    def _reduced(self) -> CandidateAtoms:
        """If there are too many candidates, those that explain most."""
        if len(self.points) <= self.max_count:
            return self
        kept = self.best(int(np.ceil(KEPT_RATIO * self.max_count)))
        points = self.points[kept]
        assignments = self._moved(self.assignments, self.points, points)
        basis = PivotedBasis(self.kernel, points)
        return replace(self, basis=basis, kappa=self.kappa[kept], missed=self.missed[kept], assignments=assignments, initial=0)

    def _assessed(self, mass: float, sample: Array) -> CandidateAtoms:
        """With the error of a result at this moment, and the energy that the span misses of a uniform sample of the rows."""
        left = float(np.sum(self.basis.coordinates(self.kappa) ** 2)) - self._energy(self.best(self.size))
        missed, error = self._missed_energy(sample)
        return replace(self, loss=max(left, 0.0) / mass / mass, baseline=max(missed, 0.0) + error, drift=DriftDetector())

    def merge(self, other: CandidateAtoms, masses: tuple[float, float], sample: Array) -> CandidateAtoms:
        """The candidates of both parts that explain most. At candidates of one part only, κ of the other part is interpolated.

        Sums at common candidates are added, as siblings have them.
        """
        if np.array_equal(self.points, other.points):
            assignments = self.assignments + other.assignments
            return replace(self, kappa=self.kappa + other.kappa, missed=self.missed + other.missed, assignments=assignments)
        _, common, others = np.intersect1d(_as_keys(self.points), _as_keys(other.points), return_indices=True)
        kappa, missed = self.kappa + other.interpolated(self.points), self.missed + masses[1]
        kappa[common], missed[common] = self.kappa[common] + other.kappa[others], self.missed[common] + other.missed[others]
        new = np.setdiff1d(np.arange(len(other.points)), others)
        points = other.points[new]
        known = other.kappa[new] + self.interpolated(points)
        both = replace(self, kappa=kappa, missed=missed)._extended(points, known, other.missed[new] + masses[0])
        added = both._moved(other.assignments, other.points, both.points)
        return replace(both, assignments=both.assignments + added)._reduced()._assessed(sum(masses), sample[:ASSESSED_ROWS])

    # -- the a-priori bound -------------------------------------------------------------------------------------------------

    def covering(self, atoms: Array) -> tuple[float, float]:
        """Upper bounds on the covering radius of atoms, and on Σ w‖φ(·, x) − φ(·, nearest atom)‖ / Σ w."""
        moved = self._moved(self.assignments, self.points, atoms)
        return float(moved.reach.max()), float(moved.chords.sum() / moved.weights.sum())

    def error_bound(self, small: KernelMean) -> float:
        """An upper bound on ‖f / Σ w − f_m‖ for any weights: the exact distance to the mean of the candidates, and theirs to f."""
        rows = self.assignments
        mass = float(rows.weights.sum())
        points = np.concatenate([self.points, small.atoms])
        signed = np.concatenate([rows.weights / mass, -small.weights])
        square = float(signed @ self.kernel.product_sums(points, signed, points))
        rounding = 8 * np.finfo(float).eps * float(np.abs(signed).sum()) ** 2
        return float(rows.chords.sum()) / mass + float(np.sqrt(max(square, 0.0) + rounding))


def max_candidates(size: int) -> int:
    """The largest number of candidates for ``size`` atoms."""
    return int(np.ceil(MAX_RATIO * size))


def _as_keys(points: Array) -> NDArray[np.void]:
    """Each point as one value that can be compared."""
    rows = np.ascontiguousarray(points) + 0.0  # −0 becomes 0
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]


def _rows_by_weight(weights: Array, count: int, rng: np.random.Generator) -> Indices:
    """Different rows, drawn by weight."""
    return np.unique(rows_by_weight(weights, rng.random(count)))
