"""A reference as a file: plain arrays and a header, read as if a stranger had written it (`reduset._archive`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._types import Array
from reduset.drift.column_scores import KINDS, MAX_COLUMNS, ColumnScores
from reduset.drift.columns import ColumnBins
from reduset.drift.feature_map import OCTAVES, FeatureMap
from reduset.drift.reference import Places, StoredReference
from reduset.drift.regions import CellSums
from reduset.drift.sample import Sample

WHOLE = ("rows", "weights")
STORED = (
    *("scales", "atoms", "bandwidths", "projections", "variances", "mean", "covariance", "errors"),
    *("cell_shares", "cell_sums", "cell_squares", "edges", "shares", "sample", "column_scores", "column_variances"),
)
VERSION, SINCE = 2, (("column_scores", 2), ("column_variances", 2))  # files of version 1 have no scores of columns
MOST, LARGEST, FEATURE = (
    2**53,
    1e300,
    1e9,
)  # counts, numbers of rows and their squares, coordinates
Arrays = dict[str, NDArray[Any]]


def arrays_of(reference: Sample | StoredReference) -> tuple[dict[str, Any], Arrays]:
    """The part of a header and the arrays that a reference is."""
    told: dict[str, Any] = {"columns": list(reference.names), "named": reference.named}
    if isinstance(reference, Sample):
        return told | {"whole": True}, {"rows": reference.rows, "weights": reference.weights}
    features, bins = reference.features, reference.places.bins
    told |= {
        "whole": False,
        "octaves": list(features.octaves),
        "axes": [projection.shape[1] for projection in features.projections],
        "plain": features.is_plain,
        "counts": [len(each) for each in bins.edges],
        "listed": list(bins.listed),
        "reference_rows": reference.rows,
        "known_rows": reference.cells.rows,
        "n_samples": reference.n_samples,
    }
    arrays: Arrays = {
        "scales": features.scales,
        "atoms": features.atoms,
        "bandwidths": features.bandwidths,
        "projections": np.concatenate(features.projections, axis=1).astype(np.float32),
        "variances": features.variances,
        "mean": reference.mean,
        "covariance": reference.covariance.astype(np.float32),
        "errors": reference.errors,
        "cell_shares": reference.cells.shares,
        "cell_sums": reference.cells.sums,
        "cell_squares": reference.cells.squares,
        "edges": np.concatenate(bins.edges),
        "shares": np.concatenate(reference.shares),
        "sample": reference.sample,
    }
    return told, arrays | _scores_of(features)


def from_arrays(told: dict[str, Any], arrays: Arrays) -> Sample | StoredReference:
    """What `arrays_of` gave; parts that do not belong together are a ValueError."""
    names = told["columns"]
    if not (isinstance(names, list) and names and all(isinstance(each, str) for each in names)):
        raise ValueError("columns must be names")
    named, d = _validate.flag(told["named"], "named"), len(names)
    arrays = {name: array if name in ("rows", "sample") else array.astype(np.float64) for name, array in arrays.items()}
    for name, array in arrays.items():
        largest = LARGEST if name in ("rows", "sample", "atoms", "edges", "scales", "cell_sums", "cell_squares") else FEATURE
        if not np.isfinite(array).all() or float(np.abs(array).max(initial=0.0)) > largest:
            raise ValueError(f"{name} must hold finite numbers of a size that a reference has")
    if _validate.flag(told["whole"], "whole"):
        _require("rows", arrays["rows"].ndim == 2 and arrays["rows"].shape[1] == d and len(arrays["rows"]) >= 2)
        weights = _validate.weights(arrays["weights"], len(arrays["rows"]), "weights")
        return Sample(_validate.points(arrays["rows"], "rows"), weights / weights.sum(), tuple(names), named)
    features = _features(told, arrays, d)
    bins, shares = _columns(told, arrays, d)
    features = replace(features, scores=_scores(arrays, bins))
    m, p = len(features.atoms), features.size
    cells = tuple(arrays[name] for name in ("cell_shares", "cell_sums", "cell_squares"))
    _require("cells", [each.shape for each in cells] == [(m,), (m, d), (m, d)] and (cells[0] >= 0).all())
    _require("cell_shares", abs(float(cells[0].sum()) - 1) < 1e-6)
    _require("mean", arrays["mean"].shape == (p,) and arrays["covariance"].shape == (p, p))
    _require("errors", arrays["errors"].shape == (len(features.octaves),) and (arrays["errors"] >= 0).all())
    _require("sample", arrays["sample"].ndim == 2 and arrays["sample"].shape[1] == d)
    known, compared = (_validate.at_least(told[name], name, 1) for name in ("known_rows", "reference_rows"))
    _require("counts", max(known, compared) <= MOST)
    return StoredReference(
        Places(features, bins),
        arrays["mean"],
        arrays["covariance"].astype(np.float64),
        compared,
        CellSums.without_rows(known, *cells),
        shares,
        arrays["sample"],
        tuple(names),
        named,
        _validate.whole(told["n_samples"], "n_samples", 1, MOST),
        arrays["errors"],
    )


def _features(told: dict[str, Any], arrays: Arrays, d: int) -> FeatureMap:
    octaves = tuple(_validate.whole(each, "octaves", OCTAVES[0], OCTAVES[-1]) for each in told["octaves"])
    axes = [_validate.whole(each, "axes", 1) for each in told["axes"]]
    scales, atoms, projections = arrays["scales"], arrays["atoms"], arrays["projections"].astype(np.float64)
    _require("octaves", len(octaves) > 0 and all(np.diff(octaves) > 0) and len(axes) == len(octaves))
    _require(
        "scales", scales.shape == (d,) and (scales > 1e-150).all() and atoms.ndim == 2 and atoms.shape[1] == d and len(atoms) > 0
    )
    _require("bandwidths", arrays["bandwidths"].shape == (len(octaves),) and (arrays["bandwidths"] > 0).all())
    _require("projections", projections.shape == (len(atoms), sum(axes)) and arrays["variances"].shape == (sum(axes),))
    _require("variances", (arrays["variances"] > 0).all())
    parts = tuple(np.ascontiguousarray(each) for each in np.split(projections, np.cumsum(axes)[:-1], axis=1))
    plain = _validate.flag(told["plain"], "plain")
    return FeatureMap(scales, atoms, octaves, arrays["bandwidths"], parts, arrays["variances"], plain)


def _columns(told: dict[str, Any], arrays: Arrays, d: int) -> tuple[ColumnBins, tuple[Array, ...]]:
    counts = [_validate.whole(each, "counts", 1) for each in told["counts"]]
    listed = tuple(_validate.flag(each, "listed") for each in told["listed"])
    _require("counts", len(counts) == len(listed) == d and arrays["edges"].shape == (sum(counts),))
    _require("shares", arrays["shares"].shape == (2 * sum(counts) + d,) and (arrays["shares"] >= 0).all())
    edges = tuple(np.split(arrays["edges"], np.cumsum(counts)[:-1]))
    _require("edges", all((np.diff(each) > 0).all() for each in edges))
    _require("shares", abs(float(arrays["shares"].sum()) - d) < 1e-6 * d)
    shares = tuple(np.split(arrays["shares"], np.cumsum([2 * count + 1 for count in counts])[:-1]))
    return ColumnBins(edges, listed), shares


def _scores_of(features: FeatureMap) -> Arrays:
    """The scores of columns and their variances; nothing where there are none."""
    scores = features.scores
    if scores is None:
        return {}
    return {
        "column_scores": np.concatenate(scores.values, axis=1).astype(np.float32),
        "column_variances": scores.variances,
    }


def _scores(arrays: Arrays, bins: ColumnBins) -> ColumnScores | None:
    """What `_scores_of` gave; None where it gave nothing, as in files of version 1."""
    values, variances = (arrays.get(name, np.empty(0)) for name in ("column_scores", "column_variances"))
    if not values.size and not variances.size:
        return None
    counts = [2 * len(each) + 1 for each in bins.edges]
    _require("column_scores", len(counts) <= MAX_COLUMNS and values.shape == (KINDS, sum(counts)) and (np.abs(values) <= 1).all())
    _require("column_variances", variances.shape == (KINDS * len(counts),) and ((variances >= 0) & (variances <= 1)).all())
    return ColumnScores(bins, tuple(np.split(values, np.cumsum(counts)[:-1], axis=1)), variances)


def _require(part: str, holds: Any) -> None:
    if not holds:
        raise ValueError(f"its {part} do not fit the rest")


def padded(arrays: Arrays, names: tuple[str, ...]) -> Arrays:
    """All the arrays that a kind of file has, those that are not needed empty."""
    return {name: np.ascontiguousarray(arrays.get(name, np.empty(0))) for name in names}


def about_from(told: dict[str, Any]) -> dict[str, Any]:
    """The plain values beside a reference."""
    about = told["about"]
    if not isinstance(about, dict):
        raise ValueError(f"about must be an object, got {str(about)[:60]}")
    return about
