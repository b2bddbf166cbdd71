"""Do the formulas of docs/scaling.md predict the time, memory and messages of a plan for 10¹⁰ rows?

The plan runs at a thousandth, on one core, so that seconds are core-seconds: streams that are merged, and Dask. Single tasks are
timed on a few rows; the times of the plan are predicted from them and measured. Goal: predictions within a factor of 2.

``python -m benchmarks.speed.scaling_plan dask|stream full|quick`` runs in a process of its own.
"""

from __future__ import annotations

import json
import math
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from reduset.distributed.first_pass import PartitionSketch
from reduset.distributed.second_pass import SecondPassSums

from benchmarks._lib import medians, own_process, table
from benchmarks.speed.growth import memory
from benchmarks.speed.stream import mixture

TITLE = "The plan for 10¹⁰ rows, run at a thousandth"
SOURCES = ("stream", "distributed")

WIDTH, BUFFER, BANDWIDTH = 5, 65_536, 1.5
RUNGS = 8  # of the frequency ladders in the second pass, roughly: it depends on the spread of the data
NEAR = 2.0  # a prediction is good within this factor


class Plan(NamedTuple):
    """What is run."""

    rows: int
    size: int
    partitions: int  # on Dask
    workers: int  # with a stream each
    calibrated: tuple[int, int]  # rows of two partitions, whose times give that of a partition and that of a row


FULL = Plan(10_000_000, 500, 80, 16, (40_000, 120_000))
QUICK = Plan(160_000, 50, 16, 2, (5_000, 10_000))
PLANS = {"full": FULL, "quick": QUICK}

PLANNED = {"rows": 10**10, "partitions": 10_000, "cores": 512, "workers": 512, "disk": 1e9, "nodes": 16}


# -- the formulas of docs/scaling.md, in bytes and counts -------------------------------------------------------------------


def stream_bytes(sites: int, size: int, width: int, rungs: int, waiting: int) -> int:
    """The state of a stream: sites, cover, Fourier sums, sample, and the rows in the buffer."""
    return 8 * (sites * (width + 2) + size * (width + 3) + 64 * rungs * 2 + 8192 * (width + 2) + waiting * (width + 1))


def sketch_bytes(size: int, width: int) -> int:
    """The message of a partition in the first pass: a sample of 4096 rows, and a small mean of 1.5·m atoms."""
    return 8 * (4097 * (width + 2) + max(math.ceil(1.5 * size), 512) * (width + 2))


def sums_bytes(size: int, rungs: int) -> int:
    """Its message in the second pass: a sum for each atom, and 96 frequency ladders."""
    return 8 * (size + 96 * rungs * 2)


def stream_memory(chunk: int, sites: int, held: int) -> int:
    """Memory beyond the library: a chunk, three blocks, matrices of the sites, and the states that this process holds."""
    return chunk + 8 * (3 * BUFFER * (WIDTH + 1) + 3 * sites**2) + held


def task_memory(rows: int, parts: int, size: int) -> int:
    """Memory beyond the library: a partition three times, matrices of a small mean, and the messages that this process holds."""
    return 8 * (3 * rows * WIDTH + 3 * math.ceil(1.5 * size) ** 2) + parts * sketch_bytes(size, WIDTH)


def tree_merges(parts: int, down_to: int, fan_in: int = 8) -> int:
    """The number of merges until so many parts are left."""
    merges = 0
    while parts > down_to:
        merges += sum(min(fan_in, parts - a) > 1 for a in range(0, parts, fan_in))
        parts = math.ceil(parts / fan_in)
    return merges


# -- measuring ------------------------------------------------------------------------------------------------------------


def median_seconds(function: Callable[[], Any], repeats: int = 3) -> float:
    return medians(repeats, once=function)["once"]


