"""What a test of drift found, in figures and in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset import _validate
from reduset._describe import Description
from reduset._engine import blocks, cached_property
from reduset._types import Array
from reduset.drift import null_distribution
from reduset.drift.columns import ColumnChange, changed_columns
from reduset.drift.comparison import Comparison
from reduset.drift.regions import Region, changed_regions

POWER = 0.8
LEAST = 1e-300  # of a p-value: no difference is impossible
STEPS = np.geomspace(1e-4, 1.0, 33)
MOST_SAMPLES = 250  # from which the power is estimated
MOST_MOVED, MOVED_VALUES = 1024, 1 << 16  # rows, and numbers at a time


@dataclass(frozen=True)
class DriftResult:
    """What a test found.

    Attributes
    ----------
    p_value : how often chance alone makes a difference as large as this
    alpha : the level below which it is called drift
    statistic : what the p-value is of: the harmonic mean of the p-values of all statistics, which is no p-value itself
    distance : how far the two means are apart at the median scale, in units of a single row's bump (from 0 to √2)
    chance : what chance alone keeps the distance below, 95 times in 100
    without_noise : the distance, what chance adds to it taken out
    interval : where the distance of the two laws lies, with confidence 95 %
    effect_size : the distance without noise over how far single rows are from their mean there
    n_reference, n_samples : how many rows, effective ones where they have weights
    exact : whether the p-value is that of permutations, which holds at any size
    """

    p_value: float
    alpha: float
    statistic: float
    distance: float
    chance: float
    without_noise: float
    interval: tuple[float, float]
    effect_size: float
    n_reference: float
    n_samples: float
    exact: bool
    comparison: Comparison
    seed: int

    @classmethod
    def of(cls, comparison: Comparison, alpha: float, seed: int) -> DriftResult:
        """From two samples side by side."""
        features, difference, joint = comparison.features, comparison.difference, comparison.joint
        drawn = joint.values(comparison.drawn)
        p_value, each = null_distribution.joined(joint.values(difference), drawn, joint.weights)
        if not comparison.exact and p_value <= 1 / (1 + len(drawn)):
            beyond = joint.p_value_beyond_draws(difference, comparison.covariance, comparison.rows)
            p_value = min(p_value, max(beyond, LEAST))
        part = features.median_part
        own = comparison.covariance[part, part]
        square, noise = float(np.square(difference[part]).sum()), float(np.trace(own))
        error = 2 * np.sqrt(float(difference[part] @ own @ difference[part])) + np.sqrt(2 * float(np.square(own).sum()))
        ends = [float(np.sqrt(max(square - noise + sign * 1.96 * error, 0.0))) for sign in (-1, 1)]
        n, count = comparison.rows
        scatter = noise / (1 / n + 1 / count)
        without_noise = float(np.sqrt(max(square - noise, 0.0)))
        return cls(
            p_value,
            alpha,
            float(1 / (joint.weights / each).sum()),
            float(np.sqrt(square)),
            float(np.sqrt(np.quantile(np.square(comparison.drawn[:, part]).sum(axis=1), 0.95))),
            without_noise,
            (ends[0], ends[1]),
            without_noise / float(np.sqrt(max(scatter, 1e-300))),
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
        """Regions that gained or lost mass, the surest first; the level holds for all of them together."""
        level = self.alpha if alpha is None else _validate.between(alpha, "alpha", 0, 1)
        known: dict[float, list[Region]] = self.__dict__.setdefault("_regions", {})
        if level not in known:
            seen, rng = self.comparison, np.random.default_rng([self.seed, 1])
            known[level] = changed_regions(seen.features, *seen.cells, seen.names, level, rng)
        return list(known[level])

    def columns(self) -> list[ColumnChange]:
        """A test of every column, corrected for their number (Holm), those that changed most surely first."""
        return list(self._columns)

    @cached_property
    def _columns(self) -> list[ColumnChange]:
        seen = self.comparison
        known, rng = (seen.cells[0].rows, seen.cells[1].rows), np.random.default_rng([self.seed, 2])
        return changed_columns(seen.bins, *seen.shares, known, seen.names, rng, shift_alone=bool(seen.errors.any()))

    @cached_property
    def detectable_share(self) -> float:
        """The least share of rows that would be found 8 times in 10, had they gone to places that the reference does not know."""
        return self._detectable(lambda share: -share * self.comparison.before)

    @cached_property
    def detectable_shift(self) -> float | None:
        """The least shift of all rows found 8 times in 10, in standard deviations along all columns together; None without rows."""
        seen = self.comparison
        if not len(seen.sample):
            return None
        rows = np.asarray(seen.sample[:MOST_MOVED], np.float64)
        step = np.concatenate([rows[:, a:b].std(axis=0) for a, b in blocks(rows.shape[1], MOST_MOVED)]) / np.sqrt(rows.shape[1])

        def mean(far: float) -> Array:  # a few rows of many columns at a time
            parts = blocks(len(rows), max(1, MOVED_VALUES // rows.shape[1]))
            means = [seen.features.mean(rows[a:b] + far * step, np.full(b - a, 1 / len(rows))) for a, b in parts]
            return np.asarray(np.sum(means, axis=0))

        still = mean(0.0)
        return self._detectable(lambda far: mean(far) - still)

    def _detectable(self, change: object) -> float:
        """The least step at which the change is found with probability 0.8; infinite where none is."""
        seen, joint = self.comparison, self.comparison.joint
        half = len(seen.drawn) // 2
        some = seen.drawn[: half : max(4, half // MOST_SAMPLES)]
        drawn = joint.values(seen.drawn)
        low, high = 0, len(STEPS)
        while low < high:  # power rises with the step
            middle = (low + high) // 2
            moved = joint.values(some + change(float(STEPS[middle])))  # type: ignore[operator]
            found = np.mean(null_distribution.joined_each(moved, drawn[half:], joint.weights) <= self.alpha)
            low, high = (low, middle) if found >= POWER else (middle + 1, high)
        return float(STEPS[low]) if low < len(STEPS) else float("inf")

    def describe(self) -> Description:
        """The verdict, the distance, columns, regions and the power as rows of (label, value, explanation)."""
        from reduset.drift.words import describe

        return describe(self)

    def __str__(self) -> str:
        return str(self.describe())
