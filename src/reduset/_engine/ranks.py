"""Atoms of which a matrix product tells the nearest: z·a − |a|²/2 is largest there. For rows of many columns, on any device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

WITHIN_SINGLE = 1e18  # squares of coordinates, so that float32 holds their sums
SINGLE, SURE = 2.0**-22, 1e-3  # the rounding of a product, and the share of a squared distance that it may be


def array_module(values: Any) -> Any:
    """NumPy or CuPy, whichever an array is of."""
    if isinstance(values, np.ndarray):
        return np
    import cupy

    return cupy


@dataclass(frozen=True)
class Ranks:
    """In float32, which is twice as quick. Where its rounding is no small part of a squared distance, in float64."""

    atoms: Any  # (m, d), and half the squared lengths
    half: Any
    single: tuple[Any, Any] | None  # none where float32 does not hold the squares
    farthest: float  # length of an atom

    @classmethod
    def of(cls, A: Any, unit: float) -> Ranks:
        xp = array_module(A)
        squares = xp.einsum("ij,ij->i", A, A)
        fits = unit == 1.0 and 1 / WITHIN_SINGLE < float(squares.max()) < WITHIN_SINGLE
        single = (A.astype(xp.float32), (0.5 * squares).astype(xp.float32)) if fits else None
        return cls(A, 0.5 * squares, single, float(np.sqrt(float(squares.max()))))

    def nearest(self, Z: Any) -> tuple[Any, Any]:
        """(rows,) the nearest atom of each row of Z, and how far it is."""
        if self.single is None:
            return self._in_double(Z)
        xp, (atoms, half) = array_module(Z), self.single
        scores = Z.astype(xp.float32) @ atoms.T
        scores -= half
        index = xp.argmax(scores, axis=1).astype(xp.int32)
        distance = _lengths(Z - self.atoms[index])
        rounding = SINGLE * self.farthest * (self.farthest + _lengths(Z))
        square = distance**2
        unsure = xp.flatnonzero((rounding > SURE * square) | (square < 1 / WITHIN_SINGLE))  # the latter may be nothing in float32
        if len(unsure):
            index[unsure], distance[unsure] = self._in_double(Z[unsure])
        return index, distance

    def _in_double(self, Z: Any) -> tuple[Any, Any]:
        xp = array_module(Z)
        index = xp.argmax(Z @ self.atoms.T - self.half, axis=1).astype(xp.int32)
        return index, _lengths(Z - self.atoms[index])


def _lengths(values: Any) -> Any:
    xp = array_module(values)
    return xp.sqrt(xp.einsum("ij,ij->i", values, values))
