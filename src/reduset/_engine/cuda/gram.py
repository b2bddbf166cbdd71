"""The matrix of a kernel on a GPU: `gram` of the engine there, in double precision, brought back block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cuda.chunks import chunks, placed
from reduset._engine.cuda.guard import in_room
from reduset._engine.cuda.kernels import kernel
from reduset._engine.cuda.place import on_card
from reduset._engine.profile import Frame, Profile

THREADS = 256
ENTRIES = 1 << 26  # of the matrix at a time


def gram(points: Any, others: Any, frame: Frame, profile: Profile) -> NDArray[np.float64]:
    """The matrix φ(xᵢ, yⱼ), (n, m), here."""
    import cupy

    out = np.empty((len(points), len(others)))
    with on_card(points, others) as (asked, _):
        Y, table = placed(asked.values, frame, np.float64), cupy.asarray(profile.table)
        program = kernel("gram", REAL="double", D=points.shape[1], METRIC=profile.metric, FAMILY=profile.family)
        numbers = np.float64(profile.exponent), table, np.int32(len(table)), np.float64(profile.step)

        def work(length: int) -> None:
            for a, b, values in chunks(points, length):
                part = cupy.empty((b - a, len(Y)))
                given = placed(values, frame, np.float64), Y, np.int64(b - a), np.int32(len(Y)), *numbers, part
                program(((part.size + THREADS - 1) // THREADS,), (THREADS,), given)
                out[a:b] = part.get()

        in_room(work, max(1, ENTRIES // len(Y)), 1)
    return out
