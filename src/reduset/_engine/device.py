"""The device of a computation: the GPU that holds an array, or for arrays in main memory the device that was set.

Arrays in main memory are sent to a GPU only if `set_device` or `REDUSET_DEVICE` sets it. Rows are streamed (`cuda.chunks`), so that
a table may exceed the GPU memory. Results return to the device of the query.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from reduset._engine.cuda.arrays import on_device
from reduset._messages import did_you_mean

DEVICES = ("cpu", "cuda", "auto")
# Least number of point–query pairs for which the GPU is faster, transfers included.
LEAST_PAIRS = {"cuda": 1 << 20, "auto": 1 << 24}

_VARIABLE = "REDUSET_DEVICE"
_chosen: str | None = None


def set_device(device: str | None) -> None:
    """Set the device for sums and covers of arrays in main memory.

    "cpu" computes here. "cuda" streams rows to the GPU, for all but the smallest sums. "auto" uses the GPU if one is available and
    the work is worth the transfer. None restores the default (``REDUSET_DEVICE``, or "cpu"). Arrays on a GPU are always processed
    there.
    """
    global _chosen
    if device is not None:
        _checked(device, "device")
        if device == "cuda":
            require_gpu()
    _chosen = device


def get_device() -> str:
    """The device that is set."""
    if _chosen is not None:
        return _chosen
    return _checked(os.environ.get(_VARIABLE, "cpu"), _VARIABLE)


def _checked(device: Any, name: str) -> str:
    if device not in DEVICES:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, DEVICES))}; got {device!r}{did_you_mean(device, DEVICES)}")
    return str(device)


def uses_gpu(points: Any, queries: Any, supported: bool = True) -> bool:
    """Whether a sum over points at queries runs on a GPU: an array is there already, or the work is sent there.

    Work that the GPU does not support (``supported`` False) is not sent. For arrays on a GPU, the GPU function raises an error.
    """
    if on_device(points) or on_device(queries):
        return True
    device = get_device()
    if device == "cpu" or not supported or len(points) * len(queries) < LEAST_PAIRS[device]:
        return False
    if device == "auto":
        return has_gpu()
    require_gpu()
    return True


@cache
def has_gpu() -> bool:
    """Whether CuPy can use a GPU."""
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # no library, no driver or no GPU
        return False


def require_gpu() -> None:
    """Raise an error without a usable GPU."""
    if has_gpu():
        return
    try:
        import cupy
    except ImportError as error:
        raise ImportError("device 'cuda' needs cupy, not installed: pip install 'reduset[gpu]'; or use 'cpu'") from error
    from reduset._engine.cuda.guard import DeviceError, describe_error

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(describe_error(error)) from error
    raise DeviceError("there is no GPU that CUDA can use; use 'cpu', or 'auto' where there may be none")
