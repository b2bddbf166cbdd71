"""Reading a fitted SVM of scikit-learn: its decision functions as a `GaussianExpansion`, and its decision rule.

The kernel exp(−γ‖x − x′‖²) is a Gaussian of width h = 1/√(2γ), with the number γ that the fit used for ``gamma``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

from reduset import _validate
from reduset._types import Array
from reduset.svm.expansion import GaussianExpansion
from reduset.svm.one_vs_one import OneVsOne, pair_coefficients

KINDS: dict[str, tuple[type, ...]] = {"classifier": (SVC, NuSVC), "regressor": (SVR, NuSVR), "outlier": (OneClassSVM,)}


@dataclass(frozen=True)
class DecisionRule:
    """The decision rule of an SVM, from values of its functions to decisions."""

    kind: str  # "classifier", "regressor" or "outlier"
    votes: OneVsOne | None  # of a classifier
    offset: float  # of an outlier detector, with decision value = score − offset
    names: NDArray[Any] | None  # columns of the training frame

    def decide(self, values: Array) -> Array:
        """Decision values of the rows, from (N, p) values of the functions."""
        return values[:, 0] if self.votes is None else self.votes.decide(values)

    def predict(self, values: Array) -> NDArray[Any]:
        """(N,) labels or predictions, from (N, p) values of the functions."""
        if self.votes is not None:
            return self.votes.elect(values)
        return values[:, 0] if self.kind == "regressor" else np.where(values[:, 0] > 0, 1, -1)


@dataclass(frozen=True)
class SupportVectorMachine:
    """A fitted SVM: its functions with a Gaussian for each support vector, and (n,) the class or coefficient sign of each."""

    rule: DecisionRule
    full: GaussianExpansion
    parts: NDArray[np.int64]


def read(fitted: Any) -> SupportVectorMachine:
    """The functions of a fitted SVM; raises an error that states why there are none."""
    kind = next((name for name, types in KINDS.items() if isinstance(fitted, types)), None)
    if kind is None:
        raise TypeError(f"fitted must be a fitted SVC, NuSVC, SVR, NuSVR or OneClassSVM, got {_what(fitted)}")
    if fitted.kernel != "rbf":
        linear = "A linear SVM needs no support vectors: use its coef_"
        way_out = linear if fitted.kernel == "linear" else "Fit it again with 'rbf'"
        raise ValueError(f"fitted must have kernel='rbf', got kernel={fitted.kernel!r}: only Gaussians can be merged. {way_out}")
    if not hasattr(fitted, "support_vectors_"):
        raise NotFittedError(f"fitted must be fitted, this {type(fitted).__name__} is not; call its fit(X, y) first")
    if not len(fitted.support_):
        raise ValueError(
            f"fitted has no support vectors: it predicts {float(fitted.intercept_[0]):g} everywhere and needs no compression"
        )
    centres = _validate.points(_dense(fitted.support_vectors_), "the support vectors of fitted").astype(np.float64)
    dual = np.asarray(_dense(fitted.dual_coef_), np.float64)
    votes, parts = None, (dual[0] > 0).astype(np.int64)
    weights = dual.T
    if kind == "classifier":
        counts = np.asarray(fitted.n_support_)
        weights, parts = pair_coefficients(dual, counts), np.repeat(np.arange(len(counts)), counts)
        votes = OneVsOne(np.asarray(fitted.classes_), fitted.decision_function_shape, bool(fitted.break_ties))
    width = float(1.0 / np.sqrt(2.0 * fitted._gamma))
    if not np.isfinite(width) or not width > 0:
        raise ValueError(f"fitted must have a gamma above 0, got {fitted._gamma}; scale the features before fitting")
    intercepts = np.atleast_1d(np.asarray(_dense(fitted.intercept_), np.float64))
    full = GaussianExpansion(centres, np.full(len(centres), width), np.ascontiguousarray(weights), intercepts)
    offset = float(np.ravel(fitted.offset_)[0]) if kind == "outlier" else 0.0
    return SupportVectorMachine(DecisionRule(kind, votes, offset, getattr(fitted, "feature_names_in_", None)), full, parts)


def _dense(value: Any) -> Any:
    """A dense array: an SVM fitted on sparse rows has sparse support vectors, but the fitted centres are dense."""
    return value.toarray() if hasattr(value, "toarray") else value


def _what(fitted: Any) -> str:
    """The type of an unsupported argument for the error message, with the way out if there is one."""
    name = type(fitted).__name__
    if isinstance(fitted, type):
        return f"the class {fitted.__name__}; pass a fitted instance"
    if hasattr(fitted, "best_estimator_") or hasattr(fitted, "param_grid") or hasattr(fitted, "param_distributions"):
        return f"{name}; pass its fitted.best_estimator_"
    if hasattr(fitted, "steps"):
        return (
            f"{name}; compress its last step, fitted[-1], with the transformed rows X=fitted[:-1].transform(X), and replace this "
            "step by the result: Pipeline([*fitted.steps[:-1], ('svm', small)])"
        )
    if isinstance(fitted, LinearSVC | LinearSVR):
        return f"{name}, which is linear: it has no support vectors to reduce, use its coef_"
    return name
