"""Greedy choice by energy: always the bump that explains most of what is left of f once it is made orthogonal to those chosen.

With F the candidates' bumps in the orthonormal basis chosen so far, r what is left of f at each candidate and σ² the squared
distance of each to the span, the next is the one of the largest r²/σ². O(q·j) for the j-th of q candidates, memory O(q·m).

What is left of f beyond a span that is there already is pursued in the same way, by products of what the candidates have beyond
it: ``squares`` are then the diagonal of these products, and ``choose(worth)`` ends where no candidate adds more than that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reduset._engine.blas import single_threaded_blas
from reduset._engine.factor import pivot_floor
from reduset._types import Array


class Pursuit:
    """A pursuit that can be continued.

    Parameters
    ----------
    values : (q,) products of f with the candidates' bumps, each of norm 1
    row : the products of one candidate with all, (q,)
    squares : (q,) the products of each candidate with itself; 1 by default
    floor : below which a squared distance to the span is rounding; by default that of a factorisation, `pivot_floor`
    """

    def __init__(
        self, values: Array, row: Callable[[int], Array], squares: Array | None = None, floor: float | None = None
    ) -> None:
        self._row = row
        self._left = np.array(values)
        self._room = np.ones(len(values)) if squares is None else np.array(squares)
        self._floor = floor
        self._basis = np.empty((min(64, len(values)), len(values)))  # row j: the j-th direction at every candidate
        self.chosen: list[int] = []

    def choose(self, worth: float = -1.0) -> bool:
        """Choose one more; False where no candidate adds a direction, or none more than ``worth`` of energy.

        Call it with BLAS held to one thread.
        """
        floor = self._least()
        gains = np.where(self._room > floor, np.square(self._left) / np.maximum(self._room, floor), -1.0)
        best = int(np.argmax(gains))
        if gains[best] <= worth:
            return False
        self.take(best)
        return True

    def _least(self) -> float:
        return pivot_floor(len(self.chosen) + 1) if self._floor is None else self._floor

    def take(self, best: int) -> None:
        """Choose this one."""
        done = len(self.chosen)
        if done == len(self._basis):
            self._basis = np.concatenate([self._basis, np.empty_like(self._basis)])
        root = float(np.sqrt(max(self._room[best], self._least())))
        direction = (self._row(best) - self._basis[:done, best] @ self._basis[:done]) / root
        # no bump is longer along a direction than what it has beyond the span; without this, rounding grows from one to the next
        most = np.sqrt(np.maximum(self._room, 0.0))
        np.clip(direction, -most, most, out=direction)
        self._left -= (self._left[best] / root) * direction
        self._room -= np.square(direction)
        self._room[best] = 0.0  # it is in the span now, whatever rounding says
        self._basis[done] = direction
        self.chosen.append(best)


def order_by_energy(gram: Array, values: Array) -> NDArray[np.int64]:
    """All of the bumps in the order in which a pursuit chooses them, the redundant ones last."""
    pursuit = Pursuit(values, lambda k: gram[k])
    with single_threaded_blas():
        while len(pursuit.chosen) < len(values) and pursuit.choose():
            pass
    rest = np.setdiff1d(np.arange(len(values)), pursuit.chosen)
    return np.concatenate([np.array(pursuit.chosen, dtype=np.int64), rest])
