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
from reduset.report.page import Markup, cards, choice, controls, file, markup, origin, packed, write
from reduset.report.words import Card, count, p_told, percent, plain, shortened

PARAMETERS = {
    "test": "Compared",
    "reference": "Reference",
    "block": "Within",
    "batch": "Batches",
    "control": "Controls",
    "covariates": "Held fixed",
    "n_atoms": "Small groups of cells",
    "n_populations": "Populations",
    "dip": "Valleys down to (dip)",
    "fdr": "False discovery rate",
    "confidence": "Confidence of intervals",
    "null": "Chance judged by (null)",
    "layout": "Layout of the map",
    "random_state": "Random state",
}
FEW_FILES = 4
NAMED = 24  # letters of a name in a box of choices
SCRIPTS = ["common.js", "two_columns.js", "samples.js", "study.js"]
SURE = 0.05  # of a single test
LISTED = 3  # populations in a card


def write_report(path: _archive.Path_, study: CohortStudy, *, about: Mapping[str, Any] | None = None) -> None:
    """Write the report of a cohort study: one HTML file that opens offline.

    Parameters
    ----------
    path : where to, usually with the ending .html
    study : a fitted `CohortStudy`
    about : plain values to show beside it: "command", "sources", "notes", "versions", and any others
    """
    shown = study_figure(study)
    title = f"{count(len(shown.samples.sizes), 'sample')}, {count(len(shown.populations.names), 'population')}"
    write(path, title, _body(shown, about), contents(shown), SCRIPTS)


def contents(shown: StudyFigure) -> dict[str, Any]:
    """What the scripts of the page read."""
    samples, cohort, found = shown.samples, shown.samples.cohort, shown.study.populations_
    places = np.column_stack([cohort.places, np.zeros((len(cohort.names), 2))])[:, :2]
    return {
        "names": list(cohort.names),
        "sizes": samples.sizes.tolist(),
        "places": packed(places - places.mean(axis=0)),  # a map has no origin
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
        "counts": packed(found.counts, "i4"),
        "limits": packed(found.intervals(shown.study.confidence)),
        "differences": None if shown.differences is None else _differences(shown.differences),
        "witness": None if shown.witness is None else _witness(shown.witness, shown),
    }


def _differences(shown: DifferencesFigure) -> dict[str, Any]:
    told = shown.differences
    blocks = np.full(int(told.design.rows.max()) + 1, -1)
    blocks[told.design.rows] = told.design.blocks if told.design.is_blocked else -1
    return {
        "order": shown.order.tolist(),
        "reach": shown.reach,
        "effects": told.effects.tolist(),
        "intervals": told.intervals.tolist(),
        "shares": told.shares.tolist(),
        "p": told.p_values.tolist(),
        "q": told.q_values.tolist(),
        "blocks": blocks.tolist(),
    }


