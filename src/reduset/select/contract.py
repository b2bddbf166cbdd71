"""The selector contract: a kernel mean and a size go in, atoms come out.

A selector is a small frozen object of options. ``begin`` opens a traversal that hands out atoms and can be continued, so that a
search for the right size never starts over; ``select`` runs one to a given size. Most traversals nest: the atoms so far stay when
more are asked for. Those that do not (k-means, thinning) say so, and whoever needs an order makes one.
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
    indices : (m,) rows of the mean's atoms, or None where the atoms are new points
    radii : (m,) array or None
        After each atom, the largest distance of any point to the atoms so far, in the kernel's coordinates.
    weights : (m,) array or None
        The weights that the selector itself would give them: counts, equal shares, a line search. Not the best ones.
    radius : float or None
        The covering radius of all of them, in the kernel's coordinates, where it is known: no point is farther from all atoms.
    owners : (n,) array or None
        Which atom stands for each of the mean's (-1 where that has no weight), where the selector's own weights are such masses.
    """

    atoms: Array
    indices: Indices | None
    radii: Array | None = None
    weights: Array | None = None
    cover: LeafCover | None = field(default=None, repr=False, compare=False)
    owners: Indices | None = field(default=None, repr=False, compare=False)
    radius: float | None = None


class Traversal(ABC):
    """Atoms, as many as are asked for.

    Attributes
    ----------
    nested : whether the atoms so far stay, in their order, when more are asked for
    cover : the points in leaves, where the traversal has them
    """

    nested: bool = True
    cover: LeafCover | None = None

    @abstractmethod
    def extend(self, size: int, report: Report | None = None) -> None:
        """Choose until there are ``size`` atoms, or nothing distinct is left."""

    @property
    @abstractmethod
    def indices(self) -> Indices | None:
        """Rows chosen so far; None where the atoms are new points."""

    @property
    def points(self) -> Array:
        """The atoms so far, (m, d), where they are new points."""
        raise TypeError(f"{type(self).__name__} chooses rows: see indices")

    @property
    def kappa(self) -> Array | None:
        """The inner products of f with the atoms so far, where the traversal has them."""
        return None

    def radii(self) -> Array | None:
        """The covering radius after each atom so far, where the traversal knows it."""
        return None

    def radius(self) -> float | None:
        """The covering radius of all atoms so far, or an upper bound of it, where the traversal knows it."""
        radii = self.radii()
        return float(radii[-1]) if radii is not None and len(radii) else None

    def weights(self) -> Array | None:
        """The selector's own weights for the atoms so far, where it has any."""
        return None

    def owners(self) -> Indices | None:
        """Which of the atoms so far each point was given to, where the selector's own weights are the masses of these points."""
        return None

    def remark(self) -> str:
        """What the selector has to say about its choice; empty where its name says it all."""
        return ""


class Selector(ABC):
    """Which atoms.

    Attributes
    ----------
    ending : whether it decides by itself how many atoms there are
    scale_free : whether it chooses the same atoms at every bandwidth
    weighs : whether its traversals have weights of their own
    automatic : whether it stands for a choice that the plan of a compression makes
    """

    ending: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False
    weighs: ClassVar[bool] = False
    automatic: ClassVar[bool] = False

    @abstractmethod
    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        """Open a traversal of the mean's atoms."""

    def for_part_of(self, parts: int) -> Selector:
        """The selector for one of several parts of the data; those with a time budget divide it."""
        return self

    def __str__(self) -> str:
        return type(self).__name__

    @seeded
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
        atoms = traversal.points if rows is None else np.asarray(mean.atoms[rows], np.float64)
        own = traversal.weights(), traversal.cover, traversal.owners(), traversal.radius()
        return Selection(atoms, rows, traversal.radii(), *own)


def support(mean: KernelMean) -> tuple[Floats, Indices | None]:
    """The atoms of non-zero weight, and their rows (None where that is all of them): a zero weight is as good as absence."""
    if mean.is_uniform or mean.weights.all():
        return mean.atoms, None
    rows = np.flatnonzero(mean.weights)
    return rows_of(mean.atoms, rows), rows
