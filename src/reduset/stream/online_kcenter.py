"""A covering of a stream by k centres, in the order in which the rows happen to come: the doubling algorithm.

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
from reduset.kernels.base import RadialKernel
from reduset.mean import KernelMean
from reduset.stream.reservoir import FORGOTTEN

FACTOR = 8.0
GENTLE = (1.15, 1.4, 1.7)  # how far τ tries to grow before it doubles
ROUNDING = 1e-9
RESOLVED = 1e-6  # of the largest coordinate: what a ranking in float32 surely tells apart
ENTRIES = 1 << 21  # of a matrix of distances


@dataclass(frozen=True)
class Covering:
    """Centres and what they stand for.

    Attributes
    ----------
    centres : (c, d) rows of the stream
    masses : (c,) the weight of each one's rows
    chords : (c,) Σ w‖φ(·, x) − φ(·, c)‖ over them, at most
    reach : (c,) the farthest of them, at most
    threshold : τ
    floor : the best radius of a covering by ``most`` centres is at least this
    lost : weight that was forgotten with its centres
    """

    kernel: RadialKernel
    most: int
    centres: Array
    masses: Array
    chords: Array
    reach: Array
    threshold: float = 0.0
    floor: float = 0.0
    lost: float = 0.0

    @classmethod
    def empty(cls, kernel: RadialKernel, most: int, dimension: int) -> Covering:
        nothing = np.empty(0)
        return cls(kernel, most, np.empty((0, dimension)), nothing, nothing, nothing)

    @property
    def radius(self) -> float:
        """No row is farther than this from its centre."""
        return float(self.reach.max(initial=0.0))

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

    def distances(self, points: Array, others: Array) -> tuple[NDArray[np.int32], Array]:
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

    def absorb(self, points: Array, weights: Array) -> Covering:
        """After more rows."""
        nothing = np.zeros(len(points))
        return self._taken(points, weights, nothing, nothing)

    def _taken(self, points: Array, masses: Array, chords: Array, reach: Array) -> Covering:
        """After more places and what each stands for: a row for itself, a centre of another covering for its rows."""
        now = self if len(self.centres) else self._begun(points)
        owner, distance = now.distances(points, now.centres)
        while True:
            far = distance > now.threshold
            if not far.any():
                return now._credited(owner, distance, masses, chords, reach)
            if not far.all():
                near = ~far
                now = now._credited(owner[near], distance[near], masses[near], chords[near], reach[near])
                points, masses, chords, reach, distance = points[far], masses[far], chords[far], reach[far], distance[far]
            grown = now._grown(points, distance)
            now = grown if len(grown.centres) <= self.most else grown._raised()
            owner, distance = now.distances(points, now.centres)

    def _begun(self, points: Array) -> Covering:
        """Farthest-first among the first rows: within twice the best for these."""
        order = FarthestFirst(points, self._frame(points), 0, self._metric)
        order.extend(self.most + 1)
        chosen = np.asarray(points[order.indices], np.float64)
        zero = np.zeros(min(len(chosen), self.most))
        least = float(self._apart(chosen).min()) if len(chosen) > self.most else 0.0  # and no row is farther from the first k
        return replace(
            self,
            centres=chosen[: self.most],
            masses=zero,
            chords=zero,
            reach=zero,
            threshold=least * (1 + ROUNDING),
            floor=0.5 * least,
        )

    def _grown(self, points: Array, distance: Array) -> Covering:
        """With the farthest rows as centres until none is beyond τ, or there is one too many."""
        rest, Z = np.array(distance), self._frame(points).apply(points)
        added: list[int] = []
        while len(self.centres) + len(added) <= self.most:
            k = int(np.argmax(rest))
            if rest[k] <= self.threshold:
                break
            added.append(k)
            np.minimum(rest, cdist(Z[k : k + 1], Z, self._norm)[0], out=rest)
        zero = np.zeros(len(added))
        return replace(
            self,
            centres=np.concatenate([self.centres, np.asarray(points[added], np.float64)]),
            masses=np.concatenate([self.masses, zero]),
            chords=np.concatenate([self.chords, zero]),
            reach=np.concatenate([self.reach, zero]),
        )

    def _credited(self, owner: NDArray[np.int32], distance: Array, masses: Array, chords: Array, reach: Array) -> Covering:
        """With every place in the books of its owner."""
        c, farthest = len(self.centres), self.reach.copy()
        np.maximum.at(farthest, owner, distance + reach)
        return replace(
            self,
            masses=self.masses + np.bincount(owner, masses, c),
            chords=self.chords + np.bincount(owner, chords + masses * self._chord(distance), c),
            reach=farthest,
        )

    # -- giving centres up --------------------------------------------------------------------------------------------------

    def _raised(self) -> Covering:
        """With a threshold so large that at most ``most`` centres are left."""
        apart = self._apart(self.centres)
        floor = max(self.floor, 0.5 * float(apart.min()))
        # a little more, else a row that was given up at this very distance is found beyond it by another sum, for ever
        least = float(apart.min()) * (1 + ROUNDING)
        if least == 0:  # rows that differ by rounding alone
            least = ROUNDING**2 * float(apart.max(where=np.isfinite(apart), initial=1.0))
        for growth in GENTLE:
            candidate = self._thinned(growth * least, apart)
            if least > self.threshold and candidate.radius <= 2 * candidate.threshold and len(candidate.centres) <= self.most:
                return replace(candidate, floor=floor)
        return replace(self._thinned(max(2 * self.threshold, least), apart), floor=floor)

    def _apart(self, places: Array) -> Array:
        """Distances of places from each other, infinite on the diagonal."""
        Z = self._frame(places).apply(places)
        apart = cdist(Z, Z, self._norm)
        np.fill_diagonal(apart, np.inf)
        return apart

    def _thinned(self, threshold: float, apart: Array) -> Covering:
        """Without the centres within the threshold of one that is kept, the heaviest kept first."""
        kept: list[int] = []
        free = np.ones(len(apart), np.bool_)
        for k in np.argsort(-self.masses, kind="stable"):
            if free[k]:
                kept.append(int(k))
                free &= apart[k] > threshold
        return replace(self._given_up_to(np.array(kept), apart), threshold=threshold)

    def _given_up_to(self, kept: NDArray[np.int64], apart: Array) -> Covering:
        """The books of all centres in those of the nearest that is kept."""
        near = apart[:, kept]
        near[kept, np.arange(len(kept))] = 0.0
        heir = np.argmin(near, axis=1)
        step = near[np.arange(len(near)), heir]
        c = len(kept)
        reach = np.zeros(c)
        np.maximum.at(reach, heir, self.reach + step)
        return replace(
            self,
            centres=self.centres[kept],
            masses=np.bincount(heir, self.masses, c).astype(np.float64),
            chords=np.bincount(heir, self.chords + self.masses * self._chord(step), c).astype(np.float64),
            reach=reach,
        )

    # -- merging and forgetting ---------------------------------------------------------------------------------------------

    def merge(self, other: Covering) -> Covering:
        """The covering of both parts: the other's centres come like rows, and bring their books with them."""
        if not len(other.centres):
            return replace(self, lost=self.lost + other.lost)
        both = replace(
            self,
            lost=self.lost + other.lost,
            # a best covering of all rows covers those of a part
            floor=max(self.floor, other.floor if other.most >= self.most else 0.0),
            threshold=max(self.threshold, other.threshold) if len(self.centres) else 0.0,
        )
        merged = both._taken(other.centres, other.masses, other.chords, other.reach)
        # rows to come may lie as far as the rows so far do, without harm to the radius
        return replace(merged, threshold=max(merged.threshold, other.threshold, 0.5 * merged.radius))

    def faded(self, factor: float) -> Covering:
        """After all weights shrank by a factor; centres of which hardly anything is left are let go."""
        shrunk = replace(
            self,
            masses=self.masses * factor,
            chords=self.chords * factor,
            lost=self.lost * factor,
        )
        gone = shrunk.masses < FORGOTTEN * shrunk.masses.sum()
        if not gone.any():
            return shrunk
        return replace(
            shrunk,
            centres=shrunk.centres[~gone],
            masses=shrunk.masses[~gone],
            chords=shrunk.chords[~gone],
            reach=shrunk.reach[~gone],
            floor=0.0,  # which rows that are gone may have been the reason of
            lost=shrunk.lost + float(shrunk.masses[gone].sum()),
        )

    # -- what it is for -----------------------------------------------------------------------------------------------------

    def allowed(self) -> float:
        """The radius that is promised: so many times the best, or what the centres themselves have."""
        return max(FACTOR * self.floor, self.radius)

    def sharpened(self, rows: Array) -> Covering:
        """With a higher floor, where rows of the stream tell one: k + 1 points at some distance need a radius of half of it."""
        places = np.concatenate([self.centres, rows])
        order = FarthestFirst(places, self._frame(places), 0, self._metric)
        order.extend(self.most + 1)
        if len(order.indices) <= self.most:
            return self
        return replace(self, floor=max(self.floor, 0.5 * float(self._apart(places[order.indices]).min())))

    def wanted(self, places: Array, size: int) -> list[int]:
        """Centres to take in place of the last of ``size`` places, so that no row lies farther from all of them than allowed.

        One after the other, the centre whose rows may lie farthest; the last place goes for each. O(c·m·d) in all.
        """
        frame, limit = self._frame(self.centres), self.allowed() * (1 + ROUNDING)
        centres = frame.apply(self.centres)
        to_places = np.minimum.accumulate(cdist(centres, frame.apply(places[:size]), self._norm), axis=1)
        to_chosen = np.full(len(centres), np.inf)
        chosen: list[int] = []
        while True:
            left = min(size - len(chosen), len(places))
            beyond = self.reach + (np.minimum(to_chosen, to_places[:, left - 1]) if left > 0 else to_chosen)
            worst = int(np.argmax(beyond))
            if beyond[worst] <= limit or worst in chosen:
                return chosen
            chosen.append(worst)
            to_chosen = np.minimum(to_chosen, cdist(centres[worst : worst + 1], centres, self._norm)[0])

    def of_atoms(self, atoms: Array) -> tuple[float, float]:
        """The covering radius of other atoms, and Σ w‖φ(·, x) − φ(·, nearest)‖ / Σ w, both at most."""
        step = self.distances(self.centres, atoms)[1]
        moved = float((self.chords + self.masses * self._chord(step)).sum())
        return float((self.reach + step).max()), (moved + np.sqrt(2.0) * self.lost) / (float(self.masses.sum()) + self.lost)

    def of_mean(self, small: KernelMean) -> float:
        """How far a mean of few atoms is from that of the rows, at most, whatever its weights: by way of the centres."""
        mass = float(self.masses.sum()) + self.lost
        places = np.concatenate([self.centres, small.atoms])
        signed = np.concatenate([self.masses / mass, -small.weights])
        square = float(signed @ self.kernel.product_sums(places, signed, places))
        rounding = 8 * np.finfo(float).eps * float(np.abs(signed).sum()) ** 2
        return (float(self.chords.sum()) + self.lost) / mass + float(np.sqrt(max(square, 0.0) + rounding))
