"""The report of a study: populations that differ, the map of the samples, where groups differ, batches and cleaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset import _archive
from reduset.cytometry.comparing import Differences
from reduset.cytometry.design import MAX_RELABELLINGS
from reduset.cytometry.distance_tests import BatchCheck, WholeTest
from reduset.cytometry.figures import FOUND, population_figure, reach_of, sample_columns, separating_markers
from reduset.cytometry.study import CohortStudy, check_study
from reduset.report import (
    LONG,
    Card,
    Markup,
    Section,
    aside,
    choice,
    controls,
    count,
    cut,
    folded,
    grid,
    hero,
    listed,
    markup,
    named,
    p_told,
    packed,
    percent,
    plain,
    plot,
    shortened,
    small,
    table,
    write_page,
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
MAX_MARKER_LENGTH = 18  # letters of a marker in a list
MAX_TABLE_ROWS = 12  # longer tables scroll
MAX_SHARES = 40_000  # in a page
LEVEL = 0.05  # of a single test
MAX_LISTED = 3  # populations in a card
COLOUR_PERCENTILE, MIN_COLOUR = 98.0, 0.1  # of the atoms' fold changes, for the strongest colour; the smallest such fold change


def write_report(path: _archive.Path_, study: CohortStudy, *, about: Mapping[str, Any] | None = None) -> None:
    """Write the report of a cohort study: one HTML file that opens offline.

    Parameters
    ----------
    path : the file, usually ending in .html
    study : a fitted `CohortStudy`
    about : plain values to show as well: "command", "sources", "notes", "versions", and any others
    """
    samples, populations = check_study(study).samples_, study.populations_
    sizes = count(len(samples.names), "sample"), count(len(populations), "population")
    (n, noun), (k, nouns) = (size.split(" ", 1) for size in sizes)
    title = markup("$n <small>$noun,</small> <span>$k <small>$nouns</small></span>", n=n, noun=noun, k=k, nouns=nouns)
    state = len([marker for marker in samples.markers if marker in samples.state])
    markers = count(len(samples.markers), "marker") + (f", {state} of them of class state" if state else "")
    facts = [_sources((about or {}).get("sources") or ()), f"{count(int(samples.sizes.sum()), 'cell')} on {markers}"]
    settings = {label: plain(getattr(study, name)) for name, label in PARAMETERS.items() if getattr(study, name) is not None}
    write_page(
        path,
        ", ".join(sizes),
        hero(title, facts, _cards(study), _warning(study.batches_)),
        [_differing(study), _map(study), _heat(study), _where(study), _batches(study), _cleaning(study), _shares(study)],
        ["two_columns.js", "samples.js", "study.js"],
        about=about,
        settings={label: text for label, text in settings.items() if text} | {"Kernel": repr(study.map_.kernel_)},
        data={
            "names": list(samples.names),
            "sizes": samples.sizes.tolist(),
            "test": study.test,
            "differences": None,
            "witness": None,
        },
    )


def _sources(files: Sequence[str] | str) -> str:
    """The files at the head of the page, or the first of them; the last section names all."""
    if isinstance(files, str) or len(files) <= MAX_FILES:
        return plain(files)
    return f"{plain(files[: MAX_FILES - 1])} and {count(len(files) - MAX_FILES + 1, 'more file')}"


def _cards(study: CohortStudy) -> list[Card]:
    """The populations that differ, the test of all at once, batches, and the cells kept by cleaning."""
    populations, differences, counted = study.populations_, study.differences_, study.samples_.counted
    names, shares = populations.names, populations.mean_shares
    if differences is None:
        meaning = f"The largest is {names[0]}, {percent(float(shares[0]))} of the cells"
        meaning += f"; the smallest {names[-1]}, {percent(float(shares[-1]))}." if len(names) > 1 else "."
        result = [Card("Populations", count(len(names)), meaning)]
    else:
        found, rate = [names[k] for k in differences.order() if differences.found[k]], percent(differences.fdr)
        text = f"No population differs significantly at a false discovery rate of {rate}. Small differences may remain undetected."
        if found:
            more = "; …" if len(found) > MAX_LISTED else ""
            text = f"At a false discovery rate of {rate}: {'; '.join(shortened(name, 40) for name in found[:MAX_LISTED])}{more}."
        result = [Card("Populations that differ", f"{len(found)} of {len(names)}", text)]
    batches = None if study.batches_ is None else study.batches_.whole
    for title, noun, whole in (("Between groups", "groups", study.whole_), ("Between batches", "runs", batches)):
        if whole is not None:
            result.append(Card(title, percent(whole.share), _whole(whole, noun)))
    if "events" in counted:
        kept, events = int(study.samples_.sizes.sum()), int(counted["events"].sum())
        meaning = f"{count(kept)} of {count(events, 'event')} were kept by cleaning."
        result.append(Card("Cells kept", percent(kept / events) if events else "—", meaning))
    return result


def _whole(whole: WholeTest, noun: str) -> str:
    verdict = "differ" if whole.p_value <= LEVEL else "do not differ significantly"
    return (
        f"of the squared distances of samples lie between {noun} (column {whole.name}). {percent(whole.expected)} are expected "
        f"under the null hypothesis. The {noun} {verdict}, {p_told(whole.p_value)}."
    )


def _warning(batches: BatchCheck | None) -> Markup:
    """A warning that groups and runs are confounded; empty otherwise."""
    if batches is None or not batches.confounded:
        return Markup("")
    return markup('<p class="notice warning" role="alert"><strong>Warning:</strong> $note.</p>', note=batches.notes[0])


# -- populations that differ --------------------------------------------------------------------------------------------------


def _differing(study: CohortStudy) -> Section | None:
    """Fold changes and proportions of the populations, if groups were compared."""
    differences = study.differences_
    if differences is None:
        return None
    design, names, order = differences.design, differences.names, differences.order().tolist()
    options = [(k, (f"{FOUND} " if differences.found[k] else "") + names[k]) for k in order]
    marks = f"{FOUND} and filled markers: significant at a false discovery rate of {percent(differences.fdr)}."
    marks += " Select a marker to see its samples. Bars on the right are the mean proportion of a group."
    marks += " Lines join the samples of a block." if design.is_blocked else ""
    blocks = np.full(int(design.rows.max()) + 1, -1)
    blocks[design.rows] = design.blocks if design.is_blocked else -1
    data = {
        "order": order,
        "reach": reach_of(differences),
        "effects": differences.effects.tolist(),
        "intervals": differences.intervals.tolist(),
        "shares": differences.shares.tolist(),
        "p": differences.p_values.tolist(),
        "q": differences.q_values.tolist(),
        "blocks": blocks.tolist(),
    }
    forest = plot(
        "forest",
        "Fold change of every population, with its confidence interval",
        caption=_against(differences),
        more=small(f"with {percent(differences.confidence)} intervals"),
    )
    dots = plot(
        "dots",
        "Proportion of the selected population in every sample, by group",
        caption="Proportion of cells in each sample",
        controls=controls([choice("population", "Population", options, order[0], 32)], "Population that is shown"),
    )
    parts = [_compared(study, differences), grid([forest, dots]), aside(marks), _differences_table(study, differences)]
    return Section("differ", "Populations that differ", parts, {"differences": data})


def _against(differences: Differences) -> str:
    """The title of the comparison."""
    levels = differences.design.levels
    return f"{levels[1]} against {levels[0]}" if len(levels) == 2 else f"Against {levels[0]}"


def _compared(study: CohortStudy, differences: Differences) -> str:
    """A description of the test."""
    design = differences.design
    groups = [f"{size} of {level}" for level, size in zip(design.levels, design.counts, strict=True)]
    text = f"Samples are compared, not cells: {' and '.join([', '.join(groups[:-1]), groups[-1]])}"
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


def _differences_table(study: CohortStudy, differences: Differences) -> Markup:
    """Every population with its proportions and fold changes, the smallest p-value first."""
    levels = differences.design.levels
    head = ["population", "significant", "markers", *(f"in {level}" for level in levels)]
    head += ["fold change"] if len(levels) == 2 else [f"fold change {level}" for level in levels[1:]]
    rows = []
    for k in differences.order():
        name: Any = differences.names[k]
        if differences.found[k]:
            name = markup("<strong>$mark $name</strong>", mark=FOUND, name=named(name, LONG))
        effects = [(differences.effects[g, k], *differences.intervals[g, k]) for g in range(len(levels) - 1)]
        folds = [f"{_times(effect)} ({_times(low)} to {_times(high)})" for effect, low, high in effects]
        marked = study.populations_.marked(int(k)) or ["none"]
        short = cut(" ".join(shortened(marker, MAX_MARKER_LENGTH) for marker in marked), " ".join(marked))
        shares = [percent(float(share)) for share in differences.shares[k]]
        p_and_q = [p_told(float(value), "") for value in (differences.p_values[k], differences.q_values[k])]
        rows.append([name, "yes" if differences.found[k] else "no", short, *shares, *folds, *p_and_q])
    intervals = f"{percent(differences.confidence)} intervals"
    caption = f"Every population, the smallest p first: mean proportions of the samples, and fold changes with {intervals}"
    return table([*head, "p", "q"], rows, caption, high=len(rows) > 2 * MAX_TABLE_ROWS)


def _times(effect: float) -> str:
    """A fold change from its logarithm to base 2."""
    fold = 2.0 ** float(np.clip(effect, -99, 99))
    return f"{fold:.2f}" if 0.01 <= fold < 100 else f"{fold:.2g}"


# -- samples, populations and atoms -------------------------------------------------------------------------------------------


def _map(study: CohortStudy) -> Section:
    columns, embedding = sample_columns(study), np.asarray(study.map_.embedding_, np.float64)
    points = np.column_stack([embedding, np.zeros((len(embedding), 2))])[:, :2]
    levels = () if study.differences_ is None else study.differences_.design.levels
    are_controls = [kind is not None for kind in study.controls_]
    omitted = [group is None for group in columns[str(study.test)]] if levels else [True] * len(are_controls)
    only_controls = all(control for control, without in zip(are_controls, omitted, strict=True) if without)
    rest = "controls" if only_controls else f"no {study.test}"
    text = "Each dot is a sample. Samples with similar cells are close to each other. Directions have no meaning."
    if levels and any(omitted):
        text += f" Grey rings are {rest if only_controls else f'samples with {rest}'}, which are not compared."
    data = {
        "places": packed(points - points.mean(axis=0)),  # a map has no origin
        "levels": list(levels),
        "controls": are_controls,
        "rest": rest,
        "columns": [{"title": title, "values": list(values)} for title, values in columns.items()],
    }
    boxes = [choice("colours", "Colours by", list(enumerate(columns)), 0, MAX_OPTION_LENGTH)]
    chosen = controls(boxes, "Colours of the map") if len(columns) > 1 else ""
    parts = [text, chosen, plot("map", "Map of the samples, with their names", "tall"), aside(name="grid"), aside(name="nameless")]
    return Section("map", "Map of the samples", parts, data)


def _heat(study: CohortStudy) -> Section:
    shown, populations = population_figure(study), study.populations_
    data = {name: packed(part) if np.ndim(part) == 2 else np.asarray(part).tolist() for name, part in vars(shown).items()}
    limits = packed(populations.intervals(study.confidence))
    text = (
        "The median of every marker in every population, from the lowest median of the marker to the highest. Hover over a square, "
    )
    text += "or touch it, for its value. Bars are proportions of all cells, with equal weight for every sample."
    text += f" {FOUND} marks those that differ." if shown.found.any() else ""
    orders = [("alike", "similar populations next to each other"), ("size", "largest first")]
    figure = Markup(
        '<figure><figcaption><span></span><span class="aside">lowest median <i class="scale sequential"></i> highest</span>'
        '</figcaption><div class="wide" tabindex="0" role="region" aria-label="Heatmap of the populations"><div class="plot" '
        'id="heat" role="img" aria-label="Medians of the markers in every population, with proportions"></div></div></figure>'
    )
    parts = [text, controls([choice("order", "Order", orders)], "Order of the populations"), figure]
    known = {"populations": data, "counts": packed(populations.counts, "i4"), "limits": limits}
    return Section("heat", "Populations by markers", parts, known)


def _where(study: CohortStudy) -> Section | None:
    """The fold change at every atom, if groups were compared."""
    witness, clusters, differences, populations = study.witness_, study.clusters_, study.differences_, study.populations_
    if witness is None or clusters is None or differences is None:
        return None
    levels, weights = differences.design.levels, populations.atom_shares.mean(axis=0)
    pair, markers = separating_markers(populations, witness, clusters.found), list(enumerate(populations.markers))
    data = {
        "markers": list(populations.markers),
        "places": packed(populations.atoms.T),  # by markers
        "masses": packed(weights),
        "folds": packed(witness.fold_changes),
        "found": np.flatnonzero(clusters.found).tolist(),
        "owners": populations.of_atom.tolist(),
        "most": max(float(np.percentile(np.abs(witness.fold_changes), COLOUR_PERCENTILE)), MIN_COLOUR),
        "pair": pair,
    }
    boxes = []
    if len(levels) > 2:
        boxes.append(choice("level", "Group", list(enumerate(levels[1:])), 0, MAX_OPTION_LENGTH))
    if len(pair) > 1:
        axes = (("across", "Horizontal axis", pair[0]), ("up", "Vertical axis", pair[1]))
        boxes += [choice(name, title, markers, marker, MAX_OPTION_LENGTH) for name, title, marker in axes]
    atoms, rate = count(len(weights)), f"at a family-wise error of {percent(clusters.level)}"
    tested = f"{count(clusters.tested)} nested clusters of cells, of all sizes, were tested"
    text = f"{tested}. None differs significantly in its proportion, {rate}"
    if len(clusters):
        differ = "1 differs in its proportion" if len(clusters) == 1 else f"{count(len(clusters))} differ in their proportions"
        text = f"{tested}. {differ}, {rate}: {'; '.join(clusters.lines())}"
    note = (
        f"A circle is one of {atoms} small groups of similar cells, at the position of one of them. Its area is the proportion of "
    )
    note += "all cells. " + ("Thick rings mark clusters that differ. " if len(clusters) else "")
    note += f"Fold changes are ratios of kernel densities at bandwidth {witness.bandwidth:.3g}, so they are smaller than the fold "
    note += "changes of populations."
    note += " Axes have the scales of the markers, which the table below lists." if study.samples_.scales else ""
    label = "Small groups of cells by two markers, coloured by fold change"
    parts = [
        f"{text}. Red: larger than in the group {levels[0]}. Blue: smaller. Populations are not used here.",
        controls(boxes, "Axes and group") if boxes else "",
        plot("where", label, "tall", caption=_against(differences), more=small("", "most")),
        aside(note),
    ]
    return Section("where", "Differences among the markers", parts, {"witness": data})


# -- batches ------------------------------------------------------------------------------------------------------------------


def _batches(study: CohortStudy) -> Section | None:
    """The contribution of runs to the distances, and the distances between controls."""
    batches = study.batches_
    if batches is None:
        return None
    runs, share = [run for run in batches.runs if run], batches.control_share
    text = f"{count(len(runs), 'sample')} in {count(len(set(runs)), 'run')} (column {batches.name}). "
    if batches.whole is not None:
        text += f"{percent(batches.whole.share)} of the squared distances of samples lie between runs. "
        text += f"{percent(batches.whole.expected)} are expected under the null hypothesis ({p_told(batches.whole.p_value)}). "
    if share is not None:
        text += f"The distance of the same control between two runs is {np.sqrt(share):.2g} times the distance of two different "
        text += "samples of one run. Smaller is better."
    elif not batches.controls:
        text += "There are no control samples. The same blood in every run would show the effect of the runs alone."
    notes = batches.notes[1:] if batches.confounded else batches.notes
    return Section("batches", "Batches", [text.strip(), _warning(batches), _sentences(notes), _controls(batches)])


def _controls(batches: BatchCheck) -> Markup:
    rows = [
        [
            pair.kind,
            *(f"{sample} ({run})" for sample, run in zip(pair.samples, pair.runs, strict=True)),
            f"{pair.distance:.3g}",
            f"{pair.distance / batches.usual:.2f}" if batches.usual > 0 else "—",
        ]
        for pair in batches.controls
    ]
    caption = "Distances of the same control between two runs, also relative to the distance of two different samples of one run"
    head = ["control", "first run", "second run", "distance", "relative distance"]
    return table(head, rows, caption, high=len(rows) > MAX_TABLE_ROWS) if rows else Markup("")


# -- cleaning -----------------------------------------------------------------------------------------------------------------


def _cleaning(study: CohortStudy) -> Section | None:
    """The events that each step removed, omitted samples, notes and scales; None without any of these."""
    samples = study.samples_
    if not (samples.counted or samples.left_out or study.notes_ or samples.scales):
        return None
    title, text = "Notes", "Cells were not cleaned."
    if samples.counted:
        title, text = "Cleaning", "Each step removes some of the events that the previous steps kept."
    omitted = [[name, reason] for name, reason in samples.left_out.items()]
    listed_notes = {f"{name} is omitted: {reason}" for name, reason in samples.left_out.items()}
    scales = [[name, "state" if name in samples.state else "type", samples.scales.get(name, "none")] for name in samples.markers]
    shown = table(["marker", "class", "scale"], scales, "The scale on which each marker is compared")
    parts = [
        text,
        table(["sample", "reason"], omitted, f"{count(len(omitted), 'sample')} omitted") if omitted else "",
        _counts(study) if samples.counted else "",
        _sentences([note for note in study.notes_ if note not in listed_notes]),
        folded("Scales of the markers", shown) if samples.scales else "",
    ]
    return Section("cleaning", title, parts)


def _counts(study: CohortStudy) -> Markup:
    samples = study.samples_
    steps = [step for step in samples.counted if step != "events"]
    removed = np.array([samples.counted[step] for step in steps], np.int64).reshape(len(steps), len(samples.names))
    events = samples.counted.get("events", samples.sizes + removed.sum(axis=0))

    def row(name: str, total: Any, *parts: Any) -> list[Any]:
        shares = [f"{count(part)} ({percent(float(part) / float(total))})" if part and total else count(part) for part in parts]
        return [name, count(total), *shares]

    rows = [row(markup("<strong>all samples</strong>"), events.sum(), *removed.sum(axis=1), samples.sizes.sum())]
    rows += [row(name, events[i], *removed[:, i], samples.sizes[i]) for i, name in enumerate(samples.names)]
    head = ["sample", "events", *steps, "kept"]
    return table(head, rows, "Events of every sample, and the number that each step removed", high=len(rows) > MAX_TABLE_ROWS)


def _sentences(notes: Sequence[str]) -> Markup:
    """Notes as a list of sentences."""
    return listed([note[:1].upper() + note[1:] + ("" if note.endswith((".", "!", "?")) else ".") for note in notes])


# -- tables of samples --------------------------------------------------------------------------------------------------------


def _shares(study: CohortStudy) -> Section:
    """The proportion of every population in every sample, with its confidence interval, and the table of samples."""
    text = f"The proportion of every population in each sample, with its {percent(study.confidence)} confidence interval for the "
    return Section(
        "shares", "Proportions in every sample", [f"{text}sampling of cells.", _shares_table(study), _samples_table(study)]
    )


def _shares_table(study: CohortStudy) -> Markup | str:
    populations, samples = study.populations_, study.samples_
    shares, limits = populations.shares, populations.intervals(study.confidence)
    if shares.size > MAX_SHARES:
        return f"The table has {count(shares.size)} entries, too many for a page. They are in study.populations_.shares."
    ends = [[[percent(float(end)).removesuffix("%").strip() for end in pair] for pair in row] for row in limits]
    rows = [
        [name, count(samples.sizes[i]), *(f"{percent(shares[i, k])} ({low}–{high})" for k, (low, high) in enumerate(ends[i]))]
        for i, name in enumerate(samples.names)
    ]
    caption = "Proportion of each population in each sample, with its confidence interval"
    return table(["sample", "cells", *populations.names], rows, caption, high=True)


def _samples_table(study: CohortStudy) -> Markup | str:
    columns, names = study.samples_.table, study.samples_.names
    titles = [title for title in columns if tuple(map(str, columns[title])) != names]
    rows = [[name, *("—" if columns[title][i] is None else columns[title][i] for title in titles)] for i, name in enumerate(names)]
    shown = table(["sample", *titles], rows, "The table of samples", high=len(rows) > MAX_TABLE_ROWS)
    return folded("The table of samples", shown) if columns else ""
