"""Fourier sums over points on a GPU: `fourier_sums` of the engine, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cuda.chunks import chunks, frame_coordinates, on_gpu, uploaded_weights
from reduset._engine.cuda.guard import with_fitting_blocks
from reduset._engine.cuda.kernels import kernel
from reduset._engine.profile import Frame
from reduset._engine.threads import blocks

THREADS = 64
SPAN = 1 << 11
ENTRIES = 1 << 26  # angles at a time


def fourier_sums(
    points: Any,
    weights: Any,
    frequencies: NDArray[np.float64],
    frame: Frame,
    rungs: int = 1,
    late: NDArray[np.float64] | None = None,
    release: int = 0,
) -> NDArray[np.complex128]:
    """Σᵢ wᵢ exp(i (2^j ω + η_j)·zᵢ) for each frequency ω and rung j: (s, rungs)."""
    import cupy

    with on_gpu(points, frequencies / (2 * np.pi)) as (uploaded, bring_back):
        turns, ladders = uploaded.values, len(uploaded)
        slow = None if late is None else cupy.asarray(late / (2 * np.pi))
        climb = kernel("fourier", "climb", RUNGS=rungs, LATE=int(late is not None))
        add = kernel("add", "add_sums")

        def work(length: int) -> Any:
            total = cupy.zeros((rungs, 2, ladders))
            for a, b, values in chunks(points, length):
                Z, w = frame_coordinates(values, frame, np.float64), uploaded_weights(weights, a, b, 1.0, np.float64)
                for c, e in blocks(b - a, max(SPAN, ENTRIES // ladders // SPAN * SPAN)):
                    spans = (e - c + SPAN - 1) // SPAN
                    part = cupy.empty((spans, rungs, 2, ladders))
                    angles = Z[c:e] @ turns.T
                    others = angles if slow is None else Z[c:e] @ slow.T
                    sizes = np.int64(e - c), np.int32(SPAN), np.int32(ladders), np.int32(release)
                    climb(((ladders + THREADS - 1) // THREADS, spans), (THREADS,), (angles, others, w[c:e], *sizes, part))
                    count = total.size
                    add(((count + THREADS - 1) // THREADS,), (THREADS,), (part, np.int32(spans), np.int64(count), total))
            return total

        total = bring_back(with_fitting_blocks(work, max(SPAN, ENTRIES // len(frame.centre) // SPAN * SPAN), SPAN))
    return np.ascontiguousarray(np.transpose(total, (2, 0, 1))).view(np.complex128)[..., 0]
