"""What a statistic of a test of drift is: numbers that grow with the difference δ of two means of coordinates (`feature_map`).

A test evaluates its statistics for the observed difference and for every draw under the null hypothesis, and joins their p-values
by a weighted harmonic mean (`null_distribution`). So a statistic needs no distribution of its own, and equal ones cost no power. A
new statistic is a subclass in a file of its own and one line of `registry`.
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
        """(K,) how much each number counts in the joint test; empty if these coordinates do not have the statistic."""

    @abstractmethod
    def values(self, features: FeatureMap, differences: Array) -> Array:
        """(…, K) at differences (…, p); larger for larger changes."""

    def p_values_beyond_draws(self, features: FeatureMap, difference: Array, covariance: Array, rows: tuple[float, float]) -> Array:
        """(K,) p-values, or bounds on them, for a difference larger than all draws; 1 if none is known.

        Parameters
        ----------
        difference : (p,); covariance : (p, p) of it under the null hypothesis
        rows : of the reference and of the new sample, effective ones if they have weights
        """
        return np.ones(len(self.weights(features)))


@dataclass(frozen=True)
class JointStatistic:
    """Several statistics of the same coordinates, one after the other."""

    features: FeatureMap
    parts: tuple[Statistic, ...]

    @cached_property
    def weights(self) -> Array:
        """(K,) of all statistics; they sum to 1."""
        found = np.concatenate([part.weights(self.features) for part in self.parts])
        if not len(found):
            raise ValueError(
                "statistics must hold one that this reference has; 'columns' needs rows of at most 100 columns, 'kernel' is always "
                "possible"
            )
        return np.asarray(found / found.sum())

    def values(self, differences: Array) -> Array:
        """(…, K) at differences (…, p)."""
        return np.concatenate([part.values(self.features, differences) for part in self.parts], axis=-1)

    def p_value_beyond_draws(self, difference: Array, covariance: Array, rows: tuple[float, float]) -> float:
        """The least p-value, each over its weight (weighted Bonferroni)."""
        each = [part.p_values_beyond_draws(self.features, difference, covariance, rows) for part in self.parts]
        return float((np.concatenate(each) / self.weights).min(initial=1.0))
