"""The file of a stream on its way: everything that a tally holds, and the rows that wait, as plain arrays with a JSON header.

The format is that of `reduset.archive`: a digest over all of it, written beside the target, flushed to disk and then moved in its
place. What is read is checked to belong together before it is used.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive, _validate
from reduset._types import Array
from reduset.certificate.frequencies import FrequencyLadders
from reduset.kernels.base import RadialKernel
from reduset.kernels.registry import kernel_from
from reduset.select import as_selector
from reduset.stream.buffer import Flow, Plan
from reduset.stream.candidates import Basis, Sites, Watch, most_sites
from reduset.stream.online_kcenter import Covering
from reduset.stream.reservoir import ROWS, Reservoir
from reduset.stream.sketch import Tally
from reduset.weights.kinds import KINDS

KIND = "reduset.StreamCompressor"
COVERING = ("centres", "masses", "chords", "reach")
SITES = ("places", "kappa", "missed")
SAMPLE = ("points", "weights", "keys")
NAMES = (
    *("waiting", "waiting_weights", "origin", "waves"),
    *(f"covering_{name}" for name in COVERING),
    *(f"sites_{name}" for name in SITES),
    *(f"sample_{name}" for name in SAMPLE),
)
FORMAT = _archive.Kind(1, NAMES)

Arrays = dict[str, NDArray[Any]]


def write(path: _archive.Path_, flow: Flow, settings: dict[str, Any], columns: list[str] | None, about: dict[str, Any]) -> None:
    """Write a stream, and plain values beside it."""
    plan, tally = flow.plan, flow.tally
    arrays: Arrays = {name: np.empty(0) for name in NAMES}
    arrays["waiting"], arrays["waiting_weights"] = flow.rows_waiting()
    header: dict[str, Any] = {
        "kind": KIND,
        "version": FORMAT.version,
        "plan": {
            "kernel": plan.kernel.to_dict(),
            "size": plan.size,
            "block": plan.block,
            "half_life": plan.half_life,
            "select": plan.select,
        },
        "settings": settings,
        "seed": flow.seed,
        "dimension": flow.dimension,
        "seen": flow.seen,
        "blocks": flow.blocks,
        "columns": columns,
        "about": about,
        "tally": None,
    }
    if tally is not None:
        covering, sites, sample = tally.covering, tally.sites, tally.reservoir
        header["tally"] = {
            "kernel": tally.kernel.to_dict(),
            "size": tally.size,
            "mass": tally.mass,
            "squares": tally.squares,
            "sites_most": sites.most,
            "sites_first": sites.first,
            "loss": sites.loss,
            "usual": sites.usual,
            "watched": [sites.watched.chunks, sites.watched.missed, sites.watched.variance],
            "threshold": covering.threshold,
            "floor": covering.floor,
            "lost": covering.lost,
            "sample_limit": None if np.isinf(sample.limit) else sample.limit,
            "sample_most": sample.most,
        }
        arrays |= {"origin": tally.origin, "waves": np.ascontiguousarray(tally.waves).view(np.float64)}
        for prefix, part, names in (("covering", covering, COVERING), ("sites", sites, SITES), ("sample", sample, SAMPLE)):
            arrays |= {f"{prefix}_{name}": getattr(part, name) for name in names}
    _archive.write(path, header, arrays)


def read(path: _archive.Path_) -> tuple[Flow, dict[str, Any], list[str] | None, dict[str, Any]]:
    """The stream, the settings of its ending, its columns and the values beside it."""
    header, arrays = _archive.read(path, {KIND: FORMAT})
    try:
        for name, array in arrays.items():
            if array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"{name} must hold finite numbers of 64 bits")
        flow = _flow(header, arrays)
        settings = {
            "weights": _validate.one_of(header["settings"]["weights"], "weights", KINDS),
            "confidence": _validate.confidence(header["settings"]["confidence"]),
        }
        columns = None if header["columns"] is None else [str(name) for name in header["columns"]]
        if columns is not None and len(columns) != flow.dimension:
            raise ValueError("its columns do not fit its rows")
        return flow, settings, columns, dict(header["about"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"{os.fspath(path)} describes no stream: {error}") from error


def _flow(header: dict[str, Any], arrays: Arrays) -> Flow:
    about, dimension = header["plan"], _validate.whole(header["dimension"], "dimension", 1)
    half_life = about["half_life"]
    plan = Plan(
        kernel=_kernel(about["kernel"]),
        size=_validate.whole(about["size"], "size", 1),
        block=_validate.whole(about["block"], "buffer", 1),
        half_life=None if half_life is None else _validate.positive(half_life, "half_life"),
        select=str(about["select"]),
    )
    as_selector(plan.select)
    tally = None if header["tally"] is None else _tally(header["tally"], arrays, plan, dimension)
    points, weights = _together(arrays, "waiting", "waiting_weights", dimension)
    if len(points) >= plan.rows_of(dimension) or not (weights > 0).all():
        raise ValueError("more rows wait than are tallied at once, or rows without weight")
    waiting = ((points, weights),) if len(points) else ()
    whole = {name: _validate.whole(header[name], name, 0) for name in ("seed", "seen", "blocks")}
    return Flow(plan, whole["seed"], dimension, whole["seen"], whole["blocks"], tally, waiting)


def _tally(told: dict[str, Any], arrays: Arrays, plan: Plan, dimension: int) -> Tally:
    kernel, size = _kernel(told["kernel"]), _validate.whole(told["size"], "size", plan.size, plan.size)
    if isinstance(kernel.bandwidth, str) or (not isinstance(plan.kernel.bandwidth, str) and kernel != plan.kernel):
        raise ValueError(f"its kernel is {kernel} where {plan.kernel} was asked for")
    if arrays["origin"].shape != (dimension,):  # looked at before anything of this dimension is made
        raise ValueError(f"its origin has shape {arrays['origin'].shape}, which does not fit {dimension} columns")
    waves = np.ascontiguousarray(arrays["waves"], np.float64).view(np.complex128)
    rungs = FrequencyLadders.of_kernel(kernel, dimension).shares.shape
    if waves.shape != rungs:
        raise ValueError(f"its waves have shape {waves.shape} where {rungs} belongs")
    for prefix, names in (("covering", COVERING), ("sites", SITES), ("sample", SAMPLE)):
        first, *others = (f"{prefix}_{name}" for name in names)
        for other in others:
            _together(arrays, first, other, dimension)
    covering = Covering(
        kernel=kernel,
        most=size,
        threshold=_validate.at_least(told["threshold"], "threshold", 0),
        floor=_validate.at_least(told["floor"], "floor", 0),
        lost=_validate.at_least(told["lost"], "lost", 0),
        **{name: arrays[f"covering_{name}"] for name in COVERING},
    )
    limit = np.inf if told["sample_limit"] is None else _validate.finite(told["sample_limit"], "sample_limit")
    most = _validate.whole(told["sample_most"], "sample_most", 1, ROWS)
    sample = Reservoir(**{name: arrays[f"sample_{name}"] for name in SAMPLE}, limit=limit, most=most)
    chunks, missed, variance = told["watched"]
    sites = Sites(
        Basis(kernel, arrays["sites_places"]),
        size,
        _validate.whole(told["sites_most"], "sites_most", size, most_sites(size)),
        arrays["sites_kappa"],
        arrays["sites_missed"],
        _validate.whole(told["sites_first"], "sites_first", 0, len(arrays["sites_places"])),
        _validate.at_least(told["loss"], "loss", 0),
        _validate.at_least(told["usual"], "usual", 0),
        Watch(
            _validate.whole(chunks, "watched", 0), _validate.finite(missed, "watched"), _validate.at_least(variance, "watched", 0)
        ),
    )
    _require_sound(covering, sites, sample)
    return Tally(
        size=size,
        mass=_validate.at_least(told["mass"], "mass", 0),
        squares=_validate.at_least(told["squares"], "squares", 0),
        origin=arrays["origin"],
        waves=waves,
        sites=sites,
        covering=covering,
        reservoir=sample,
    )


def _require_sound(covering: Covering, sites: Sites, sample: Reservoir) -> None:
    """Refuse parts that no stream could have made, and with which one would not go on."""
    if len(covering.centres) > covering.most or not 0 < len(sites.places) <= sites.most or len(sample.points) > sample.most:
        raise ValueError("it has more centres, sites or rows of a sample than it may, or no sites")
    if min(float(part.min(initial=0.0)) for part in (covering.masses, covering.chords, covering.reach, sites.missed)) < 0:
        raise ValueError("some weight or distance is negative")
    keys = sample.keys
    if not (sample.weights > 0).all() or (np.diff(keys) < 0).any() or (len(keys) and keys[-1] >= sample.limit):
        raise ValueError("its sample is none")
    if (len(covering.centres) == 0) != (len(keys) == 0):
        raise ValueError("its centres and its sample do not fit each other")


def _together(arrays: Arrays, points: str, others: str, dimension: int) -> tuple[Array, Array]:
    """Rows and one number for each."""
    rows, values = arrays[points], arrays[others]
    if rows.ndim != 2 or rows.shape[1] != dimension or values.shape != (len(rows),):
        raise ValueError(f"{points} and {others} do not fit each other: shapes {rows.shape} and {values.shape}")
    return rows, values


def _kernel(fields: Any) -> RadialKernel:
    kernel = kernel_from(fields)
    if not isinstance(kernel, RadialKernel):
        raise ValueError(f"a stream has no kernel of the kind {kernel!r}")
    return kernel
