"""The file of a stream on its way: everything that a sketch holds, and the rows that wait, as plain arrays with a JSON header.

The format is that of `reduset._archive`: a digest over all of it, written beside the target, flushed to disk and then moved in its
place. What is read is checked to belong together before it is used. In the file a sketch is called tally, its candidates sites, its
centres covering and its reservoir sample, as ever since the first version. The second has moments; a file of the first is that of a
stream without them.
"""

from __future__ import annotations

import os
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive, _validate
from reduset._types import Array
from reduset.certificate.frequencies import FrequencyLadders
from reduset.kernels.registry import kernel_from
from reduset.stream.buffer import RowBuffer, StreamSettings, radial
from reduset.stream.candidates import CandidateAtoms, DriftDetector, PivotedBasis, max_candidates
from reduset.stream.moments import DEGREES, GaussianMoments, fits
from reduset.stream.online_kcenter import ClusterSummaries, OnlineKCenter
from reduset.stream.reservoir import ROWS, Reservoir
from reduset.stream.sketch import StreamSketch
from reduset.weights import KINDS

KIND = "reduset.StreamCompressor"
PARTS = {  # as the file calls them: rows, and numbers for each
    "covering": ("centres", "masses", "chords", "reach"),
    "sites": ("places", "kappa", "missed"),
    "sample": ("points", "weights", "keys"),
}
MOMENTS = ("moments_values", "moments_origin")
NAMES = ("waiting", "waiting_weights", "origin", "waves", *(f"{part}_{name}" for part in PARTS for name in PARTS[part]), *MOMENTS)
FORMAT = _archive.Kind(2, NAMES, since=tuple((name, 2) for name in MOMENTS))

Arrays = dict[str, NDArray[Any]]


def write(
    path: _archive.Path_, stream: RowBuffer, settings: dict[str, Any], columns: list[str] | None, about: dict[str, Any]
) -> None:
    """Write a stream, and plain values beside it."""
    arrays: Arrays = {name: np.empty(0) for name in NAMES}
    arrays["waiting"], arrays["waiting_weights"] = stream.rows_waiting()
    if stream.sketch is not None:
        arrays |= _arrays_of(stream.sketch)
    header = {
        "kind": KIND,
        "version": FORMAT.version,
        "plan": {**vars(stream.settings), "kernel": stream.settings.kernel.to_dict()},
        "settings": settings,
        **{name: getattr(stream, name) for name in ("seed", "dimension", "seen", "blocks")},
        "columns": columns,
        "about": about,
        "tally": None if stream.sketch is None else _header_of(stream.sketch),
    }
    _archive.write(path, header, arrays)


def _arrays_of(sketch: StreamSketch) -> Arrays:
    arrays: Arrays = {"origin": sketch.origin, "waves": np.ascontiguousarray(sketch.waves).view(np.float64)}
    for part, held in zip(PARTS, (sketch.centres.clusters, sketch.candidates, sketch.reservoir), strict=True):
        arrays |= {f"{part}_{name}": getattr(held, name) for name in PARTS[part]}
    if sketch.moments is not None:
        arrays |= {"moments_values": sketch.moments.values, "moments_origin": sketch.moments.origin}
    return arrays


def _header_of(sketch: StreamSketch) -> dict[str, Any]:
    candidates, centres, reservoir, moments = sketch.candidates, sketch.centres, sketch.reservoir, sketch.moments
    return {
        "kernel": sketch.kernel.to_dict(),
        "size": sketch.size,
        "mass": sketch.mass,
        "squares": sketch.squares,
        "sites_most": candidates.most,
        "sites_first": candidates.initial,
        "loss": candidates.loss,
        "usual": candidates.usual,
        "watched": list(vars(candidates.drift).values()),
        **{name: getattr(centres, name) for name in ("threshold", "floor", "lost")},
        "sample_limit": None if np.isinf(reservoir.limit) else reservoir.limit,
        "sample_most": reservoir.most,
        "moments": None if moments is None else {"degree": moments.degree, "lost": moments.lost},
    }


def read(path: _archive.Path_) -> tuple[RowBuffer, dict[str, Any], list[str] | None, dict[str, Any]]:
    """The stream, the settings of its ending, its columns and the values beside it."""
    header, arrays = _archive.read(path, {KIND: FORMAT})
    try:
        for name, array in arrays.items():
            if array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{name} must hold finite numbers of 64 bits")
        stream = _stream(header, arrays)
        settings = {
            "weights": _validate.one_of(header["settings"]["weights"], "weights", KINDS),
            "confidence": _validate.confidence(header["settings"]["confidence"]),
        }
        columns = header["columns"]
        if columns is not None and not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
            raise ValueError(f"columns must be names, got {str(columns)[:60]}")
        if columns is not None and len(columns) != stream.dimension:
            raise ValueError("its columns do not fit its rows")
        if not isinstance(header["about"], dict):
            raise ValueError(f"about must be an object, got {str(header['about'])[:60]}")
        return stream, settings, columns, header["about"]
    except KeyError as error:
        raise ValueError(f"{os.fspath(path)} describes no stream: it lacks {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{os.fspath(path)} describes no stream: {error}") from error


