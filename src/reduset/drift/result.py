"""The result of a test of drift and its printed form: p-value, distance, changed regions and columns, the power of the test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from reduset import _validate
from reduset._describe import Description, Row, counted, percent, significant
from reduset._engine import blocks, cached_property
from reduset._messages import printable
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

MAX_LISTED = 5  # printed columns, and printed regions
LOCATION_COLUMNS = 3  # columns that describe the location of a region
NAME_LENGTH = 40  # characters of a printed name
MIN_PRINTED = 1e-6  # smaller p-values are printed as "< 1e-06"
MAX_DISTANCE = math.sqrt(2)  # of two kernel functions that do not overlap


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
        regions = [
            asdict(region)
            | {
                "centre": dict(zip(self.comparison.names, region.centre.tolist(), strict=True)),
                "extent": dict(zip(self.comparison.names, region.extent.tolist(), strict=True)),
                "change": region.change,
            }
            for region in self.where()
        ]
        test = ("p_value", "alpha", "drift", "statistic", "exact")
        distance = ("distance", "null_quantile", "bias_corrected", "interval", "effect_size", "n_reference", "n_samples")
        test_facts, distance_facts = ({name: getattr(self, name) for name in names} for names in (test, distance))
        detectable = {"share": self.detectable_share, "shift": self.detectable_shift}
        return Description(
            verdict(self),
            (
                Row("p-value", p_value(self), "The probability of a difference at least as large without drift.", test_facts),
                Row("distance", apart(self), "The maximum mean discrepancy at the median distance of the rows.", distance_facts),
                Row(
                    "columns",
                    listed_columns(self.columns(), self.alpha, self.drift),
                    "A test of every column, corrected for their number (Holm).",
                    {"columns": [asdict(column) for column in self.columns()]},
                ),
                Row("regions", listed_regions(self), "Regions whose proportion of the rows changed.", {"regions": regions}),
                Row(
                    "power",
                    seen(self),
                    "The smallest changes that the test detects with probability 0.8.",
                    {"detectable": detectable},
                ),
            ),
        )

    def __str__(self) -> str:
        return str(self.describe())


def _continuous_scales(rows: Array) -> Array:
    """(d,) standard deviations; 0 for columns in which most values are repeated."""
    distinct = 1 + (np.diff(np.sort(rows, axis=0), axis=0) > 0).sum(axis=0)
    return np.where(2 * distinct > len(rows), rows.std(axis=0), 0.0)


def verdict(result: DriftResult) -> str:
    """Whether there is drift, its p-value, and the sizes of the two samples."""
    new, reference = counted(result.n_samples, "new row"), counted(result.n_reference, "row")
    if result.drift:
        return f"Drift detected (p {p_value(result, True)}): {new} differ from the {reference} of the reference."
    return f"No drift detected (p {p_value(result, True)}): {new} are consistent with the {reference} of the reference."


def p_value(result: DriftResult, short: bool = False) -> str:
    """The p-value with two digits; an upper bound if no resample exceeds the statistic."""
    resamples = len(result.comparison.drawn)
    number = "< 1e-06" if result.p_value < MIN_PRINTED else f"{result.p_value:.2g}"
    bounded = MIN_PRINTED <= result.p_value <= 1 / (1 + resamples)
    if short:
        return number if number.startswith("<") else f"{'≤' if bounded else '='} {number}"
    method = "permutations" if result.exact else "resamples of the null distribution"
    return f"{number}{' at most' if bounded else ''}, level {result.alpha:.2g}, from {resamples:,} {method}"


def apart(result: DriftResult) -> str:
    """The distance with its 95 % quantile under the null hypothesis, bias-corrected, and with its interval."""
    distance, (low, high) = result.distance, result.interval
    text = f"{distance:.2g} (95 % quantile without drift: {result.null_quantile:.2g}; range 0 to {MAX_DISTANCE:.2f})"
    if result.drift and distance <= result.null_quantile:
        return f"{text}; not significant at this bandwidth, another statistic detects the drift"
    return f"{text}; bias-corrected {result.bias_corrected:.2g} (95 % CI {low:.2g}-{high:.2g})"


def listed_columns(columns: Sequence[ColumnChange], alpha: float, drift: bool) -> str:
    """The columns that changed significantly, with their directions; at most five of them."""
    changed = [column for column in columns if column.p_value <= alpha]
    if not changed:
        return "no single column changed significantly" + (
            "; their dependence changed, or the change is spread thinly" if drift else ""
        )
    words = [f"{named(column.name)}: {direction(column)}" for column in changed[:MAX_LISTED]]
    more = f" and {len(changed) - MAX_LISTED} more" if len(changed) > MAX_LISTED else ""
    return ", ".join(words) + more + ("" if drift else " (each tested alone)")


def direction(column: ColumnChange) -> str:
    """The direction of the change of a column, with the medians for a shift."""
    if column.kind != "shift" or column.median[0] == column.median[1]:
        return column.direction
    return f"{column.direction} (median {significant(column.median[0], 4)}, now {significant(column.median[1], 4)})"


def listed_regions(result: DriftResult) -> list[str]:
    """One line for each region that gained or lost rows; at most five regions."""
    regions, names = result.where(), result.comparison.names
    alone = "" if result.drift else " (each tested alone)"
    lines = [f"{change(region)} {place(region, names)}{alone}" for region in regions[:MAX_LISTED]]
    if len(regions) > MAX_LISTED:
        lines.append(f"and {len(regions) - MAX_LISTED} more regions")
    return lines or (["no single region changed significantly"] if result.drift else [])


def change(region: Region) -> str:
    """The proportion of the rows that a region gained or lost."""
    verb = "gained" if region.change > 0 else "lost"
    return f"{verb} {percent(abs(region.change))} of all rows ({percent(region.before)} before, {percent(region.after)} now)"


def place(region: Region, names: Sequence[str], longest: int = NAME_LENGTH) -> str:
    """The location of a region in its most extreme columns, with names of at most ``longest`` characters."""
    columns = region.columns[:LOCATION_COLUMNS] or (names if len(names) == 1 else [])
    if not columns:
        return "near the centre of the rows"
    positions = [names.index(name) for name in columns]
    return "near " + ", ".join(f"{named(names[k], longest)} {between(region.centre[k], region.extent[k])}" for k in positions)


def between(centre: float, extent: float) -> str:
    """The centre and the standard deviation in one column, with two significant digits of the standard deviation."""
    if not 1e-6 < extent < 1e6:
        return significant(centre, 4) + (f" ± {extent:.2g}" if extent else "")
    decimals = max(1 - math.floor(math.log10(extent)), 0)
    return f"{centre:,.{decimals}f} ± {significant(extent, 2)}"


def seen(result: DriftResult) -> str:
    """The smallest changes that the test detects with 80 % power."""
    proportion, shift = result.detectable_share, result.detectable_shift
    changes = []
    if math.isfinite(proportion):
        changes.append(f"an outlier group of {percent(proportion)} of the rows")
    if shift is not None and math.isfinite(shift):
        changes.append(f"a shift of all rows by {shift:.2g} standard deviations")
    if not changes:
        return "too few rows to detect any change with 80 % power; test more rows"
    return f"80 % to detect {' or '.join(changes)}"


def named(name: str, longest: int = NAME_LENGTH) -> str:
    """A printable name. Long names are shortened in the middle, because names with the same beginning often differ at the end."""
    text = printable(name)
    last = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[: longest - 1 - last]}…{text[-last:]}"


def null_distances(result: DriftResult) -> Array:
    """(B,) distances drawn under the null hypothesis."""
    return np.asarray(np.linalg.norm(result.comparison.drawn[:, result.comparison.features.median_part], axis=1))
