"""How fast are `compress` and its uses on a GPU, as whole calls with certificates?

Against the processor of the same machine, and against rows on the processor that are sent to the device. Goals: 10⁸ rows of 16
columns in 5 s, and the same atoms as on the processor.

Needs a CUDA device and cupy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import reduset
from benchmarks._lib import table, verdict
from benchmarks.gpu.gpu_cover import card, drawn, free_memory, median_of
from reduset import Compression, compress
from reduset.cohort import CohortMap
from reduset.density import SparseKernelDensity
from reduset.drift import DriftTest
from reduset.modes import SparseMeanShift
from reduset.stream import StreamCompressor

TITLE = "Compressions and uses on a GPU"
SOURCES = ("_engine/cuda", "compression", "certificate")

D, SIZE, TOL = 16, 1000, 0.05
FULL, QUICK = (10**6, 10**7, 10**8), (10**5, 10**6)  # rows
HOST_UP_TO = 10**7  # rows that the processor compresses too
LARGE, GOAL = 10**8, 5.0  # rows, and the goal in seconds
FEW = 100_000  # rows of the run that compiles


def compressed(X: Any) -> Compression:
    return compress(X, size=SIZE, tol=TOL, rng=0)


def of_rows(distribution: str, n: int) -> dict[str, Any]:
    """Seconds on the device, on the processor and with rows that are sent, and whether the atoms are the same."""
    free_memory()
    X = drawn(distribution, n, D, "float32")
    compressed(X[:FEW])
    seconds, small = median_of(3 if n < LARGE else 2, partial(compressed, X))
    found: dict[str, Any] = {"rows": n, "seconds": seconds, "error": small.certificate.relative_error}
    if n <= HOST_UP_TO:
        here = X.get()
        compressed(here[:FEW])
        found["host"], same = median_of(1, partial(compressed, here))
        reduset.set_device("cuda")
        found["sent"], _ = median_of(1, partial(compressed, here))
        reduset.set_device(None)
        equal = same.size == small.size and np.allclose(small.mean.atoms, same.mean.atoms, rtol=1e-5, atol=1e-7)
        found["same"] = bool(equal)
    return found


def streamed(X: Any) -> Any:
    stream = StreamCompressor(size=500, random_state=0)
    for a in range(0, len(X), 10**6):
        stream.partial_fit(X[a : a + 10**6])
    return stream.result()


def _bags(X: Any) -> list[Any]:
    step = len(X) // 20
    return [X[k * step : (k + 1) * step] for k in range(20)]


USES: dict[str, tuple[int, Callable[[Any], Any]]] = {  # rows, and the call
    "SparseKernelDensity(size=1000).fit": (10**7, lambda X: SparseKernelDensity(size=1000, random_state=0).fit(X)),
    "SparseMeanShift().fit, 3 columns": (10**6, lambda X: SparseMeanShift(bandwidth=0.5, random_state=0).fit(X[:, :3])),
    "StreamCompressor(size=500), chunks of a million": (4 * 10**6, streamed),
    "DriftTest().fit": (10**7, lambda X: DriftTest(random_state=0).fit(X)),
    "CohortMap(size=500), 20 bags": (4 * 10**6, lambda X: CohortMap(size=500, layout="mds", random_state=0).fit(_bags(X))),
}


def of_uses(share: int) -> list[tuple[str, int, float, float]]:
    """Name, rows, seconds on the device and on the processor; of one in ``share`` rows."""
    found = []
    for name, (n, use) in USES.items():
        free_memory()
        X = drawn("clustered", n // share, D, "float32")
        use(X[:FEW])
        seconds, _ = median_of(1, partial(use, X))
        here = X.get()
        use(here[:FEW])
        found.append((name, len(X), seconds, median_of(1, partial(use, here))[0]))
    return found


NOTE = """`compress(X, size={size}, tol={tol})` of {d} columns in single precision on the device: whole calls with the search for
the resolution, the certificate and the bounds; medians of 2 or 3. *Processor*: the same call with rows in host memory, on all cores
of the machine. *Sent*: rows in host memory with `set_device("cuda")`, which sends them in every pass. *Same atoms*: as on the
processor."""


def measure(quick: bool) -> dict[str, Any]:
    found = [(name, of_rows(name, n)) for name in ("normal", "clustered") for n in (QUICK if quick else FULL)]
    lines = []
    for name, each in found:
        line = [f"{name}, {each['rows']:,} × {D}", f"{each['seconds']:.2f} s", f"{each['error']:.3f}", "", "", "", ""]
        if "host" in each:
            line[3:5] = f"{each['host']:.1f} s", f"{each['host'] / each['seconds']:.1f}"
            line[5:] = f"{each['sent']:.2f} s", "yes" if each["same"] else "NO"
        lines.append(line)
    largest = max(each["rows"] for _, each in found)
    slowest = max(each["seconds"] for _, each in found if each["rows"] == largest)
    hosted = [each for _, each in found if "host" in each]
    most = max(each["rows"] for each in hosted)
    faster = [each["host"] / each["seconds"] for each in hosted if each["rows"] == most]
    same = sum(each["same"] for each in hosted)
    uses = of_uses(10 if quick else 1)
    ratios = [there / here for *_, here, there in uses]
    goal = [f"≤ {GOAL:g} s", verdict(-slowest, -GOAL)] if largest == LARGE else ["", ""]
    described = [[name, f"{n:,}", f"{here:.2f} s", f"{there:.1f} s", f"{there / here:.1f}"] for name, n, here, there in uses]
    note = " ".join(NOTE.format(size=SIZE, tol=TOL, d=D).splitlines())
    first = table(["rows", "device", "error", "processor", "over device", "sent", "same atoms"], lines)
    second = table(["use", "rows", "device", "processor", "over device"], described)
    return {
        "summary": [
            [f"`compress` of {largest:,} × {D} rows", f"{slowest:.2f} s", *goal],
            [f"{most:,} rows: faster than {reduset.get_threads()} cores", f"{min(faster):.1f} to {max(faster):.1f}×", "", ""],
            ["The same atoms as on the processor", f"{same} of {len(hosted)}", "all", verdict(same, len(hosted))],
            [f"Uses: faster than {reduset.get_threads()} cores", f"{min(ratios):.1f} to {max(ratios):.1f}×", "", ""],
        ],
        "details": f"{note} {card()}.\n\n{first}\n\nUses of clustered rows of {D} columns, one call each:\n\n{second}",
    }
