"""Sketches of single-cell and cytometry data: ours against the methods in use (scanpy's issue 2862 asks which to take).

`python benchmarks/sketching.py --measure` measures what `sketching.csv` lacks, a row as soon as it is known, so that a run can be
stopped and continued; `--only`, `--methods`, `--sizes` and `--seeds` do a part. The section `sketching` of RESULTS.md and the
picture are made of the file (`python benchmarks/run.py sketching`).

A row is a data set (`sketching_data`), a method (`sketching_methods`), a size and a seed; the measures are in `sketching_metrics`.
Methods take turns within a seed, each in a fresh process, so that times in a cell are of the same spell of the machine. A run may
take `--limit` seconds (geosketch three times as long) and `--memory` GB; who needs more is recorded so, and is not tried again at
that size, nor at a larger one.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import sketching_data
import sketching_metrics
import sketching_summary
from harness import machine
from sketching_methods import METHODS, PEERS
from sketching_remote import Failed, TooMuch, call

TITLE = "Sketches of single-cell and cytometry data, against peers"

CSV = Path(__file__).with_name("sketching.csv")
COLUMNS = ("data", "n", "d", "method", "size", "seed", "status", *sketching_metrics.COLUMNS)
SIZES = (500, 2_000, 5_000, 20_000, 50_000)
OTHER_SIZES = {"pbmc68k": (50, 100, 200, 350), "rare_10": (500, 2_000, 5_000), "rare_50": (500, 2_000, 5_000)}
CHEAP, DEAR = 1e10, 5e11  # n · size · d up to which there are five seeds, and from which one; three between
LEIDEN_UP_TO = 5_000
LIMIT, MEMORY = 300.0, 14.0  # seconds and GB of one run
PATIENCE = {"geosketch": 3.0}  # times the limit, because a goal is set by its time at a million rows
ERRATIC = ("geosketch",)  # takes as long as its search for a box takes, which need not grow with the size

Key = tuple[str, str, int, int]


def sizes_of(name: str, n: int, asked: list[int] | None) -> list[int]:
    return sorted(size for size in asked or OTHER_SIZES.get(name, SIZES) if 2 * size <= n)


def seeds_of(n: int, d: int, size: int, asked: int | None) -> range:
    work = float(n) * d * size
    return range(asked or (5 if work <= CHEAP else 3 if work <= DEAR else 1))


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


class Table:
    """The file of results; what failed is tried again, and its last row counts."""

    def __init__(self, path: Path) -> None:
        self._path, self._done, self._slow = path, set[Key](), dict[tuple[str, str], set[int]]()
        if not path.exists():
            path.write_text(f"# {machine()}\n{','.join(COLUMNS)}\n", encoding="utf-8")
        elif not path.read_bytes().endswith(b"\n"):  # stopped within a row
            text = path.read_text(encoding="utf-8")
            path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
        for row in read(path):
            self._note(row)

    def _note(self, row: dict) -> None:
        name, method, size = row["data"], row["method"], int(row["size"])
        if not row["status"].startswith("failed"):
            self._done.add((name, method, size, int(row["seed"])))
        if row["status"].startswith("over"):
            self._slow.setdefault((name, method), set()).add(size)

    def __contains__(self, key: Key) -> bool:
        return key in self._done

    def reason_not_to(self, name: str, method: str, size: int) -> str | None:
        """Why a run would only take its time again."""
        slow = self._slow.get((name, method), set())
        if size in slow:
            return "over the limit with another seed"
        return "over the limit at a smaller size" if min(slow, default=size) < size and method not in ERRATIC else None

    def add(self, row: dict) -> None:
        with self._path.open("a", newline="", encoding="utf-8") as file:
            rounded = {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
            csv.DictWriter(file, COLUMNS).writerow(rounded)
        self._note(row)
        result = f"{row['mae_plain']:.2e} plain, {row['mae_weighted']:.2e} weighted" if row["status"] == "ok" else row["status"]
        took = f" in {row['seconds']:.3g} s" if row["status"] == "ok" else ""
        print(f"{row['data']} {row['size']} seed {row['seed']} {row['method']}: {result}{took}", flush=True)


def cell(truth: sketching_metrics.Truth, rows: Path, method: str, size: int, seed: int, options: argparse.Namespace) -> dict:
    """One method once, and how good its sketch is."""
    limit, traced = options.limit * PATIENCE.get(method, 1.0), method == "reduset" and seed == 0
    try:
        answer = call(method, rows, limit, options.memory, size=size, seed=seed, traced=traced)
    except TooMuch as error:
        return {"status": str(error)}
    except Failed as error:
        return {"status": f"failed: {error}"}
    indices = answer["indices"].astype(np.int64)
    found = {key: answer[key] for key in ("seconds", "peak", "traced") if key in answer}
    found |= truth.measure(indices, answer.get("weights"), answer.get("owners"), seed)
    if size <= LEIDEN_UP_TO:
        with tempfile.TemporaryDirectory() as folder:
            chosen = Path(folder) / "sketch.npy"
            np.save(chosen, truth.data.X[indices])
            with contextlib.suppress(TooMuch, Failed):  # what else is known of the sketch stands without it
                clusters = call("leiden", chosen, options.limit, options.memory, size=size, seed=seed)["indices"]
                found["ari_leiden"] = truth.carried_back(clusters, truth.owners)
    return {"status": "ok"} | found


def lacking(table: Table, name: str, n: int, d: int, options: argparse.Namespace) -> Iterator[tuple[int, int, str]]:
    for size in sizes_of(name, n, options.sizes):
        for seed in seeds_of(n, d, size, options.seeds):
            for method in options.methods:
                if (name, method, size, seed) not in table:
                    yield size, seed, method


def measure_set(name: str, table: Table, options: argparse.Namespace) -> None:
    """Everything that the table lacks about one data set."""
    data = sketching_data.load(name).cut(options.rows or 10**9)
    n, d = data.X.shape
    wanted = list(lacking(table, name, n, d, options))
    if not wanted:
        return
    truth = sketching_metrics.Truth(data, sketching_data.KEPT / f"{name}-{n}-truth.npz")
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        np.save(rows, data.X)
        for size, seed, method in wanted:
            known = {"data": name, "n": n, "d": d, "method": method, "size": size, "seed": seed}
            reason = table.reason_not_to(name, method, size)
            table.add(known | ({"status": reason} if reason else cell(truth, rows, method, size, seed, options)))


def run() -> str:
    """The section of RESULTS.md, from what has been measured."""
    if not CSV.exists():
        raise SystemExit(f"{CSV.name} is not there: run `make sketching` first")
    recorded_on = CSV.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
    return sketching_summary.text(read(CSV), recorded_on, CSV.with_suffix(".png"))


def main() -> None:
    everything = ["reduset", *PEERS]
    parser = argparse.ArgumentParser(description="Measure sketches, ours and peers', or summarise what was measured.")
    parser.add_argument("--measure", action="store_true", help="measure what the file lacks; without it, print the summary")
    parser.add_argument("--only", nargs="+", default=sketching_data.NAMES, choices=sketching_data.NAMES, metavar="DATASET")
    parser.add_argument("--methods", type=lambda text: text.split(","), default=everything, help=f"of {','.join(everything)}")
    parser.add_argument("--sizes", nargs="+", type=int)
    parser.add_argument("--seeds", type=int, help="how many; otherwise five, three or one by what a cell costs")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a run may take")
    parser.add_argument("--memory", type=float, default=MEMORY, help="GB that it may take")
    parser.add_argument("--rows", type=int, help="for trials: so many rows of each set only; needs --csv")
    parser.add_argument("--csv", type=Path, default=CSV, help="where the results are")
    options = parser.parse_args()
    unknown = set(options.methods) - set(METHODS)
    if unknown:
        parser.error(f"unknown method {', '.join(sorted(unknown))}; there are {', '.join(everything)}")
    if options.rows and options.csv == CSV:
        parser.error("--rows is for trials: name another --csv")
    if not options.measure:
        recorded_on = options.csv.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        print(sketching_summary.text(read(options.csv), recorded_on, options.csv.with_suffix(".png")))
        return
    table = Table(options.csv)
    for name in options.only:
        measure_set(name, table, options)


if __name__ == "__main__":
    main()
