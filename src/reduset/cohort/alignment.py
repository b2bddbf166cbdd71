"""Procrustes: how alike two maps are, up to what a map leaves open: where its origin is, which way it is turned, and its scale.

With both maps centred, A and B, min over rotations and reflections R and scales s of ‖sAR − B‖ is attained at R = UVᵀ for
AᵀB = UΣVᵀ, and s = tr Σ / ‖A‖²; the correlation is tr Σ / (‖A‖ ‖B‖), and ‖sAR − B‖² = (1 − correlation²) ‖B‖². O(N k² + k³).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes

from reduset import _validate
from reduset._types import Array


@dataclass(frozen=True)
class Alignment:
    """A map laid over another.

    Attributes
    ----------
    aligned : (N, k) the map, moved, turned and scaled onto the reference
    correlation : 1 where they agree, 0 where nothing does
    residual : ‖aligned − reference‖ over the reference's own spread, √(1 − correlation²)
    """

    aligned: Array
    correlation: float
    residual: float


def procrustes(embedding: Any, reference: Any) -> Alignment:
    """Lay a map over a reference by a shift, a rotation or reflection, and a scale.

    Parameters
    ----------
    embedding, reference : (N, k), the same bags in the same order

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.cohort import procrustes
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> turned = 3 * square[:, ::-1] + 5
    >>> found = procrustes(turned, square)
    >>> round(found.correlation, 6), bool(np.allclose(found.aligned, square))
    (1.0, True)
    """
    A = np.asarray(_validate.points(embedding, "embedding"), np.float64)
    B = np.asarray(_validate.points(reference, "reference"), np.float64)
    if A.shape != B.shape:
        raise ValueError(f"embedding and reference must have the same shape, got {A.shape} and {B.shape}")
    centre = B.mean(axis=0)
    A, B = A - A.mean(axis=0), B - centre
    spreads = {"embedding": float(np.linalg.norm(A)), "reference": float(np.linalg.norm(B))}
    for name, spread in spreads.items():
        if spread == 0:
            raise ValueError(f"all rows of {name} coincide, so it cannot be compared; is every bag the same?")
    turn, common = orthogonal_procrustes(A, B)
    correlation = min(float(common) / (spreads["embedding"] * spreads["reference"]), 1.0)
    aligned = (A @ turn) * (float(common) / spreads["embedding"] ** 2)
    return Alignment(aligned + centre, correlation, float(np.linalg.norm(aligned - B)) / spreads["reference"])
