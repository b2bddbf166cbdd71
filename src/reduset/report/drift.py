"""The report of a drift test: the verdict, the distance, regions that gained or lost rows, and columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset import _archive
from reduset.drift import words as told
from reduset.drift.regions import Region
from reduset.drift.result import DriftResult
from reduset.report.blocks import (
    Markup,
    aside,
    choice,
    columns_of,
    controls,
    cut,
    folded,
    grid,
    hero,
    joined,
    named,
    pictures,
    plot,
    small,
    table,
    verdict,
)
from reduset.report.drift_figure import ColumnFigure, DriftFigure, drift_figure
from reduset.report.page import Section, packed, write_page
from reduset.report.words import Card, count, p_told, percent, plain

MOST_VALUES = 100_000  # coordinates of the cells in the file
PICTURED = 60  # columns that have a picture
LISTED = 400  # columns in the table
NAMED = 18  # letters of a name in a box of columns
SHORT, FULL = 20, 1000  # letters of a name in the table of regions, and on hover
BARS = 36
STATISTICS = (
    "Left: the bars are samples of the reference itself, the line is the new rows. Right: each statistic by itself exceeds 1 in 5 "
    "of 100 samples without any change; the verdict takes all of them together. Circles are the maximum mean discrepancy (MMD) at "
    "a bandwidth. Diamonds are standardised: each principal component of the difference is divided by its variance plus λ times "
    "the largest variance. So rare directions count too, the more the smaller λ."
)
COLUMNS = (
    "Columns with the smallest p-values come first. Grey is the reference, the line is now. The bars at the ends of a picture hold "
    "everything beyond it."
)


def write_drift(path: _archive.Path_, result: DriftResult, *, about: Mapping[str, Any] | None = None) -> None:
    """Write the report of a test of drift: one HTML file that opens offline.

    Parameters
    ----------
    path : where to, usually with the ending .html
    result : DriftResult, of `DriftTest.test` or `two_sample`
    about : plain values to show with it: "command", "sources", "notes", "versions", and any others
    """
    shown = drift_figure(result)
    answer = "Drift" if result.drift else "No drift found"
    settings = {
        "Level": percent(result.alpha),
        "Draws of chance": count(len(shown.by_chance)),
        "Permuted": result.exact,
    }
    write_page(
        path,
        f"{answer} in {count(result.n_samples, 'new row')}",
        hero(
            verdict(answer, result.drift, f"in {count(result.n_samples)} new rows"),
            [plain((about or {}).get("sources") or []), columns_of(shown.names)],
            _cards(shown),
            aside(_meaning(result)),
        ),
        [
            _chance(shown),
            _where(shown),
            _columns(shown),
            Section("seen", "The smallest change that would be found", [_seen(result)]),
        ],
        ["two_columns.js", "drift.js"],
        about=about,
        settings=settings,
        data={"drift": result.drift},
    )


def _cards(shown: DriftFigure) -> list[Card]:
    found = shown.result
    changed = [each for each in shown.columns if each.change.p_value <= found.alpha]
    first = Markup(", ".join(named(each.change.name) for each in changed[:3]) + (", …" if len(changed) > 3 else "."))
    share, shift = found.detectable_share, found.detectable_shift
    seeing = Card("Could be seen", "hardly anything", "So few rows show no change for sure; test more of them.")
    if math.isfinite(share):
        moved = "" if shift is None or not math.isfinite(shift) else f", or all rows shifted by {shift:.2g} standard deviations"
        seeing = Card("Could be seen", percent(share), f"Of the rows gone elsewhere would have been found 8 times in 10{moved}.")
    return [
        Card("p-value", p_told(found.p_value), f"The level of the test is {found.alpha:.2g}."),
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
    rows = f"{count(found.n_samples, 'new row')} were compared with {count(found.n_reference, 'row')} of the reference"
    if found.drift:
        return f"{rows}. Chance alone makes so large a difference in less than {percent(found.alpha)} of all samples: it is drift."
    return (
        f"{rows}. A difference is called drift where chance alone makes one as large in less than {percent(found.alpha)} of all "
        "samples. That none was found does not say that there is none: below is how small a change could have been seen."
    )


def _chance(shown: DriftFigure) -> Section:
    """The distance and all statistics, compared with their distributions under the null hypothesis."""
    counts, edges = np.histogram(shown.by_chance, BARS)
    chance = {
        "starts": edges[:-1].tolist(),
        "width": float(edges[1] - edges[0]),
        "shares": (counts / counts.sum()).tolist(),
        "seen": shown.seen,
        "usual": shown.result.chance,
    }
    label = "The distance that was seen, compared with those that chance alone makes"
    every = "The distance at every bandwidth, as multiples of what chance allows"
    drawn = [
        plot("chance", label, "medium", "How far apart", small("at the median distance of rows")),
        plot("looks", every, "medium", "At every bandwidth", small("1 is what chance allows")),
    ]
    blocks = [f"Distance: {told.apart(shown.result)}.", grid(drawn), aside(STATISTICS)]
    return Section("chance", "Against chance", blocks, {"chance": chance, "looks": [vars(each) for each in shown.looks]})


def _where(shown: DriftFigure) -> Section:
    """The map of the cells and the regions that gained or lost rows."""
    kept, pair = _embedded(shown), _first_pair(shown)
    boxes = []
    if len(shown.names) > 1:
        options = [(k, shown.names[k]) for k in range(kept)]
        boxes = [choice("across", "Across", options, pair[0], NAMED), choice("up", "Up", options, pair[1], NAMED)]
    text = "No single region gained or lost rows for sure. Red gained, blue lost; what is shown may be chance alone."
    if shown.regions:
        many = count(len(shown.regions), "region")
        text = f"{many} gained or lost rows for sure, at a level that holds for all of them together. Red gained, blue lost."
    label = "Map of the cells, coloured by the share of rows that they gained or lost"
    blocks = [
        text,
        controls(boxes, "Columns of the map") if boxes else "",
        plot("map", label, "tall", "Cells that gained and lost", small(name="most")),
        aside(name="drawn"),
        _regions(shown),
    ]
    data = {
        "names": list(shown.names[:kept]),
        "pair": pair,
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
    }
    return Section("where", "Where", blocks, data)


def _embedded(shown: DriftFigure) -> int:
    """The number of columns in the map, limited by the size of the file."""
    return min(len(shown.names), max(2, MOST_VALUES // len(shown.places)))


def _first_pair(shown: DriftFigure) -> list[int]:
    """The columns that the map shows first: those that changed most, if the file has them."""
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
    """The centre of a region, with the full names of columns on hover."""
    return cut(*(told.place(region, names, longest).removeprefix("near ") for longest in (SHORT, FULL)))


def _columns(shown: DriftFigure) -> Section:
    drawn = [
        plot(f"column-{k}", f"{name} before and now", "small", named(name), small(_direction(each, shown.result.alpha)))
        for k, each in enumerate(shown.columns[:PICTURED])
        for name in [each.change.name]
    ]
    rest = f"Pictures of {len(drawn)} columns of {len(shown.names)}." if len(drawn) < len(shown.names) else ""
    data = [
        {
            "edges": None if each.edges is None else each.edges.tolist(),
            "values": None if each.values is None else each.values.tolist(),
            "before": each.before.tolist(),
            "after": each.after.tolist(),
        }
        for each in shown.columns[:PICTURED]
    ]
    blocks = [COLUMNS, joined([pictures(drawn, rest), folded("As a table", _table(shown))])]
    return Section("columns", "Column by column", blocks, {"columns": data})


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
