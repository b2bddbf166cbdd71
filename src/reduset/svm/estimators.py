"""What `compress_svm` returns: classifiers, regressions and outlier detectors of few bumps, behind scikit-learn's interface.

Prediction costs O(m·d) a row in place of O(n·d), as one matrix product a block of rows.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from reduset import _archive, _validate
from reduset._engine import row_blocks
from reduset._types import Array, PointsLike
from reduset._validate.rows import naming_columns
from reduset.svm import onnx_graph
from reduset.svm.expansion import GaussianExpansion
from reduset.svm.loss import SvmLoss
from reduset.svm.machines import DecisionRule
from reduset.svm.one_vs_one import OneVsOne

VERSION = 1


class CompressedSVM(BaseEstimator):
    """What all compressed SVMs share. They come from `compress_svm` or `load`, fitted; there is no fit of their own."""

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
        """A fitted one."""
        made = cls()
        made.expansion_, made.method_, made.loss_, made.n_support_vectors_ = expansion, method, loss, support_vectors
        made.n_features_in_, made._rule = expansion.dimension, rule
        if rule.votes is not None:
            made.classes_ = rule.votes.classes
        if rule.kind == "outlier":
            made.offset_ = rule.offset
        if rule.names is not None:
            made.feature_names_in_ = rule.names
        return made

    def fit(self, X: PointsLike, y: Any = None) -> Self:
        """Refused: an SVM is trained, then compressed."""
        raise NotImplementedError(f"{type(self).__name__} is not trained; fit an SVM of scikit-learn and pass it to compress_svm")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expansion_")

    @property
    def n_components_(self) -> int:
        """The number of bumps."""
        check_is_fitted(self)
        return self.expansion_.size

    def _values(self, X: Any) -> Array:
        """(N, p) values of the functions."""
        check_is_fitted(self)
        with naming_columns(X):
            rows = validate_data(
                self, _validate.known(X), reset=False, dtype=[np.float64, np.float32], order="C", accept_sparse="csr"
            )
        if not issparse(rows):
            return self.expansion_(rows)
        parts = row_blocks(range(rows.shape[0]), rows.shape[1])  # dense a block at a time
        return np.concatenate([self.expansion_(rows[a:b].toarray()) for a, b in parts])

    def decision_function(self, X: PointsLike) -> Array:
        """Decision values, of the shape that the original gives: (N,) of two classes, (N, k) or (N, k(k − 1)/2) of more.

        Positive of inliers and negative of outliers; of a regression the prediction.
        """
        values = self._values(X)
        return self._rule.decide(values)

    def predict(self, X: PointsLike) -> NDArray[Any]:
        """(N,) labels, +1 of inliers and −1 of outliers, or predictions of a regression."""
        values = self._values(X)
        return self._rule.predict(values)

    def save(self, path: _archive.Path_) -> None:
        """Write to a file of plain arrays, checked when it is read and never executed."""
        check_is_fitted(self)
        found, names = self.expansion_, getattr(self, "feature_names_in_", None)
        header = {
            "kind": f"reduset.{type(self).__name__}",
            "version": VERSION,
            "method": self.method_,
            "support_vectors": self.n_support_vectors_,
            "loss": {key: repr(value) if value == np.inf else value for key, value in asdict(self.loss_).items()},
            "names": None if names is None else [str(name) for name in names],
            "offset": getattr(self, "offset_", 0.0),
            "votes": None if self._rule.votes is None else _plain(self._rule.votes),
        }
        arrays = {"centres": found.centres, "widths": found.widths, "weights": found.weights, "intercepts": found.intercepts}
        _archive.write(path, header, arrays)

    @classmethod
    def load(cls, path: _archive.Path_) -> Self:
        """Read what `save` wrote."""
        kind = _archive.Kind(VERSION, ("centres", "widths", "weights", "intercepts"))
        header, arrays = _archive.read(path, {f"reduset.{cls.__name__}": kind})
        try:
            expansion = _checked(**arrays)
            votes = None if header["votes"] is None else _votes_of(len(expansion.intercepts), **header["votes"])
            names = None if header["names"] is None else _names_of(header["names"], expansion.centres.shape[1])
            rule = DecisionRule(cls.kind, votes, _validate.finite(header["offset"], "offset"), names)
            if (votes is None) != (cls.kind != "classifier"):
                raise ValueError("its classes do not fit its functions")
            vectors = _validate.whole(header["support_vectors"], "support_vectors", 0, 2**63 - 1)
            return cls.holding(rule, expansion, str(header["method"]), SvmLoss.from_header(header["loss"]), vectors)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{path} is not a readable reduset.{cls.__name__} file: {error}") from error

    def to_onnx(self, path: _archive.Path_ | None = None, dtype: DTypeLike = np.float32) -> Any:
        """The model as an ONNX graph: returned as a ``ModelProto``, or written to a file.

        Parameters
        ----------
        path : file to write, optional
        dtype : float32 or float64, of input and arithmetic
        """
        check_is_fitted(self)
        model = onnx_graph.graph(self.expansion_, self.kind, self._rule.votes, dtype)
        return model if path is None else onnx_graph.write(model, path)

    def __repr__(self) -> str:
        if not hasattr(self, "expansion_"):
            return f"{type(self).__name__}()"
        return f"<{type(self).__name__}: {self.n_support_vectors_:,} support vectors → {self.n_components_:,} bumps>"

    def __str__(self) -> str:
        if not hasattr(self, "expansion_"):
            return repr(self)
        head = (
            f"{type(self).__name__}: {self.n_support_vectors_:,} support vectors → {self.n_components_:,} bumps "
            f"in {self.n_features_in_}-D, by {self.method_}"
        )
        return "\n  ".join([head, *str(self.loss_).splitlines()])


class CompressedSVC(ClassifierMixin, CompressedSVM):
    """A compressed SVC or NuSVC.

    Attributes
    ----------
    classes_ : (k,) labels
    n_components_ : bumps
    loss_ : SvmLoss
    method_ : how the bumps were found
    expansion_ : GaussianExpansion, the functions of all pairs of classes
    n_support_vectors_ : of the original
    """

    kind = "classifier"
    classes_: NDArray[Any]


class CompressedSVR(RegressorMixin, CompressedSVM):
    """A compressed SVR or NuSVR; attributes as of `CompressedSVC`, without classes."""

    kind = "regressor"


class CompressedOneClassSVM(OutlierMixin, CompressedSVM):
    """A compressed OneClassSVM; attributes as of `CompressedSVC`, without classes, and ``offset_``."""

    kind = "outlier"

    def score_samples(self, X: PointsLike) -> Array:
        """(N,) the decision value plus ``offset_``."""
        return self.decision_function(X) + self.offset_


def _plain(votes: OneVsOne) -> dict[str, Any]:
    """For the header of a file."""
    labels, dtype = votes.classes.tolist(), votes.classes.dtype
    if not all(isinstance(label, str | int | float) for label in labels):
        raise TypeError(f"only classes that are numbers or text can be saved, got {dtype}; refit with such labels")
    return {
        "classes": labels,
        "dtype": dtype.kind if dtype.kind in "UO" else dtype.str,
        "shape": votes.shape,
        "break_ties": votes.break_ties,
    }


def _names_of(told: Any, width: int) -> NDArray[Any]:
    if not isinstance(told, list) or len(told) != width or not all(isinstance(name, str) for name in told):
        raise ValueError(f"names must be those of {width} columns, got {str(told)[:60]}")
    return np.array(told, dtype=object)


def _votes_of(functions: int, classes: list[Any], dtype: str, shape: str, break_ties: bool) -> OneVsOne:
    pairs = len(classes) * (len(classes) - 1) // 2
    if pairs != functions:  # looked at before so many pairs are made
        raise ValueError(f"its classes do not fit its functions: {len(classes):,} classes have {pairs:,} pairs, got {functions:,}")
    if len(classes) < 2 or not all(isinstance(label, str | int | float) for label in classes):
        raise ValueError("its classes are none")
    if not re.fullmatch(r"[UO]|[<>|][biuf][1248]", dtype):  # of text no length: a file could ask for any
        raise ValueError(f"its classes are of an unknown type {dtype!r}")
    return OneVsOne(
        np.array(classes, dtype=dtype), _validate.one_of(shape, "shape", ("ovr", "ovo")), _validate.flag(break_ties, "break_ties")
    )


def _checked(centres: Array, widths: Array, weights: Array, intercepts: Array) -> GaussianExpansion:
    """An expansion from a file that anyone may have written."""
    m = len(centres)
    fit = widths.shape == (m,) and weights.shape == (m, *intercepts.shape)
    if not fit or centres.ndim != 2 or 0 in (*centres.shape, intercepts.size):
        raise ValueError("its arrays do not fit together")
    if not all(np.isfinite(each).all() for each in (centres, widths, weights, intercepts)) or not (widths > 0).all():
        raise ValueError("its numbers are not finite, or a width is not above 0")
    return GaussianExpansion(*(np.asarray(each, np.float64) for each in (centres, widths, weights, intercepts)))
