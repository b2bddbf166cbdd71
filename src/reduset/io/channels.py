"""Channels of cytometry files: those that measure a marker, and their default scales, estimated from events.

Names of isotopes are like Ce140Di, (Ce140)Dd or 140Ce_CD3, in the name or the label. A file of mass cytometry has some of them,
and no scatter.

The scale is asinh(x/5) for mass cytometry and logicle for fluorescence. The top T of a logicle scale is the top of the channel
($PnR) or the 99.9 % quantile of the values. Of M = 4.5 decades,

    W = (M − log10(T/|r|))/2    within [0, M/2]

are linear (Parks et al. 2006), where r is the 5th percentile of the negative values: noise reaches that far. Without negative
values, noise was cut off at a floor; r then belongs to a normal distribution with the observed proportion below the floor. A top
more than M decades above r, without a value there, is lowered. One less than M/3 decades above r is raised, because W beyond M/3
splits noise into two peaks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from reduset._types import Array, Floats
from reduset.io.reader import AUTO, NONE, ROWS, FileReader
from reduset.io.table import Table, listed
from reduset.io.transforms import Transform, parse_transform

MASS, FLUORESCENCE = "asinh:5", "logicle"

MIN_ISOTOPES = 3  # of a file of mass cytometry
# Channels without a dye are read and transformed only if named. FS and SS are Coulter's names.
NO_DYE = {
    "time or scatter": re.compile(r"fsc|ssc|(fs|ss)\b|time|hdr-t\b|event", re.IGNORECASE),
    "counted by the instrument": re.compile(r"hdr-\w+|(width|center|offset|residual)$", re.IGNORECASE),
}
REPEATED, NO_ISOTOPE = "another measurement of the same pulse", "not named by an isotope"
PULSES = ("-A", "-H", "-W")  # area, height and width of the pulse of a detector
# Metals of reagents, beads and DNA channels.
METALS = "Y|Rh|Pd|Ag|Cd|In|Sn|I|Xe|Cs|Ba|La|Ce|Pr|Nd|Sm|Eu|Gd|Tb|Dy|Ho|Er|Tm|Yb|Lu|Hf|Ta|Os|Ir|Pt|Au|Hg|Tl|Pb|Bi"
ISOTOPE = re.compile(
    rf"(?<![A-Za-z0-9])(?:\(?(?:{METALS})\)?[-_]?\d{{2,3}}\)?(?:D[id])?|\d{{2,3}}(?:{METALS})(?:D[id])?)(?![A-Za-z0-9])"
)
SCATTER = re.compile(r"(fsc|ssc|fs|ss|bsc)\b", re.IGNORECASE)

DECADES = 4.5  # M
TAIL = 0.05
QUARTER = 0.25  # of the values above the floor
OUTLIERS = 0.01  # a smaller proportion of negative values is no evidence of noise around 0
MAX_LINEAR = 1 / 3  # of M: with a larger W and a low T, noise around 0 has two peaks
EXTREME = 0.001  # proportion of values above the estimated top
MAX_TOP = 2.0**24  # a larger $PnR is the width of a number and not the range of a detector
DEFAULT_LINEAR = 0.5  # W without an estimate of the noise
POOLED = 4096  # events of each sample


def no_dye(name: str) -> str | None:
    """What a channel without a dye measures; None if it has a dye."""
    return next((title for title, names in NO_DYE.items() if names.match(name)), None)


def isotopes(names: Sequence[str], labels: Sequence[str]) -> list[int]:
    """Positions of channels with an isotope in their name or label."""
    texts = [f"{name} | {label}".replace("_", " ") for name, label in zip(names, labels, strict=True)]
    return [position for position, text in enumerate(texts) if ISOTOPE.search(text)]


def are_mass_channels(names: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether the channels come from a mass cytometer."""
    return not any(SCATTER.match(name) for name in names) and len(isotopes(names, labels)) >= MIN_ISOTOPES


