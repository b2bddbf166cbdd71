"""The result of a test of drift: p-value, distance, changed regions and columns, and the power of the test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reduset import _validate
from reduset._describe import Description
from reduset._engine import blocks, cached_property
from reduset._types import Array
from reduset.drift import null_distribution
from reduset.drift.columns import ColumnChange, changed_columns
from reduset.drift.comparison import DriftComparison
from reduset.drift.regions import Region, changed_regions

POWER = 0.8
MIN_P_VALUE = 1e-300  # no difference is impossible under the null hypothesis
STEPS = np.geomspace(1e-4, 1.0, 33)  # proportions or shifts whose power is estimated
POWER_SAMPLES = 250  # differences that estimate a power, approximately
SHIFTED_ROWS, BLOCK_VALUES, BLOCK_COLUMNS = 1024, 1 << 16, 1024


@dataclass(frozen=True)
class DriftResult:
    """The result of a test of drift.

    Attributes
    ----------
    p_value : float
        The probability of a difference at least this large under the null hypothesis.
    alpha : float
        Significance level. P-values up to this level count as drift.
    statistic : float
        The weighted harmonic mean of the p-values of all statistics, from which ``p_value`` is computed. It is not a p-value.
    distance : float
        The maximum mean discrepancy (MMD) at the median distance of the rows. Kernel functions of single rows have norm 1, so that
        it lies between 0 and √2.
    null_quantile : float
        The 95 % quantile of the distance under the null hypothesis.
    bias_corrected : float
        The bias-corrected distance.
    interval : (low, high)
        A 95 % confidence interval for the distance of the two distributions.
    effect_size : float
        The bias-corrected distance, divided by the root mean square distance of single rows from their mean.
    n_reference, n_samples : float
        Sizes of both samples; effective sizes for weighted rows.
    exact : bool
        True if the p-value comes from permutations, which are valid for any distribution and sample size.
    """

    p_value: float
    alpha: float
    statistic: float
    distance: float
    null_quantile: float
    bias_corrected: float
    interval: tuple[float, float]
    effect_size: float
    n_reference: float
    n_samples: float
    exact: bool
    comparison: DriftComparison
    seed: int

    @classmethod
    def of(cls, comparison: DriftComparison, alpha: float, seed: int) -> DriftResult:
        """The result of the comparison of two samples."""
        features, difference, joint = comparison.features, comparison.difference, comparison.joint
        drawn = joint.values(comparison.drawn)
        (p_value,), (p_values,) = null_distribution.joined(joint.values(difference)[None], drawn, joint.weights)
        if not comparison.exact and p_value <= 1 / (1 + len(drawn)):
            beyond = joint.p_value_beyond_draws(difference, comparison.covariance, comparison.rows)
            p_value = min(p_value, max(beyond, MIN_P_VALUE))
        part = features.median_part
        covariance = comparison.covariance[part, part]
        square, noise = float(np.square(difference[part]).sum()), float(np.trace(covariance))
        linear = 2 * np.sqrt(float(difference[part] @ covariance @ difference[part]))
        error = linear + np.sqrt(2 * float(np.square(covariance).sum()))
        ends = [float(np.sqrt(max(square - noise + sign * 1.96 * error, 0.0))) for sign in (-1, 1)]
        n, count = comparison.rows
        scatter = noise / (1 / n + 1 / count)
        bias_corrected = float(np.sqrt(max(square - noise, 0.0)))
        return cls(
            float(p_value),
            alpha,
            float(1 / (joint.weights / p_values).sum()),
            float(np.sqrt(square)),
            float(np.sqrt(np.quantile(np.square(comparison.drawn[:, part]).sum(axis=1), 0.95))),
            bias_corrected,
            (ends[0], ends[1]),
            bias_corrected / float(np.sqrt(max(scatter, 1e-300))),
            comparison.n_reference,
            count,
            comparison.exact,
            comparison,
            seed,
        )

    @property
    def drift(self) -> bool:
        """Whether the p-value is at most alpha."""
        return self.p_value <= self.alpha

    def where(self, alpha: float | None = None) -> list[Region]:
        """Regions that gained or lost rows, in the order of detection. The level holds for all regions together."""
        level = self.alpha if alpha is None else _validate.between(alpha, "alpha", 0, 1)
        computed: dict[float, list[Region]] = self.__dict__.setdefault("_regions", {})
        if level not in computed:
            comparison, rng = self.comparison, np.random.default_rng([self.seed, 1])
            computed[level] = changed_regions(comparison.features, *comparison.cells, comparison.names, level, rng)
        return list(computed[level])

    def columns(self) -> list[ColumnChange]:
        """A test of every column, corrected for their number (Holm), by p-value."""
        return list(self._columns)

    @cached_property
    def _columns(self) -> list[ColumnChange]:
        comparison, rng = self.comparison, np.random.default_rng([self.seed, 2])
        sizes = (comparison.cells[0].rows, comparison.cells[1].rows)
        shift_alone = bool(comparison.errors.any())
        return changed_columns(comparison.features.bins, *comparison.shares, sizes, comparison.names, rng, shift_alone=shift_alone)

    @cached_property
    def detectable_share(self) -> float:
        """The smallest proportion of rows that is detected with 80 % power, if these rows move far from all reference rows."""
        return self._detectable(lambda proportion: -proportion * self.comparison.before)

    @cached_property
    def detectable_shift(self) -> float | None:
        """The smallest shift of all rows that is detected with 80 % power. None if no rows were kept, or all columns are discrete.

        All continuous columns are shifted together, each by the same number of its standard deviations. The result is the Euclidean
        length of the shift in these units. A column is discrete, such as 0/1, if most of its values are repeated. Any shift of such
        a column gives values that never occur, so the smallest one would be detected.
        """
        comparison = self.comparison
        if not len(comparison.sample):
            return None
        rows = np.asarray(comparison.sample[:SHIFTED_ROWS], np.float64)
        d = rows.shape[1]
        step = np.concatenate([_continuous_scales(rows[:, a:b]) for a, b in blocks(d, BLOCK_COLUMNS)])
        if not step.any():
            return None
        step /= np.sqrt(np.count_nonzero(step))

        def mean(shift: float) -> Array:  # in blocks, because the rows may have many columns
            parts = blocks(len(rows), max(1, BLOCK_VALUES // d))
            means = [comparison.features.mean(rows[a:b] + shift * step, np.full(b - a, 1 / len(rows))) for a, b in parts]
            return np.asarray(np.sum(means, axis=0))

        unshifted = mean(0.0)
        return self._detectable(lambda shift: mean(shift) - unshifted)

    def _detectable(self, change: Callable[[float], Array]) -> float:
        """The smallest of ``STEPS`` at which a change of the means is detected with 80 % power; infinite if there is none."""
        comparison, joint = self.comparison, self.comparison.joint
        half = len(comparison.drawn) // 2
        noise = comparison.drawn[: half : max(4, half // POWER_SAMPLES)]
        drawn = joint.values(comparison.drawn)
        low, high = 0, len(STEPS)
        while low < high:  # power rises with the step
            middle = (low + high) // 2
            changed = joint.values(noise + change(float(STEPS[middle])))
            power = np.mean(null_distribution.joined(changed, drawn[half:], joint.weights)[0] <= self.alpha)
            low, high = (low, middle) if power >= POWER else (middle + 1, high)
        return float(STEPS[low]) if low < len(STEPS) else float("inf")

    def describe(self) -> Description:
        """The verdict, p-value, distance, columns, regions and power as rows of (label, value, explanation)."""
        from reduset.drift.words import describe

        return describe(self)

    def __str__(self) -> str:
        return str(self.describe())


def _continuous_scales(rows: Array) -> Array:
    """(d,) standard deviations; 0 for columns in which most values are repeated."""
    distinct = 1 + (np.diff(np.sort(rows, axis=0), axis=0) > 0).sum(axis=0)
    return np.where(2 * distinct > len(rows), rows.std(axis=0), 0.0)
