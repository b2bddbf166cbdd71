"""One-versus-one voting, as scikit-learn's SVC does it.

k classes have k(k − 1)/2 functions, that of classes (i, j), i < j, positive where i wins. libsvm keeps the coefficients of a
support vector of class i against each of the other k − 1 classes, so the function of (i, j) takes row j − 1 of the coefficients
where the vector is of class i, and row i where it is of class j. Two classes have one function, positive where the second wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array


def pair_coefficients(dual: Array, counts: NDArray[Any]) -> Array:
    """(n, p) coefficients of every support vector in every function, from (k − 1, n) of libsvm, the vectors ordered by class.

    Parameters
    ----------
    counts : (k,) support vectors of each class
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
    """One-versus-one voting: from values of the functions to decision values and classes."""

    classes: NDArray[Any]  # (k,) labels
    shape: str  # "ovr" or "ovo", of decision values of more than two classes
    break_ties: bool  # whether classes of equally many votes are told apart by their decision values

    def __post_init__(self) -> None:
        if self.break_ties and self.shape == "ovo":
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo', which scikit-learn's predict demands too; "
                "set one of them: fitted.set_params(break_ties=False)"
            )

    @property
    def winners(self) -> tuple[Array, Array]:
        """(p, k) which class a function votes for where it is positive, and where it is not."""
        k = len(self.classes)
        first, second = np.transpose(list(combinations(range(k), 2)))
        return np.eye(k)[first], np.eye(k)[second]

    def decide(self, values: Array) -> Array:
        """Decision values, (N,) of two classes, (N, k) or (N, p) of more, from the functions' (N, p)."""
        if len(self.classes) == 2:
            return values[:, 0]
        if self.shape == "ovo":
            return values
        first, second = self.winners
        votes = np.where(values < 0, 0.0, 1.0) @ first + np.where(values < 0, 1.0, 0.0) @ second
        sureness = values @ (first - second)
        return votes + sureness / (3.0 * (np.abs(sureness) + 1.0))  # within ±1/3: it parts ties, and no votes

    def elect(self, values: Array) -> NDArray[Any]:
        """(N,) labels."""
        if len(self.classes) == 2:
            return self.classes[(values[:, 0] >= 0).astype(np.intp)]
        if self.break_ties:
            return self.classes[self.decide(values).argmax(axis=1)]
        first, second = self.winners
        won = np.where(values > 0, 1.0, 0.0)
        return self.classes[(won @ first + (1.0 - won) @ second).argmax(axis=1)]
