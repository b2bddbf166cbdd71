"""Arrays on a GPU: detection, and conversion to CuPy without a copy.

Any array that supports DLPack and lies on a CUDA device counts: CuPy, torch, JAX. Nothing is copied.
"""

from __future__ import annotations

from typing import Any

CUDA = 2  # number of the device type in DLPack
ON_DEVICE = "an array on a GPU"


def on_device(value: Any) -> bool:
    """Whether a value lies on a CUDA device."""
    dlpack_device = getattr(value, "__dlpack_device__", None)
    if dlpack_device is None:
        return False
    try:
        return int(dlpack_device()[0]) == CUDA
    except Exception:  # an array without a known device is validated later
        return False


def require_cpu(value: Any, name: str) -> None:
    """Raise `TypeError` for a value on a GPU, for functions that run on the processor only."""
    if on_device(value):
        way_out = f"copy it to the processor ({name}.get(), or {name}.cpu())"
        raise TypeError(f"{name} is {ON_DEVICE}, which is not supported here; {way_out}")


def as_cupy(value: Any, name: str) -> Any:
    """The same memory as a CuPy array."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            f"{name} is {ON_DEVICE}, which needs cupy, not installed: pip install 'reduset[gpu]'; or copy it to the processor"
        ) from error
    if getattr(value, "requires_grad", False):
        raise ValueError(f"{name} must be plain numbers, got a tensor that requires grad; pass {name}.detach()")
    if isinstance(value, cupy.ndarray):
        return value
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # CuPy lacks this type, and single precision holds it exactly
        value = value.float()
    return cupy.from_dlpack(value)


def as_given(value: Any, like: Any) -> Any:
    """Convert an array to the library of another one, on the same device; to CuPy for an unknown library."""
    if not on_device(like):
        return value
    import cupy

    if not isinstance(value, cupy.ndarray):
        with cupy.cuda.Device(like.__dlpack_device__()[1]):
            value = cupy.asarray(value)
    if type(like).__module__.split(".")[0] != "torch":
        return value
    import torch

    return torch.from_dlpack(value)


def device_table(value: Any, name: str = "X", dimension: int | None = None) -> Any:
    """Validate an (n, d) array of a floating type on a GPU, n, d ≥ 1, and convert it to CuPy. Values are not checked."""
    array = as_cupy(value, name)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must have two dimensions (rows, columns) and at least one of each, got shape {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise ValueError(f"{name} must have {dimension} columns like the atoms, got shape {array.shape}")
    if array.dtype.kind != "f":
        raise ValueError(f"{name} must have a floating type on a GPU, got {array.dtype}; convert it there")
    import cupy

    with array.device:
        return cupy.ascontiguousarray(array)
