"""ClassProportions as a quantifier of QuaPy, for the protocols, errors and model selection of that library.

QuaPy calls a class proportion a prevalence. A quantifier has `fit(X, y)`, `predict(X)` (formerly `quantify`) and the parameters of
scikit-learn. Only this file imports QuaPy. Without QuaPy the class is an ordinary scikit-learn estimator.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from reduset._types import Array, KernelLike, MaxSizeLike, PointsLike, SeedLike, SelectorLike
from reduset._validate import seeded
from reduset.proportions.estimator import DEFAULT_MAX_SIZE, ClassProportions, Proportions

try:
    from quapy.method.base import BaseQuantifier
except ImportError:
    BaseQuantifier = BaseEstimator


@seeded
class ClassProportionsQuantifier(BaseQuantifier):
    """`ClassProportions` behind the interface of QuaPy's quantifiers.

    Parameters
    ----------
    classifier : scikit-learn classifier with predict_proba, optional
        As in `ClassProportions`, and the first parameter as in QuaPy. Its parameters are ``classifier__C`` and so on. None uses
        the rows.
    method, kernel, size, tol, space, norm, ridge, bandwidth_search, solver, select, random_state
        As in `ClassProportions`. The default ``random_state=0`` makes experiments repeatable.

    Attributes
    ----------
    model_ : the fitted `ClassProportions`
    classes_ : (k,) labels, in the order of the prevalences

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.proportions.quapy_adapter import ClassProportionsQuantifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 3])
    >>> quantifier = ClassProportionsQuantifier(size=50).fit(X, np.repeat([0, 1], 200))
    >>> quantifier.predict(X[150:250]).round(1)
    array([0.5, 0.5])
    """

    def __init__(
        self, classifier: Any = None, method: str = "likelihood", kernel: KernelLike = None, size: int | str | None = None,
        tol: float | None = None, space: str | None = None, norm: str = "whitened", ridge: float | None = None,
        bandwidth_search: bool | None = None, solver: str = "simplex", select: SelectorLike = "kmeans", random_state: SeedLike = 0,
        plateau: float | None = None, max_size: MaxSizeLike = DEFAULT_MAX_SIZE,
    ) -> None:  # fmt: skip
        self.classifier = classifier
        self.method = method
        self.kernel = kernel
        self.size = size
        self.tol = tol
        self.space = space
        self.norm = norm
        self.ridge = ridge
        self.bandwidth_search = bandwidth_search
        self.solver = solver
        self.select = select
        self.random_state = random_state
        self.plateau = plateau
        self.max_size = max_size

    def fit(self, X: PointsLike, y: ArrayLike) -> ClassProportionsQuantifier:
        """Learn the classes from rows (n, d) and their labels (n,)."""
        self.model_ = ClassProportions(**self.get_params(deep=False)).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: PointsLike) -> Array:
        """The prevalences (k,) of the classes in a sample (n₀, d), in the order of ``classes_``."""
        return self.model_.predict_proportions(X)

    def quantify(self, X: PointsLike) -> Array:
        """The older name of `predict`."""
        return self.predict(X)

    def estimate(self, X: PointsLike, confidence: float = 0.95) -> Proportions:
        """The prevalences with intervals and a test of whether the sample is a mixture of the classes."""
        return self.model_.estimate(X, confidence)
