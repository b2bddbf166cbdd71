"""Scales of markers, the same in all samples: given by name, or estimated from all samples together.

By default asinh(x/5) for mass cytometry, logicle for fluorescence, and none for other files. `reduset.io.channels` estimates
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._engine import run_all
from reduset._types import Array
from reduset.cytometry.lab_tables import loose
from reduset.io import AUTO, NONE, PLAIN, Transform, nearest, parse_transform

BLOCK = 32768  # events of a task


def asked_scales(markers: Sequence[str], transform: Any, by_panel: Mapping[str, str]) -> dict[str, str]:
    """What is asked for of each marker: a scale by name, "auto" or "none". A dict counts most, then the panel, then text."""
    wanted = dict.fromkeys(markers, AUTO if transform is None or isinstance(transform, Mapping) else _checked(transform))
    wanted |= {marker: _checked(text) for marker, text in by_panel.items() if marker in wanted}
    for name, text in transform.items() if isinstance(transform, Mapping) else ():
        fitting = [marker for marker in markers if marker == name] or [each for each in markers if loose(each) == loose(str(name))]
        if not fitting:
            raise ValueError(
                f"transform names {name!r}, which is no marker{nearest(str(name), markers)}; there are {', '.join(markers)}"
            )
        wanted[fitting[0]] = AUTO if text is None else _checked(text)
    return wanted


def _checked(text: Any) -> str:
    name = text.strip() if isinstance(text, str) else text
    if name in (AUTO, *PLAIN):
        return AUTO if name == AUTO else NONE
    return parse_transform(name).name


def put_on_scales(
    cells: NDArray[np.float32], scales: Sequence[Transform | None], path: str, markers: Sequence[str], rows: Any
) -> None:
    """Events of one file onto their scales, in place; ``rows`` are their numbers in the file, for messages."""

    def put(start: int) -> None:
        block = cells[start : start + BLOCK]
        for place, scale in enumerate(scales):
            if scale is not None:
                block[:, place] = scale.apply(path, markers[place], block[:, place], rows[start : start + BLOCK])

    run_all([partial(put, start) for start in range(0, len(cells), BLOCK)])


def told_tops(markers: Sequence[str], tops: Array, paths: Sequence[str]) -> list[str]:
    """A note on markers whose channels have other ranges in other files, (files, markers) of tops."""
    low, high = tops.min(axis=0), tops.max(axis=0)
    odd = [place for place in range(len(markers)) if np.isfinite(high[place]) and high[place] > 4 * low[place]]
    if not odd:
        return []
    first = odd[0]
    some = [paths[int(pick)] for pick in (tops[:, first].argmin(), tops[:, first].argmax())]
    return [
        f"{len(odd)} of {len(markers)} markers have other ranges in other files ({markers[first]} {low[first]:,.0f} in {some[0]}, "
        f"{high[first]:,.0f} in {some[1]}): were they measured alike? Each has one scale in all"
    ]
