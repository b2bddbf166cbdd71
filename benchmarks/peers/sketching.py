"""Which sketch of single-cell or cytometry data keeps proportions, rare types, distances and clusters, and in what time?

Peers: geosketch, sketchKH, scSampler, Hopper, leverage scores, k-means and random rows (`sketching_methods.py`), on eight data sets
(`sketching_data.py`) with the measures of `sketching_metrics.py`. Goals are in the summary. Methods take turns, each in a new
process. Results are kept in `results/sketching.csv`, so that a run can be stopped and continued.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.remote import Failed, is_installed, omitted
from benchmarks.peers import sketching_data, sketching_metrics, sketching_summary
from benchmarks.peers.result_table import ResultTable, Row, measured_on, read
from benchmarks.peers.sketching_data import Labelled
from benchmarks.peers.sketching_methods import PEERS
from benchmarks.peers.sketching_remote import TooMuch, call

TITLE = "Sketches of single-cell and cytometry data, against peers"
SOURCES = ("sketching", "_engine/strata.py")

CSV = Path(__file__).parent / "results" / "sketching.csv"
COLUMNS = ("data", "n", "d", "method", "size", "seed", "status", *sketching_metrics.COLUMNS)
KEY = ("data", "method", "size", "seed")
SIZES = (500, 2_000, 5_000, 20_000, 50_000)
OTHER_SIZES = {"pbmc68k": (50, 100, 200, 350), "rare_10": (500, 2_000, 5_000), "rare_50": (500, 2_000, 5_000)}
FIVE_SEEDS, THREE_SEEDS = 1e10, 5e11  # largest n · size · d with five and with three seeds; beyond, one
LEIDEN_UP_TO = 5_000
LIMIT, MEMORY = 300.0, 14.0  # seconds and GB of one run; a method that exceeds them is not tried at larger sizes
PATIENCE = {"geosketch": 3.0}  # times the limit, because a goal is relative to its time at a million rows
ERRATIC = ("geosketch",)  # its time need not grow with the size


@dataclass(frozen=True)
class Plan:
    """What is measured, and where results and prepared data are kept."""

    path: Path
    kept: Path
    methods: tuple[str, ...] = ("reduset", *PEERS)
    with_leiden: bool = True


def measure(quick: bool) -> dict[str, Any]:
    if not quick:
        plan = Plan(CSV, sketching_data.KEPT)
        results = SketchTable(plan.path)
        for name in sketching_data.NAMES:
            measure_set(name, sketching_data.load(name), plan, results)
        return summarised(plan)
    with tempfile.TemporaryDirectory() as folder:
        peers = ("geosketch",) if is_installed("sketch") else ()
        plan = Plan(Path(folder) / "sketching.csv", Path(folder), ("reduset", "hopper", "uniform", *peers), with_leiden=False)
        data = sketching_data.simulated(3000, 10, {0.01: 2})
        measure_set("trial", data, plan, SketchTable(plan.path), sizes=(200,), seeds=1)
        found = summarised(plan)
    return found | {"details": found["details"] + omitted("sketch")}


def summarised(plan: Plan) -> dict[str, Any]:
    results = sketching_summary.Results(read(plan.path))
    details = sketching_summary.text(results, measured_on(plan.path), plan.path.with_suffix(".png"))
    return {"summary": sketching_summary.rows_of(results), "details": details}


def seeds_of(n: int, d: int, size: int) -> int:
    work = float(n) * d * size
    return 5 if work <= FIVE_SEEDS else 3 if work <= THREE_SEEDS else 1


class SketchTable(ResultTable):
    """The results so far, and which runs exceeded a limit."""

    def __init__(self, path: Path) -> None:
        self._slow: dict[tuple[str, str], set[int]] = {}

        def shown(row: Row) -> str:
            return f"{row['mae_plain']:.2e} plain, {row['mae_weighted']:.2e} weighted in {row['seconds']:.3g} s"

        super().__init__(path, COLUMNS, KEY, SOURCES, shown)

    def note(self, row: Row) -> None:
        super().note(row)
        if row["status"].startswith("over"):
            self._slow.setdefault((row["data"], row["method"]), set()).add(int(row["size"]))

    def reason_not_to(self, name: str, method: str, size: int) -> str | None:
        """Why a run would exceed a limit again."""
        slow = self._slow.get((name, method), set())
        if size in slow:
            return "over the limit with another seed"
        return "over the limit at a smaller size" if min(slow, default=size) < size and method not in ERRATIC else None


def cell(truth: sketching_metrics.Truth, rows: Path, method: str, size: int, seed: int, with_leiden: bool) -> Row:
    """One run of a method, and the measures of its sketch."""
    limit, traced = LIMIT * PATIENCE.get(method, 1.0), method == "reduset" and seed == 0
    try:
        answer = call(method, rows, limit, MEMORY, size=size, seed=seed, traced=traced)
    except TooMuch as error:
        return {"status": str(error)}
    except Failed as error:
        return {"status": f"failed: {error}"}
    indices = answer["indices"].astype(np.int64)
    found = {key: answer[key] for key in ("seconds", "peak", "traced") if key in answer}
    found |= truth.measure(indices, answer.get("weights"), answer.get("owners"), seed)
    if with_leiden and size <= LEIDEN_UP_TO:
        with tempfile.TemporaryDirectory() as folder:
            chosen = Path(folder) / "sketch.npy"
            np.save(chosen, truth.data.X[indices])
            with contextlib.suppress(TooMuch, Failed):  # the other measures stay valid
                clusters = call("leiden", chosen, LIMIT, MEMORY, size=size, seed=seed)["indices"]
                found["ari_leiden"] = truth.carried_back(clusters, truth.owners)
    return {"status": "ok"} | found


def measure_set(
    name: str, data: Labelled, plan: Plan, results: SketchTable, sizes: tuple[int, ...] | None = None, seeds: int | None = None
) -> None:
    """Everything that the table lacks about one data set."""
    n, d = data.X.shape

    def missing() -> Iterator[Row]:
        for size in (size for size in sizes or OTHER_SIZES.get(name, SIZES) if 2 * size <= n):
            for seed in range(seeds or seeds_of(n, d, size)):
                for method in plan.methods:
                    known = {"data": name, "n": n, "d": d, "method": method, "size": size, "seed": seed}
                    if known not in results:
                        yield known

    wanted = list(missing())
    if not wanted:
        return
    truth = sketching_metrics.Truth(data, plan.kept / f"{name}-{n}-truth.npz")
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        np.save(rows, data.X)
        for known in wanted:
            method, size, seed = known["method"], known["size"], known["seed"]
            reason = results.reason_not_to(name, method, size)
            found = {"status": reason} if reason else cell(truth, rows, method, size, seed, plan.with_leiden)
            results.add(known | found)