def of_line(plan: Plan, small: float, large: float) -> tuple[float, float]:
    """The time of no rows and that of one row, from the times of the two calibrated numbers of rows."""
    a, b = plan.calibrated
    row = (large - small) / (b - a)
    return max(small - a * row, 0.0), row


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
        if str(key).startswith("reduset") and isinstance(value, (PartitionSketch, SecondPassSums)):
            name = f"{str(key).split('-')[1]} {type(value).__name__}"
            self.seconds.setdefault(name, []).append(took)
            self.bytes.setdefault(name, []).append(len(pickle.dumps(value, protocol=5)))


def of_plan(name: str, sizes: str) -> dict[str, Any]:
    """One of the two plans in this process, on one core."""
    from reduset import set_threads

    set_threads(1)
    return {"dask": _dask, "stream": _stream}[name](PLANS[sizes], mixture())


def _part(draw: Any, number: int, rows: int) -> np.ndarray:
    return np.asarray(draw(np.random.default_rng([5, number]), rows))


def _run_dask(plan: Plan, draw: Any, rows: list[int]) -> tuple[Any, Clocked]:
    import dask
    from dask.callbacks import Callback
    from reduset.distributed import compress

    from reduset import Gaussian

    clocked = Clocked()
    with dask.config.set(scheduler="synchronous"), Callback(pretask=clocked.before, posttask=clocked.after):
        lazy = [dask.delayed(_part)(draw, k, count) for k, count in enumerate(rows)]
        return compress(lazy, Gaussian(BANDWIDTH), size=plan.size, rng=0), clocked


MESSAGES = (PartitionSketch.__name__, SecondPassSums.__name__)
PASSES = {name: f"{name} {kind}" for name, kind in zip(("sample", "certify"), MESSAGES, strict=True)}


