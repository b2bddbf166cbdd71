"""Divergences between two samples from distances to k-th neighbours (Wang, Kulkarni & Verdú 2009; Póczos & Schneider 2011).

x₁, …, xₙ drawn from p, y₁, …, yₘ from q, in d dimensions. ρᵢ is the distance of xᵢ to its k-th neighbour among the other x, νᵢ to
its k-th among the y. The ball of radius ρᵢ holds (n−1)·c·ρᵢᵈ·p(xᵢ) expected points, c the volume of the unit ball; at the k-th
neighbour this is a Γ(k) variable for large n, and so is m·c·νᵢᵈ·q(xᵢ). In the mean of log(νᵈ/ρᵈ) the two logarithms of Γ variables
cancel; in that of a power they leave a factor that is known:

    "kl"        ∫ p log p/q  ≈  d/n Σ log νᵢ/ρᵢ + log m/(n−1)
    affinity    ∫ pᵅ q¹⁻ᵅ    ≈  B/n Σ ((n−1) ρᵢᵈ/(m νᵢᵈ))¹⁻ᵅ,   B = Γ(k)²/(Γ(k−α+1) Γ(k+α−1)),   0 < α < k + 1
    "renyi"     log(affinity)/(α − 1)
    "hellinger" 1 − affinity of α = ½, the squared distance ½∫(√p − √q)²

One k-d tree a sample, built once: O(n log m) a pair in few dimensions, towards O(n·m) in many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import gammaln

from reduset._types import Array, Floats, Report
from reduset.features.base import bag_blocks, run_in_rounds

DIVERGENCES = ("hellinger", "kl", "renyi")


@dataclass(frozen=True)
class NeighbourIndex:
    """A k-d tree of a bag, with the distances of its points to their k-th neighbours.

    Attributes
    ----------
    points : (n, d), in an order that depends on the points alone
    log_radii : (n,) log ρ, for the k that the sample was made with
    least : the smallest ρ above 0, which stands for distances of 0
    replaced : how many ρ were 0
    key : the same for the same points
    """

    points: Array
    tree: cKDTree
    log_radii: Array
    least: float
    replaced: int
    key: bytes

    @classmethod
    def of(cls, bag: Floats, k: int, title: str) -> NeighbourIndex:
        """Build the tree; refuse a bag with fewer than k + 1 different points."""
        points = bag.astype(np.float64) + 0.0  # −0 and 0 are one number, but not the same bytes
        points = np.ascontiguousarray(points[np.lexsort(points.T[::-1])])
        fresh = np.append(True, (np.diff(points, axis=0) != 0).any(axis=1))
        if fresh.sum() <= k:
            raise ValueError(
                f"{title} must hold at least {k + 1} different points for n_neighbors={k}, got {int(fresh.sum())}; use a smaller "
                "n_neighbors, or leave it out"
            )
        tree = cKDTree(points)
        radii = kth(tree, points, k + 1)  # the first is the point itself
        zero = radii == 0
        places = points[fresh]
        least = float((kth(cKDTree(places), places, k + 1) if zero.all() else radii[~zero]).min())
        key = hashlib.blake2b(points.tobytes()).digest()
        return cls(points, tree, np.log(np.where(zero, least, radii)), least, int(zero.sum()), key)


def kth(tree: cKDTree, points: Array, k: int) -> Array:
    """(n,) distances to the k-th nearest point of the tree."""
    return np.asarray(tree.query(points, k=[k])[0])[:, 0]


@dataclass(frozen=True)
class DivergenceEstimator:
    """A k-nearest-neighbour estimator of one of the divergences; ``alpha`` is of "renyi"."""

    divergence: str
    k: int
    alpha: float = 0.5

    def directed(
        self, first: Sequence[NeighbourIndex], second: Sequence[NeighbourIndex], report: Report, threads: int | None = None
    ) -> tuple[Array, NDArray[np.int32]]:
        """(M, N) divergences of the first from the second, and how many distances between two bags were 0."""
        points = np.concatenate([sample.points for sample in first])
        log_radii = np.concatenate([sample.log_radii for sample in first])
        sizes = np.array([len(sample.points) for sample in first])
        starts = np.append(0, np.cumsum(sizes))
        cuts = bag_blocks(sizes.tolist(), len(sizes))
        found = np.empty((len(second), len(first)))
        zeros = np.zeros((len(second), len(first)), np.int32)

        def ask(j: int) -> None:
            for a, b in cuts:
                rows = slice(starts[a], starts[b])
                radii = kth(second[j].tree, points[rows], self.k)
                firsts = starts[a:b] - starts[a]
                zero = radii == 0
                if zero.any():
                    zeros[j, a:b] = np.add.reduceat(zero.astype(np.int32), firsts)
                    radii[zero] = second[j].least
                ratios = points.shape[1] * (log_radii[rows] - np.log(radii))
                found[j, a:b] = self._from_ratios(ratios, firsts, sizes[a:b], len(second[j].points))

        run_in_rounds([partial(ask, j) for j in range(len(second))], range(1, len(second) + 1), report, threads)
        return found.T, zeros.T

    def _from_ratios(self, ratios: Array, firsts: NDArray[np.int64], sizes: NDArray[np.int64], m: int) -> Array:
        """Divergences from d·log ρ/ν of the points of some bags, which begin at ``firsts`` and have ``sizes``."""
        balance = np.log((sizes - 1) / m)
        if self.divergence == "kl":
            return np.asarray(-np.add.reduceat(ratios, firsts) / sizes - balance)
        alpha = 0.5 if self.divergence == "hellinger" else self.alpha
        powers = (1 - alpha) * ratios
        largest = np.maximum.reduceat(powers, firsts)
        total = np.add.reduceat(np.exp(powers - np.repeat(largest, sizes)), firsts)
        affinity = correction(self.k, alpha) + (1 - alpha) * balance + largest + np.log(total / sizes)
        return np.asarray(-np.expm1(affinity) if self.divergence == "hellinger" else affinity / (alpha - 1))


def correction(k: int, alpha: float) -> float:
    """log B."""
    return float(2 * gammaln(k) - gammaln(k - alpha + 1) - gammaln(k + alpha - 1))


def same(first: Sequence[NeighbourIndex], second: Sequence[NeighbourIndex]) -> NDArray[np.bool_]:
    """(M, N): which bags hold the same points."""
    codes: dict[bytes, int] = {}
    rows, columns = ([codes.setdefault(sample.key, len(codes)) for sample in side] for side in (first, second))
    return np.equal.outer(rows, columns)


def symmetrised(
    estimate: DivergenceEstimator,
    first: Sequence[NeighbourIndex],
    second: Sequence[NeighbourIndex],
    stage: Callable[[str], Report],
    threads: int | None = None,
) -> tuple[Array, NDArray[np.bool_], int]:
    """(M, N) means of both directions, not below 0; which pairs are the same bag, of divergence 0; how many distances were 0."""
    alike = same(first, second)
    there, lost = estimate.directed(first, second, stage("divergences"), threads)
    back, lost_back = there, lost
    if first is not second:
        back, lost_back = estimate.directed(second, first, stage("and back"), threads)
    # the sum before the cut: negative estimates are noise, which the other direction may balance
    both = np.maximum((there + back.T) / 2, 0.0)
    both[alike] = 0.0
    shared = 2 if first is second else 1  # each pair is there twice
    return both, alike, int((lost + lost_back.T)[~alike].sum()) // shared
