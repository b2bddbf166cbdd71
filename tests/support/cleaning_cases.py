"""Events of files to be cleaned and gated: read from an FCS file, or made of single cells, doublets and drift."""

from __future__ import annotations

import numpy as np

from reduset.cytometry.events import FileEvents
from reduset.io.fcs import FcsReader
from reduset.io.fcs_text import read_head
from reduset.io.reader import ReadOptions

RANGE = 262144.0
PULSES = ("FSC-A", "FSC-H", "SSC-A", "SSC-H")
DYES = ("FITC-A", "PE-A", "APC-A", "PerCP-A")


def read_events(path):
    """A small FCS file with all its channels; the largest value of a channel is one step below its range where it counts steps."""
    head, source = read_head(str(path)), FcsReader(str(path), ReadOptions())
    names = [channel.name for channel in head.channels]
    values = np.concatenate([np.column_stack(block.columns) for block in source.blocks(names, [], 1 << 20)])
    whole = head.text["datatype"].strip().upper() == "I"
    tops = np.array([channel.range - whole if channel.range > 0 else np.inf for channel in head.channels])
    return FileEvents(str(path), tuple(names), tuple(channel.label for channel in head.channels), values, tops)


def events_of(columns, tops=RANGE, labels=None, measured=None):
    """Events from columns by name."""
    values = np.column_stack([np.asarray(column, np.float64) for column in columns.values()])
    labels = ("",) * len(columns) if labels is None else labels
    return FileEvents("made.fcs", tuple(columns), labels, values, np.broadcast_to(tops, len(columns)).astype(float), measured)


def cells(n, rng, doublets=0):
    """Columns of single cells of two sizes and four dyes, some of them two by two: areas are added, the larger height remains."""

    def singles(count):
        large = rng.random(count) < 0.3
        found = {}
        for direction, sizes in (("FSC", (40_000, 70_000)), ("SSC", (15_000, 45_000))):
            height = np.where(large, sizes[1], sizes[0]) * np.exp(rng.normal(0, 0.12, count))
            area = height * (1 + 0.1 * large) * np.exp(rng.normal(0, 0.03, count))
            found |= {f"{direction}-A": area, f"{direction}-H": height}
        for k, dye in enumerate(DYES):
            bright = rng.random(count) < (0.2, 0.5, 0.05, 0.8)[k]
            found[dye] = rng.normal(0, 60, count) + bright * 5000 * np.exp(rng.normal(0, 0.4, count))
        return found

    columns = singles(n)
    if doublets:
        one, two = singles(doublets), singles(doublets)
        pairs = {name: np.maximum(one[name], two[name]) if name.endswith("-H") else one[name] + two[name] for name in one}
        columns = {name: np.concatenate([columns[name], pairs[name]]) for name in columns}
    return columns


def timed(columns, rng):
    """The same with a clock."""
    n = len(next(iter(columns.values())))
    return {**columns, "Time": np.sort(rng.uniform(0, 100, n))}


def shifted(column, rows, share):
    """A dye that is shifted by a share of its spread in some rows, on the scale on which dyes are looked at."""
    unit = np.median(np.abs(column))
    scaled = np.arcsinh(column / unit)
    low, high = np.quantile(scaled, (0.25, 0.75))
    scaled[rows] += share * (high - low) / 1.349
    return np.sinh(scaled) * unit
