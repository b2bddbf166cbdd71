"""Maps with a point in few dimensions for each bag, from distances alone; the alignment of two maps; and a scatter plot.

`IsomapLayout`
          scikit-learn's Isomap on the given distances: shortest paths in the graph of neighbours, then classical scaling
          (Tenenbaum, de Silva & Langford 2000). A later bag is joined to the graph by its own neighbours and projected onto the
          axes (the Nyström formula). A fitted bag gets exactly its point, because its distance to itself is 0.
`StressLayout`
          metric scaling by scikit-learn's SMACOF, which minimises Σ (‖z_i − z_j‖ − D_ij)². It starts from classical scaling, so it
          is deterministic, and similar distances give similar maps. The point of a later bag minimises its part of the stress, with
          the other points fixed. Gower's formula for classical scaling is one start of that search.

`procrustes` aligns two maps, which are determined up to a shift, a rotation or reflection, and a scale. Let A and B be the centred
maps, and AᵀB = UΣVᵀ. The minimum of ‖sAR − B‖ over rotations and reflections R and scales s is at R = UVᵀ and s = tr Σ / ‖A‖². The
correlation is tr Σ / (‖A‖ ‖B‖), and ‖sAR − B‖² = (1 − correlation²) ‖B‖².

O(N³) for Isomap, O(N²) a step for the stress, O(N) a step for a later bag, O(N k² + k³) for an alignment.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import least_squares
from scipy.sparse import SparseEfficiencyWarning
from sklearn import manifold

from reduset import _validate
from reduset._drawing import axes
from reduset._types import Array

MAX_STEPS, STRESS_TOLERANCE = 3000, 1e-9
LAYOUTS = ("isomap", "mds")
SHAPES = "osD^vP*X"  # markers that distinguish groups without colours


class IsomapLayout:
    """Isomap on the graph of the ``n_neighbors`` nearest neighbours."""

    def __init__(self, distances: Array, n_components: int, n_neighbors: int) -> None:
        neighbours = min(n_neighbors, len(distances) - 1)
        self._isomap = manifold.Isomap(n_neighbors=neighbours, n_components=n_components, metric="precomputed")
        with warnings.catch_warnings():  # the warning is about the storage of the graph, which users cannot change
            warnings.simplefilter("ignore", SparseEfficiencyWarning)
            self.points = self._isomap.fit_transform(distances)

    def place(self, distances: Array) -> Array:
        """The points of later bags, (M, k), from their distances to the fitted ones, (M, N)."""
        return np.asarray(self._isomap.transform(distances))


class StressLayout:
    """Metric multidimensional scaling: distances on the map are close to the given distances, in the sum of squares.

    It starts from classical scaling (Torgerson), with Gower's formula for a later point.
    """

    def __init__(self, distances: Array, n_components: int) -> None:
        self._squares = distances**2
        centred = self._squares - self._squares.mean(axis=0)
        centred = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
        values, vectors = np.linalg.eigh((centred + centred.T) / 2)
        values, vectors = np.maximum(values[::-1][:n_components], 0.0), vectors[:, ::-1][:, :n_components]
        signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(n_components)])  # eigenvectors have either sign
        self._axes, self._lengths = vectors * signs, np.sqrt(values)
        self.points: Array = np.zeros((len(distances), n_components))
        if distances.any():  # SMACOF would divide by 0 if all bags coincide
            start, steps = self._axes * self._lengths, {"max_iter": MAX_STEPS, "eps": STRESS_TOLERANCE}
            self.points = np.asarray(manifold.smacof(distances, n_components=n_components, init=start, n_init=1, **steps)[0])

    def place(self, distances: Array) -> Array:
        """The points of later bags, (M, k), from their distances to the fitted ones, (M, N)."""
        return np.stack([self._place_one(row) for row in distances])

    def _place_one(self, wanted: Array) -> Array:
        def differences(z: Array) -> Array:
            return np.linalg.norm(z - self.points, axis=1) - wanted

        # the stress of one point can have several minima: near its nearest bags, and at the point of classical scaling
        nearest = self.points[np.argsort(wanted, kind="stable")[:3]]
        lengths = np.where(self._lengths > 0, self._lengths, np.inf)
        gower = 0.5 * (self._squares.mean(axis=0) - wanted**2) @ self._axes / lengths
        minima = [least_squares(differences, start) for start in (*nearest, nearest.mean(axis=0), gower)]
        return np.asarray(min(minima, key=lambda minimum: minimum.cost).x)


def lay_out(name: str, distances: Array, n_components: int, n_neighbors: int) -> IsomapLayout | StressLayout:
    """The layout of that name."""
    return IsomapLayout(distances, n_components, n_neighbors) if name == "isomap" else StressLayout(distances, n_components)


@dataclass(frozen=True)
class Alignment:
    """A map aligned with another.

    Attributes
    ----------
    aligned : Map shifted, rotated and scaled onto the reference, (N, k).
    correlation : Correlation of the two maps, 1 for equal maps up to the alignment, 0 for unrelated maps.
    residual : Distance ‖aligned − reference‖ relative to the spread of the reference, √(1 − correlation²).
    """

    aligned: Array
    correlation: float
    residual: float


def procrustes(embedding: Any, reference: Any) -> Alignment:
    """Align a map with a reference by a shift, a rotation or reflection, and a scale.

    Parameters
    ----------
    embedding, reference : Maps of the same bags in the same order, (N, k).

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.cohort import procrustes
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> turned = 3 * square[:, ::-1] + 5
    >>> found = procrustes(turned, square)
    >>> round(found.correlation, 6), bool(np.allclose(found.aligned, square))
    (1.0, True)
    """
    A = np.asarray(_validate.points(embedding, "embedding"), np.float64)
    B = np.asarray(_validate.points(reference, "reference"), np.float64)
    if A.shape != B.shape:
        raise ValueError(f"embedding and reference must have the same shape, got {A.shape} and {B.shape}")
    centre = B.mean(axis=0)
    A, B = A - A.mean(axis=0), B - centre
    spreads = {"embedding": float(np.linalg.norm(A)), "reference": float(np.linalg.norm(B))}
    for name, spread in spreads.items():
        if spread == 0:
            raise ValueError(f"{name} must have different rows, got {len(A)} equal rows; check the bags")
    rotation, common = orthogonal_procrustes(A, B)
    correlation = min(float(common) / (spreads["embedding"] * spreads["reference"]), 1.0)
    aligned = (A @ rotation) * (float(common) / spreads["embedding"] ** 2)
    return Alignment(aligned + centre, correlation, float(np.linalg.norm(aligned - B)) / spreads["reference"])


def scatter(
    points: Array, ax: Any, labels: Sequence[Any] | None, groups: Sequence[Any] | None, *, things: str = "bags", **options: Any
) -> Any:
    """Draw the first two columns of a map and return the axes. Each group has a colour and a marker; points without one are grey.

    ``options`` go to ``Axes.scatter``. matplotlib is imported at the first call.
    """
    for name, given in (("labels", labels), ("groups", groups)):
        if given is not None and len(given) != len(points):
            raise ValueError(f"{name} must have one entry for each of the {len(points)} {things}, got {len(given)}")
    ax = axes(ax)
    x, y = points[:, 0], points[:, 1] if points.shape[1] > 1 else np.zeros(len(points))
    if groups is None:
        ax.scatter(x, y, **options)
    else:
        missing = np.array([_validate.missing(group) for group in groups])
        for k, group in enumerate(dict.fromkeys(group for group, gone in zip(groups, missing, strict=True) if not gone)):
            members = np.array([not gone and other == group for other, gone in zip(groups, missing, strict=True)])
            ax.scatter(x[members], y[members], **{"label": str(group), "marker": SHAPES[k % len(SHAPES)]} | options)
        if missing.any():
            ax.scatter(x[missing], y[missing], **options | {"label": "no group", "color": "lightgrey"})
        ax.legend()
    for label_x, label_y, label in zip(x, y, labels if labels is not None else (), strict=labels is not None):
        ax.annotate(str(label), (label_x, label_y), xytext=(4, 4), textcoords="offset points", fontsize="small")
    ax.set_aspect("equal", adjustable="datalim")  # distances have the same scale in every direction
    return ax
