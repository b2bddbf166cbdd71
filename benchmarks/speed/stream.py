"""A stream of 50 million rows: how many rows a second, in how much memory, and how do both grow?

Each stream runs in a process of its own, rows are seen once. Goals: a million rows a second, the drawing of rows excluded; less
than 600 MB for the whole process, libraries included; exponent of time at most 1.05; memory at most 1.1 times that of the shortest.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import own_process, table, verdict
from benchmarks.speed.growth import memory

TITLE = "A stream of 50 million rows"
SOURCES = ("stream",)

CHUNK, WIDTH, SIZE, QUICK_SIZE = 500_000, 5, 500, 50
FULL = {"mixture of 8 normals": 50_000_000, "one normal": 10_000_000}  # rows
QUICK = {"mixture of 8 normals": 200_000}
FULL_GROWTH, QUICK_GROWTH = (1_000_000, 5_000_000, 25_000_000), (100_000, 200_000)
LEAST_RATE, MOST_BYTES, MOST_EXPONENT, MOST_GROWTH = 1e6, 600e6, 1.05, 1.1

Source = Callable[[np.random.Generator, int], np.ndarray]


def mixture() -> Source:
    """Eight normal components of various widths, with unequal weights."""
    fixed = np.random.default_rng(7)
    centres, widths = fixed.normal(0.0, 3.0, size=(8, WIDTH)), fixed.uniform(0.3, 1.5, size=8)
    proportions = fixed.dirichlet(np.full(8, 2.0))

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        of = rng.choice(8, size=count, p=proportions)
        X = rng.standard_normal((count, WIDTH))
        X *= widths[of, None]
        X += centres[of]
        return X

    return draw


def normal() -> Source:
    return lambda rng, count: rng.standard_normal((count, WIDTH))


DRAWN: dict[str, tuple[Callable[[], Source], float]] = {  # distribution, bandwidth
    "mixture of 8 normals": (mixture, 1.5),
    "one normal": (normal, 1.0),
}


def chunks(draw: Source, rows: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    for a in range(0, rows, CHUNK):
        yield draw(rng, min(CHUNK, rows - a))


def streamed(name: str, rows: int, size: int) -> dict[str, Any]:
    """Seconds, memory and error of one stream in this process."""
    from reduset import Gaussian
    from reduset.stream import StreamCompressor

    make, bandwidth = DRAWN[name]
    draw, kernel = make(), Gaussian(bandwidth)
    StreamCompressor(kernel, size, 0).fit(draw(np.random.default_rng(1), min(rows, 200_000))).result()  # compiles
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak: a child starts with its parent's
    begun = time.perf_counter()
    stream, inside = StreamCompressor(kernel, size, 0), 0.0
    for chunk in chunks(draw, rows):
        start = time.perf_counter()
        stream.partial_fit(chunk)
        inside += time.perf_counter() - start
    start = time.perf_counter()
    found = stream.result().certificate
    ended = time.perf_counter()
    return {
        "rows": rows,
        "seconds": ended - begun,
        "inside": inside + ended - start,
        "result": ended - start,
        "peak": memory("VmHWM"),
        "error": found.relative_error,
        "interval": found.interval,
    }


def in_own_process(name: str, rows: int, size: int) -> dict[str, Any]:
    return dict(json.loads(own_process(__file__, name, str(rows), str(size)).stdout))


def measure(quick: bool) -> dict[str, Any]:
    cases, sizes, size = (QUICK, QUICK_GROWTH, QUICK_SIZE) if quick else (FULL, FULL_GROWTH, SIZE)
    if not quick:
        for name in cases:
            in_own_process(name, CHUNK, size)  # compiles where nothing is cached, which takes memory too
    found = {name: in_own_process(name, rows, size) for name, rows in cases.items()}
    name = next(iter(cases))
    grown = [found[name] if n == cases[name] else in_own_process(name, n, size) for n in sizes]
    body = [
        [
            name, f"{each['rows']:,}", f"{each['seconds']:.1f} s", f"{each['rows'] / each['seconds'] / 1e6:.2f} M",
            f"{each['rows'] / each['inside'] / 1e6:.2f} M", f"{each['peak'] / 1e6:.0f} MB", f"{each['result']:.2f} s",
            f"{each['error']:.2e} ({each['interval'][0]:.2e} to {each['interval'][1]:.2e})",
        ]
        for name, each in found.items()
    ]  # fmt: skip
    growth = [
        [
            f"{each['rows']:,}", f"{each['inside']:.2f} s", f"{1e9 * each['inside'] / each['rows']:.0f} ns",
            f"{each['peak'] / 1e6:.0f} MB", f"{each['error']:.2e}",
        ]
        for each in grown
    ]  # fmt: skip
    rate, peak = min(each["rows"] / each["inside"] for each in found.values()), max(each["peak"] for each in found.values())
    exponent = float(np.log(grown[-1]["inside"] / grown[0]["inside"]) / np.log(sizes[-1] / sizes[0]))
    more = grown[-1]["peak"] / grown[0]["peak"]
    head = ["distribution", "rows", "time", "rows a second", "without drawing them", "peak memory", "`result()`"]
    return {
        "summary": [
            ["Rows a second, at least", f"{rate / 1e6:.2f} million", f"≥ {LEAST_RATE / 1e6:g} million", verdict(rate, LEAST_RATE)],
            ["Peak memory of the process", f"{peak / 1e6:.0f} MB", f"< {MOST_BYTES / 1e6:g} MB", verdict(-peak, -MOST_BYTES)],
            [
                f"Exponent of time, {sizes[0]:,} to {sizes[-1]:,} rows",
                f"{exponent:.3f}", f"≤ {MOST_EXPONENT}", verdict(-exponent, -MOST_EXPONENT),
            ],
            ["Growth of peak memory over these", f"{more:.2f}×", f"≤ {MOST_GROWTH}×", verdict(-more, -MOST_GROWTH)],
            ["Certified error, at most", f"{max(each['error'] for each in found.values()):.2e}", "", ""],
        ],
        "details": f"Rows of {WIDTH} numbers, drawn {CHUNK:,} at a time and seen once, {size} atoms. Peak memory is that of the "
        "whole process, Python and its libraries included. Times include the first block, in which sites are selected, and the "
        "result:\n\n"
        + table([*head, "certified error, 95 % interval"], body)
        + f"\n\nGrowth ({name}; times without the drawing of rows):\n\n"
        + table(["rows", "time", "time of a row", "peak memory", "certified error"], growth),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(streamed(sys.argv[1], *map(int, sys.argv[2:]))))
