"""Arrays on a GPU: whose they are, and the same memory as CuPy's.

Anything that speaks DLPack and says that it lies on a CUDA device counts: CuPy, torch, JAX. Nothing is copied.
"""

from __future__ import annotations

from typing import Any

CUDA = 2  # as DLPack numbers devices
ON_DEVICE = "an array on a GPU"


def on_device(value: Any) -> bool:
    """Whether a value lies on a CUDA device."""
    told = getattr(value, "__dlpack_device__", None)
    if told is None:
        return False
    try:
        return int(told()[0]) == CUDA
    except Exception:  # one that cannot say where it is, is for others to refuse
        return False


def require_cpu(value: Any, name: str) -> None:
    """Refuse a value on a GPU where only the processor computes."""
    if on_device(value):
        way_out = f"bring it to the processor ({name}.get(), or {name}.cpu())"
        raise TypeError(f"{name} is {ON_DEVICE}, where this does not run; {way_out}")


def as_cupy(value: Any, name: str) -> Any:
    """The same memory as an array of CuPy."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            f"{name} is {ON_DEVICE}, which needs cupy, not installed: pip install 'reduset[gpu]'; or bring it to the processor"
        ) from error
    if getattr(value, "requires_grad", False):
        raise ValueError(f"{name} must be plain numbers, got a tensor that requires grad; pass {name}.detach()")
    if isinstance(value, cupy.ndarray):
        return value
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # which CuPy has not, and single precision holds exactly
        value = value.float()
    return cupy.from_dlpack(value)


def as_given(value: Any, like: Any) -> Any:
    """An array in the library that another one is of, on the same device; CuPy's where that is not known."""
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
    """An (n, d) array of a floating type on a GPU, n, d ≥ 1, as CuPy's; its numbers are not looked at."""
    array = as_cupy(value, name)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must have two dimensions (rows, columns) and at least one of each, got shape {array.shape}")
    if dimension is not None and array.shape[1] != dimension:
        raise ValueError(f"{name} must have {dimension} columns like the atoms, got shape {array.shape}")
    if array.dtype.kind != "f":
        raise ValueError(f"{name} must be of a floating type on a GPU, got {array.dtype}; convert it there")
    import cupy

    with array.device:
        return cupy.ascontiguousarray(array)
