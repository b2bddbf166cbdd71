"""Which device computes: the one that an array lies on; for arrays of the processor the one that was chosen.

Nothing is sent anywhere unless `set_device` says so. What is sent is streamed (`cuda.chunks`), so that a table may be larger than
the card's memory, and the answers come back to where the question came from.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from reduset._engine.cuda.arrays import on_device
from reduset._messages import did_you_mean

DEVICES = ("cpu", "cuda", "auto")
# pairs of points and queries, from which a launch, and the way there and back, costs less than it saves
LEAST_PAIRS = {"cuda": 1 << 20, "auto": 1 << 24}

_VARIABLE = "REDUSET_DEVICE"
_chosen: str | None = None


def set_device(device: str | None) -> None:
    """Where sums over arrays of the processor are computed from now on.

    "cpu" here; "cuda" on the GPU, to which rows are streamed, all but the smallest sums; "auto" there where the work is worth the
    way and a GPU is at hand. None returns to the default (``REDUSET_DEVICE``, or "cpu"). Arrays that lie on a GPU are worked on
    there whatever is set.
    """
    global _chosen
    if device is not None:
        _known(device, "device")
        if device == "cuda":
            require_card()
    _chosen = device


def get_device() -> str:
    """What was set."""
    if _chosen is not None:
        return _chosen
    return _known(os.environ.get(_VARIABLE, "cpu"), _VARIABLE)


def _known(device: Any, name: str) -> str:
    if device not in DEVICES:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, DEVICES))}; got {device!r}{did_you_mean(device, DEVICES)}")
    return str(device)


def goes_to_card(points: Any, queries: Any, able: bool = True) -> bool:
    """Whether a sum over points at queries is computed on a GPU: one of them lies there, or such work is sent there.

    What no kernel is ``able`` to do is not sent; of what lies there it is refused by whoever cannot do it.
    """
    if on_device(points) or on_device(queries):
        return True
    device = get_device()
    if device == "cpu" or not able or len(points) * len(queries) < LEAST_PAIRS[device]:
        return False
    if device == "auto":
        return has_card()
    require_card()
    return True


@cache
def has_card() -> bool:
    """Whether there is a GPU that CuPy can use."""
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # no library, no driver, no card
        return False


def require_card() -> None:
    """Refuse to go on without a GPU, in one sentence."""
    if has_card():
        return
    try:
        import cupy
    except ImportError as error:
        raise ImportError("device 'cuda' needs cupy, not installed: pip install 'reduset[gpu]'; or use 'cpu'") from error
    from reduset._engine.cuda.guard import DeviceError, in_words

    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(in_words(error)) from error
    raise DeviceError("there is no GPU that CUDA can use; use 'cpu', or 'auto' where there may be none")
