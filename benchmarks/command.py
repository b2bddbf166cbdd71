"""The command on a Parquet file of 1.1 million rows: time against the library call's, peak memory, and how soon help answers.

``python command.py time|memory FILE`` is what runs in processes of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from growth import memory
from harness import data_folder, medians, table, verdict

TITLE = "The command on a large file"

COLUMNS = ("year", "month", "day", "departure", "delay")  # five that are numbers; the other two are codes of airports
GOALS = {"--size 500": {"size": 500}, "--tol 0.01": {"tol": 0.01}}
BYTES = 8  # a number as the library takes it


def write_flights(folder: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    with np.load(data_folder() / "big_flights.npz", allow_pickle=False) as data:
        X = data["X"]
    path = folder / "flights.parquet"
    names = (*COLUMNS, "origin", "destination")[: X.shape[1]]
    pyarrow.parquet.write_table(pyarrow.table({name: X[:, k] for k, name in enumerate(names)}), path)
    return path


def words(path: Path, goal: str, out: Path) -> list[str]:
    return ["compress", str(path), "--columns", ",".join(COLUMNS), *goal.split(), "-o", str(out), "--quiet"]


def library(path: Path, goal: str) -> float:
    """Seconds of `compress` on the same rows, in memory, in a process that has compiled everything."""
    from reduset import Gaussian, compress, io

    X = io.read(path, columns=list(COLUMNS)).values
    compress(X[:20_000], Gaussian("median"), rng=0, **GOALS[goal])
    begun = time.perf_counter()
    compress(X, Gaussian("median"), rng=0, **GOALS[goal])
    return time.perf_counter() - begun


def peak(path: Path, goal: str) -> float:
    """The most memory the command takes beyond what it takes on a small file, in bytes."""
    import pyarrow.parquet

    from reduset.cli.entry import run

    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.parquet"
        pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).slice(0, 20_000), few)
        if run(words(few, goal, Path(folder) / "few.npz")):
            raise RuntimeError("the small file failed")
        before = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        if run(words(path, goal, Path(folder) / "all.npz")):
            raise RuntimeError("the large file failed")
        return memory("VmHWM") - before


def script(path: Path, goal: str) -> None:
    """The same call in a process of its own, that imports, loads an array and keeps nothing."""
    name, value = next(iter(GOALS[goal].items()))
    call = f"compress(np.load({str(path)!r}), Gaussian('median'), rng=0, {name}={value})"
    code = f"import numpy as np; from reduset import Gaussian, compress; {call}"
    subprocess.run([sys.executable, "-c", code], check=True)


def own_process(*arguments: str) -> float:
    out = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    return float(json.loads(out.stdout.splitlines()[-1]))


def run() -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_flights(folder)
        import pyarrow.parquet

        from reduset import io

        n = pyarrow.parquet.read_metadata(path).num_rows
        read = n * len(COLUMNS) * BYTES
        np.save(folder / "flights.npy", io.read(path, columns=list(COLUMNS)).values)
        rows = []
        for goal in GOALS:

            def command(goal: str = goal) -> None:
                subprocess.run([sys.executable, "-m", "reduset", *words(path, goal, folder / "small.npz")], check=True)

            def plain(goal: str = goal) -> None:
                script(folder / "flights.npy", goal)

            command()  # compiles
            times = medians(3, command=command, plain=plain)
            spent = times["command"]
            alone = float(np.median([own_process("time", str(path), goal) for _ in range(3)]))
            most = own_process("memory", str(path), goal)
            rows.append(
                (
                    goal,
                    f"{alone:.2f}",
                    f"{spent:.2f}",
                    f"{spent / alone:.2f}×",
                    verdict(-spent / alone, -1.5),
                    f"{times['plain']:.2f}",
                    f"{spent / times['plain']:.2f}×",
                    f"{most / 1000000.0:.0f}",
                    f"{most / read:.2f}×",
                    verdict(-most / read, -3.0),
                )
            )
        helped = medians(
            5, help=lambda: subprocess.run([sys.executable, "-m", "reduset", "--help"], check=True, capture_output=True)
        )
        timed = ("library call, s", "command, s", "ratio", "≤ 1.5×", "call in a script, s", "ratio")
        head = ("goal", *timed, "peak, MB", "of the columns read", "≤ 3×")
        return (
            f"`reduset compress flights.parquet` ({n:,} rows, {len(COLUMNS)} of 7 columns, {read / 1e6:.0f} MB as float64) to a "
            "model file with its portrait, as a process of its own, start-up included, against `compress` on the same array in a "
            "process that has everything loaded, and against a script that imports it, loads the array and calls "
            "it. Peak memory beyond what the same command holds after a file of 20,000 rows:\n\n"
            + table(head, rows)
            + f"\n\n`reduset --help` answers in {helped['help']:.2f} s; goal under 0.7 s: {verdict(-helped['help'], -0.7)}."
        )


if __name__ == "__main__":
    what, path, goal = sys.argv[1:]
    print(json.dumps((library if what == "time" else peak)(Path(path), goal)))
