"""A stream as a file (`reduset._archive`): its settings, its sketch, and the waiting rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset.certificate import FrequencyLadders
from reduset.kernels import kernel_field, stored_kernel
from reduset.stream.buffer import RowBuffer, StreamSettings, require_radial
from reduset.stream.candidates import Assignments, CandidateAtoms, DriftDetector, PivotedBasis, max_candidates
from reduset.stream.reservoir import ROWS, Reservoir
from reduset.stream.sketch import StreamSketch
from reduset.weights import WEIGHTINGS

f = _archive.fields

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
    "candidates": f.Numbers(("candidates", "d")),
    "kappa": f.Numbers(("candidates",)),
    "missed": f.Numbers(("candidates",), low=0),
    "assigned": f.Numbers(("candidates",), low=0),
    "chords": f.Numbers(("candidates",), low=0),
    "reach": f.Numbers(("candidates",), low=0),
    "max_count": f.whole(1),
    "initial": f.whole(),
    "loss": AMOUNT,
    "baseline": AMOUNT,
    "drift": f.record(DriftDetector, chunks=f.whole(), missed=f.number(), variance=AMOUNT),
    "sample": f.Numbers(("sample?", "d")),
    "sample_weights": f.Numbers(("sample?",), low=0, above=True),
    "sample_keys": f.Numbers(("sample?",)),
    "sample_limit": f.optional(f.number()),
    "sample_most": f.whole(1, ROWS),
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
    reservoir, assignments = sketch.reservoir, sketch.candidates.assignments
    return {
        **vars(assignments),
        **vars(sketch.candidates),
        **vars(sketch),
        "assigned": assignments.weights,
        "candidates": sketch.candidates.points,
        "kernel": sketch.kernel,
        "waves": np.ascontiguousarray(sketch.waves).view(np.float64),
        "sample": reservoir.points,
        "sample_weights": reservoir.weights,
        "sample_keys": reservoir.keys,
        "sample_limit": None if np.isinf(reservoir.limit) else reservoir.limit,
        "sample_most": reservoir.max_rows,
    }


def read(path: _archive.Path_) -> Resumed:
    """The stream, the parameters of its result, its columns, and the values with them."""
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
    settings, kernel, size = values["settings"], require_radial(values["kernel"]), values["size"]
    if size != settings.size:
        raise ValueError(f"size must equal the size in the settings, {settings.size:,}, got {size:,}")
    if settings.kernel.is_resolved and kernel != settings.kernel:
        raise ValueError(f"kernel must equal the kernel in the settings, {settings.kernel}, got {kernel}")
    waves = np.ascontiguousarray(values["waves"]).view(np.complex128)
    shape = FrequencyLadders.of_kernel(kernel, values["dimension"]).log_weights.shape
    if waves.shape != shape:
        raise ValueError(f"waves must have the shape {shape}, got {waves.shape}")
    candidates = _candidates(values, PivotedBasis(kernel, values["candidates"]), size)
    return StreamSketch(size, values["mass"], values["squares"], values["origin"], waves, candidates, _reservoir(values))


def _candidates(values: dict[str, Any], basis: PivotedBasis, size: int) -> CandidateAtoms:
    count, largest = len(basis.points), values["max_count"]
    if not (size <= largest <= max_candidates(size) and count <= largest and values["initial"] <= count):
        raise ValueError(f"candidates must be at most {max_candidates(size):,} of size {size:,}, got {count:,} of {largest:,}")
    assignments = Assignments(values["assigned"], values["chords"], values["reach"])
    names = ("kappa", "missed", "initial", "loss", "baseline", "drift")
    return CandidateAtoms(basis, size, largest, assignments=assignments, **{name: values[name] for name in names})


def _reservoir(values: dict[str, Any]) -> Reservoir:
    keys = values["sample_keys"]
    limit = np.inf if values["sample_limit"] is None else values["sample_limit"]
    if len(keys) > values["sample_most"] or (np.diff(keys) < 0).any() or (len(keys) and keys[-1] >= limit):
        raise ValueError("sample_keys must increase, be below sample_limit, and be at most sample_most in number")
    if (values["assigned"].sum() > 0) != (len(keys) > 0):
        raise ValueError(f"sample must hold rows if and only if rows are assigned to candidates, got {len(keys):,} rows")
    return Reservoir(values["sample"], values["sample_weights"], keys, limit, values["sample_most"])
