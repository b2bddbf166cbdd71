"""The tables of a cohort study's report: populations that differ, batches, cleaning, and proportions in every sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reduset.cytometry.distance_tests import BatchCheck
from reduset.cytometry.figures import FOUND, DifferencesFigure, StudyFigure
from reduset.cytometry.populations import Populations
from reduset.cytometry.study import CohortStudy
from reduset.report import LONG, Markup, count, file, joined, markup, named, p_told, percent, shortened, table

MAX_MARKER_LENGTH = 18  # letters of a marker in a list
MAX_TABLE_ROWS = 12  # longer tables scroll
MAX_SHARES = 40_000  # in a page


def differing(populations: Populations, shown: DifferencesFigure) -> Markup:
    """Every population with its proportions and fold changes, the smallest p-value first."""
    differences = shown.differences
    levels = differences.design.levels
    single = len(levels) == 2
    head = ["population", "significant", "markers", *(f"in {level}" for level in levels)]
    head += ["fold change"] if single else [f"fold change {level}" for level in levels[1:]]
    rows = []
    for k in shown.order:
        name: Any = differences.names[k]
        if differences.found[k]:
            name = markup("<strong>$mark $name</strong>", mark=FOUND, name=named(name, LONG))
        effects = [(differences.effects[g, k], *differences.intervals[g, k]) for g in range(len(levels) - 1)]
        folds = [f"{_times(effect)} ({_times(low)} to {_times(high)})" for effect, low, high in effects]
        marked = _markers(populations.marked(int(k)))
        shares = [percent(float(share)) for share in differences.shares[k]]
        p_and_q = [p_told(float(value), "") for value in (differences.p_values[k], differences.q_values[k])]
        rows.append([name, "yes" if differences.found[k] else "no", marked, *shares, *folds, *p_and_q])
    intervals = f"{percent(differences.confidence)} intervals"
    caption = f"Every population, the smallest p first: mean proportions of the samples, and fold changes with {intervals}"
    return table([*head, "p", "q"], rows, caption, high=len(rows) > 2 * MAX_TABLE_ROWS)


def _markers(names: Sequence[str]) -> Markup:
    """Markers, long names without their middle; the full names are shown on hover."""
    if not names:
        return Markup("none")
    short = " ".join(shortened(name, MAX_MARKER_LENGTH) for name in names)
    return markup('<span class="cut" title="$full">$short</span>', full=" ".join(names), short=short)


def _times(effect: float) -> str:
    """A fold change from its logarithm to base 2."""
    fold = 2.0 ** float(np.clip(effect, -99, 99))
    return f"{fold:.2f}" if 0.01 <= fold < 100 else f"{fold:.2g}"


def warning(batches: BatchCheck | None) -> Markup:
    """A warning that groups and runs are confounded."""
    note = "" if batches is None else batches.notes[0]
    return markup('<p class="notice warning" role="alert"><strong>Warning:</strong> $note.</p>', note=note)


def batches_section(shown: StudyFigure) -> Markup:
    """The contribution of runs to the distances, and the distances between controls."""
    batches = shown.study.batches_
    if batches is None:
        return Markup("")
    notes = batches.notes[1:] if batches.confounded else batches.notes
    return markup(
        file("study-batches.html"),
        told=_runs(batches),
        warning=warning(batches) if batches.confounded else "",
        notes=listed(notes),
        controls=_controls(batches),
    )


def _runs(batches: BatchCheck) -> str:
    runs = [run for run in batches.runs if run]
    text = f"{count(len(runs), 'sample')} in {count(len(set(runs)), 'run')} (column {batches.name}). "
    if batches.whole is not None:
        text += (
            f"{percent(batches.whole.share)} of the squared distances of samples lie between runs. "
            f"{percent(batches.whole.expected)} are expected under the null hypothesis ({p_told(batches.whole.p_value)}). "
        )
    share = batches.control_share
    if share is not None:
        text += (
            f"The distance of the same control between two runs is {np.sqrt(share):.2g} times the distance of two different "
            "samples of one run. Smaller is better."
        )
    elif not batches.controls:
        text += "There are no control samples. The same blood in every run would show the effect of the runs alone."
    return text.strip()


def _controls(batches: BatchCheck) -> Markup:
    if not batches.controls:
        return Markup("")
    rows = [
        [
            pair.kind,
            f"{pair.samples[0]} ({pair.runs[0]})",
            f"{pair.samples[1]} ({pair.runs[1]})",
            f"{pair.distance:.3g}",
            f"{pair.distance / batches.usual:.2f}" if batches.usual > 0 else "—",
        ]
        for pair in batches.controls
    ]
    return table(
        ["control", "first run", "second run", "distance", "relative distance"],
        rows,
        "Distances of the same control between two runs, also relative to the distance of two different samples of one run",
        high=len(rows) > MAX_TABLE_ROWS,
    )


def cleaning_section(study: CohortStudy) -> Markup:
    """The events that each step removed, omitted samples, notes and scales; empty without any of these."""
    samples = study.samples_
    if not (samples.counted or samples.left_out or study.notes_ or samples.scales):
        return Markup("")
    title, text = "Notes", "Cells were not cleaned."
    if samples.counted:
        title, text = "Cleaning", "Each step removes some of the events that the previous steps kept."
    omitted = [[name, reason] for name, reason in samples.left_out.items()]
    listed_notes = {f"{name} is omitted: {reason}" for name, reason in samples.left_out.items()}
    scales = [[name, "state" if name in samples.state else "type", samples.scales.get(name, "none")] for name in samples.markers]
    folded = markup(
        "<details><summary>Scales of the markers</summary>$table</details>",
        table=table(["marker", "class", "scale"], scales, "The scale on which each marker is compared"),
    )
    return markup(
        file("study-cleaning.html"),
        title=title,
        told=text,
        left=table(["sample", "reason"], omitted, f"{count(len(omitted), 'sample')} omitted") if omitted else "",
        counts=_counts(study) if samples.counted else "",
        notes=listed([note for note in study.notes_ if note not in listed_notes]),
        scales=folded if samples.scales else "",
    )


def _counts(study: CohortStudy) -> Markup:
    samples = study.samples_
    steps = [step for step in samples.counted if step != "events"]
    events = samples.counted.get("events", samples.sizes + sum(samples.counted[step] for step in steps))
    sums = [samples.counted[step].sum() for step in steps]
    rows = [_counted(markup("<strong>all samples</strong>"), events.sum(), sums, samples.sizes.sum())]
    for i, name in enumerate(samples.names):
        rows.append(_counted(name, events[i], [samples.counted[step][i] for step in steps], samples.sizes[i]))
    head = ["sample", "events", *steps, "kept"]
    return table(head, rows, "Events of every sample, and the number that each step removed", high=len(rows) > MAX_TABLE_ROWS)


def _counted(name: str, events: Any, removed: list[Any], kept: Any) -> list[Any]:
    return [name, count(events), *(_of(number, events) for number in removed), _of(kept, events)]


def _of(number: Any, events: Any) -> str:
    return f"{count(number)} ({percent(float(number) / float(events))})" if number and events else count(number)


def listed(notes: Any) -> Markup:
    """Notes as a list."""
    if not notes:
        return Markup("")
    sentences = (note[:1].upper() + note[1:] + ("" if note.endswith((".", "!", "?")) else ".") for note in notes)
    return markup('<ul class="notes">$items</ul>', items=joined(markup("<li>$note</li>", note=each) for each in sentences))


def shares_table(study: CohortStudy) -> Markup:
    """The proportion of every population in every sample, with its confidence interval."""
    populations, samples = study.populations_, study.samples_
    shares, limits = populations.shares, populations.intervals(study.confidence)
    if shares.size > MAX_SHARES:
        text = "The table has $entries entries, too many for a page. They are in study.populations_.shares."
        return markup(f"<p>{text}</p>", entries=count(shares.size))
    rows = []
    for i, name in enumerate(samples.names):
        cells = [f"{percent(shares[i, k])} ({_bare(limits[i, k, 0])}–{_bare(limits[i, k, 1])})" for k in range(len(populations))]
        rows.append([name, count(samples.sizes[i]), *cells])
    caption = "Proportion of each population in each sample, with its confidence interval"
    return table(["sample", "cells", *populations.names], rows, caption, high=True)


def _bare(share: float) -> str:
    return percent(float(share)).removesuffix("%").strip()


def samples_table(study: CohortStudy) -> Markup:
    """The table of samples."""
    columns = study.samples_.table
    if not columns:
        return Markup("")
    titles = [title for title in columns if tuple(map(str, columns[title])) != study.samples_.names]
    rows = [
        [name, *("—" if columns[title][i] is None else columns[title][i] for title in titles)]
        for i, name in enumerate(study.samples_.names)
    ]
    shown = table(["sample", *titles], rows, "The table of samples", high=len(rows) > MAX_TABLE_ROWS)
    return markup("<details><summary>The table of samples</summary>$table</details>", table=shown)
