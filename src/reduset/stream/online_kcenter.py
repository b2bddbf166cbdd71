"""Online k-centre: a covering of a stream by k centres, in the order in which the rows happen to come, by the doubling algorithm.

(Charikar, Chekuri, Feder & Motwani 2004.) With a threshold τ: a row farther than τ from all centres becomes one. When there are
k + 1 of them, at pairwise distances of at least s > τ, two of these share a centre of any covering by k, so that the best radius is
at least s/2; then τ grows to τ′ = max(2τ, s) and centres within τ′ of one that is kept are given up to it. A radius that was at
most 2τ is then at most 2τ + τ′ ≤ 2τ′, and 2τ′ ≤ 4s since τ < s: it never is more than 8 times the best.

Beyond the promise the books are kept for each centre: the farthest its rows can be, their weight, and Σ w‖φ(·, x) − φ(·, c)‖, to
which giving it up adds its weight times its own distance. So radius and quantisation error are certain whatever happened, τ need
not double as long as the books allow less, and two coverings can be merged: the centres of one come to the other like rows. What
merging adds to the radius is in the books too; no factor is promised for it beforehand.

Distances are those of the kernel's product, its bandwidth divided out; chords ‖φ(·, x) − φ(·, c)‖ are those of bumps of norm 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from reduset._engine import SQUARED, FarthestFirst, Frame, blocks, nearest
from reduset._types import Array
from reduset.kernels import RadialKernel
from reduset.mean import KernelMean
from reduset.stream.reservoir import FORGOTTEN

FACTOR = 8.0
GENTLE = (1.15, 1.4, 1.7)  # how far τ tries to grow before it doubles
ROUNDING = 1e-9
RESOLVED = 1e-6  # of the largest coordinate: what a ranking in float32 surely tells apart
ENTRIES = 1 << 21  # of a matrix of distances


@dataclass(frozen=True)
class ClusterSummaries:
    """Summaries of clusters of rows, of which only this is kept.

    Attributes
    ----------
    centres : (c, d) rows of the stream
    masses : (c,) the weight of each one's rows
    chords : (c,) Σ w‖φ(·, x) − φ(·, c)‖ over them, at most
    reach : (c,) the farthest of them, at most
    """

    centres: Array
    masses: Array
    chords: Array
    reach: Array

    @classmethod
    def alone(cls, points: Array, weights: Array | None = None) -> ClusterSummaries:
        """Every row a cluster of its own; without weights, centres that no row was assigned to yet."""
        zero = np.zeros(len(points))
        return cls(np.asarray(points, np.float64), zero if weights is None else weights, zero, zero)

    def __len__(self) -> int:
        return len(self.centres)

    def __getitem__(self, which: NDArray[np.bool_]) -> ClusterSummaries:
        return ClusterSummaries(*(field[which] for field in vars(self).values()))

    def __add__(self, others: ClusterSummaries) -> ClusterSummaries:
        """These, and the others behind them."""
        return ClusterSummaries(*(np.concatenate(pair) for pair in zip(vars(self).values(), vars(others).values(), strict=True)))


@dataclass(frozen=True)
class OnlineKCenter:
    """The doubling algorithm for online k-centre: centres, and books of what they stand for.

    Attributes
    ----------
    k : how many centres there may be
    clusters : of the rows so far, each with its centre
    threshold : τ
    floor : the best radius of a covering by k centres is at least this
    lost : weight that was forgotten with its centres
    """

    kernel: RadialKernel
    k: int
    clusters: ClusterSummaries
    threshold: float = 0.0
    floor: float = 0.0
    lost: float = 0.0

    @classmethod
    def empty(cls, kernel: RadialKernel, k: int, dimension: int) -> OnlineKCenter:
        return cls(kernel, k, ClusterSummaries.alone(np.empty((0, dimension))))

    @property
    def centres(self) -> Array:
        return self.clusters.centres

    @property
    def radius(self) -> float:
        """No row is farther than this from its centre."""
        return float(self.clusters.reach.max(initial=0.0))

    @property
    def _metric(self) -> int:
        return self.kernel.product(self.centres.shape[1]).profile.ranking

    @property
    def _norm(self) -> str:
        return "euclidean" if self._metric == SQUARED else "cityblock"

    def _frame(self, points: Array) -> Frame:
        return self.kernel.frame(points, self.kernel.product(points.shape[1]))

    def _chord(self, distances: Array) -> Array:
        """The length of the difference of bumps at these distances."""
        return np.sqrt(np.maximum(2 - 2 * self.kernel.product_at(distances, self.centres.shape[1]), 0.0))

    def _apart(self, places: Array) -> Array:
        """Distances of places from each other, infinite on the diagonal."""
        Z = self._frame(places).apply(places)
        apart = cdist(Z, Z, self._norm)
        np.fill_diagonal(apart, np.inf)
        return apart

    def _nearest(self, points: Array, others: Array) -> tuple[NDArray[np.int32], Array]:
        """For each of the points the nearest of the others, and how far it is; exactly so where that is beyond τ.

        Many are ranked in float32, which may take one for another where τ is below its resolution: those beyond are ranked again.
        """
        frame = self._frame(points)
        owner, distance = nearest(points, others, frame, self._metric)
        far = np.flatnonzero(distance > self.threshold)
        if len(far) and self.threshold < RESOLVED * max(float(np.abs(frame.apply(some)).max()) for some in (points, others)):
            A = frame.apply(others)
            for a, b in blocks(len(far), max(1, ENTRIES // len(others))):
                rows = far[a:b]
                apart = cdist(frame.apply(points[rows]), A, self._norm)
                owner[rows] = np.argmin(apart, axis=1)
                distance[rows] = apart.min(axis=1)
        return owner, distance

    # -- taking rows in -----------------------------------------------------------------------------------------------------

    def absorb(self, points: Array, weights: Array) -> OnlineKCenter:
        """After more rows."""
        return self._taken(ClusterSummaries.alone(points, weights))

    def _taken(self, clusters: ClusterSummaries) -> OnlineKCenter:
        """After more clusters: single rows, or those of another covering.

        What lies within τ of a centre is assigned to it. Among the rest the farthest become centres, and where there is one too
        many, τ is raised and centres are given up. Then the rest is looked at again: there are more centres, or τ is larger, so
        that in the end all of it is assigned.
        """
        now = self if len(self.clusters) else self._begun(clusters.centres)
        while True:
            owner, distance = now._nearest(clusters.centres, now.centres)
            far = distance > now.threshold
            if not far.any():
                return now._assigned(clusters, owner, distance)
            if not far.all():
                now = now._assigned(clusters[~far], owner[~far], distance[~far])
                clusters, distance = clusters[far], distance[far]
            now = now._grown(clusters.centres, distance)
            if len(now.clusters) > self.k:
                now = now._raised()

    def _begun(self, points: Array) -> OnlineKCenter:
        """Farthest-first among the first rows: within twice the best for these."""
        order = FarthestFirst(points, self._frame(points), 0, self._metric)
        order.extend(self.k + 1)
        chosen = np.asarray(points[order.indices], np.float64)
        least = float(self._apart(chosen).min()) if len(chosen) > self.k else 0.0  # and no row is farther from the first k
        clusters = ClusterSummaries.alone(chosen[: self.k])
        return replace(self, clusters=clusters, threshold=least * (1 + ROUNDING), floor=0.5 * least)

    def _grown(self, points: Array, distance: Array) -> OnlineKCenter:
        """With the farthest rows as centres until none is beyond τ, or there is one too many."""
        rest, Z = np.array(distance), self._frame(points).apply(points)
        added: list[int] = []
        while len(self.clusters) + len(added) <= self.k:
            farthest = int(np.argmax(rest))
            if rest[farthest] <= self.threshold:
                break
            added.append(farthest)
            np.minimum(rest, cdist(Z[farthest : farthest + 1], Z, self._norm)[0], out=rest)
        return replace(self, clusters=self.clusters + ClusterSummaries.alone(points[added]))

    def _assigned(self, clusters: ClusterSummaries, owner: NDArray[np.integer], distance: Array) -> OnlineKCenter:
        """With every one of the clusters in the books of its owner, whose rows may then lie as far as both distances together."""
        mine, count = self.clusters, len(self.clusters)
        reach = mine.reach.copy()
        np.maximum.at(reach, owner, distance + clusters.reach)
        masses = mine.masses + np.bincount(owner, clusters.masses, count)
        chords = mine.chords + np.bincount(owner, clusters.chords + clusters.masses * self._chord(distance), count)
        return replace(self, clusters=ClusterSummaries(mine.centres, masses, chords, reach))

    # -- giving centres up --------------------------------------------------------------------------------------------------

    def _raised(self) -> OnlineKCenter:
        """With a threshold so large that at most k of k + 1 centres are left.

        At pairwise distances of at least s, they show that no covering by k has a radius below s/2. τ′ = max(2τ, s) keeps every
        radius within 2τ′, whatever the books say. A smaller τ′ is as good where s > τ, it leaves at most k centres, and the books
        say that the radius is within 2τ′ all the same: from little more than s on, some are tried.
        """
        apart = self._apart(self.centres)
        raised = replace(self, floor=max(self.floor, 0.5 * float(apart.min())))
        # a little more, else a row that was given up at this very distance is found beyond it by another sum, for ever
        separation = float(apart.min()) * (1 + ROUNDING)
        if separation == 0:  # rows that differ by rounding alone
            separation = ROUNDING**2 * float(apart.max(where=np.isfinite(apart), initial=1.0))
        if separation > self.threshold:
            for growth in GENTLE:
                gentle = raised._thinned(growth * separation, apart)
                if len(gentle.clusters) <= self.k and gentle.radius <= 2 * gentle.threshold:
                    return gentle
        return raised._thinned(max(2 * self.threshold, separation), apart)

    def _thinned(self, threshold: float, apart: Array) -> OnlineKCenter:
        """Without the centres within the threshold of one that is kept, the heaviest kept first.

        The books of those that go come into those of the nearest that is kept, at distance 0 where it is the centre itself.
        """
        kept: list[int] = []
        free = np.ones(len(apart), np.bool_)
        for centre in np.argsort(-self.clusters.masses, kind="stable"):
            if free[centre]:
                kept.append(int(centre))
                free &= apart[centre] > threshold
        to_kept = apart[:, kept]
        to_kept[kept, np.arange(len(kept))] = 0.0
        left = replace(self, clusters=ClusterSummaries.alone(self.centres[kept]), threshold=threshold)
        return left._assigned(self.clusters, np.argmin(to_kept, axis=1), to_kept.min(axis=1))

    # -- merging and forgetting ---------------------------------------------------------------------------------------------

    def merge(self, other: OnlineKCenter) -> OnlineKCenter:
        """The covering of both parts: the other's centres come like rows, and bring their books with them."""
        if not len(other.clusters):
            return replace(self, lost=self.lost + other.lost)
        both = replace(
            self,
            lost=self.lost + other.lost,
            # a best covering of all rows covers those of a part
            floor=max(self.floor, other.floor if other.k >= self.k else 0.0),
            threshold=max(self.threshold, other.threshold) if len(self.clusters) else 0.0,
        )
        merged = both._taken(other.clusters)
        # rows to come may lie as far as the rows so far do, without harm to the radius
        return replace(merged, threshold=max(merged.threshold, other.threshold, 0.5 * merged.radius))

    def faded(self, factor: float) -> OnlineKCenter:
        """After all weights shrank by a factor; centres of which hardly anything is left are let go."""
        now = self.clusters
        shrunk = replace(now, masses=now.masses * factor, chords=now.chords * factor)
        lost = self.lost * factor
        gone = shrunk.masses < FORGOTTEN * shrunk.masses.sum()
        if not gone.any():
            return replace(self, clusters=shrunk, lost=lost)
        # rows that are gone may have been the reason of the floor
        return replace(self, clusters=shrunk[~gone], floor=0.0, lost=lost + float(shrunk.masses[gone].sum()))

    # -- what it is for -----------------------------------------------------------------------------------------------------

    def with_floor_of(self, rows: Array) -> OnlineKCenter:
        """With a higher floor, where rows of the stream tell one: k + 1 points at some distance need a radius of half of it."""
        places = np.concatenate([self.centres, rows])
        order = FarthestFirst(places, self._frame(places), 0, self._metric)
        order.extend(self.k + 1)
        if len(order.indices) <= self.k:
            return self
        return replace(self, floor=max(self.floor, 0.5 * float(self._apart(places[order.indices]).min())))

    def wanted(self, places: Array, size: int) -> list[int]:
        """Centres to take in place of the last of ``size`` places, so that no row lies farther from all of them than promised.

        One after the other, the centre whose rows may lie farthest; the last place goes for each. O(c·m·d) in all. Promised is
        the factor times the best radius, or what the centres themselves have.
        """
        frame, limit = self._frame(self.centres), max(FACTOR * self.floor, self.radius) * (1 + ROUNDING)
        centres = frame.apply(self.centres)
        to_places = np.minimum.accumulate(cdist(centres, frame.apply(places[:size]), self._norm), axis=1)
        to_chosen = np.full(len(centres), np.inf)
        chosen: list[int] = []
        while True:
            left = min(size - len(chosen), len(places))
            beyond = self.clusters.reach + (np.minimum(to_chosen, to_places[:, left - 1]) if left > 0 else to_chosen)
            worst = int(np.argmax(beyond))
            if beyond[worst] <= limit or worst in chosen:
                return chosen
            chosen.append(worst)
            to_chosen = np.minimum(to_chosen, cdist(centres[worst : worst + 1], centres, self._norm)[0])

    def of_atoms(self, atoms: Array) -> tuple[float, float]:
        """The covering radius of other atoms, and Σ w‖φ(·, x) − φ(·, nearest)‖ / Σ w, both at most."""
        mine, step = self.clusters, self._nearest(self.centres, atoms)[1]
        moved = float((mine.chords + mine.masses * self._chord(step)).sum())
        return float((mine.reach + step).max()), (moved + np.sqrt(2.0) * self.lost) / (float(mine.masses.sum()) + self.lost)

    def of_mean(self, small: KernelMean) -> float:
        """How far a mean of few atoms is from that of the rows, at most, whatever its weights: by way of the centres."""
        mine = self.clusters
        mass = float(mine.masses.sum()) + self.lost
        places = np.concatenate([self.centres, small.atoms])
        signed = np.concatenate([mine.masses / mass, -small.weights])
        square = float(signed @ self.kernel.product_sums(places, signed, places))
        rounding = 8 * np.finfo(float).eps * float(np.abs(signed).sum()) ** 2
        return (float(mine.chords.sum()) + self.lost) / mass + float(np.sqrt(max(square, 0.0) + rounding))
