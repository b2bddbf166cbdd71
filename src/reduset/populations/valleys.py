"""Is there a valley between two groups? Their density on lines that tell them apart, and how deep it dips between them.

For groups A and B whose means are Δ apart the lines are u = S̄⁻¹Δ, with S̄ the covariance within the two (Fisher's), and within all
groups as they were before any merging; Δ itself; and each marker in which they are half a standard deviation apart. On a line f is
the density of both together, smoothed by a bandwidth of Silverman's rule, and the dip is

    min_t f(t) / min(max_{s ≤ t} f(s), max_{s ≥ t} f(s)),

1 and more where there is no valley, 0 where nothing lies between. The deepest dip counts. Numbers of cells are uncertain to their
roots: the floor of the valley is raised and the lower peak cut by one standard error each, so that a dip that may be chance counts
as shallow. A pile of cells at the floor of a detector beside the rest of a negative population is no valley: nothing finer than a
tenth of the standard deviation of all cells is looked at.

A density in d dimensions needs far more cells than there are where d is 10 or 30; one on a line does not. A piece of a unimodal
density that was cut in two shows no valley, for marginals of a log-concave density are log-concave (Prékopa 1973).
O(cells·d) a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.ndimage import gaussian_filter1d

from reduset._types import Array, Floats
from reduset.populations.groups_of_cells import CellGroup

BINS = 128
RIDGE = 0.05  # of the mean variance: Fisher's line of few cells is not to follow their chance
TAILS = (0.5, 99.5)  # percentiles between which a line is looked at
FINEST = 0.1  # of the standard deviation of all cells on a line
APART = 0.5  # standard deviations of all cells between two groups in a marker that is looked at alone


@dataclass(frozen=True)
class Valleys:
    """What dips are measured by: (d, d) covariances of all cells, and within the groups that they are in before any merging."""

    total: Array
    within: Array

    @classmethod
    def among(cls, groups: Sequence[CellGroup]) -> Valleys:
        """Of these groups."""
        counts = np.array([group.count for group in groups])
        shares = counts / counts.sum()
        centres = np.stack([group.centre for group in groups])
        off = centres - shares @ centres
        within = np.tensordot(shares, np.stack([group.covariance for group in groups]), 1)
        return cls(within + (off * shares[:, None]).T @ off, _ridged(within, RIDGE))

    def dip(self, a: CellGroup, b: CellGroup) -> float:
        """How deep the valley between two groups is: its floor as a share of the lower peak."""
        return min((self._dip_on(u, a, b) for u in self._lines(a, b)), default=np.inf)

    def _lines(self, a: CellGroup, b: CellGroup) -> list[Array]:
        apart = b.centre - a.centre
        if not apart.any():
            return []
        d, few = len(apart), min(a.count, b.count)
        both = (a.count * a.covariance + b.count * b.covariance) / (a.count + b.count)
        fisher = [_solved(each, apart) for each in (_ridged(both, max(RIDGE, min(1.0, d / few))), self.within)]
        told = np.flatnonzero(np.abs(apart) > APART * np.sqrt(self.total.diagonal()))
        return [*fisher, apart, *np.eye(d)[told]]

    def _dip_on(self, u: Array, a: CellGroup, b: CellGroup) -> float:
        finest = FINEST * float(np.sqrt(u @ self.total @ u))
        return dip_on_line(a.cells @ u, b.cells @ u, a.cells_each, b.cells_each, finest)


def _ridged(covariance: Array, share: float) -> Array:
    return covariance + np.eye(len(covariance)) * (np.trace(covariance) / len(covariance) * share + np.finfo(float).tiny)


def _solved(covariance: Array, vector: Array) -> Array:
    return np.asarray(cho_solve(cho_factor(covariance, check_finite=False), vector, check_finite=False))


def dip_on_line(a: Floats, b: Floats, each_a: float = 1.0, each_b: float = 1.0, finest: float = 0.0) -> float:
    """The dip of two groups of numbers, each of which stands for so many cells; nothing finer than so much is seen."""
    width = max(1.06 * min(float(a.std()), float(b.std())) * min(len(a), len(b)) ** -0.2, finest)
    both = np.concatenate([a, b])
    low, high = np.percentile(both, TAILS)
    if not width > 1e-9 * (high - low):
        return 1.0 if not high > low else _dip_of_place(a, b)
    low, high = low - 3 * width, high + 3 * width
    stands_for = np.concatenate([np.full(len(a), each_a), np.full(len(b), each_b)])
    density, _ = np.histogram(both, BINS, (low, high), weights=stands_for)
    step = (high - low) / BINS
    smooth = gaussian_filter1d(density.astype(np.float64), max(width / step, 0.5), mode="constant")
    window = max(2 * np.sqrt(np.pi) * width / step, 1.0)  # bins that the smoothing averages over
    floor = smooth * window / min(each_a, each_b)
    left, right = np.maximum.accumulate(floor), np.maximum.accumulate(floor[::-1])[::-1]
    peak = np.minimum(left, right)
    raised, cut = floor + np.sqrt(floor) + 1, peak - np.sqrt(peak)
    return float(np.min(np.where(cut > 0, raised / np.where(cut > 0, cut, 1.0), np.inf)))


def _dip_of_place(a: Floats, b: Floats) -> float:
    """One of the two groups is a single place: a valley lies before it unless the other group holds it."""
    place, others = (a, b) if a.std() <= b.std() else (b, a)
    low, high = np.percentile(others, TAILS)
    return 1.0 if low <= place[0] <= high else 0.0
