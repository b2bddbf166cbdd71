"""The printed form of a test of drift: verdict, p-value, distance, columns, regions, and the power of the test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from reduset._describe import Description, Row, counted, percent
from reduset._messages import printable
from reduset._types import Array

if TYPE_CHECKING:
    from reduset.drift.columns import ColumnChange
    from reduset.drift.regions import Region
    from reduset.drift.result import DriftResult

MOST_TOLD = 5  # columns, and regions
PLACED = 3  # columns that say where a region is
LONGEST = 40  # letters of a name
RAREST = 1e-6  # below which nobody can imagine how rare it is
FARTHEST = math.sqrt(2)  # two single bumps that have nothing in common


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
    distance = ("distance", "chance", "without_noise", "interval", "effect_size", "n_reference", "n_samples")
    test_facts, distance_facts = ({name: getattr(result, name) for name in names} for names in (test, distance))
    detectable = {"share": result.detectable_share, "shift": result.detectable_shift}
    return Description(
        verdict(result),
        (
            Row("p-value", p_value(result), "The probability of a difference at least as large without drift.", test_facts),
            Row("distance", apart(result), "The maximum mean discrepancy at the median distance of the rows.", distance_facts),
            Row(
                "columns",
                columns_told(result.columns(), result.alpha, result.drift),
                "A test of every column, corrected for their number (Holm).",
                {"columns": [asdict(column) for column in result.columns()]},
            ),
            Row("regions", regions_told(result), "Regions whose proportion of the rows changed.", {"regions": regions}),
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
    number = "< 1e-06" if result.p_value < RAREST else f"{result.p_value:.2g}"
    bounded = RAREST <= result.p_value <= 1 / (1 + resamples)
    if short:
        return number if number.startswith("<") else f"{'≤' if bounded else '='} {number}"
    method = "permutations" if result.exact else "resamples of the null distribution"
    return f"{number}{' at most' if bounded else ''}, level {result.alpha:.2g}, from {resamples:,} {method}"


def apart(result: DriftResult) -> str:
    """The distance with its 95 % quantile under the null hypothesis, bias-corrected, and with its interval."""
    distance, (low, high) = result.distance, result.interval
    text = f"{distance:.2g} (95 % quantile without drift: {result.chance:.2g}; range 0 to {FARTHEST:.2f})"
    if result.drift and distance <= result.chance:
        return f"{text}; not significant at this bandwidth, another statistic detects the drift"
    return f"{text}; bias-corrected {result.without_noise:.2g} (95 % CI {low:.2g}-{high:.2g})"


def columns_told(columns: Sequence[ColumnChange], alpha: float, drift: bool) -> str:
    """Those that changed, with their directions; a few of them."""
    changed = [each for each in columns if each.p_value <= alpha]
    if not changed:
        return "no single column changed significantly" + (
            "; their dependence changed, or the change is spread thinly" if drift else ""
        )
    words = [f"{named(each.name)}: {direction(each)}" for each in changed[:MOST_TOLD]]
    more = f" and {len(changed) - MOST_TOLD} more" if len(changed) > MOST_TOLD else ""
    return ", ".join(words) + more + ("" if drift else " (each tested alone)")


def direction(column: ColumnChange) -> str:
    """How a column changed, with the median where that is what changed."""
    if column.kind != "shift" or column.median[0] == column.median[1]:
        return column.direction
    return f"{column.direction} (median {column.median[0]:.4g}, now {column.median[1]:.4g})"


def regions_told(result: DriftResult) -> list[str]:
    """The places that gained or lost, a line each; a few of them."""
    regions, names = result.where(), result.comparison.names
    alone = "" if result.drift else " (each tested alone)"
    lines = [f"{change(each)} {place(each, names)}{alone}" for each in regions[:MOST_TOLD]]
    if len(regions) > MOST_TOLD:
        lines.append(f"and {len(regions) - MOST_TOLD} more regions")
    return lines or (["no single region changed significantly"] if result.drift else [])


def change(region: Region) -> str:
    """How much a place gained or lost."""
    verb = "gained" if region.change > 0 else "lost"
    return f"{verb} {percent(abs(region.change))} of all rows ({percent(region.before)} before, {percent(region.after)} now)"


def place(region: Region, names: Sequence[str], longest: int = LONGEST) -> str:
    """Where a region is, by the columns in which it is out of the ordinary; names of at most ``longest`` letters."""
    told = region.columns[:PLACED]
    if not told:
        return "near the centre of the rows"
    positions = [names.index(name) for name in told]
    return "near " + ", ".join(f"{named(names[k], longest)} {between(region.centre[k], region.extent[k])}" for k in positions)


def between(centre: float, extent: float) -> str:
    """A place and how far it reaches, to as many digits as that bears."""
    if not 1e-6 < extent < 1e6:
        return f"{centre:.4g}" if extent == 0 else f"{centre:.4g} ± {extent:.2g}"
    places = max(1 - math.floor(math.log10(extent)), 0)
    return f"{centre:,.{places}f} ± {extent:.2g}"


def seen(result: DriftResult) -> str:
    """The smallest changes that a test of so many rows detects with 80 % power."""
    proportion, shift = result.detectable_share, result.detectable_shift
    changes = []
    if math.isfinite(proportion):
        changes.append(f"an outlier group of {percent(proportion)} of the rows")
    if shift is not None and math.isfinite(shift):
        changes.append(f"a shift of all rows by {shift:.2g} standard deviations")
    if not changes:
        return "too few rows to detect any change with 80 % power; test more rows"
    return f"80 % to detect {' or '.join(changes)}"


def named(name: str, longest: int = LONGEST) -> str:
    """A name as it may be shown, without its middle where it is long: names that begin alike often differ at the end."""
    text = printable(name)
    last = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[: longest - 1 - last]}…{text[-last:]}"


def distances_by_chance(result: DriftResult) -> Array:
    """(B,) the distance under chance alone."""
    return np.asarray(np.linalg.norm(result.comparison.drawn[:, result.comparison.features.median_part], axis=1))
