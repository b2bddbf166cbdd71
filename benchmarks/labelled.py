"""Labelled rows: models of 1 % of the rows, ours against random rows and k-means, on nine tables and two kinds of model."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification, make_friedman1
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from harness import data_folder, table
from reduset import compress_labelled

TITLE = "Models of 1 % of the rows"

SHARE, ROWS = 100, 30_000  # one row in so many; of the larger tables so many are taken
SEEDS = {"random": 10, "k-means by class": 3, "k-means, majority": 3, "reduset": 3}


def tables():
    """(name, X, y, whether y is a quantity), each of 10,000 rows and more"""
    rng = np.random.default_rng(5)

    def load(name, *keys):
        with np.load(data_folder() / f"{name}.npz") as f:
            return [f[key] for key in keys]

    X1, X2, y1, y2 = load("pendigits", "X_train", "X_test", "y_train", "y_test")
    yield "pendigits", np.concatenate([X1, X2]).astype(np.float64), np.concatenate([y1, y2]).astype(int), False
    (X,) = load("big_flights", "X")
    X = X[rng.choice(len(X), ROWS, replace=False)].astype(np.float64)
    yield "flights, late", X[:, [0, 1, 2, 4, 5, 6]], (X[:, 3] > 15).astype(int), False
    yield "flights, distance", X[:, [0, 2, 3, 5, 6]], X[:, 4], True
    X, group = load("cyto_itn15", "X", "patient_group")
    groups = np.repeat(np.unique(group, return_inverse=True)[1], X.shape[1])
    rows = rng.choice(len(groups), ROWS, replace=False)
    X = X.reshape(-1, 8)[rows].astype(np.float64)
    yield "cytometry, group", X, groups[rows], False
    yield "cytometry, channel", np.delete(X, 1, axis=1), X[:, 1], True
    X, y = load("mnist_digits0to4", "X_train", "y_train")
    yield "digits 0 to 4", PCA(30, random_state=0).fit_transform(X / 255.0), y.astype(int), False
    (image,) = load("images_std", "china")
    height, width, _ = image.shape
    down, across = np.mgrid[:height, :width]
    X = np.column_stack([down.ravel(), across.ravel(), image.reshape(-1, 3)]).astype(np.float64)
    X = X[rng.choice(len(X), ROWS, replace=False)]
    yield "pixels, blue", X[:, :4], X[:, 4], True
    X, y = make_friedman1(20_000, noise=1.0, random_state=0)
    yield "friedman1 (made)", X, y, True
    X, y = make_classification(
        20_000, n_features=12, n_informative=6, n_clusters_per_class=3, weights=[0.85], class_sep=1.0, random_state=0
    )
    yield "classes (made)", X, y, False


def random_rows(X, y, size, quantity, seed):
    rows = np.random.default_rng(seed).choice(len(X), size, replace=False)
    return X[rows], y[rows], np.full(size, len(X) / size)


def centres(X, y, size, quantity, seed):
    """Centres of each class, as many as its share says, with counts; of a quantity with it as a column more."""
    spread = X.std(axis=0)
    if quantity:
        columns = np.column_stack([X / spread, y / y.std()])
        found = KMeans(size, n_init=1, max_iter=50, random_state=seed).fit(columns)
        places = found.cluster_centers_
        return places[:, :-1] * spread, places[:, -1] * y.std(), np.bincount(found.labels_, minlength=size).astype(float)
    places, labels, weights = [], [], []
    for label in np.unique(y):
        own = X[y == label] / spread
        count = max(1, round(size * len(own) / len(X)))
        found = KMeans(count, n_init=1, max_iter=50, random_state=seed).fit(own)
        places.append(found.cluster_centers_ * spread)
        labels.append(np.full(count, label))
        weights.append(np.bincount(found.labels_, minlength=count))
    return np.concatenate(places), np.concatenate(labels), np.concatenate(weights).astype(float)


def majorities(X, y, size, quantity, seed):
    """Centres of all rows, with the label that most of theirs have, or with the mean of a quantity, and counts."""
    spread = X.std(axis=0)
    found = KMeans(size, n_init=1, max_iter=50, random_state=seed).fit(X / spread)
    counts = np.bincount(found.labels_, minlength=size).astype(float)
    if quantity:
        labels = np.bincount(found.labels_, y, size) / counts
    else:
        classes, of = np.unique(y, return_inverse=True)
        labels = classes[np.array([np.bincount(found.labels_, of == k, size) for k in range(len(classes))]).argmax(axis=0)]
    return found.cluster_centers_ * spread, labels, counts


def ours(X, y, size, quantity, seed):
    small = compress_labelled(X, y, size, task="regression" if quantity else "classes", rng=seed)
    return small.X, small.y, small.sample_weight


METHODS = dict(zip(SEEDS, (random_rows, centres, majorities, ours), strict=True))


def scores(part, X, y, quantity, seed):
    """(linear model, forest): R² on other rows, or the area under the ROC curve, of each class against the rest."""
    rows, labels, weights = part
    if not quantity and len(np.unique(labels)) == 1:  # a constant, whatever the model
        return [0.5, 0.5]
    scaler = StandardScaler().fit(rows, sample_weight=weights)
    linear = Ridge() if quantity else LogisticRegression(max_iter=500)
    forest = (RandomForestRegressor if quantity else RandomForestClassifier)(100, random_state=seed)
    found = []
    for model, before in ((linear, scaler.transform), (forest, lambda values: values)):
        model.fit(before(rows), labels, sample_weight=weights)
        if quantity:
            found.append(model.score(before(X), y))
            continue
        said = np.zeros((len(X), int(y.max()) + 1))
        said[:, model.classes_] = model.predict_proba(before(X))
        said /= said.sum(axis=1, keepdims=True)
        found.append(roc_auc_score(y, said[:, 1] if said.shape[1] == 2 else said, multi_class="ovr"))
    return found


def run() -> str:
    warnings.simplefilter("ignore")
    rows, won = [], {"random": [], "k-means by class": [], "k-means, majority": []}
    both = 0
    for name, X, y, quantity in tables():
        order = np.random.default_rng(1).permutation(len(X))
        X, y = X[order], y[order]
        cut = int(0.8 * len(X))
        train, other = (X[:cut], y[:cut]), (X[cut:], y[cut:])
        size = cut // SHARE
        whole = scores((*train, np.ones(cut)), *other, quantity, 0)
        found = {
            method: np.array([scores(make(*train, size, quantity, seed), *other, quantity, seed) for seed in range(SEEDS[method])])
            for method, make in METHODS.items()
        }
        means = {method: values.mean(axis=0) for method, values in found.items()}
        best = all((means["reduset"] > means[method]).all() for method in won)
        both += best
        for k, model in enumerate(("linear", "forest")):
            for method in won:
                won[method].append(bool(means["reduset"][k] > means[method][k]))
            deviation = found["random"][:, k].std(ddof=1)
            cells = [f"{means[method][k]:.4f}" for method in METHODS]
            cells[0] += f" ± {deviation:.4f}"
            rows.append(
                [f"{name} {cut:,}×{X.shape[1]}" if k == 0 else "", model, size if k == 0 else "", f"{whole[k]:.4f}", *cells]
            )
        print(*rows[-2:], sep="\n", flush=True)
    text = (
        "A linear model (logistic regression, ridge; columns standardised by the rows it is fitted to) and a random forest of 100 "
        "trees, fitted to 1 % of the rows with their weights, which sum to n, and scored on a fifth of all rows that was kept "
        "apart: R² of a quantity, the area under the ROC curve of classes (each against the rest). Means over 10 draws of random "
        "rows (± their standard deviation), 3 runs of k-means (one start each) and 3 of ours. 'By class': centres of each class, "
        "as many as its share says (of a quantity: of all rows with it as a column more); 'majority': centres of all rows with the "
        "commonest label, or the mean, of their rows; both with counts for weights.\n\n"
    )
    said = ", ".join(f"{sum(each)} of {len(each)} against {method}" for method, each in won.items())
    counted = (
        f"\n\nCells in which reduset is better: {said}. Tables on which both models are better than with any of the three: "
        f"{both} of {len(rows) // 2}."
    )
    return text + table(["table", "model", "rows", "all rows", *METHODS], rows) + counted
