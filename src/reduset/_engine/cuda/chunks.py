"""Transfers to a GPU and coordinates there: chunks of rows, weights, queries and small arrays.

Rows on the GPU are processed as views. Rows in main memory are streamed: all threads copy a chunk to pinned memory. It is sent from
there while the GPU processes the previous chunk. A table may therefore exceed the GPU memory. Time is the maximum of transfer and
computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from reduset._engine.cuda.arrays import on_device
from reduset._engine.cuda.guard import cuda_errors
from reduset._engine.cuda.kernels import TYPES, kernel
from reduset._engine.cuda.points import DevicePoints
from reduset._engine.threads import blocks, run_all
from reduset._types import Floats

if TYPE_CHECKING:
    from reduset._engine.profile import Frame

THREADS, ENTRIES_PER_THREAD = 256, 4
TASK_BYTES = 1 << 22  # copied by a thread at once
REALS: dict[Any, str] = {np.float32: "float", np.float64: "double"}


def chunks(points: Any, rows: int) -> Iterator[tuple[int, int, Any]]:
    """Yield (start, stop, rows on the current device as a CuPy array) for all rows, ``rows`` at a time."""
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

    first_row = sendable(points[:1])
    shape, dtype = (parts[0][1], points.shape[1]), first_row.dtype
    current, sending = cupy.cuda.get_current_stream(), cupy.cuda.Stream(non_blocking=True)
    rows_per_task = max(1, TASK_BYTES // (shape[1] * dtype.itemsize))
    pinned = [pinned_array(shape, dtype) for _ in range(2)]
    buffers = [cupy.empty(shape, dtype) for _ in range(2)]
    sent, used = ([cupy.cuda.Event(disable_timing=True) for _ in range(2)] for _ in range(2))
    current.synchronize()  # pending work may still use the memory of these buffers

    def send(k: int) -> None:
        a, b = parts[k]
        if k > 1:
            sent[k % 2].synchronize()  # the previous transfer from this pinned buffer is complete,
            sending.wait_event(used[k % 2])  # and its device buffer has been processed
        run_all([partial(copy_rows, points, a + c, a + e, pinned[k % 2][c:e]) for c, e in blocks(b - a, rows_per_task)])
        buffers[k % 2][: b - a].set(pinned[k % 2][: b - a], stream=sending)
        sent[k % 2].record(sending)

    send(0)
    try:
        for k, (a, b) in enumerate(parts):
            if k + 1 < len(parts):
                send(k + 1)  # before this block, so that it is sent while a caller waits for results
            current.wait_event(sent[k % 2])
            yield a, b, buffers[k % 2][: b - a]
            used[k % 2].record(current)
    finally:
        sending.synchronize()
        current.synchronize()


def copy_rows(points: Any, a: int, b: int, out: Floats) -> None:
    """Copy rows a to b; a task reads its rows itself, since they may be in a file."""
    np.copyto(out, points[a:b])


def pinned_array(shape: tuple[int, int], dtype: Any) -> Any:
    """A NumPy array in pinned memory, which the GPU can read directly."""
    import cupy

    count = shape[0] * shape[1]
    memory = cupy.cuda.alloc_pinned_memory(count * dtype.itemsize)
    return np.frombuffer(memory, dtype, count).reshape(shape)


def sendable(points: Floats) -> Any:
    """Rows of a type for which kernels are compiled, in C order."""
    return np.ascontiguousarray(points if points.dtype.name in TYPES else points.astype(np.float64))


def frame_coordinates(values: Any, frame: Frame, real: Any) -> Any:
    """(n, d) rows on a GPU in the coordinates of a frame, in single or double precision."""
    with values.device:
        return _frame_coordinates(values, frame, real)


def _frame_coordinates(values: Any, frame: Frame, real: Any) -> Any:
    import cupy

    if np.ndim(frame.matrix) == 2:  # the matrix mixes columns
        z = (values.astype(cupy.float64) - cupy.asarray(frame.centre)) @ cupy.asarray(frame.matrix)
        return z.astype(real, copy=False)
    n, d = values.shape
    out = cupy.empty((n, d), real)
    scale = cupy.asarray(np.broadcast_to(np.float64(frame.matrix), d).copy())
    values = cupy.ascontiguousarray(values)
    arguments = values, np.int64(n), cupy.asarray(frame.centre, cupy.float64), scale, out
    program = kernel("place", TYPE=TYPES[values.dtype.name], REAL=REALS[real], D=d, EACH=ENTRIES_PER_THREAD)
    program(((n * d + THREADS * ENTRIES_PER_THREAD - 1) // (THREADS * ENTRIES_PER_THREAD),), (THREADS,), arguments)
    return out


def uploaded_weights(weights: Any, a: int, b: int, unit: float, real: Any) -> Any:
    """Upload weights a to b in units of ``unit``. For constant weights (stride 0) only one number is sent."""
    import cupy

    if weights.strides == (0,):
        return cupy.full(b - a, weights[0] / unit, real)
    return cupy.asarray((weights[a:b] / unit).astype(real))


def to_exponents(distances: Any, metric: int, family: int, exponent: float, table: Any, step: float) -> None:
    """Convert distances (t,) of CuPy to exponents, in place."""
    import cupy

    knots = cupy.asarray(table)
    numbers = np.int64(len(distances)), np.float64(exponent), knots, np.int32(len(knots)), np.float64(step)
    program = kernel("depths", REAL="double", D=1, METRIC=metric, FAMILY=family)
    program(((len(distances) + THREADS - 1) // THREADS,), (THREADS,), (distances, *numbers))


def to_device_of(values: Any, others: Any) -> Any:
    """Move weights or small tables to the device of ``values``. For constant weights only one number is sent."""
    if not on_device(values) or on_device(others):
        return others
    import cupy

    with values.device:
        weights = others.ndim == 1 and others.dtype.kind == "f"
        return uploaded_weights(others, 0, len(others), 1.0, np.float64) if weights else cupy.asarray(others)


@contextmanager
def on_gpu(points: Any, queries: Any) -> Iterator[tuple[DevicePoints, Callable[[Any], Any]]]:
    """Select the GPU of the points or the queries. Yield the queries there, and a function that moves results to the queries'
    device."""
    import cupy

    devices = {int(rows.values.device.id) for rows in (points, queries) if isinstance(rows, DevicePoints)}
    if len(devices) > 1:
        raise ValueError(
            f"queries must lie on the GPU of the points, got GPUs {' and '.join(map(str, sorted(devices)))}; copy the "
            "queries to the GPU of the points"
        )
    with cuda_errors(), cupy.cuda.Device(*devices):
        if isinstance(queries, DevicePoints):
            yield queries, lambda result: result
        else:
            yield DevicePoints(cupy.asarray(sendable(np.asarray(queries)))), lambda result: result.get()
