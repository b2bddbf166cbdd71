"""Statistics of the kernel means at each scale: the MMD² and regularised Mahalanobis distances.

    T = Σⱼ ωⱼ δⱼ²    over the coordinates of one scale (`feature_map`), whose variances are σⱼ²

Plain, ω = 1, is the MMD² within the span. Whitened, ω = 1/(σⱼ² + λσ₁²), is the regularised Mahalanobis distance (Harchaoui, Bach &
Moulines 2007; Hagrass, Sriperumbudur & Li 2024). Plain statistics find changes of much of the mass, whitened ones changes of little
mass. For a compression only the plain ones are used, since whitened ones cannot be corrected for its error.
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

FORMS: tuple[Form, ...] = (  # coarse scales show shifts and spreads, which are common; fine ones small clusters
    (-1, None, 1.0),
    (-1, 0.1, 1.0),
    (-1, 0.01, 1.0),
    (0, 0.3, 1.0),
    (1, None, 1.0),
    (2, 0.01, 0.5),
    (3, 0.01, 0.5),
    (4, 0.01, 0.5),
)
COARSEST_WEIGHT = 0.5  # of the first form if there are scores of columns, which find shifts too


class KernelStatistics(Statistic):
    """Weighted sums of squares of the coordinates of each scale."""

    def forms(self, features: FeatureMap) -> tuple[Form, ...]:
        """Those of the scales that the coordinates have."""
        every = tuple((octave, None, 1.0) for octave in features.octaves) if features.is_plain else FORMS
        return tuple(each for each in every if each[0] in features.octaves)

    def coefficients(self, features: FeatureMap) -> Array:
        """(K, p) the weights ω of each form."""
        found = np.zeros((len(self.forms(features)), features.size))
        for row, (octave, ridge, _) in zip(found, self.forms(features), strict=True):
            part = features.parts[features.octaves.index(octave)]
            spread = features.variances[part]
            row[part] = 1.0 if ridge is None else 1.0 / (spread + ridge * spread[0])
        return found

    def weights(self, features: FeatureMap) -> Array:
        found = np.asarray([weight for *_, weight in self.forms(features)])
        if features.scores is not None:
            found[0] = COARSEST_WEIGHT
        return found

    def values(self, features: FeatureMap, differences: Array) -> Array:
        return np.asarray(np.square(differences) @ self.coefficients(features).T)

    def p_values_beyond_draws(self, features: FeatureMap, difference: Array, covariance: Array, rows: tuple[float, float]) -> Array:
        return quadratic_p_values(self.values(features, difference), self.coefficients(features), covariance)