def _dask(plan: Plan, draw: Any) -> dict[str, Any]:
    few, many = plan.calibrated
    _run_dask(plan, draw, [few // 4] * 2)  # compiles
    base = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    tasks = [_run_dask(plan, draw, [rows] * 16)[1].seconds for rows in (few, many)]
    lines = {name: of_line(plan, *(float(np.median(found[key])) for found in tasks)) for name, key in PASSES.items()}
    result, clocked = _run_dask(plan, draw, [plan.rows // plan.partitions] * plan.partitions)
    certificate = result.certificate
    return lines | {
        "merge": [float(np.mean(tasks[1][f"merge {kind}"])) for kind in MESSAGES],
        "measured": {name: sum(clocked.seconds[key]) for name, key in PASSES.items()},
        "merging": [sum(clocked.seconds[f"merge {kind}"]) for kind in MESSAGES],
        "merges": [len(clocked.seconds[f"merge {kind}"]) for kind in MESSAGES],
        "bytes": {name: float(np.median(clocked.bytes[key])) for name, key in PASSES.items()},
        "peak": memory("VmHWM") - base,
        "error": certificate.relative_error,
        "interval": certificate.interval,
    }


def _stream(plan: Plan, draw: Any) -> dict[str, Any]:
    from reduset import Gaussian
    from reduset.certificate.frequencies import FrequencyLadders
    from reduset.stream import StreamCompressor

    kernel = Gaussian(BANDWIDTH)

    def begun(number: int) -> StreamCompressor:
        return StreamCompressor(kernel, plan.size, number)

    block = _part(draw, 1000, BUFFER)
    begun(0).fit(block)
    first = median_seconds(lambda: begun(0).fit(block))
    short = begun(0).fit(block)
    later = median_seconds(lambda: short.partial_fit(block), 5)
    four = [begun(k).fit(_part(draw, 2000 + k, 2 * BUFFER + BUFFER // 2)) for k in range(4)]
    pair = [four[0], four[1]]
    merge = median_seconds(lambda: _merged(*pair))
    merged = [_merged(*pair), _merged(*four[2:])]
    again = median_seconds(lambda: _merged(*merged))
    siblings = [pair[0].sibling().partial_fit(_part(draw, 3000 + k, 2 * BUFFER)) for k in range(2)]
    adding = median_seconds(lambda: _merged(siblings[0], siblings[1]))
    base = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    taken, streams, sizes = 0.0, [], []
    each, chunk = plan.rows // plan.workers, 250_000
    with tempfile.TemporaryDirectory() as name:
        kept = Path(name) / "kept"
        for k in range(plan.workers):
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


# -- predictions and measurements ------------------------------------------------------------------------------------------


def compared(plan: Plan, found: dict[str, Any]) -> list[tuple[str, float, float, str]]:
    """What, predicted, measured, unit."""
    dask, stream = found["dask"], found["stream"]
    spread = [dask[name][0] * plan.partitions + dask[name][1] * plan.rows for name in ("sample", "certify")]
    rows, merges = plan.rows // plan.partitions, (tree_merges(plan.partitions, 8), tree_merges(plan.partitions, 1))
    held = stream_bytes(stream["sites"], plan.size, WIDTH, stream["rungs"], stream["waiting"])
    blocks = plan.workers * (stream["first"] - BUFFER * stream["row"]) + plan.rows * stream["row"]
    merging = float(np.dot((plan.workers / 2, plan.workers / 2 - 1), stream["merge"]))
    beyond = stream_memory(stream["chunk"], stream["sites"], plan.workers * held)
    messages = sketch_bytes(plan.size, WIDTH), sums_bytes(plan.size, RUNGS)
    return [
        ("stream: time of all rows", blocks, stream["taken"], "s"),
        ("stream: merges of the workers' states", plan.workers - 1, stream["merges"], ""),
        ("stream: time of these merges", merging, stream["merging"], "s"),
        ("stream: bytes of a checkpoint", held / 1e3, stream["bytes"] / 1e3, "kB"),
        ("stream: memory beyond the library", beyond / 1e6, stream["peak"] / 1e6, "MB"),
        ("Dask: time of pass one", spread[0], dask["measured"]["sample"], "s"),
        ("Dask: time of pass two", spread[1], dask["measured"]["certify"], "s"),
        ("Dask: merges in pass one", merges[0], dask["merges"][0], ""),
        ("Dask: merges in pass two", merges[1], dask["merges"][1], ""),
        ("Dask: time of merges", float(np.dot(merges, dask["merge"])), sum(dask["merging"]), "s"),
        ("Dask: bytes a partition sends in pass one", messages[0] / 1e3, dask["bytes"]["sample"] / 1e3, "kB"),
        ("Dask: bytes a partition sends in pass two", messages[1] / 1e3, dask["bytes"]["certify"] / 1e3, "kB"),
        ("Dask: memory beyond the library", task_memory(rows, plan.partitions, plan.size) / 1e6, dask["peak"] / 1e6, "MB"),
    ]


def planned(size: int, found: dict[str, Any]) -> list[list[str]]:
    """The plan for all rows, by the rates just measured: what, with streams, on Dask."""
    dask, stream = found["dask"], found["stream"]
    n, parts, cores, workers = (PLANNED[name] for name in ("rows", "partitions", "cores", "workers"))
    passes = [(dask[name][0] * parts + dask[name][1] * n) / cores for name in ("sample", "certify")]
    sent = parts * (sketch_bytes(size, WIDTH) + sums_bytes(size, RUNGS)) * 8 / 7
    state = stream_bytes(stream["sites"], size, WIDTH, stream["rungs"], 0)
    depth, high = math.ceil(math.log2(workers)), math.ceil(math.log(parts, 8))
    reading = n * WIDTH * 8 / PLANNED["nodes"] / PLANNED["disk"]
    merging = float(np.dot((1, depth - 1), stream["merge"])), float(np.dot((high - 1, high), dask["merge"]))
    return [
        ["passes over the data", "1", "2"],
        ["rows a second, one core", f"{1 / stream['row'] / 1e6:.2f} M", f"{n / (cores * sum(passes)) / 1e6:.2f} M"],
        ["seconds of computing, all cores busy", f"{n * stream['row'] / cores:.0f}", f"{sum(passes):.0f}"],
        ["seconds of reading, 1 GB/s a node", f"{reading:.0f}", f"{2 * reading:.0f}"],
        ["merges", f"{workers - 1}", f"{tree_merges(parts, 8) + tree_merges(parts, 1):,}"],
        ["merges one after the other", f"{depth}", f"{2 * high - 1}"],
        ["seconds of these merges", f"{merging[0]:.1f}", f"{merging[1]:.1f}"],
        ["bytes sent", f"{(workers - 1) * state / 1e6:.0f} MB", f"{sent / 1e9:.1f} GB"],
    ]


def summary_of(rows: list[tuple[str, float, float, str]], plan: list[list[str]]) -> list[list[str]]:
    kinds = {"Times": ("s",), "Memory": ("MB",), "Bytes, merges": ("kB", "")}
    summary = []
    for what, units in kinds.items():
        ratios = [seen / expected for _, expected, seen, unit in rows if unit in units]
        good = max(*ratios, *(1 / ratio for ratio in ratios)) <= NEAR
        figure = f"{min(ratios):.2f} to {max(ratios):.2f}"
        summary.append([f"{what}: measured over predicted", figure, f"within {NEAR:g} times", "yes" if good else "NO"])
    figures = {what: values for what, *values in plan}
    for k, name in enumerate((f"{PLANNED['workers']} streams", f"Dask, {PLANNED['partitions']:,} partitions")):
        what = (figures[row][k] for row in ("seconds of computing, all cores busy", "bytes sent"))
        summary.append([f"10¹⁰ rows on {PLANNED['cores']} cores, {name}", " s of computing, ".join(what) + " sent", "", ""])
    return summary


def measure(quick: bool) -> dict[str, Any]:
    sizes = "quick" if quick else "full"
    plan, found = PLANS[sizes], {name: json.loads(own_process(__file__, name, sizes).stdout) for name in ("dask", "stream")}
    dask, stream = found["dask"], found["stream"]
    values = compared(plan, found)
    rows = [
        [
            what, f"{expected:,.3g} {unit}", f"{seen:,.3g} {unit}", f"{seen / expected:.2f}",
            "yes" if 1 / NEAR <= seen / expected <= NEAR else "NO",
        ]
        for what, expected, seen, unit in values
    ]  # fmt: skip
    whole = planned(plan.size, found)
    n, nodes = PLANNED["rows"], PLANNED["nodes"]
    return {
        "summary": summary_of(values, whole),
        "details": f"{plan.rows:,} rows of {WIDTH} numbers, {plan.size} atoms, on one core: {plan.workers} streams of "
        f"{plan.rows // plan.workers:,} rows, merged in a tree, and `distributed.compress` of {plan.partitions} partitions. Times "
        f"are predicted from tasks of {plan.calibrated[0]:,} and {plan.calibrated[1]:,} rows and blocks of {BUFFER:,}; sizes by "
        "the formulas of docs/scaling.md:\n\n"
        + table(["", "predicted", "measured", "ratio", f"within {NEAR:.0f} times"], rows)
        + f"\n\nCertified errors: {stream['error']:.2e} with streams, {dask['error']:.2e} on Dask. The first block of a stream "
        f"takes {stream['first']:.2f} s. A merge of siblings takes {1e3 * stream['adding']:.0f} ms, with different sites "
        f"{1e3 * stream['merge'][0]:.0f} ms, of merged ones {1e3 * stream['merge'][1]:.0f} ms. A pickled stream has "
        f"{stream['pickled'] / 1e6:.1f} MB, its checkpoint {stream['bytes'] / 1e6:.2f} MB.\n\n"
        f"At these rates, {n:,} rows ({n * WIDTH * 8 / 1e9:.0f} GB) on {nodes} nodes of {PLANNED['cores'] // nodes} such cores:\n\n"
        + table(["", f"{PLANNED['workers']} streams, merged", f"Dask, {PLANNED['partitions']:,} partitions"], whole),
    }


if __name__ == "__main__":
    print(json.dumps(of_plan(*sys.argv[1:])))
