"""Exact farthest-first traversal of many rows, lazily and by matrix products, on a processor or a GPU.

A distance to the nearest centre only ever shrinks, so an old one is a bound. A round brings up to date the rows whose bounds are
largest, all centres that they have missed at once; those that are still far, some thousand *candidates*, are brought to double
precision, and centres are chosen among them until the farthest is no farther than the largest bound of all other rows. The choice
is the definition's own: squared differences added in double precision one after the other, the lowest row of equals.

Most rows are never the farthest, so that they are looked at a few times in all instead of once a centre; a round looks at the
bounds of all rows, 4 bytes each. O(n·m·d) arithmetic at worst. Bounds hold in spite of rounding: what single precision may be wrong
by is added to them.

Rows come in any floating type, from an array, a file that is mapped, or a GPU: a `RowPlace` says what computes. With cosine
distances rows are divided by their length, and distances are those on the sphere.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reduset._engine.threads import blocks
from reduset._types import Indices, Report

CANDIDATES, FEWEST = 4096, 256  # rows among which centres are chosen
SAMPLED = 1 << 16  # bounds by which the largest of all are guessed
UNIT = 2.0**-24  # the rounding of single precision
TINY = 1e-33  # squares below what single precision holds in full may be lost
GROWTH = 4
OFFSET = 4.0  # squared distance of all centres from 0, over their scatter, from which it is taken away first


class RowPlace(Protocol):
    """Where rows are, and what computes with them.

    Attributes
    ----------
    arrays : numpy or cupy
    entries : of one product of rows and centres, at most
    first_look : rows that are brought up to date at first in a round; four times as many where too few stay far
    at_once : multiplications from which it pays to show rows only the centres that they have missed
    """

    arrays: Any
    count: int
    dimension: int
    entries: int
    first_look: int
    at_once: int

    def at_work(self) -> AbstractContextManager[Any]:
        """While something is computed there: the device is the current one, and its errors are told in words."""
        ...

    def take(self, rows: Any) -> Any:
        """(k, d) these rows, in the type that they have."""
        ...

    def show(self, rows: Any, centres: Any, cosine: bool, bounds: Any) -> None:
        """Bring bounds, (n,), of squared distances to the nearest centre down to those to (c, d) centres, of some rows or all."""
        ...

    def products(self, rows: Any, centres: Any) -> Any:
        """(k, c) inner products of rows and centres in single precision."""
        ...

    def distances(self, candidates: Any, centres: Any) -> Any:
        """(k,) the least squared distance of (d, k) candidates to (c, d) centres, as the definition has it."""
        ...

    def choose(self, candidates: Any, distances: Any, floor: float, most: int) -> tuple[Any, Any, float]:
        """Choose while the farthest is no nearer than ``floor``: places of the chosen, their distances, and the largest distance
        left.

        ``distances``, (k,), are brought up to date; of equals the first is taken.
        """
        ...


class LazyCover:
    """A traversal that can be continued: `extend` chooses centres until there are so many, or all rows are near.

    Attributes
    ----------
    indices : the rows chosen, in order
    distances : the squared distance at which each was chosen
    count : how many centres there are, those given at the start among them
    """

    def __init__(self, place: RowPlace, cosine: bool = False) -> None:
        self.place, self.cosine = place, cosine
        self.indices: list[int] = []
        self.distances: list[float] = []
        self.count = 0
        xp = place.arrays
        with place.at_work():
            self._bounds = xp.full(place.count, xp.inf, xp.float32)
        self._seen: Any = None  # by row how many of the centres, once all have seen some
        self._centres: list[Any] = []  # blocks of centres, in the rows' own type,
        self._exact: list[Any] = []  # and as the definition has them

    def add(self, centres: Any) -> None:
        """Take (c, d) centres, which need not be rows, nor of their type."""
        with self.place.at_work():
            self._centres.append(centres if centres.dtype.itemsize <= 4 else centres.astype(self.place.arrays.float32))
            self._exact.append(self.defining(centres))
        self.count += len(centres)

    def add_rows(self, rows: Indices) -> None:
        """Take rows as centres."""
        with self.place.at_work():
            self.add(self.place.take(self.place.arrays.asarray(rows)))

    def extend(self, most: int, nearer: float = 0.0, report: Report | None = None) -> float:
        """Choose up to ``most`` more centres, until no row is farther than ``nearer``, squared; the squared covering radius."""
        target = len(self.indices) + most
        with self.place.at_work():
            while True:
                if report is not None:
                    report(len(self.indices), target)
                left, settled = self._round(target - len(self.indices), nearer)
                if settled:
                    return left

    def _round(self, most: int, nearer: float) -> tuple[float, bool]:
        """Bring the farthest rows up to date and choose among them: what is left, squared, and whether that is the end."""
        rows, beyond = self._far_rows()
        rows, distances, rest = self._farthest(rows)
        candidates = self._candidates(rows)
        floor, top = max(beyond, rest, nearer), float(distances.max())
        if top == rest > max(beyond, nearer):  # more rows are as far: the lowest of them
            chosen, at, left = self.place.choose(candidates, distances, rest, min(most, 1))
        else:
            chosen, at, left = self.place.choose(candidates, distances, float(np.nextafter(floor, np.inf)), most)
        if len(chosen):
            self.indices += rows[chosen].tolist()
            self.distances += at.tolist()
            self.add(self.place.take(rows[chosen]))
        self._know(rows, distances)
        # no other row is farther than these, so that what is left above them is left of all
        return left, left > beyond and left >= rest and (len(chosen) == most or left <= nearer or left == 0.0)

    def _far_rows(self) -> tuple[Any, float]:
        """Rows among which the farthest is, ascending, and a squared distance than which no other row is farther."""
        xp, look = self.place.arrays, self.place.first_look
        if self._seen is None:
            self.place.show(None, xp.concatenate(self._centres), self.cosine, self._bounds)
            self._seen = xp.full(self.place.count, self.count, xp.int32)
        while True:
            least = self._guess(look)
            rows = xp.flatnonzero(self._bounds >= least)
            self._refresh(rows)
            rows = rows[self._bounds[rows] >= least]
            if least == 0.0 or len(rows) >= FEWEST:
                break
            look *= GROWTH
        if len(rows) > CANDIDATES:
            bounds = self._bounds[rows]
            least = float(xp.partition(bounds, len(bounds) - CANDIDATES)[-CANDIDATES])
            rows = rows[bounds >= least]
        return rows, float(np.nextafter(np.float32(least), np.float32(-1))) if least > 0 else -1.0

    def _farthest(self, rows: Any) -> tuple[Any, Any, float]:
        """The farthest of rows, of those as far the lowest, not too many; their distances, and how far any of the rest is at
        most."""
        xp = self.place.arrays
        exact = xp.concatenate(self._exact)
        most = GROWTH * CANDIDATES
        distances = [self.place.distances(self._candidates(rows[a:b]), exact) for a, b in blocks(len(rows), most)]
        distances = distances[0] if len(distances) == 1 else xp.concatenate(distances)
        if len(rows) <= most:
            return rows, distances, -1.0
        self._know(rows, distances)
        rest = float(xp.partition(distances, len(distances) - CANDIDATES)[-CANDIDATES])
        chosen = xp.sort(xp.concatenate([xp.flatnonzero(distances > rest), xp.flatnonzero(distances == rest)[:CANDIDATES]]))
        return rows[chosen], distances[chosen], rest

    def _candidates(self, rows: Any) -> Any:
        """(d, k) rows by columns, as the definition has them."""
        return self.place.arrays.ascontiguousarray(self.defining(self.place.take(rows)).T)

    def _know(self, rows: Any, distances: Any) -> None:
        """Their exact distances are the bounds of rows, the least that single precision has room for."""
        xp = self.place.arrays
        bounds = distances.astype(xp.float32)
        self._bounds[rows] = xp.where(bounds < distances, xp.nextafter(bounds, xp.float32(xp.inf)), bounds)
        self._seen[rows] = self.count

    def _guess(self, look: int) -> float:
        """About the least of the ``look`` largest bounds; 0 where that is all of them."""
        n, xp = self.place.count, self.place.arrays
        if look >= n:
            return 0.0
        some = self._bounds[:: 1 + n // SAMPLED]
        place = min(int(len(some) * (1 - look / n)), len(some) - 1)
        return float(xp.partition(some, place)[place])

    def _refresh(self, rows: Any) -> None:
        """Show rows the centres that they have missed, those together that have missed about as many."""
        xp = self.place.arrays
        centres = xp.concatenate(self._centres)
        if len(rows) * self.count * self.place.dimension <= self.place.at_once:
            self.place.show(rows, centres, self.cosine, self._bounds)
        else:
            missed = self.count - self._seen[rows]
            rows, missed = rows[missed > 0], missed[missed > 0]
            ages = xp.ceil(xp.log2(missed)).astype(xp.int8)
            for age in to_numpy(xp.unique(ages)).tolist():
                own = rows[ages == age]
                self.place.show(own, centres[int(self._seen[own].min()) :], self.cosine, self._bounds)
        self._seen[rows] = self.count

    def owners(self, report: Report | None = None) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """(n,) the nearest centre of every row, the first of equals, and how far that is."""
        by_blocks = getattr(self.place, "owners", None)
        if by_blocks is not None:
            found: tuple[NDArray[np.int64], NDArray[np.float32]] = by_blocks(self)
            return found
        with self.place.at_work():
            return self._owners(report)

    def forget_rows(self) -> None:
        """Keep the centres alone."""
        self._bounds = self._seen = self.place = None  # type: ignore[assignment]

    def _owners(self, report: Report | None) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        xp, place = self.place.arrays, self.place
        centres, exact = xp.concatenate(self._centres), xp.concatenate(self._exact)
        middle = exact.mean(axis=0)
        far_off = not self.cosine and float(xp.square(middle).sum()) > OFFSET * float(xp.square(exact - middle).sum(axis=1).mean())
        if far_off:  # what all rows have in common would cost the digits in which they differ
            centres = (exact - middle).astype(xp.float32)
        single = centres.astype(xp.float32)
        squares = xp.einsum("ij,ij->i", single, single)
        owner, distance = np.empty(place.count, np.int64), np.empty(place.count, np.float32)
        for a, b in blocks(place.count, max(1, place.entries // max(len(centres), 2 * place.dimension))):
            some = place.take(slice(a, b))
            known = self.defining(some)
            some = (known - middle).astype(xp.float32) if far_off else some
            inner = place.products(some, centres)
            if self.cosine:
                inner /= xp.sqrt(squares)
            else:
                inner -= squares / 2
            own = self._nearest(inner, known, exact, some, squares)
            known -= exact[own]
            owner[a:b], distance[a:b] = to_numpy(own), to_numpy(xp.sqrt(xp.square(known).sum(axis=1)))
            if report is not None:
                report(b, place.count)
        return owner, distance

    def _nearest(self, inner: Any, known: Any, exact: Any, some: Any, squares: Any) -> Any:
        """(k,) the centre of the largest inner product, less half of its square; in double precision where rounding may decide."""
        xp, place = self.place.arrays, self.place
        own, single = inner.argmax(axis=1), some.astype(xp.float32, copy=False)
        mine = xp.einsum("ij,ij->i", single, single)
        margin = _slack(place) * (2 * xp.sqrt(mine) if self.cosine else mine + squares.max()) + TINY
        close = inner >= (xp.take_along_axis(inner, own[:, None], axis=1)[:, 0] - margin)[:, None]
        rows = xp.flatnonzero(close.sum(axis=1) > 1)
        if not len(rows):
            return own
        which, centre = xp.nonzero(close[rows])
        distances = xp.empty(len(which))
        for a, b in blocks(len(which), max(1, place.entries // (2 * place.dimension))):
            distances[a:b] = xp.square(known[rows[which[a:b]]] - exact[centre[a:b]]).sum(axis=1)
        order = xp.lexsort(xp.stack([centre.astype(xp.float64), distances, which.astype(xp.float64)]))
        first = xp.concatenate([xp.ones(1, bool), which[order][1:] != which[order][:-1]])
        own[rows] = centre[order][first]
        return own

    def defining(self, rows: Any) -> Any:
        """Rows as the definition has them: in double precision, of length 1 for the cosine."""
        xp = self.place.arrays
        exact = rows.astype(xp.float64)
        if self.cosine:
            exact /= xp.sqrt((exact * exact).sum(axis=1))[:, None]
        return exact


def _slack(place: RowPlace) -> float:
    """Twice what d products and their sums may be wrong by in single precision, as a share of |x|² + |c|²."""
    return (place.dimension + 8) * 4 * UNIT


def show_by_products(place: RowPlace, rows: Any, centres: Any, cosine: bool, bounds: Any) -> None:
    """`RowPlace.show` by |x|² + |c|² − 2x·c, from ``place.products(some, centres)`` in single precision."""
    xp = place.arrays
    single = centres.astype(xp.float32)
    squares = xp.einsum("ij,ij->i", single, single)
    slack = xp.float32(_slack(place))
    count = place.count if rows is None else len(rows)
    for a, b in blocks(count, max(1, place.entries // max(len(centres), place.dimension))):
        own = slice(a, b) if rows is None else rows[a:b]
        some = place.take(own)
        inner, some = place.products(some, centres), some.astype(xp.float32, copy=False)
        mine = xp.einsum("ij,ij->i", some, some)
        if cosine:
            inner /= xp.sqrt(squares)
            least = 2 - 2 * inner.max(axis=1) / xp.sqrt(mine) + 2 * slack
        else:
            inner *= -2
            inner += squares
            least = inner.min(axis=1) + mine + slack * (mine + squares.max()) + xp.float32(TINY)
        bounds[own] = xp.minimum(bounds[own], xp.maximum(least, 0))


def to_numpy(values: Any) -> NDArray[Any]:
    return np.asarray(values.get() if hasattr(values, "get") else values)
