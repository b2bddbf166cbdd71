"""The printed form of a test of drift: verdict, p-value, distance, columns, regions, and the power of the test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from reduset._describe import Description, Row, counted, percent, significant
from reduset._messages import printable
from reduset._types import Array

if TYPE_CHECKING:
    from reduset.drift.columns import ColumnChange
    from reduset.drift.regions import Region
    from reduset.drift.result import DriftResult

MAX_LISTED = 5  # printed columns, and printed regions
LOCATION_COLUMNS = 3  # columns that describe the location of a region
NAME_LENGTH = 40  # characters of a printed name
MIN_PRINTED = 1e-6  # smaller p-values are printed as "< 1e-06"
MAX_DISTANCE = math.sqrt(2)  # of two kernel functions that do not overlap


def describe(result: DriftResult) -> Description:
    """The verdict, its p-value, the distance, the columns and regions that changed, and the power of the test."""
    regions = [
        asdict(region)
        | {
            "centre": dict(zip(result.comparison.names, region.centre.tolist(), strict=True)),
            "extent": dict(zip(result.comparison.names, region.extent.tolist(), strict=True)),
            "change": region.change,
        }
        for region in result.where()
    ]
    test = ("p_value", "alpha", "drift", "statistic", "exact")
    distance = ("distance", "null_quantile", "bias_corrected", "interval", "effect_size", "n_reference", "n_samples")
    test_facts, distance_facts = ({name: getattr(result, name) for name in names} for names in (test, distance))
    detectable = {"share": result.detectable_share, "shift": result.detectable_shift}
    return Description(
        verdict(result),
        (
            Row("p-value", p_value(result), "The probability of a difference at least as large without drift.", test_facts),
            Row("distance", apart(result), "The maximum mean discrepancy at the median distance of the rows.", distance_facts),
            Row(
                "columns",
                listed_columns(result.columns(), result.alpha, result.drift),
                "A test of every column, corrected for their number (Holm).",
                {"columns": [asdict(column) for column in result.columns()]},
            ),
            Row("regions", listed_regions(result), "Regions whose proportion of the rows changed.", {"regions": regions}),
            Row(
                "power",
                seen(result),
                "The smallest changes that the test detects with probability 0.8.",
                {"detectable": detectable},
            ),
        ),
    )


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
