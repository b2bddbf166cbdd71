"""The report of a cohort: distances of samples as a picture, a map of them, and what each sample lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reduset import _archive
from reduset._types import Array
from reduset.report.cohort_figure import CohortFigure, cohort_figure
from reduset.report.page import Markup, cards, file, markup, origin, packed, table, write
from reduset.report.words import Card, confidence, count, percent

PARAMETERS = ("distance", "layout", "pieces_", "atoms", "size", "tol", "n_neighbors", "confidence", "random_state")


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
    about : plain values to show beside it: "command", "sources", "notes", "versions", and any others
    """
    shown = cohort_figure(cohort, groups)
    title = f"{count(len(shown.names), 'sample')} compared"
    write(
        path, title, _body(cohort, shown, about), contents(shown, cohort.distance == "kl"), ["common.js", "samples.js", "cohort.js"]
    )


def contents(shown: CohortFigure, sampled: bool) -> dict[str, Any]:
    """What the scripts of the page read; of symmetric matrices the half above the diagonal. Are errors those of random draws?"""
    above = np.triu_indices(len(shown.names), 1)
    places = np.column_stack([shown.places, np.zeros((len(shown.names), 2))])[:, :2]
    return {
        "names": list(shown.names),
        "sampled": sampled,
        "groups": None if shown.groups is None else list(shown.groups),
        "places": packed(places - places.mean(axis=0)),  # a map has no origin
        "flat": shown.places.shape[1] < 2,
        "distances": packed(shown.distances[above]),
        "errors": packed(shown.errors[above]),
        "order": shown.order.tolist(),
    }


def _body(cohort: Any, shown: CohortFigure, about: Mapping[str, Any] | None) -> Markup:
    parameters: dict[str, Any] = {"Kernel": repr(cohort.kernel_)}
    given = {name: getattr(cohort, name) for name in PARAMETERS}
    parameters |= {name.replace("_", " ").strip(): value for name, value in given.items() if value is not None}
    sizes = shown.sizes
    lead = "" if sizes is None else f"{count(int(sizes[:, 0].sum()), 'row')} in all, {_pieces(sizes[:, 1], cohort.pieces_)}"
    return markup(
        file("cohort.html"),
        samples=count(len(shown.names)),
        lead=lead,
        cards=cards(_cards(cohort, shown)),
        certificates=_certificates(shown, cohort.pieces_),
        origin=origin(about, parameters),
    )


def _pieces(sizes: Any, pieces: str) -> str:
    if len(set(sizes.tolist())) == 1:
        return f"{count(sizes[0], pieces.removesuffix('s'))} each"
    return f"{sizes.min():,} to {sizes.max():,} {pieces} each"


def _off_diagonal(matrix: Array) -> Array:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def _cards(cohort: Any, shown: CohortFigure) -> list[Card]:
    distances, errors = _off_diagonal(shown.distances), _off_diagonal(shown.errors)
    near = np.where(np.eye(len(shown.names), dtype=bool), np.inf, shown.distances)
    first, second = np.unravel_index(near.argmin(), near.shape)
    far = np.unravel_index(np.where(np.isfinite(shown.distances), shown.distances, -1.0).argmax(), near.shape)
    whole = float(np.linalg.norm(distances))
    relative = float(np.linalg.norm(errors)) / whole if whole > 0 else 0.0
    sampled = cohort.distance == "kl"
    certain = "What the compression can have changed in the distances at most, all together, by certificates of "
    certain += f"{percent(cohort.confidence)} confidence."
    if sampled:
        certain = "The standard error of the distances, all together: they are estimated from random draws."
    elif shown.certificates is None:
        certain = "All rows were compared, so that no distance is off."
    kind = (
        "The symmetrised Kullback–Leibler divergence of their densities"
        if sampled
        else "The distance of their densities in the kernel's norm"
    )
    return [
        Card("Alike", f"{shown.distances[first, second]:.3g}", f"The nearest two: {shown.names[first]} and {shown.names[second]}."),
        Card("Certain to", percent(relative), certain),
        Card("Apart", f"{shown.distances[far]:.3g}", f"The farthest two: {shown.names[far[0]]} and {shown.names[far[1]]}."),
        Card("Groups", *_groups_told(shown)) if shown.groups is not None else Card("Distance", cohort.distance, kind + "."),
    ]


def _groups_told(shown: CohortFigure) -> tuple[str, str]:
    """How far samples of one group are apart, against samples of two."""
    groups = np.array([g if g is not None else "" for g in shown.groups or ()], dtype=object)
    known = np.array([g is not None for g in shown.groups or ()])
    both = known[:, None] & known & ~np.eye(len(groups), dtype=bool)
    same = both & (groups[:, None] == groups)
    other = both & ~same
    named = len(set(groups[known].tolist()))
    if not same.any() or not other.any():
        return f"{named}", "Shown by colour and shape."
    inside, between = float(np.mean(shown.distances[same])), float(np.mean(shown.distances[other]))
    return f"{named}", f"Samples of one group are {inside:.3g} apart in the mean, samples of two groups {between:.3g}."


def _certificates(shown: CohortFigure, pieces: str) -> Markup:
    if shown.certificates is None or shown.sizes is None:
        return Markup("<p>All rows were compared: nothing was compressed, and nothing lost.</p>")
    rows = []
    for k, (name, certificate, (n, m)) in enumerate(zip(shown.names, shown.certificates, shown.sizes, strict=True)):
        low, high = certificate.interval
        group = [] if shown.groups is None else [shown.groups[k] if shown.groups[k] is not None else "—"]
        rows.append(
            [
                name,
                *group,
                f"{n:,}",
                f"{m:,}",
                percent(certificate.relative_error),
                "exact" if certificate.method == "exact" else f"{percent(low)} to {percent(high)}",
            ]
        )
    head = [
        "sample",
        *([] if shown.groups is None else ["group"]),
        "rows",
        pieces,
        "lost",
        f"{confidence(shown.certificates[0])} interval",
    ]
    return table(head, rows, "What each sample lost when it was compressed")
