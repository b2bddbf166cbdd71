"""Where a piece of work is done: on the one GPU that its points or its queries lie on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reduset._engine.cuda.chunks import sendable
from reduset._engine.cuda.guard import told
from reduset._engine.cuda.points import DevicePoints


@contextmanager
def on_card(points: Any, queries: Any) -> Iterator[tuple[DevicePoints, Callable[[Any], Any]]]:
    """The queries on a GPU, and a function that takes answers to where the queries are; on the device of either."""
    import cupy

    homes = {int(each.values.device.id) for each in (points, queries) if isinstance(each, DevicePoints)}
    if len(homes) > 1:
        raise ValueError(
            f"queries must lie on the GPU of the points, got GPUs {' and '.join(map(str, sorted(homes)))}; bring one of them over"
        )
    with told(), cupy.cuda.Device(*homes):
        if isinstance(queries, DevicePoints):
            yield queries, lambda answer: answer
        else:
            yield DevicePoints(cupy.asarray(sendable(np.asarray(queries)))), lambda answer: answer.get()
