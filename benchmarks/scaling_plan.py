"""The plan of docs/scaling.md for 10¹⁰ rows, run at a thousandth: what its formulas predict beside what is measured.

Times of single tasks are taken on a few rows; those of the plan are then predicted and measured, on one core, so that seconds are
core-seconds. ``python scaling_plan.py dask|stream`` is what runs in processes of their own.
"""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from growth import memory
from harness import table
from stream import mixture

TITLE = "The plan for ten thousand million rows, at a thousandth"

ROWS, WIDTH, SIZE = 10_000_000, 5, 500
PARTITIONS = 80  # of the Dask plan
WORKERS = 16  # of the plan with streams
BUFFER = 65_536
CALIBRATED = (40_000, 120_000)  # rows of two partitions, whose times give that of a partition and that of a row
BANDWIDTH = 1.5
RUNGS = 8  # of the ladders in the second pass, about: it depends on how far the data spread
NEAR = 2.0  # a prediction is good within this factor

PLANNED = {"rows": 10**10, "partitions": 10_000, "cores": 512, "workers": 512, "disk": 1e9, "nodes": 16}


# -- the formulas of docs/scaling.md, in bytes and counts -------------------------------------------------------------------


def stream_bytes(sites: int, size: int, width: int, rungs: int, waiting: int) -> int:
    """A stream's state: sites, covering, waves, sample, and the rows that wait."""
    return 8 * (sites * (width + 2) + size * (width + 3) + 64 * rungs * 2 + 8192 * (width + 2) + waiting * (width + 1))


def sketch_bytes(size: int, width: int) -> int:
    """What a partition sends in the first pass: a sample of 4096 rows, and a small mean of 1.5·m atoms."""
    return 8 * (4097 * (width + 2) + max(math.ceil(1.5 * size), 512) * (width + 2))


def sums_bytes(size: int, rungs: int) -> int:
    """What it sends in the second: a sum for each atom, and 96 ladders of waves."""
    return 8 * (size + 96 * rungs * 2)


def stream_memory(chunk: int, sites: int, held: int) -> int:
    """Beyond the library: a chunk, three blocks, matrices of the sites, and the states that are held here."""
    return chunk + 8 * (3 * BUFFER * (WIDTH + 1) + 3 * sites**2) + held


def task_memory(rows: int, parts: int) -> int:
    """Beyond the library: a partition thrice, matrices of a small mean, and the messages that are held here."""
    return 8 * (3 * rows * WIDTH + 3 * math.ceil(1.5 * SIZE) ** 2) + parts * sketch_bytes(SIZE, WIDTH)


def tree_merges(parts: int, down_to: int, fan_in: int = 8) -> int:
    """How often some are merged until so many are left."""
    merges = 0
    while parts > down_to:
        merges += sum(min(fan_in, parts - a) > 1 for a in range(0, parts, fan_in))
        parts = math.ceil(parts / fan_in)
    return merges


# -- measuring ------------------------------------------------------------------------------------------------------------


def seconds(function: Callable[[], Any], repeats: int = 3) -> float:
    def once() -> float:
        begun = time.perf_counter()
        function()
        return time.perf_counter() - begun

    return float(np.median([once() for _ in range(repeats)]))


def of_line(small: float, large: float) -> tuple[float, float]:
    """The time of no rows and that of one row, from the times of the two calibrated numbers of rows."""
    a, b = CALIBRATED
    row = (large - small) / (b - a)
    return max(small - a * row, 0.0), row


def own_process(name: str) -> dict[str, Any]:
    out = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
    return dict(json.loads(out.stdout))


