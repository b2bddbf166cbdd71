"""SVMs to compress, small enough for the plain definitions."""

from functools import cache

import numpy as np
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM


@cache
def data(name):
    if name == "moons":
        return make_moons(160, noise=0.25, random_state=0)
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        return (X - X.mean(axis=0)) / X.std(axis=0), y
    if name == "blobs":
        X, y = make_blobs(200, centers=5, cluster_std=2.5, random_state=1)
        return X, np.array(["ant", "bee", "cat", "dog", "elk"])[y]
    X = np.random.default_rng(0).normal(size=(120, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]


@cache
def fitted(name):
    model, where = MACHINES[name]
    X, y = data(where)
    return model.fit(X, y)


MACHINES = {
    "SVC of two classes": (SVC(gamma=1.0), "moons"),
    "NuSVC of two classes": (NuSVC(nu=0.3), "moons"),
    "SVC of three classes": (SVC(gamma=0.3, decision_function_shape="ovo"), "iris"),
    "SVC of five named classes": (SVC(gamma=0.1, C=3.0), "blobs"),
    "SVC that breaks ties": (SVC(gamma=0.1, break_ties=True), "blobs"),
    "NuSVC of five classes": (NuSVC(nu=0.4, gamma=0.05, decision_function_shape="ovo"), "blobs"),
    "SVR": (SVR(gamma=0.4, C=5.0), "waves"),
    "NuSVR": (NuSVR(gamma="auto", C=2.0), "waves"),
    "OneClassSVM": (OneClassSVM(gamma=0.5, nu=0.4), "moons"),
}
CLASSIFIERS = [name for name in MACHINES if "SVC" in name]


def rows_of(name):
    return data(MACHINES[name][1])[0]


def queries(name, count=300):
    """Rows near the data and far from them."""
    X = rows_of(name)
    rng = np.random.default_rng(1)
    return np.concatenate([X[rng.integers(len(X), size=count)] + rng.normal(size=(count, X.shape[1])), 30.0 * X[:5]])


def values_of(model, Q):
    """Decision values of a machine of scikit-learn; the prediction, of a regression."""
    return model.predict(Q) if isinstance(model, SVR | NuSVR) else model.decision_function(Q)
