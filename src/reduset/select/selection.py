"""The selector contract: a kernel mean and a size go in, atoms come out.

A selector is a small frozen object of options. ``begin`` opens a traversal that hands out atoms in order and can be continued, so
that a search for the right size never starts over; ``select`` runs one to a given size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._engine.leaves import Leaves
from reduset._engine.profile import Floats
from reduset.mean import KernelMean

Indices = NDArray[np.int64]
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Cover:
    """Points in leaves, as a selector has them at hand, for whoever needs distances to the atoms next."""

    leaves: Leaves
    metric: int
    scale: float  # from distances in the leaves' frame to those in the kernel's


@dataclass(frozen=True)
class Selection:
    """Chosen atoms.

    Attributes
    ----------
    atoms : (m, d) array
    indices : (m,) rows of the mean's atoms, or None where the atoms are new points
    radii : (m,) array or None
        After each atom, the largest distance of any point to the atoms so far, in the kernel's coordinates.
    """

    atoms: NDArray[np.float64]
    indices: Indices | None
    radii: NDArray[np.float64] | None = None
    cover: Cover | None = field(default=None, repr=False, compare=False)


class Traversal(ABC):
    """Atoms in order, as many as are asked for."""

    cover: Cover | None = None

    @abstractmethod
    def extend(self, size: int, report: Report | None = None) -> None:
        """Choose until there are ``size`` atoms, or nothing distinct is left."""

    @property
    @abstractmethod
    def indices(self) -> Indices:
        """Rows chosen so far."""

    def radii(self) -> NDArray[np.float64] | None:
        """The covering radius after each atom so far, where the traversal knows it."""
        return None


class Selector(ABC):
    """Which atoms."""

    @abstractmethod
    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        """Open a traversal of the mean's atoms."""

    def select(self, mean: KernelMean, size: int, rng: Any = None, progress: Report | None = None) -> Selection:
        """Choose ``size`` atoms of the mean (fewer where fewer are distinct).

        Parameters
        ----------
        mean : KernelMean
        size : int
        rng : None, seed or Generator
        progress : function of (done, total), optional
        """
        if not isinstance(mean, KernelMean):
            raise TypeError(f"mean must be a KernelMean, got {type(mean).__name__}; use KernelMean.from_samples(X)")
        size = _validate.whole(size, "size", 1, mean.size)
        traversal = self.begin(mean, _validate.generator(rng))
        traversal.extend(size, progress)
        rows = traversal.indices
        return Selection(np.asarray(mean.atoms[rows], np.float64), rows, traversal.radii(), traversal.cover)


def support(mean: KernelMean) -> tuple[Floats, Indices | None]:
    """The atoms of non-zero weight, and their rows (None where that is all of them): a zero weight is as good as absence."""
    if mean.is_uniform or mean.weights.all():
        return mean.atoms, None
    rows = np.flatnonzero(mean.weights)
    return mean.atoms[rows], rows
