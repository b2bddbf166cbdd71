"""Is there a valley between two groups? Their density on lines that tell them apart, and how deep it dips between them.

For groups A and B whose means are Δ apart the lines are u = S̄⁻¹Δ, with S̄ the covariance within the two (Fisher's), and within all
groups as they were before any merging; Δ itself; and the four markers that tell them apart best, if by half a standard deviation.
On a line f is the density of both together, smoothed by a bandwidth of Silverman's rule, and the dip is

    min_t f(t) / min(max_{s ≤ t} f(s), max_{s ≥ t} f(s)),

1 and more where there is no valley, 0 where nothing lies between. The deepest dip counts. Numbers of cells are uncertain to their
roots: the floor of the valley is raised and the lower peak cut by one standard error each, so that a dip that may be chance counts
as shallow (a cell that stands for six has the square of six as its variance). A pile of cells at the floor of a detector beside the
rest of a negative population is no valley: nothing finer than a tenth of the standard deviation of all cells is looked at, and
nothing finer than the steps of a marker that has few values.

A density in d dimensions needs far more cells than there are where d is 10 or 30; one on a line does not. A piece of a unimodal
density that was cut in two shows no valley, for marginals of a log-concave density are log-concave (Prékopa 1973).
O(cells·d) a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from reduset._engine import line_dips
from reduset._types import Array
from reduset.cytometry.groups_of_cells import CellGroup

RIDGE = 0.05  # of the mean variance: Fisher's line of few cells is not to follow their chance
FINEST = 0.1  # of the standard deviation of all cells on a line
APART = 0.5  # standard deviations of all cells between two groups in a marker that is looked at alone
ALONE = 4  # markers at most
FEWEST_STEPS = 4  # values of a marker that is looked at as coarse


@dataclass(frozen=True)
class Valleys:
    """What dips are measured by: (d, d) covariances of all cells, and within the groups that they are in before any merging; and
    (d,) the steps between the values of each marker."""

    total: Array
    within: Array
    steps: Array

    @classmethod
    def among(cls, groups: Sequence[CellGroup]) -> Valleys:
        """Of these groups."""
        counts = np.array([group.count for group in groups])
        shares = counts / counts.sum()
        centres = np.stack([group.centre for group in groups])
        off = centres - shares @ centres
        within = np.tensordot(shares, np.stack([group.covariance for group in groups]), 1)
        cells, stands_for = (np.concatenate([getattr(group, name) for group in groups]) for name in ("cells", "stands_for"))
        steps = np.array([_step(column, stands_for) for column in cells.T])
        return cls(within + (off * shares[:, None]).T @ off, _ridged(within, RIDGE), steps)

    def dip(self, a: CellGroup, b: CellGroup) -> float:
        """How deep the valley between two groups is: its floor as a share of the lower peak."""
        lines = self._lines(a, b)
        if not lines.size:
            return np.inf
        finest = FINEST * np.sqrt(np.einsum("dl,dl->l", lines, self.total @ lines))
        finest = np.maximum(finest, np.sqrt(np.square(self.steps) @ np.square(lines)))
        return float(line_dips(lines.T @ a.cells.T, lines.T @ b.cells.T, a.stands_for, b.stands_for, finest).min())

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


def _step(values: Array, weights: Array) -> float:
    """From one value to the next, as most cells have it; 0 where two or three values are all there is, and classes, not steps."""
    places, of_place = np.unique(values, return_inverse=True)
    if len(places) < FEWEST_STEPS:
        return 0.0
    gaps = np.diff(places)
    wider = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    order = np.argsort(wider)
    mass = np.cumsum(np.bincount(of_place, weights)[order])
    return float(wider[order[np.searchsorted(mass, mass[-1] / 2)]])


def _ridged(covariance: Array, share: float) -> Array:
    mean = np.trace(covariance) / len(covariance)
    return covariance + np.eye(len(covariance)) * (mean * share if mean > 0 else 1.0)  # cells that all coincide have no shape


def _solved(covariance: Array, vector: Array) -> Array:
    return np.asarray(cho_solve(cho_factor(covariance, check_finite=False), vector, check_finite=False))
