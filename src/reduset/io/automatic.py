"""transform="auto": a scale for each channel of FCS files, estimated before they are read, from some events of every file.

One more pass over the chosen channels, O(n·d); memory for some thousand events of each file.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reduset._types import Array
from reduset.io.choice import ColumnChoice
from reduset.io.reader import AUTO, NONE, FileReader
from reduset.io.scale_estimates import MASS, POOLED, automatic_scale, scale_of
from reduset.io.table import Table, listed
from reduset.io.transforms import parse_transform

ROWS = 65536


@dataclass(frozen=True)
class ChannelSample:
    """Some events of a file.

    Attributes
    ----------
    automatic : the scale of its channels by default
    values : (k, d) some events, evenly spread over the file; without rows if ``automatic`` is "none"
    tops : (d,) the largest value that each channel can hold
    upright : (d,) whether a channel has no scale by default: time and scatter
    """

    automatic: str
    values: Array
    tops: Array
    upright: tuple[bool, ...]

    @classmethod
    def of(cls, source: FileReader, choice: ColumnChoice, some: bool = True) -> ChannelSample:
        """Of the columns that are read of a file; without events unless ``some``."""
        tops = np.array([source.highest.get(name, np.inf) for name in choice.names])
        upright = tuple(name in source.upright for name in choice.names)
        parts = [np.empty((0, len(choice.names)))]
        if some and source.automatic != NONE:
            step = max(1, -(-(source.rows or 0) // POOLED))
            for block in source.blocks(choice.names, [], ROWS):
                first = -block.first % step
                parts.append(np.column_stack([np.asarray(column, np.float64)[first::step] for column in block.columns]))
        return cls(source.automatic, np.concatenate(parts), tops, upright)


def on_estimated_scales(table: Table) -> Table:
    """A table of FCS files that were read without a transform, on scales estimated from its rows; others as they are.

    The values are copied, and those of the table given stay as they are.
    """
    if not table.channels:
        return table
    some = table.values[:: max(1, -(-len(table) // POOLED))].astype(np.float64)
    scales, notes = automatic_scales([replace(table.channels[0], values=some), *table.channels[1:]], table.columns, ())
    values, rows = table.values.copy(), np.arange(1, len(table) + 1)
    for place, title in enumerate(table.columns):
        if title in scales:
            values[:, place] = parse_transform(scales[title]).apply(table.sources[0], title, values[:, place], rows)
    scales = table.scales | scales
    one_unit = table.in_one_unit or set(table.columns) <= set(scales)
    return replace(table, values=values, scales=scales, notes=(*table.notes, *notes), channels=(), in_one_unit=one_unit)


def automatic_scales(
    files: Sequence[ChannelSample], titles: Sequence[str], given: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """The scale of each channel, by title, that is not among those ``given``, and a note; none unless all are FCS files."""
    automatic = automatic_scale(file.automatic for file in files)
    if automatic == NONE:
        return {}, []
    values, tops = np.concatenate([file.values for file in files]), np.max([file.tops for file in files], axis=0)
    found, unchanged = {}, []
    for place, title in enumerate(titles):
        if title in given:
            continue
        if any(file.upright[place] for file in files):
            unchanged.append(title)
            continue
        column = values[:, place]
        scale = scale_of(AUTO, automatic, column[np.isfinite(column)], float(tops[place]))
        if scale is not None:
            found[title] = scale.name
    if not found:
        return {}, []
    kind, way = (
        ("mass", f"{MASS} transform") if automatic == MASS else ("fluorescence", "logicle transform, estimated from all events,")
    )
    note = f"FCS: {way} of {len(found)} {kind} channel{'s' * (len(found) != 1)}"
    note += f"; unchanged: {listed(unchanged)}" if unchanged else ""
    return found, [f"{note}; switched off by transform none"]
