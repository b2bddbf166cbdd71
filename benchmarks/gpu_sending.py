"""When it pays to send rows of the processor to a GPU: kernel sums of NumPy arrays, here and there.

`python benchmarks/run.py gpu_sending` on a machine with a CUDA device and cupy.
"""

from __future__ import annotations

from functools import partial

import numpy as np

import reduset
from gpu_cover import best_of, card
from harness import table
from reduset import Gaussian, KernelMean
from reduset._engine import device

TITLE = "Sending rows to a GPU"

COLUMNS = (2, 16, 64, 768)
POINTS = (10**4, 10**5, 10**6, 4 * 10**6)
QUERIES = (10, 100, 1000)


def line(d: int, n: int, m: int) -> list[str]:
    rng = np.random.default_rng(0)
    X, Q = rng.standard_normal((n, d), dtype=np.float32), rng.standard_normal((m, d))
    mean = KernelMean.from_samples(X, Gaussian(float(np.sqrt(d))))
    found = []
    for where in ("cpu", "cuda"):
        reduset.set_device(where)
        mean(Q)
        found.append(best_of(2 if n * m * d > 10**10 else 3, partial(mean, Q))[0])
    reduset.set_device(None)
    here, there = found
    return [f"{d}", f"{n:,}", f"{m:,}", f"{n * m:.0e}", f"{1e3 * here:.3g} ms", f"{1e3 * there:.3g} ms", f"{here / there:.2g}"]


def least(rows: list[list[str]]) -> str:
    """From how many pairs on the way is worth it at any number of columns: the fewest beyond which it always was."""
    slow = [float(row[3]) for row in rows if float(row[6]) < 1]
    return f"{max(slow):.0e}" if slow else "none tried"


NOTE = """Values of a Gaussian mean of NumPy rows in single precision at a few queries, on all cores of the machine and with
`set_device("cuda")`: rows are sent, the answer comes back, nothing stays. The most pairs at which sending did not pay: {least};
`set_device("auto")` sends from {auto:,} pairs on."""


def run() -> str:
    device.LEAST_PAIRS["cuda"] = 1
    rows = [line(d, n, m) for d in COLUMNS for n in POINTS for m in QUERIES if n * d <= 4 * 10**8]
    note = " ".join(NOTE.format(least=least(rows), auto=device.LEAST_PAIRS["auto"]).splitlines())
    return f"{note} {card()}.\n\n{table(['columns', 'rows', 'queries', 'pairs', 'processor', 'sent', 'times'], rows)}"
