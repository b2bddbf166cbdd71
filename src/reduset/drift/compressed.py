"""A compression as a reference: its rows are gone, but how far its mean is from theirs is certified at every scale.

The difference to new rows is taken less what the compression may have lost at that scale, ‖δ‖ − e, so that no loss is taken for
drift; statistics are the plain ones alone, since whitened ones could not be freed of it. The law of single rows is that of the
atoms, drawn by weight, or of the components; scales finer than the bandwidth that was compressed at are left out. By cell and by
column, the reference counts as so many rows as it has atoms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reduset._engine import rows_by_weight
from reduset._types import Array
from reduset.certificate.by_scale import ErrorProfile
from reduset.drift.columns import ColumnBins
from reduset.drift.feature_map import FeatureMap, median_distance
from reduset.drift.reference import COVARIANCE_ROWS, KEPT_ROWS, Places, ReferenceSums, StoredReference
from reduset.drift.sample import names_of
from reduset.kernels import Gaussian
from reduset.mixture import ComponentMean

MAKE_ONE = "fit the test on the rows themselves: DriftTest().fit(X), or reduset drift ROWS TODAY -o reference.npz"


def is_compression(value: Any) -> bool:
    """Whether it is a `Compression` or a `Model`: a mean that knows what it lost."""
    return all(hasattr(value, part) for part in ("mean", "n_samples", "certificate", "profile"))


def of_compression(small: Any, size: int, keep_rows: bool, rng: np.random.Generator) -> StoredReference:
    """The reference that a `Compression` or a `Model` is."""
    mean, kernel = small.mean, small.mean.kernel
    if not isinstance(kernel, Gaussian) or kernel.covariance is not None:
        raise ValueError(
            f"a reference that is compressed must have a Gaussian kernel without a covariance, got {kernel!r}; {MAKE_ONE}"
        )
    if float(mean.weights.min()) < 0:
        raise ValueError(
            "a reference that is compressed must have no negative weights, they are no shares; compress with weights='simplex', or "
            + MAKE_ONE
        )
    try:
        profile: ErrorProfile = small.profile()
    except ValueError as error:
        raise ValueError(
            f"a reference that is compressed must know its error at every scale, and this one does not; {MAKE_ONE}"
        ) from error
    names = names_of(getattr(small, "columns", None), mean.dimension)
    points, weights = (mean.means if isinstance(mean, ComponentMean) else mean.atoms), mean.weights / mean.weights.sum()
    drawn = _rows(mean, COVARIANCE_ROWS, rng)
    units = np.ones(mean.dimension) if kernel.units is None else np.asarray(kernel.units)
    order = rng.permutation(len(points))[:size]
    width = median_distance(drawn, units)
    wider = np.sqrt(2) if kernel.space == "l2" else 1.0  # bumps of width h have products of width √2·h there
    features = FeatureMap.shaped(drawn[:KEPT_ROWS], np.unique(points[order], axis=0), units, width)
    features = features.down_to(wider * kernel.width).plain().stored()
    places = Places(features, ColumnBins.of(drawn))
    # a component is looked at by its draws; atoms as they are
    rows, masses = (drawn, np.full(len(drawn), 1 / len(drawn))) if isinstance(mean, ComponentMean) else (points, weights)
    found = StoredReference.put_together(
        places, ReferenceSums.of(places, rows, masses), drawn, keep_rows, names, hasattr(small, "columns"), small.n_samples
    )
    drawn_noise = 1 / len(drawn) if isinstance(mean, ComponentMean) else 0.0  # of a mean that is known by draws
    known = 1.0 / float(weights @ weights)
    norms = np.asarray([float(np.linalg.norm(found.mean[part])) for part in features.parts])
    return replace(
        found,
        rows=1 / (1 / small.n_samples + drawn_noise),
        cells=replace(found.cells, rows=known),
        errors=norms * _upper_errors(wider * profile.bandwidths, profile.intervals[:, 1], features.bandwidths),
    )


def _rows(mean: Any, count: int, rng: np.random.Generator) -> Array:
    """Draws from the law of the rows: atoms by weight, or the components without the kernel's own width."""
    if not isinstance(mean, ComponentMean):
        return np.asarray(mean.atoms[mean.draw_rows(count, rng)], np.float64)
    which = rows_by_weight(mean.weights, rng.random(count))
    lengths, directions = np.linalg.eigh(mean.pieces.spreads)  # a law may be flat
    drawn = rng.standard_normal((count, mean.dimension)) * np.sqrt(np.maximum(lengths, 0.0))[which]
    return np.asarray(mean.means[which] + np.einsum("nij,nj->ni", directions[which], drawn))


def _upper_errors(known: Array, errors: Array, bandwidths: Array) -> Array:
    """(S,) upper ends of the relative errors at these bandwidths: that of the next finer scale which is known."""
    at = [min(int((known > width * (1 + 1e-9)).sum()), len(known) - 1) for width in bandwidths]
    return np.nan_to_num(errors[at], nan=1.0)
