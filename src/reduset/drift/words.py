"""What a test of drift found in a few lines, for people who never heard of a kernel: whether the rows have changed, how sure that
is, how far they are apart beside what chance does, which columns and places changed, and how small a change could have been seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from reduset._messages import printable
from reduset._types import Array
from reduset.certificate.certificate import percent

if TYPE_CHECKING:
    from reduset.drift.columns import ColumnChange
    from reduset.drift.regions import Region
    from reduset.drift.result import DriftResult

MOST_TOLD = 5  # columns, and regions
PLACED = 3  # columns that say where a region is
LONGEST = 40  # letters of a name
RAREST = 1e-6  # below which nobody can imagine how rare it is
FARTHEST = math.sqrt(2)  # two single bumps that have nothing in common


def of_result(result: DriftResult) -> list[str]:
    """The lines of a result."""
    lines = [
        verdict(result),
        f"how sure   {certainty(result)} (p = {result.p_value:.2g})",
        f"apart      {apart(result)}",
        f"columns    {columns_told(result.columns(), result.alpha, result.drift)}",
    ]
    lines += [f"where      {text}" for text in regions_told(result)]
    return [*lines, f"seen       {seen(result)}"]


def verdict(result: DriftResult) -> str:
    """Whether there is drift, and between how many rows."""
    beside = f"compared with {result.n_reference:,.0f} rows of it"
    if result.drift:
        return f"DRIFT: {result.n_samples:,.0f} new rows are not like the reference, {beside}"
    return f"no drift found: {result.n_samples:,.0f} new rows may well be of the law of the reference, {beside}"


def certainty(result: DriftResult) -> str:
    """The p-value as so many cases of a round number; that of draws which none was beyond is one at most."""
    bounded = RAREST <= result.p_value <= 1 / (1 + len(result.comparison.drawn))
    return f"chance alone shows as much in {often(result.p_value)} such samples" + (" at most" if bounded else "")


def often(p_value: float) -> str:
    """76 of 100, 3 of 1,000; two digits, and never none."""
    if p_value < RAREST:
        return f"fewer than 1 of {round(1 / RAREST):,}"
    size = 100
    while p_value * size < 10 and size < 1 / RAREST:
        size *= 10
    cases = max(round(p_value * size), 1)
    while cases % 10 == 0 and size > 100:
        cases, size = cases // 10, size // 10
    return f"{cases:,} of {size:,}"


def apart(result: DriftResult) -> str:
    """The distance as it was seen, beside what chance alone does, and what is left of it without the noise."""
    far, (low, high) = result.distance, result.interval
    text = f"{far:.2g}, from 0 (alike) to {FARTHEST:.2f} (nothing in common); chance alone stays below {result.chance:.2g}"
    text += " in 95 of 100 cases"
    if result.drift and far <= result.chance:
        return f"{text}: it is not the bulk of the rows that moved"
    return f"{text}; without noise {result.without_noise:.2g}, with 95 % confidence between {low:.2g} and {high:.2g}"


def columns_told(columns: Sequence[ColumnChange], alpha: float, drift: bool) -> str:
    """Those that changed, with their directions; a few of them."""
    changed = [each for each in columns if each.p_value <= alpha]
    if not changed:
        return "none changed alone" + (": it is how they go together, or too little to say which" if drift else "")
    words = [f"{named(each.name)}: {direction(each)}" for each in changed[:MOST_TOLD]]
    more = f" and {len(changed) - MOST_TOLD} more" if len(changed) > MOST_TOLD else ""
    return ("" if drift else "taken alone, ") + ", ".join(words) + more


def direction(column: ColumnChange) -> str:
    """How a column changed, with the median where that is what changed."""
    if column.kind != "shift" or column.median[0] == column.median[1]:
        return column.direction
    return f"{column.direction} (median {column.median[0]:.4g}, now {column.median[1]:.4g})"


def regions_told(result: DriftResult) -> list[str]:
    """The places that gained or lost, a line each; a few of them."""
    regions, names = result.where(), result.comparison.names
    alone = "" if result.drift else "taken alone, "
    lines = [f"{alone}{change(each)} {place(each, names)}" for each in regions[:MOST_TOLD]]
    if len(regions) > MOST_TOLD:
        lines.append(f"and {len(regions) - MOST_TOLD} more places")
    return lines or (["no single place gained or lost for sure"] if result.drift else [])


def change(region: Region) -> str:
    """How much a place gained or lost."""
    verb = "gained" if region.change > 0 else "lost"
    return f"{verb} {percent(abs(region.change))} of all rows ({percent(region.before)} before, {percent(region.after)} now)"


def place(region: Region, names: Sequence[str], longest: int = LONGEST) -> str:
    """Where a region is, by the columns in which it is out of the ordinary; names of at most ``longest`` letters."""
    told = region.columns[:PLACED]
    if not told:
        return "in the midst of the rows"
    positions = [names.index(name) for name in told]
    return "near " + ", ".join(f"{named(names[k], longest)} {between(region.centre[k], region.extent[k])}" for k in positions)


def between(centre: float, extent: float) -> str:
    """A place and how far it reaches, to as many digits as that bears."""
    if not 1e-6 < extent < 1e6:
        return f"{centre:.4g}" if extent == 0 else f"{centre:.4g} ± {extent:.2g}"
    places = max(1 - math.floor(math.log10(extent)), 0)
    return f"{centre:,.{places}f} ± {extent:.2g}"


def seen(result: DriftResult) -> str:
    """How small a change so many rows would have shown."""
    share, shift = result.detectable_share, result.detectable_shift
    words = []
    if math.isfinite(share):
        words.append(f"{percent(share)} of the rows gone elsewhere")
    if shift is not None and math.isfinite(shift):
        words.append(f"all rows shifted by {shift:.2g} standard deviations")
    if not words:
        return "so few rows would hardly show any change; test more of them"
    return f"{', or '.join(words)}, would have been found 8 times in 10"


def named(name: str, longest: int = LONGEST) -> str:
    """A name as it may be shown, without its middle where it is long: names that begin alike often differ at the end."""
    text = printable(name)
    last = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[: longest - 1 - last]}…{text[-last:]}"


def distances_by_chance(result: DriftResult) -> Array:
    """(B,) the distance under chance alone."""
    return np.asarray(np.linalg.norm(result.comparison.drawn[:, result.comparison.features.median_part], axis=1))
