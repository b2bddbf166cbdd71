"""The figures of a study: their numbers, which the report embeds, and displays of them for matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from reduset._drawing import axes
from reduset._messages import printable
from reduset._types import Array, Indices
from reduset.cohort import SHAPES
from reduset.cytometry.comparing import Differences
from reduset.cytometry.study import CohortStudy
from reduset.report.cohort import CohortFigure, alike_beside, cohort_figure
from reduset.report.displays import QUIET, MatplotlibDisplay
from reduset.report.words import percent, shortened

FOUND = "◆"
MOST_KINDS = 24  # looks of dots that can be told apart: six colours with eight shapes
LEAST_REACH = 1.0  # a fold change of two has room in every picture
USUAL_REACH = 98.0  # percentile of atoms' fold changes that has the strongest colour
RANKED = 40  # populations in a picture of fold changes


@dataclass(frozen=True)
class SamplesFigure:
    """The samples, with what they may be coloured by.

    Attributes
    ----------
    cohort : their map
    sizes : (N,) how many cells each has
    levels : the groups that are compared, the reference first; () where nothing is compared
    controls : (N,) which samples are controls
    rest : what samples without a group are
    columns : by title one text a sample, None for those that have none; what is compared comes first
    """

    cohort: CohortFigure
    sizes: NDArray[np.int64]
    levels: tuple[str, ...]
    controls: NDArray[np.bool_]
    rest: str
    columns: dict[str, tuple[str | None, ...]]


@dataclass(frozen=True)
class PopulationFigure:
    """Populations by markers.

    Attributes
    ----------
    names : of the k populations
    markers : of the d columns, those that define populations first
    defining : how many of these there are
    medians : (k, d)
    scaled : (k, d) the same from 0, the lowest of a marker, to 1, its highest
    shares : (k,) of all cells, every sample counting the same
    found : (k,) which differ between groups
    order : (k,) populations that are alike beside each other
    """

    names: tuple[str, ...]
    markers: tuple[str, ...]
    defining: int
    medians: Array
    scaled: Array
    shares: Array
    found: NDArray[np.bool_]
    order: NDArray[np.int64]


@dataclass(frozen=True)
class DifferencesFigure:
    """How much each population differs.

    Attributes
    ----------
    differences : what it is of
    order : (k,) the surest first
    reach : the fold change, as a logarithm to base 2, at which a picture ends; some intervals go on
    """

    differences: Differences
    order: Indices
    reach: float


@dataclass(frozen=True)
class WitnessFigure:
    """Where groups differ, at every atom.

    Attributes
    ----------
    places : (m, d) of the atoms
    masses : (m,) the share of all cells that each stands for
    fold_changes : (G − 1, m) logarithms to base 2, against the first group
    found : (m,) bool
    most : the fold change of the strongest colour
    pair : the two markers in which found atoms stand out most; one where there is one marker
    """

    places: Array
    masses: Array
    fold_changes: Array
    found: NDArray[np.bool_]
    most: float
    pair: tuple[int, ...]


@dataclass(frozen=True)
class StudyFigure:
    """All of a study; what it has not is None."""

    study: CohortStudy
    samples: SamplesFigure
    populations: PopulationFigure
    differences: DifferencesFigure | None
    witness: WitnessFigure | None


def study_figure(study: CohortStudy) -> StudyFigure:
    """Of a fitted `CohortStudy`."""
    fitted = checked(study)
    compared = None if fitted.differences_ is None else differences_figure(fitted)
    return StudyFigure(
        fitted,
        samples_figure(fitted),
        population_figure(fitted),
        compared,
        None if fitted.witness_ is None else witness_figure(fitted),
    )


def checked(study: CohortStudy) -> CohortStudy:
    """A study that was fitted, or an error."""
    if not isinstance(study, CohortStudy):
        raise TypeError(f"study must be a CohortStudy, got {type(study).__name__}; a CohortMap has write_cohort and CohortDisplay")
    check_is_fitted(study, "populations_")
    return study


def samples_figure(study: CohortStudy) -> SamplesFigure:
    """Of the samples."""
    samples, design = study.samples_, None if study.differences_ is None else study.differences_.design
    controls = np.zeros(len(samples.names), bool)
    if study.control is not None:
        controls[:] = [each is not None for each in study.controls_]
    groups: list[str | None] = [None] * len(samples.names)
    if design is not None:
        for row, code in zip(design.rows, design.codes, strict=True):
            groups[row] = design.levels[code]
    without = np.array([group is None for group in groups])
    rest = "controls" if (controls | ~without).all() else f"no {study.test}"
    asked = [name for name in (study.test, study.batch, study.block, *study.covariates) if name is not None]
    columns = {} if study.test is None else {study.test: tuple(groups)}
    for title in dict.fromkeys([*asked, *samples.table]):
        if title not in columns and title != study.control:
            told = tuple(None if each is None or str(each) == "" else str(each) for each in samples.table[title])
            kinds = {each for each in told if each is not None}
            if 2 <= len(kinds) <= MOST_KINDS and (title in asked or len(kinds) < len(told)):
                columns[title] = told
    return SamplesFigure(
        cohort_figure(study.map_, None if design is None else groups),
        samples.sizes,
        () if design is None else design.levels,
        controls,
        rest,
        columns,
    )


def population_figure(study: CohortStudy) -> PopulationFigure:
    """Of the populations, by markers."""
    found, state = study.populations_, study.samples_.state
    order = sorted(range(len(found.markers)), key=lambda j: found.markers[j] in state)
    medians = found.medians[:, order]
    low, high = medians.min(axis=0), medians.max(axis=0)
    apart = high > low
    scaled = np.where(apart, (medians - low) / np.where(apart, high - low, 1.0), 0.5)
    defining = sum(marker not in state for marker in found.markers)
    gaps = scaled[:, None, :defining] - scaled[:, :defining]
    return PopulationFigure(
        found.names,
        tuple(found.markers[j] for j in order),
        defining,
        medians,
        scaled,
        found.mean_shares,
        np.zeros(len(found), bool) if study.differences_ is None else study.differences_.found,
        alike_beside(np.sqrt(np.square(gaps).sum(axis=-1))),
    )


def differences_figure(study: CohortStudy) -> DifferencesFigure:
    """Of what differs, if something was compared."""
    told = study.differences_
    if told is None:
        raise ValueError("study compared no groups, so there are no differences to show; name a column as test, and fit it again")
    order = told.order()
    sizes, ends = np.abs(told.effects), np.abs(told.intervals)
    sure = ends[:, told.found].max(initial=0.0)  # all of what was found is to be seen
    return DifferencesFigure(told, order, float(1.08 * max(sure, min(ends.max(), 1.5 * sizes.max()), LEAST_REACH)))


def witness_figure(study: CohortStudy) -> WitnessFigure:
    """Of where groups differ."""
    told, found = study.witness_, study.populations_
    if told is None:
        raise ValueError("study compared no groups, so nothing says where they differ; name a column as test, and fit it again")
    masses = (found.atom_counts / found.sizes[:, None]).mean(axis=0)
    reach = float(np.percentile(np.abs(told.fold_changes), USUAL_REACH))
    return WitnessFigure(
        found.atoms,
        masses,
        told.fold_changes,
        told.found,
        max(reach, LEAST_REACH),
        _pair(found.atoms, masses, told.fold_changes, told.found),
    )


def _pair(places: Array, masses: Array, folds: Array, found: NDArray[np.bool_]) -> tuple[int, ...]:
    """The two markers that tell most of what was found to gain, or to lose, from other atoms.

    Where nothing was found, those in which atoms are the farthest apart.
    """
    d = places.shape[1]
    if d < 2:
        return (0,)
    strongest = folds[np.abs(folds).argmax(axis=0), np.arange(len(masses))]
    spread = np.sqrt(np.average((places - np.average(places, axis=0, weights=masses)) ** 2, axis=0, weights=masses))
    spread[spread == 0] = np.inf
    scores = []
    for mine in (found & (strongest > 0), found & (strongest < 0)):
        if mine.any() and not mine.all():
            away = np.average(places[mine], axis=0, weights=masses[mine]) - np.average(places[~mine], axis=0, weights=masses[~mine])
            scores.append(np.abs(away) / spread)
    if not scores:
        return tuple(sorted(np.argsort(-np.where(np.isfinite(spread), spread, -1.0), kind="stable")[:2].tolist()))
    best = np.max(scores, axis=0)
    return tuple(sorted(np.argsort(-best, kind="stable")[:2].tolist()))


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
