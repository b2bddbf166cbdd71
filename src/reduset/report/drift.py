"""The report of a test of drift: the verdict in words, the distance against chance, where rows came and went, and the columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset import _archive
from reduset.drift import words as told
from reduset.drift.regions import Region
from reduset.drift.result import DriftResult
from reduset.report.drift_figure import ColumnFigure, DriftFigure, drift_figure
from reduset.report.page import Markup, cards, choice, controls, file, joined, markup, named, origin, packed, table, write
from reduset.report.page import names as listed
from reduset.report.words import Card, count, p_told, percent, plain

MOST_VALUES = 100_000  # of the cells' places in the file
PICTURED, UNFOLDED = 60, 12  # columns that have a picture, and that are drawn at once
LISTED = 400  # columns in the table
NAMED = 18  # letters of a name in a box of columns
PLACED, FULL = 20, 1000  # letters of a name in the table of regions, and of its label
BARS = 36


def write_drift(path: _archive.Path_, result: DriftResult, *, about: Mapping[str, Any] | None = None) -> None:
    """Write the report of a test of drift: one HTML file that opens offline.

    Parameters
    ----------
    path : where to, usually with the ending .html
    result : DriftResult, of `DriftTest.test` or `two_sample`
    about : plain values to show beside it: "command", "sources", "notes", "versions", and any others
    """
    shown = drift_figure(result)
    title = ("Drift" if result.drift else "No drift found") + f" in {count(result.n_samples, 'new row')}"
    write(path, title, _body(shown, about), contents(shown), ["common.js", "two_columns.js", "drift.js"])


def contents(shown: DriftFigure) -> dict[str, Any]:
    """What the scripts of the page read."""
    kept = _embedded(shown)
    return {
        "drift": shown.result.drift,
        "names": list(shown.names[:kept]),
        "pair": _begins_with(shown),
        "chance": _chance(shown),
        "looks": [vars(each) for each in shown.looks],
        "cells": {
            "places": packed(shown.places[:, :kept].T, "f8"),  # by columns
            "before": shown.before.tolist(),
            "after": shown.after.tolist(),
            "most": shown.most,
        },
        "regions": [
            {
                "centre": each.centre[:kept].tolist(),
                "extent": each.extent[:kept].tolist(),
                "before": each.before,
                "after": each.after,
                "columns": [shown.names.index(name) for name in each.columns],
                "told": told.change(each),
            }
            for each in shown.regions
        ],
        "columns": [_column(each) for each in shown.columns[:PICTURED]],
    }


def _embedded(shown: DriftFigure) -> int:
    """How many columns the map has the cells of: fewer where there are very many."""
    return min(len(shown.names), max(2, MOST_VALUES // len(shown.places)))


def _chance(shown: DriftFigure) -> dict[str, Any]:
    counts, edges = np.histogram(shown.by_chance, BARS)
    return {
        "starts": edges[:-1].tolist(),
        "width": float(edges[1] - edges[0]),
        "shares": (counts / counts.sum()).tolist(),
        "seen": shown.seen,
        "usual": shown.result.chance,
    }


def _column(each: ColumnFigure) -> dict[str, Any]:
    return {
        "edges": None if each.edges is None else each.edges.tolist(),
        "values": None if each.values is None else each.values.tolist(),
        "before": each.before.tolist(),
        "after": each.after.tolist(),
    }


def _body(shown: DriftFigure, about: Mapping[str, Any] | None) -> Markup:
    found, names = shown.result, shown.names
    sources = (about or {}).get("sources") or []
    many = f"{len(names)} columns" if len(names) > 1 else "One column"
    settings = {"Level": percent(found.alpha), "Draws of chance": count(len(shown.by_chance)), "Permuted": found.exact}
    return markup(
        file("drift.html"),
        verdict=markup('<span class="accent">Drift</span>') if found.drift else "No drift found",
        new=count(found.n_samples),
        sources=plain(sources) if sources else "",
        columns=markup("$many: $names", many=many, names=listed(names)),
        cards=cards(_cards(shown)),
        meaning=_meaning(found),
        chance=f"The distance is {told.apart(found)}.",
        where=_where(shown),
        choice=_choice(shown),
        regions=_regions(shown),
        pictures=_pictures(shown),
        table=_table(shown),
        seen=_seen(found),
        origin=origin(about, settings),
    )


def _cards(shown: DriftFigure) -> list[Card]:
    found = shown.result
    changed = [each for each in shown.columns if each.change.p_value <= found.alpha]
    first = Markup(", ".join(named(each.change.name) for each in changed[:3]) + (", …" if len(changed) > 3 else "."))
    share, shift = found.detectable_share, found.detectable_shift
    seeing = Card("Could be seen", "hardly anything", "So few rows show no change for sure; test more of them.")
    if math.isfinite(share):
        text = "Of the rows gone elsewhere would have been found 8 times in 10"
        moved = "" if shift is None or not math.isfinite(shift) else f", or all rows shifted by {shift:.2g} standard deviations"
        seeing = Card("Could be seen", percent(share), f"{text}{moved}.")
    return [
        Card("How sure", p_told(found.p_value), _sentence(told.certainty(found))),
        Card("Apart", f"{shown.seen:.2g}", f"Chance alone stays below {found.chance:.2g} in 95 of 100 cases."),
        Card(
            "Columns changed",
            f"{len(changed)} of {len(shown.names)}",
            first if changed else "None by itself, as far as so many rows can tell.",
        ),
        seeing,
    ]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _meaning(found: DriftResult) -> str:
    beside = f"{count(found.n_samples, 'new row')} were compared with {count(found.n_reference, 'row')} of the reference"
    if found.drift:
        return (
            f"{beside}. Chance alone makes so large a difference in less than {percent(found.alpha)} of all samples: it is drift."
        )
    return (
        f"{beside}. A difference is called drift where chance alone makes one as large in less than {percent(found.alpha)} of all "
        "samples. That none was found does not say that there is none: below is how small a change could have been seen."
    )


def _where(shown: DriftFigure) -> str:
    if shown.regions:
        many = count(len(shown.regions), "region")
        return f"{many} gained or lost rows for sure, at a level that holds for all of them together. Red gained, blue lost."
    return "No single region gained or lost rows for sure. Red gained, blue lost; what is shown may be chance alone."


def _choice(shown: DriftFigure) -> Markup:
    """Two boxes of columns, across and up; none where there is one column."""
    kept, pair = _embedded(shown), _begins_with(shown)
    if len(shown.names) < 2:
        return Markup("")
    options = [(k, shown.names[k]) for k in range(kept)]
    boxes = [choice("across", "Across", options, pair[0], NAMED), choice("up", "Up", options, pair[1], NAMED)]
    return controls(boxes, "Columns of the map")


def _begins_with(shown: DriftFigure) -> list[int]:
    """The columns that the map begins with: the telling ones, where the file has these."""
    return list(shown.pair) if max(shown.pair) < _embedded(shown) else [0, 1]


def _regions(shown: DriftFigure) -> Markup:
    if not shown.regions:
        return Markup("")
    rows = [
        [
            f"{k + 1}",
            f"{'+' if each.change > 0 else '−'}{percent(abs(each.change))}",
            percent(each.before),
            percent(each.after),
            p_told(each.p_value, ""),
            _place(each, shown.names),
        ]
        for k, each in enumerate(shown.regions)
    ]
    return table(["region", "change", "before", "now", "p", "where"], rows, "Regions that gained or lost, the surest first")


def _place(region: Region, names: Sequence[str]) -> Markup:
    """Where a region is, with the full names of columns on hover."""
    short, full = (told.place(region, names, longest).removeprefix("near ") for longest in (PLACED, FULL))
    if short == full:
        return markup("$short", short=short)
    return markup('<span class="cut" title="$full">$short</span>', full=full, short=short)


def _pictures(shown: DriftFigure) -> Markup:
    """A place for each column; beyond the first dozen they are drawn when they are asked for."""
    place = (
        '<figure><figcaption>$short <span class="aside">$direction</span></figcaption>'
        '<div class="plot small" id="column-$k" role="img" aria-label="$name before and now"></div></figure>'
    )
    places = [
        markup(place, k=k, name=name, short=named(name), direction=_direction(each, shown.result.alpha))
        for k, each in enumerate(shown.columns[:PICTURED])
        for name in [each.change.name]
    ]
    first, rest = joined(places[:UNFOLDED]), joined(places[UNFOLDED:])
    parts = [markup('<div class="grid three">$first</div>', first=first)]
    if rest:
        fold = '<details id="more"><summary>$count more columns</summary><div class="grid three">$rest</div></details>'
        parts.append(markup(fold, count=len(places) - UNFOLDED, rest=rest))
    if len(places) < len(shown.names):
        parts.append(markup('<p class="aside">Pictures of $count columns of $all.</p>', count=len(places), all=len(shown.names)))
    return joined(parts)


def _direction(each: ColumnFigure, alpha: float) -> str:
    sure = p_told(each.change.p_value)
    return f"{each.change.direction}, {sure}" if each.change.p_value <= alpha else f"no change for sure, {sure}"


def _table(shown: DriftFigure) -> Markup:
    rows = [
        [
            change.name,
            p_told(change.p_value, ""),
            change.direction,
            *(f"{value:.4g}" for value in (*change.median, *change.middle)),
        ]
        for change in (each.change for each in shown.columns[:LISTED])
    ]
    head = ["column", "p", "direction", "median before", "now", "middle half before", "now"]
    return table(head, rows, "Every column, its p-value corrected for their number (Holm)")


def _seen(found: DriftResult) -> str:
    text = _sentence(told.seen(found))
    return f"{text} Smaller changes, or changes of another kind, may have been missed; more rows show smaller ones."
