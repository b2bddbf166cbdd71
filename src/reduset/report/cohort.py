"""The report of a cohort: distances of samples as a picture, a map of them, and the error of each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset import _archive
from reduset._types import Array
from reduset.report.blocks import Markup, aside, choice, controls, hero, markup, plot, sentence, table
from reduset.report.maps import CohortFigure, cohort_figure
from reduset.report.page import Section, packed, write_page
from reduset.report.words import Card, confidence, count, percent

PARAMETERS = ("distance", "layout", "pieces_", "atoms", "size", "tol", "n_neighbors", "confidence", "random_state")
ORDERS = (("alike", "similar ones next to each other"), ("given", "as given"))
KINDS = {
    "mmd": "The distance of their densities in the kernel's norm.",
    "kl": "The symmetrised Kullback–Leibler divergence of their densities.",
}


def write_cohort(
    path: _archive.Path_,
    cohort: Any,
    *,
    groups: Sequence[Any] | Mapping[Any, Any] | None = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write the report of a cohort: one HTML file that opens offline.

    Parameters
    ----------
    path : where to, usually with the ending .html
    cohort : a fitted `CohortMap`
    groups : one a sample, in order or by the names of the samples; None and NaN for samples without one
    about : plain values to show with it: "command", "sources", "notes", "versions", and any others
    """
    shown = cohort_figure(cohort, groups)
    given = {name.replace("_", " ").strip(): getattr(cohort, name) for name in PARAMETERS}
    settings = {"Kernel": repr(cohort.kernel_)} | {name: value for name, value in given.items() if value is not None}
    title = markup('$samples <small>samples,</small> <span class="accent">compared</span>', samples=count(len(shown.names)))
    write_page(
        path,
        f"{count(len(shown.names), 'sample')} compared",
        hero(title, [_rows(shown, cohort.pieces_)], _cards(cohort, shown)),
        [
            _map(shown),
            _distances(shown),
            Section("lost", "The error of each sample", [_certificates(shown, cohort.pieces_)]),
        ],
        ["samples.js", "cohort.js"],
        about=about,
        settings=settings,
        data={"names": list(shown.names), "sampled": cohort.distance == "kl"},
    )


def _map(shown: CohortFigure) -> Section:
    places = np.column_stack([shown.places, np.zeros((len(shown.names), 2))])[:, :2]
    data = {
        "groups": None if shown.groups is None else list(shown.groups),
        "places": packed(places - places.mean(axis=0)),  # a map has no origin
        "flat": shown.places.shape[1] < 2,
    }
    text = "Each dot is a sample. Similar samples are near each other. Only distances have a meaning, not directions."
    blocks = [text, plot("map", "Map of the samples, with their names", "tall"), aside(name="nameless")]
    return Section("map", "Which samples are similar", blocks, data)


def _distances(shown: CohortFigure) -> Section:
    above = np.triu_indices(len(shown.names), 1)  # of symmetric matrices
    data = {
        "distances": packed(shown.distances[above]),
        "errors": packed(shown.errors[above]),
        "order": shown.order.tolist(),
    }
    blocks = [
        "The stronger the colour the nearer. Point at a square for the distance and its error.",
        controls([choice("order", "Order", ORDERS)], "Order of the samples"),
        plot("heat", "Distances of every two samples", "heat"),
    ]
    return Section("heat", "Every two of them", blocks, data)


def _rows(shown: CohortFigure, pieces: str) -> str:
    """The number of rows, and of the atoms or components of each sample."""
    if shown.sizes is None:
        return ""
    rows, sizes = f"{count(int(shown.sizes[:, 0].sum()), 'row')} in all", shown.sizes[:, 1]
    if len(set(sizes.tolist())) == 1:
        return f"{rows}, {count(sizes[0], pieces.removesuffix('s'))} each"
    return f"{rows}, {sizes.min():,} to {sizes.max():,} {pieces} each"


def _off_diagonal(matrix: Array) -> Array:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def _cards(cohort: Any, shown: CohortFigure) -> list[Card]:
    distances, errors = _off_diagonal(shown.distances), _off_diagonal(shown.errors)
    near = np.where(np.eye(len(shown.names), dtype=bool), np.inf, shown.distances)
    first, second = np.unravel_index(near.argmin(), near.shape)
    far = np.unravel_index(np.where(np.isfinite(shown.distances), shown.distances, -1.0).argmax(), near.shape)
    whole = float(np.linalg.norm(distances))
    relative = float(np.linalg.norm(errors)) / whole if whole > 0 else 0.0
    certain = "The largest change of the distances by the compression, all together, by certificates of "
    certain += f"{percent(cohort.confidence)} confidence."
    if cohort.distance == "kl":
        certain = "The standard error of the distances, all together: they are estimated from random draws."
    elif shown.certificates is None:
        certain = "All rows were compared, so distances have no error."
    return [
        Card(
            "Nearest", f"{shown.distances[first, second]:.3g}", f"The nearest two: {shown.names[first]} and {shown.names[second]}."
        ),
        Card("Certain to", percent(relative), certain),
        Card("Farthest", f"{shown.distances[far]:.3g}", f"The farthest two: {shown.names[far[0]]} and {shown.names[far[1]]}."),
        Card("Distance", cohort.distance, KINDS[cohort.distance]) if shown.groups is None else _groups(shown),
    ]


def _groups(shown: CohortFigure) -> Card:
    """The mean distance of samples of one group, compared with samples of two."""
    groups = np.array([g if g is not None else "" for g in shown.groups or ()], dtype=object)
    known = np.array([g is not None for g in shown.groups or ()])
    both = known[:, None] & known & ~np.eye(len(groups), dtype=bool)
    same = both & (groups[:, None] == groups)
    other = both & ~same
    text = "Shown by colour and shape."
    if same.any() and other.any():
        inside, between = float(np.mean(shown.distances[same])), float(np.mean(shown.distances[other]))
        text = f"Mean distance within groups {inside:.3g}, between groups {between:.3g}."
    return Card("Groups", str(len(set(groups[known].tolist()))), text)


def _certificates(shown: CohortFigure, pieces: str) -> Markup:
    if shown.certificates is None or shown.sizes is None:
        return sentence("All rows were compared: nothing was compressed.")
    grouped = shown.groups is not None
    rows = []
    for k, (name, certificate, (n, m)) in enumerate(zip(shown.names, shown.certificates, shown.sizes, strict=True)):
        low, high = certificate.interval
        interval = "exact" if certificate.method == "exact" else f"{percent(low)} to {percent(high)}"
        group = [] if shown.groups is None else ["—" if shown.groups[k] is None else shown.groups[k]]
        rows.append([name, *group, f"{n:,}", f"{m:,}", percent(certificate.relative_error), interval])
    head = ["sample", *(["group"] * grouped), "rows", pieces, "error", f"{confidence(shown.certificates[0])} interval"]
    return table(head, rows, "The relative error of each sample by its compression")
