"""The request of an estimator for atoms: their number, their selection and their weights.

All estimators that compress use this object. So ``select``, ``size``, ``tol``, ``plateau`` and ``max_size`` follow the same rules
in all of them. The setting of Cruz Cortés & Scott 2017 (Section V-B) is ``select="kcenter", plateau=1e-8, max_size="sqrt"``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from reduset import _validate
from reduset._messages import NotReachedWarning, warn
from reduset._types import MaxSizeLike, ProgressLike, SelectorLike
from reduset.certificate import at_bandwidth
from reduset.compression import summary
from reduset.compression.compressing import compress_quietly
from reduset.compression.plan import MOST_ATOMS
from reduset.compression.result import Compression
from reduset.mean import KernelMean
from reduset.select import as_selector
from reduset.weights import HINTS, OWN, WEIGHTINGS

GOALS = ("size", "tol", "plateau")
SQRT = "sqrt"


def at_most_one(**goals: Any) -> None:
    """Raise if more than one of several parameters that exclude each other is given."""
    given = {name: value for name, value in goals.items() if value is not None}
    if len(given) > 1:
        *first, last = goals
        shown = " and ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(f"give at most one of {', '.join(first)} and {last}, got {shown}; omit one")


@dataclass(frozen=True)
class AtomRequest:
    """The options of a compression that an estimator needs, checked once.

    Parameters
    ----------
    select : Selector or its name.
    size : Number of atoms.
    tol : Largest relative error.
    plateau : ε of the 2017 paper. Selection stops at the first atom that adds at most this proportion of the energy so far.
    max_size : int, "sqrt" or a function of the number of points
        Largest number of atoms with ``tol`` or ``plateau``. "sqrt" is the largest integer below √n, as in the paper.
    weights, refine, pieces, confidence : as in `compress`
    """

    select: SelectorLike = "auto"
    size: int | None = None
    tol: float | None = None
    plateau: float | None = None
    max_size: MaxSizeLike | None = None
    weights: str = "free"
    refine: bool | int = False
    pieces: str = "atoms"
    confidence: float = 0.95

    def __post_init__(self) -> None:
        at_most_one(**{name: getattr(self, name) for name in GOALS})
        as_selector(self.select)
        if self.size is not None:
            _validate.whole(self.size, "size", 1)
        for name in ("tol", "plateau"):
            if getattr(self, name) is not None:
                _validate.tolerance(getattr(self, name), name)
        if isinstance(self.max_size, str):
            _validate.one_of(self.max_size, "max_size", (SQRT,))
        elif self.max_size is not None and not callable(self.max_size):
            _validate.whole(self.max_size, "max_size", 1, None, 'or "sqrt", or a function of the number of points')
        _validate.one_of(self.weights, "weights", (*WEIGHTINGS, OWN), HINTS)

    @classmethod
    def of(cls, estimator: Any, **changes: Any) -> Self:
        """The request of an estimator with parameters of these names, with ``changes``."""
        names = {field.name for field in fields(cls)} & set(vars(estimator))  # subclasses may have fewer parameters
        return cls(**{name: getattr(estimator, name) for name in names} | changes)

    @property
    def has_goal(self) -> bool:
        """Whether one of size, tol and plateau is given."""
        return any(getattr(self, name) is not None for name in GOALS)

    @property
    def goal(self) -> str:
        """The goal as an argument, such as tol=0.01."""
        return next((f"{name}={getattr(self, name):g}" for name in GOALS if getattr(self, name) is not None), "")

    def or_else(self, **goal: Any) -> Self:
        """The request with this goal if it has no goal."""
        return self if self.has_goal else replace(self, **goal)

    def most(self, n: int) -> int:
        """The largest number of atoms for ``n`` points, with ``tol`` or ``plateau``."""
        if self.max_size is None:
            return min(n, MOST_ATOMS)
        if isinstance(self.max_size, str):
            return max(math.isqrt(n - 1), 1)  # the largest integer below √n
        if callable(self.max_size):
            return min(n, _validate.whole(self.max_size(n), f"max_size({n})", 1))
        return min(n, self.max_size)

    def compress(self, full: KernelMean, rng: np.random.Generator, progress: ProgressLike = False) -> Compression:
        """Compress, without a warning if the goal is not reached; ``size`` is at most the number of points."""
        goal: dict[str, Any] = {"tol": self.tol, "plateau": self.plateau, "max_size": self.most(full.size)}
        if self.size is not None:
            goal = {"size": min(self.size, full.size)}
        options = {name: getattr(self, name) for name in ("select", "weights", "refine", "pieces", "confidence")}
        return compress_quietly(full, **goal, **options, rng=rng, progress=progress)

    def compress_below(self, full: KernelMean, rng: np.random.Generator, progress: ProgressLike = False) -> Compression | None:
        """`compress`, or None if ``size`` is at least the number of points."""
        return None if self.size is not None and self.size >= full.size else self.compress(full, rng, progress)

    def warn_if_not_reached(self, result: Compression, consequence: str) -> None:
        """Warn if a compression ended at its largest number of atoms before it reached its goal."""
        if not result.reached:
            error = f"{result.certificate.relative_error:.2g}{at_bandwidth(result.certificate.bandwidth)}"
            warn(
                f"{self.goal} was not reached with {result.size:,} {summary.noun(result.mean)}s; the error is {error}: "
                f"{consequence}. A wider bandwidth, a larger {self.goal.partition('=')[0]} or a larger max_size reaches it",
                NotReachedWarning,
            )
