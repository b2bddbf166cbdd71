"""SVMs that predict fast: a fitted one in, one of few bumps out, and what that changed (Zhang & Kwok 2010, Section IV).

`compress_svm` reads the decision functions (`machines`), condenses them (`condense`) and measures the change. Prediction costs
O(m·d) a row in place of O(n·d), as one matrix product a block of rows.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from reduset import _validate, archive, svm_onnx
from reduset._progress import Progress
from reduset.compression import NotReachedWarning
from reduset.condense import METHODS, TRIED, Condensed, Plan, condense, smallest, target_of
from reduset.expansion import Array, Expansion
from reduset.expansion_fit import Target
from reduset.machines import Machine, read
from reduset.svm_loss import Ruler, SvmLoss
from reduset.votes import Votes

VERSION = 1


class _Compressed(BaseEstimator):
    """What all compressed SVMs share. They come from `compress_svm` or `load`, fitted; there is no fit of their own."""

    kind: ClassVar[str]

    expansion_: Expansion
    loss_: SvmLoss
    method_: str
    n_support_vectors_: int
    n_features_in_: int
    _votes: Votes | None = None
    offset_: float

    @classmethod
    def _from(cls, machine: Machine, expansion: Expansion, method: str, loss: SvmLoss, support_vectors: int) -> Self:
        made = cls()
        made.expansion_, made.method_, made.loss_, made.n_support_vectors_ = expansion, method, loss, support_vectors
        made.n_features_in_, made._votes = expansion.dimension, machine.votes
        if machine.votes is not None:
            made.classes_ = machine.votes.classes
        if machine.kind == "outlier":
            made.offset_ = machine.offset
        if machine.names is not None:
            made.feature_names_in_ = machine.names
        return made

    def fit(self, X: Any, y: Any = None) -> Self:
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
        return self.expansion_(validate_data(self, X, reset=False, dtype=[np.float64, np.float32], order="C"))

    def save(self, path: archive.Path_) -> None:
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
            "votes": None if self._votes is None else _plain(self._votes),
        }
        arrays = {"centres": found.centres, "widths": found.widths, "weights": found.weights, "intercepts": found.intercepts}
        archive.write(path, header, arrays)

    @classmethod
    def load(cls, path: archive.Path_) -> Self:
        """Read what `save` wrote."""
        header, arrays = archive.read(path, f"reduset.{cls.__name__}", VERSION, ("centres", "widths", "weights", "intercepts"))
        try:
            expansion = _checked(**arrays)
            loss = SvmLoss(**(header["loss"] | {"bound": float(header["loss"]["bound"])}))
            votes = None if header["votes"] is None else _votes_of(**header["votes"])
            names = None if header["names"] is None else np.array([str(name) for name in header["names"]], dtype=object)
            machine = Machine(cls.kind, expansion, np.zeros(0, np.int64), votes, float(header["offset"]), names)
            if (votes is None) != (cls.kind != "classifier") or (votes and len(votes.winners[0]) != len(expansion.intercepts)):
                raise ValueError("its classes do not fit its functions")
            return cls._from(machine, expansion, str(header["method"]), loss, int(header["support_vectors"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is not a readable reduset.{cls.__name__} file: {error}") from error

    def to_onnx(self, path: archive.Path_ | None = None, dtype: Any = np.float32) -> Any:
        """The model as an ONNX graph: returned as a ``ModelProto``, or written to a file.

        Parameters
        ----------
        path : file to write, optional
        dtype : float32 or float64, of input and arithmetic
        """
        check_is_fitted(self)
        model = svm_onnx.graph(self.expansion_, self.kind, self._votes, dtype)
        return model if path is None else svm_onnx.write(model, path)

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


class CompressedSVC(ClassifierMixin, _Compressed):
    """A compressed SVC or NuSVC.

    Attributes
    ----------
    classes_ : (k,) labels
    n_components_ : bumps
    loss_ : SvmLoss
    method_ : how the bumps were found
    expansion_ : Expansion, the functions of all pairs of classes
    n_support_vectors_ : of the original
    """

    kind = "classifier"
    classes_: NDArray[Any]

    def decision_function(self, X: Any) -> Array:
        """Decision values, of the shape that the original gives: (N,) of two classes, (N, k) or (N, k(k − 1)/2) of more."""
        values = self._values(X)
        return self._rule.decide(values)

    def predict(self, X: Any) -> NDArray[Any]:
        """(N,) labels."""
        values = self._values(X)
        return self._rule.elect(values)

    @property
    def _rule(self) -> Votes:
        if self._votes is None:
            raise RuntimeError("a classifier without classes")
        return self._votes


class CompressedSVR(RegressorMixin, _Compressed):
    """A compressed SVR or NuSVR; attributes as of `CompressedSVC`, without classes."""

    kind = "regressor"

    def predict(self, X: Any) -> Array:
        """(N,) predictions."""
        return self._values(X)[:, 0]

    decision_function = predict


class CompressedOneClassSVM(OutlierMixin, _Compressed):
    """A compressed OneClassSVM; attributes as of `CompressedSVC`, without classes, and ``offset_``."""

    kind = "outlier"

    def decision_function(self, X: Any) -> Array:
        """(N,) positive of inliers, negative of outliers."""
        return self._values(X)[:, 0]

    def score_samples(self, X: Any) -> Array:
        """(N,) the decision value plus ``offset_``."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> NDArray[np.intp]:
        """(N,) +1 of inliers, −1 of outliers."""
        return np.where(self.decision_function(X) > 0, 1, -1)


