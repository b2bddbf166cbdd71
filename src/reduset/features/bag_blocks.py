"""Rows of bags in blocks: each bag becomes a vector, and the vector random Fourier features, by all threads and in bounded memory.

Blocks depend on the bags alone, so the number of threads changes the time, never the result. Beside the result, a block a thread is
held: 2²¹ numbers, or one vector where that is longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from reduset._engine import get_threads, run_all, single_threaded_blas
from reduset._types import Array, Report
from reduset.features.fourier import fourier_features

MOST_BAGS, MOST_POINTS, MOST_NUMBERS = 64, 1 << 15, 1 << 21  # of a block
TASKS_A_THREAD = 8  # between two reports of progress


def embed(
    sizes: Sequence[int],
    length: int,
    fill: Callable[[int, int, Array], None],
    frequencies: Array | None,
    report: Report | None = None,
    threads: int | None = None,
) -> Array:
    """(N, length) vectors, or their (N, D) random Fourier features.

    Parameters
    ----------
    sizes : points of each bag, by which work is dealt
    fill : called with first, last and zeros of shape (last − first, length), which it is to fill for these bags
    frequencies : (length, D/2), or None to stop at the vectors
    threads : the most
    """
    out = np.zeros((len(sizes), length if frequencies is None else 2 * frequencies.shape[1]))

    def task(first: int, last: int) -> None:
        vectors = out[first:last] if frequencies is None else np.zeros((last - first, length))
        fill(first, last, vectors)
        if frequencies is not None:
            out[first:last] = fourier_features(vectors, frequencies)

    cuts = bag_blocks(sizes, max(1, min(MOST_BAGS, MOST_NUMBERS // length)))
    with single_threaded_blas():
        run_in_rounds([partial(task, first, last) for first, last in cuts], [last for _, last in cuts], report, threads)
    return out


def bag_blocks(sizes: Sequence[int], most_bags: int) -> list[tuple[int, int]]:
    """Consecutive (first, last) bags, at most so many of them and 2¹⁵ points, or a single bag."""
    cuts, first, held = [], 0, 0
    for k, size in enumerate(sizes):
        if k > first and (k - first == most_bags or held + size > MOST_POINTS):
            cuts.append((first, k))
            first, held = k, 0
        held += size
    return [*cuts, (first, len(sizes))]


def run_in_rounds(
    tasks: Sequence[Callable[[], None]], done: Sequence[int], report: Report | None = None, threads: int | None = None
) -> None:
    """Run all tasks, and say after every few how many of ``done[-1]`` things are done."""
    step = TASKS_A_THREAD * (get_threads() if threads is None else threads)
    for start in range(0, len(tasks), step):
        run_all(tasks[start : start + step], most=threads)
        if report is not None:
            report(done[min(start + step, len(tasks)) - 1], done[-1])
