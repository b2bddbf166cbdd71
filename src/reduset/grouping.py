"""Groups of equal Gaussian bumps, each replaced by one bump of its own width (Zhang & Kwok 2010, Algorithm 1 and Section IV).

Given bumps exp(−‖x − xⱼ‖²/2h²) with weights aⱼ > 0 in groups Sᵢ, the one that is nearest to Σ_{j∈Sᵢ} aⱼ φⱼ in L2 satisfies

    cᵢ = Σ eⱼ xⱼ / Σ eⱼ,    eⱼ = aⱼ exp(−‖cᵢ − xⱼ‖² / 2(h² + hᵢ²)),                       (the mean of a mean-shift step)
    hᵢ² = V + √(h⁴ + V²),   V = Σ eⱼ ‖cᵢ − xⱼ‖² / d Σ eⱼ,                                                    (29)
    wᵢ = (2h² / (h² + hᵢ²))^(d/2) Σ eⱼ,                                                                        (30)

which are iterated, each step lowering the group's L2 error. Bumps then join the representative wᵢgᵢ/Σaⱼ that is nearest in L2, and
so on. The rival (Goldberger & Roweis 2005) measures by Kullback–Leibler divergence, for which the moments of the group are best:
cᵢ the mean, hᵢ² = h² + variance a coordinate, wᵢ = (h/hᵢ)^d Σ aⱼ. (The paper's text lacks the 1/d of that variance.)

Groups that empty lose their place. Every round costs O(n·m·d).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reduset._engine.threads import blocks
from reduset.expansion import Array, Places

ROUNDS = 30
ALTERNATIONS, SHIFTS = 3, 10  # of centre and width; of the centre alone
ENTRIES = 1 << 20  # of a matrix of distances that is held at once
SHIFTED, SETTLED = 0.01, 1e-3  # of the width; of the distortion: where shifts and rounds end

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Groups:
    """Representatives of groups of bumps.

    Attributes
    ----------
    centres : (m, d)
    widths : (m,)
    weights : (m,) of bumps of height 1
    labels : (n,) the group of each
    """

    centres: Array
    widths: Array
    weights: Array
    labels: Labels


def spherical_groups(points: Array, weights: Array, width: float, size: int, method: str, rng: np.random.Generator) -> Groups:
    """Simplify Σⱼ aⱼ exp(−‖x − xⱼ‖²/2h²) to at most ``size`` bumps of their own widths, from a start by weighted k-means.

    Parameters
    ----------
    points : (n, d)
    weights : (n,) above 0
    width : h
    method : "l2" for Algorithm 1, "kl" for the rival
    """
    labels = _occupied(weighted_kmeans(points, weights, size, rng))
    distortion = np.inf
    for _ in range(ROUNDS):
        centres, squares, masses = _moments(points, weights, labels, width)
        if method == "kl":
            heights = masses * (width**2 / squares) ** (points.shape[1] / 2)
            away = partial(_divergences, centres, squares, width)
        else:
            centres, squares, heights = _nearest_bumps(points, weights, labels, width, centres, squares)
            away = partial(_distances, centres, squares, heights / masses, width)
        found = Groups(centres, np.sqrt(squares), heights, labels)
        before = distortion
        nearest, distortion = _nearest(points, away, len(centres))
        joined = _occupied(nearest)
        if np.array_equal(joined, labels) or abs(before - distortion) <= SETTLED * abs(distortion):
            break
        labels = joined
    return found


def weighted_kmeans(points: Array, weights: Array, size: int, rng: np.random.Generator) -> Labels:
    """(n,) labels after Lloyd's iterations from random points."""
    centres = points[rng.choice(len(points), size, replace=False)]
    labels = np.full(len(points), -1)
    for _ in range(ROUNDS):
        joined, _ = _nearest(points, Places(centres, np.inf).squared_distances, size)
        if np.array_equal(joined, labels):
            break
        labels = joined
        filled = np.unique(labels)
        centres = centres.copy()
        centres[filled] = _sums(labels, weights, points) / np.bincount(labels, weights)[filled, None]
    return labels


def _nearest(points: Array, away: Callable[[Array], Array], size: int) -> tuple[Labels, float]:
    """(n,) the nearest of ``size`` groups by distances (rows, size) that are made block by block, and their sum."""
    labels, total = np.empty(len(points), np.int64), 0.0
    for a, b in blocks(len(points), max(64, ENTRIES // size)):
        distances = away(points[a:b])
        labels[a:b] = distances.argmin(axis=1)
        total += float(distances.min(axis=1).sum())
    return labels, total


def _occupied(labels: Labels) -> Labels:
    """Groups numbered without gaps: what is empty is gone."""
    return np.unique(labels, return_inverse=True)[1]


def _sums(labels: Labels, weights: Array, values: Array) -> Array:
    """(m, d) weighted sums of values by group, of groups that are not empty."""
    order = np.argsort(labels, kind="stable")
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    return np.add.reduceat((weights[:, None] * values)[order], first, axis=0)


def _moments(points: Array, weights: Array, labels: Labels, width: float) -> tuple[Array, Array, Array]:
    """Mean, h² + variance a coordinate, and mass of every group."""
    masses = np.asarray(np.bincount(labels, weights), np.float64)
    centres = _sums(labels, weights, points) / masses[:, None]
    spread = np.bincount(labels, weights * _own_gaps(points, centres, labels)) / masses
    return centres, width**2 + spread / points.shape[1], masses


def _own_gaps(points: Array, centres: Array, labels: Labels) -> Array:
    """(n,) squared distance of every point to the centre of its group."""
    away = points - centres[labels]
    return np.einsum("ij,ij->i", away, away)


def _nearest_bumps(
    points: Array, weights: Array, labels: Labels, width: float, centres: Array, squares: Array
) -> tuple[Array, Array, Array]:
    """Centre, squared width and height of the bump nearest in L2 to every group, from a start."""
    d = points.shape[1]

    def shares() -> tuple[Array, Array]:
        gaps = _own_gaps(points, centres, labels)
        return gaps, weights * np.exp(-gaps / (2 * (width**2 + squares[labels])))

    for _ in range(ALTERNATIONS):
        for _ in range(SHIFTS):
            _, seen = shares()
            shifted = _sums(labels, seen, points) / np.bincount(labels, seen)[:, None]
            still = np.abs(shifted - centres).max() <= SHIFTED * width
            centres = shifted
            if still:
                break
        gaps, seen = shares()
        variance = np.bincount(labels, seen * gaps) / np.bincount(labels, seen) / d
        squares = variance + np.hypot(width**2, variance)
    heights = np.exp(d / 2 * np.log(2 * width**2 / (width**2 + squares))) * np.bincount(labels, shares()[1])
    return centres, squares, heights


def _distances(centres: Array, squares: Array, heights: Array, width: float, points: Array) -> Array:
    """(n, m) squared L2 distances of the bumps to the representatives, that of a bump to 0 being 1."""
    d = points.shape[1]
    gaps = Places(centres, width**2).squared_distances(points)
    seen = np.exp(d / 2 * np.log(2 * squares / (width**2 + squares)) - gaps / (2 * (width**2 + squares)))
    norms = np.exp(d / 2 * np.log(squares / width**2))
    return 1.0 + heights**2 * norms - 2.0 * heights * seen


def _divergences(centres: Array, squares: Array, width: float, points: Array) -> Array:
    """(n, m) twice the Kullback–Leibler divergence of the bumps, as densities, from the representatives."""
    d = points.shape[1]
    gaps = Places(centres, width**2).squared_distances(points)
    return d * (width**2 / squares - 1.0 + np.log(squares / width**2)) + gaps / squares
