"""The command on a Parquet file of 1.1 million rows: time against the same read and compressed by the library, peak memory, and how
soon help answers.

``python command.py both|memory FILE GOAL`` is what runs in processes of its own.
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


def library(path: Path, goal: str) -> None:
    """What the command is asked for, by the library: the file is read, and compressed with the same settings."""
    from reduset import Gaussian, compress, io

    X = io.read(path, columns=list(COLUMNS)).values
    compress(X, Gaussian(scales="robust"), rng=0, **GOALS[goal])


def both(path: Path, goal: str) -> dict[str, float]:
    """Seconds of the two in a process that has everything loaded; they take turns."""
    from reduset.cli.entry import run

    with tempfile.TemporaryDirectory() as folder:

        def command() -> None:
            if run(words(path, goal, Path(folder) / "small.npz")):
                raise RuntimeError("the command failed")

        medians(1, command=command)
        return medians(3, library=lambda: library(path, goal), command=command)


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
    """The library's way as a process of its own, that imports, reads the file, compresses and keeps nothing."""
    code = f"from pathlib import Path; import command; command.library(Path({str(path)!r}), {goal!r})"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)


def own_process(*arguments: str) -> Any:
    out = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def run() -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = write_flights(folder)
        import pyarrow.parquet

        n = pyarrow.parquet.read_metadata(path).num_rows
        read = n * len(COLUMNS) * BYTES
        rows = []
        for goal in GOALS:

            def command(goal: str = goal) -> None:
                subprocess.run([sys.executable, "-m", "reduset", *words(path, goal, folder / "small.npz")], check=True)

            command()  # compiles
            times = medians(3, command=command, script=partial(script, path, goal))
            inside = own_process("both", str(path), goal)
            most = own_process("memory", str(path), goal)
            timed = []
            for plain, ours in ((times["script"], times["command"]), (inside["library"], inside["command"])):
                timed += [f"{plain:.2f}", f"{ours:.2f}", f"{ours / plain:.2f}×", verdict(-ours / plain, -1.5)]
            rows.append((goal, *timed, f"{most / 1e6:.0f}", f"{most / read:.2f}×", verdict(-most / read, -3.0)))
        helped = medians(
            5, help=lambda: subprocess.run([sys.executable, "-m", "reduset", "--help"], check=True, capture_output=True)
        )
        timed = ["script, s", "command, s", "ratio", "≤ 1.5×", "library, loaded, s", "command, loaded, s", "ratio", "≤ 1.5×"]
        head = ("goal", *timed, "peak, MB", "of the columns read", "≤ 3×")
        return (
            f"`reduset compress flights.parquet` ({n:,} rows, {len(COLUMNS)} of 7 columns, {read / 1e6:.0f} MB as float64) to a "
            "model file with its portrait and the columns one by one, against the library on the same file with the same settings, "
            '`compress(io.read(path).values, Gaussian(scales="robust"), ...)`: each as a process of its own, start-up included, and'
            " both in one process that has everything loaded. Peak memory beyond what the same command holds after a file of "
            "20,000 rows:\n\n"
            + table(head, rows)
            + f"\n\n`reduset --help` answers in {helped['help']:.2f} s; goal under 0.7 s: {verdict(-helped['help'], -0.7)}."
        )


if __name__ == "__main__":
    what, path, goal = sys.argv[1:]
    print(json.dumps((both if what == "both" else peak)(Path(path), goal)))
