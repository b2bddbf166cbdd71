"""The data sets of the comparison with peers.

Training and test rows together, as float64. Columns are standardised and constant ones dropped. Images of digits keep their grey
values in [0, 1]; otherwise a border pixel that is nonzero in one image would dominate the distances. Larger data sets are reduced
to the same `MOST_ROWS` random rows for all methods.
"""

from __future__ import annotations

import numpy as np

from benchmarks._lib import data_folder

MOST_ROWS = 100_000

RAETSCH = ("banana", "breast_cancer", "diabetes", "german", "heart", "image", "ringnorm", "thyroid", "twonorm", "waveform")
NAMES = (
    *(f"raetsch_{name}" for name in RAETSCH),
    *("iris", "german_numer", "pendigits", "usps", "mnist_digits0to4", "cifar10_catdog_grey", "svmguide1", "w1a", "splice", "a1a"),
    *("australian", "breast_cancer_wisc", "liver_disorders", "cyto_itn15", "images_std_china", "big_flights"),
)
DIGITS = {"usps": 1.0, "mnist_digits0to4": 255.0}  # the value of a white pixel


def load(name: str) -> np.ndarray:
    """(n, d) float64, ready to use."""
    X = _rows(name)
    if len(X) > MOST_ROWS:
        X = X[np.random.default_rng(0).choice(len(X), MOST_ROWS, replace=False)]
    X = X.astype(np.float64)
    if name in DIGITS:
        return X / DIGITS[name]
    X = X[:, np.ptp(X, axis=0) > 0]
    return np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))


def _rows(name: str) -> np.ndarray:
    if name == "images_std_china":
        photograph = _arrays("images_std")["china"]
        row, column = np.mgrid[: photograph.shape[0], : photograph.shape[1]]
        return np.column_stack([row.ravel(), column.ravel(), photograph.reshape(-1, 3)])
    arrays = _arrays(name)
    if name == "big_flights":
        return arrays["X"][:, :5]  # without the codes of airports in the last two columns
    if name == "cyto_itn15":
        return arrays["X"].reshape(-1, arrays["X"].shape[-1])  # all patients
    X = arrays["X"] if "X" in arrays else np.concatenate([arrays["X_train"], arrays["X_test"]])
    return X.reshape(len(X), -1)


def _arrays(name: str) -> dict[str, np.ndarray]:
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as file:
        return {key: file[key] for key in file.files if key.startswith("X") or key == "china"}
