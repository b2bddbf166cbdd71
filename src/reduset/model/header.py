"""The header of a model's file, checked by type and range before anything is made of it.

The digest finds what was cut or edited by chance. It is no signature: whoever edits a file on purpose makes it anew, so every
field is looked at as if a stranger had written it. Each refusal names the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset.certificate import Certificate
from reduset.certificate.by_scale import MedianError
from reduset.certificate.certificate import METHODS, bandwidth_of
from reduset.compression.certifying import Resolution
from reduset.kernels import Kernel

MOST_ROWS = 2**63 - 1
DIMENSIONS = {  # of the arrays that describe the mean
    "path": 2,
    "step_sizes": 1,
    "step_weights": 2,
    "grids": 2,
    "widths": 1,
    "marginals": 2,
    "pair_grids": 2,
    "pair_widths": 1,
    "pairs": 2,
    "joint": 3,
    "bars": 3,
    "scales": 1,
    "profile_sizes": 1,
    "profiles": 3,
}
FINITE = ("step_weights", "grids", "widths", "marginals", "pair_grids", "pair_widths", "joint")
WHOLE = ("step_sizes", "pairs", "profile_sizes")
TOLD: dict[str, Any] = {  # what this library writes into ``about``; whoever adds other names may do so
    "selection": str,
    "weighting": str,
    "remark": str | None,
    "reached": bool,
    "timings": dict,
    "command": str,
    "versions": dict,
    "sources": list | tuple,
    "notes": list | tuple,
    "transform": str | dict | None,
    "encode": dict | None,
    "compensate": bool,
    "portrait_rows": int,
}
LISTED = ("sources", "notes")
NAMED: dict[str, Any] = {"timings": (int, float), "versions": str, "transform": (str, type(None)), "encode": (str, dict)}


def certificate_from(told: Any, kernel: Kernel) -> Certificate:
    """The certificate that a header describes: known fields only, none negative except the incoherence.

    The bandwidth is that of the model's kernel; older files have it there alone.
    """
    if not isinstance(told, dict):
        raise ValueError(f"certificate must be an object, got {_short(told)}")
    known = {field.name: field for field in fields(Certificate)}
    for name in told:
        if name not in known:
            raise ValueError(f"certificate.{_short(name)} is not known")
    found: dict[str, Any] = {}
    for name, field in known.items():
        if name in told:
            found[name] = _measured(told[name], f"certificate.{name}", str(field.type), signed=name == "incoherence")
        elif field.default is MISSING:
            raise ValueError(f"certificate.{name} is missing")
    _validate.one_of(found["method"], "certificate.method", METHODS)
    for name in ("confidence", "negative_mass"):
        if not 0 <= found.get(name, 0.0) <= 1:
            raise ValueError(f"certificate.{name} must lie between 0 and 1, got {found[name]!r}")
    width = bandwidth_of(kernel)
    if found.get("bandwidth") not in (None, width):
        raise ValueError(f"certificate.bandwidth must be that of the kernel, {width}, got {found['bandwidth']!r}")
    return Certificate(**found | {"bandwidth": width})


def _measured(value: Any, name: str, kind: str, signed: bool) -> Any:
    """A field of the certificate, by the type that its class declares."""
    if kind == "str":
        return value
    if kind.startswith("tuple"):
        if not isinstance(value, list) or len(value) != 2:
            raise ValueError(f"{name} must be two numbers, got {_short(value)}")
        return tuple(_amount(each, name) for each in value)
    return None if value is None and "None" in kind else _amount(value, name, signed)


def _amount(value: Any, name: str, signed: bool = False) -> float:
    """A number, not negative unless ``signed``; it may be NaN or infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, got {_short(value)}")
    if value < 0 and not signed:
        raise ValueError(f"{name} must not be negative, got {value!r}")
    return float(value)


