"""Runs in the environment of QuaPy: its quantifiers and ours, on the same samples of its artificial-prevalence protocol.

Prints one JSON object a line for each method: the mean absolute error over samples and classes, and seconds to fit and to predict.
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
from quapy.method.aggregative import EMQ, PACC, KDEyCS, KDEyHD, KDEyML
from quapy.protocol import APP, UPP
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from quapy_quantifier import MeanMatching

ROWS, PREVALENCES, UNIFORM = 100, 4, 200  # rows a sample; points on the grid of each class (220 samples of 10 classes); samples


def classifiers():
    """The one that QuaPy takes if nothing is said, and a strong one."""
    yield "logistic regression", lambda: LogisticRegression(max_iter=2000)
    yield "SVM", lambda: CalibratedClassifierCV(SVC(C=10.0), ensemble=False, cv=3)


def methods():
    yield "reduset", "none", MeanMatching()
    yield "reduset, norm='kernel'", "none", MeanMatching(norm="kernel")
    for name, make in classifiers():
        yield "PACC", name, PACC(make())
        yield "EMQ", name, EMQ(make())
        yield "EMQ, calibrated", name, EMQ.EMQ_BCTS(make())
        yield "KDEyML", name, KDEyML(make(), random_state=0)
        yield "KDEyCS", name, KDEyCS(make())
        yield "reduset, classifier", name, MeanMatching(classifier=make())
    yield "KDEyHD", "logistic regression", KDEyHD(LogisticRegression(max_iter=2000), random_state=0)


def main(folder: str) -> None:
    warnings.simplefilter("ignore")
    quapy.environ["SAMPLE_SIZE"] = ROWS
    with np.load(Path(folder) / "pendigits.npz") as f:
        X = np.concatenate([f["X_train"], f["X_test"]]).astype(np.float64)
        y = np.concatenate([f["y_train"], f["y_test"]]).astype(np.int64)
        trained = len(f["y_train"])
    order = np.random.default_rng(0).permutation(len(y))
    splits = {"rows at random": order, "other writers": np.arange(len(y))}
    print(json.dumps({"versions": {name: version(name) for name in ("quapy", "scikit-learn", "numpy")}}), flush=True)
    for split, rows in splits.items():
        some, rest = rows[:trained], rows[trained:]
        scaler = make_pipeline(StandardScaler()).fit(X[some])
        test = LabelledCollection(scaler.transform(X[rest]), y[rest])
        protocols = {
            "grid": APP(test, ROWS, n_prevalences=PREVALENCES, repeats=1, random_state=0),
            "uniform": UPP(test, ROWS, repeats=UNIFORM, random_state=0),
        }
        samples = {name: list(protocol()) for name, protocol in protocols.items()}
        for name, classifier, method in methods():
            begun = time.perf_counter()
            method.fit(scaler.transform(X[some]), y[some])
            fitted = time.perf_counter() - begun
            row = {"split": split, "method": name, "classifier": classifier, "fit": fitted}
            for protocol, drawn in samples.items():
                begun = time.perf_counter()
                row[protocol] = float(np.mean([np.abs(method.predict(sample) - truth).mean() for sample, truth in drawn]))
                row[f"{protocol} seconds"] = (time.perf_counter() - begun) / len(drawn)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
