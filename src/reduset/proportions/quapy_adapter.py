"""ClassProportions as a quantifier of QuaPy, for that library's protocols, errors and model selection.

QuaPy calls a class proportion a prevalence, and asks a quantifier for `fit(X, y)`, `predict(X)` (`quantify`, its older name) and
the parameters of scikit-learn. Only who imports this file imports QuaPy; where that is missing the class is an estimator like any
other.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from reduset._types import Array, KernelLike, MaxSizeLike, PointsLike, SeedLike, SelectorLike
from reduset._validate import seeded
from reduset.proportions.estimator import MOST_BY_TOL, ClassProportions, Proportions

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
        As in `ClassProportions`, and first as in QuaPy; its own parameters are ``classifier__C`` and so on. None: the rows.
    method, kernel, size, tol, space, norm, ridge, bandwidth_search, solver, select, random_state
        Those of `ClassProportions`; ``random_state`` is 0, so that an experiment can be repeated.

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
        plateau: float | None = None, max_size: MaxSizeLike = MOST_BY_TOL,
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
        """`predict`, by its older name."""
        return self.predict(X)

    def estimate(self, X: PointsLike, confidence: float = 0.95) -> Proportions:
        """The prevalences with their intervals, and whether the sample is a mixture of the classes at all."""
        return self.model_.estimate(X, confidence)
