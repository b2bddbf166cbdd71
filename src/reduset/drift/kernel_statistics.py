"""Statistics of the kernel means at each scale: the MMD² and regularised Mahalanobis distances.

    T = Σⱼ ωⱼ δⱼ²    over the coordinates of one scale with variances σⱼ² (`feature_map`)

The plain statistic, ω = 1, is the MMD² within the span. The whitened statistic, ω = 1/(σⱼ² + λσ₁²), is the regularised Mahalanobis
distance (Harchaoui, Bach & Moulines 2007; Hagrass, Sriperumbudur & Li 2024). Plain statistics detect changes of a large proportion
of the rows, whitened statistics changes of a small proportion. For a compression only plain statistics are used, because whitened
statistics cannot be corrected for its error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reduset._types import Array
from reduset.drift.null_distribution import quadratic_p_values
from reduset.drift.statistic import Statistic

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