def _witness(shown: WitnessFigure, study: StudyFigure) -> dict[str, Any]:
    return {
        "markers": list(study.study.populations_.markers),
        "places": packed(shown.places.T),  # by markers
        "masses": packed(shown.masses),
        "folds": packed(shown.fold_changes),
        "found": np.flatnonzero(shown.found).tolist(),
        "owners": study.study.populations_.of_atom.tolist(),
        "most": shown.most,
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
    """The files, or some of them where they are many: all are named where it is told how to make the report again."""
    if isinstance(files, str) or len(files) <= FEW_FILES:
        return plain(files)
    return f"{plain(files[: FEW_FILES - 1])} and {count(len(files) - FEW_FILES + 1, 'file')} more"


def _lead(shown: StudyFigure) -> str:
    state = len(shown.populations.markers) - shown.populations.defining
    markers = count(len(shown.populations.markers), "marker") + (f", {state} of them of class state" if state else "")
    return f"{count(int(shown.samples.sizes.sum()), 'cell')} on {markers}"


def _parameters(study: CohortStudy) -> dict[str, Any]:
    given = {label: getattr(study, name) for name, label in PARAMETERS.items()}
    told = {label: plain(value) for label, value in given.items() if value is not None}
    return {label: text for label, text in told.items() if text} | {"Kernel": repr(study.map_.kernel_)}


def _grey(shown: StudyFigure) -> str:
    if not shown.samples.levels or None not in shown.samples.columns[str(shown.study.test)]:
        return ""
    things = "controls" if shown.samples.rest == "controls" else f"samples with {shown.samples.rest}"
    return f" Grey rings are {things}: not compared."


def _colours(shown: StudyFigure) -> Markup:
    """What dots may be coloured by; nothing where there is one choice."""
    titles = list(shown.samples.columns)
    if len(titles) < 2:
        return Markup("")
    return controls([choice("colours", "Colours by", list(enumerate(titles)), 0, NAMED)], "Colours of the map")


def _differences_section(shown: StudyFigure) -> Markup:
    if shown.differences is None:
        return Markup("")
    told, names = shown.differences.differences, shown.populations.names
    options = [(int(k), (f"{FOUND} " if told.found[k] else "") + names[k]) for k in shown.differences.order]
    return markup(
        file("study-differences.html"),
        told=compared(shown.study, told),
        against=against(told),
        confidence=percent(told.confidence),
        choice=controls([choice("population", "Population", options, options[0][0], 32)], "Population that is shown"),
        marks=_marks(shown.differences),
        table=differing(shown.study.populations_, shown.differences),
    )


def _marks(shown: DifferencesFigure) -> str:
    told = shown.differences
    text = f"{FOUND} and filled signs: differs, at a false discovery rate of {percent(told.fdr)}; hollow ones are not shown to."
    text += " Click one of them to see its samples. Bars on the right are the mean share of a group."
    if told.design.is_blocked:
        text += " Lines join samples that belong together."
    return text


def _witness_section(shown: StudyFigure) -> Markup:
    if shown.witness is None or shown.differences is None:
        return Markup("")
    levels, found = shown.samples.levels, int(shown.witness.found.sum())
    markers = list(enumerate(shown.study.populations_.markers))
    pair, boxes = shown.witness.pair, []
    if len(levels) > 2:
        boxes.append(choice("level", "More or fewer in", list(enumerate(levels[1:])), 0, NAMED))
    if len(pair) > 1:
        boxes += [choice("across", "Across", markers, pair[0], NAMED), choice("up", "Up", markers, pair[1], NAMED)]
    rate = f"at a false discovery rate of {percent(shown.study.fdr)}"
    where = f"Nowhere are cells shown to be more or fewer, {rate}"
    if found:
        where = f"Cells are more or fewer in {count(found)} of {count(len(shown.witness.masses))} small groups of them, {rate}"
    return markup(
        file("study-witness.html"),
        told=f"{where}. Red is where there are more than in {levels[0]}, blue where there are fewer, whatever the populations.",
        choice=controls(boxes, "What is shown") if boxes else "",
        title=against(shown.differences.differences),
        atoms=count(len(shown.witness.masses)),
        rings="Thick rings are those that were found." if found else "",
    )


def study_cards(shown: StudyFigure) -> list[Card]:
    """The figures at the head: what differs, the whole at once, batches, and what cleaning left."""
    study = shown.study
    told = [_populations(shown) if study.differences_ is None else _differing(study.differences_)]
    if study.whole_ is not None:
        told.append(Card("All at once", percent(study.whole_.share), _whole(study.whole_, "groups")))
    if study.batches_ is not None and study.batches_.whole is not None:
        told.append(Card("Batches", percent(study.batches_.whole.share), _whole(study.batches_.whole, "runs")))
    if "events" in study.samples_.counted:
        kept, events = int(study.samples_.sizes.sum()), int(study.samples_.counted["events"].sum())
        meaning = f"{count(kept)} of {count(events, 'event')} were kept by cleaning."
        told.append(Card("Cells kept", percent(kept / events) if events else "—", meaning))
    return told


def _populations(shown: StudyFigure) -> Card:
    names, shares = shown.populations.names, shown.populations.shares
    meaning = f"The largest is {names[0]}, {percent(float(shares[0]))} of the cells"
    meaning += f"; the smallest {names[-1]}, {percent(float(shares[-1]))}." if len(names) > 1 else "."
    return Card("Populations", count(len(names)), meaning)


def _differing(found: Differences) -> Card:
    many, rate = int(found.found.sum()), percent(found.fdr)
    figure = f"{many} of {len(found.names)}"
    if not many:
        return Card(
            "Populations that differ", figure, f"None is shown to, at a false discovery rate of {rate}; some may all the same."
        )
    surest = np.flatnonzero(found.found)[np.argsort(found.p_values[found.found], kind="stable")]
    listed = "; ".join(shortened(found.names[k], 40) for k in surest[:LISTED]) + ("; …" if many > LISTED else "")
    return Card("Populations that differ", figure, f"At a false discovery rate of {rate}: {listed}.")


def _whole(found: WholeTest, things: str) -> str:
    verdict = "differ" if found.p_value <= SURE else "are not shown to differ"
    return (
        f"of the squared distances of samples lie between {things} (column {found.name}), {percent(found.expected)} by chance: "
        f"they {verdict}, {p_told(found.p_value)}."
    )


def against(found: Differences) -> str:
    """What is compared with what."""
    levels = found.design.levels
    return f"{levels[1]} against {levels[0]}" if len(levels) == 2 else f"Against {levels[0]}"


def compared(study: CohortStudy, found: Differences) -> str:
    """How the groups were compared."""
    design = found.design
    groups = [f"{size} of {level}" for level, size in zip(design.levels, design.counts, strict=True)]
    listed = " and ".join([", ".join(groups[:-1]), groups[-1]])
    text = f"Samples are compared, not cells: {listed}"
    text += f", within {study.block}" if design.is_blocked else ""
    held = [str(study.batch) if name == "batch" and study.batch is not None else name for name in design.adjusted]
    text += f", with {' and '.join(held)} held fixed. " if held else ". "
    if found.null == "normal":
        text += f"There are only {count(found.labellings, 'way')} to label the samples, so chance is judged by the normal law."
    else:
        every = found.labellings <= MAX_RELABELLINGS + 1
        ways = (
            f"all {count(found.labellings)} ways to label them"
            if every
            else f"{count(MAX_RELABELLINGS + 1)} random ways to label them"
        )
        text += f"Chance is judged by {ways}."
    return text + " q is the false discovery rate at which a population is found."
