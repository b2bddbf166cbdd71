"""The selector contract: a kernel mean and a size go in, atoms come out.

A selector is a small frozen object of options. ``begin`` opens a traversal, which returns atoms and can be continued. A search for
the size therefore never starts over. ``select`` runs a traversal to a given size. Most traversals are nested: the atoms so far stay
when more are requested. k-means and thinning are not, and set ``nested = False``. Callers that need an order then compute one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from reduset import _validate
from reduset._engine import LeafCover, rows_of
from reduset._types import Array, Floats, Indices, Report
from reduset._validate import seeded
from reduset.mean import KernelMean


@dataclass(frozen=True)
class Selection:
    """Chosen atoms.

    Attributes
    ----------
    atoms : (m, d) array
    indices : (m,) array or None
        Rows of the mean's atoms. None if the atoms are new points.
    radii : (m,) array or None
        After each atom, the largest distance of any point to the atoms so far. Distances are in the kernel's coordinates.
    weights : (m,) array or None
        The selector's own weights, such as counts, equal weights or the result of a line search. They do not minimise the error.
    radius : float or None
        The covering radius of all atoms in the kernel's coordinates, if known. No point is farther from all atoms.
    assignments : (n,) array or None
        The atom that each point of the mean is assigned to, −1 for points of weight zero. Set only if the selector's own weights
        are the summed weights of the assigned points.
    """

    atoms: Array
    indices: Indices | None
    radii: Array | None = None
    weights: Array | None = None
    cover: LeafCover | None = field(default=None, repr=False, compare=False)
    assignments: Indices | None = field(default=None, repr=False, compare=False)
    radius: float | None = None


class Traversal(ABC):
    """A selection of atoms that can be extended.

    Attributes
    ----------
    nested : whether the atoms so far stay, in their order, when more are requested
    cover : the points in leaves, if the traversal stores them
    kappa : the inner products of f with the atoms so far, or None if not computed
    points : the atoms so far, (m, d), if they are new points
    remark : the reason for the selection, or an empty text
    """

    nested: bool = True
    cover: LeafCover | None = None
    kappa: Array | None = None
    points: Array
    remark: str = ""

    @abstractmethod
    def extend(self, size: int, report: Report | None = None) -> None:
        """Choose atoms until there are ``size``, or no distinct point remains."""

    @property
    @abstractmethod
    def indices(self) -> Indices | None:
        """Rows chosen so far, or None if the atoms are new points."""

    def radii(self) -> Array | None:
        """The covering radius after each atom so far, or None if unknown."""
        return None

    def radius(self) -> float | None:
        """The covering radius of all atoms so far or an upper bound of it, or None if unknown."""
        radii = self.radii()
        return float(radii[-1]) if radii is not None and len(radii) else None

    def weights(self) -> Array | None:
        """The selector's own weights for the atoms so far, or None if it has none."""
        return None

    def assignments(self) -> Indices | None:
        """The atom that each point is assigned to, if the selector's own weights are the summed weights of the assigned points."""
        return None


class Selector(ABC):
    """A rule that chooses atoms.

    Attributes
    ----------
    ending : whether it determines the number of atoms
    scale_free : whether it chooses the same atoms at every bandwidth
    weighs : whether its traversals return weights
    automatic : whether the plan of a compression may replace it
    """

    ending: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False
    weighs: ClassVar[bool] = False
    automatic: ClassVar[bool] = False

    @abstractmethod
    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        """Open a traversal of the mean's atoms."""

    def for_part_of(self, parts: int) -> Selector:
        """The selector for one of several parts of the data. Selectors with a time budget divide it."""
        return self

    def __str__(self) -> str:
        return type(self).__name__

    @seeded
    def select(self, mean: KernelMean, size: int, rng: Any = None, progress: Report | None = None) -> Selection:
        """Choose ``size`` atoms of the mean, or fewer if fewer are distinct.

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
        atoms = traversal.points if rows is None else np.asarray(mean.atoms[rows], np.float64)
        own = traversal.weights(), traversal.cover, traversal.assignments(), traversal.radius()
        return Selection(atoms, rows, traversal.radii(), *own)


def support(mean: KernelMean) -> tuple[Floats, Indices | None]:
    """The atoms of non-zero weight and their rows, which are None for all rows. A row of weight zero is equivalent to no row."""
    if mean.is_uniform or mean.weights.all():
        return mean.atoms, None
    rows = np.flatnonzero(mean.weights)
    return rows_of(mean.atoms, rows), rows
