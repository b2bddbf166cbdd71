"""The results of `compress_svm`: classifiers, regressors and outlier detectors with the interface of scikit-learn.

Prediction costs O(m·d) per row instead of O(n·d), with one matrix product for each block of rows.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from reduset import _archive, _validate
from reduset._engine import row_blocks
from reduset._types import Array, PointsLike
from reduset._validate import naming_columns
from reduset.svm import onnx_graph
from reduset.svm.expansion import GaussianExpansion
from reduset.svm.loss import SvmLoss
from reduset.svm.machines import DecisionRule, OneVsOne

f = _archive.fields

FIELDS: f.Fields = {
    "centres": f.Numbers(("m", "d")),
    "widths": f.Numbers(("m",), low=0, above=True),
    "weights": f.Numbers(("m", "functions")),
    "intercepts": f.Numbers(("functions",)),
    "names": f.optional(f.names("d")),
    "method": f.text,
    "support_vectors": f.whole(),
    "loss": f.record(
        SvmLoss,
        largest=f.number(0),
        mean=f.number(0),
        label_changes=f.optional(f.whole()),
        rows=f.whole(1),
        measured_on=f.text,
        relative=f.number(0),
        bound=f.measured(),
        score_before=f.optional(f.number()),
        score_after=f.optional(f.number()),
    ),
    "offset": f.number(),
    "votes": f.optional(
        f.record(dict, classes=f.listed(f.scalar), dtype=f.text, shape=f.one_of(("ovr", "ovo")), break_ties=f.flag)
    ),
}


class CompressedSVM(BaseEstimator):
    """The base class of all compressed SVMs. `compress_svm` and `load` return fitted objects, so there is no fit."""

    kind: ClassVar[str]

    expansion_: GaussianExpansion
    loss_: SvmLoss
    method_: str
    n_support_vectors_: int
    n_features_in_: int
    offset_: float
    _rule: DecisionRule

    @classmethod
    def holding(cls, rule: DecisionRule, expansion: GaussianExpansion, method: str, loss: SvmLoss, support_vectors: int) -> Self:
        """A fitted object with this expansion and decision rule."""
        result = cls()
        result.expansion_, result.method_, result.loss_, result.n_support_vectors_ = expansion, method, loss, support_vectors
        result.n_features_in_, result._rule = expansion.dimension, rule
        if rule.votes is not None:
            result.classes_ = rule.votes.classes
        if rule.kind == "outlier":
            result.offset_ = rule.offset
        if rule.names is not None:
            result.feature_names_in_ = rule.names
        return result

    def fit(self, X: PointsLike, y: Any = None) -> Self:
        """Raises `NotImplementedError`, because an SVM is trained before it is compressed."""
        raise NotImplementedError(f"{type(self).__name__} has no fit; fit an SVM of scikit-learn and pass it to compress_svm")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expansion_")

    @property
    def n_components_(self) -> int:
        """The number of Gaussians."""
        check_is_fitted(self)
        return self.expansion_.size

    def _values(self, X: Any) -> Array:
        """(N, p) values of the decision functions."""
        check_is_fitted(self)
        with naming_columns(X):
            rows = validate_data(
                self, _validate.known(X), reset=False, dtype=[np.float64, np.float32], order="C", accept_sparse="csr"
            )
        if not issparse(rows):
            return self.expansion_(rows)
        parts = row_blocks(range(rows.shape[0]), rows.shape[1])  # one dense block at a time
        return np.concatenate([self.expansion_(rows[a:b].toarray()) for a, b in parts])

    def decision_function(self, X: PointsLike) -> Array:
        """Decision values, in the shape of the original: (N,) for two classes, (N, k) or (N, k(k − 1)/2) for more.

        They are positive for inliers and negative for outliers. For regression they are the predictions.
        """
        values = self._values(X)
        return self._rule.decide(values)

    def predict(self, X: PointsLike) -> NDArray[Any]:
        """(N,) labels, +1 for inliers and −1 for outliers, or predictions of a regression."""
        values = self._values(X)
        return self._rule.predict(values)

    def save(self, path: _archive.Path_) -> None:
        """Write to a file of plain arrays; reading it validates it and executes nothing."""
        check_is_fitted(self)
        votes, names = self._rule.votes, getattr(self, "feature_names_in_", None)
        values = {
            **vars(self.expansion_),
            "method": self.method_,
            "support_vectors": self.n_support_vectors_,
            "loss": self.loss_,
            "names": None if names is None else [str(name) for name in names],
            "offset": getattr(self, "offset_", 0.0),
            "votes": None if votes is None else _plain(votes),
        }
        _archive.write(path, self._file(), values)

    @classmethod
    def load(cls, path: _archive.Path_) -> Self:
        """Read a file of `save`."""
        return _archive.read(path, {cls._file(): cls._from_values})

    @classmethod
    def _file(cls) -> _archive.Kind:
        return _archive.Kind(f"reduset.{cls.__name__}", "compressed SVM", FIELDS)

    @classmethod
    def _from_values(cls, values: dict[str, Any]) -> Self:
        expansion = GaussianExpansion(*(values[name] for name in ("centres", "widths", "weights", "intercepts")))
        votes = None if values["votes"] is None else _votes_of(len(expansion.intercepts), **values["votes"])
        if (votes is None) != (cls.kind != "classifier"):
            raise ValueError("its classes do not fit its functions")
        loss: SvmLoss = values["loss"]
        if loss.label_changes is not None and loss.label_changes > loss.rows:
            raise ValueError(f"loss.label_changes must be at most loss.rows, {loss.rows:,}, got {loss.label_changes:,}")
        if (loss.score_before is None) != (loss.score_after is None):
            raise ValueError("loss.score_before and loss.score_after must both be numbers, or neither")
        names = None if values["names"] is None else np.array(values["names"], dtype=object)
        rule = DecisionRule(cls.kind, votes, values["offset"], names)
        return cls.holding(rule, expansion, values["method"], loss, values["support_vectors"])

    def to_onnx(self, path: _archive.Path_ | None = None, dtype: DTypeLike = np.float32) -> Any:
        """The model as an ONNX graph, returned as a ``ModelProto`` or written to a file.

        Parameters
        ----------
        path : file to write, optional
        dtype : float32 or float64, for the input and the arithmetic
        """
        check_is_fitted(self)
        model = onnx_graph.graph(self.expansion_, self.kind, self._rule.votes, dtype)
        return model if path is None else onnx_graph.write(model, path)

    def __repr__(self) -> str:
        if not hasattr(self, "expansion_"):
            return f"{type(self).__name__}()"
        return f"<{type(self).__name__}: {self.n_support_vectors_:,} support vectors → {self.n_components_:,} Gaussians>"

    def __str__(self) -> str:
        if not hasattr(self, "expansion_"):
            return repr(self)
        head = (
            f"{type(self).__name__}: {self.n_support_vectors_:,} support vectors → {self.n_components_:,} Gaussians "
            f"in {self.n_features_in_}-D, by {self.method_}"
        )
        return "\n  ".join([head, *str(self.loss_).splitlines()])


class CompressedSVC(ClassifierMixin, CompressedSVM):
    """A compressed SVC or NuSVC.

    Attributes
    ----------
    classes_ : (k,) labels
    n_components_ : number of Gaussians
    loss_ : SvmLoss
    method_ : the method that found the Gaussians
    expansion_ : GaussianExpansion, the decision functions of all pairs of classes
    n_support_vectors_ : number of support vectors of the original
    """

    kind = "classifier"
    classes_: NDArray[Any]


class CompressedSVR(RegressorMixin, CompressedSVM):
    """A compressed SVR or NuSVR, with the attributes of `CompressedSVC` except the classes."""

    kind = "regressor"


class CompressedOneClassSVM(OutlierMixin, CompressedSVM):
    """A compressed OneClassSVM, with the attributes of `CompressedSVC` except the classes, and with ``offset_``."""

    kind = "outlier"

    def score_samples(self, X: PointsLike) -> Array:
        """(N,) the decision value plus ``offset_``."""
        return self.decision_function(X) + self.offset_


def _plain(votes: OneVsOne) -> dict[str, Any]:
    """The votes as plain values for the header of a file."""
    labels, dtype = votes.classes.tolist(), votes.classes.dtype
    if not all(isinstance(label, str | int | float) for label in labels):
        raise TypeError(f"only classes that are numbers or text can be saved, got {dtype}; refit with such labels")
    return {
        "classes": labels,
        "dtype": dtype.kind if dtype.kind in "UO" else dtype.str,
        "shape": votes.shape,
        "break_ties": votes.break_ties,
    }


def _votes_of(functions: int, classes: tuple[Any, ...], dtype: str, shape: str, break_ties: bool) -> OneVsOne:
    pairs = len(classes) * (len(classes) - 1) // 2
    if pairs != functions:  # checked before the pairs use memory
        raise ValueError(f"its classes do not fit its functions: {len(classes):,} classes have {pairs:,} pairs, got {functions:,}")
    if len(classes) < 2:
        raise ValueError(f"classes must be at least 2, got {len(classes)}")
    if not re.fullmatch(r"[UO]|[<>|][biuf][1248]", dtype):  # no length for text, because a file could set any length
        raise ValueError(f"its classes are of an unknown type {dtype!r}")
    return OneVsOne(np.array(classes, dtype=dtype), shape, break_ties)
