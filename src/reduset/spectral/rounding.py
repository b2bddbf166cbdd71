"""Clusters from the eigenfunctions of a walk: k-means, pivots, or a rotation onto indicators.

Let ψ be the slowest eigenfunctions and 1 the constant eigenfunction. In a graph of k disconnected clusters, (1, ψ) has k orthogonal
values, one per cluster. With weak connections, this holds approximately. There are three methods to find these values:

- k-means ("kmeans"): The normalised cut is a weighted k-means (Shi & Malik 2000). So the stationary distribution weights the atoms.
- Pivots ("cluster_qr"): QR with pivoting selects k rows of (1, ψ), each far from the span of the others. Let U be the nearest
  orthogonal matrix to these rows. |(1, ψ) U| is largest in the cluster's column (Damle, Minden & Ying 2019). The result is
  deterministic.
- Indicators ("discretize"): An orthogonal matrix R rotates the rows of (1, ψ), scaled to unit length, towards 0/1 columns. The
  algorithm alternates between R and the indicators (Yu & Shi 2003). Atoms are weighted by their mass.

Pivots need no masses, because all rows of an atom have equal values. Each method labels any point by a linear map of its ψ. An
iteration costs O(m·k²).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from sklearn.cluster import KMeans

from reduset._types import Array
from reduset.spectral.graph import RandomWalk

MAX_ROTATIONS = 100  # Iterations of "discretize".


@dataclass(frozen=True)
class Rounding:
    """A linear map from eigenfunctions to clusters.

    A point belongs to the cluster c with the largest Σⱼ ψⱼ Mⱼ꜀ + h꜀. If ``unsigned``, the absolute values are compared.

    Attributes
    ----------
    matrix : (k, c)
        Matrix M. Only the first k functions are used.
    offsets : (c,)
        Offsets h.
    unsigned : bool
    """

    matrix: Array
    offsets: Array
    unsigned: bool = False

    def labels(self, functions: Array) -> NDArray[np.int64]:
        """(q,) clusters of points with the values ``functions``, (q, ≥ k)."""
        values = functions[:, : len(self.matrix)] @ self.matrix + self.offsets
        return np.argmax(np.abs(values) if self.unsigned else values, axis=1)


def kmeans_rounding(walk: RandomWalk, clusters: int, starts: int, seed: int, verbose: int = 0) -> Rounding:
    """Assign points to the nearest centre of k-means. The best of ``starts`` runs is used."""
    kmeans = KMeans(clusters, n_init=starts, random_state=seed, verbose=verbose)
    centres = kmeans.fit(walk.functions, sample_weight=walk.stationary * len(walk.stationary)).cluster_centers_
    centres = centres[np.lexsort(centres.T[::-1])]  # Labels do not depend on the order of k-means.
    return Rounding(centres.T, -(centres**2).sum(axis=1) / 2)


def pivot_rounding(walk: RandomWalk, clusters: int) -> Rounding:
    """Assign points to the largest coordinate after the rotation to the pivots."""
    values = _values(walk, clusters)
    pivots = qr(values.T, mode="r", pivoting=True, check_finite=False)[1][:clusters]
    left, _, right = svd(values[pivots].T, check_finite=False)
    return _rotation_rounding(left @ right, unsigned=True)


def indicator_rounding(walk: RandomWalk, masses: Array, clusters: int, starts: int, rng: np.random.Generator) -> Rounding:
    """Assign points to the largest coordinate after the rotation to indicators. The best of ``starts`` runs is used."""
    values = _values(walk, clusters)
    values = values / np.linalg.norm(values, axis=1, keepdims=True)
    trials = [_indicator_rotation(values, masses, _orthogonal_rows(values, masses, rng)) for _ in range(starts)]
    return _rotation_rounding(max(trials, key=lambda trial: trial[0])[1])


def _values(walk: RandomWalk, clusters: int) -> Array:
    """(m, clusters) values of the constant function and of the slowest eigenfunctions."""
    return np.column_stack([np.ones(len(walk.functions)), walk.functions[:, : clusters - 1]])


def _rotation_rounding(rotation: Array, unsigned: bool = False) -> Rounding:
    return Rounding(rotation[1:], rotation[0], unsigned)  # The constant function is 1 at every point.


def _orthogonal_rows(values: Array, masses: Array, rng: np.random.Generator) -> Array:
    """(k, k) rows as columns. The first is drawn by mass. Each next row is the most orthogonal to the previous rows."""
    k = values.shape[1]
    columns, overlap = np.empty((k, k)), np.zeros(len(values))
    columns[:, 0] = values[rng.choice(len(values), p=masses / masses.sum())]
    for j in range(1, k):
        overlap += np.abs(values @ columns[:, j - 1])
        columns[:, j] = values[np.argmin(overlap)]
    return columns


def _indicator_rotation(values: Array, masses: Array, rotation: Array) -> tuple[float, Array]:
    """The agreement of the nearest indicators with the rotated values, and the rotation."""
    labels, agreement = np.full(len(values), -1), 0.0
    for _ in range(MAX_ROTATIONS):
        before, labels = labels, np.argmax(values @ rotation, axis=1)
        if np.array_equal(labels, before):
            break
        indicators = np.zeros_like(values)
        indicators[np.arange(len(values)), labels] = masses
        left, singular, right = svd(indicators.T @ values, check_finite=False)
        agreement, rotation = float(singular.sum()), (left @ right).T
    return agreement, rotation
