"""Layouts: a place in few dimensions for each bag, from distances alone, and for a bag that comes later.

`IsomapLayout`
          scikit-learn's, on the distances as given: distances along the graph of neighbours, then classical scaling of these
          (Tenenbaum, de Silva & Langford 2000). A later bag is joined to the graph by its own neighbours and projected onto the
          axes found (the Nyström formula), which scikit-learn's transform does for given distances as well. A fitted bag lands
          exactly on its place, since its distance to itself is 0.
`StressLayout`
          metric scaling: scikit-learn's SMACOF, which minimises Σ (‖z_i − z_j‖ − D_ij)², started from classical scaling, so that no
          chance is involved and similar distances give similar maps. A later bag goes where its own part of the stress is
          least, the others held fast. In a minimum each bag is where its own part is least, so a fitted one finds its place
          again. (Gower's formula places by classical scaling, which is another map; it is only where the search starts.)

O(N³) for Isomap, O(N²) a step for the stress, O(N) a step for a later bag.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod

import numpy as np
from scipy.optimize import least_squares
from scipy.sparse import SparseEfficiencyWarning
from sklearn import manifold

from reduset._types import Array

STEPS, SETTLED = 3000, 1e-9


class Layout(ABC):
    """Places of the bags fitted, (N, k), and of others."""

    places: Array

    @abstractmethod
    def place(self, distances: Array) -> Array:
        """The places of later bags, (M, k), from their distances to the fitted ones, (M, N)."""


class IsomapLayout(Layout):
    """Isomap: along the graph of the ``n_neighbors`` nearest neighbours."""

    def __init__(self, distances: Array, n_components: int, n_neighbors: int) -> None:
        neighbours = min(n_neighbors, len(distances) - 1)
        self._isomap = manifold.Isomap(n_neighbors=neighbours, n_components=n_components, metric="precomputed")
        with warnings.catch_warnings():  # how the graph is stored while its components are joined is no concern of a user
            warnings.simplefilter("ignore", SparseEfficiencyWarning)
            self.places = self._isomap.fit_transform(distances)

    def place(self, distances: Array) -> Array:
        return np.asarray(self._isomap.transform(distances))


class StressLayout(Layout):
    """Metric multidimensional scaling: distances on the map as close as possible to those given, in the sum of squares."""

    def __init__(self, distances: Array, n_components: int) -> None:
        self._classical = _ClassicalScaling(distances, n_components)
        if not distances.any():  # bags that all coincide, which SMACOF would divide by
            self.places = np.zeros((len(distances), n_components))
            return
        places, _ = manifold.smacof(
            distances, n_components=n_components, init=self._classical.places, n_init=1, max_iter=STEPS, eps=SETTLED
        )
        self.places = np.asarray(places)

    def place(self, distances: Array) -> Array:
        return np.stack([self._place_one(row) for row in distances])

    def _place_one(self, wanted: Array) -> Array:
        def gaps(z: Array) -> Array:
            return np.linalg.norm(z - self.places, axis=1) - wanted

        # the stress of one point may have several valleys: beside its nearest bags, and where classical scaling puts it
        nearest = self.places[np.argsort(wanted, kind="stable")[:3]]
        starts = [*nearest, nearest.mean(axis=0), self._classical.place(wanted)]
        found = [least_squares(gaps, start) for start in starts]
        return np.asarray(min(found, key=lambda each: each.cost).x)


class _ClassicalScaling:
    """Classical scaling (Torgerson), and Gower's formula for a later point."""

    def __init__(self, distances: Array, n_components: int) -> None:
        self._squares = distances**2
        centred = self._squares - self._squares.mean(axis=0)
        centred = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
        values, vectors = np.linalg.eigh((centred + centred.T) / 2)
        values, vectors = np.maximum(values[::-1][:n_components], 0.0), vectors[:, ::-1][:, :n_components]
        signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(n_components)])  # eigenvectors come with either
        self._axes, self._lengths = vectors * signs, np.sqrt(values)
        self.places: Array = self._axes * self._lengths

    def place(self, wanted: Array) -> Array:
        lengths = np.where(self._lengths > 0, self._lengths, np.inf)
        return np.asarray(0.5 * (self._squares.mean(axis=0) - wanted**2) @ self._axes / lengths)


LAYOUTS = ("isomap", "mds")


def lay_out(name: str, distances: Array, n_components: int, n_neighbors: int) -> Layout:
    """The layout of that name."""
    return IsomapLayout(distances, n_components, n_neighbors) if name == "isomap" else StressLayout(distances, n_components)
