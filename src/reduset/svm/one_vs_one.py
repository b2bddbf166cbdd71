"""One-versus-one voting, as in the SVC of scikit-learn.

k classes have k(k − 1)/2 functions. The function of classes (i, j), i < j, is positive where i wins. libsvm stores the coefficients
of a support vector of class i against each of the other k − 1 classes. So the function of (i, j) uses row j − 1 of the coefficients
for vectors of class i, and row i for vectors of class j. Two classes have one function, which is positive where the second wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array


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
