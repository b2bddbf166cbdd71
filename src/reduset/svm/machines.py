"""Reading a fitted SVM of scikit-learn: its decision functions as a `GaussianExpansion`, and its decision rule.

The kernel exp(−γ‖x − x′‖²) is a Gaussian of width h = 1/√(2γ), with the number γ that the fit used for ``gamma``.

**One-versus-one voting.** k classes have k(k − 1)/2 functions. The function of classes (i, j), i < j, is positive where i wins.
libsvm stores the coefficients of a support vector of class i against each of the other k − 1 classes. So the function of (i, j)
uses row j − 1 of the coefficients for vectors of class i, and row i for vectors of class j. Two classes have one function, which is
positive where the second wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

from reduset import _validate
from reduset._types import Array
from reduset.svm.expansion import GaussianExpansion

KINDS: dict[str, tuple[type, ...]] = {"classifier": (SVC, NuSVC), "regressor": (SVR, NuSVR), "outlier": (OneClassSVM,)}


def pair_coefficients(dual: Array, counts: NDArray[Any]) -> Array:
    """(n, p) coefficients of each support vector in each function, from the (k − 1, n) array of libsvm ordered by class.

    Parameters
    ----------
    counts : (k,) number of support vectors in each class
    """
    k, ends = len(counts), np.concatenate([[0], np.cumsum(counts)])
    if k == 2:
        return np.ascontiguousarray(dual.T)
    pairs = list(combinations(range(k), 2))
    out = np.zeros((dual.shape[1], len(pairs)))
    for column, (i, j) in enumerate(pairs):
        of_i, of_j = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        out[of_i, column] = dual[j - 1, of_i]
        out[of_j, column] = dual[i, of_j]
    return out


@dataclass(frozen=True)
class OneVsOne:
    """One-versus-one voting, from values of the functions to decision values and classes."""

    classes: NDArray[Any]  # (k,) labels
    shape: str  # of decision values for more than two classes: "ovr" or "ovo"
    break_ties: bool  # True to break ties of votes by decision values

    def __post_init__(self) -> None:
        if self.break_ties and self.shape == "ovo":
            raise ValueError(
                "break_ties must be False if decision_function_shape is 'ovo', as in the predict of scikit-learn; "
                "set one of them: fitted.set_params(break_ties=False)"
            )

    @property
    def winners(self) -> tuple[Array, Array]:
        """(p, k) votes of each function where it is positive, and where it is not."""
        k = len(self.classes)
        first, second = np.transpose(list(combinations(range(k), 2)))
        return np.eye(k)[first], np.eye(k)[second]

    def decide(self, values: Array) -> Array:
        """Decision values, (N,) for two classes and (N, k) or (N, p) for more, from (N, p) values of the functions."""
        if len(self.classes) == 2:
            return values[:, 0]
        if self.shape == "ovo":
            return values
        first, second = self.winners
        votes = np.where(values < 0, 0.0, 1.0) @ first + np.where(values < 0, 1.0, 0.0) @ second
        confidence = values @ (first - second)
        return votes + confidence / (3.0 * (np.abs(confidence) + 1.0))  # within ±1/3, so that it breaks ties without changing votes

    def elect(self, values: Array) -> NDArray[Any]:
        """(N,) labels."""
        if len(self.classes) == 2:
            return self.classes[(values[:, 0] >= 0).astype(np.intp)]
        if self.break_ties:
            return self.classes[self.decide(values).argmax(axis=1)]
        first, second = self.winners
        won = np.where(values > 0, 1.0, 0.0)
        return self.classes[(won @ first + (1.0 - won) @ second).argmax(axis=1)]


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
