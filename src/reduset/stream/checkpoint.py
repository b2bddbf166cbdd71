"""A stream as a file (`reduset._archive`): its settings, its sketch, and the rows that wait."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset._archive import fields as f
from reduset.certificate.frequencies import FrequencyLadders
from reduset.kernels.registry import kernel_field, stored_kernel
from reduset.stream.buffer import RowBuffer, StreamSettings, radial
from reduset.stream.candidates import CandidateAtoms, DriftDetector, PivotedBasis, max_candidates
from reduset.stream.moments import DEGREES, GaussianMoments, fits
from reduset.stream.online_kcenter import ClusterSummaries, OnlineKCenter
from reduset.stream.reservoir import ROWS, Reservoir
from reduset.stream.sketch import StreamSketch
from reduset.weights import WEIGHTINGS

AMOUNT = f.number(0)
STREAM: f.Fields = {
    "dimension": f.size("d"),
    "settings": f.record(
        StreamSettings.checked,
        kernel=kernel_field,
        size=f.whole(1),
        block=f.whole(1),
        half_life=f.optional(f.number(0, above=True)),
        select=f.text,
    ),
    "ending": f.record(dict, weights=f.one_of(WEIGHTINGS), confidence=lambda value, name, sizes: _validate.confidence(value, name)),
    "seed": f.whole(0, 2**128),
    "seen": f.whole(),
    "blocks": f.whole(),
    "columns": f.optional(f.names("d")),
    "about": f.entries(),
    "waiting": f.Numbers(("waiting?", "d")),
    "waiting_weights": f.Numbers(("waiting?",), low=0, above=True),
}
SKETCH: f.Fields = {
    "kernel": stored_kernel,
    "size": f.whole(1),
    "mass": AMOUNT,
    "squares": AMOUNT,
    "origin": f.Numbers(("d",)),
    "waves": f.Numbers(("ladders", "waves")),  # complex numbers as pairs
    "centres": f.Numbers(("centres?", "d")),
    "masses": f.Numbers(("centres?",), low=0),
    "chords": f.Numbers(("centres?",), low=0),
    "reach": f.Numbers(("centres?",), low=0),
    "threshold": AMOUNT,
    "floor": AMOUNT,
    "lost": AMOUNT,
    "candidates": f.Numbers(("candidates", "d")),
    "kappa": f.Numbers(("candidates",)),
    "missed": f.Numbers(("candidates",), low=0),
    "most": f.whole(1),
    "initial": f.whole(),
    "loss": AMOUNT,
    "usual": AMOUNT,
    "drift": f.record(DriftDetector, chunks=f.whole(), missed=f.number(), variance=AMOUNT),
    "sample": f.Numbers(("sample?", "d")),
    "sample_weights": f.Numbers(("sample?",), low=0, above=True),
    "sample_keys": f.Numbers(("sample?",)),
    "sample_limit": f.optional(f.number()),
    "sample_most": f.whole(1, ROWS),
    "moments": f.optional(f.record(dict, degree=f.whole(0, DEGREES), lost=AMOUNT)),
    "moments_values": f.Numbers(("moments",), optional=True),
    "moments_origin": f.Numbers(("d",), optional=True),
}
WITHOUT_SKETCH = _archive.Kind("reduset.StreamCompressor.begun", "stream", STREAM)
WITH_SKETCH = _archive.Kind("reduset.StreamCompressor", "stream", STREAM | SKETCH)

Resumed = tuple[RowBuffer, dict[str, Any], list[str] | None, dict[str, Any]]


def write(
    path: _archive.Path_, stream: RowBuffer, ending: dict[str, Any], columns: list[str] | None, about: dict[str, Any]
) -> None:
    """Write a stream, and plain values with it."""
    waiting, weights = stream.rows_waiting()
    values = vars(stream) | {"ending": ending, "columns": columns, "about": about, "waiting": waiting, "waiting_weights": weights}
    if stream.sketch is None:
        _archive.write(path, WITHOUT_SKETCH, values)
    else:
        _archive.write(path, WITH_SKETCH, values | _values_of(stream.sketch))


def _values_of(sketch: StreamSketch) -> dict[str, Any]:
    reservoir, moments = sketch.reservoir, sketch.moments
    return {
        **vars(sketch.centres.clusters),
        **vars(sketch.centres),
        **vars(sketch.candidates),
        **vars(sketch),
        "centres": sketch.centres.centres,
        "candidates": sketch.candidates.places,
        "kernel": sketch.kernel,
        "waves": np.ascontiguousarray(sketch.waves).view(np.float64),
        "sample": reservoir.points,
        "sample_weights": reservoir.weights,
        "sample_keys": reservoir.keys,
        "sample_limit": None if np.isinf(reservoir.limit) else reservoir.limit,
        "sample_most": reservoir.most,
        "moments": None if moments is None else {"degree": moments.degree, "lost": moments.lost},
        "moments_values": None if moments is None else moments.values,
        "moments_origin": None if moments is None else moments.origin,
    }


def read(path: _archive.Path_) -> Resumed:
    """The stream, the settings of its ending, its columns, and the values with them."""
    return _archive.read(
        path, {WITH_SKETCH: lambda values: _stream(values, _sketch(values)), WITHOUT_SKETCH: lambda values: _stream(values, None)}
    )


def _stream(values: dict[str, Any], sketch: StreamSketch | None) -> Resumed:
    settings, waiting = values["settings"], values["waiting"]
    if len(waiting) >= settings.block_rows(values["dimension"]):
        raise ValueError(f"waiting must hold fewer rows than a block, got {len(waiting):,}")
    stream = RowBuffer(
        settings,
        sketch=sketch,
        waiting=((waiting, values["waiting_weights"]),) if len(waiting) else (),
        **{name: values[name] for name in ("seed", "dimension", "seen", "blocks")},
    )
    return stream, values["ending"], None if values["columns"] is None else list(values["columns"]), values["about"]


def _sketch(values: dict[str, Any]) -> StreamSketch:
    settings, kernel, size = values["settings"], radial(values["kernel"]), values["size"]
    if size != settings.size:
        raise ValueError(f"size must be that of the settings, {settings.size:,}, got {size:,}")
    if settings.kernel.is_resolved and kernel != settings.kernel:
        raise ValueError(f"kernel must be that of the settings, {settings.kernel}, got {kernel}")
    waves = np.ascontiguousarray(values["waves"]).view(np.complex128)
    shape = FrequencyLadders.of_kernel(kernel, values["dimension"]).shares.shape
    if waves.shape != shape:
        raise ValueError(f"waves must have the shape {shape}, got {waves.shape}")
    clusters = ClusterSummaries(values["centres"], values["masses"], values["chords"], values["reach"])
    return StreamSketch(
        size,
        values["mass"],
        values["squares"],
        values["origin"],
        waves,
        _candidates(values, PivotedBasis(kernel, values["candidates"]), size),
        OnlineKCenter(kernel, size, clusters, values["threshold"], values["floor"], values["lost"]),
        _reservoir(values),
        _moments(values, size),
    )


def _candidates(values: dict[str, Any], basis: PivotedBasis, size: int) -> CandidateAtoms:
    count, most = len(basis.places), values["most"]
    if not (size <= most <= max_candidates(size) and count <= most and values["initial"] <= count):
        raise ValueError(f"candidates must be at most {max_candidates(size):,} of size {size:,}, got {count:,} of {most:,}")
    names = ("kappa", "missed", "initial", "loss", "usual", "drift")
    return CandidateAtoms(basis, size, most, **{name: values[name] for name in names})


def _reservoir(values: dict[str, Any]) -> Reservoir:
    keys, centres = values["sample_keys"], len(values["centres"])
    limit = np.inf if values["sample_limit"] is None else values["sample_limit"]
    if len(keys) > values["sample_most"] or (np.diff(keys) < 0).any() or (len(keys) and keys[-1] >= limit):
        raise ValueError("sample_keys must increase, stay below the limit, and be no more than sample_most")
    if centres > values["size"] or (centres == 0) != (len(keys) == 0):
        raise ValueError(f"centres must be at most {values['size']:,}, and none without a sample; got {centres:,}")
    return Reservoir(values["sample"], values["sample_weights"], keys, limit, values["sample_most"])


def _moments(values: dict[str, Any], size: int) -> GaussianMoments | None:
    found, sums, origin = values["moments"], values["moments_values"], values["moments_origin"]
    if found is None and sums is None and origin is None:
        return None
    degree, d = found["degree"], values["dimension"]
    if not fits(degree, d, size) or sums is None or origin is None or len(sums) != comb(degree + d, d):
        raise ValueError(f"moments of degree {degree} must have {comb(degree + d, d):,} values and an origin")
    return GaussianMoments(degree, origin, sums, found["lost"])
