"""The numbers of the figures of a drift test, for the report and for a display for matplotlib.

A column is shown as proportions in bars of equal width. The reference has finer bins, and their proportions are spread evenly
between their ends. One more bar at each end has all rows beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from reduset._describe import shortened
from reduset._drawing import axes
from reduset._messages import printable
from reduset._types import Array
from reduset.drift import Cells, ColumnBins, ColumnChange, DriftResult, FeatureMap, KernelStatistics, Region, null_distances
from reduset.report.displays import ACCENT, QUIET, SHADE, MatplotlibDisplay, positions

BARS = 32
ENDS = (0.005, 0.995)  # quantiles of both samples at the ends of the axis of a column
MAX_REACH = 4.0  # distance of the ends of a figure from the quartiles, in interquartile ranges
CONFIDENCE = 0.95
FULL_COLOUR = 6.0  # smallest change with the strongest colour, in standard deviations of the sampling variation of a cell
KINDS = ("map", "column", "columns", "null")
LARGEST_AREA = 260.0  # area of the marker of the largest cell, in points²
DEVIATIONS = 2.0  # from the centre of a region to its outline
TURNS = 65  # points of an outline
RANKED = 20  # columns in the figure of all columns
SMALLEST_P = 1e-16  # smaller p-values are drawn at this one


@dataclass(frozen=True)
class Look:
    """One of the statistics: its bandwidth, and the distance relative to the null distribution.

    Attributes
    ----------
    width : Bandwidth, in units of the columns' spreads.
    ridge : The λ of a standardised statistic; None for the plain maximum mean discrepancy.
        Each principal component is divided by its variance plus λ times the largest variance.
    ratio : Distance relative to its 95 % quantile under the null hypothesis.
    """

    width: float
    ridge: float | None
    ratio: float


@dataclass(frozen=True)
class ColumnFigure:
    """A column before and after.

    Attributes
    ----------
    change : Result of its test.
    position : Position of the column among all columns.
    edges : (b + 1,) ends of equally wide bars; None for a column with a list of values
    values : (b,) the listed values; None for other columns
    before, after : Proportions of the rows. With edges (b + 2,): rows beyond the ends are first and last.
        With values (b + 1,): all other values are last.
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
    result : DriftResult
    names : Names of the d columns.
    seen, null_distances : The distance, and (B,) its distribution under the null hypothesis.
    looks : All statistics.
    places : (m, d) centres of the cells, the means of their rows in the sample with more rows
    before, after : (m,) proportions of the rows in the cells
    regions : Regions that gained or lost rows.
    columns : All columns, by p-value.
    """

    result: DriftResult
    names: tuple[str, ...]
    seen: float
    null_distances: Array
    looks: tuple[Look, ...]
    places: Array
    before: Array
    after: Array
    regions: tuple[Region, ...]
    columns: tuple[ColumnFigure, ...]

    @property
    def change(self) -> Array:
        """(m,) the proportion of rows that each cell gained or lost."""
        return self.after - self.before

    @property
    def most(self) -> float:
        """The change with the strongest colour: the largest change, and at least a multiple of the sampling variation."""
        mean = (self.before + self.after) / 2
        noise = sum(1 / n for n in self.result.comparison.rows)
        return float(max(np.abs(self.change).max(), FULL_COLOUR * np.sqrt((mean * (1 - mean)).max() * noise)))

    @property
    def pair(self) -> tuple[int, ...]:
        """The two columns of the map: the columns of the first region, then the columns with the smallest p-values."""
        first = [self.names.index(name) for region in self.regions[:1] for name in region.columns]
        ranked = dict.fromkeys([*first, *(each.position for each in self.columns)])
        return tuple(sorted(list(ranked)[:2])) if len(self.names) > 1 else (0,)


def drift_figure(result: DriftResult) -> DriftFigure:
    """The figure of a result."""
    if not isinstance(result, DriftResult):
        raise TypeError(f"result must be a DriftResult, got {type(result).__name__}; give the result of DriftTest.test")
    seen = result.comparison
    names = tuple(map(str, seen.names))
    columns = []
    for each in result.columns():
        k = each.position
        columns.append(column_figure(each, k, seen.features.bins, seen.shares[0][k], seen.shares[1][k]))
    return DriftFigure(
        result,
        names,
        result.distance,
        null_distances(result),
        _looks(seen.features, seen.difference, seen.drawn),
        _places(seen.features.atoms, *seen.cells),
        seen.cells[0].shares,
        seen.cells[1].shares,
        tuple(result.where()),
        tuple(columns),
    )


def _places(atoms: Array, before: Cells, after: Cells) -> Array:
    """(m, d) means of the rows of each cell. Outliers are nearest to an atom at the edge, but not close to it."""
    gained = (after.shares > before.shares)[:, None]
    proportions = np.where(gained[:, 0], after.shares, before.shares)[:, None]
    sums = np.where(gained, after.by_cell()[0], before.by_cell()[0])
    return np.where(proportions > 0, sums / np.where(proportions > 0, proportions, 1.0), atoms)


def _looks(features: FeatureMap, difference: Array, drawn: Array) -> tuple[Look, ...]:
    kernel = KernelStatistics()
    usual = np.quantile(kernel.values(features, drawn), CONFIDENCE, axis=0)
    ratios = np.sqrt(kernel.values(features, difference) / np.maximum(usual, np.finfo(float).tiny))
    widths = dict(zip(features.octaves, features.bandwidths.tolist(), strict=True))
    forms = zip(kernel.forms(features), ratios.tolist(), strict=True)
    return tuple(Look(widths[octave], ridge, ratio) for (octave, ridge, _), ratio in forms)


def column_figure(change: ColumnChange, k: int, bins: ColumnBins, before: Array, after: Array) -> ColumnFigure:
    """The figure of column k from the proportions of its bins: below, at and between edges in turn."""
    edges = bins.edges[k]
    if bins.listed[k]:
        listed = (np.append(part[1::2], part[::2].sum()) for part in (before, after))
        return ColumnFigure(change, k, None, edges, *listed)
    ends = _bar_ends(bins, k, (before + after) / 2)
    rebinned = (_rebinned(edges, part, ends) for part in (before, after))
    return ColumnFigure(change, k, ends, None, *rebinned)


def _bar_ends(bins: ColumnBins, k: int, both: Array) -> Array:
    """(b + 1,) ends of bars: between two quantiles, at most `MAX_REACH` interquartile ranges from the quartiles."""
    low, quarter, half, high = (bins.quantile(k, both, q) for q in (ENDS[0], 0.25, 0.75, ENDS[1]))
    reach = MAX_REACH * (half - quarter)
    if reach > 0:
        low, high = max(low, quarter - reach), min(high, half + reach)
    if high <= low:  # nearly all rows have one value
        low, high = float(bins.edges[k][0]), float(bins.edges[k][-1])
    return np.linspace(low, high, BARS + 1)


def _rebinned(edges: Array, proportions: Array, ends: Array) -> Array:
    """(b + 2,) the proportions below, between and above the new ends, spread evenly inside each bin.

    Rows below the first edge and above the last edge are beyond the ends.
    """
    total = np.cumsum(proportions)
    # the distribution function jumps at an edge, so each edge occurs twice: before and after the jump
    grid, distribution = np.repeat(edges, 2), total[:-1]
    below = np.interp(ends, grid, distribution, left=0.0, right=float(total[-1]))
    below[ends >= edges[-1]] = total[-2]
    below[ends <= edges[0]] = total[0]
    return np.diff(np.concatenate([[0.0], below, [total[-1]]]))


@dataclass(eq=False, repr=False)
class DriftDisplay(MatplotlibDisplay):
    """A test of drift: regions and columns that changed.

    Parameters
    ----------
    figure : DriftFigure
    columns : One or two positions of columns for the map.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.drift import two_sample
    >>> from reduset.report import DriftDisplay
    >>> rng = np.random.default_rng(0)
    >>> found = two_sample(rng.normal(size=(300, 3)), rng.normal(size=(300, 3)) + [2, 0, 0], rng=0)
    >>> display = DriftDisplay.from_result(found)
    >>> display.figure.columns[0].change.name
    'x1'
    """

    figure: DriftFigure
    columns: list[int]

    @classmethod
    def from_result(cls, result: DriftResult, columns: Any = None) -> Self:
        """The display of a result of `DriftTest.test`. ``columns`` are one or two, by default the columns that changed most."""
        shown = drift_figure(result)
        return cls(shown, list(shown.pair) if columns is None else positions(columns, shown.names))

    def plot(self, ax: Any = None, kind: str = "map", **kw: Any) -> Self:
        """Draw it on ``ax`` or new axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
        kind : "map", "column", "columns" or "null"
            "map" draws cells and regions that gained (red) or lost rows (blue). "column" draws the first of the columns before and
            now, and "columns" all columns by p-value. "null" draws the distance and its distribution without drift.
        **kw : options of matplotlib
            ``Axes.scatter`` for the map, ``Axes.stairs`` or ``Axes.bar`` for a column, ``Axes.barh`` for all columns, and
            ``Axes.hist`` for the distribution.
        """
        self._check(kind, KINDS)
        ax = axes(ax)
        draw = {"map": self._map, "column": self._column, "columns": self._columns, "null": self._null}[kind]
        draw(ax, kw)
        return self._on(ax)

    def _map(self, ax: Any, kw: dict[str, Any]) -> None:
        shown, pair = self.figure, self.columns
        larger = np.maximum(shown.before, shown.after)
        order = np.argsort(-larger, kind="stable")
        y = shown.places[order, pair[1]] if len(pair) > 1 else shown.change[order]
        style = {
            "c": shown.change[order],
            "s": np.maximum(LARGEST_AREA * larger[order] / max(float(larger.max()), 1e-300), 3.0),
            "cmap": "RdBu_r",
            "vmin": -shown.most,
            "vmax": shown.most,
            "edgecolors": QUIET,
            "linewidths": 0.5,
        }
        cells = ax.scatter(shown.places[order, pair[0]], y, **style | kw)
        ax.figure.colorbar(cells, ax=ax, label="proportion of rows gained or lost")
        turns = np.linspace(0.0, 2 * np.pi, TURNS)
        for number, region in enumerate(shown.regions, 1):
            centre, reach = np.append(region.centre[pair], 0.0), np.append(DEVIATIONS * region.extent[pair], 0.0)
            outline = [centre[0] + reach[0] * np.cos(turns), centre[1] + reach[1] * np.sin(turns)]
            ax.plot(*outline, color="black", linewidth=1.2, linestyle="-" if region.change > 0 else ":")
            ax.plot(*([each] for each in centre[:2]), "+", color="black")
            ax.annotate(str(number), centre[:2], xytext=(4, 4), textcoords="offset points", fontweight="bold")
        names = [_plain(shown.names[k]) for k in pair]
        ax.set(xlabel=names[0], ylabel=names[1] if len(names) > 1 else "proportion gained or lost")

    def _column(self, ax: Any, kw: dict[str, Any]) -> None:
        each = next(each for each in self.figure.columns if each.position == self.columns[0])
        (_steps if each.values is None else _bars)(ax, each, kw)
        ax.set(xlabel=_plain(each.change.name), ylabel="proportion of rows", title=_plain(each.change.direction))
        ax.legend()

    def _columns(self, ax: Any, kw: dict[str, Any]) -> None:
        ranked, alpha = self.figure.columns[:RANKED], self.figure.result.alpha
        logs = np.asarray([-np.log10(max(each.change.p_value, SMALLEST_P)) for each in ranked])
        colours = [ACCENT if each.change.p_value <= alpha else SHADE for each in ranked]
        heights = np.arange(len(ranked))
        ax.barh(heights, logs, **{"color": colours} | kw)
        ax.axvline(-np.log10(alpha), color=QUIET, linestyle="--", linewidth=1)
        ax.set_yticks(heights, [_plain(each.change.name) for each in ranked])
        for height, length, each in zip(heights, logs, ranked, strict=True):
            if each.change.p_value <= alpha:
                ax.annotate(each.change.direction, (length, height), xytext=(4, 0), textcoords="offset points", va="center")
        ax.invert_yaxis()
        ax.margins(x=0.45)
        ax.set_xlim(left=0)
        ax.set_xlabel("−log₁₀ p-value")

    def _null(self, ax: Any, kw: dict[str, Any]) -> None:
        shown = self.figure
        ax.hist(shown.null_distances, **{"bins": 36, "color": SHADE, "label": "without drift"} | kw)
        ax.axvline(shown.result.null_quantile, color=QUIET, linestyle="--", linewidth=1, label="95 % quantile without drift")
        ax.axvline(shown.seen, color=ACCENT, label="new rows")
        ax.set(xlabel="distance", yticks=[])
        ax.set_xlim(left=0)
        ax.legend()


def _steps(ax: Any, each: ColumnFigure, kw: dict[str, Any]) -> None:
    """Proportions in bars of equal width, and beyond both ends."""
    edges = np.asarray(each.edges)
    width = edges[1] - edges[0]
    ends = np.concatenate([[edges[0] - width], edges, [edges[-1] + width]])
    ax.stairs(each.before, ends, fill=True, color=SHADE, label="before")
    ax.stairs(each.after, ends, **{"color": ACCENT, "linewidth": 1.5, "label": "now"} | kw)


def _bars(ax: Any, each: ColumnFigure, kw: dict[str, Any]) -> None:
    """Proportions of listed values next to each other. The last bar is all other values, if they occur."""
    values = np.asarray(each.values)
    kept = len(values) + (each.before[-1] + each.after[-1] > 0)
    x, titles = np.arange(kept), [*(f"{value:.4g}" for value in values), "other"][:kept]
    ax.bar(x - 0.2, each.before[:kept], 0.4, color=SHADE, label="before")
    ax.bar(x + 0.2, each.after[:kept], 0.4, **{"color": ACCENT, "label": "now"} | kw)
    every = -(-kept // 12)
    ax.set_xticks(x[::every], titles[::every])


def _plain(name: str) -> str:
    """A name for matplotlib, with escaped dollar signs."""
    return shortened(printable(name)).replace("$", r"\$")
