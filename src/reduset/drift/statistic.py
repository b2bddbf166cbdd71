"""The interface of statistics for a test of drift: numbers that grow with the difference δ of two means of coordinates.

`feature_map` defines the coordinates. A test evaluates its statistics for the observed difference and for every draw under the null
hypothesis. It joins their p-values by a weighted harmonic mean (`null_distribution`). A statistic therefore needs no null
distribution, and equal statistics cost no power. A new statistic is a subclass in a separate file and one line of `registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reduset._engine import cached_property
from reduset._types import Array

if TYPE_CHECKING:
    from reduset.drift.feature_map import FeatureMap


class Statistic(ABC):
    """One or several numbers, each a function of the difference of two means."""

    @abstractmethod
    def weights(self, features: FeatureMap) -> Array:
        """(K,) weight of each number in the joint test; empty if the statistic is not defined for these coordinates."""

    @abstractmethod
    def values(self, features: FeatureMap, differences: Array) -> Array:
        """(…, K) values at differences (…, p). Larger changes have larger values."""

    def p_values_beyond_draws(self, features: FeatureMap, difference: Array, covariance: Array, rows: tuple[float, float]) -> Array:
        """(K,) p-values, or upper bounds on them, for a difference larger than all draws. 1 if no bound is known.

        Parameters
        ----------
        features : The coordinates.
        difference : (p,) observed difference.
        covariance : (p, p) covariance of the difference under the null hypothesis.
        rows : Sizes of the reference and of the new sample; effective sizes for weighted rows.
        """
        return np.ones(len(self.weights(features)))


@dataclass(frozen=True)
class JointStatistic:
    """Several statistics of the same coordinates. Their numbers are concatenated."""

    features: FeatureMap
    parts: tuple[Statistic, ...]

    @cached_property
    def weights(self) -> Array:
        """(K,) weights of all statistics; they sum to 1."""
        weights = np.concatenate([part.weights(self.features) for part in self.parts])
        if not len(weights):
            raise ValueError(
                "statistics must hold one that this reference supports; 'columns' needs rows with at most 100 columns, 'kernel' is "
                "always supported"
            )
        return np.asarray(weights / weights.sum())

    def values(self, differences: Array) -> Array:
        """(…, K) values at differences (…, p)."""
        return np.concatenate([part.values(self.features, differences) for part in self.parts], axis=-1)

    def p_value_beyond_draws(self, difference: Array, covariance: Array, rows: tuple[float, float]) -> float:
        """The smallest p-value after division by the weights (weighted Bonferroni)."""
        p_values = [part.p_values_beyond_draws(self.features, difference, covariance, rows) for part in self.parts]
        return float((np.concatenate(p_values) / self.weights).min(initial=1.0))
