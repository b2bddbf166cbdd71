"""A probability bound on the error of the estimated kernel (after Sutherland, Oliva, Póczos & Schneider 2016, Theory).

For two densities p and q of a class, K = exp(−d²(p, q)/(2σ²)) and its estimate z(Â(p̂))·z(Â(q̂)) from n points of each,

    d²(p, q) → Σ of M frequencies → sums over nodes → projection on the basis → density estimates for p and q → random features

The error of each step is bounded on its own, in units of the kernel: |e^(−a/2σ²) − e^(−b/2σ²)| is at most |a − b|/(2σ²) and at most
|√a − √b|/(σ√e). The first three steps are taken for the densities themselves, whose smoothness is assumed, so nothing is assumed
about the density estimates. The paper takes them for the estimates, and assumes these to be smooth. The derivation is in
docs/mathematics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import e, inf, sqrt
from typing import TYPE_CHECKING, Any

from reduset import _validate
from reduset.features.bound_terms import (
    DensityClass,
    KernelMoments,
    PeanoConstants,
    Slopes,
    density_distance,
    frequency_error,
    gram_range,
    projection_tail,
    random_feature_error,
    slope_total,
)
from reduset.features.projection import Grid

if TYPE_CHECKING:
    from reduset.features.density_features import DensityFeatures

NAMES = {
    "density": "density estimates",
    "quadrature": "quadrature",
    "truncation": "basis truncation",
    "frequencies": "frequencies",
    "random_features": "random features",
}


@dataclass(frozen=True)
class ErrorBound:
    """A bound on |K(p, q) − z(p̂)·z(q̂)|, and the part of each approximation.

    With probability ``confidence`` or more over the points of the two bags and the random features, the error is at most ``total``.
    Kernel values lie between 0 and 1, so a total of 1 or more carries no information.

    Attributes
    ----------
    density : float
        Part of the density estimates: bias and sampling error of both bags.
    quadrature : float
        Part of the sums over nodes in place of integrals.
    truncation : float
        Part of the basis functions that are not used.
    frequencies : float
        Part of the M frequencies in place of the measure μ.
    random_features : float
        Part of the ``n_components`` random Fourier features.
    confidence : float
    """

    density: float
    quadrature: float
    truncation: float
    frequencies: float
    random_features: float
    confidence: float

    @property
    def total(self) -> float:
        """The sum of the five terms."""
        return self.density + self.quadrature + self.truncation + self.frequencies + self.random_features

    def __str__(self) -> str:
        terms = sorted(NAMES, key=lambda name: -getattr(self, name))
        parts = [f"  {NAMES[name]:<18} {getattr(self, name):.2g}" for name in terms]
        head = f"ErrorBound: kernel values are within {self.total:.2g} of the truth with probability {self.confidence:g}"
        if self.total >= 1:
            head += " (no information: kernel values lie between 0 and 1)"
        return "\n".join([head, *parts])


def error_bound(features: DensityFeatures, n_samples: Any, densities: DensityClass, confidence: float) -> ErrorBound:
    """The bound for fitted features with one density on a grid, and bags of ``n_samples`` points."""
    counts = _counts(n_samples)
    nodes = _grid(features)
    distance, frequencies, width = features.distance, features.frequencies_, features.kernel_width_
    if frequencies is None:
        raise ValueError(
            "distance must be 'js', 'hellinger', 'tv' or 'chi2' for an error bound, got 'l2', which is not homogeneous"
        )
    d, rule = nodes.dimension, PeanoConstants.of(*nodes.axis)
    slopes = Slopes.of(densities, frequencies)
    least, most = gram_range(nodes)

    def of_square(change: float) -> float:
        """The change of the kernel for one of the squared distance."""
        return min(change / (2 * width**2), sqrt(change) / (width * sqrt(e)), 1.0)

    by_frequencies = frequency_error(distance, frequencies, densities.log_ratio) * densities.union_mass
    bend = 2 * slopes.first**2 + 2 * slopes.value * slopes.second if slopes.second < inf else inf
    by_nodes = d * rule.error(2 * slopes.value * slopes.first, bend)
    largest = densities.largest_square(distance) + by_frequencies + by_nodes
    by_nodes += max(most - 1, 1 - least, 0.0) * largest
    by_basis = d * projection_tail(slopes, nodes.n_basis, nodes.kind, rule.discrepancy)

    mass = 1 + d * rule.error(densities.gradient, densities.curvature)
    moments = KernelMoments(nodes, features.views_[0].bandwidth)
    chance = (1 - confidence) / 2
    moved = 0.0
    for n in counts:
        root, floor = density_distance(moments, densities, n, chance / 2, mass)
        square = 4 * slope_total(frequencies) * (root / (1 + sqrt(floor))) ** 2
        if distance == "tv":  # κ_M ≤ |a − b| + the error of κ_M
            square = min(square, root * sqrt(mass) + frequency_error(distance, frequencies, inf) * (1 + mass))
        moved += sqrt(most * square)
    farthest = sqrt(most * largest) + moved
    return ErrorBound(
        density=min(moved / (width * sqrt(e)), of_square(moved * (2 * farthest - moved)), 1.0),
        quadrature=of_square(by_nodes),
        truncation=of_square(by_basis),
        frequencies=of_square(by_frequencies),
        random_features=random_feature_error(
            features._length, features.n_components // 2, features.orthogonal, farthest / width, chance
        ),
        confidence=confidence,
    )


def _counts(n_samples: Any) -> tuple[int, int]:
    """The numbers of points of the two bags."""
    both = tuple(n_samples) if isinstance(n_samples, Sequence) else (n_samples, n_samples)
    if len(both) != 2:
        raise ValueError(f"n_samples must be a number of points or two of them, got {n_samples!r}; use (500, 800)")
    first, second = (_validate.whole(n, "n_samples", 2) for n in both)
    return first, second


def _grid(features: DensityFeatures) -> Grid:
    """The nodes of fitted features that the bound covers."""
    if features.output == "distance":
        raise ValueError("output must be 'features' for an error bound, got 'distance', which has no kernel width")
    if len(features.views_) > 1:
        raise ValueError("marginals must be False for an error bound; fit one column at a time for the bound of each")
    nodes = features.views_[0].nodes
    if not isinstance(nodes, Grid):
        raise ValueError(
            f"integration must be 'grid' for an error bound, got {features.integration!r} with {nodes.dimension} columns; use at "
            "most three columns and integration='grid'"
        )
    return nodes
