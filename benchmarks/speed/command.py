"""The command on a Parquet file of 1.1 million rows: how much longer does it take than the library on the same file?

The library reads the file and compresses it with the same settings. Both run as processes with start-up, and in one process that
has everything loaded. Goals: at most 1.5 times the library's time, peak memory at most 3 times the columns read (beyond the
memory of the same command on a small file), and `--help` in less than 0.7 s.

``python -m benchmarks.speed.command both|peak|library FILE GOAL`` runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, medians, own_process, table, verdict
from benchmarks.speed.growth import memory

TITLE = "The command on a large file"
SOURCES = ("cli/compress.py", "io", "compression", "model")

COLUMNS = ("year", "month", "day", "departure", "delay")  # the numeric ones; the other two are codes of airports
GOALS = {"--size 500": {"size": 500}, "--tol 0.01": {"tol": 0.01}, "--size 50": {"size": 50}}
BYTES = 8  # of a float64
FEW = 20_000  # rows of the small file
MOST_TIME, MOST_MEMORY, MOST_HELP = 1.5, 3.0, 0.7
FULL = {"rows": None, "goals": ("--size 500", "--tol 0.01"), "repeats": 3}  # all rows
QUICK = {"rows": 2 * FEW, "goals": ("--size 50",), "repeats": 1}


def write_flights(folder: Path, rows: int | None = None) -> Path:
    import pyarrow
    import pyarrow.parquet

    with np.load(data_folder() / "big_flights.npz", allow_pickle=False) as data:
        X = data["X"][:rows]
    path = folder / "flights.parquet"
    names = (*COLUMNS, "origin", "destination")[: X.shape[1]]
    pyarrow.parquet.write_table(pyarrow.table({name: X[:, k] for k, name in enumerate(names)}), path)
    return path


def arguments(path: Path, goal: str, out: Path) -> list[str]:
    return ["compress", str(path), "--columns", ",".join(COLUMNS), *goal.split(), "-o", str(out), "--quiet"]


def library(path: Path, goal: str) -> None:
    """Read the file and compress it with the settings of the command."""
    from reduset import Gaussian, compress, io

    X = io.read(path, columns=list(COLUMNS)).values
    compress(X, Gaussian(scales="robust"), rng=0, **GOALS[goal])


def both(path: Path, goal: str, repeats: int) -> dict[str, float]:
    """Seconds of the library and of the command in a process that has everything loaded."""
    from reduset.cli.entry import run

    with tempfile.TemporaryDirectory() as folder:

        def command() -> None:
            if run(arguments(path, goal, Path(folder) / "small.npz")):
                raise RuntimeError("the command failed")

        medians(1, command=command)
        return medians(repeats, library=lambda: library(path, goal), command=command)


def peak(path: Path, goal: str) -> float:
    """Peak memory in bytes, beyond the memory after a small file."""
    import pyarrow.parquet

    from reduset.cli.entry import run

    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.parquet"
        pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).slice(0, FEW), few)
        if run(arguments(few, goal, Path(folder) / "few.npz")):
            raise RuntimeError("the small file failed")
        before = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        if run(arguments(path, goal, Path(folder) / "all.npz")):
            raise RuntimeError("the large file failed")
        return memory("VmHWM") - before


def timed(path: Path, goal: str, repeats: int) -> dict[str, float]:
    """Seconds of each, in separate processes and in one; bytes of peak memory."""

    def command() -> None:
        command_line = arguments(path, goal, path.with_name("small.npz"))
        subprocess.run([sys.executable, "-m", "reduset", *command_line], check=True)

    if repeats > 1:
        command()  # compiles
    found = medians(repeats, command=command, script=partial(own_process, __file__, "library", str(path), goal))
    inside, peak = (
        json.loads(own_process(__file__, what, str(path), goal, *given).stdout)
        for what, *given in (("both", str(repeats)), ("peak",))
    )
    return {**found, "loaded library": inside["library"], "loaded command": inside["command"], "peak": peak}


def measure(quick: bool) -> dict[str, Any]:
    import pyarrow.parquet

    sizes = QUICK if quick else FULL
    repeats = sizes["repeats"]
    with tempfile.TemporaryDirectory() as name:
        path = write_flights(Path(name), sizes["rows"])
        n = pyarrow.parquet.read_metadata(path).num_rows
        found = {goal: timed(path, goal, repeats) for goal in sizes["goals"]}
    helped = medians(
        repeats, help=lambda: subprocess.run([sys.executable, "-m", "reduset", "--help"], check=True, capture_output=True)
    )["help"]
    read = n * len(COLUMNS) * BYTES
    rows, summary = [], []
    for goal, each in found.items():
        ratios = each["command"] / each["script"], each["loaded command"] / each["loaded library"]
        rows.append([
            goal, *(f"{each[what]:.2f}" for what in ("script", "command")), f"{ratios[0]:.2f}×", verdict(-ratios[0], -MOST_TIME),
            *(f"{each[what]:.2f}" for what in ("loaded library", "loaded command")), f"{ratios[1]:.2f}×",
            verdict(-ratios[1], -MOST_TIME), f"{each['peak'] / 1e6:.0f}", f"{each['peak'] / read:.2f}×",
            verdict(-each["peak"] / read, -MOST_MEMORY),
        ])  # fmt: skip
        summary.append([
            f"`{goal}`: time over the library's, with start-up and without", f"{ratios[0]:.2f}×, {ratios[1]:.2f}×",
            f"≤ {MOST_TIME}×", verdict(-max(ratios), -MOST_TIME),
        ])  # fmt: skip
    peak = max(each["peak"] for each in found.values()) / read
    summary.append(["Peak memory, of the columns read", f"{peak:.2f}×", f"≤ {MOST_MEMORY:g}×", verdict(-peak, -MOST_MEMORY)])
    summary.append(["`reduset --help`", f"{helped:.2f} s", f"< {MOST_HELP} s", verdict(-helped, -MOST_HELP)])
    times = ["script, s", "command, s", "ratio", f"≤ {MOST_TIME}×", "library, loaded, s", "command, loaded, s", "ratio"]
    head = ["goal", *times, f"≤ {MOST_TIME}×", "peak, MB", "of the columns read", f"≤ {MOST_MEMORY:g}×"]
    details = (
        f"`reduset compress flights.parquet` ({n:,} rows, {len(COLUMNS)} of 7 columns, {read / 1e6:.0f} MB as float64) writes a "
        "model file with marginal densities and histograms of the columns. The library reads the same file with the same settings, "
        '`compress(io.read(path).values, Gaussian(scales="robust"), ...)`. Each runs as a process, start-up included, and both in '
        f"one process that has everything loaded. Peak memory is beyond that of the same command after a file of {FEW:,} rows.\n\n"
        + table(head, rows)
        + f"\n\n`reduset --help` takes {helped:.2f} s."
    )
    return {"summary": summary, "details": details}


def main(what: str, path: str, goal: str, repeats: str = "") -> None:
    if what == "library":
        library(Path(path), goal)
    else:
        print(json.dumps(both(Path(path), goal, int(repeats)) if what == "both" else peak(Path(path), goal)))


if __name__ == "__main__":
    main(*sys.argv[1:])