def resolution_from(told: Any) -> Resolution | None:
    """How fine the result sees, where a search found that; files from before there was one say nothing of it."""
    if told is None:
        return None
    known = [field.name for field in fields(Resolution)]
    if not isinstance(told, dict) or sorted(told) != sorted(known):
        raise ValueError(f"resolved must be an object of {', '.join(known)}, got {_short(told)}")
    bandwidth, tol, median = (_validate.positive(told[name], f"resolved.{name}") for name in ("bandwidth", "tol", "median"))
    alone, by_noise = (_validate.flag(told[name], f"resolved.{name}") for name in ("alone", "by_noise"))
    drawn = told["random_rows"]
    rows = None if drawn is None else _validate.positive(drawn, "resolved.random_rows")
    return Resolution(bandwidth, tol, median, rows, alone, by_noise)


def median_error_from(told: Any) -> MedianError | None:
    """The error at the median distance; None in older files."""
    if told is None:
        return None
    known = [field.name for field in fields(MedianError)]
    if not isinstance(told, dict) or sorted(told) != sorted(known):
        raise ValueError(f"near_median must be an object of {', '.join(known)}, got {_short(told)}")
    error = _validate.at_least(told["relative_error"], "near_median.relative_error", 0.0)
    return MedianError(error, *(_validate.positive(told[name], f"near_median.{name}") for name in ("bandwidth", "distance")))


def columns_from(told: Any, dimension: int) -> tuple[str, ...]:
    """The names of the columns."""
    if not isinstance(told, list) or not all(isinstance(name, str) for name in told) or len(told) != dimension:
        raise ValueError(f"columns must be {dimension} names, got {_short(told)}")
    return tuple(told)


def count_from(told: Any) -> int:
    """How many points the full mean had."""
    return _validate.whole(told, "n_samples", 1, MOST_ROWS)


def total_from(told: Any) -> float | None:
    """Σ w of the full mean, whose square must be finite."""
    if told is None:
        return None
    total = _validate.at_least(told, "total", 0.0)
    if total > _validate.HEAVIEST:
        raise ValueError(f"total must be at most {_validate.HEAVIEST:g}, got {total:g}")
    return total


def checked_about(told: Any) -> dict[str, Any]:
    """What else was told, those parts of it that this library reads as it writes them."""
    if not isinstance(told, Mapping):
        raise ValueError(f"about must be an object, got {_short(told)}")
    for name, value in told.items():
        kind = TOLD.get(name, object)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"about.{name} must be {_said(kind)}, got {_short(value)}")
        if name in LISTED and not all(isinstance(each, str) for each in value):
            raise ValueError(f"about.{name} must be a list of texts, got {_short(value)}")
        if name in NAMED and isinstance(value, dict):
            for key, each in value.items():
                if not isinstance(key, str) or not isinstance(each, NAMED[name]):
                    raise ValueError(f"about.{name} must have other entries than {_short(each)} for {_short(key)}")
    if "portrait_rows" in told:
        _validate.whole(told["portrait_rows"], "about.portrait_rows", 1, MOST_ROWS)
    return dict(told)


def check_arrays(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays of other dimensions than a model's, and numbers that are to be whole and are not."""
    for name, array in arrays.items():
        dimensions = DIMENSIONS.get(name, array.ndim)
        if array.ndim != dimensions and (array.size or not array.ndim):
            raise ValueError(f"{name} must have {dimensions} dimensions, got shape {array.shape}")
        if name in WHOLE:
            _check_whole(array, name)
        if name in FINITE and not np.isfinite(array).all():
            raise ValueError(f"{name} must hold finite numbers, got {array[~np.isfinite(array)][0]}")
    path = arrays["path"]
    if len(path) != 2:
        raise ValueError(f"path must be sizes and errors, got shape {path.shape}")
    _check_whole(path[0], "path")
    if (path[1] < 0).any():
        raise ValueError(f"path must hold no negative errors, got {path[1].min()}")


def _check_whole(array: NDArray[Any], name: str) -> None:
    if array.size and not (
        np.isfinite(array).all() and (array == np.rint(array)).all() and 0 <= array.min() <= array.max() < 2**53
    ):
        raise ValueError(f"{name} must hold whole numbers from 0 on")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _said(kind: Any) -> str:
    words = {
        str: "text",
        bool: "true or false",
        int: "a whole number",
        dict: "an object",
        list: "a list",
        tuple: "",
        type(None): "null",
    }
    parts = [words.get(each, "") for each in getattr(kind, "__args__", (kind,))]
    return " or ".join(filter(None, parts))