def _stream(header: dict[str, Any], arrays: Arrays) -> RowBuffer:
    told, dimension = header["plan"], _validate.whole(header["dimension"], "dimension", 1)
    kernel = kernel_from(told["kernel"])
    settings = StreamSettings.checked(kernel, told["size"], told["block"], told["half_life"], str(told["select"]))
    sketch = None if header["tally"] is None else _sketch(header["tally"], arrays, settings, dimension)
    points, weights = _together(arrays, "waiting", "waiting_weights", dimension)
    if len(points) >= settings.block_rows(dimension) or not (weights > 0).all():
        raise ValueError("more rows wait than are taken in at once, or rows without weight")
    waiting = ((points, weights),) if len(points) else ()
    counts = {name: _validate.whole(header[name], name, 0) for name in ("seed", "seen", "blocks")}
    return RowBuffer(settings, dimension=dimension, sketch=sketch, waiting=waiting, **counts)


def _sketch(told: dict[str, Any], arrays: Arrays, settings: StreamSettings, dimension: int) -> StreamSketch:
    kernel, size = radial(kernel_from(told["kernel"])), _validate.whole(told["size"], "size", settings.size, settings.size)
    if not kernel.is_resolved or (settings.kernel.is_resolved and kernel != settings.kernel):
        raise ValueError(f"its kernel is {kernel} where {settings.kernel} was asked for")
    if arrays["origin"].shape != (dimension,):  # looked at before anything of this dimension is made
        raise ValueError(f"its origin has shape {arrays['origin'].shape}, which does not fit {dimension} columns")
    waves = np.ascontiguousarray(arrays["waves"], np.float64).view(np.complex128)
    rungs = FrequencyLadders.of_kernel(kernel, dimension).shares.shape
    if waves.shape != rungs:
        raise ValueError(f"its waves have shape {waves.shape} where {rungs} belongs")
    parts = {part: _part(arrays, part, dimension) for part in PARTS}
    centres = OnlineKCenter(kernel, size, ClusterSummaries(**parts["covering"]), *_amounts(told, "threshold", "floor", "lost"))
    limit = np.inf if told["sample_limit"] is None else _validate.finite(told["sample_limit"], "sample_limit")
    reservoir = Reservoir(**parts["sample"], limit=limit, most=_validate.whole(told["sample_most"], "sample_most", 1, ROWS))
    candidates = _candidates(told, PivotedBasis(kernel, parts["sites"]["places"]), size, arrays)
    _require_sound(centres, candidates, reservoir)
    mass, squares = _amounts(told, "mass", "squares")
    moments = _moments(told["moments"], arrays, size, dimension) if told.get("moments") is not None else None
    return StreamSketch(size, mass, squares, arrays["origin"], waves, candidates, centres, reservoir, moments)


def _moments(told: dict[str, Any], arrays: Arrays, size: int, dimension: int) -> GaussianMoments:
    degree, (lost,) = _validate.whole(told["degree"], "degree", 0, DEGREES), _amounts(told, "lost")
    values, origin = arrays["moments_values"], arrays["moments_origin"]
    if not fits(degree, dimension, size) or values.shape != (comb(degree + dimension, dimension),) or origin.shape != (dimension,):
        raise ValueError(f"its moments of degree {degree} have shapes {values.shape} and {origin.shape}, which do not fit it")
    return GaussianMoments(degree, origin, values, lost)


def _candidates(told: dict[str, Any], basis: PivotedBasis, size: int, arrays: Arrays) -> CandidateAtoms:
    most = _validate.whole(told["sites_most"], "sites_most", size, max_candidates(size))
    initial = _validate.whole(told["sites_first"], "sites_first", 0, len(basis.places))
    chunks, missed, variance = told["watched"]
    drift = DriftDetector(
        _validate.whole(chunks, "watched", 0), _validate.finite(missed, "watched"), _validate.at_least(variance, "watched", 0)
    )
    loss, usual = _amounts(told, "loss", "usual")
    return CandidateAtoms(basis, size, most, arrays["sites_kappa"], arrays["sites_missed"], initial, loss, usual, drift)


def _amounts(told: dict[str, Any], *names: str) -> list[float]:
    return [_validate.at_least(told[name], name, 0) for name in names]


def _require_sound(centres: OnlineKCenter, candidates: CandidateAtoms, reservoir: Reservoir) -> None:
    """Refuse parts that no stream could have made, and with which one would not go on."""
    clusters, keys = centres.clusters, reservoir.keys
    few_enough = len(clusters) <= centres.k and len(reservoir.points) <= reservoir.most
    if not few_enough or not 0 < len(candidates.places) <= candidates.most:
        raise ValueError("it has more centres, sites or rows of a sample than it may, or no sites")
    if min(float(part.min(initial=0.0)) for part in (clusters.masses, clusters.chords, clusters.reach, candidates.missed)) < 0:
        raise ValueError("some weight or distance is negative")
    if not (reservoir.weights > 0).all() or (np.diff(keys) < 0).any() or (len(keys) and keys[-1] >= reservoir.limit):
        raise ValueError("its sample is none")
    if (len(clusters) == 0) != (len(keys) == 0):
        raise ValueError("its centres and its sample do not fit each other")


def _part(arrays: Arrays, part: str, dimension: int) -> Arrays:
    """The rows of a part and its numbers for each, by the names of its fields."""
    first, *others = PARTS[part]
    for name in others:
        _together(arrays, f"{part}_{first}", f"{part}_{name}", dimension)
    return {name: arrays[f"{part}_{name}"] for name in PARTS[part]}


def _together(arrays: Arrays, points: str, others: str, dimension: int) -> tuple[Array, Array]:
    """Rows and one number for each."""
    rows, values = arrays[points], arrays[others]
    if rows.ndim != 2 or rows.shape[1] != dimension or values.shape != (len(rows),):
        raise ValueError(f"{points} and {others} do not fit each other: shapes {rows.shape} and {values.shape}")
    return rows, values
