"""Streams that are killed and resumed from a checkpoint: do they end with the result of an uninterrupted run, bit for bit?

`reduset compress --stream --checkpoint` on a file of 1.1 million flights is killed by SIGKILL at random moments, and run again.
Goal: 20 of 20 results are equal, and no temporary files are left.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict
from benchmarks.speed.command import COLUMNS, write_flights
from reduset import Model
from reduset.stream import StreamCompressor

TITLE = "Streams that are killed"
SOURCES = ("stream", "cli/streaming.py", "model/model.py")

KILLS, QUICK_KILLS, QUICK_ROWS = 20, 1, 200_000
SIZE = 200


def arguments(path: Path, out: Path, kept: Path | None) -> list[str]:
    often = [] if kept is None else ["--checkpoint", str(kept), "--checkpoint-every", "0.2"]
    chosen = ["--columns", ",".join(COLUMNS), "--size", str(SIZE)]
    return [sys.executable, "-m", "reduset", "compress", str(path), "--stream", *chosen, "-o", str(out), "--quiet", *often]


def facts(out: Path) -> tuple[Any, ...]:
    """The contents of a model, bit for bit, without the time at which it was made."""
    model = Model.load(out)
    arrays = [model.mean.atoms, model.mean.weights, model.step_weights, model.path.relative_errors, *vars(model.portrait).values()]
    others = (model.certificate, model.mean.kernel.to_dict(), model.n_samples, model.total, model.about["notes"])
    return [np.ascontiguousarray(array).tobytes() for array in arrays], others


def killed(command: list[str], kept: Path, after: float) -> float | None:
    """Run a command and kill it some seconds after its first checkpoint; the seconds that it took if it ended before, else None."""
    process = subprocess.Popen(command)
    while process.poll() is None and not kept.exists():
        time.sleep(0.002)
    begun = time.perf_counter()
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.kill()
    return None if process.wait() else time.perf_counter() - begun


def measure(quick: bool) -> dict[str, Any]:
    kills = QUICK_KILLS if quick else KILLS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, kept = write_flights(folder, QUICK_ROWS if quick else None), folder / "kept"
        subprocess.run(arguments(path, folder / "whole.npz", None), check=True)
        whole = facts(folder / "whole.npz")
        rest = killed(arguments(path, folder / "first.npz", kept), kept, 600.0)
        if rest is None:
            raise RuntimeError("the uninterrupted run failed")
        moments = np.random.default_rng(0)
        held, same, left = [], 0, 0
        for number in range(kills):
            out = folder / f"{number}.npz"
            while killed(arguments(path, out, kept), kept, float(moments.uniform(0, rest))) is not None:
                pass  # it ended before
            held.append(StreamCompressor.resume(kept).about_["rows"])
            subprocess.run(arguments(path, out, kept), check=True)
            same += facts(out) == whole
            left += kept.exists() or any(folder.glob(".*.part"))
    n = whole[1][2]
    between = f"{min(held):,} to {max(held):,}, median {int(np.median(held)):,}"
    head = ("runs killed", "rows in the checkpoint", "same result, bit for bit", "all", "files left over")
    details = (
        f"`reduset compress flights.parquet --stream --size {SIZE} --checkpoint kept` ({n:,} rows, {len(COLUMNS)} columns), "
        f"killed by SIGKILL at a random moment of the {rest:.1f} s between its first checkpoint and its end, including the writing "
        "of the result, then run again. Compared are the atoms, weights, certificate, path, marginal densities and notes of the "
        "model with those of a run without checkpoints:\n\n" + table(head, [(kills, between, same, verdict(same, kills), left)])
    )
    summary = [
        ["killed runs with the same result, bit for bit", f"{same} of {kills}", f"{kills}", verdict(same, kills)],
        ["files left over", f"{left}", "0", verdict(0, left)],
    ]
    return {"summary": summary, "details": details}
