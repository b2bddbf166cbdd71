"""Is there a valley between two groups? Their density on lines that tell them apart, and how deep it dips between them.

For groups A and B whose means are Δ apart the lines are u = S̄⁻¹Δ, with S̄ the covariance within the two (Fisher's), and within all
groups as they were before any merging; Δ itself; and the four markers that tell them apart best, if by half a standard deviation.
On a line f is the density of both together, smoothed by a bandwidth of Silverman's rule, and the dip is

    min_t f(t) / min(max_{s ≤ t} f(s), max_{s ≥ t} f(s)),

1 and more where there is no valley, 0 where nothing lies between. The deepest dip counts. Numbers of cells are uncertain to their
roots: the floor of the valley is raised and the lower peak cut by one standard error each, so that a dip that may be chance counts
as shallow (a cell that stands for six has the square of six as its variance). A pile of cells at the floor of a detector beside the
rest of a negative population is no valley: nothing finer than a tenth of the standard deviation of all cells is looked at.

A density in d dimensions needs far more cells than there are where d is 10 or 30; one on a line does not. A piece of a unimodal
density that was cut in two shows no valley, for marginals of a log-concave density are log-concave (Prékopa 1973).
O(cells·d) a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from reduset._types import Array, Floats
from reduset.populations.groups_of_cells import CellGroup

BINS = 128
RIDGE = 0.05  # of the mean variance: Fisher's line of few cells is not to follow their chance
TAILS = (0.5, 99.5)  # percentiles between which a line is looked at
FINEST = 0.1  # of the standard deviation of all cells on a line
APART = 0.5  # standard deviations of all cells between two groups in a marker that is looked at alone
ALONE = 4  # markers at most


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
        lines = self._lines(a, b)
        if not lines.size:
            return np.inf
        finest = FINEST * np.sqrt(np.einsum("dl,dl->l", lines, self.total @ lines))
        return float(dips_on_lines(a.cells @ lines, b.cells @ lines, a.stands_for, b.stands_for, finest).min())

    def _lines(self, a: CellGroup, b: CellGroup) -> Array:
        """(d, l) directions."""
        apart = b.centre - a.centre
        if not apart.any():
            return np.empty((len(apart), 0))
        d, few = len(apart), min(a.count, b.count)
        both = (a.count * a.covariance + b.count * b.covariance) / (a.count + b.count)
        fisher = [_solved(each, apart) for each in (_ridged(both, max(RIDGE, min(1.0, d / few))), self.within)]
        spreads = np.sqrt(np.maximum(self.total.diagonal(), np.finfo(float).tiny))
        gaps = np.abs(apart) / spreads
        told = [j for j in np.argsort(-gaps, kind="stable")[:ALONE] if gaps[j] > APART]
        return np.column_stack([*fisher, apart, np.eye(d)[:, told]])


def _ridged(covariance: Array, share: float) -> Array:
    mean = np.trace(covariance) / len(covariance)
    return covariance + np.eye(len(covariance)) * (mean * share if mean > 0 else 1.0)  # cells that all coincide have no shape


def _solved(covariance: Array, vector: Array) -> Array:
    return np.asarray(cho_solve(cho_factor(covariance, check_finite=False), vector, check_finite=False))


def dips_on_lines(a: Floats, b: Floats, stands_a: Array, stands_b: Array, finest: Array | float = 0.0) -> Array:
    """(l,) the dips of two groups, from their places on each line, (s, l), and how many cells each of these stands for, (s,).

    Nothing finer than ``finest`` is seen, (l,).
    """
    both, weights = np.concatenate([a, b]), np.concatenate([stands_a, stands_b])
    ends = np.stack([np.percentile(each, TAILS, axis=0) for each in (a, b)])
    low, high = ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
    widths = np.maximum(1.06 * np.minimum(a.std(axis=0), b.std(axis=0)) * min(len(a), len(b)) ** -0.2, finest)
    narrow = ~(widths > 1e-9 * (high - low))  # a group without spread: all of it is one place
    widths = np.where(narrow, 1.0, widths)
    step = (high - low + 6 * widths) / BINS
    window = np.maximum(2 * np.sqrt(np.pi) * widths / step, 1.0)[:, None]  # bins that the smoothing looks at
    begin, smoothing = low - 3 * widths, np.maximum(widths / step, 0.5)
    floor = window * _smoothed(_histograms(both, begin, step, weights), smoothing)  # cells in a window
    error = np.sqrt(window * _smoothed(_histograms(both, begin, step, np.square(weights)), smoothing))
    sure = floor - error
    peak = np.minimum(np.maximum.accumulate(sure, axis=1), np.maximum.accumulate(sure[:, ::-1], axis=1)[:, ::-1])
    raised = floor + error + min(stands_a.mean(), stands_b.mean())  # where none is seen, one may have been missed
    dips = np.min(np.where(peak > 0, raised / np.where(peak > 0, peak, 1.0), np.inf), axis=1)
    for k in np.flatnonzero(narrow):
        dips[k] = _dip_of_place(a[:, k], b[:, k])
    return np.asarray(dips)


def _histograms(places: Floats, low: Array, step: Array, weights: Array) -> Array:
    """(l, bins) what lies in each bin of each line; what lies beyond its ends is left out, for a pile there would be a peak."""
    lines = places.shape[1]
    bins = np.clip(np.floor((places - low) / step), -1, BINS).astype(np.int64) + 1 + (BINS + 2) * np.arange(lines)
    counted = np.bincount(bins.ravel(), np.repeat(weights, lines), (BINS + 2) * lines)
    return counted.astype(np.float64).reshape(lines, BINS + 2)[:, 1:-1]


def _smoothed(density: Array, widths: Array) -> Array:
    """Each row smoothed by a Gaussian of its own width in bins, nothing beyond its ends."""
    waves = np.fft.rfftfreq(2 * BINS)
    bell = np.exp(-2 * np.square(np.pi * waves * widths[:, None]))
    return np.maximum(np.fft.irfft(np.fft.rfft(density, 2 * BINS, axis=1) * bell, axis=1)[:, :BINS], 0.0)


def _dip_of_place(a: Floats, b: Floats) -> float:
    """One of the two groups is a single place: a valley lies before it unless the other group holds it."""
    place, others = (a, b) if a.std() <= b.std() else (b, a)
    low, high = np.percentile(others, TAILS)
    return 1.0 if low <= place[0] <= high else 0.0
