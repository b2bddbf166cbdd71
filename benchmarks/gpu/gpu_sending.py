"""From how many row–query pairs is it faster to send rows of the processor to a GPU?

Kernel sums of NumPy arrays on all cores of the machine, against the same with `set_device("cuda")`. Goal: `set_device("auto")`
sends only above the largest number of pairs at which sending was slower.

Needs a CUDA device and cupy.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import reduset
from benchmarks._lib import table, verdict
from benchmarks.gpu.gpu_cover import card, median_of
from reduset import Gaussian, KernelMean
from reduset._engine import device

TITLE = "Sending rows to a GPU"
SOURCES = ("_engine/device.py", "_engine/cuda/sums.py", "_engine/cuda/chunks.py", "mean.py")

COLUMNS, QUERIES = (2, 16, 64, 768), (10, 100, 1000)
FULL, QUICK = (10**4, 10**5, 10**6, 4 * 10**6), (10**4, 10**5)  # rows
LARGEST = 4 * 10**8  # numbers in the rows


def of_case(d: int, n: int, m: int) -> tuple[float, float]:
    """Seconds on the processor and on the device."""
    rng = np.random.default_rng(0)
    X, Q = rng.standard_normal((n, d), dtype=np.float32), rng.standard_normal((m, d))
    mean = KernelMean.from_samples(X, Gaussian(float(np.sqrt(d))))
    found = []
    for where in ("cpu", "cuda"):
        reduset.set_device(where)
        mean(Q)
        found.append(median_of(2 if n * m * d > 10**10 else 3, partial(mean, Q))[0])
    reduset.set_device(None)
    here, there = found
    return here, there


NOTE = """Values of a Gaussian mean of NumPy rows in single precision, on all cores of the machine and with `set_device("cuda")`:
rows are sent, the values return, nothing stays on the device. `set_device("auto")` sends from {auto:,} pairs on."""


def measure(quick: bool) -> dict[str, Any]:
    cases = [(d, n, m) for d in COLUMNS for n in (QUICK if quick else FULL) for m in QUERIES if n * d <= LARGEST]
    least, device.LEAST_PAIRS["cuda"] = device.LEAST_PAIRS["cuda"], 1
    try:
        times = {case: of_case(*case) for case in cases}
    finally:
        device.LEAST_PAIRS["cuda"] = least
    rows = [
        [f"{d}", f"{n:,}", f"{m:,}", f"{n * m:.0e}", f"{1e3 * here:.3g} ms", f"{1e3 * there:.3g} ms", f"{here / there:.2g}"]
        for (d, n, m), (here, there) in times.items()
    ]
    slower = max((n * m for (_, n, m), (here, there) in times.items() if here < there), default=0)
    best = max(here / there for here, there in times.values())
    auto = device.LEAST_PAIRS["auto"]
    note = " ".join(NOTE.format(auto=auto).splitlines())
    head = ["columns", "rows", "queries", "pairs", "processor", "sent", "processor over sent"]
    return {
        "summary": [
            ["Most pairs at which sending was slower", f"{slower:.0e}", f"≤ {auto:,}", verdict(auto, slower)],
            ["Largest gain by sending", f"{best:.3g}×", "", ""],
        ],
        "details": f"{note} The most pairs at which sending was slower: {slower:.0e}. {card()}.\n\n{table(head, rows)}",
    }
