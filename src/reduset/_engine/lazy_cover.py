"""Exact farthest-first traversal of many rows, lazily and by matrix products, on a processor or a GPU.

A distance to the nearest centre only shrinks, so that an old one is an upper bound. A round updates the rows with the largest
bounds, for all centres added since their last update. The farthest of them, a few thousand *candidates*, are then compared in
double precision. Centres are chosen among them as long as the farthest exceeds the largest bound of all other rows. Choices follow
the definition: squared differences are added in order in double precision, and the lowest row wins a tie.

Most rows are updated only a few times in all instead of once per centre. A round also reads the bounds of all rows, 4 bytes each.
O(n·m·d) operations at worst. Bounds include the rounding error of single precision.

Rows have any floating type and come from an array, a mapped file or a GPU. A `RowStore` does the computations. With cosine
distances, rows are divided by their length, and distances are Euclidean on the unit sphere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reduset._engine.threads import blocks
from reduset._types import Array, Indices, Report

MIN_CANDIDATES = 256
SAMPLED = 1 << 16  # bounds in a sample for an estimate of their quantile
UNIT = 2.0**-24  # rounding of single precision
TINY = 1e-33  # smaller squares may underflow in single precision
GROWTH = 4
OFFSET = 4.0  # squared distance of the mean centre from 0, relative to the scatter, above which the mean is subtracted


class RowStore(Protocol):
    """Rows on some device, with the computations on them.

    Attributes
    ----------
    arrays : numpy or cupy
    max_memory : bytes that computations may use in addition to the rows, infinite on a GPU
    loaded : bytes of rows that were loaded for the computation
    entries : largest size of a matrix product of rows and centres
    candidates : number of rows among which centres are chosen
    first_rows : number of rows updated first in a round; four times as many if too few remain far
    max_full_update : multiplications up to which rows are compared with all centres, not only with the missing ones
    """

    arrays: Any
    count: int
    dimension: int
    max_memory: float
    loaded: int
    entries: int
    candidates: int
    first_rows: int
    max_full_update: int

    def at_work(self) -> AbstractContextManager[Any]:
        """Context for computations: selects the device and converts its errors."""
        ...

    def take(self, rows: Any) -> Any:
        """(k, d) these rows, in their type."""
        ...

    def among(self, rows: Indices) -> RowStore:
        """Some rows of the store."""
        ...

    def parts(self, length: int) -> Iterator[tuple[int, int, Any]]:
        """All rows, at most ``length`` at a time, with the numbers of the first and after the last."""
        ...

    def update_bounds(self, rows: Any, centres: Any, cosine: bool, bounds: Any) -> None:
        """Lower the bounds (n,) of squared distances to the nearest centre for new centres (c, d). ``rows`` None means all rows."""
        ...

    def products(self, rows: Any, centres: Any) -> Any:
        """(k, c) inner products of rows and centres in single precision."""
        ...

    def leading_scores(self, rows: Any, centres: Any, squares: Any, cosine: bool) -> tuple[Any, Any, Any]:
        """(k,) the nearest centre by products in single precision, its score, and the second largest score.

        The score is the product divided by the length of the centre, or minus half of ``squares``, the squared length.
        """
        ...

    def distances(self, candidates: Any, centres: Any) -> Any:
        """(k,) the least squared distance of (d, k) candidates to (c, d) centres, by the definition."""
        ...

    def choose(self, candidates: Any, distances: Any, floor: float, limit: int) -> tuple[Any, Any, float]:
        """Choose while the largest distance is at least ``floor``. Return positions and distances of the choices, and the largest
        distance left.

        ``distances``, (k,), are updated; the first of equal ones is chosen.
        """
        ...


class LazyCover:
    """A traversal that can be continued: `extend` chooses centres up to a number, or until all rows are near.

    Attributes
    ----------
    indices : the rows chosen, in order
    distances : the squared distance of each when it was chosen
    count : number of centres, with those given at the start
    """

    def __init__(self, place: RowStore, cosine: bool = False) -> None:
        self.place, self.cosine = place, cosine
        self.indices: list[int] = []
        self.distances: list[float] = []
        self.count = 0
        xp = place.arrays
        with place.at_work():
            self._bounds = xp.full(place.count, xp.inf, xp.float32)
        self._seen: Any = None  # number of centres applied to each row, after the first round
        self._centres: list[Any] = []  # blocks of centres, in the type of the rows,
        self._exact: list[Any] = []  # and in the coordinates of the definition

    def add(self, centres: Any) -> None:
        """Add (c, d) centres, which may be other points than rows and of another type."""
        with self.place.at_work():
            self._centres.append(centres if centres.dtype.itemsize <= 4 else centres.astype(self.place.arrays.float32))
            self._exact.append(self.defining(centres))
        self.count += len(centres)

    def add_rows(self, rows: Indices) -> None:
        """Add rows as centres."""
        with self.place.at_work():
            self.add(self.place.take(self.place.arrays.asarray(rows)))

    def extend(self, limit: int, squared_radius: float = 0.0, report: Report | None = None) -> float:
        """Choose up to ``limit`` more centres, until no row is farther than ``squared_radius``. Return the squared covering
        radius."""
        target = len(self.indices) + limit
        with self.place.at_work():
            while True:
                if report is not None:
                    report(len(self.indices), target)
                left, settled = self._round(target - len(self.indices), squared_radius)
                if settled:
                    return left

    def state(self) -> dict[str, NDArray[Any]]:
        """The chosen rows with their distances, and the bounds of all rows, for `restore`."""
        seen = np.zeros(self.place.count, np.int32) if self._seen is None else to_numpy(self._seen)
        return {
            "indices": np.array(self.indices, np.int64),
            "distances": np.array(self.distances),
            "bounds": to_numpy(self._bounds),
            "seen": seen,
        }

    def restore(self, indices: Indices, distances: Array, bounds: Array, seen: Indices) -> None:
        """Continue a traversal of the same rows from its state, after the same first centres were added."""
        if not len(indices):
            return
        self.add_rows(indices)
        if seen.max() > self.count:
            raise ValueError(f"seen must be at most the {self.count:,} centres, got {seen.max():,}")
        self.indices, self.distances = indices.tolist(), distances.tolist()
        with self.place.at_work():
            xp = self.place.arrays
            self._bounds, self._seen = xp.asarray(bounds, xp.float32), xp.asarray(seen, xp.int32)

    def _round(self, limit: int, squared_radius: float) -> tuple[float, bool]:
        """Update the farthest rows and choose among them. Return the largest squared distance left, and whether to stop."""
        rows, beyond = self._far_rows()
        rows, distances, rest = self._farthest(rows)
        candidates = self._candidates(rows)
        floor, top = max(beyond, rest, squared_radius), float(distances.max())
        if top == rest > max(beyond, squared_radius):  # several rows are at the same distance, so that the lowest row is chosen
            chosen, chosen_distances, left = self.place.choose(candidates, distances, rest, min(limit, 1))
        else:
            chosen, chosen_distances, left = self.place.choose(candidates, distances, float(np.nextafter(floor, np.inf)), limit)
        if len(chosen):
            self.indices += rows[chosen].tolist()
            self.distances += chosen_distances.tolist()
            self.add(self.place.take(rows[chosen]))
        self._store_distances(rows, distances)
        # No other row is farther than ``beyond`` and ``rest``, so that a larger remaining distance is the largest of all.
        return left, left > beyond and left >= rest and (len(chosen) == limit or left <= squared_radius or left == 0.0)

    def _far_rows(self) -> tuple[Any, float]:
        """Row numbers, ascending, that include the farthest row, and an upper bound on the squared distance of all other rows."""
        xp, count = self.place.arrays, self.place.first_rows
        if self._seen is None:
            self.place.update_bounds(None, xp.concatenate(self._centres), self.cosine, self._bounds)
            self._seen = xp.full(self.place.count, self.count, xp.int32)
        while True:
            least = self._estimated_bound(count)
            rows = xp.flatnonzero(self._bounds >= least)
            self._refresh(rows)
            rows = rows[self._bounds[rows] >= least]
            if least == 0.0 or len(rows) >= MIN_CANDIDATES:
                break
            count *= GROWTH
        if len(rows) > (most := self.place.candidates):
            bounds = self._bounds[rows]
            least = float(xp.partition(bounds, len(bounds) - most)[-most])
            rows = rows[bounds >= least]
        return rows, float(np.nextafter(np.float32(least), np.float32(-1))) if least > 0 else -1.0

    def _farthest(self, rows: Any) -> tuple[Any, Any, float]:
        """The farthest of the rows, with their distances and the largest distance of the remaining rows.

        Their number is limited; among equal distances the lowest rows are kept.
        """
        xp, most = self.place.arrays, self.place.candidates
        exact = xp.concatenate(self._exact)
        limit = GROWTH * most
        distances = [self.place.distances(self._candidates(rows[a:b]), exact) for a, b in blocks(len(rows), limit)]
        distances = distances[0] if len(distances) == 1 else xp.concatenate(distances)
        if len(rows) <= limit:
            return rows, distances, -1.0
        self._store_distances(rows, distances)
        rest = float(xp.partition(distances, len(distances) - most)[-most])
        chosen = xp.sort(xp.concatenate([xp.flatnonzero(distances > rest), xp.flatnonzero(distances == rest)[:most]]))
        return rows[chosen], distances[chosen], rest

    def _candidates(self, rows: Any) -> Any:
        """(d, k) rows by columns, in the coordinates of the definition."""
        return self.place.arrays.ascontiguousarray(self.defining(self.place.take(rows)).T)

    def _store_distances(self, rows: Any, distances: Any) -> None:
        """Store exact distances as bounds, rounded up to single precision."""
        xp = self.place.arrays
        bounds = distances.astype(xp.float32)
        self._bounds[rows] = xp.where(bounds < distances, xp.nextafter(bounds, xp.float32(xp.inf)), bounds)
        self._seen[rows] = self.count

    def _estimated_bound(self, count: int) -> float:
        """An estimate of the smallest of the ``count`` largest bounds; 0 if there are no more rows than that."""
        n, xp = self.place.count, self.place.arrays
        if count >= n:
            return 0.0
        sample = self._bounds[:: 1 + n // SAMPLED]
        position = min(int(len(sample) * (1 - count / n)), len(sample) - 1)
        return float(xp.partition(sample, position)[position])

    def _refresh(self, rows: Any) -> None:
        """Update rows with their missing centres. Rows with a similar number of missing centres are updated together."""
        xp = self.place.arrays
        centres = xp.concatenate(self._centres)
        if len(rows) * self.count * self.place.dimension <= self.place.max_full_update:
            self.place.update_bounds(rows, centres, self.cosine, self._bounds)
        else:
            missed = self.count - self._seen[rows]
            rows, missed = rows[missed > 0], missed[missed > 0]
            ages = xp.ceil(xp.log2(missed)).astype(xp.int8)
            for age in to_numpy(xp.unique(ages)).tolist():
                same_age = rows[ages == age]
                self.place.update_bounds(same_age, centres[int(self._seen[same_age].min()) :], self.cosine, self._bounds)
        self._seen[rows] = self.count

    def assignments(self, report: Report | None = None) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """(n,) the nearest centre of every row, the first among equals, and its distance."""
        by_blocks = getattr(self.place, "assignments", None)
        if by_blocks is not None:
            result: tuple[NDArray[np.int64], NDArray[np.float32]] = by_blocks(self)
            return result
        with self.place.at_work():
            return self._assignments(report)

    @property
    def centres(self) -> Any:
        """(c, d) all centres, in the coordinates of the definition."""
        return self.place.arrays.concatenate(self._exact)

    def forget_rows(self) -> None:
        """Keep the centres and drop the rows."""
        self._bounds = self._seen = self.place = None  # type: ignore[assignment]

    def _assignments(self, report: Report | None) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        xp, place = self.place.arrays, self.place
        centres, exact = xp.concatenate(self._centres), xp.concatenate(self._exact)
        middle = exact.mean(axis=0)
        is_offset = not self.cosine and float(xp.square(middle).sum()) > OFFSET * float(
            xp.square(exact - middle).sum(axis=1).mean()
        )
        if is_offset:  # a common offset of all rows would cost digits
            centres = (exact - middle).astype(xp.float32)
        single = centres.astype(xp.float32)
        squares = xp.einsum("ij,ij->i", single, single)
        assignments, distance = np.empty(place.count, np.int64), np.empty(place.count, np.float32)
        for a, b, part in place.parts(max(1, place.entries // max(len(centres), 2 * place.dimension))):
            exact_rows = self.defining(part)
            part = (exact_rows - middle).astype(xp.float32) if is_offset else part
            nearest = self._nearest(exact_rows, exact, part, centres, squares)
            exact_rows -= exact[nearest]
            assignments[a:b], distance[a:b] = to_numpy(nearest), to_numpy(xp.sqrt(xp.square(exact_rows).sum(axis=1)))
            if report is not None:
                report(b, place.count)
        return assignments, distance

    def _nearest(self, exact_rows: Any, exact: Any, rows: Any, centres: Any, squares: Any) -> Any:
        """(k,) the centre with the largest inner product minus half its square; double precision for close decisions."""
        xp, place = self.place.arrays, self.place
        single = rows.astype(xp.float32, copy=False)
        row_squares = xp.einsum("ij,ij->i", single, single)
        margin = _slack(place) * (2 * xp.sqrt(row_squares) if self.cosine else row_squares + squares.max()) + TINY
        nearest, best, second = place.leading_scores(rows, centres, squares, self.cosine)
        close_rows = xp.flatnonzero(second >= best - margin)
        if not len(close_rows):
            return nearest
        inner = place.products(rows[close_rows], centres)
        if self.cosine:
            inner /= xp.sqrt(squares)
        else:
            inner -= squares / 2
        which, centre = xp.nonzero(inner >= (inner.max(axis=1) - margin[close_rows])[:, None])
        distances = xp.empty(len(which))
        for a, b in blocks(len(which), max(1, place.entries // (2 * place.dimension))):
            distances[a:b] = xp.square(exact_rows[close_rows[which[a:b]]] - exact[centre[a:b]]).sum(axis=1)
        order = xp.lexsort(xp.stack([centre.astype(xp.float64), distances, which.astype(xp.float64)]))
        first = xp.concatenate([xp.ones(1, bool), which[order][1:] != which[order][:-1]])
        nearest[close_rows] = centre[order][first]
        return nearest

    def defining(self, rows: Any) -> Any:
        """Rows in the coordinates of the definition: double precision, of length 1 for the cosine."""
        return defining(rows, self.cosine)


def defining(rows: Any, cosine: bool) -> Any:
    """The same for any rows."""
    exact = rows.astype("float64")
    if cosine:
        exact /= np.sqrt((exact * exact).sum(axis=1))[:, None]  # of NumPy or CuPy
    return exact


def _slack(place: RowStore) -> float:
    """Twice the rounding error of d products and their sum in single precision, relative to |x|² + |c|²."""
    return (place.dimension + 8) * 4 * UNIT


def update_bounds_by_products(place: RowStore, rows: Any, centres: Any, cosine: bool, bounds: Any) -> None:
    """`RowStore.update_bounds` by |x|² + |c|² − 2x·c, with ``place.products`` in single precision."""
    xp = place.arrays
    single = centres.astype(xp.float32)
    squares = xp.einsum("ij,ij->i", single, single)
    slack = xp.float32(_slack(place))
    count = place.count if rows is None else len(rows)
    for a, b in blocks(count, max(1, place.entries // max(len(centres), place.dimension))):
        selected = slice(a, b) if rows is None else rows[a:b]
        part = place.take(selected)
        _, best, _ = place.leading_scores(part, centres, squares, cosine)
        part = part.astype(xp.float32, copy=False)
        row_squares = xp.einsum("ij,ij->i", part, part)
        if cosine:
            least = 2 - 2 * best / xp.sqrt(row_squares) + 2 * slack
        else:
            least = row_squares - 2 * best + slack * (row_squares + squares.max()) + xp.float32(TINY)
        bounds[selected] = xp.minimum(bounds[selected], xp.maximum(least, 0))


def to_numpy(values: Any) -> NDArray[Any]:
    return np.asarray(values.get() if hasattr(values, "get") else values)
