"""`cluster_sums` on a GPU: sums over the rows nearest to each centre. The same bits from run to run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cuda.chunks import chunks, uploaded_weights
from reduset._engine.cuda.guard import in_room
from reduset._engine.cuda.kernels import TYPES, kernel
from reduset._engine.cuda.nearest import finder
from reduset._engine.cuda.place import on_card
from reduset._engine.distances import SQUARED
from reduset._engine.profile import Frame

THREADS = 128
ENTRIES = 1 << 26


def cluster_sums(points: Any, weights: Any, centres: NDArray[np.float64], frame: Frame) -> tuple[Any, Any]:
    """(m,) Σ w and (m, d) Σ w (x − c) over the rows nearest to each centre c."""
    import cupy

    m, d = centres.shape
    with on_card(points, centres) as (there, answer):
        find = finder(points, centres, frame, SQUARED)

        def work(length: int) -> Any:
            sums = cupy.zeros((m, 1 + d))
            for a, b, values in chunks(points, length):
                owner, _ = find(values)
                order = cupy.argsort(owner)  # a stable sort, which radix sorts are
                starts = cupy.searchsorted(owner[order], cupy.arange(m + 1, dtype=owner.dtype)).astype(cupy.int64)
                values, w = cupy.ascontiguousarray(values), uploaded_weights(weights, a, b, 1.0, np.float64)
                given = values, w, order, starts, there.values, np.int32(d), sums
                kernel("cells", TYPE=TYPES[values.dtype.name], THREADS=THREADS)((m * (1 + d),), (THREADS,), given)
            return sums

        sums = answer(in_room(work, max(THREADS, ENTRIES // d)))
    return sums[:, 0], np.ascontiguousarray(sums[:, 1:])
