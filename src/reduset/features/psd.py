"""An indefinite similarity matrix made positive semidefinite, with a rule for later rows (Chen et al. 2009).

    K = U Λ Uᵀ,   P = U M Uᵀ,   K' = P K,   and a row k of similarities of a new object to the training ones becomes P k

    "clip"   M = 1 where λ > 0, 0 elsewhere: the nearest positive semidefinite matrix
    "flip"   M = sign λ
    "shift"  K' = K + s I with s = −min λ (0 where nothing is negative): it changes only an object's similarity with itself, so rows
             of new objects stay as they are, and rows of training objects shown again have s added there

A training object shown again so gets the row of K' that it was fitted with. O(N³) once, O(N²) a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from reduset._engine import single_threaded_blas
from reduset._types import Array

RULES = ("clip", "flip", "shift")


@dataclass(frozen=True)
class PSDCorrection:
    """A spectrum correction (clip, flip or shift), as learnt from a training matrix.

    Attributes
    ----------
    projection : (N, N) P; None where it changes nothing
    shift : s
    least : the smallest eigenvalue that was found
    """

    projection: Array | None
    shift: float
    least: float

    @classmethod
    def learnt(cls, K: Array, rule: str) -> PSDCorrection:
        """From the symmetric (N, N) similarities of the training objects."""
        with single_threaded_blas():  # the same result whatever the number of threads
            values, vectors = eigh(K)
            least = float(values[0])
            if least >= -len(K) * np.finfo(np.float64).eps * abs(float(values[-1])):
                return cls(None, 0.0, least)
            if rule == "shift":
                return cls(None, -least, least)
            kept = values > 0
            positive = vectors[:, kept] @ vectors[:, kept].T
            if rule == "clip":
                return cls(positive, 0.0, least)
            return cls(positive - vectors[:, ~kept] @ vectors[:, ~kept].T, 0.0, least)

    def rows(self, k: Array, alike: NDArray[np.bool_]) -> Array:
        """(M, N) similarities to the training objects after the rule; ``alike``: which are the object itself (the first counts)."""
        if self.projection is not None:
            with single_threaded_blas():
                return k @ self.projection
        return k + self.shift * (alike & (np.cumsum(alike, axis=1) == 1)) if self.shift else k
