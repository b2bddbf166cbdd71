"""Scales of cytometry channels, estimated from their values: the one implementation for cohorts, sketches and compressions.

asinh(x/5) for mass cytometry, logicle for fluorescence. The top T of a logicle scale is that of the channel ($PnR) or the largest
value but for few; its linear decades, of M = 4.5, are by Parks et al. (2006)

    W = (M − log10(T/|r|))/2    within [0, M/2],

where r is the 5th percentile of the values below zero: as far as noise alone reaches there, the scale is linear. Where nothing is
below zero, noise was cut off: a normal law, of which as much lies below the floor as is piled up there. A top more than M decades
above r, with no value there, is lowered to that; one less than M/3 above it is raised, for W beyond M/3 makes two peaks of noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

import numpy as np

from reduset._types import Floats
from reduset.io.reader import AUTO, NONE
from reduset.io.transforms import Transform, parse_transform

MASS, FLUORESCENCE = "asinh:5", "logicle"

DECADES = 4.5  # M
TAIL = 0.05
NEAREST = 0.25  # of the values above the floor
FEW = 0.01  # of the values below zero: outliers of compensation, which say nothing of noise around 0
MOST_LINEAR = 1 / 3  # of M: of a larger W, T being as low, noise around 0 would have two peaks
FAR_OUT = 0.001
BELIEVED = 2.0**24  # tops above it are the width of a number, and no detector's
NO_NOISE = 0.5  # W where nothing can be said of it

POOLED = 4096  # events of a sample


def automatic_scale(files: Iterable[str]) -> str:
    """The scale by default of a channel that several files have: that of all; logicle for fluorescence and mass together."""
    kinds = set(files)
    if len(kinds) == 1:
        return kinds.pop()
    return NONE if NONE in kinds else FLUORESCENCE


def scale_of(asked: str, automatic: str, values: Floats, top: float) -> Transform | None:
    """The scale of a marker, from values of all samples and the top of its channels; None for none."""
    name = automatic if asked == AUTO else asked
    if name == NONE:
        return None
    return _logicle(name, values, top) if name.startswith("logicle") else parse_transform(name)


def _logicle(name: str, values: Floats, top: float) -> Transform:
    """A logicle scale, in which what was not given is estimated; its name says what was used."""
    parts = [part.partition("=") for part in name.partition(":")[2].split(",") if part]
    given = {letter.strip(): float(value) for letter, _, value in parts}
    decades, below = given.get("M", DECADES), given.get("A", 0.0)
    reach = noise_reach(values)
    height = given.setdefault("T", _top(values, top, reach, decades))
    if "W" not in given:
        given["W"] = math.floor(100 * min(linear_decades(reach, height, decades), (decades - max(below, 0.0)) / 2)) / 100
    ordered = {letter: given[letter] for letter in "TWMA" if letter in given}
    return parse_transform("logicle:" + ",".join(f"{letter}={_short(value)}" for letter, value in ordered.items()))


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.6g}"


def _top(values: Floats, top: float, reach: float | None, decades: float) -> float:
    """T: the top of the channel, or the largest value but for a few that compensation or damage has thrown far out."""
    largest = float(np.quantile(values, 1 - FAR_OUT)) if len(values) else 0.0
    largest = largest if largest > 0 else float(np.abs(values).max(initial=0.0)) or 1.0
    said = top if top <= BELIEVED else largest
    if reach is None:
        return max(largest, said)
    return max(largest, min(said, reach * 10.0**decades), reach * 10.0 ** (decades * (1 - 2 * MOST_LINEAR)))


def linear_decades(reach: float | None, top: float, decades: float = DECADES) -> float:
    """W, by how far noise around zero reaches."""
    if reach is None:
        return NO_NOISE
    return float(np.clip((decades - np.log10(top / reach)) / 2, 0.0, decades / 2))


def noise_reach(values: Floats) -> float | None:
    """|r|: how far from zero noise reaches; None where no value says so."""
    below = values[values < 0]
    if len(below) > FEW * len(values):
        return float(-np.quantile(below, TAIL))
    cut = np.maximum(values, 0)
    if not len(cut) or not cut.any():
        return None
    floor = float(cut.min())
    above = cut[cut > floor]
    if not len(above):
        return floor
    piled = 1 - len(above) / len(cut)
    if piled <= FEW:
        return float(np.quantile(above, TAIL))
    return floor + _cut_off(min(piled, 0.5), float(np.quantile(above, NEAREST)) - floor)


def _cut_off(share: float, rise: float) -> float:
    """How far below the floor the 5th percentile lies of what was cut off there, ``share`` of a normal law.

    Of the events above the floor a quarter lies within ``rise`` of it.
    """
    normal = NormalDist().inv_cdf
    floor, quarter = normal(share), normal(share + NEAREST * (1 - share))
    return rise * (floor - normal(TAIL * share)) / (quarter - floor)


def pooled(cells: Iterable[Floats]) -> Floats:
    """Some events of every sample, evenly spread, as many of each at most."""
    return np.concatenate([each[:: max(1, -(-len(each) // POOLED))] for each in cells])
