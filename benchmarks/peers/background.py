"""Are Shapley values by 100 rows of `reduset.explain.background` nearer to the exact ones than those by as many other rows?

Peers: `shap.kmeans`, on the columns as they are and on standardised ones, and random rows; all in the environment of shap
(`background_worker.py`). Goal, for each table and model: an error not above that of `shap.kmeans`, and at least 3 times fewer model
calls than random rows with the same error.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, python_of, table, verdict
from benchmarks._lib.remote import is_installed, omitted, output

TITLE = "Backgrounds for explanations"
SOURCES = ("explain",)

FEWER = 3.0  # times as many random rows for the same error
METHODS = {
    "random": "random rows",
    "kmeans": "`shap.kmeans`",
    "kmeans, standardised": "`shap.kmeans`, standardised",
    "reduset, equal": "reduset, equal weights",
    "reduset": "reduset",
}
FULL, QUICK = {"tables": 100, "background": 2000}, {"tables": 1, "background": 200}


def measure(quick: bool) -> dict[str, Any]:
    return compared("tables", quick)


def compared(which: str, quick: bool) -> dict[str, Any]:
    """Summary and details for the tables of the worker with this name."""
    python = sys.executable if quick and not is_installed("shap") else python_of("shap")
    printed = output(python, "background_worker.py", str(data_folder()), which, json.dumps(QUICK if quick else FULL))
    first, *lines = map(json.loads, printed.splitlines())
    with_shap = "kmeans" in lines[0]
    calls = [(line["random"] / line["reduset"]) ** 2 for line in lines]
    summary = [_count(f"models with at least {FEWER:g} times fewer calls than random rows", calls, FEWER)]
    if with_shap:
        ratios = [line["kmeans"] / line["reduset"] for line in lines]
        summary.insert(0, _count("models with an error at most that of `shap.kmeans`", ratios, 1.0))
    others = [key for key in METHODS if key in lines[0] and not key.startswith("reduset")]
    summary += [[f"error relative to {METHODS[key]}, geometric mean", f"{_relative(lines, key):.2f}", "", ""] for key in others]
    details = [_text(lines), _table(lines, with_shap)]
    agreement = max((line["accepted"] for line in lines if "accepted" in line), default=None)
    if agreement is not None:
        details.append(f"`KernelExplainer` with `to_shap()` gives the same values up to {agreement:.0e}.")
    if with_shap:
        details.append(f"shap {first['versions']['shap']}.")
    return {"summary": summary, "details": "\n\n".join(details) + omitted("shap") * quick}


def _count(what: str, values: list[float], least: float) -> list[str]:
    met = sum(value >= least for value in values)
    return [what, f"{met} of {len(values)}", f"{len(values)}", verdict(met, len(values))]


def _relative(lines: list[dict[str, Any]], key: str) -> float:
    return float(np.exp(np.mean([np.log(line["reduset"] / line[key]) for line in lines])))


def _text(lines: list[dict[str, Any]]) -> str:
    more = np.mean([line["random, more"] / line["random"] for line in lines])
    return (
        "Interventional Shapley values of 12 rows with a background of 100 rows. The error is the mean absolute difference from "
        "the values with the whole background, in % of their mean absolute value. The whole background is up to 2,000 training "
        "rows. Up to 8 columns, all subsets of columns are evaluated; beyond, 12 random orders and their reverses, the same for "
        "all methods. `standardised` divides the columns by their standard deviations before k-means and multiplies the centres "
        "afterwards. Random rows are drawn independently, mean of 20 draws; their error falls as 1/√m (with 300 rows it is "
        f"{more:.2f} of that with 100; √⅓ = 0.58), so the squared ratio of errors is the ratio of model calls for the same error."
    )


def _table(lines: list[dict[str, Any]], with_shap: bool) -> str:
    keys = [key for key in METHODS if key in lines[0]]
    head = ["table", "model", *(METHODS[key] for key in keys)]
    head += ["relative to `shap.kmeans`", "to the better of the two", "at most `shap.kmeans`"] if with_shap else []
    head += ["fewer calls than random rows", f"at least {FEWER:g} times"]
    rows = []
    for line in lines:
        ours, calls = line["reduset"], (line["random"] / line["reduset"]) ** 2
        row = [f"{line['table']} {line['rows']:,}×{line['columns']}", line["model"]]
        row += [f"{100 * line[key] / line['size']:.2f}" for key in keys]
        if with_shap:
            better = min(line["kmeans"], line["kmeans, standardised"])
            row += [f"{ours / line['kmeans']:.2f}", f"{ours / better:.2f}", verdict(line["kmeans"], ours)]
        rows.append([*row, f"{calls:.1f}", verdict(calls, FEWER)])
    return table(head, rows)
