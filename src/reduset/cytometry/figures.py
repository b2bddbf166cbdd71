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
from reduset.report import QUIET, CohortFigure, MatplotlibDisplay, alike_beside, cohort_figure, percent, shortened

FOUND = "◆"
MAX_GROUPS = 24  # six colours with eight shapes can be distinguished
MIN_REACH = 1.0  # every figure shows at least a fold change of two
COLOUR_PERCENTILE, MIN_COLOUR = 98.0, 0.1  # of the atoms' fold changes, for the strongest colour; the smallest such fold change
MAX_RANKED = 40  # populations in a figure of fold changes


@dataclass(frozen=True)
class SamplesFigure:
    """The samples, and the columns that can colour them.

    Attributes
    ----------
    cohort : Their map.
    sizes : Number of cells of each sample, (N,).
    levels : Groups that are compared, the reference first; () without a comparison.
    controls : Whether a sample is a control, (N,).
    rest : Name for the samples without a group.
    columns : Columns by title, with a text per sample, None for a missing one. The groups that are compared come first.
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


@dataclass(frozen=True)
class DifferencesFigure:
    """The fold change of each population.

    Attributes
    ----------
    differences : The comparison.
    order : Populations by p-value, (k,).
    reach : Largest fold change of the axis, as a logarithm to base 2. Some intervals extend beyond it.
    """

    differences: Differences
    order: Indices
    reach: float


@dataclass(frozen=True)
class WitnessFigure:
    """The fold change at every atom.

    Attributes
    ----------
    points : Coordinates of the atoms, (m, d).
    weights : Proportion of the cells that each atom represents, (m,).
    fold_changes : Logarithms to base 2, against the first group, (G − 1, m).
    found : Whether an atom differs between groups, (m,).
    strongest : Fold change with the strongest colour.
    pair : The two markers that separate the found atoms best; one if there is one marker.
    """

    points: Array
    weights: Array
    fold_changes: Array
    found: NDArray[np.bool_]
    strongest: float
    pair: tuple[int, ...]


@dataclass(frozen=True)
class StudyFigure:
    """All figures of a study; figures that it does not have are None."""

    study: CohortStudy
    samples: SamplesFigure
    populations: PopulationFigure
    differences: DifferencesFigure | None
    witness: WitnessFigure | None


def study_figure(study: CohortStudy) -> StudyFigure:
    """The figures of a fitted `CohortStudy`."""
    fitted = checked(study)
    differences = None if fitted.differences_ is None else differences_figure(fitted)
    return StudyFigure(
        fitted,
        samples_figure(fitted),
        population_figure(fitted),
        differences,
        None if fitted.witness_ is None else witness_figure(fitted),
    )


def checked(study: CohortStudy) -> CohortStudy:
    """The study; an error if it is not fitted."""
    if not isinstance(study, CohortStudy):
        raise TypeError(f"study must be a CohortStudy, got {type(study).__name__}; a CohortMap has write_cohort and CohortDisplay")
    check_is_fitted(study, "populations_")
    return study


def samples_figure(study: CohortStudy) -> SamplesFigure:
    """The map of the samples."""
    samples, design = study.samples_, None if study.differences_ is None else study.differences_.design
    controls = np.zeros(len(samples.names), bool)
    if study.control is not None:
        controls[:] = [kind is not None for kind in study.controls_]
    groups: list[str | None] = [None] * len(samples.names)
    if design is not None:
        for row, code in zip(design.rows, design.codes, strict=True):
            groups[row] = design.levels[code]
    without = np.array([group is None for group in groups])
    rest = "controls" if (controls | ~without).all() else f"no {study.test}"
    named = [name for name in (study.test, study.batch, study.block, *study.covariates) if name is not None]
    columns = {} if study.test is None else {study.test: tuple(groups)}
    for title in dict.fromkeys([*named, *samples.table]):
        if title not in columns and title != study.control:
            texts = tuple(None if entry is None or str(entry) == "" else str(entry) for entry in samples.table[title])
            values = {text for text in texts if text is not None}
            if 2 <= len(values) <= MAX_GROUPS and (title in named or len(values) < len(texts)):
                columns[title] = texts
    return SamplesFigure(
        cohort_figure(study.map_, None if design is None else groups),
        samples.sizes,
        () if design is None else design.levels,
        controls,
        rest,
        columns,
    )


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


def differences_figure(study: CohortStudy) -> DifferencesFigure:
    """The fold changes of the populations, if groups were compared."""
    differences = study.differences_
    if differences is None:
        raise ValueError("study compared no groups, so there are no differences to show; name a column as test, and fit it again")
    order = differences.order()
    sizes, ends = np.abs(differences.effects), np.abs(differences.intervals)
    significant = ends[:, differences.found].max(initial=0.0)  # intervals of significant populations are shown whole
    reach = 1.08 * max(significant, min(ends.max(), 1.5 * sizes.max()), MIN_REACH)
    return DifferencesFigure(differences, order, float(reach))


def witness_figure(study: CohortStudy) -> WitnessFigure:
    """The fold changes of the atoms, if groups were compared."""
    witness, populations = study.witness_, study.populations_
    if witness is None:
        raise ValueError("study compared no groups, so there is no witness function; name a column as test, and fit it again")
    weights = (populations.atom_counts / populations.sizes[:, None]).mean(axis=0)
    strongest = float(np.percentile(np.abs(witness.fold_changes), COLOUR_PERCENTILE))
    return WitnessFigure(
        populations.atoms,
        weights,
        witness.fold_changes,
        witness.found,
        max(strongest, MIN_COLOUR),
        _pair(populations.atoms, weights, witness.fold_changes, witness.found),
    )


def _pair(points: Array, weights: Array, folds: Array, found: NDArray[np.bool_]) -> tuple[int, ...]:
    """The two markers in which atoms with more cells, or atoms with fewer, differ most from all other atoms.

    If no atom was found, the two markers with the largest spread.
    """
    d = points.shape[1]
    if d < 2:
        return (0,)
    largest = folds[np.abs(folds).argmax(axis=0), np.arange(len(weights))]
    spread = np.sqrt(np.average((points - np.average(points, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    spread[spread == 0] = np.inf
    scores = []
    for inside in (found & (largest > 0), found & (largest < 0)):
        if inside.any() and not inside.all():
            centre, other = (np.average(points[rows], axis=0, weights=weights[rows]) for rows in (inside, ~inside))
            scores.append(np.abs(centre - other) / spread)
    if not scores:
        return tuple(sorted(np.argsort(-np.where(np.isfinite(spread), spread, -1.0), kind="stable")[:2].tolist()))
    best = np.max(scores, axis=0)
    return tuple(sorted(np.argsort(-best, kind="stable")[:2].tolist()))


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
        return cls(population_figure(checked(study)))

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
    figure : DifferencesFigure, the numbers
    """

    figure: DifferencesFigure

    @classmethod
    def from_study(cls, study: CohortStudy) -> Self:
        """The display of a fitted `CohortStudy` that compared groups."""
        return cls(differences_figure(checked(study)))

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw the fold changes on ``ax`` or new axes, significant ones with filled markers; ``kw`` as for ``Axes.errorbar``."""
        ax, differences = axes(ax), self.figure.differences
        order = self.figure.order[:MAX_RANKED]
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
        ax.set_xlim(-self.figure.reach, self.figure.reach)
        ax.set_xlabel(f"logarithm to base 2 of the fold change against {_plain(levels[0])}")
        if len(levels) > 2:
            ax.legend()
        return self._on(ax)


def _plain(name: str, found: bool = False) -> str:
    """A name for matplotlib, which would read text between dollars as a formula."""
    return (f"{FOUND} " if found else "") + shortened(printable(name)).replace("$", r"\$")
