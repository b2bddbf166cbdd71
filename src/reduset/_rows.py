"""Rows that may lie on a GPU: checked where they are, beside `_validate.points`, which takes those of the processor alone."""

from __future__ import annotations

from typing import Any

from reduset import _validate
from reduset._engine import DevicePoints, as_cupy, on_device
from reduset._types import Array, Floats


def points(value: Any, name: str = "X", dimension: int | None = None) -> Floats:
    """An (n, d) array of finite numbers, n, d ≥ 1; what lies on a GPU as `DevicePoints`, whose rows are taken like an array's."""
    if not on_device(value):
        return _validate.points(value, name, dimension)
    if not isinstance(value, DevicePoints):
        return DevicePoints.checked(value, name, dimension)  # type: ignore[return-value]
    if dimension is not None and value.shape[1] != dimension:
        raise ValueError(f"{name} must have {dimension} columns like the atoms, got shape {value.shape}")
    return value  # type: ignore[return-value]


def weights(value: Any, rows: Any, name: str = "sample_weight", *, signed: bool = False) -> Array:
    """(n,) weights of rows, here; refused where they do not lie where the rows do."""
    if on_device(value) and on_device(rows):
        value = as_cupy(value, name).get()
    elif on_device(rows):
        raise ValueError(
            f"{name} must lie on the GPU that the rows lie on, got an array of the processor; send it there (cupy.asarray({name}))"
        )
    elif on_device(value):
        raise ValueError(
            f"{name} must be an array of the processor like the rows, got one on a GPU; bring it over ({name}.get(), or "
            f"{name}.cpu()), or send the rows there"
        )
    return _validate.weights(value, len(rows), name, signed=signed)
