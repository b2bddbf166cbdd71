"""Columns one by one: what `reduset compress` and `reduset sketch` make of tables in mixed units by default.

Each table goes through the command as a file, with no option but the output. Every column's density, of all rows and of the result,
is then computed anew: sums of normal bumps of a tenth of its spread, on a grid of five places a width around the bulk.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from harness import data_folder, table
from reduset import Gaussian, KernelMean, Model, bandwidth
from reduset import io as files
from reduset.cli.entry import run as command

TITLE = "Columns one by one: tables in mixed units, by default"

MOST = 0.05  # of a column's peak
SIZE = 1000  # rows of a sketch, as many as atoms of a model
MOST_PLACES, TAIL = 4000, 1e-3


def _stored(name: str, rows: int | None = None) -> np.ndarray:
    stored = np.load(data_folder() / f"{name}.npz", allow_pickle=False)
    parts = [stored[key][:rows] for key in ("X", "X_train", "X_test") if key in stored]
    return np.concatenate(parts).astype(np.float64)


def _tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    people = np.column_stack([rng.lognormal(10, 0.6, 22_000), rng.normal(45, 12, 22_000)])
    return {
        "income, age": people,
        "flights": _stored("big_flights", 100_000),
        "a1a": _stored("a1a"),
        "australian": _stored("australian"),
    }


def _difference(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """The largest difference of two densities along a column, as a share of the peak of that of all rows."""
    width = 0.1 * float(bandwidth.column_scales(x[:, None])[0])
    low, high = np.quantile(x, [TAIL, 1 - TAIL])
    places = int(min(MOST_PLACES, 5 * (high - low + 6 * width) / width))
    grid = np.linspace(low - 3 * width, high + 3 * width, places)[:, None]
    bump = Gaussian(width)
    p = KernelMean.from_samples(x[:, None], bump)(grid, "double")
    q = KernelMean(y[:, None], weights, bump)(grid, "double")
    return float(np.abs(p - q).max() / p.max())


def _compressed(X: np.ndarray, names: list[str], suffix: str) -> tuple[dict, np.ndarray, np.ndarray, float]:
    """What the command tells, the atoms and their weights, and how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "rows.parquet", Path(folder) / f"small{suffix}"
        files.write_rows(source, names, X)
        told = io.StringIO()
        start = time.perf_counter()
        with redirect_stdout(told):
            if suffix == ".npz":
                command(["compress", str(source), "-o", str(target), "--json"])
            else:
                command(["sketch", str(source), "--size", str(min(SIZE, len(X) - 1)), "-o", str(target), "--json"])
        seconds = time.perf_counter() - start
        if suffix == ".npz":
            mean = Model.load(target).mean
            return json.loads(told.getvalue()), np.asarray(mean.atoms), mean.weights, seconds
        few = files.read(target, weight_column="weight")
        return json.loads(told.getvalue()), few.values, few.weights / few.weights.sum(), seconds


def _named(marginals: dict[str, float], note: str, silent: list[str]) -> str:
    """Whether exactly the columns beyond the limit are named in a note."""
    if not marginals:
        return "–"
    return "yes" if not silent and bool(note) == any(each > MOST for each in marginals.values()) else f"NOT {silent}"


def run() -> str:
    """Both kinds of output for each table."""
    lines = []
    for title, X in _tables().items():
        names = ["income", "age"] if X.shape[1] == 2 else [f"x{k + 1}" for k in range(X.shape[1])]
        for suffix, kind in ((".npz", "model"), (".csv", "rows")):
            told, atoms, weights, seconds = _compressed(X, names, suffix)
            off = np.array([_difference(X[:, k], atoms[:, k], weights) for k in range(X.shape[1])])
            note = " ".join(text for text in told["notes"] if text.startswith("taken alone"))
            far = [name for name, each in zip(names, off, strict=True) if each > MOST]
            marginals = told.get("marginals", {})  # a sketch names no columns
            silent = [name for name in far if marginals.get(name, 1.0) <= MOST]
            lines.append(
                [
                    f"{title}, {len(X):,}×{X.shape[1]}",
                    f"{kind}, {told['size']:,}",
                    "not reached" if told["resolution"] is None else f"{told['resolution']:.3g}",
                    f"{100 * told['relative_error']:.2g} %",
                    f"{100 * np.median(off):.2g} %",
                    f"{100 * off.max():.2g} % ({names[int(off.argmax())]})",
                    f"{len(far)} of {len(names)}",
                    _named(marginals, note, silent),
                    f"{seconds:.1f} s",
                ]
            )
    head = [
        "table",
        "written",
        "resolution",
        "lost",
        "a column's difference, median",
        "largest",
        f"beyond {MOST:.0%}",
        "named",
        "time",
    ]
    return table(head, lines) + (
        "\n\nThe resolution is in interquartile ranges. A difference is the largest between a column's density in the result and "
        "in all rows, both at a tenth of the column's spread, as a share of the peak; columns beyond 5 % "
        "must be named in a note of `compress`."
    )