class Clocked:
    """Dask's callback: seconds, number and pickled bytes of the tasks of each name."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.bytes: dict[str, list[int]] = {}
        self._begun = 0.0

    def before(self, key: Any, *_: Any) -> None:
        self._begun = time.perf_counter()

    def after(self, key: Any, value: Any, *_: Any) -> None:
        took = time.perf_counter() - self._begun
        if str(key).startswith("reduset") and type(value).__name__ in ("Sketch", "Sums"):
            name = f"{str(key).split('-')[1]} {type(value).__name__}"
            self.seconds.setdefault(name, []).append(took)
            self.bytes.setdefault(name, []).append(len(pickle.dumps(value, protocol=5)))


def measure(name: str) -> dict[str, Any]:
    """One of the two plans, here and now, on one core."""
    from reduset import set_threads

    set_threads(1)
    return {"dask": _dask, "stream": _stream}[name](mixture())


def _part(draw: Any, number: int, rows: int) -> np.ndarray:
    return np.asarray(draw(np.random.default_rng([5, number]), rows))


def _run_dask(draw: Any, rows: list[int]) -> tuple[Any, Clocked]:
    import dask
    from dask.callbacks import Callback

    from reduset import Gaussian
    from reduset.distributed import compress

    clocked = Clocked()
    with dask.config.set(scheduler="synchronous"), Callback(pretask=clocked.before, posttask=clocked.after):
        lazy = [dask.delayed(_part)(draw, k, count) for k, count in enumerate(rows)]
        return compress(lazy, Gaussian(BANDWIDTH), size=SIZE, rng=0), clocked


PASSES = {"sample": "sample Sketch", "certify": "certify Sums"}


def _dask(draw: Any) -> dict[str, Any]:
    few, many = CALIBRATED
    _run_dask(draw, [few // 4] * 2)  # compiles
    base = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    tasks = [_run_dask(draw, [rows] * 16)[1].seconds for rows in (few, many)]
    lines = {name: of_line(*(float(np.median(found[key])) for found in tasks)) for name, key in PASSES.items()}
    result, clocked = _run_dask(draw, [ROWS // PARTITIONS] * PARTITIONS)
    certificate = result.certificate
    return lines | {
        "merge": [float(np.mean(tasks[1][f"merge {kind}"])) for kind in ("Sketch", "Sums")],
        "measured": {name: sum(clocked.seconds[key]) for name, key in PASSES.items()},
        "merging": [sum(clocked.seconds[f"merge {kind}"]) for kind in ("Sketch", "Sums")],
        "merges": [len(clocked.seconds[f"merge {kind}"]) for kind in ("Sketch", "Sums")],
        "bytes": {name: float(np.median(clocked.bytes[key])) for name, key in PASSES.items()},
        "peak": memory("VmHWM") - base,
        "error": certificate.relative_error,
        "interval": certificate.interval,
    }


def _stream(draw: Any) -> dict[str, Any]:
    from reduset import Gaussian
    from reduset.certificate.frequencies import FrequencyLadders
    from reduset.stream import StreamCompressor

    kernel = Gaussian(BANDWIDTH)

    def begun(number: int) -> StreamCompressor:
        return StreamCompressor(kernel, SIZE, number)

    block = _part(draw, 1000, BUFFER)
    begun(0).fit(block)
    first = seconds(lambda: begun(0).fit(block))
    short = begun(0).fit(block)
    later = seconds(lambda: short.partial_fit(block), 5)
    four = [begun(k).fit(_part(draw, 2000 + k, 2 * BUFFER + BUFFER // 2)) for k in range(4)]
    pair = [four[0], four[1]]
    merge = seconds(lambda: _merged(*pair))
    merged = [_merged(*pair), _merged(*four[2:])]
    again = seconds(lambda: _merged(*merged))
    siblings = [pair[0].sibling().partial_fit(_part(draw, 3000 + k, 2 * BUFFER)) for k in range(2)]
    adding = seconds(lambda: _merged(siblings[0], siblings[1]))
    base = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    taken, streams, sizes = 0.0, [], []
    each, chunk = ROWS // WORKERS, 250_000
    with tempfile.TemporaryDirectory() as name:
        kept = Path(name) / "kept"
        for k in range(WORKERS):
            stream = begun(k)
            for a in range(0, each, chunk):
                rows = _part(draw, 10_000 * (k + 1) + a // chunk, min(chunk, each - a))
                start = time.perf_counter()
                stream.partial_fit(rows)
                taken += time.perf_counter() - start
            stream.checkpoint(kept)
            sizes.append(kept.stat().st_size)
            streams.append(StreamCompressor.resume(kept))
    peak = memory("VmHWM") - base
    buffered = streams[0]._stream
    merging, merges = 0.0, 0
    while len(streams) > 1:
        start = time.perf_counter()
        streams = [a.merge(b) for a, b in zip(streams[::2], streams[1::2], strict=True)]
        merging += time.perf_counter() - start
        merges += len(streams)
    result = streams[0].result()
    return {
        "first": first,
        "row": later / BUFFER,
        "merge": [merge, again],
        "adding": adding,
        "taken": taken,
        "merging": merging,
        "merges": merges,
        "bytes": float(np.median(sizes)),
        "pickled": len(pickle.dumps(pair[0], protocol=5)),
        "sites": len(buffered.sketch.candidates.places),
        "waiting": each % BUFFER,
        "rungs": FrequencyLadders.of_kernel(kernel, WIDTH).rungs,
        "peak": peak,
        "chunk": chunk * WIDTH * 8,
        "error": result.certificate.relative_error,
        "interval": result.certificate.interval,
    }


def _merged(one: Any, other: Any) -> Any:
    """Of a copy: merging happens in place."""
    return copy(one).merge(other)


# -- predicted beside measured ---------------------------------------------------------------------------------------------


def compared(found: dict[str, Any]) -> list[tuple[str, float, float, str]]:
    """What, predicted, measured, unit."""
    dask, stream = found["dask"], found["stream"]
    spread = [dask[name][0] * PARTITIONS + dask[name][1] * ROWS for name in ("sample", "certify")]
    rows, merges = ROWS // PARTITIONS, (tree_merges(PARTITIONS, 8), tree_merges(PARTITIONS, 1))
    held = stream_bytes(stream["sites"], SIZE, WIDTH, stream["rungs"], stream["waiting"])
    return [
        (
            "stream: time of all rows",
            WORKERS * (stream["first"] - BUFFER * stream["row"]) + ROWS * stream["row"],
            stream["taken"],
            "s",
        ),
        ("stream: merges of the workers' states", WORKERS - 1, stream["merges"], ""),
        ("stream: time of these merges", float(np.dot((WORKERS / 2, WORKERS / 2 - 1), stream["merge"])), stream["merging"], "s"),
        (
            "stream: bytes of a checkpoint",
            held / 1e3,
            stream["bytes"] / 1e3,
            "kB",
        ),
        (
            "stream: memory beyond the library",
            stream_memory(stream["chunk"], stream["sites"], WORKERS * held) / 1e6,
            stream["peak"] / 1e6,
            "MB",
        ),
        ("Dask: time of pass one", spread[0], dask["measured"]["sample"], "s"),
        ("Dask: time of pass two", spread[1], dask["measured"]["certify"], "s"),
        ("Dask: merges in pass one", merges[0], dask["merges"][0], ""),
        ("Dask: merges in pass two", merges[1], dask["merges"][1], ""),
        ("Dask: time of merges", float(np.dot(merges, dask["merge"])), sum(dask["merging"]), "s"),
        ("Dask: bytes a partition sends in pass one", sketch_bytes(SIZE, WIDTH) / 1e3, dask["bytes"]["sample"] / 1e3, "kB"),
        ("Dask: bytes a partition sends in pass two", sums_bytes(SIZE, RUNGS) / 1e3, dask["bytes"]["certify"] / 1e3, "kB"),
        ("Dask: memory beyond the library", task_memory(rows, PARTITIONS) / 1e6, dask["peak"] / 1e6, "MB"),
    ]


def planned(found: dict[str, Any]) -> list[list[str]]:
    """The plan for all rows, by the rates just measured."""
    dask, stream, plan = found["dask"], found["stream"], PLANNED
    n, parts, cores = plan["rows"], plan["partitions"], plan["cores"]
    passes = [(dask[name][0] * parts + dask[name][1] * n) / cores for name in ("sample", "certify")]
    sent = parts * (sketch_bytes(SIZE, WIDTH) + sums_bytes(SIZE, RUNGS)) * 8 / 7
    state = stream_bytes(stream["sites"], SIZE, WIDTH, stream["rungs"], 0)
    depth, high = math.ceil(math.log2(plan["workers"])), math.ceil(math.log(parts, 8))
    reading = n * WIDTH * 8 / plan["nodes"] / plan["disk"]
    merges = tree_merges(parts, 8) + tree_merges(parts, 1)
    return [
        ["passes over the data", "1", "2"],
        ["rows a second, one core", f"{1 / stream['row'] / 1e6:.2f} M", f"{n / (cores * sum(passes)) / 1e6:.2f} M"],
        ["seconds of computing, all cores at work", f"{n * stream['row'] / cores:.0f}", f"{sum(passes):.0f}"],
        ["seconds of reading, 1 GB/s a node", f"{reading:.0f}", f"{2 * reading:.0f}"],
        ["merges", f"{plan['workers'] - 1}", f"{merges:,}"],
        ["merges one after the other", f"{depth}", f"{2 * high - 1}"],
        [
            "their seconds",
            f"{float(np.dot((1, depth - 1), stream['merge'])):.1f}",
            f"{float(np.dot((high - 1, high), dask['merge'])):.1f}",
        ],
        ["bytes sent", f"{(plan['workers'] - 1) * state / 1e6:.0f} MB", f"{sent / 1e9:.1f} GB"],
    ]


def run() -> str:
    found = {name: own_process(name) for name in ("dask", "stream")}
    dask, stream = found["dask"], found["stream"]
    rows = [
        [
            what,
            f"{expected:,.3g} {unit}",
            f"{seen:,.3g} {unit}",
            f"{seen / expected:.2f}",
            "yes" if 1 / NEAR <= seen / expected <= NEAR else "NO",
        ]
        for what, expected, seen, unit in compared(found)
    ]
    plan = PLANNED
    return (
        f"{ROWS:,} rows of {WIDTH} numbers, {SIZE} atoms, on one core: {WORKERS} streams of {ROWS // WORKERS:,} rows that are "
        f"merged in a tree, and "
        f"`distributed.compress` of {PARTITIONS} partitions. Times are predicted from tasks of {CALIBRATED[0]:,} and "
        f"{CALIBRATED[1]:,} rows "
        f"and blocks of {BUFFER:,}; sizes by the formulas of docs/scaling.md:\n\n"
        + table(["", "predicted", "measured", "ratio", f"within {NEAR:.0f} times"], rows)
        + f"\n\nCertified errors: {stream['error']:.2e} by streams, {dask['error']:.2e} by Dask. A stream's first block takes "
        + f"{stream['first']:.2f} s. A merge of siblings takes {1e3 * stream['adding']:.0f} ms, of streams with sites of their own "
        + f"{1e3 * stream['merge'][0]:.0f} ms, of merged ones {1e3 * stream['merge'][1]:.0f} ms; a pickled stream has "
        + f"{stream['pickled'] / 1e6:.1f} MB, its checkpoint {stream['bytes'] / 1e6:.2f} MB.\n\n"
        + f"By these figures, {plan['rows']:,} rows ({plan['rows'] * WIDTH * 8 / 1e9:.0f} GB) on {plan['nodes']} nodes of "
        + f"{plan['cores'] // plan['nodes']} such cores:\n\n"
        + table(["", f"{plan['workers']} streams, merged", f"Dask, {plan['partitions']:,} partitions"], planned(found))
    )


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
