"""The numbers of the pictures of a test of drift: the report embeds them, the display draws them.

A column is shown as shares of equally wide bars: the reference's own bins lie closer together than a picture can show, so their
shares are spread evenly between their ends. What lies beyond the picture is one more bar at either end, as high as all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._types import Array
from reduset.drift.columns import ColumnBins, ColumnChange
from reduset.drift.feature_map import FeatureMap
from reduset.drift.regions import Cells, Region
from reduset.drift.result import DriftResult
from reduset.drift.words import distances_by_chance

BARS = 32
ENDS = (0.005, 0.995)  # quantiles of both samples, between which a column is shown
FAR = 4.0  # middle halves beyond which nothing is shown, however heavy the tails
USUAL = 0.95
FULL_COLOUR = 6.0  # standard deviations of a cell's share by chance, below which no cell has the strongest colour


@dataclass(frozen=True)
class Look:
    """One of the statistics: its bandwidth, and the distance of the rows relative to the null hypothesis.

    Attributes
    ----------
    width : the bandwidth, in units of the columns' spreads
    ridge : λ of a standardised statistic, in which each principal component is divided by its variance plus λ times the largest
        one; None for the plain maximum mean discrepancy
    ratio : the distance over what chance keeps it below, 95 times in 100
    """

    width: float
    ridge: float | None
    ratio: float


@dataclass(frozen=True)
class ColumnFigure:
    """A column before and after.

    Attributes
    ----------
    change : what its test found
    position : of the column among all
    edges : (b + 1,) of equally wide bars; None where the column has few values
    values : (b,) those values; None else
    before, after : shares of the rows; (b + 2,) with those beyond either end first and last, (b + 1,) with all others last
    """

    change: ColumnChange
    position: int
    edges: Array | None
    values: Array | None
    before: Array
    after: Array


@dataclass(frozen=True)
class DriftFigure:
    """A test of drift.

    Attributes
    ----------
    result : what it is of
    names : of the d columns
    seen, by_chance : the distance, and (B,) what chance alone makes of it
    looks : all statistics
    places : (m, d) of the cells: the means of their rows, before or after, whichever are more
    before, after : (m,) the shares of rows in them
    regions : those that gained or lost
    columns : all, those that changed most surely first
    """

    result: DriftResult
    names: tuple[str, ...]
    seen: float
    by_chance: Array
    looks: tuple[Look, ...]
    places: Array
    before: Array
    after: Array
    regions: tuple[Region, ...]
    columns: tuple[ColumnFigure, ...]

    @property
    def change(self) -> Array:
        """(m,) what each cell gained, or lost below 0."""
        return self.after - self.before

    @property
    def most(self) -> float:
        """The change of the strongest colour: the largest, or one that chance does not make."""
        both = (self.before + self.after) / 2
        noise = sum(1 / each for each in self.result.comparison.rows)
        return float(max(np.abs(self.change).max(), FULL_COLOUR * np.sqrt((both * (1 - both)).max() * noise)))

    @property
    def pair(self) -> tuple[int, ...]:
        """The two columns in which most is to be seen: those of the surest region, then those that changed most surely."""
        told = [self.names.index(name) for region in self.regions[:1] for name in region.columns]
        ranked = dict.fromkeys([*told, *(each.position for each in self.columns)])
        return tuple(sorted(list(ranked)[:2])) if len(self.names) > 1 else (0,)


def drift_figure(result: DriftResult) -> DriftFigure:
    """Of what a test found."""
    if not isinstance(result, DriftResult):
        raise TypeError(f"result must be a DriftResult, got {type(result).__name__}; it is what DriftTest.test returns")
    seen = result.comparison
    names = tuple(map(str, seen.names))
    columns = []
    for each in result.columns():
        k = each.position
        columns.append(column_figure(each, k, seen.bins, seen.shares[0][k], seen.shares[1][k]))
    return DriftFigure(
        result,
        names,
        result.distance,
        distances_by_chance(result),
        _looks(seen.features, seen.difference, seen.drawn),
        _places(seen.features.atoms, *seen.cells),
        seen.cells[0].shares,
        seen.cells[1].shares,
        tuple(result.where()),
        tuple(columns),
    )


def _places(atoms: Array, before: Cells, after: Cells) -> Array:
    """(m, d) where the rows of each cell are; a crowd far outside is nearest to an atom at the rim, and not there."""
    gained = (after.shares > before.shares)[:, None]
    shares = np.where(gained[:, 0], after.shares, before.shares)[:, None]
    sums = np.where(gained, after.by_cell()[0], before.by_cell()[0])
    return np.where(shares > 0, sums / np.where(shares > 0, shares, 1.0), atoms)


def _looks(features: FeatureMap, difference: Array, drawn: Array) -> tuple[Look, ...]:
    usual = np.quantile(features.statistics(drawn), USUAL, axis=0)
    ratios = np.sqrt(features.statistics(difference) / np.maximum(usual, np.finfo(float).tiny))
    widths = dict(zip(features.octaves, features.bandwidths.tolist(), strict=True))
    kernels = ratios[: len(features.asked)].tolist()  # columns have figures of their own
    found = zip(features.asked, kernels, strict=True)
    return tuple(Look(widths[octave], ridge, ratio) for (octave, ridge, _), ratio in found)


def column_figure(change: ColumnChange, k: int, bins: ColumnBins, before: Array, after: Array) -> ColumnFigure:
    """Column k from the shares of its bins: below, at and between edges in turn."""
    edges = bins.edges[k]
    if bins.listed[k]:
        shares = (np.append(each[1::2], each[::2].sum()) for each in (before, after))
        return ColumnFigure(change, k, None, edges, *shares)
    places = _bars(bins, k, (before + after) / 2)
    shares = (_rebinned(edges, each, places) for each in (before, after))
    return ColumnFigure(change, k, places, None, *shares)


def _bars(bins: ColumnBins, k: int, both: Array) -> Array:
    """(b + 1,) where bars end: between two quantiles, and not much farther out than the middle half reaches."""
    low, quarter, half, high = (bins.quantile(k, both, q) for q in (ENDS[0], 0.25, 0.75, ENDS[1]))
    reach = FAR * (half - quarter)
    if reach > 0:
        low, high = max(low, quarter - reach), min(high, half + reach)
    if high <= low:  # nearly all rows have one value
        low, high = float(bins.edges[k][0]), float(bins.edges[k][-1])
    return np.linspace(low, high, BARS + 1)


def _rebinned(edges: Array, shares: Array, places: Array) -> Array:
    """(b + 2,) the shares below, between and above the places, evenly spread inside of each bin.

    What lies below the first edge and above the last has no end of its own, and counts as beyond.
    """
    ends = np.cumsum(shares)
    # the law rises at an edge by what lies at it: twice the same place, before and after the rise
    grid, law = np.repeat(edges, 2), ends[:-1]
    below = np.interp(places, grid, law, left=0.0, right=float(ends[-1]))
    below[places >= edges[-1]] = ends[-2]
    below[places <= edges[0]] = ends[0]
    return np.diff(np.concatenate([[0.0], below, [ends[-1]]]))
