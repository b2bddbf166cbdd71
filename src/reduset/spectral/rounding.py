"""From the eigenfunctions of a walk to clusters: the relaxed cut rounded by k-means, by pivots, or by turning it onto indicators.

With ψ the slowest functions, 1 the constant one before them, k clusters that nothing connects make (1, ψ) constant on each, at k
places that are orthogonal to each other. Faintly connected, they are nearly so, and each way looks for these places:

    k-means     an atom with its stationary share, since the normalised cut is a weighted k-means (Shi & Malik 2000)
    pivots      k rows of (1, ψ) that are far from each other's span, by QR with pivoting, and the orthogonal matrix U nearest to
                them; |(1, ψ) U| is largest in the cluster's column (Damle, Minden & Ying 2019, "cluster_qr"). Nothing is drawn
    indicators  rows of (1, ψ) of unit length, turned by an orthogonal R towards columns of 0 and 1: R and the indicators in turn
                (Yu & Shi 2003, "discretize"), an atom with the mass of its rows

An atom stands for rows that share its place, so that pivots need no mass. All three tell the cluster of any point from its ψ by one
linear map. O(m·k²) a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from sklearn.cluster import KMeans

from reduset._types import Array
from reduset.spectral.graph import RandomWalk

MOST_TURNS = 100  # of indicators; a few are enough where there are clusters


@dataclass(frozen=True)
class Rounding:
    """A point belongs to the cluster c of the largest Σⱼ ψⱼ Mⱼ꜀ + h꜀, of either sign where ``unsigned``.

    Attributes
    ----------
    matrix : (k, c) M; functions beyond the k first are not looked at
    heights : (c,) h
    """

    matrix: Array
    heights: Array
    unsigned: bool = False

    def labels(self, functions: Array) -> NDArray[np.int64]:
        """(q,) clusters of points with the values ``functions``, (q, ≥ k)."""
        values = functions[:, : len(self.matrix)] @ self.matrix + self.heights
        return np.argmax(np.abs(values) if self.unsigned else values, axis=1)


def by_kmeans(walk: RandomWalk, clusters: int, starts: int, seed: int, verbose: int = 0) -> Rounding:
    """The nearest of the centres of k-means, the best of ``starts``."""
    found = KMeans(clusters, n_init=starts, random_state=seed, verbose=verbose)
    centres = found.fit(walk.functions, sample_weight=walk.stationary * len(walk.stationary)).cluster_centers_
    centres = centres[np.lexsort(centres.T[::-1])]  # so that labels do not depend on how k-means numbered them
    return Rounding(centres.T, -(centres**2).sum(axis=1) / 2)


def by_pivots(walk: RandomWalk, clusters: int) -> Rounding:
    """The most of the places that pivots found."""
    places = _places(walk, clusters)
    pivots = qr(places.T, mode="r", pivoting=True, check_finite=False)[1][:clusters]
    left, _, right = svd(places[pivots].T, check_finite=False)
    return _turned(left @ right, unsigned=True)


def by_indicators(walk: RandomWalk, masses: Array, clusters: int, starts: int, rng: np.random.Generator) -> Rounding:
    """The most of the columns that are nearest to indicators, the best of ``starts``."""
    places = _places(walk, clusters)
    places = places / np.linalg.norm(places, axis=1, keepdims=True)
    tries = [_turns(places, masses, _far_places(places, masses, rng)) for _ in range(starts)]
    return _turned(max(tries, key=lambda each: each[0])[1])


def _places(walk: RandomWalk, clusters: int) -> Array:
    """(m, clusters) values of the constant function and of the slowest ones."""
    return np.column_stack([np.ones(len(walk.functions)), walk.functions[:, : clusters - 1]])


def _turned(turn: Array, unsigned: bool = False) -> Rounding:
    return Rounding(turn[1:], turn[0], unsigned)  # the constant function is 1 at every point


def _far_places(places: Array, masses: Array, rng: np.random.Generator) -> Array:
    """(k, k) places in columns: one drawn by mass, then always the one that is the most orthogonal to those before."""
    k = places.shape[1]
    columns, along = np.empty((k, k)), np.zeros(len(places))
    columns[:, 0] = places[rng.choice(len(places), p=masses / masses.sum())]
    for j in range(1, k):
        along += np.abs(places @ columns[:, j - 1])
        columns[:, j] = places[np.argmin(along)]
    return columns


def _turns(places: Array, masses: Array, turn: Array) -> tuple[float, Array]:
    """How much of the mass the nearest indicators hold, and the orthogonal matrix that turns the places towards them."""
    labels, held = np.full(len(places), -1), 0.0
    for _ in range(MOST_TURNS):
        before, labels = labels, np.argmax(places @ turn, axis=1)
        if np.array_equal(labels, before):
            break
        indicators = np.zeros_like(places)
        indicators[np.arange(len(places)), labels] = masses
        left, values, right = svd(indicators.T @ places, check_finite=False)
        held, turn = float(values.sum()), (left @ right).T
    return held, turn
