"""Moments of a Gaussian mean: nearly all that there is to know of it, where its rows lie within few bandwidths of each other.

exp(−|u − v|²/2) = Σ e_α(u) e_α(v) over all powers α, with e_α(u) = exp(−|u|²/2) u^α / √α!. So the e_α(u) are the coordinates of the
bump at u in an orthonormal basis, and their sums over the rows are those of f: added up row by row they are exact, and κ is known
at every place there is, those included that become atoms long after the rows went by. Interpolation between sites cannot do that:
beyond the hull of the rows so far its coefficients grow, and with them the rounding, to some 10⁻¹⁰ of κ and 10⁻⁷ of the result.

Of its energy a bump at distance r has e^{−r²} r^{2k} / k! in degree k, a Poisson law of mean r². What it has beyond the degree that
is kept is the tail of that law. It is summed over the rows, and moments that lose more than rounding are given up: in many
dimensions, or at narrow bandwidths, there are none from the first chunk on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.special import gammainc

from reduset._types import Array, Indices

PER_ATOM = 8  # moments for each atom, at most
DEGREES = 120  # at most; powers are then far from overflow
TABLE = 1 << 21  # entries of the array in which moments are moved to another origin, at most
LOST = 1e-8  # norm per mass: what may lie beyond the degree; weights solved from a Gram matrix seldom do better
FAR = 0.25  # of the origin from the middle of the rows, where it is moved
ROOM = 4.0  # times as far as the rows of the first chunk: where others may come
ROWS = 512  # at once, so that their powers stay in the cache


@dataclass(frozen=True)
class GaussianMoments:
    """Σ w e_α(u) for all powers up to a degree, in coordinates where the inner product of bumps is exp(−|u − v|²/2).

    Attributes
    ----------
    degree : of the powers
    origin : (d,) about which they are
    values : (T,) in the order of `Terms`
    lost : Σ w times the norm of what each bump has beyond the degree, so at least the norm of what f has there
    """

    degree: int
    origin: Array
    values: Array
    lost: float = 0.0

    @property
    def dimension(self) -> int:
        return len(self.origin)

    @classmethod
    def for_rows(cls, coordinates: Array, weights: Array, size: int) -> GaussianMoments | None:
        """Of no rows yet, of a degree that fits rows like these and some farther out; None where so many moments are too many."""
        d, squares = coordinates.shape[1], np.square(coordinates).sum(axis=1)
        degree = 0
        far = ROOM**2 * float(squares.max())
        while degree < DEGREES and _beyond(degree, far) > LOST and fits(degree + 1, d, size):
            degree += 1
        if not (fits(degree, d, size) and float(weights @ _beyond(degree, squares)) <= LOST * float(weights.sum())):
            return None
        return cls(degree, np.zeros(d), np.zeros(comb(degree + d, d)))

    def absorb(self, coordinates: Array, weights: Array) -> GaussianMoments:
        """After more rows."""
        own = coordinates - self.origin
        terms = Terms.of(self.dimension, self.degree)
        sums = np.zeros(terms.known.shape)
        for start in range(0, len(weights), ROWS):
            some = slice(start, start + ROWS)
            one, other = terms.halves(own[some])
            sums += one @ (other * weights[some]).T
        lost = float(weights @ _beyond(self.degree, np.square(own).sum(axis=1)))
        return replace(self, values=self.values + (sums / terms.roots)[terms.known], lost=self.lost + lost)

    def at(self, coordinates: Array) -> Array:
        """κ at any places."""
        terms = Terms.of(self.dimension, self.degree)
        table = np.zeros(terms.known.shape)
        table[terms.known] = self.values
        one, other = terms.halves(coordinates - self.origin)
        return np.asarray(np.einsum("ij,ij->j", one, (table / terms.roots) @ other))

    def unless_lost(self, mass: float) -> GaussianMoments | None:
        """These, unless more than rounding is lost of rows of that mass."""
        return self if self.lost <= LOST * mass else None

    def blank(self) -> GaussianMoments:
        """Of no rows."""
        return replace(self, values=np.zeros(len(self.values)), lost=0.0)

    def faded(self, factor: float) -> GaussianMoments:
        """After all weights shrank by a factor."""
        return replace(self, values=self.values * factor, lost=self.lost * factor)

    def merge(self, other: GaussianMoments) -> GaussianMoments:
        """Of both parts, about the origin of this one; where they have that and a degree in common, their sum."""
        degree = max(self.degree, other.degree)
        one, two = self.moved(self.origin, degree), other.moved(self.origin, degree)
        if two.lost == np.inf:
            return two
        return replace(one, values=one.values + two.values, lost=one.lost + two.lost)

    def around(self, low: Array, high: Array, mass: float) -> GaussianMoments:
        """About the middle of the box in which all rows lie, so that more may come from any side.

        Not where the origin is near it; nor where that would lose some of the rows so far, of that mass, for the sake of others.
        """
        middle = (low + high) / 2
        if float(np.linalg.norm(middle - self.origin)) <= FAR:
            return self
        return self.moved(middle, self.degree).unless_lost(mass) or self

    def moved(self, origin: Array, degree: int) -> GaussianMoments:
        """Of the same rows about another origin, of another degree.

        e_j(u + δ) changes with δ by √j e_{j−1} − √(j+1) e_{j+1}: the exponential of that matrix, applied to each axis, which is a
        rotation and magnifies no rounding. What it leaves beyond the degree is known, and counts as lost; from too far it is all.
        """
        if degree == self.degree and np.array_equal(origin, self.origin):
            return self
        if not np.square(origin - self.origin).sum() < degree:
            return replace(self, lost=np.inf)
        d, width = self.dimension, 2 * (degree + 1)
        table = np.zeros((width,) * d)
        table[tuple(Terms.of(d, self.degree).exponents.T)] = self.values
        step = np.diag(np.sqrt(np.arange(1.0, width)), -1)
        for axis, delta in enumerate(self.origin - origin):
            table = np.moveaxis(np.tensordot(expm(delta * (step - step.T)), table, axes=(1, axis)), 0, axis)
        inside = tuple(Terms.of(d, degree).exponents.T)
        values = table[inside]
        table[inside] = 0.0
        return GaussianMoments(degree, origin, values, self.lost + float(np.linalg.norm(table)))


def _beyond(degree: int, squares: Array | float) -> Array:
    """The norm of what bumps at these squared distances have beyond a degree."""
    return np.asarray(np.sqrt(gammainc(degree + 1, squares)))


def fits(degree: int, dimension: int, size: int) -> bool:
    """Whether there may be so many moments for that many atoms."""
    return comb(degree + dimension, dimension) <= PER_ATOM * size and (2 * degree + 2) ** dimension <= TABLE


@dataclass(frozen=True)
class Terms:
    """The powers up to a degree, as products of one of the first half of the axes and one of the other half.

    So the sums over rows are a product of two matrices, much quicker than power by power, of which not all is looked at.

    Attributes
    ----------
    known : (a, b) mask of the products up to the degree; their order is that of the values
    roots : (a, b) √α!
    exponents : (T, d)
    """

    dimension: int
    degree: int
    known: NDArray[np.bool_]
    roots: Array
    exponents: Indices

    @classmethod
    @cache
    def of(cls, dimension: int, degree: int) -> Terms:
        one, other = _exponents(dimension // 2, degree), _exponents(dimension - dimension // 2, degree)
        known = one.sum(axis=1)[:, None] + other.sum(axis=1) <= degree
        root = np.cumprod(np.sqrt(np.maximum(np.arange(degree + 1.0), 1.0)))
        rows, columns = np.nonzero(known)
        exponents = np.concatenate([one[rows], other[columns]], axis=1)
        return cls(dimension, degree, known, root[one].prod(axis=1)[:, None] * root[other].prod(axis=1), exponents)

    def halves(self, coordinates: Array) -> tuple[Array, Array]:
        """exp(−|u|²/2) u^α of each half of the axes, (a, n) and (b, n)."""
        columns = np.ascontiguousarray(coordinates.T)
        half = self.dimension // 2
        return _powers(columns[:half], self.degree), _powers(columns[half:], self.degree)


def _steps(axes: int, degree: int) -> Iterator[tuple[slice, slice, int]]:
    """How powers are made, a degree at a time: which, from which of one degree less, times which axis, the first that they have."""
    starts, end = [0] * axes, 1  # of the powers without the axes before each
    for _ in range(degree if axes else 0):
        last, begins = end, []
        for axis, start in enumerate(starts):
            begins.append(end)
            yield slice(end, end + last - start), slice(start, last), axis
            end += last - start
        starts = begins


def _powers(columns: Array, degree: int) -> Array:
    """exp(−|u|²/2) u^α for all powers of some axes up to a degree, (a, n)."""
    axes = len(columns)
    powers = np.empty((comb(degree + axes, axes), columns.shape[1]))
    powers[0] = np.exp(-0.5 * np.square(columns).sum(axis=0))
    for these, those, axis in _steps(axes, degree):
        np.multiply(powers[those], columns[axis], out=powers[these])
    return powers


def _exponents(axes: int, degree: int) -> Indices:
    """(a, axes), in the order of `_powers`."""
    exponents = np.zeros((comb(degree + axes, axes), axes), np.int64)
    for these, those, axis in _steps(axes, degree):
        exponents[these] = exponents[those]
        exponents[these, axis] += 1
    return exponents
