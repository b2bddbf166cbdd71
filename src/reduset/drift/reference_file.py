"""A reference as fields of a file (`reduset._archive`): their types and bounds, and conversion in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset._types import Array
from reduset.drift.columns import KINDS, MAX_COLUMNS, ColumnBins, ColumnScores
from reduset.drift.feature_map import OCTAVES, FeatureMap
from reduset.drift.reference import StoredReference
from reduset.drift.regions import Cells
from reduset.drift.sample import Sample

f = _archive.fields

MAX_ROWS = 2**53
LARGEST_FEATURE = 1e9  # coordinates and their variances are much smaller
COLUMNS: f.Fields = {"columns": f.names("d"), "named": f.flag}
ROWS: f.Fields = COLUMNS | {
    "rows": f.Numbers(("n", "d"), dtype=None),
    "weights": f.Numbers(("n",), low=0),
}
STORED: f.Fields = COLUMNS | {
    "octaves": f.listed(f.whole(OCTAVES[0], OCTAVES[-1]), "octaves"),
    "axes": f.listed(f.whole(1), "octaves"),
    "plain": f.flag,
    "counts": f.listed(f.whole(1), "d"),
    "listed": f.listed(f.flag, "d"),
    "reference_rows": f.number(1, MAX_ROWS),
    "known_rows": f.number(1, MAX_ROWS),
    "n_samples": f.whole(1, MAX_ROWS),
    "scales": f.Numbers(("d",), low=1e-150, above=True),
    "atoms": f.Numbers(("m", "d")),
    "bandwidths": f.Numbers(("octaves",), low=0, high=LARGEST_FEATURE, above=True),
    "projections": f.Numbers(("m", "axes"), low=-LARGEST_FEATURE, high=LARGEST_FEATURE, dtype=np.float32),
    "variances": f.Numbers(("axes",), low=0, high=LARGEST_FEATURE, above=True),
    "mean": f.Numbers(("coordinates",), low=-LARGEST_FEATURE, high=LARGEST_FEATURE),
    "covariance": f.Numbers(("coordinates", "coordinates"), low=-LARGEST_FEATURE, high=LARGEST_FEATURE, dtype=np.float32),
    "errors": f.Numbers(("octaves",), low=0, high=LARGEST_FEATURE),
    "cell_shares": f.Numbers(("m",), low=0, high=LARGEST_FEATURE),
    "cell_sums": f.Numbers(("m", "d")),
    "cell_squares": f.Numbers(("m", "d")),
    "edges": f.Numbers(("edges",)),
    "shares": f.Numbers(("bins",), low=0, high=LARGEST_FEATURE),
    "sample": f.Numbers(("sampled?", "d"), dtype=None),
    "column_scores": f.Numbers((KINDS, "bins"), low=-1, high=1, dtype=np.float32, optional=True),
    "column_variances": f.Numbers(("scored columns",), low=0, high=1, optional=True),
}


def values_of(reference: Sample | StoredReference) -> dict[str, Any]:
    """The values of ``ROWS`` or ``STORED``."""
    named = {"columns": reference.names, "named": reference.named}
    if isinstance(reference, Sample):
        return named | {"rows": reference.rows, "weights": reference.weights}
    features, bins, scores = reference.features, reference.features.bins, reference.features.scores
    cell_sums, cell_squares = reference.cells.by_cell()
    of_features = {name: getattr(features, name) for name in ("octaves", "scales", "atoms", "bandwidths", "variances")}
    of_reference = {name: getattr(reference, name) for name in ("n_samples", "mean", "covariance", "errors", "sample")}
    return (
        named
        | of_features
        | of_reference
        | {
            "axes": [projection.shape[1] for projection in features.projections],
            "plain": features.is_plain,
            "counts": [len(edges) for edges in bins.edges],
            "listed": bins.listed,
            "reference_rows": reference.rows,
            "known_rows": reference.cells.rows,
            "projections": np.concatenate(features.projections, axis=1),
            "cell_shares": reference.cells.shares,
            "cell_sums": cell_sums,
            "cell_squares": cell_squares,
            "edges": np.concatenate(bins.edges),
            "shares": np.concatenate(reference.shares),
            "column_scores": None if scores is None else np.concatenate(scores.values, axis=1),
            "column_variances": None if scores is None else scores.variances,
        }
    )


def sample_from(values: dict[str, Any]) -> Sample:
    """The sample from values of ``ROWS``."""
    rows = _validate.points(values["rows"], "rows")
    _require("rows", len(rows) >= 2)
    weights = _validate.weights(values["weights"], len(rows), "weights")
    return Sample(rows, weights / weights.sum(), values["columns"], values["named"])


def reference_from(values: dict[str, Any]) -> StoredReference:
    """The reference from values of ``STORED``."""
    counts, edges = values["counts"], values["edges"]
    _require("counts", len(edges) == sum(counts) and len(values["shares"]) == 2 * sum(counts) + len(counts))
    bins = ColumnBins(tuple(np.split(edges, np.cumsum(counts)[:-1])), values["listed"])
    _require("edges", all((np.diff(column) > 0).all() for column in bins.edges))
    _require("shares", abs(float(values["shares"].sum()) - len(counts)) < 1e-6 * len(counts))
    _require("cell_shares", abs(float(values["cell_shares"].sum()) - 1) < 1e-6)
    features = _features(values, bins)
    _require("mean", len(values["mean"]) == features.size)
    return StoredReference(
        features,
        values["mean"],
        values["covariance"],
        values["reference_rows"],
        Cells.without_rows(values["known_rows"], *(values[name] for name in ("cell_shares", "cell_sums", "cell_squares"))),
        tuple(np.split(values["shares"], _bin_ends(counts))),
        values["sample"],
        values["columns"],
        values["named"],
        values["n_samples"],
        values["errors"],
    )


def _features(values: dict[str, Any], bins: ColumnBins) -> FeatureMap:
    octaves, axes, scores = values["octaves"], values["axes"], values["column_scores"]
    _require("octaves", all(np.diff(octaves) > 0))
    _require("axes", sum(axes) == len(values["variances"]))
    _require("column_scores", (scores is None) == (values["column_variances"] is None))
    parts = tuple(np.ascontiguousarray(part) for part in np.split(values["projections"], np.cumsum(axes)[:-1], axis=1))
    return FeatureMap(
        values["scales"],
        values["atoms"],
        octaves,
        values["bandwidths"],
        parts,
        values["variances"],
        bins,
        None if scores is None else _scores(scores, values["column_variances"], bins),
        values["plain"],
    )


def _scores(scores: Array, variances: Array, bins: ColumnBins) -> ColumnScores:
    counts = [len(edges) for edges in bins.edges]
    _require("column_variances", len(counts) <= MAX_COLUMNS and len(variances) == KINDS * len(counts))
    return ColumnScores(tuple(np.split(scores, _bin_ends(counts), axis=1)), variances)


def _bin_ends(counts: Any) -> Any:
    """The end positions of the bins of each column: 2e + 1 bins for e edges, as in `ColumnBins.shares`."""
    return np.cumsum([2 * count + 1 for count in counts])[:-1]


def _require(part: str, holds: Any) -> None:
    if not holds:
        raise ValueError(f"{part} must be consistent with the other fields")
