"""A Cholesky factor in the given order that drops redundant atoms, and the greedy order by energy.

**Factor.** K = L Lᵀ without pivoting, so that the leading block factors the first atoms and one factorisation serves every prefix.
An atom is redundant if its pivot vanishes to rounding. The pivot is the squared distance of its kernel function to the span of
those before it. Redundant atoms are dropped. A pivot just above the rounding is half noise. Many of them in a row let L⁻¹ and the
weights grow without limit. So the norm of L⁻¹ is estimated. If rounding times its square could reach the size of the result, a
Cholesky factorisation with pivoting, which reveals the rank, selects the atoms to keep. These are then factored in the given order.
O(m³/3), most of it in BLAS.

**Pursuit.** The next kernel function explains most of the remainder of f, after it is made orthogonal to those chosen. Let r be the
remainder of f at each candidate and σ² the squared distance of each candidate to the span. The next candidate has the largest
r²/σ². O(q·j) for the j-th of q candidates, memory O(q·m). A pursuit can also start beyond an existing span: ``squares`` are then
the diagonal of the candidates' products beyond it, and ``choose(worth)`` ends if no candidate adds more energy than ``worth``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpstrf, dtrcon

from reduset._engine.compiled import compiled
from reduset._engine.threads import single_threaded_blas
from reduset._types import Array, Indices

BLOCK = 64
GROWTH = 0.1
MAX_FLOOR = 1e-6  # the largest floor that is tried


def pivot_floor(size: int) -> float:
    """The relative pivot at which an atom counts as redundant: the rounding error of the factorisation."""
    return 8.0 * max(size, 32) * float(np.finfo(np.float64).eps)


def cholesky_dropping(K: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The lower factor of the kept rows and columns of K, and the mask of these.

    Parameters
    ----------
    K : (m, m) symmetric positive semidefinite, with a unit diagonal.
    """
    m = len(K)
    floor = pivot_floor(m)
    with single_threaded_blas():  # results must not depend on the number of threads, which are also slower on a busy machine
        plain, failed = dpotrf(K, lower=1, clean=1)
        if failed == 0 and np.min(np.diagonal(plain)) ** 2 > floor and _growth(plain) <= GROWTH:
            return plain, np.ones(m, np.bool_)
        L, kept = _dropping(K, floor)
        failed = 0
        while (failed or _growth(L) > GROWTH) and floor < MAX_FLOOR:
            _, pivots, rank, _ = dpstrf(K, lower=1, tol=floor)
            kept = np.zeros(m, np.bool_)
            kept[pivots[:rank] - 1] = True
            L, failed = dpotrf(K[np.ix_(kept, kept)], lower=1, clean=1)
            floor *= 8
        return (L, kept) if failed <= 0 else _dropping(K, floor)


def _growth(L: Array) -> float:
    """ε‖L⁻¹‖², approximately: the relative change of the weights due to rounding of K."""
    reciprocal, _ = dtrcon(L, norm="1", uplo="L")
    norm = float(np.abs(L).sum(axis=0).max())
    return float(np.finfo(np.float64).eps) / len(L) / max(reciprocal * norm, 1e-150) ** 2


def _dropping(K: Array, floor: float) -> tuple[Array, NDArray[np.bool_]]:
    """The factor without the rows and columns with a pivot of at most ``floor``."""
    m = len(K)
    L = np.zeros((m, m))
    kept = np.ones(m, np.bool_)
    for start in range(0, m, BLOCK):
        stop = min(m, start + BLOCK)
        panel = K[start:, start:stop] - L[start:, :start] @ L[start:stop, :start].T
        block = panel[: stop - start]
        keep = kept[start:stop]
        _factor_block(block, keep, floor)
        L[start:stop, start:stop] = np.tril(block)
        kept_columns = np.flatnonzero(keep)
        if stop < m and len(kept_columns):
            lower = block[np.ix_(kept_columns, kept_columns)]
            below = panel[stop - start :, kept_columns]
            L[stop:, start + kept_columns] = solve_triangular(lower, below.T, lower=True, check_finite=False).T
    if kept.all():
        return L, kept
    return np.ascontiguousarray(L[np.ix_(kept, kept)]), kept


@compiled()
def _factor_block(A, keep, floor):
    """Factor one diagonal block in place; dropped rows and columns become zero."""
    for j in range(len(A)):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        if not pivot > floor:
            keep[j] = False
            A[j, : j + 1] = 0.0
            A[j:, j] = 0.0
            continue
        root = np.sqrt(pivot)
        A[j, j] = root
        for i in range(j + 1, len(A)):
            value = A[i, j]
            for k in range(j):
                value -= A[i, k] * A[j, k]
            A[i, j] = value / root


class Pursuit:
    """A pursuit that can be continued.

    Parameters
    ----------
    values : (q,) products of f with the candidates' kernel functions, each of norm 1
    row : returns the products of one candidate with all, (q,)
    squares : (q,) the product of each candidate with itself; 1 by default
    floor : the squared distance to the span that counts as rounding; `pivot_floor` by default
    """

    def __init__(
        self, values: Array, row: Callable[[int], Array], squares: Array | None = None, floor: float | None = None
    ) -> None:
        self._row = row
        self._residuals = np.array(values)
        self._squares = np.ones(len(values)) if squares is None else np.array(squares)
        self._floor = floor
        self._basis = np.empty((min(64, len(values)), len(values)))  # row j is the j-th direction, evaluated at every candidate
        self.chosen: list[int] = []

    def choose(self, worth: float = -1.0) -> bool:
        """Choose one more candidate. Return False if no candidate adds a direction, or more energy than ``worth``.

        Call it with BLAS limited to one thread.
        """
        floor = self._min_square()
        gains = np.where(self._squares > floor, np.square(self._residuals) / np.maximum(self._squares, floor), -1.0)
        best = int(np.argmax(gains))
        if gains[best] <= worth:
            return False
        self.take(best)
        return True

    def _min_square(self) -> float:
        return pivot_floor(len(self.chosen) + 1) if self._floor is None else self._floor

    def take(self, best: int) -> None:
        """Choose this candidate."""
        count = len(self.chosen)
        if count == len(self._basis):
            self._basis = np.concatenate([self._basis, np.empty_like(self._basis)])
        root = float(np.sqrt(max(self._squares[best], self._min_square())))
        direction = (self._row(best) - self._basis[:count, best] @ self._basis[:count]) / root
        # No component along the direction exceeds the distance to the span. Without this bound, rounding errors grow from step to
        # step.
        bound = np.sqrt(np.maximum(self._squares, 0.0))
        np.clip(direction, -bound, bound, out=direction)
        self._residuals -= (self._residuals[best] / root) * direction
        self._squares -= np.square(direction)
        self._squares[best] = 0.0  # exactly 0, since the candidate is now in the span
        self._basis[count] = direction
        self.chosen.append(best)


def order_by_energy(gram: Array, values: Array) -> Indices:
    """All kernel functions in the order of a pursuit, the redundant ones last."""
    pursuit = Pursuit(values, lambda k: gram[k])
    with single_threaded_blas():
        while len(pursuit.chosen) < len(values) and pursuit.choose():
            pass
    rest = np.setdiff1d(np.arange(len(values)), pursuit.chosen)
    return np.concatenate([np.array(pursuit.chosen, dtype=np.int64), rest])
