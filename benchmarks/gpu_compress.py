"""compress and the uses on a GPU, beside the processor of the same machine: whole calls, certificates included.

`python benchmarks/run.py gpu_compress` on a machine with a CUDA device and cupy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import reduset
from gpu_cover import best_of, card, drawn
from harness import table
from reduset import Compression, compress
from reduset.cohort import CohortMap
from reduset.density import SparseKernelDensity
from reduset.drift import DriftTest
from reduset.modes import SparseMeanShift
from reduset.stream import StreamCompressor

TITLE = "Compressions and uses on a GPU"

D, SIZE, TOL = 16, 1000, 0.05
ROWS = (10**6, 10**7, 10**8)
HOST_UP_TO = 10**7  # rows that the processor compresses too
WISHED = 5.0  # seconds, of 10⁸ rows


def compressed(X: Any) -> Compression:
    return compress(X, size=SIZE, tol=TOL, rng=0)


def compressions(law: str) -> list[list[str]]:
    import cupy

    found = []
    for n in ROWS:
        cupy.get_default_memory_pool().free_all_blocks()
        X = drawn(law, n, D, "float32")
        compressed(X[:100_000])
        seconds, small = best_of(3 if n < 10**8 else 2, partial(compressed, X))
        line = [f"{law}, {n:,} × {D}", f"{seconds:.2f} s", f"{small.certificate.relative_error:.3f}"]
        if n <= HOST_UP_TO:
            here = X.get()
            compressed(here[:100_000])
            slower, same = best_of(1, partial(compressed, here))
            reduset.set_device("cuda")
            sent, _ = best_of(1, partial(compressed, here))
            reduset.set_device(None)
            alike = same.size == small.size and np.allclose(small.mean.atoms, same.mean.atoms, rtol=1e-5, atol=1e-7)
            line += [f"{slower:.1f} s, {slower / seconds:.1f}", f"{sent:.2f} s", "yes" if alike else "NO"]
        else:
            line += ["", "", ""]
        found.append(line)
    return found


def streamed(X: Any) -> Any:
    stream = StreamCompressor(size=500, random_state=0)
    for a in range(0, len(X), 10**6):
        stream.partial_fit(X[a : a + 10**6])
    return stream.result()


def uses() -> dict[str, tuple[int, Callable[[Any], Any]]]:
    """By name: how many rows, and what is done with them."""
    return {
        "SparseKernelDensity(size=1000).fit": (10**7, lambda X: SparseKernelDensity(size=1000, random_state=0).fit(X)),
        "SparseMeanShift().fit, 3 columns": (10**6, lambda X: SparseMeanShift(bandwidth=0.5, random_state=0).fit(X[:, :3])),
        "StreamCompressor(size=500), chunks of a million": (4 * 10**6, streamed),
        "DriftTest().fit": (10**7, lambda X: DriftTest(random_state=0).fit(X)),
        "CohortMap(size=500), 20 bags": (
            4 * 10**6,
            lambda X: CohortMap(size=500, layout="mds", random_state=0).fit(_bags(X)),
        ),
    }


def _bags(X: Any) -> list[Any]:
    step = len(X) // 20
    return [X[k * step : (k + 1) * step] for k in range(20)]


def used() -> list[list[str]]:
    import cupy

    found = []
    for name, (n, use) in uses().items():
        cupy.get_default_memory_pool().free_all_blocks()
        X = drawn("clustered", n, D, "float32")
        use(X[:100_000])
        seconds, _ = best_of(1, partial(use, X))
        here = X.get()
        use(here[:100_000])
        slower, _ = best_of(1, partial(use, here))
        found.append([name, f"{n:,}", f"{seconds:.2f} s", f"{slower:.1f} s", f"{slower / seconds:.1f}"])
    return found


NOTE = """`compress(X, size={size}, tol={tol})` of {d} columns in single precision that lie on the device, whole calls with the
search for the resolution, the certificate and the bounds; medians of 2 or 3. *Processor*: the same call of the same rows here, on
all cores of the machine, and how many times ours that takes; *sent*: of rows here with `set_device("cuda")`, which streams them in
every pass; *same atoms*: as the processor's. Wished for, 10⁸ rows: {wished:g} s; reached: {met}."""


def run() -> str:
    rows = [line for law in ("normal", "clustered") for line in compressions(law)]
    worst = max(float(row[1].split()[0]) for row in rows if f"{10**8:,}" in row[0])
    met = f"{'yes' if worst <= WISHED else 'NO'}, {worst:.2f} s"
    note = " ".join(NOTE.format(size=SIZE, tol=TOL, d=D, wished=WISHED, met=met).splitlines())
    first = table(["rows", "device", "error", "processor, times ours", "sent", "same atoms"], rows)
    second = table(["use", "rows", "device", "processor", "times"], used())
    return f"{note} {card()}.\n\n{first}\n\nUses of clustered rows of {D} columns, one call each:\n\n{second}"