def redundant(names: Sequence[str], dyes: Sequence[int]) -> list[int]:
    """Positions of dyes that repeat a pulse: its height or width, if its area is measured too.

    If more detectors have a height than an area, the height is used, as on a FACSCalibur.
    """
    pulses = {position: (names[position][:-2], names[position][-1]) for position in dyes if names[position][-2:] in PULSES}
    stems = {letter: {stem for stem, other in pulses.values() if other == letter} for letter in "AHW"}
    order = "AHW" if len(stems["A"]) >= len(stems["H"]) else "HAW"
    return [
        position
        for position, (stem, letter) in pulses.items()
        if any(stem in stems[better] for better in order[: order.index(letter)])
    ]


def omitted(names: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """Channels that measure no marker or repeat one, with the reason. They are read only if named."""
    reasons = {name: title for name in names if (title := no_dye(name))}
    dyes = [position for position, name in enumerate(names) if name not in reasons]
    if are_mass_channels(names, labels):
        others = set(dyes) - set(isotopes(names, labels))
        return reasons | {names[position]: NO_ISOTOPE for position in sorted(others)}
    return reasons | {names[position]: REPEATED for position in redundant(names, dyes)}


def automatic_scale(files: Iterable[str]) -> str:
    """The default scale of a channel of several files: their common one, or logicle for fluorescence and mass together."""
    kinds = set(files)
    if len(kinds) == 1:
        return kinds.pop()
    return NONE if NONE in kinds else FLUORESCENCE


def scale_of(asked: str, automatic: str, values: Floats, top: float) -> Transform | None:
    """The scale of a marker from values of all samples and the top of its channels; None for none."""
    name = automatic if asked == AUTO else asked
    if name == NONE:
        return None
    return _logicle(name, values, top) if name.startswith("logicle") else parse_transform(name)


def _logicle(name: str, values: Floats, top: float) -> Transform:
    """A logicle scale with estimates of the parameters that ``name`` does not give. The name of the result has all of them."""
    parts = [part.partition("=") for part in name.partition(":")[2].split(",") if part]
    given = {letter.strip(): float(value) for letter, _, value in parts}
    decades, below = given.get("M", DECADES), given.get("A", 0.0)
    reach = noise_reach(values)
    height = given.setdefault("T", _top(values, top, reach, decades))
    if "W" not in given:
        given["W"] = math.floor(100 * min(linear_decades(reach, height, decades), (decades - max(below, 0.0)) / 2)) / 100
    texts = {letter: f"{value:.0f}" if value >= 1000 else f"{value:.6g}" for letter, value in given.items()}
    return parse_transform("logicle:" + ",".join(f"{letter}={texts[letter]}" for letter in "TWMA" if letter in given))


def _top(values: Floats, top: float, reach: float | None, decades: float) -> float:
    """T: the top of the channel, or the largest value except for a few outliers of compensation or damage."""
    largest = float(np.quantile(values, 1 - EXTREME)) if len(values) else 0.0
    largest = largest if largest > 0 else float(np.abs(values).max(initial=0.0)) or 1.0
    stated = top if top <= MAX_TOP else largest
    if reach is None:
        return max(largest, stated)
    return max(largest, min(stated, reach * 10.0**decades), reach * 10.0 ** (decades * (1 - 2 * MAX_LINEAR)))


def linear_decades(reach: float | None, top: float, decades: float = DECADES) -> float:
    """W by the reach of noise around zero."""
    if reach is None:
        return DEFAULT_LINEAR
    return float(np.clip((decades - np.log10(top / reach)) / 2, 0.0, decades / 2))


def noise_reach(values: Floats) -> float | None:
    """|r|: how far from zero noise reaches; None if unknown."""
    below = values[values < 0]
    if len(below) > OUTLIERS * len(values):
        return float(-np.quantile(below, TAIL))
    cut = np.maximum(values, 0)
    if not len(cut) or not cut.any():
        return None
    floor = float(cut.min())
    above = cut[cut > floor]
    if not len(above):
        return floor
    at_floor = 1 - len(above) / len(cut)
    if at_floor <= OUTLIERS:
        return float(np.quantile(above, TAIL))
    # A normal distribution with that proportion below the floor, and a quarter of the rest within `rise` above it.
    proportion, rise = min(at_floor, 0.5), float(np.quantile(above, QUARTER)) - floor
    normal = NormalDist().inv_cdf
    z, z_quarter = normal(proportion), normal(proportion + QUARTER * (1 - proportion))
    return floor + rise * (z - normal(TAIL * proportion)) / (z_quarter - z)


def pooled(cells: Iterable[Floats]) -> Floats:
    """At most `POOLED` events of every sample, evenly spaced."""
    return np.concatenate([events[:: max(1, -(-len(events) // POOLED))] for events in cells])


@dataclass(frozen=True)
class ChannelSample:
    """A sample of the events of a file."""

    automatic: str  # default scale of the channels
    values: Array  # (k, d) events, evenly spaced over the file; without rows if `automatic` is "none"
    tops: Array  # (d,) largest possible value of each channel
    upright: tuple[bool, ...]  # (d,) whether a channel has no default scale, such as time and scatter

    @classmethod
    def of(cls, source: FileReader, names: Sequence[str], with_events: bool = True) -> ChannelSample:
        """A sample of these columns of a file. Cost: one pass over them."""
        tops = np.array([source.highest.get(name, np.inf) for name in names])
        parts = [np.empty((0, len(names)))]
        if with_events and source.automatic != NONE:
            step = max(1, -(-(source.rows or 0) // POOLED))
            for block in source.blocks(names, [], ROWS):
                first = -block.first % step
                parts.append(np.column_stack([np.asarray(column, np.float64)[first::step] for column in block.columns]))
        return cls(source.automatic, np.concatenate(parts), tops, tuple(name in source.upright for name in names))


def on_estimated_scales(table: Table) -> Table:
    """A table of FCS files read without a transform, on scales estimated from its rows; other tables unchanged.

    The values are copied.
    """
    if not table.channels:
        return table
    some = table.values[:: max(1, -(-len(table) // POOLED))].astype(np.float64)
    scales, notes = automatic_scales([replace(table.channels[0], values=some), *table.channels[1:]], table.columns, ())
    values, rows = table.values.copy(), np.arange(1, len(table) + 1)
    for position, title in enumerate(table.columns):
        if title in scales:
            values[:, position] = parse_transform(scales[title]).apply(table.sources[0], title, values[:, position], rows)
    scales = table.scales | scales
    in_one_unit = table.in_one_unit or set(table.columns) <= set(scales)
    return replace(table, values=values, scales=scales, notes=(*table.notes, *notes), channels=(), in_one_unit=in_one_unit)


def automatic_scales(
    files: Sequence[ChannelSample], titles: Sequence[str], given: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """The scale of each channel that is not in ``given``, and a note; none unless all are FCS files."""
    automatic = automatic_scale(file.automatic for file in files)
    if automatic == NONE:
        return {}, []
    values, tops = np.concatenate([file.values for file in files]), np.max([file.tops for file in files], axis=0)
    scales, unchanged = {}, []
    for position, title in enumerate(titles):
        if title in given:
            continue
        if any(file.upright[position] for file in files):
            unchanged.append(title)
            continue
        column = values[:, position]
        scale = scale_of(AUTO, automatic, column[np.isfinite(column)], float(tops[position]))
        if scale is not None:
            scales[title] = scale.name
    if not scales:
        return {}, []
    kind, way = (
        ("mass", f"{MASS} transform") if automatic == MASS else ("fluorescence", "logicle transform, estimated from all events,")
    )
    note = f"FCS: {way} of {len(scales)} {kind} channel{'s' * (len(scales) != 1)}"
    note += f"; unchanged: {listed(unchanged)}" if unchanged else ""
    return scales, [f"{note}; switched off by transform none"]
