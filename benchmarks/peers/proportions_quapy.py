"""Are class proportions of `ClassProportions` at least as accurate as those of QuaPy's quantifiers?

Peers: PACC, EMQ (calibrated and not), KDEyML and KDEyCS, with the same classifier and on the same samples of QuaPy's protocols, in
its environment (`quapy_worker.py`); and QuaPy's own tests with our quantifier (`quapy_suite_worker.py`). Goals: an error at most
that of the best peer for every data set, classifier and protocol; all tests that apply pass.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, python_of, table, verdict
from benchmarks._lib.remote import is_installed, omitted, output
from reduset.proportions.quapy_adapter import ClassProportionsQuantifier

TITLE = "Class proportions against QuaPy"
SOURCES = ("proportions",)

PROTOCOLS = ("grid", "uniform", "natural")
OURS, NO_CLASSIFIER, LINEAR = "reduset", "none", "logistic regression"
EQUAL = 1.005  # largest ratio of errors that counts as equal
FULL = {
    "sets": ["raetsch_banana", "raetsch_image", "raetsch_waveform", "raetsch_diabetes", "german_numer", "svmguide1", "splice",
             "pendigits"],
    "samples": 100, "splits": 3, "splits_of_few": 10, "classifiers": [LINEAR, "SVM"],
}  # fmt: skip
QUICK = {"sets": ["raetsch_diabetes"], "samples": 5, "splits": 1, "splits_of_few": 1, "classifiers": [LINEAR]}

Row = dict[str, Any]  # a data set, a method, a classifier, and the errors and seconds


def measure(quick: bool) -> dict[str, Any]:
    if quick and not is_installed("quapy"):
        return {"summary": [["mean absolute error without QuaPy", f"{alone():.3f}", "", ""]], "details": omitted("quapy").strip()}
    first, *found = lines("quapy_worker.py", str(data_folder()), json.dumps(QUICK if quick else FULL))
    tests = [] if quick else lines("quapy_suite_worker.py")
    details = text_of(found, first["versions"]["quapy"]) + ("" if quick else text_of_tests(tests))
    return {"summary": rows_of(found, tests), "details": details}


def lines(script: str, *arguments: str) -> list[Row]:
    return list(map(json.loads, output(python_of("quapy"), script, *arguments).splitlines()))


def alone() -> float:
    """The error of ours on a sample with other proportions, without QuaPy."""
    with np.load(data_folder() / "raetsch_diabetes.npz") as file:
        X, y = file["X"], (file["y"] > 0).astype(int)
    sample = np.concatenate([np.flatnonzero(y[300:])[:30], np.flatnonzero(1 - y[300:])[:70]]) + 300
    found = ClassProportionsQuantifier(random_state=0).fit(X[:300], y[:300]).predict(X[sample])
    return float(np.abs(found - [0.7, 0.3]).mean())


def ratios(row: Row, rows: list[Row]) -> list[float]:
    """For each protocol, the error relative to that of the best peer on the same data set with the same classifier.

    Methods without a classifier are compared with peers with logistic regression.
    """
    classifier = LINEAR if row["classifier"] == NO_CLASSIFIER else row["classifier"]
    peers = [each for each in rows if each["set"] == row["set"] and each["classifier"] == classifier
             and OURS not in each["method"] and "failed" not in each]  # fmt: skip
    return [row[protocol] / min(each[protocol] for each in peers) for protocol in PROTOCOLS]


def rows_of(found: list[Row], tests: list[Row]) -> list[list[str]]:
    ours = np.array([ratios(row, found) for row in found if row["method"] == OURS])
    met = int(np.sum(ours.max(axis=1) <= EQUAL))
    cases = [
        ["error at most that of the best peer in all protocols, cases", f"{met} of {len(ours)}", "all", verdict(met, len(ours))]
    ]
    cases += [
        [f"error relative to the best peer, {protocol}: median, largest", f"{np.median(values):.2f}, {values.max():.2f}", "", ""]
        for protocol, values in zip(PROTOCOLS, ours.T, strict=True)
    ]
    if tests:
        passed, failed = (sum(row["verdict"].startswith(kind) for row in tests) for kind in ("passed", "failed"))
        cases.append(["QuaPy's tests passed, of those that apply", f"{passed} of {passed + failed}", "all", verdict(0, failed)])
    return cases


def text_of(found: list[Row], version: str) -> str:
    head = ["method", "classifier"]
    for protocol in PROTOCOLS:
        head += [f"{protocol}: error × 1000", "relative to the best peer"]
    head += ["fit", "a sample", "at most the best of each"]
    parts = [TEXT.format(version=version)]
    for name in dict.fromkeys(row["set"] for row in found):
        own = [row for row in found if row["set"] == name]
        lines = table(head, [line_of(row, found) for row in own])
        parts.append(f"*{name}, {own[0]['rows']:,} training rows, {own[0]['splits']} splits*\n\n{lines}")
    return "\n\n".join(parts)


TEXT = """\
Samples of 100 rows by QuaPy's protocols: prevalences on a grid (two classes: 21 steps; ten classes: 0, ⅓, ⅔, 1), uniform on the
simplex, and natural. Columns are standardised, rows are split at random several times. Errors are means of absolute errors over
classes, samples and splits, × 1000, and relative to the best peer of the column with the same classifier; `reduset` without a
classifier is compared with peers with logistic regression. QuaPy {version}, default parameters."""


def line_of(row: Row, rows: list[Row]) -> list[str]:
    if "failed" in row:
        return [row["method"], row["classifier"], *[""] * 6, f"failed: {row['failed']}", "", ""]
    relative = ratios(row, rows)
    errors = [f"{1e3 * row[protocol]:.2f}" for protocol in PROTOCOLS]
    cells = [cell for error, ratio in zip(errors, relative, strict=True) for cell in (error, f"{ratio:.2f}")]
    met = verdict(EQUAL, max(relative)) if row["method"] == OURS else ""
    return [row["method"], row["classifier"], *cells, f"{row['fit']:.1f} s", f"{1e3 * row['uniform seconds']:.1f} ms", met]


def text_of_tests(tests: list[Row]) -> str:
    counts = Counter(row["verdict"].partition(":")[0] for row in tests)
    rows = [[name if name in ("passed", "failed") else f"not applicable: {name}", count] for name, count in counts.most_common()]
    failed = [
        f"`{row['test']}` ({row['verdict'].removeprefix('failed: ')})" for row in tests if row["verdict"].startswith("failed")
    ]
    return (
        "\n\nQuaPy's own tests, with our quantifier in place of theirs. It gets the classifier of theirs, and no other option.\n\n"
        + table(["result", "tests"], rows)
        + (f"\n\nFailed: {', '.join(failed)}." if failed else "")
    )
