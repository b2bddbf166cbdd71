"""Run QuaPy's quantifiers and ours on the same samples of its protocols, in its environment: `quapy_worker.py DATA OPTIONS`.

OPTIONS is JSON (see `proportions_quapy`). It prints one JSON object per method: the mean absolute error over splits, samples and
classes, and seconds to fit and to predict. Rows are split at random several times, the same for all methods: on one split of a few
hundred rows, the best of five peers is 10 to 20 % below its own mean by chance.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import quapy
from quapy.data import LabelledCollection
from quapy.method.aggregative import EMQ, PACC, KDEyCS, KDEyML
from quapy.protocol import APP, NPP, UPP
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from reduset.proportions.quapy_adapter import ClassProportionsQuantifier as Ours

ROWS = 100  # of a sample
GRID = {2: (21, 3), 10: (4, 1)}  # classes: prevalences of each on the grid, repetitions
FEW_ROWS = 1000  # training rows, below which there are more splits
CLASSIFIERS = {  # the default of QuaPy, and a strong one
    "logistic regression": lambda: LogisticRegression(max_iter=2000),
    "SVM": lambda: CalibratedClassifierCV(SVC(C=10.0), ensemble=False, cv=3),
}


def methods(classifiers):
    yield "reduset", "none", Ours()
    yield "reduset, matching", "none", Ours(method="matching")
    for name in classifiers:
        make = CLASSIFIERS[name]
        yield "PACC", name, PACC(make())
        yield "EMQ", name, EMQ(make())
        yield "EMQ, calibrated", name, EMQ.EMQ_BCTS(make())
        yield "KDEyML", name, KDEyML(make(), random_state=0)
        yield "KDEyCS", name, KDEyCS(make())
        yield "reduset", name, Ours(make())
        yield "reduset, matching", name, Ours(make(), method="matching")


def load(folder: str, name: str, split: int):
    """Rows and labels for training, and for samples."""
    with np.load(Path(folder) / f"{name}.npz") as f:
        whole = "X" in f
        X, y = (f[key] if whole else np.concatenate([f[f"{key}_train"], f[f"{key}_test"]]) for key in ("X", "y"))
        some = len(y) // 2 if whole else len(f["y_train"])
    y = np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(split).permutation(len(y))
    X = np.asarray(X, np.float64)[order]
    X = StandardScaler().fit(X[:some]).transform(X)
    return X[:some], y[order[:some]], X[some:], y[order[some:]]


def measure(method, X, y, samples) -> dict:
    """Mean absolute errors and seconds, or the reason of a failure."""
    begun = time.perf_counter()
    try:
        method.fit(X, y)
    except RuntimeError as error:
        return {"failed": str(error).split(":")[0]}
    row = {"fit": time.perf_counter() - begun}
    for protocol, drawn in samples.items():
        begun = time.perf_counter()
        row[protocol] = float(np.mean([np.abs(method.predict(sample) - truth).mean() for sample, truth in drawn]))
        row[f"{protocol} seconds"] = (time.perf_counter() - begun) / len(drawn)
    return row


def protocols(test: LabelledCollection, count: int) -> dict:
    """The samples of each protocol, with their prevalences."""
    prevalences, repeats = GRID[test.n_classes]
    drawn = {
        "grid": APP(test, ROWS, n_prevalences=prevalences, repeats=repeats, random_state=0),
        "uniform": UPP(test, ROWS, repeats=count, random_state=0),
        "natural": NPP(test, ROWS, repeats=count, random_state=0),
    }
    return {protocol: list(each()) for protocol, each in drawn.items()}


def average(rows: list[dict]) -> dict:
    """The means over splits; a failure on one split is a failure."""
    failed = next((row for row in rows if "failed" in row), None)
    return failed or {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def main(folder: str, options: str) -> None:
    warnings.simplefilter("ignore")
    options = json.loads(options)
    quapy.environ["SAMPLE_SIZE"] = ROWS
    print(json.dumps({"versions": {name: version(name) for name in ("quapy", "scikit-learn", "numpy")}}), flush=True)
    Ours().fit(np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2)  # compiles
    for name in options["sets"]:
        count = len(load(folder, name, 0)[1])
        splits = options["splits_of_few" if count < FEW_ROWS else "splits"]
        measured: dict[tuple[str, str], list[dict]] = {}
        for split in range(splits):
            X, y, Q, z = load(folder, name, split)
            samples = protocols(LabelledCollection(Q, z), options["samples"])
            for method, classifier, quantifier in methods(options["classifiers"]):
                measured.setdefault((method, classifier), []).append(measure(quantifier, X, y, samples))
        for (method, classifier), rows in measured.items():
            row = {"set": name, "rows": count, "splits": splits, "method": method, "classifier": classifier}
            print(json.dumps(row | average(rows)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
