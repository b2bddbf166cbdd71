"""Displays of a cohort study for matplotlib: populations by markers, and how much each differs between groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from reduset._drawing import axes
from reduset._messages import printable
from reduset.cohort.scatter import SHAPES
from reduset.cytometry.figures import DifferencesFigure, PopulationFigure, checked, differences_figure, population_figure
from reduset.cytometry.report_words import FOUND
from reduset.cytometry.study import CohortStudy
from reduset.report.displays import QUIET, MatplotlibDisplay
from reduset.report.words import percent, shortened

RANKED = 40  # populations in a picture of fold changes


@dataclass(eq=False, repr=False)
class PopulationDisplay(MatplotlibDisplay):
    """The heatmap of a study's populations: medians of the markers, each from its lowest to its highest.

    Parameters
    ----------
    figure : PopulationFigure, the numbers
    """

    figure: PopulationFigure

    @classmethod
    def from_study(cls, study: CohortStudy) -> Self:
        """Of a fitted `CohortStudy`."""
        return cls(population_figure(checked(study)))

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw it, on axes given or new: populations that are alike beside each other; ``kw`` as of ``Axes.imshow``."""
        ax, shown = axes(ax), self.figure
        order = shown.order
        image = ax.imshow(shown.scaled[order], **{"cmap": "Blues", "vmin": 0, "vmax": 1, "aspect": "auto"} | kw)
        ax.figure.colorbar(image, ax=ax, label="median, from the marker's lowest to its highest")
        names = [f"{_plain(shown.names[k], bool(shown.found[k]))}  {percent(float(shown.shares[k]))}" for k in order]
        ax.set_yticks(range(len(order)), names)
        ax.set_xticks(range(len(shown.markers)), [_plain(marker) for marker in shown.markers], rotation=60, ha="right")
        if shown.defining < len(shown.markers):
            ax.axvline(shown.defining - 0.5, color="white", linewidth=6)
        return self._on(ax)


@dataclass(eq=False, repr=False)
class DifferencesDisplay(MatplotlibDisplay):
    """How much each population of a study differs between groups: fold changes with their intervals, the surest on top.

    Parameters
    ----------
    figure : DifferencesFigure, the numbers
    """

    figure: DifferencesFigure

    @classmethod
    def from_study(cls, study: CohortStudy) -> Self:
        """Of a fitted `CohortStudy` that compared groups."""
        return cls(differences_figure(checked(study)))

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw it, on axes given or new, what differs with filled signs; ``kw`` as of ``Axes.errorbar``."""
        ax, told = axes(ax), self.figure.differences
        order = self.figure.order[:RANKED]
        levels = told.design.levels
        rows, found = np.arange(len(order)), told.found[order]
        for g, level in enumerate(levels[1:]):
            offset = 0.0 if len(levels) == 2 else 0.5 * (g / (len(levels) - 2) - 0.5)
            effects, ends = told.effects[g, order], told.intervals[g, order]
            colour = "black" if len(levels) == 2 else f"C{g}"
            for mine, face in ((found, colour), (~found, "white")):
                label = level if face == colour or not found.any() else "_nolegend_"
                looks = {"fmt": SHAPES[g % len(SHAPES)], "color": colour, "markerfacecolor": face, "label": label}
                errors = np.abs(ends[mine].T - effects[mine])
                ax.errorbar(effects[mine], rows[mine] + offset, xerr=errors, **looks | kw)
        ax.axvline(0.0, color=QUIET, linestyle="--", linewidth=1)
        ax.set_yticks(rows, [_plain(told.names[k], bool(told.found[k])) for k in order])
        ax.invert_yaxis()
        ax.set_xlim(-self.figure.reach, self.figure.reach)
        ax.set_xlabel(f"logarithm to base 2 of the fold change against {_plain(levels[0])}")
        if len(levels) > 2:
            ax.legend()
        return self._on(ax)


def _plain(name: str, found: bool = False) -> str:
    """A name as matplotlib shows it: dollars are no formulas."""
    return (f"{FOUND} " if found else "") + shortened(printable(name)).replace("$", r"\$")
