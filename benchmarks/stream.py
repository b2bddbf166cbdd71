"""A stream of 50 million rows: rows a second, peak memory of the whole process, and how both grow; each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from growth import memory
from harness import table, verdict

TITLE = "A stream of 50 million rows"

CHUNK, WIDTH, SIZE = 500_000, 5, 500
GROWTH = (1_000_000, 5_000_000, 25_000_000)
MOST_BYTES, LEAST_RATE, MOST_EXPONENT = 600e6, 1e6, 1.05

Source = Callable[[np.random.Generator, int], np.ndarray]


def mixture() -> Source:
    """Eight normal components of various widths, with unequal weights."""
    fixed = np.random.default_rng(7)
    centres, widths = fixed.normal(0.0, 3.0, size=(8, WIDTH)), fixed.uniform(0.3, 1.5, size=8)
    shares = fixed.dirichlet(np.full(8, 2.0))

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        of = rng.choice(8, size=count, p=shares)
        X = rng.standard_normal((count, WIDTH))
        X *= widths[of, None]
        X += centres[of]
        return X

    return draw


def normal() -> Source:
    return lambda rng, count: rng.standard_normal((count, WIDTH))


SOURCES: dict[str, tuple[Callable[[], Source], float, int]] = {  # what is drawn, bandwidth, rows
    "mixture of 8 normals": (mixture, 1.5, 50_000_000),
    "one normal": (normal, 1.0, 10_000_000),
}


def chunks(draw: Source, rows: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    for a in range(0, rows, CHUNK):
        yield draw(rng, min(CHUNK, rows - a))


def measure(name: str, rows: int) -> dict[str, Any]:
    """Run here and now."""
    from reduset import Gaussian
    from reduset.stream import StreamCompressor

    make, bandwidth, _ = SOURCES[name]
    draw, kernel = make(), Gaussian(bandwidth)
    StreamCompressor(kernel, SIZE, 0).fit(draw(np.random.default_rng(1), 200_000)).result()  # compiles
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far: a child starts with its parent's
    begun = time.perf_counter()
    stream, inside = StreamCompressor(kernel, SIZE, 0), 0.0
    for chunk in chunks(draw, rows):
        start = time.perf_counter()
        stream.partial_fit(chunk)
        inside += time.perf_counter() - start
    start = time.perf_counter()
    found = stream.result().certificate
    ended = time.perf_counter()
    return {
        "seconds": ended - begun,
        "inside": inside + ended - start,
        "result": ended - start,
        "peak": memory("VmHWM"),
        "error": found.relative_error,
        "interval": found.interval,
    }


def own_process(name: str, rows: int) -> dict[str, Any]:
    out = subprocess.run([sys.executable, __file__, name, str(rows)], check=True, capture_output=True, text=True)
    return dict(json.loads(out.stdout))


def run() -> str:
    found = {name: own_process(name, rows) | {"rows": rows} for name, (*_, rows) in SOURCES.items()}
    body = [
        [
            name,
            f"{each['rows']:,}",
            f"{each['seconds']:.1f} s",
            f"{each['rows'] / each['seconds'] / 1e6:.2f} M",
            f"{each['rows'] / each['inside'] / 1e6:.2f} M",
            f"{each['peak'] / 1e6:.0f} MB",
            f"{each['result']:.2f} s",
            f"{each['error']:.2e} ({each['interval'][0]:.2e} to {each['interval'][1]:.2e})",
        ]
        for name, each in found.items()
    ]
    head = [
        "drawn from",
        "rows",
        "time",
        "rows a second",
        "drawing apart",
        "peak memory",
        "`result()`",
        "certified error, 95 % interval",
    ]
    rate, peak = min(each["rows"] / each["inside"] for each in found.values()), max(each["peak"] for each in found.values())
    name = next(iter(SOURCES))
    grown = [own_process(name, n) for n in GROWTH]
    seconds = np.array([each["inside"] for each in grown])
    exponent = float(np.log(seconds[-1] / seconds[0]) / np.log(GROWTH[-1] / GROWTH[0]))
    growth = [
        [
            f"{n:,}",
            f"{each['inside']:.2f} s",
            f"{1e9 * each['inside'] / n:.0f} ns",
            f"{each['peak'] / 1e6:.0f} MB",
            f"{each['error']:.2e}",
        ]
        for n, each in zip(GROWTH, grown, strict=True)
    ]
    return (
        f"Rows of {WIDTH} numbers, drawn {CHUNK:,} at a time and seen once, {SIZE} atoms. Peak memory is that of the whole "
        f"process, Python "
        "and its libraries included; times include the first block, in which sites are selected, and the result:\n\n"
        + table(head, body)
        + f"\n\nRows a second, the drawing of them apart, at least {rate / 1e6:.2f} million; goal at least {LEAST_RATE / 1e6:.0f}: "
        + f"{verdict(rate, LEAST_RATE)}. "
        + f"Peak memory at most {peak / 1e6:.0f} MB; goal below {MOST_BYTES / 1e6:.0f}: {verdict(-peak, -MOST_BYTES)}.\n\n"
        + f"How it grows ({name}; times without the drawing of rows):\n\n"
        + table(["rows", "time", "a row", "peak memory", "certified error"], growth)
        + f"\n\nExponent of time, first to last: {exponent:.3f}; goal at most {MOST_EXPONENT}: "
        + f"{verdict(-exponent, -MOST_EXPONENT)}. "
        + f"Peak memory, last over first: {grown[-1]['peak'] / grown[0]['peak']:.2f}; goal at most 1.1: "
        + f"{verdict(-grown[-1]['peak'] / grown[0]['peak'], -1.1)}."
    )


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
