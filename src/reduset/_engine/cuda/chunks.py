"""Rows of a table on a GPU, a chunk at a time: views of what lies there, or rows of the processor on their way through.

The latter are copied to pinned memory by all threads and sent from there while the chunk before them is worked on, so that a table
may be larger than the card's memory, and the transfer costs no more than the slower of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reduset._engine.cuda.kernels import TYPES, kernel
from reduset._engine.cuda.points import DevicePoints
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

if TYPE_CHECKING:
    from reduset._engine.profile import Frame

THREADS, EACH = 256, 4
ROWS_A_TASK = 1 << 15
REALS: dict[Any, str] = {np.float32: "float", np.float64: "double"}


def chunks(points: Any, rows: int) -> Iterator[tuple[int, int, Any]]:
    """(start, stop, rows on the current device as a CuPy array) for all rows, ``rows`` at a time."""
    parts = blocks(len(points), rows)
    if isinstance(points, DevicePoints):
        yield from ((a, b, points.values[a:b]) for a, b in parts)
    elif len(parts) == 1:
        import cupy

        yield 0, len(points), cupy.asarray(sendable(points))
    else:
        yield from _streamed(points, parts)


def _streamed(points: Floats, parts: list[tuple[int, int]]) -> Iterator[tuple[int, int, Any]]:
    import cupy

    some = sendable(points[:1])
    shape, dtype = (parts[0][1], points.shape[1]), some.dtype
    here, sending = cupy.cuda.get_current_stream(), cupy.cuda.Stream(non_blocking=True)
    pinned = [_pinned(shape, dtype) for _ in range(2)]
    there = [cupy.empty(shape, dtype) for _ in range(2)]
    sent, used = ([cupy.cuda.Event(disable_timing=True) for _ in range(2)] for _ in range(2))
    here.synchronize()  # the memory of these may still be in use by work that was issued before

    def send(k: int) -> None:
        a, b = parts[k]
        if k > 1:
            sent[k % 2].synchronize()  # what was in the pinned memory is there,
            sending.wait_event(used[k % 2])  # and has been worked on
        tasks = [partial(_copy, points[a + c : a + e], pinned[k % 2][c:e]) for c, e in blocks(b - a, ROWS_A_TASK)]
        run_all(tasks)
        there[k % 2][: b - a].set(pinned[k % 2][: b - a], stream=sending)
        sent[k % 2].record(sending)

    send(0)
    try:
        for k, (a, b) in enumerate(parts):
            here.wait_event(sent[k % 2])
            yield a, b, there[k % 2][: b - a]
            used[k % 2].record(here)
            if k + 1 < len(parts):
                send(k + 1)
    finally:
        sending.synchronize()
        here.synchronize()


def _copy(some: Floats, out: Floats) -> None:
    np.copyto(out, some)


def _pinned(shape: tuple[int, int], dtype: Any) -> Any:
    """An array of the processor that a card can read by itself."""
    import cupy

    count = shape[0] * shape[1]
    memory = cupy.cuda.alloc_pinned_memory(count * dtype.itemsize)
    return np.frombuffer(memory, dtype, count).reshape(shape)


def sendable(points: Floats) -> Any:
    """Rows of a type that kernels are compiled for."""
    return np.ascontiguousarray(points if points.dtype.name in TYPES else points.astype(np.float64))


def placed(values: Any, frame: Frame, real: Any) -> Any:
    """(n, d) rows on a GPU in the coordinates of a frame, in single or double precision."""
    with values.device:
        return _placed(values, frame, real)


def _placed(values: Any, frame: Frame, real: Any) -> Any:
    import cupy

    if np.ndim(frame.matrix) == 2:  # it mixes columns
        z = (values.astype(cupy.float64) - cupy.asarray(frame.centre)) @ cupy.asarray(frame.matrix)
        return z.astype(real, copy=False)
    n, d = values.shape
    out = cupy.empty((n, d), real)
    scale = cupy.asarray(np.broadcast_to(np.float64(frame.matrix), d).copy())
    values = cupy.ascontiguousarray(values)
    given = values, np.int64(n), cupy.asarray(frame.centre, cupy.float64), scale, out
    program = kernel("place", TYPE=TYPES[values.dtype.name], REAL=REALS[real], D=d, EACH=EACH)
    program(((n * d + THREADS * EACH - 1) // (THREADS * EACH),), (THREADS,), given)
    return out


def uploaded_weights(weights: Any, a: int, b: int, unit: float, real: Any) -> Any:
    """Weights of some points on a GPU, in units of ``unit``; of weights that are one number no more than that is sent."""
    import cupy

    if weights.strides == (0,):
        return cupy.full(b - a, weights[0] / unit, real)
    return cupy.asarray((weights[a:b] / unit).astype(real))
