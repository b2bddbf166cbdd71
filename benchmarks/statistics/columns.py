"""Columns one by one: the marginal densities after `reduset compress` and `reduset sketch` by default, for tables in mixed units.

Each table goes through the command as a file, without options. The density of each column, of all rows and of the result, is then
estimated again: Gaussian kernels with a bandwidth of a tenth of its spread, on a grid of five points a bandwidth. Goal: `compress`
names in a note exactly the columns whose densities differ by more than 5 % of the peak.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, table
from reduset import Gaussian, KernelMean, Model, bandwidth
from reduset import io as files
from reduset.cli.entry import run as command

TITLE = "Columns one by one: tables in mixed units, by default"
SOURCES = ("sketching", "compression/resolution.py", "compression/searches.py", "model/marginals.py",
           "bandwidth/rules.py", "io/channels.py")  # fmt: skip

MOST = 0.05  # of a column's peak
SIZE = 1000  # rows of a sketch, equal to the atoms of a model
MOST_POINTS, TAIL = 4000, 1e-3  # of the grid; the quantile at which it ends
QUICK_SETS = ("australian",)


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
    """The largest difference of two densities along a column, relative to the peak of the density of all rows."""
    width = 0.1 * float(bandwidth.column_scales(x[:, None])[0])
    low, high = np.quantile(x, [TAIL, 1 - TAIL])
    points = int(min(MOST_POINTS, 5 * (high - low + 6 * width) / width))
    grid = np.linspace(low - 3 * width, high + 3 * width, points)[:, None]
    p = KernelMean.from_samples(x[:, None], Gaussian(width))(grid, "double")
    q = KernelMean(y[:, None], weights, Gaussian(width))(grid, "double")
    return float(np.abs(p - q).max() / p.max())


def _compressed(X: np.ndarray, names: list[str], suffix: str) -> tuple[dict[str, Any], np.ndarray, np.ndarray, float]:
    """The command's JSON output, the atoms and their weights, and the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "rows.parquet", Path(folder) / f"small{suffix}"
        files.write_rows(source, names, X)
        printed = io.StringIO()
        start = time.perf_counter()
        with redirect_stdout(printed):
            if suffix == ".npz":
                command(["compress", str(source), "-o", str(target), "--json"])
            else:
                command(["sketch", str(source), "--size", str(min(SIZE, len(X) - 1)), "-o", str(target), "--json"])
        seconds = time.perf_counter() - start
        if suffix == ".npz":
            mean = Model.load(target).mean
            return json.loads(printed.getvalue()), np.asarray(mean.atoms), mean.weights, seconds
        few = files.read(target, weight_column="weight")
        return json.loads(printed.getvalue()), few.values, few.weights / few.weights.sum(), seconds


def _named(marginals: dict[str, float], note: str, silent: list[str]) -> str:
    """Whether exactly the columns beyond the limit are named in a note."""
    if not marginals:
        return "–"
    return "yes" if not silent and bool(note) == any(each > MOST for each in marginals.values()) else f"NOT {silent}"


def measure(quick: bool) -> dict[str, Any]:
    """Both kinds of output for each table."""
    lines, worst, beyond, all_named = [], {"model": 0.0, "rows": 0.0}, {"model": 0, "rows": 0}, True
    for title, X in _tables().items():
        names = ["income", "age"] if X.shape[1] == 2 else [f"x{k + 1}" for k in range(X.shape[1])]
        for suffix, kind in () if quick and title not in QUICK_SETS else ((".npz", "model"), (".csv", "rows")):
            printed, atoms, weights, seconds = _compressed(X, names, suffix)
            off = np.array([_difference(X[:, k], atoms[:, k], weights) for k in range(X.shape[1])])
            note = " ".join(text for text in printed["notes"] if text.startswith("taken alone"))
            far = [name for name, each in zip(names, off, strict=True) if each > MOST]
            marginals = printed.get("marginals", {})  # a sketch names no columns
            silent = [name for name in far if marginals.get(name, 1.0) <= MOST]
            named = _named(marginals, note, silent)
            worst[kind], beyond[kind] = max(worst[kind], float(off.max())), beyond[kind] + len(far)
            all_named &= not named.startswith("NOT")
            lines.append(
                [
                    f"{title}, {len(X):,}×{X.shape[1]}",
                    f"{kind}, {printed['size']:,}",
                    "not reached" if printed["resolution"] is None else f"{printed['resolution']:.3g}",
                    f"{100 * printed['relative_error']:.2g} %",
                    f"{100 * np.median(off):.2g} %",
                    f"{100 * off.max():.2g} % ({names[int(off.argmax())]})",
                    f"{len(far)} of {len(names)}",
                    named,
                    f"{seconds:.1f} s",
                ]
            )
    head = ["table", "written", "resolution", "error", "difference of a column, median", "largest", f"beyond {MOST:.0%}", "named"]
    details = table([*head, "time"], lines) + (
        "\n\nThe resolution is in interquartile ranges. The difference of a column is the largest between its density in the "
        "result "
        "and in all rows, both at a tenth of its spread, relative to the peak. A note of `compress` must name the columns beyond 5 "
        "%."
    )
    sizes = f"{100 * worst['model']:.2g} %, {100 * worst['rows']:.2g} %"
    summary = [
        ["columns beyond 5 %: model, sketch", f"{beyond['model']}, {beyond['rows']}", "", ""],
        ["largest difference: model, sketch", sizes, "", ""],
        [
            "notes name exactly these columns",
            "in all tables" if all_named else "not in all tables",
            "all",
            "yes" if all_named else "NO",
        ],
    ]
    return {"summary": summary, "details": details}
