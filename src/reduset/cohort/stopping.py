"""How many shared atoms are enough: for every bag, or for their distances.

With y_i = L⁻¹κ_i the coordinates of bag i in the atoms' span and r_i the measured ‖f_i − Pf_i‖² with all the atoms, the first m
atoms lose e_i² = r_i + Σ_{l>m} y_il² of bag i and put two bags ‖y_i − y_j‖ apart, over the first m coordinates. So one measurement
says for every m how far each goal is. O(N²·m) a size that is looked at.

Taken at the upper ends of the intervals of r, in units where every bump has norm 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist

from reduset._types import Array


@dataclass(frozen=True)
class PrefixLosses:
    """What every prefix of the atoms loses.

    Attributes
    ----------
    coordinates : (N, m) y of each bag
    rest : (N,) upper end of ‖f − Pf‖² with all the atoms
    """

    coordinates: Array
    rest: Array

    def squares(self, size: int) -> Array:
        """(N,) ‖f − Pf‖² with the first ``size`` atoms."""
        return np.asarray(self.rest + np.square(self.coordinates[:, size:]).sum(axis=1))

    @property
    def norms(self) -> Array:
        """(N,) ‖f‖."""
        return np.asarray(np.sqrt(self.rest + np.square(self.coordinates).sum(axis=1)))


class StoppingRule(ABC):
    """What is to be reached."""

    @abstractmethod
    def lack(self, losses: PrefixLosses, size: int) -> float:
        """How many times the errors of the bags exceed what the goal allows, with the first ``size`` atoms; 1 or less: reached."""

    @property
    @abstractmethod
    def start(self) -> float:
        """The relative error of the mean of all bags at which it is worth looking at each of them."""

    def fewest(self, losses: PrefixLosses) -> int:
        """The smallest size that reaches the goal, which all the atoms do: the lack falls with the size."""
        low, high = 0, losses.coordinates.shape[1]
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.lack(losses, middle) <= 1 else (middle, high)
        return high


@dataclass(frozen=True)
class BagTolerance(StoppingRule):
    """‖f − f_m‖ / ‖f‖ at most ``tol`` for every bag."""

    tol: float

    def lack(self, losses: PrefixLosses, size: int) -> float:
        return float(np.max(np.sqrt(losses.squares(size)) / losses.norms)) / self.tol

    @property
    def start(self) -> float:
        return self.tol


@dataclass(frozen=True)
class DistanceTolerance(StoppingRule):
    """The bounds of all distances at most ``share`` of the distances, in the Frobenius norm.

    Of bags that hardly differ no error is a small share of the distance: distances count as at least ``share`` of the bags' norms.
    """

    share: float

    def lack(self, losses: PrefixLosses, size: int) -> float:
        apart = pdist(losses.coordinates[:, :size])
        lost = np.sqrt(losses.squares(size))
        i, j = np.triu_indices(len(lost), 1)
        errors = np.hypot(apart, lost[i] + lost[j]) - apart
        scale = max(np.linalg.norm(apart), self.share * np.linalg.norm(losses.norms[i]))
        return float(np.sqrt(np.linalg.norm(errors) / (self.share * scale)))  # of second order in the errors of the bags

    @property
    def start(self) -> float:
        return float(np.sqrt(self.share))
