"""Errors of Shapley values with backgrounds of shap and of this library, in the environment of shap.

`background_worker.py DATA tables|"held out" SIZES` prints one JSON object per table and model. SIZES is a JSON object: the number
of tables, and the rows of the whole background. The model is evaluated once for all pairs of an explained row and a background row,
so that any rows with any weights need no further evaluation. Without shap, its backgrounds are omitted.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from math import factorial
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_blobs,
    make_friedman1,
    make_moons,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reduset.explain import background

if find_spec("shap"):
    import shap

EXPLAINED, SIZE, MORE = 12, 100, 300
REPEATS = 20  # of random rows
MAX_EXACT_COLUMNS, ORDERS = 8, 12  # beyond, random orders of the columns and their reverses, the same for all backgrounds
ROWS_A_CALL = 400_000


def load(folder: Path, name: str):
    with np.load(folder / f"{name}.npz") as f:
        return {key: f[key] for key in f.files}


def held_out(folder: Path):
    """Tables that were not used to choose anything: six for the first kernel, and seven for the one with whole rows."""
    first = ("raetsch_banana", "raetsch_heart", "raetsch_ringnorm", "raetsch_twonorm", "australian", "breast_cancer_wisc")
    for name in (*first, "raetsch_thyroid"):
        f = load(folder, name)
        yield name.removeprefix("raetsch_"), f["X"].astype(np.float64), (f["y"] == f["y"].max()).astype(int), False
    f, data = load(folder, "usps"), load_digits()
    for name, X, y in (("usps", f["X_train"].astype(np.float64), f["y_train"]), ("digits", data.data, data.target)):
        yield f"{name}, 10 components", PCA(10, random_state=0).fit_transform(X), (y == 3).astype(int), False
    data = load_wine()
    yield "wine", data.data, (data.target == 1).astype(int), False
    X, y = make_friedman1(3000, 10, noise=1.0, random_state=0)
    yield "friedman1", X, y / y.std(), True
    X, y = make_moons(3000, noise=0.2, random_state=0)
    yield "moons", X, y, False
    X, y = make_blobs(3000, 8, centers=10, cluster_std=2.0, random_state=0)
    yield "blobs", X, (y < 5).astype(int), False


def tables(folder: Path):
    """(name, X, y, whether y is continuous)"""
    rng = np.random.default_rng(5)
    data = load_diabetes(scaled=False)
    yield "diabetes", data.data, data.target / data.target.std(), True
    data = load_breast_cancer()
    yield "breast cancer", data.data[:, :10], data.target, False
    X = load(folder, "big_flights")["X"]
    X = X[rng.choice(len(X), 8000, replace=False)].astype(np.float64)
    yield "flights", X[:, [0, 1, 2, 4, 5, 6]], np.clip(X[:, 3], -30, 120) / 35, True
    X = load(folder, "cyto_itn15")["X"].reshape(-1, 8)
    X = X[rng.choice(len(X), 8000, replace=False)].astype(np.float64)
    yield "cytometry", X[:, :7], X[:, 7] / X[:, 7].std(), True
    for name in ("german", "image", "diabetes", "waveform"):
        f = load(folder, f"raetsch_{name}")
        yield "pima" if name == "diabetes" else name, f["X"], (f["y"] == 1).astype(int), False
    f = load(folder, "svmguide1")
    yield "svmguide1", np.concatenate([f["X_train"], f["X_test"]]), np.concatenate([f["y_train"], f["y_test"]]).astype(int), False
    f = load(folder, "pendigits")
    yield "pendigits", f["X_train"].astype(np.float64), (f["y_train"] == 3).astype(int), False


def models(X, y, quantity):
    """(name, function of rows)"""
    if quantity:
        yield "trees", HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=15, random_state=0).fit(X, y).predict
        network = MLPRegressor(hidden_layer_sizes=(32,), max_iter=150, random_state=0)
        yield "network", make_pipeline(StandardScaler(), network).fit(X, y).predict
        return
    trees = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=15, random_state=0).fit(X, y)
    yield "trees", lambda rows: trees.predict_proba(rows)[:, 1]
    network = MLPClassifier(hidden_layer_sizes=(32,), max_iter=150, random_state=0)
    fitted = make_pipeline(StandardScaler(), network).fit(X, y)
    yield "network", lambda rows: fitted.predict_proba(rows)[:, 1]


def plan(d, rng):
    """(sets, d) which columns are taken from x, and (d, sets) the coefficient of each set in each Shapley value."""
    if d <= MAX_EXACT_COLUMNS:
        sets = ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(bool)
        size = sets.sum(axis=1)
        gain = np.array([factorial(s - 1) * factorial(d - s) / factorial(d) if s else 0.0 for s in size])
        loss = np.array([factorial(s) * factorial(d - s - 1) / factorial(d) if s < d else 0.0 for s in size])
        return sets, np.where(sets.T, gain, -loss)
    known, terms = {}, []
    for _ in range(ORDERS):
        drawn = rng.permutation(d)
        for order in (drawn, drawn[::-1]):
            held = np.zeros(d, bool)
            before = known.setdefault(held.tobytes(), len(known))
            for j in order:
                held[j] = True
                after = known.setdefault(held.tobytes(), len(known))
                terms += [(j, after, 1.0), (j, before, -1.0)]
                before = after
    counts = np.zeros((d, len(known)))
    for j, at, sign in terms:
        counts[j, at] += sign / (2 * ORDERS)
    return np.array([np.frombuffer(key, bool) for key in known]), counts


def values(model, x, rows, sets, counts):
    """(rows, d) Shapley values of x with each row as the only background row."""
    found = np.empty((len(rows), len(counts)))
    step = max(1, ROWS_A_CALL // len(sets))
    for a in range(0, len(rows), step):
        part = rows[a : a + step]
        filled = np.where(sets, x, part[:, None, :]).reshape(-1, rows.shape[1])
        found[a : a + step] = model(filled).reshape(len(part), len(sets)) @ counts.T
    return found


def by_kmeans(X):
    """shap.kmeans of the columns as they are, and of standardised ones, scaled back."""
    if not find_spec("shap"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "kmeans", shap.kmeans(X, SIZE)
        spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        scaled = shap.kmeans(X / spread, SIZE)
        scaled.data = scaled.data * spread
        yield "kmeans, standardised", scaled


def measured(model, x, X, sets, counts):
    """The mean absolute difference from the Shapley values with all of X, for every background."""
    each = np.stack([values(model, row, X, sets, counts) for row in x])
    whole, rng = each.mean(axis=1), np.random.default_rng(1)

    def error(rows, weights):
        return float(np.abs(np.einsum("b,xbd->xd", weights, each[:, rows]) - whole).mean())

    def random(size):
        return float(np.mean([error(rng.integers(0, len(X), size), np.full(size, 1 / size)) for _ in range(REPEATS)]))

    small, equal = background(X, SIZE, rng=0), background(X, SIZE, weights="equal", rng=0)
    found = {"random": random(SIZE), "random, more": random(MORE)}
    for name, data in by_kmeans(X):
        by = np.stack([data.weights @ values(model, row, data.data, sets, counts) for row in x])
        found[name] = float(np.abs(by - whole).mean())
    found["reduset"] = error(small.indices, small.weights)
    found["reduset, equal"] = error(equal.indices, equal.weights)
    found["size"] = float(np.abs(whole).mean())
    found["worth"] = small.random_rows
    return found


def accepted(model, x, X, sets, counts):
    """The largest difference between KernelExplainer with our background and our own sums."""
    small = background(X, SIZE, rng=0)
    theirs = shap.KernelExplainer(model, small.to_shap()).shap_values(x[:3], silent=True)
    ours = np.stack([small.weights @ values(model, row, small.rows, sets, counts) for row in x[:3]])
    return float(np.abs(theirs - ours).max())


def main(folder: str, which: str, sizes: str) -> None:
    warnings.simplefilter("ignore")
    sizes = json.loads(sizes)
    packages = [name for name in ("shap", "scikit-learn", "numpy") if name != "shap" or find_spec("shap")]
    print(json.dumps({"versions": {name: version(name) for name in packages}}), flush=True)
    chosen = (held_out if which == "held out" else tables)(Path(folder))
    for name, X, y, quantity in islice(chosen, sizes["tables"]):
        rng = np.random.default_rng(0)
        order = rng.permutation(len(X))
        X, y = X[order], y[order]
        x, train, answers = X[:EXPLAINED], X[60:], y[60:]
        sets, counts = plan(X.shape[1], rng)
        for kind, model in models(train, answers, quantity):
            rows = train[: sizes["background"]]
            line = {"table": name, "model": kind, "rows": len(rows), "columns": X.shape[1]} | measured(model, x, rows, sets, counts)
            if name == "flights" and find_spec("shap"):
                line["accepted"] = accepted(model, x, rows, sets, counts)
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
