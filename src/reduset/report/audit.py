"""The report of an audit: distances of rows to their nearest kept rows, other choices, the worst rows, and redundant pairs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from reduset import _archive
from reduset._types import Array, Indices
from reduset.covers import Audit
from reduset.data import has_paths
from reduset.io import files_of, pick_rows, written_suffixes
from reduset.report.page import LONG, Cell, Markup, Section, aside, cut, grid, hero, markup, plot, reduced, small, table, write_page
from reduset.report.words import SPACE, Card, count, one_in, percent, plain, shortened

BARS, MAX_BARS = 60, 240  # of the histogram
LISTED = 30  # worst rows, and redundant pairs
ORIGINALS, LONGEST = 3, 400  # columns of the data next to a row, and characters of a text
Originals = Mapping[str, Mapping[int, Markup]]  # the texts of rows, by column


def write_audit(path: _archive.Path_, audit: Audit, data: Any = None, *, about: Mapping[str, Any] | None = None) -> None:
    """Write the report of an audit: one HTML file that opens offline.

    Parameters
    ----------
    path : The HTML file.
    audit : Audit of `reduset.covers.audit`, or of `Cover.audit`.
    data : frame, dict of columns, or tables as files, optional
        Columns that identify rows, such as names and texts, with one entry for each row. The first three are shown with the worst
        rows and the redundant pairs. Columns of lists are omitted. In a file without them, so are floating-point columns, since
        these are the rows.
    about : Plain values to show: "command", "sources", "notes", "versions", and any others.
    """
    if not isinstance(audit, Audit):
        raise TypeError(f"audit must be an Audit, got {type(audit).__name__}; give the result of reduset.covers.audit")
    n, m = len(audit.distances), len(audit.kept)
    worst = audit.worst(LISTED + m)
    worst = worst[~np.isin(worst, audit.kept)][:LISTED]
    close = _closest(audit)
    originals = _originals(data, np.unique(np.concatenate([worst, audit.kept[audit.assignments[worst]], *close[:2]])), n)
    kind = "cosine distance, 1 − cos" if audit.metric == "cosine" else "Euclidean distance"
    given = dict(about or {})
    write_page(
        path,
        f"Audit: {m:,} of {n:,} rows kept",
        hero(reduced(n, "row", m, "kept row"), [plain(given.get("sources") or []), kind], _cards(audit)),
        [
            _distances(audit) if m < n else None,
            _worst(audit, worst, originals),
            None if audit.limit is None else _redundant(audit, close, originals),
        ],
        ["audit.js"],
        about=given,
        settings={"Metric": audit.metric} | ({} if audit.limit is None else {"Radius": f"{audit.limit:.6g}"}),
    )


def _cards(audit: Audit) -> list[Card]:
    n, m = len(audit.distances), len(audit.kept)
    middle, high = np.quantile(audit.distances, (0.5, 0.99))
    text = f"The largest distance of a row to its nearest kept row. Median {middle:.3g}, 99{SPACE}% quantile {high:.3g}."
    if audit.factor is not None:
        text += f" At most {audit.factor:.3g} times the smallest possible radius of {count(m, 'row')}."
    cards = [
        Card("Kept", one_in(n / m) if m < n else "all", f"{percent(m / n)} of the rows."),
        Card("Covering radius", f"{audit.radius:.4g}", text),
    ]
    if audit.limit is not None and audit.close is not None:
        far, near = len(audit.uncovered), len(audit.close.first)
        text = f"{percent(far / n)} of the rows are farther than {audit.limit:.4g} from all kept rows."
        cards.append(Card("Uncovered rows", count(far), text if far else f"Every row is within {audit.limit:.4g} of a kept row."))
        text = (
            f"Pairs of kept rows are within {audit.limit:.4g} of each other." if near else "All kept rows are farther apart than "
        )
        cards.append(Card("Redundant pairs", count(near), text if near else f"{text}{audit.limit:.4g}."))
    elif audit.random_rows is not None:
        cards.append(Card("Random rows", f"{audit.random_rows:.4g}", f"The covering radius of {count(m, 'random row')}."))
    return cards


def _distances(audit: Audit) -> Section:
    """The histogram of the distances, and the covering radii of other choices."""
    own = np.ones(len(audit.distances), bool)
    own[audit.kept] = False
    others = audit.distances[own]
    m, edges = count(len(audit.kept), "row"), _edges(audit)
    bars = np.bincount(np.searchsorted(edges[1:-1], others), minlength=len(edges) - 1)  # a bar includes its right end
    text = f"The distance of each row to its nearest kept row, for {count(len(others), 'row')} that {_be(len(others))} not kept."
    if audit.limit is not None and len(audit.uncovered):
        text += f" Red bars are farther than {audit.limit:.4g}."
    drawn = [
        plot("distances", "Number of rows by distance to the nearest kept row", "medium", "Distances", small("of rows not kept"))
    ]
    radii: list[tuple[str, float]] = []
    if audit.best is not None and audit.farthest_first is not None and audit.random_rows is not None:
        radii = [
            ("these rows", audit.radius),
            ("random rows", audit.random_rows),
            ("farthest first", audit.farthest_first),
            ("lower bound", audit.best),
        ]
        label = f"Covering radii of these rows, of as many rows chosen in other ways, and the lower bound for any {m}"
        drawn.append(plot("radii", label, "medium", "Covering radius", small(f"of {m}")))
        text += " No list of as many rows has a smaller radius than the lower bound."
    note = "" if radii else "There is no comparison with other choices. Audits make it with compare=True (--compare)."
    data = {
        "edges": edges.tolist(),
        "bars": bars.tolist(),
        "limit": audit.limit,
        "radii": [list(each) for each in radii],
    }
    return Section("distribution", "Distances to the nearest kept row", [text, grid(drawn), aside(note)], data)


def _edges(audit: Audit) -> Array:
    """The ends of the bars. The radius of the audit is one of them, unless it is much smaller than the distances."""
    largest = audit.radius if audit.radius > 0 else 1.0
    if audit.limit is None or not largest / MAX_BARS < audit.limit < largest:
        return np.asarray(np.linspace(0.0, largest, BARS + 1), np.float64)
    below = max(round(BARS * audit.limit / largest), 1)
    edges = np.asarray(np.arange(int(np.ceil(largest / audit.limit * below)) + 1) * (audit.limit / below), np.float64)
    edges[below] = audit.limit
    edges[-1] = max(edges[-1], largest)
    return edges


def _worst(audit: Audit, worst: Indices, originals: Originals) -> Section:
    nearest = audit.kept[audit.assignments[worst]]
    rows = []
    for row, kept in zip(worst.tolist(), nearest.tolist(), strict=True):
        distance = f"{audit.distances[row]:.6g}"
        is_far = audit.limit is not None and audit.distances[row] > audit.limit
        shown = Cell(markup('<td class="over">$text</td>', text=distance)) if is_far else distance
        rows.append([f"{row:,}", shown, f"{kept:,}", *_texts(originals, row, kept)])
    if not rows:
        return Section("worst", "Worst rows", ["All rows are kept."])
    head = ["row", "distance", "nearest kept row", *_titles(originals, "nearest")]
    text = "The rows that are farthest from all kept rows. Row numbers begin with 0."
    if audit.limit is not None and len(audit.uncovered):
        text += f" Red distances are larger than {audit.limit:.4g}."
    return Section(
        "worst", "Worst rows", [text, table(head, rows, f"The {count(len(rows), 'worst row')}", len(rows) > 12, "worst-rows")]
    )


def _closest(audit: Audit) -> tuple[Indices, Indices, Array]:
    """The closest pairs of kept rows within the radius."""
    if audit.close is None:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    first, second, distances = audit.close
    order = np.lexsort((second, first, distances))[:LISTED]
    return first[order], second[order], distances[order]


def _redundant(audit: Audit, close: tuple[Indices, Indices, Array], originals: Originals) -> Section:
    total = 0 if audit.close is None else len(audit.close.first)
    if not total:
        return Section("redundant", "Redundant pairs", [f"No two kept rows are within {audit.limit:.4g} of each other."])
    rows = [
        [f"{one:,}", f"{other:,}", f"{distance:.6g}", *_texts(originals, one, other)]
        for one, other, distance in zip(*(part.tolist() for part in close), strict=True)
    ]
    text = f"{count(total, 'pair')} of kept rows {_be(total)} within {audit.limit:.4g} of each other."
    head = ["row", "other row", "distance", *_titles(originals, "other")]
    return Section(
        "redundant",
        "Redundant pairs",
        [text, table(head, rows, f"The {count(len(rows), 'closest pair')}", len(rows) > 12, "closest-pairs")],
    )


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def _originals(data: Any, rows: Indices, n: int) -> Originals:
    """The texts of some rows in the columns that identify them."""
    if data is None:
        return {}
    if has_paths(data):
        if not all(Path(name).suffix.lower() in written_suffixes() for name in files_of(data)):
            return {}  # arrays have no such columns
        picked = pick_rows(data, rows)[0]
        values = {name: picked.column(name).to_pylist() for name in picked.column_names}
        lists = [name for name, cells in values.items() if any(isinstance(cell, list) for cell in cells)]
        numbers = [] if lists else [name for name, cells in values.items() if any(isinstance(cell, float) for cell in cells)]
        values = {name: cells for name, cells in values.items() if name not in (*lists, *numbers)}
    else:
        columns = {str(name): np.asarray(data[name]) for name in data}
        wrong = next((name for name, cells in columns.items() if len(cells) != n), None)
        if wrong is not None:
            raise ValueError(f"data must have one entry for each of the {n:,} rows, got {len(columns[wrong]):,} in {wrong!r}")
        values = {name: cells[rows].tolist() for name, cells in columns.items() if cells.ndim == 1}
    return {name: dict(zip(rows.tolist(), map(_text, cells), strict=True)) for name, cells in list(values.items())[:ORIGINALS]}


def _text(value: Any) -> Markup:
    """A value of the data, shortened; some hundred characters of it on hover."""
    text = "" if value is None else str(value)
    return cut(shortened(text, LONG), shortened(text, LONGEST))


def _texts(originals: Originals, row: int, other: int) -> list[Markup]:
    return [texts[each] for texts in originals.values() for each in (row, other)]


def _titles(originals: Originals, other: str) -> list[str]:
    return [title for name in originals for title in (name, f"{name} of {other}")]