RESULTS: dict[str, type[_Compressed]] = {each.kind: each for each in (CompressedSVC, CompressedSVR, CompressedOneClassSVM)}


def compress_svm(
    fitted: Any,
    *,
    size: int | None = None,
    fraction: float | None = None,
    tol: float | None = None,
    X: Any = None,
    y: Any = None,
    method: str = "auto",
    refit: bool = True,
    polish: bool | int = True,
    rng: Any = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Any:
    """Replace the support vectors of a fitted SVM by few bumps, each with its own place, width and weights.

    Exactly one of ``size``, ``fraction`` and ``tol`` says how few.

    Parameters
    ----------
    fitted : SVC, NuSVC, SVR, NuSVR or OneClassSVM with kernel="rbf"
    size : int
        At most that many bumps.
    fraction : float in (0, 1]
        That share of the support vectors, rounded down, at least 1.
    tol : float
        As few as bring the relative error ``loss_.relative`` down to this, found by bisection; a `NotReachedWarning` where that
        takes every support vector.
    X : (N, d) rows like those that will be predicted, optional
        Training rows serve. The bumps are fitted to the decision values there, and the loss is measured there. Without X both look
        at the support vectors, and fitting at the norm of the kernel's space too.
    y : (N,) labels or targets of X, optional; only scores are taken from them
    method : "auto", "mixture", "kl", "refine" or "kcenter"
        "mixture" groups support vectors in L2, each group becoming one bump of its own width (Zhang & Kwok 2010), "kl" by
        divergence (Goldberger & Roweis 2005). "refine" keeps the width of the SVM and moves bumps, "kcenter" keeps support vectors
        as they are. "auto" tries "mixture", "refine" and "kcenter", and keeps what loses least.
    refit : bool
        Find all weights together; without it, those of each group alone, as in the paper.
    polish : bool or int
        Move bumps by L-BFGS; a number is the most steps.
    rng : None, seed or Generator; the same seed gives the same result
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    CompressedSVC, CompressedSVR or CompressedOneClassSVM
        With the methods of the original, and ``n_components_``, ``loss_``, ``method_``, ``save``, ``load`` and ``to_onnx``.
        Probabilities of an SVC with probability=True are not carried over: calibrate the result anew,
        `CalibratedClassifierCV(FrozenEstimator(small))`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from reduset.svm import compress_svm
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> svm = SVC(gamma=2.0).fit(X, y)
    >>> small = compress_svm(svm, fraction=0.1, X=X, rng=0)
    >>> small.n_components_ <= len(svm.support_) / 10, float((small.predict(X) == svm.predict(X)).mean()) > 0.98
    (True, True)
    """
    machine = read(fitted)
    full = machine.full
    goals = {name: goal for name, goal in (("size", size), ("fraction", fraction), ("tol", tol)) if goal is not None}
    if len(goals) != 1:
        given = " and ".join(goals) or "none"
        raise ValueError(
            "give exactly one of size (a number of bumps), fraction (of the support vectors) and tol (a relative error); "
            f"got {given}"
        )
    if size is not None:
        size = _validate.whole(size, "size", 1, full.size, f"fitted has {full.size} support vectors")
    if fraction is not None:
        size = max(1, int(full.size * _share(fraction) + 1e-9))
    if tol is not None:
        goals["tol"] = _validate.positive(tol, "tol", "it is a share, 0.05 for five percent")
    plan = _plan(method, refit, polish)
    rows = None if X is None else _rows_like(X, machine)
    if y is not None and rows is None:
        raise ValueError("y goes with X, and X is None; pass the rows that y belongs to")
    targets = None if y is None else _targets(y, len(rows))  # type: ignore[arg-type]
    rng = _validate.generator(rng)
    shown = Progress(progress)
    try:
        seed = int(rng.integers(2**63))
        target = target_of(full, rows, rng)
        ruler = Ruler(machine, rows)
        fit = partial(_fit, target, machine, plan, seed, ruler, shown)
        found = fit(size) if size is not None else smallest(fit, goals["tol"], full.size)
        shown.stage("measuring")(0, 1)
        loss = ruler.loss(found.expansion, float(target.bounds(found.expansion).max()), targets)
    finally:
        shown.close()
    if tol is not None and found.expansion is full:
        warnings.warn(
            f"tol={tol:g} was not reached with fewer than all {full.size} support vectors, which were kept; raise tol",
            NotReachedWarning,
            stacklevel=2,
        )
    return RESULTS[machine.kind]._from(machine, found.expansion, found.method, loss, full.size)


def _fit(target: Target, machine: Machine, plan: Plan, seed: int, ruler: Ruler, shown: Progress, size: int) -> Condensed:
    if size >= machine.full.size:  # nothing to reduce
        return Condensed(machine.full, "all support vectors", 0.0)
    return condense(target, machine.parts, size, plan, seed, ruler.relative, shown.stage("fitting"))


def _share(fraction: Any) -> float:
    share = _validate.positive(fraction, "fraction", "it is a share of the support vectors, 0.05 for five percent")
    if share > 1:
        raise ValueError(f"fraction must be at most 1, all support vectors; got {fraction!r}. For a number of bumps use size")
    return share


def _plan(method: Any, refit: Any, polish: Any) -> Plan:
    method = _validate.one_of(method, "method", ("auto", *METHODS))
    if not isinstance(refit, bool | np.bool_):
        raise TypeError(f"refit must be True or False, got {refit!r}")
    if isinstance(polish, bool | np.bool_):
        steps = None if polish else 0
    else:
        steps = _validate.whole(polish, "polish", 0, None, "it is a number of steps, or True or False")
    if not refit and steps != 0:
        raise ValueError("refit=False keeps the weights of each group, polish finds them anew; pass polish=False too")
    return Plan(TRIED if method == "auto" else (method,), bool(refit), steps)


def _rows_like(X: Any, machine: Machine) -> Array:
    rows, dimension = _validate.points(X), machine.full.dimension
    if rows.shape[1] != dimension:
        raise ValueError(f"X must have {dimension} columns like the rows that fitted was fitted on, got shape {rows.shape}")
    if machine.names is not None and hasattr(X, "columns") and list(X.columns) != list(machine.names):
        raise ValueError("X must have the columns that fitted was fitted on, in that order; use X[fitted.feature_names_in_]")
    return np.ascontiguousarray(rows, np.float64)


def _targets(y: Any, count: int) -> NDArray[Any]:
    targets = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if targets.shape != (count,):
        raise ValueError(f"y must have shape ({count},), one value a row of X; got {targets.shape}")
    return targets


def _plain(votes: Votes) -> dict[str, Any]:
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


def _votes_of(classes: list[Any], dtype: str, shape: str, break_ties: bool) -> Votes:
    if len(classes) < 2 or not all(isinstance(label, str | int | float) for label in classes):
        raise ValueError("its classes are none")
    if not re.fullmatch(r"[UO]|[<>|][biuf][1248]", dtype):  # of text no length: a file could ask for any
        raise ValueError(f"its classes are of an unknown type {dtype!r}")
    return Votes(np.array(classes, dtype=dtype), _validate.one_of(shape, "shape", ("ovr", "ovo")), bool(break_ties))


def _checked(centres: Array, widths: Array, weights: Array, intercepts: Array) -> Expansion:
    """An expansion from a file that anyone may have written."""
    m = len(centres)
    if (
        centres.ndim != 2
        or 0 in centres.shape
        or widths.shape != (m,)
        or weights.shape != (m, *intercepts.shape)
        or not intercepts.size
    ):
        raise ValueError("its arrays do not fit together")
    if not all(np.isfinite(each).all() for each in (centres, widths, weights, intercepts)) or not (widths > 0).all():
        raise ValueError("its numbers are not finite, or a width is not above 0")
    return Expansion(*(np.asarray(each, np.float64) for each in (centres, widths, weights, intercepts)))
