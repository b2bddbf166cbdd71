"""The report of a study: populations that differ, the map of the samples, where groups differ, batches and cleaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset import _archive
from reduset.cytometry.comparing import Differences
from reduset.cytometry.design import MAX_RELABELLINGS
from reduset.cytometry.distance_tests import WholeTest
from reduset.cytometry.figures import FOUND, DifferencesFigure, StudyFigure, WitnessFigure, study_figure
from reduset.cytometry.report_tables import (
    batches_section,
    cleaning_section,
    differing,
    samples_table,
    shares_table,
    warning,
)
from reduset.cytometry.study import CohortStudy
from reduset.report import (
    Card,
    Markup,
    cards,
    choice,
    controls,
    count,
    file,
    markup,
    origin,
    p_told,
    packed,
    percent,
    plain,
    shortened,
    write,
)

PARAMETERS = {
    "test": "Compared",
    "reference": "Reference",
    "block": "Within",
    "batch": "Batches",
    "control": "Controls",
    "covariates": "Held fixed",
    "n_atoms": "Small groups of cells",
    "n_populations": "Populations",
    "dip": "Deepest merged valley (dip)",
    "fdr": "False discovery rate",
    "confidence": "Confidence of intervals",
    "null": "Null distribution (null)",
    "layout": "Layout of the map",
    "random_state": "Random state",
}
MAX_FILES = 4  # named at the head
MAX_OPTION_LENGTH = 24  # letters of a name in a box of options
SCRIPTS = ["common.js", "two_columns.js", "samples.js", "study.js"]
LEVEL = 0.05  # of a single test
MAX_LISTED = 3  # populations in a card


def write_report(path: _archive.Path_, study: CohortStudy, *, about: Mapping[str, Any] | None = None) -> None:
    """Write the report of a cohort study: one HTML file that opens offline.

    Parameters
    ----------
    path : the file, usually ending in .html
    study : a fitted `CohortStudy`
    about : plain values to show as well: "command", "sources", "notes", "versions", and any others
    """
    shown = study_figure(study)
    title = f"{count(len(shown.samples.sizes), 'sample')}, {count(len(shown.populations.names), 'population')}"
    write(path, title, _body(shown, about), contents(shown), SCRIPTS)


def contents(shown: StudyFigure) -> dict[str, Any]:
    """The data that the scripts of the page read."""
    samples, cohort, populations = shown.samples, shown.samples.cohort, shown.study.populations_
    points = np.column_stack([cohort.places, np.zeros((len(cohort.names), 2))])[:, :2]
    return {
        "names": list(cohort.names),
        "sizes": samples.sizes.tolist(),
        "places": packed(points - points.mean(axis=0)),  # a map has no origin
        "test": shown.study.test,
        "levels": list(samples.levels),
        "controls": samples.controls.tolist(),
        "rest": samples.rest,
        "columns": [{"title": title, "values": list(values)} for title, values in samples.columns.items()],
        "populations": {
            "names": list(shown.populations.names),
            "markers": list(shown.populations.markers),
            "defining": shown.populations.defining,
            "medians": packed(shown.populations.medians),
            "scaled": packed(shown.populations.scaled),
            "shares": shown.populations.shares.tolist(),
            "found": shown.populations.found.tolist(),
            "order": shown.populations.order.tolist(),
        },
        "counts": packed(populations.counts, "i4"),
        "limits": packed(populations.intervals(shown.study.confidence)),
        "differences": None if shown.differences is None else _differences(shown.differences),
        "witness": None if shown.witness is None else _witness(shown.witness, shown),
    }


def _differences(shown: DifferencesFigure) -> dict[str, Any]:
    differences = shown.differences
    design = differences.design
    blocks = np.full(int(design.rows.max()) + 1, -1)
    blocks[design.rows] = design.blocks if design.is_blocked else -1
    return {
        "order": shown.order.tolist(),
        "reach": shown.reach,
        "effects": differences.effects.tolist(),
        "intervals": differences.intervals.tolist(),
        "shares": differences.shares.tolist(),
        "p": differences.p_values.tolist(),
        "q": differences.q_values.tolist(),
        "blocks": blocks.tolist(),
    }


def _witness(shown: WitnessFigure, study: StudyFigure) -> dict[str, Any]:
    return {
        "markers": list(study.study.populations_.markers),
        "places": packed(shown.points.T),  # by markers
        "masses": packed(shown.weights),
        "folds": packed(shown.fold_changes),
        "found": np.flatnonzero(shown.found).tolist(),
        "owners": study.study.populations_.of_atom.tolist(),
        "most": shown.strongest,
        "pair": list(shown.pair),
    }


def _body(shown: StudyFigure, about: Mapping[str, Any] | None) -> Markup:
    study = shown.study
    found = shown.populations.found.any()
    confounded = study.batches_ is not None and study.batches_.confounded
    return markup(
        file("study.html"),
        samples=count(len(shown.samples.sizes)),
        populations=count(len(shown.populations.names)),
        sources=_sources((about or {}).get("sources") or ()),
        lead=_lead(shown),
        warning=warning(study.batches_) if confounded else "",
        cards=cards(study_cards(shown)),
        differences=_differences_section(shown),
        grey=_grey(shown),
        colours=_colours(shown),
        marked=f" {FOUND} marks those that differ." if found else "",
        witness=_witness_section(shown),
        batches=batches_section(shown),
        cleaning=cleaning_section(study),
        confidence=percent(study.confidence),
        shares=shares_table(study),
        table=samples_table(study),
        origin=origin(about, _parameters(study)),
    )


def _sources(files: Sequence[str] | str) -> str:
    """The files at the head of the page, or the first of them; the last section names all."""
    if isinstance(files, str) or len(files) <= MAX_FILES:
        return plain(files)
    return f"{plain(files[: MAX_FILES - 1])} and {count(len(files) - MAX_FILES + 1, 'more file')}"


def _lead(shown: StudyFigure) -> str:
    state = len(shown.populations.markers) - shown.populations.defining
    markers = count(len(shown.populations.markers), "marker") + (f", {state} of them of class state" if state else "")
    return f"{count(int(shown.samples.sizes.sum()), 'cell')} on {markers}"


def _parameters(study: CohortStudy) -> dict[str, Any]:
    given = {label: getattr(study, name) for name, label in PARAMETERS.items()}
    texts = {label: plain(value) for label, value in given.items() if value is not None}
    return {label: text for label, text in texts.items() if text} | {"Kernel": repr(study.map_.kernel_)}


def _grey(shown: StudyFigure) -> str:
    if not shown.samples.levels or None not in shown.samples.columns[str(shown.study.test)]:
        return ""
    samples = "controls" if shown.samples.rest == "controls" else f"samples with {shown.samples.rest}"
    return f" Grey rings are {samples}, which are not compared."


def _colours(shown: StudyFigure) -> Markup:
    """A choice of the column that colours the map; empty for one column."""
    titles = list(shown.samples.columns)
    if len(titles) < 2:
        return Markup("")
    return controls([choice("colours", "Colours by", list(enumerate(titles)), 0, MAX_OPTION_LENGTH)], "Colours of the map")


def _differences_section(shown: StudyFigure) -> Markup:
    if shown.differences is None:
        return Markup("")
    differences, names = shown.differences.differences, shown.populations.names
    options = [(int(k), (f"{FOUND} " if differences.found[k] else "") + names[k]) for k in shown.differences.order]
    return markup(
        file("study-differences.html"),
        told=compared(shown.study, differences),
        against=against(differences),
        confidence=percent(differences.confidence),
        choice=controls([choice("population", "Population", options, options[0][0], 32)], "Population that is shown"),
        marks=_marks(shown.differences),
        table=differing(shown.study.populations_, shown.differences),
    )


def _marks(shown: DifferencesFigure) -> str:
    differences = shown.differences
    text = f"{FOUND} and filled markers: significant at a false discovery rate of {percent(differences.fdr)}."
    text += " Select a marker to see its samples. Bars on the right are the mean proportion of a group."
    if differences.design.is_blocked:
        text += " Lines join the samples of a block."
    return text


def _witness_section(shown: StudyFigure) -> Markup:
    if shown.witness is None or shown.differences is None:
        return Markup("")
    levels, found = shown.samples.levels, int(shown.witness.found.sum())
    markers = list(enumerate(shown.study.populations_.markers))
    pair, boxes = shown.witness.pair, []
    if len(levels) > 2:
        boxes.append(choice("level", "Group", list(enumerate(levels[1:])), 0, MAX_OPTION_LENGTH))
    if len(pair) > 1:
        axes = (("across", "Horizontal axis", pair[0]), ("up", "Vertical axis", pair[1]))
        boxes += [choice(name, title, markers, marker, MAX_OPTION_LENGTH) for name, title, marker in axes]
    rate = f"at a false discovery rate of {percent(shown.study.fdr)}"
    text = f"No small group of cells differs significantly in its proportion, {rate}"
    if found:
        text = f"{count(found)} of {count(len(shown.witness.weights))} small groups of cells differ in their proportion, {rate}"
    return markup(
        file("study-witness.html"),
        told=f"{text}. Red: larger than in the group {levels[0]}. Blue: smaller. Populations are not used here.",
        choice=controls(boxes, "Axes and group") if boxes else "",
        title=against(shown.differences.differences),
        atoms=count(len(shown.witness.weights)),
        rings="Thick rings mark significant differences." if found else "",
        folds=_folds(shown),
    )


def _folds(shown: StudyFigure) -> str:
    """The smoothing of the fold changes, and the scales of the axes."""
    witness, scales = shown.study.witness_, shown.study.samples_.scales
    text = "Fold changes are ratios of kernel densities"
    text += "" if witness is None else f" at bandwidth {witness.bandwidth:.3g}"
    text += ", so they are smaller than the fold changes of populations."
    return f"{text} Axes have the scales of the markers, which the table below lists." if scales else text


def study_cards(shown: StudyFigure) -> list[Card]:
    """The cards at the head: populations that differ, the test of all at once, batches, and the cells kept by cleaning."""
    study = shown.study
    result = [_populations(shown) if study.differences_ is None else _differing(study.differences_)]
    if study.whole_ is not None:
        result.append(Card("Between groups", percent(study.whole_.share), _whole(study.whole_, "groups")))
    if study.batches_ is not None and study.batches_.whole is not None:
        result.append(Card("Between batches", percent(study.batches_.whole.share), _whole(study.batches_.whole, "runs")))
    if "events" in study.samples_.counted:
        kept, events = int(study.samples_.sizes.sum()), int(study.samples_.counted["events"].sum())
        meaning = f"{count(kept)} of {count(events, 'event')} were kept by cleaning."
        result.append(Card("Cells kept", percent(kept / events) if events else "—", meaning))
    return result


def _populations(shown: StudyFigure) -> Card:
    names, shares = shown.populations.names, shown.populations.shares
    meaning = f"The largest is {names[0]}, {percent(float(shares[0]))} of the cells"
    meaning += f"; the smallest {names[-1]}, {percent(float(shares[-1]))}." if len(names) > 1 else "."
    return Card("Populations", count(len(names)), meaning)


def _differing(differences: Differences) -> Card:
    number, rate = int(differences.found.sum()), percent(differences.fdr)
    figure = f"{number} of {len(differences.names)}"
    if not number:
        text = f"No population differs significantly at a false discovery rate of {rate}. Small differences may remain undetected."
        return Card("Populations that differ", figure, text)
    order = np.flatnonzero(differences.found)[np.argsort(differences.p_values[differences.found], kind="stable")]
    names = "; ".join(shortened(differences.names[k], 40) for k in order[:MAX_LISTED]) + ("; …" if number > MAX_LISTED else "")
    return Card("Populations that differ", figure, f"At a false discovery rate of {rate}: {names}.")


def _whole(whole: WholeTest, noun: str) -> str:
    verdict = "differ" if whole.p_value <= LEVEL else "do not differ significantly"
    return (
        f"of the squared distances of samples lie between {noun} (column {whole.name}). {percent(whole.expected)} are expected "
        f"under the null hypothesis. The {noun} {verdict}, {p_told(whole.p_value)}."
    )


def against(differences: Differences) -> str:
    """The title of the comparison."""
    levels = differences.design.levels
    return f"{levels[1]} against {levels[0]}" if len(levels) == 2 else f"Against {levels[0]}"


def compared(study: CohortStudy, differences: Differences) -> str:
    """A description of the test."""
    design = differences.design
    groups = [f"{size} of {level}" for level, size in zip(design.levels, design.counts, strict=True)]
    listed = " and ".join([", ".join(groups[:-1]), groups[-1]])
    text = f"Samples are compared, not cells: {listed}"
    text += f", within {study.block}" if design.is_blocked else ""
    held = [str(study.batch) if name == "batch" and study.batch is not None else name for name in design.adjusted]
    text += f", with {' and '.join(held)} held fixed. " if held else ". "
    if differences.null == "normal":
        text += f"p-values assume a normal distribution; {count(differences.labellings, 'labelling')} of the samples are possible."
    elif differences.labellings <= MAX_RELABELLINGS + 1:
        text += f"p-values come from all {count(differences.labellings, 'permutation')} of the labels."
    else:
        text += f"p-values come from {count(MAX_RELABELLINGS + 1)} random permutations of the labels."
    return text + " q is the smallest false discovery rate at which a population is significant."
