"""Statistics of a test of drift: numbers that grow with the difference δ of two means of coordinates (`feature_map`).

A test evaluates its statistics for the observed difference and for every draw under the null hypothesis. It joins their p-values by
a weighted harmonic mean (`null_distribution`). A statistic therefore needs no null distribution, and equal statistics cost no
power. A new statistic is a subclass of `Statistic` and one line of ``STATISTICS``.

**Kernel statistics** are the MMD² and regularised Mahalanobis distances of the kernel means at each scale,

    T = Σⱼ ωⱼ δⱼ²    over the coordinates of one scale with variances σⱼ²

The plain statistic, ω = 1, is the MMD² within the span. The whitened statistic, ω = 1/(σⱼ² + λσ₁²), is the regularised Mahalanobis
distance (Harchaoui, Bach & Moulines 2007; Hagrass, Sriperumbudur & Li 2024). Plain statistics detect changes of a large proportion
of the rows, whitened statistics changes of a small proportion. For a compression only plain statistics are used, because whitened
statistics cannot be corrected for its error.

**Column statistics** are the largest scores of single columns (`columns`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reduset import _validate
from reduset._engine import cached_property
from reduset._types import Array
from reduset.drift.null_distribution import quadratic_p_values

if TYPE_CHECKING:
    from reduset.drift.feature_map import FeatureMap

Form = tuple[int, float | None, float]  # octave below the median distance, ridge λ or None for plain, weight

FORMS: tuple[Form, ...] = (  # coarse scales detect shifts and spreads, which are common, and fine scales detect small clusters
    (-1, None, 1.0),
    (-1, 0.1, 1.0),
    (-1, 0.01, 1.0),
    (0, 0.3, 1.0),
    (1, None, 1.0),
    (2, 0.01, 0.5),
    (3, 0.01, 0.5),
    (4, 0.01, 0.5),
)
COARSEST_WEIGHT = 0.5  # of the first form if there are scores of columns, which detect shifts too
COLUMN_WEIGHTS = (1.0, 0.5)  # of T₁ and T₂ of `columns` in the joint statistic, as in ``FORMS``


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


class KernelStatistics(Statistic):
    """Weighted sums of squares of the coordinates of each scale."""

    def forms(self, features: FeatureMap) -> tuple[Form, ...]:
        """The forms of the scales that the coordinates have."""
        forms = tuple((octave, None, 1.0) for octave in features.octaves) if features.is_plain else FORMS
        return tuple(form for form in forms if form[0] in features.octaves)

    def coefficients(self, features: FeatureMap) -> Array:
        """(K, p) the weights ω of each form."""
        coefficients = np.zeros((len(self.forms(features)), features.size))
        for row, (octave, ridge, _) in zip(coefficients, self.forms(features), strict=True):
            part = features.parts[features.octaves.index(octave)]
            spread = features.variances[part]
            row[part] = 1.0 if ridge is None else 1.0 / (spread + ridge * spread[0])
        return coefficients

    def weights(self, features: FeatureMap) -> Array:
        weights = np.asarray([weight for *_, weight in self.forms(features)])
        if features.scores is not None:
            weights[0] = COARSEST_WEIGHT
        return weights

    def values(self, features: FeatureMap, differences: Array) -> Array:
        return np.asarray(np.square(differences) @ self.coefficients(features).T)

    def p_values_beyond_draws(self, features: FeatureMap, difference: Array, covariance: Array, rows: tuple[float, float]) -> Array:
        return quadratic_p_values(self.values(features, difference), self.coefficients(features), covariance)


class ColumnStatistics(Statistic):
    """T₁ and T₂, if the coordinates include scores of columns."""

    def weights(self, features: FeatureMap) -> Array:
        return np.asarray(COLUMN_WEIGHTS if features.scores is not None else ())

    def values(self, features: FeatureMap, differences: Array) -> Array:
        if features.scores is None:
            return np.empty((*differences.shape[:-1], 0))
        return features.scores.statistics(differences[..., features.column_part])

    def p_values_beyond_draws(self, features: FeatureMap, difference: Array, covariance: Array, rows: tuple[float, float]) -> Array:
        if features.scores is None:
            return np.empty(0)
        part = features.column_part
        return features.scores.beyond_draws(difference[part], np.diag(covariance)[part], min(rows))


#: The statistics by name. ``STATISTICS["mine"] = MyStatistic()`` adds your own to `DriftTest(statistics=)` and the command.
STATISTICS: dict[str, Statistic] = {
    "kernel": KernelStatistics(),
    "columns": ColumnStatistics(),
}


def chosen_statistics(names: Any) -> tuple[Statistic, ...]:
    """The statistics of these names; all for None."""
    if names is None:
        return tuple(STATISTICS.values())
    given = [names] if isinstance(names, str) else list(names) if isinstance(names, Sequence) else [names]
    if not given:
        raise ValueError(f"statistics must hold at least one of {', '.join(map(repr, STATISTICS))}, got none; None uses all")
    return tuple(STATISTICS[_validate.one_of(name, "statistics", tuple(STATISTICS))] for name in dict.fromkeys(given))


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
