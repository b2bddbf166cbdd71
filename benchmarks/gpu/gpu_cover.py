"""How fast is a farthest-first cover on a GPU, for rows that are on the device?

Against a loop in torch that computes all distances for each centre, and against the processor of the same machine. Goals: the times
in `FULL`, and the same rows as on the processor.

Needs a CUDA device and cupy; without torch that comparison is omitted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict
from reduset import cover
from reduset._engine import HostRows, LazyCover

TITLE = "Covers on a GPU"
SOURCES = ("_engine/lazy_cover.py", "_engine/cuda/device_rows.py", "_engine/cuda/nearest.py", "_engine/cuda/sums.py", "covers")

# distribution, rows, columns, type, centres, the goal in seconds
FULL = [
    ("normal", 10**6, 16, "float32", 1000, 0.03),
    ("normal", 10**7, 16, "float32", 1000, 0.12),
    ("normal", 10**8, 16, "float32", 1000, 1.0),
    ("normal", 10**7, 768, "float16", 10_000, 40.0),
    ("clustered", 10**7, 768, "float16", 10_000, 15.0),
]
QUICK = [("normal", 10**5, 16, "float32", 100, 0.03), ("clustered", 10**4, 768, "float16", 100, 15.0)]
TORCH_UP_TO = 10**7 * 16  # numbers: a loop in torch reads all rows for each centre
HOST_ROWS = (10**5, 10**7)  # in 16 columns, on the processor too
CLUSTERS, WITHIN = 1000, 0.3
PART = 10**6


def drawn(distribution: str, n: int, d: int, dtype: str) -> Any:
    import cupy

    rng = cupy.random.default_rng(0)
    rows = cupy.empty((n, d), dtype)
    centres = rng.standard_normal((CLUSTERS, d), dtype=cupy.float32)
    for a in range(0, n, PART):
        some = rng.standard_normal((min(PART, n - a), d), dtype=cupy.float32)
        if distribution == "clustered":
            some = centres[rng.integers(0, CLUSTERS, len(some))] + np.float32(WITHIN) * some
        rows[a : a + PART] = some
    return rows


def ours(place: Any, size: int) -> LazyCover:
    traversal = LazyCover(place)
    traversal.add_rows(np.array([0]))
    traversal.extend(size - 1)
    return traversal


def by_torch(rows: Any, size: int) -> list[int]:
    """The usual loop: the distances of all rows to the last centre, for each centre."""
    import torch

    values = torch.from_dlpack(rows)
    least = torch.full((len(values),), torch.inf, device="cuda")
    chosen = [0]
    for _ in range(size - 1):
        least = torch.minimum(least, torch.square(values - values[chosen[-1]]).sum(dim=1))
        chosen.append(int(least.argmax()))
    return chosen


def median_of(times: int, call: Callable[[], Any]) -> tuple[float, Any]:
    """The median time, and the last result."""
    import cupy

    seconds, found = [], None
    for _ in range(times):
        begun = time.perf_counter()
        found = call()
        cupy.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - begun)
    return float(np.median(seconds)), found


def free_memory() -> None:
    """Release the device memory of the last case."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


def card() -> str:
    """The device and its driver."""
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    driver, runtime = cupy.cuda.runtime.driverGetVersion(), cupy.cuda.runtime.runtimeGetVersion()
    return f"{name}, CUDA driver {driver}, runtime {runtime}, cupy {cupy.__version__}"


def of_case(distribution: str, n: int, d: int, dtype: str, size: int) -> dict[str, Any]:
    """Seconds of each, and whether they choose the same rows."""
    from reduset._engine.cuda.device_rows import DeviceRows

    free_memory()
    rows = drawn(distribution, n, d, dtype)
    place = DeviceRows(rows)
    ours(place, 10)
    seconds, traversal = median_of(3, partial(ours, place, size))
    cover(rows[: n // 10], size)  # compiles
    found: dict[str, Any] = {"seconds": seconds, "whole": median_of(1, partial(cover, rows, size))[0]}
    if n * d <= TORCH_UP_TO and find_spec("torch"):
        by_torch(rows, 10)
        found["torch"], chosen = median_of(1, partial(by_torch, rows, size))
        found["like torch"] = float(np.mean(np.array(chosen[1:]) == traversal.indices))
    if n in HOST_ROWS and d == 16:
        begun = time.perf_counter()
        host = ours(HostRows(rows.get()), size)
        found["host"] = time.perf_counter() - begun
        found["like host"] = bool(host.indices == traversal.indices)
    return found


NOTE = """Rows are on the device, the first centre is given; medians of 3, after one small run. The *whole call* is `cover(E,
size)`: it checks the rows, begins at the row nearest to the mean, and assigns every row. *torch* is the usual loop, all rows for
each centre; its distances are in single precision, so near-ties may differ (*same*). *Processor* is the same traversal on all cores
of the machine."""


def measure(quick: bool) -> dict[str, Any]:
    cases = QUICK if quick else FULL
    found = [of_case(*case) for *case, _ in cases]
    lines, largest = [], {}
    for (distribution, n, d, dtype, size, goal), each in zip(cases, found, strict=True):
        title, met = f"{distribution}, {n:,} × {d} {dtype}", verdict(-each["seconds"], -goal)
        largest[distribution, d] = [
            f"{size:,} of {n:,} × {d} {dtype}, {distribution}",
            f"{each['seconds']:.2g} s",
            f"≤ {goal:g} s",
            met,
        ]
        line = [title, f"{size:,}", f"{each['seconds']:.3f} s", f"{goal:g} s", met, f"{each['whole']:.2f} s", *[""] * 6]
        if "torch" in each:
            line[6:9] = f"{each['torch']:.2f} s", f"{each['torch'] / each['seconds']:.1f}", f"{each['like torch']:.0%}"
        if "host" in each:
            line[9:] = f"{each['host']:.2f} s", f"{each['host'] / each['seconds']:.0f}", "yes" if each["like host"] else "NO"
        lines.append(line)
    good = sum(line[4] == "yes" for line in lines)
    summary = [["Cases within their goal", f"{good} of {len(cases)}", "all", verdict(good, len(cases))], *largest.values()]
    for peer, name in (("torch", "a loop in torch"), ("host", "the processor")):
        ratios = [each[peer] / each["seconds"] for each in found if peer in each]
        if ratios:
            summary.append([f"Faster than {name}", f"up to {max(ratios):.0f}×", "", ""])
    same = all(each["like host"] for each in found if "host" in each)
    summary.append(["The same rows as on the processor", "yes" if same else "no", "yes", "yes" if same else "NO"])
    head = ["rows", "centres", "seconds", "goal", "met", "whole call", "torch", "over ours", "same", "processor", "over ours"]
    return {
        "summary": summary,
        "details": f"{' '.join(NOTE.splitlines())} {card()}.\n\n{table([*head, 'same rows'], lines)}",
    }
