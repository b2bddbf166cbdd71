"""The display of a test of drift for matplotlib: the map of where, a column before and after, all columns, and chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from reduset._drawing import axes
from reduset._messages import printable
from reduset.drift.result import DriftResult
from reduset.report.displays import ACCENT, QUIET, SHADE, MatplotlibDisplay, positions
from reduset.report.drift_figure import ColumnFigure, DriftFigure, drift_figure
from reduset.report.words import shortened

KINDS = ("map", "column", "columns", "chance")
LARGEST = 260.0  # area of the largest cell's marker, in points²
REACH = 2.0  # standard deviations that the outline of a region shows
TURNS = 65  # points of an outline
RANKED = 20  # columns in a picture of all
LEAST = 1e-16  # p-value that is told apart from smaller ones


@dataclass(eq=False, repr=False)
class DriftDisplay(MatplotlibDisplay):
    """A test of drift: where rows came and went, and what became of the columns.

    Parameters
    ----------
    figure : DriftFigure, the numbers
    columns : one or two positions of columns, those of the map

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
        """Of what `DriftTest.test` returns; ``columns`` are one or two, by name or position: the telling ones if not given."""
        shown = drift_figure(result)
        return cls(shown, list(shown.pair) if columns is None else positions(columns, shown.names))

    def plot(self, ax: Any = None, kind: str = "map", **kw: Any) -> Self:
        """Draw it, on axes given or new.

        Parameters
        ----------
        ax : matplotlib axes, optional
        kind : "map", cells and regions that gained (red) or lost; "column", the first of the columns before and after; "columns",
            all of them by how surely they changed; "chance", the distance beside what chance alone makes
        **kw : as of ``Axes.scatter`` for the map, ``Axes.stairs`` or ``Axes.bar`` for a column, ``Axes.barh`` for all,
            ``Axes.hist`` for chance
        """
        self._check(kind, KINDS)
        ax = axes(ax)
        draw = {"map": self._map, "column": self._column, "columns": self._columns, "chance": self._chance}[kind]
        draw(ax, kw)
        return self._on(ax)

    def _map(self, ax: Any, kw: dict[str, Any]) -> None:
        shown, pair = self.figure, self.columns
        larger = np.maximum(shown.before, shown.after)
        order = np.argsort(-larger, kind="stable")
        y = shown.places[order, pair[1]] if len(pair) > 1 else shown.change[order]
        looks = {
            "c": shown.change[order],
            "s": np.maximum(LARGEST * larger[order] / max(float(larger.max()), 1e-300), 3.0),
            "cmap": "RdBu_r",
            "vmin": -shown.most,
            "vmax": shown.most,
            "edgecolors": QUIET,
            "linewidths": 0.5,
        }
        cells = ax.scatter(shown.places[order, pair[0]], y, **looks | kw)
        ax.figure.colorbar(cells, ax=ax, label="share of all rows gained or lost")
        turns = np.linspace(0.0, 2 * np.pi, TURNS)
        for number, region in enumerate(shown.regions, 1):
            centre, reach = np.append(region.centre[pair], 0.0), np.append(REACH * region.extent[pair], 0.0)
            outline = [centre[0] + reach[0] * np.cos(turns), centre[1] + reach[1] * np.sin(turns)]
            ax.plot(*outline, color="black", linewidth=1.2, linestyle="-" if region.change > 0 else ":")
            ax.plot(*([each] for each in centre[:2]), "+", color="black")
            ax.annotate(str(number), centre[:2], xytext=(4, 4), textcoords="offset points", fontweight="bold")
        names = [_plain(shown.names[k]) for k in pair]
        ax.set(xlabel=names[0], ylabel=names[1] if len(names) > 1 else "share gained or lost")

    def _column(self, ax: Any, kw: dict[str, Any]) -> None:
        each = next(each for each in self.figure.columns if each.position == self.columns[0])
        (_steps if each.values is None else _bars)(ax, each, kw)
        ax.set(xlabel=_plain(each.change.name), ylabel="share of the rows", title=_plain(each.change.direction))
        ax.legend()

    def _columns(self, ax: Any, kw: dict[str, Any]) -> None:
        ranked, alpha = self.figure.columns[:RANKED], self.figure.result.alpha
        sure = np.asarray([-np.log10(max(each.change.p_value, LEAST)) for each in ranked])
        colours = [ACCENT if each.change.p_value <= alpha else SHADE for each in ranked]
        places = np.arange(len(ranked))
        ax.barh(places, sure, **{"color": colours} | kw)
        ax.axvline(-np.log10(alpha), color=QUIET, linestyle="--", linewidth=1)
        ax.set_yticks(places, [_plain(each.change.name) for each in ranked])
        for place, length, each in zip(places, sure, ranked, strict=True):
            if each.change.p_value <= alpha:
                ax.annotate(each.change.direction, (length, place), xytext=(4, 0), textcoords="offset points", va="center")
        ax.invert_yaxis()
        ax.margins(x=0.45)
        ax.set_xlim(left=0)
        ax.set_xlabel("how sure: −log₁₀ of the p-value")

    def _chance(self, ax: Any, kw: dict[str, Any]) -> None:
        shown = self.figure
        ax.hist(shown.by_chance, **{"bins": 36, "color": SHADE, "label": "by chance alone"} | kw)
        ax.axvline(shown.result.chance, color=QUIET, linestyle="--", linewidth=1, label="95 of 100 by chance")
        ax.axvline(shown.seen, color=ACCENT, label="seen")
        ax.set(xlabel="distance", yticks=[])
        ax.set_xlim(left=0)
        ax.legend()


def _steps(ax: Any, each: ColumnFigure, kw: dict[str, Any]) -> None:
    """Shares between equally distant places, and at either end of what lies beyond."""
    edges = np.asarray(each.edges)
    width = edges[1] - edges[0]
    ends = np.concatenate([[edges[0] - width], edges, [edges[-1] + width]])
    ax.stairs(each.before, ends, fill=True, color=SHADE, label="before")
    ax.stairs(each.after, ends, **{"color": ACCENT, "linewidth": 1.5, "label": "now"} | kw)


def _bars(ax: Any, each: ColumnFigure, kw: dict[str, Any]) -> None:
    """Shares of few values side by side; the last bar is all others, if there are any."""
    values = np.asarray(each.values)
    kept = len(values) + (each.before[-1] + each.after[-1] > 0)
    places, titles = np.arange(kept), [*(f"{value:.4g}" for value in values), "other"][:kept]
    ax.bar(places - 0.2, each.before[:kept], 0.4, color=SHADE, label="before")
    ax.bar(places + 0.2, each.after[:kept], 0.4, **{"color": ACCENT, "label": "now"} | kw)
    every = -(-kept // 12)
    ax.set_xticks(places[::every], titles[::every])


def _plain(name: str) -> str:
    """A name as matplotlib shows it: dollars are no formulas."""
    return shortened(printable(name)).replace("$", r"\$")
