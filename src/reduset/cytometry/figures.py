"""The figures of a study: their numbers, which the report embeds, and displays of them for matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reduset._drawing import axes
from reduset._messages import printable
from reduset._types import Array
from reduset.cohort import SHAPES
from reduset.cytometry.comparing import Differences, Witness
from reduset.cytometry.populations import Populations
from reduset.cytometry.study import CohortStudy, check_study
from reduset.report import QUIET, MatplotlibDisplay, alike_beside, percent, shortened

FOUND = "◆"
MAX_GROUPS = 24  # six colours with eight shapes can be distinguished
MIN_REACH = 1.0  # every figure shows at least a fold change of two
MAX_RANKED = 40  # populations in a figure of fold changes


def sample_columns(study: CohortStudy) -> dict[str, tuple[str | None, ...]]:
    """Columns that can colour the samples, a text per sample, None for a missing one. The compared groups come first."""
    samples, columns = study.samples_, dict[str, tuple[str | None, ...]]()
    if study.differences_ is not None:
        design = study.differences_.design
        group = dict(zip(design.rows.tolist(), design.codes.tolist(), strict=True))
        columns[design.name] = tuple(design.levels[group[row]] if row in group else None for row in range(len(samples.names)))
    named = [name for name in (study.test, study.batch, study.block, *study.covariates) if name is not None]
    for title in dict.fromkeys([*named, *samples.table]):
        if title not in columns and title != study.control:
            texts = tuple(None if entry is None or str(entry) == "" else str(entry) for entry in samples.table[title])
            values = {text for text in texts if text is not None}
            if 2 <= len(values) <= MAX_GROUPS and (title in named or len(values) < len(texts)):
                columns[title] = texts
    return columns


def reach_of(differences: Differences) -> float:
    """The largest fold change of an axis, as a logarithm to base 2. Some intervals extend beyond it."""
    sizes, ends = np.abs(differences.effects), np.abs(differences.intervals)
    significant = ends[:, differences.found].max(initial=0.0)  # intervals of significant populations are shown whole
    return float(1.08 * max(significant, min(ends.max(), 1.5 * sizes.max()), MIN_REACH))


def separating_markers(populations: Populations, witness: Witness, found: NDArray[np.bool_]) -> list[int]:
    """The two markers in which atoms with more cells, or atoms with fewer, differ most from all other atoms; one if there is one.

    If no atom was found, the two markers with the largest spread. ``found`` has a truth value for each atom.
    """
    points, weights, folds = populations.atoms, populations.atom_shares.mean(axis=0), witness.fold_changes
    largest = folds[np.abs(folds).argmax(axis=0), np.arange(len(weights))]
    spread = np.sqrt(np.average((points - np.average(points, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    scores = []
    for inside in (found & (largest > 0), found & (largest < 0)):
        if inside.any() and not inside.all():
            centre, other = (np.average(points[rows], axis=0, weights=weights[rows]) for rows in (inside, ~inside))
            scores.append(np.abs(centre - other) / np.where(spread > 0, spread, np.inf))
    best = np.max(scores, axis=0) if scores else spread
    return sorted(np.argsort(-best, kind="stable")[:2].tolist())


@dataclass(frozen=True)
class PopulationFigure:
    """Populations by markers.

    Attributes
    ----------
    names : Names of the k populations.
    markers : Names of the d columns. Markers that define populations come first.
    defining : Number of markers that define populations.
    medians : Medians of each population, (k, d).
    scaled : Medians scaled so that each marker ranges from 0 to 1, (k, d).
    shares : Proportion of each population, (k,), with the same weight for every sample.
    found : Whether a population differs between groups, (k,).
    order : Order in which similar populations are neighbours, (k,).
    """

    names: tuple[str, ...]
    markers: tuple[str, ...]
    defining: int
    medians: Array
    scaled: Array
    shares: Array
    found: NDArray[np.bool_]
    order: NDArray[np.int64]


def population_figure(study: CohortStudy) -> PopulationFigure:
    """The populations by markers."""
    populations, state = study.populations_, study.samples_.state
    order = sorted(range(len(populations.markers)), key=lambda j: populations.markers[j] in state)
    medians = populations.medians[:, order]
    low, high = medians.min(axis=0), medians.max(axis=0)
    varies = high > low
    scaled = np.where(varies, (medians - low) / np.where(varies, high - low, 1.0), 0.5)
    defining = sum(marker not in state for marker in populations.markers)
    steps = scaled[:, None, :defining] - scaled[:, :defining]
    return PopulationFigure(
        populations.names,
        tuple(populations.markers[j] for j in order),
        defining,
        medians,
        scaled,
        populations.mean_shares,
        np.zeros(len(populations), bool) if study.differences_ is None else study.differences_.found,
        alike_beside(np.sqrt(np.square(steps).sum(axis=-1))),
    )


@dataclass(eq=False, repr=False)
class PopulationDisplay(MatplotlibDisplay):
    """The heatmap of a study's populations: medians of the markers, each scaled from its lowest to its highest median.

    Parameters
    ----------
    figure : PopulationFigure, the numbers
    """

    figure: PopulationFigure

    @classmethod
    def from_study(cls, study: CohortStudy) -> Self:
        """The display of a fitted `CohortStudy`."""
        return cls(population_figure(check_study(study)))

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw the heatmap on ``ax`` or new axes, with similar populations next to each other; ``kw`` as for ``Axes.imshow``."""
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
    """The fold change of each population of a study with its interval, the smallest p-value on top.

    Parameters
    ----------
    differences : Differences, the numbers
    """

    differences: Differences

    @classmethod
    def from_study(cls, study: CohortStudy) -> Self:
        """The display of a fitted `CohortStudy` that compared groups."""
        differences = check_study(study).differences_
        if differences is None:
            raise ValueError(
                "study compared no groups, so there are no differences to show; name a column as test, and fit it again"
            )
        return cls(differences)

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw the fold changes on ``ax`` or new axes, significant ones with filled markers; ``kw`` as for ``Axes.errorbar``."""
        ax, differences = axes(ax), self.differences
        order = differences.order()[:MAX_RANKED]
        levels = differences.design.levels
        rows, found = np.arange(len(order)), differences.found[order]
        for g, level in enumerate(levels[1:]):
            offset = 0.0 if len(levels) == 2 else 0.5 * (g / (len(levels) - 2) - 0.5)
            effects, ends = differences.effects[g, order], differences.intervals[g, order]
            colour = "black" if len(levels) == 2 else f"C{g}"
            for drawn, face in ((found, colour), (~found, "white")):
                label = level if face == colour or not found.any() else "_nolegend_"
                looks = {"fmt": SHAPES[g % len(SHAPES)], "color": colour, "markerfacecolor": face, "label": label}
                errors = np.abs(ends[drawn].T - effects[drawn])
                ax.errorbar(effects[drawn], rows[drawn] + offset, xerr=errors, **looks | kw)
        ax.axvline(0.0, color=QUIET, linestyle="--", linewidth=1)
        ax.set_yticks(rows, [_plain(differences.names[k], bool(differences.found[k])) for k in order])
        ax.invert_yaxis()
        reach = reach_of(differences)
        ax.set_xlim(-reach, reach)
        ax.set_xlabel(f"logarithm to base 2 of the fold change against {_plain(levels[0])}")
        if len(levels) > 2:
            ax.legend()
        return self._on(ax)


def _plain(name: str, found: bool = False) -> str:
    """A name for matplotlib, which would read text between dollars as a formula."""
    return (f"{FOUND} " if found else "") + shortened(printable(name)).replace("$", r"\$")
