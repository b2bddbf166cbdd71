"""Bandwidths, kernel widths and penalties of features of bags by validation, which several benchmarks use.

A grid search of scikit-learn on a split of the bags. The pipeline caches the vectors of the training bags, so they are computed
once for each bandwidth. Kernel widths are multiples of the median distance of the training vectors.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedShuffleSplit
from sklearn.pipeline import Pipeline

from reduset.features.embedding import fourier_features, frequencies_of, kernel_width_of


class Validated(NamedTuple):
    """The best parameters of the features, ``kernel_width`` among them as a number, and of the model, and their score."""

    features: dict[str, Any]
    model: dict[str, Any]
    score: float


class RandomFeatures(TransformerMixin, BaseEstimator):
    """Random Fourier features of vectors, the width of whose kernel is a multiple of their median distance."""

    def __init__(self, n_components: int = 100, factor: float = 1.0) -> None:
        self.n_components = n_components
        self.factor = factor

    def fit(self, X: np.ndarray, y: Any = None) -> RandomFeatures:
        rng = np.random.default_rng(0)
        self.kernel_width_ = self.factor * kernel_width_of("median", X, rng)
        self.frequencies_ = frequencies_of(X.shape[1], self.n_components, True, self.kernel_width_, rng)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return fourier_features(X, self.frequencies_)


def validated_features(
    features: Any,
    model: Any,
    bags: Any,
    y: np.ndarray,
    grid: Mapping[str, Sequence[float]],
    widths: Sequence[float],
    model_grid: Mapping[str, Sequence[float]],
    share: float,
) -> Validated:
    """The parameters that do best on a share of the bags that is set aside."""
    vectors = clone(features).set_params(output="distance", random_state=0)
    steps = [("vectors", vectors), ("kernel", RandomFeatures(features.n_components)), ("model", model)]
    named = {f"vectors__{name}": list(values) for name, values in grid.items()}
    named |= {f"model__{name}": list(values) for name, values in model_grid.items()}
    split = (StratifiedShuffleSplit if is_classifier(model) else ShuffleSplit)(1, test_size=share, random_state=0)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* lie outside of the box")
        search = GridSearchCV(Pipeline(steps, memory=folder), {**named, "kernel__factor": list(widths)}, cv=split)
        found = search.fit(np.stack(bags), y)
    best = {name.split("__")[1]: value for name, value in found.best_params_.items()}
    width = found.best_estimator_["kernel"].kernel_width_
    chosen = {name: best[name] for name in grid} | {"kernel_width": width}
    return Validated(chosen, {name: best[name] for name in model_grid}, float(found.best_score_))
