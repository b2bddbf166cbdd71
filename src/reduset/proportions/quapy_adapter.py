"""ClassProportions as a quantifier of QuaPy, for the protocols, errors and model selection of that library.

QuaPy calls a class proportion a prevalence. A quantifier has `fit(X, y)`, `predict(X)` (formerly `quantify`) and the parameters of
scikit-learn. Only this file imports QuaPy. Without QuaPy the class is an ordinary scikit-learn estimator.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sklearn.base import BaseEstimator

from reduset._types import Array, KernelLike, PointsLike, SeedLike
from reduset._validate import seeded
from reduset.proportions.estimator import ClassProportions

try:
    from quapy.method.base import BaseQuantifier
except ImportError:
    BaseQuantifier = BaseEstimator


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class ClassProportionsQuantifier(ClassProportions, BaseQuantifier):
    """`ClassProportions` behind the interface of QuaPy's quantifiers.

    Parameters
    ----------
    classifier : scikit-learn classifier with predict_proba, optional
        As in `ClassProportions`, and the first parameter as in QuaPy. Its parameters are ``classifier__C`` and so on. None uses
        the rows.
    method, kernel, size, tol, norm, ridge, bandwidth_search, solver, select, progress, random_state
        As in `ClassProportions`. The default ``random_state=0`` makes experiments repeatable.

    Attributes
    ----------
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

    classifier: Any = field(default=None, kw_only=False)
    kernel: KernelLike = None
    random_state: SeedLike = 0

    def predict(self, X: PointsLike) -> Array:
        """The prevalences (k,) of the classes in a sample (n₀, d), in the order of ``classes_``."""
        return self.predict_proportions(X)

    def quantify(self, X: PointsLike) -> Array:
        """The older name of `predict`."""
        return self.predict(X)
