"""A stream that is killed at random moments and taken up by its checkpoint: how many runs end with the unbroken run's result."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.command import COLUMNS, write_flights
from benchmarks._lib import table, verdict
from reduset import Model
from reduset.stream import StreamCompressor

TITLE = "Streams that are killed"

KILLS = 20
SIZE = 200


def words(path: Path, out: Path, kept: Path | None) -> list[str]:
    often = [] if kept is None else ["--checkpoint", str(kept), "--checkpoint-every", "0.2"]
    chosen = ["--columns", ",".join(COLUMNS), "--size", str(SIZE)]
    return [sys.executable, "-m", "reduset", "compress", str(path), "--stream", *chosen, "-o", str(out), "--quiet", *often]


def facts(out: Path) -> tuple[Any, ...]:
    """All that a model holds, to the last bit, but when it was made."""
    model = Model.load(out)
    arrays = [model.mean.atoms, model.mean.weights, model.step_weights, model.path.relative_errors, *vars(model.portrait).values()]
    told = (model.certificate, model.mean.kernel.to_dict(), model.n_samples, model.total, model.about["notes"])
    return [np.ascontiguousarray(array).tobytes() for array in arrays], told


def killed(command: list[str], kept: Path, after: float) -> float | None:
    """Run a command and kill it (SIGKILL) so many seconds after its first checkpoint; if it was done before, when that was."""
    process = subprocess.Popen(command)
    while process.poll() is None and not kept.exists():
        time.sleep(0.002)
    begun = time.perf_counter()
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.kill()
    return None if process.wait() else time.perf_counter() - begun


def run() -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, kept = write_flights(folder), folder / "kept"
        subprocess.run(words(path, folder / "first.npz", None), check=True)  # compiles
        subprocess.run(words(path, folder / "whole.npz", None), check=True)
        whole = facts(folder / "whole.npz")
        rest = killed(words(path, folder / "first.npz", kept), kept, 600.0)
        if rest is None:
            raise RuntimeError("the unbroken run failed")
        moments = np.random.default_rng(0)
        held, same, left = [], 0, 0
        for number in range(KILLS):
            out = folder / f"{number}.npz"
            while killed(words(path, out, kept), kept, float(moments.uniform(0, rest))) is not None:
                pass  # it was done before
            held.append(StreamCompressor.resume(kept).about_["rows"])
            subprocess.run(words(path, out, kept), check=True)
            same += facts(out) == whole
            left += kept.exists() or any(folder.glob(".*.part"))
        n = whole[1][2]
        between = f"{min(held):,} to {max(held):,}, median {int(np.median(held)):,}"
        head = ("runs killed", "rows the checkpoint held", "same result, bit for bit", "all", "files left over")
        row = (KILLS, between, same, verdict(same, KILLS), left)
        return (
            f"`reduset compress flights.parquet --stream --size {SIZE} --checkpoint kept` ({n:,} rows, {len(COLUMNS)} columns), "
            f"killed by SIGKILL at a random moment of the {rest:.1f} s between its first checkpoint and its end, the writing "
            "of the result included, then run again. The result is the atoms, weights, certificate, path, portrait and notes "
            "of the model, beside those of a run that kept no checkpoint:\n\n" + table(head, [row])
        )
