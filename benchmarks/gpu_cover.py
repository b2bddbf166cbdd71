"""Covers on a GPU: farthest-first of rows that lie there, beside a loop of torch and beside the processor of the same machine.

`python benchmarks/run.py gpu_cover` on a machine with a CUDA device and cupy; torch is taken where it is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from harness import table
from reduset import cover
from reduset._engine import HostRows, LazyCover

TITLE = "Covers on a GPU"

# law, rows, columns, type, centres, seconds that are wished for
CASES = [
    ("normal", 10**6, 16, "float32", 1000, 0.03),
    ("normal", 10**7, 16, "float32", 1000, 0.12),
    ("normal", 10**8, 16, "float32", 1000, 1.0),
    ("normal", 10**7, 768, "float16", 10_000, 40.0),
    ("clustered", 10**7, 768, "float16", 10_000, 15.0),
]
TORCH_UP_TO = 10**7 * 16  # numbers: a loop of torch reads all rows once a centre
HOST = ("normal", 10**7, 16, "float32", 1000)  # on the processor too
CLUSTERS, WITHIN = 1000, 0.3
PART = 10**6


def drawn(law: str, n: int, d: int, dtype: str) -> Any:
    import cupy

    rng = cupy.random.default_rng(0)
    rows = cupy.empty((n, d), dtype)
    places = rng.standard_normal((CLUSTERS, d), dtype=cupy.float32)
    for a in range(0, n, PART):
        some = rng.standard_normal((min(PART, n - a), d), dtype=cupy.float32)
        if law == "clustered":
            some = places[rng.integers(0, CLUSTERS, len(some))] + np.float32(WITHIN) * some
        rows[a : a + PART] = some
    return rows


def ours(place: Any, size: int) -> LazyCover:
    traversal = LazyCover(place)
    traversal.add_rows(np.array([0]))
    traversal.extend(size - 1)
    return traversal


def by_torch(rows: Any, size: int) -> list[int]:
    """The usual loop: the distance of all rows to the last centre, once a centre."""
    import torch

    values = torch.from_dlpack(rows)
    least = torch.full((len(values),), torch.inf, device="cuda")
    chosen = [0]
    for _ in range(size - 1):
        least = torch.minimum(least, torch.square(values - values[chosen[-1]]).sum(dim=1))
        chosen.append(int(least.argmax()))
    return chosen


def best_of(times: int, call: Callable[[], Any]) -> tuple[float, Any]:
    import cupy

    seconds, found = [], None
    for _ in range(times):
        begun = time.perf_counter()
        found = call()
        cupy.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - begun)
    return float(np.median(seconds)), found


def line(law: str, n: int, d: int, dtype: str, size: int, wished: float) -> list[str]:
    from reduset._engine.cuda.device_rows import DeviceRows

    _empty()
    rows = drawn(law, n, d, dtype)
    place = DeviceRows(rows)
    ours(place, 10)
    seconds, traversal = best_of(3, partial(ours, place, size))
    cover(rows[: n // 10], size)  # all that is compiled on the way
    whole, _ = best_of(1, partial(cover, rows, size))
    told = [f"{law}, {n:,} × {d} {dtype}", f"{size:,}", f"{seconds:.3f} s", f"{wished:g} s", "yes" if seconds <= wished else "NO"]
    told.append(f"{whole:.2f} s")
    if n * d <= TORCH_UP_TO:
        by_torch(rows, 10)
        theirs, chosen = best_of(1, partial(by_torch, rows, size))
        told += [f"{theirs:.2f} s", f"{theirs / seconds:.1f}", f"{np.mean(np.array(chosen[1:]) == traversal.indices):.0%}"]
    else:
        told += ["", "", ""]
    if (law, n, d, dtype, size) == HOST:
        begun = time.perf_counter()
        host = ours(HostRows(rows.get()), size)
        slower = time.perf_counter() - begun
        told += [f"{slower:.2f} s", f"{slower / seconds:.0f}", "yes" if host.indices == traversal.indices else "NO"]
    else:
        told += ["", "", ""]
    return told


def _empty() -> None:
    """Give back what the last case had."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


NOTE = """Rows on the device, the first given; medians of 3, after one small run. The *whole call* is `cover(E, size)`: checked,
begun at the row nearest to the mean, with the owner of every row. *torch* is the loop that people write: all rows
once a centre, distances in single precision (so that near-ties may fall otherwise: *same*). *Processor* is the same
traversal on all cores of the machine, and whether it chose the same rows."""


def card() -> str:
    """The card, its driver, and the day."""
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    driver, runtime = cupy.cuda.runtime.driverGetVersion(), cupy.cuda.runtime.runtimeGetVersion()
    return f"{name}, CUDA driver {driver}, runtime {runtime}, cupy {cupy.__version__}, {time.strftime('%Y-%m-%d')}"


def run() -> str:
    head = [
        "rows",
        "centres",
        "seconds",
        "wished",
        "met",
        "whole call",
        "torch",
        "times ours",
        "same",
        "processor",
        "times ours",
        "same rows",
    ]
    note = " ".join(NOTE.splitlines())
    return f"{note} {card()}.\n\n{table(head, [line(*case) for case in CASES])}"
