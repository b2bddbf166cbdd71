"""Backgrounds of explanations: Shapley values by 100 rows of ours, by `shap.kmeans` and by random rows, against those by 2,000."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np

from harness import data_folder, table, verdict

TITLE = "Backgrounds for explanations"

HERE = Path(__file__).resolve().parent
SHOWN = ("random", "kmeans", "kmeans, standardised", "reduset, equal", "reduset")
FEWER = 3.0  # times as many random rows as ours, for the same error


def shap_python() -> str:
    """The interpreter of the environment that shap is in."""
    python = os.environ.get("REDUSET_SHAP_PYTHON", str(HERE.parent / ".venv-shap" / "bin" / "python"))
    if not Path(python).exists():
        raise SystemExit(f"no environment of shap at {python}: run `make bench`, or set REDUSET_SHAP_PYTHON")
    return python


def run() -> str:
    return measured("tables")


def measured(which: str) -> str:
    """What the worker finds on the tables, or on those that are held out."""
    paths = [str(HERE.parent / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    process = subprocess.run(
        [shap_python(), str(HERE / "background_worker.py"), str(data_folder()), which],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}, capture_output=True, text=True,
    )  # fmt: skip
    if process.returncode:
        raise SystemExit(f"background_worker.py failed:\n{process.stderr[-2000:]}")
    first, *found = map(json.loads, process.stdout.splitlines())
    rows, below, fewer = [], 0, 0
    for line in found:
        ours, size = line["reduset"], line["size"]
        least = min(line["kmeans"], line["kmeans, standardised"])
        times = (line["random"] / ours) ** 2
        below += ours <= line["kmeans"]
        fewer += times >= FEWER
        rows.append(
            [
                f"{line['table']} {line['rows']:,}×{line['columns']}",
                line["model"],
                *(
                    f"{100 * line[key] / size:.2f}"
                    for key in ("random", "kmeans", "kmeans, standardised", "reduset, equal", "reduset")
                ),
                f"{ours / line['kmeans']:.2f}",
                f"{ours / least:.2f}",
                verdict(line["kmeans"], ours),
                f"{times:.1f}",
                verdict(times, FEWER),
            ]
        )
    head = ["table", "model", "random", "shap.kmeans", "the same, standardised", "reduset, equal weights", "reduset",
            "of shap.kmeans's", "of the better's", "at most shap.kmeans's?", "× fewer calls than random", "3 ×?"]  # fmt: skip

    def typical(key: str) -> float:
        return float(np.exp(np.mean([np.log(line["reduset"] / line[key]) for line in found])))

    against = [line["random, more"] / line["random"] for line in found]
    text = (
        "Shapley values (interventional) of 12 rows by a background of 100 rows, the mean absolute difference to those by the "
        "whole background, in % of their mean size. The whole are 2,000 rows of the training set, or all where there are fewer. "
        "Every set of columns up to 8 of them, beyond 12 random orders and their reverses, the same for all. `shap.kmeans` is "
        "shap's own; 'standardised' is the same of columns divided by their standard deviations, brought back. Random rows are "
        "drawn independently, the mean of 20 draws; their error falls as 1/√m (with 300 in place of 100 it was "
        f"{np.mean(against):.2f} of it, √⅓ = 0.58), so that the squared ratio says how many more of them, and so of model calls, "
        "the same error takes.\n\n"
    )
    agrees = max((line["accepted"] for line in found if "accepted" in line), default=None)
    said = (
        f"\n\nAt most `shap.kmeans`'s error in {below} of {len(found)} cells, three times fewer calls than random rows in {fewer}. "
        f"Geometric means: {typical('kmeans'):.2f} of `shap.kmeans`, {typical('kmeans, standardised'):.2f} of the same "
        f"standardised, {typical('random'):.2f} of random rows. "
        + (f"`KernelExplainer` with `to_shap()` agrees with these sums to {agrees:.0e}. " if agrees is not None else "")
        + f"shap {first['versions']['shap']}."
    )
    return text + table(head, rows) + said
