"""The tables of a cohort study's report: populations that differ, batches, cleaning, and shares in every sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reduset.cytometry.distance_tests import BatchCheck
from reduset.cytometry.figures import FOUND, DifferencesFigure, StudyFigure
from reduset.cytometry.populations import Populations
from reduset.cytometry.study import CohortStudy
from reduset.report.page import LONG, Markup, file, joined, markup, named, table
from reduset.report.words import count, p_told, percent, shortened

SHORT = 18  # letters of a marker among several
HIGH = 12  # rows from which a table moves in a frame of its own
MOST_SHARES = 40_000  # in a page


def differing(populations: Populations, shown: DifferencesFigure) -> Markup:
    """Every population with its shares and fold changes, the surest first."""
    told = shown.differences
    levels = told.design.levels
    single = len(levels) == 2
    head = ["population", "differs", "its markers", *(f"in {level}" for level in levels)]
    head += ["fold change"] if single else [f"fold change {level}" for level in levels[1:]]
    rows = []
    for k in shown.order:
        name = (
            markup("<strong>$mark $name</strong>", mark=FOUND, name=named(told.names[k], LONG)) if told.found[k] else told.names[k]
        )
        folds = [_fold(told.effects[g, k], *told.intervals[g, k]) for g in range(len(levels) - 1)]
        marked = _markers(populations.marked(int(k)))
        shares = [percent(float(share)) for share in told.shares[k]]
        sure = [p_told(float(told.p_values[k]), ""), p_told(float(told.q_values[k]), "")]
        rows.append([name, "yes" if told.found[k] else "not shown", marked, *shares, *folds, *sure])
    sure_to = percent(told.confidence)
    caption = f"Every population, the surest first; shares are means of the samples, fold changes with {sure_to} intervals"
    return table([*head, "p", "q"], rows, caption, high=len(rows) > 2 * HIGH)


def _markers(names: Sequence[str]) -> Markup:
    """Markers one by one, each without its middle if it is long; all of them on hover."""
    if not names:
        return Markup("none stands out")
    short = " ".join(shortened(name, SHORT) for name in names)
    return markup('<span class="cut" title="$full">$short</span>', full=" ".join(names), short=short)


def _fold(effect: float, low: float, high: float) -> str:
    return f"{_times(effect)} ({_times(low)} to {_times(high)})"


def _times(effect: float) -> str:
    """A fold change from its logarithm to base 2."""
    fold = 2.0 ** float(np.clip(effect, -99, 99))
    return f"{fold:.2f}" if 0.01 <= fold < 100 else f"{fold:.2g}"


def warning(found: BatchCheck | None) -> Markup:
    """A loud word where groups and runs cannot be told apart."""
    told = "" if found is None else found.notes[0]
    return markup('<p class="notice warning" role="alert"><strong>Take care:</strong> $told.</p>', told=told)


def batches_section(shown: StudyFigure) -> Markup:
    """How much of the distances is the run, and how far controls are apart."""
    found = shown.study.batches_
    if found is None:
        return Markup("")
    notes = found.notes[1:] if found.confounded else found.notes
    return markup(
        file("study-batches.html"),
        told=_runs(found),
        warning=warning(found) if found.confounded else "",
        notes=listed(notes),
        controls=_controls(found),
    )


def _runs(found: BatchCheck) -> str:
    runs = [run for run in found.runs if run]
    text = f"{count(len(runs), 'sample')} of {count(len(set(runs)), 'run')}, by {found.name}. "
    if found.whole is not None:
        text += (
            f"{percent(found.whole.share)} of the squared distances of samples lie between runs, where runs that mean nothing "
            f"would have {percent(found.whole.expected)} ({p_told(found.whole.p_value)}). "
        )
    share = found.control_share
    if share is not None:
        text += (
            f"The same control in two runs is {np.sqrt(share):.2g} times as far apart as two different samples of one run: the "
            "less, the better."
        )
    elif not found.controls:
        text += "There are no controls: the same blood in every run would tell what the runs do by themselves."
    return text.strip()


def _controls(found: BatchCheck) -> Markup:
    if not found.controls:
        return Markup("")
    rows = [
        [
            pair.kind,
            f"{pair.samples[0]} ({pair.runs[0]})",
            f"{pair.samples[1]} ({pair.runs[1]})",
            f"{pair.distance:.3g}",
            f"{pair.distance / found.usual:.2f}" if found.usual > 0 else "—",
        ]
        for pair in found.controls
    ]
    return table(
        ["control", "one run", "another", "distance", "over that of two samples of one run"],
        rows,
        "The same control in two runs",
        high=len(rows) > HIGH,
    )


def cleaning_section(study: CohortStudy) -> Markup:
    """What was taken out on the way; nothing where nothing is known of it."""
    samples = study.samples_
    if not (samples.counted or samples.left_out or study.notes_ or samples.scales):
        return Markup("")
    title, told = "Notes", "Cells were taken as they came."
    if samples.counted:
        title, told = "Cleaning", "What each step took, of the events that the steps before it had left."
    left = [[name, why] for name, why in samples.left_out.items()]
    known = {f"{name} is left out: {why}" for name, why in samples.left_out.items()}
    scales = [
        [name, "state" if name in samples.state else "type", samples.scales.get(name, "as it is")] for name in samples.markers
    ]
    folded = markup(
        "<details><summary>Scales of the markers</summary>$table</details>",
        table=table(["marker", "class", "scale"], scales, "The scale on which each marker is compared"),
    )
    return markup(
        file("study-cleaning.html"),
        title=title,
        told=told,
        left=table(["sample", "reason"], left, f"{count(len(left), 'sample')} left out") if left else "",
        counts=_counts(study) if samples.counted else "",
        notes=listed([note for note in study.notes_ if note not in known]),
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
    return table(head, rows, "Events of every sample, and what each step took", high=len(rows) > HIGH)


def _counted(name: str, events: Any, taken: list[Any], kept: Any) -> list[Any]:
    return [name, count(events), *(_of(number, events) for number in taken), _of(kept, events)]


def _of(number: Any, events: Any) -> str:
    return f"{count(number)} ({percent(float(number) / float(events))})" if number and events else count(number)


def listed(notes: Any) -> Markup:
    """Notes, one below the other."""
    if not notes:
        return Markup("")
    return markup('<ul class="notes">$items</ul>', items=joined(markup("<li>$note</li>", note=_sentence(note)) for note in notes))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def shares_table(study: CohortStudy) -> Markup:
    """The share of every population in every sample, with its limits."""
    found, samples = study.populations_, study.samples_
    shares, limits = found.shares, found.intervals(study.confidence)
    if shares.size > MOST_SHARES:
        text = "They are $many numbers, too many for a page: study.populations_.shares has them."
        return markup(f"<p>{text}</p>", many=count(shares.size))
    rows = []
    for i, name in enumerate(samples.names):
        cells = [f"{percent(shares[i, k])} ({_bare(limits[i, k, 0])}–{_bare(limits[i, k, 1])})" for k in range(len(found))]
        rows.append([name, count(samples.sizes[i]), *cells])
    return table(["sample", "cells", *found.names], rows, "Share of each population in each sample, with its limits", high=True)


def _bare(share: float) -> str:
    return percent(float(share)).removesuffix("%").strip()


def samples_table(study: CohortStudy) -> Markup:
    """The table of samples as it was given."""
    columns = study.samples_.table
    if not columns:
        return Markup("")
    titles = [title for title in columns if tuple(map(str, columns[title])) != study.samples_.names]
    rows = [
        [name, *("—" if columns[title][i] is None else columns[title][i] for title in titles)]
        for i, name in enumerate(study.samples_.names)
    ]
    shown = table(["sample", *titles], rows, "The table of samples", high=len(rows) > HIGH)
    return markup("<details><summary>The table of samples</summary>$table</details>", table=shown)
