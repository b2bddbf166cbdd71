"""The report of a segmented image: before and after, where the segments end, and how large they are.

Images larger than a screen are shown smaller: pixels are averaged in squares, labels taken from the middle of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive
from reduset.certificate.certificate import at_bandwidth
from reduset.modes import Segmentation
from reduset.modes.segmentation import pixels
from reduset.report import words
from reduset.report.page import Markup, cards, file, joined, markup, origin, write
from reduset.report.png import data_uri
from reduset.report.words import Card, count, percent

LONGEST = 900  # pixels of a side that is shown
LISTED = 24
BORDER = (255, 255, 255)


def write_segmentation(
    path: _archive.Path_, image: Any, segmentation: Segmentation, *, about: Mapping[str, Any] | None = None
) -> None:
    """Write the report of a segmented image: one HTML file that opens offline.

    Parameters
    ----------
    path : where to, usually with the ending .html
    image : (h, w), (h, w, 3) or (h, w, 4), the image that was segmented
    segmentation : Segmentation, of `reduset.modes.segment`
    about : plain values to show beside it: "command", "sources", "notes", "versions", and any others
    """
    before, after = as_bytes(image), as_bytes(segmentation.image)
    labels = segmentation.labels
    if before.shape[:2] != labels.shape:
        raise ValueError(
            f"image must be the one that was segmented, of {labels.shape[0]} × {labels.shape[1]} pixels; got {before.shape[:2]}"
        )
    title = f"{labels.shape[1]:,} × {labels.shape[0]:,} pixels in {count(segmentation.count, 'segment')}"
    step = -(-max(labels.shape) // LONGEST)
    few = labels[step // 2 :: step, step // 2 :: step]
    small, flat = (shrunk(each, step)[: few.shape[0], : few.shape[1]] for each in (before, after))
    sizes = np.bincount(labels.ravel())
    data = {"sizes": sizes.tolist(), "width": few.shape[1], "height": few.shape[0]}
    body = markup(
        file("segmentation.html"),
        pixels=count(labels.size),
        segments=count(segmentation.count),
        things="segment" if segmentation.count == 1 else "segments",
        lead=f"{labels.shape[1]:,} × {labels.shape[0]:,}" + (f", shown at 1 : {step}" if step > 1 else ""),
        cards=cards(_cards(segmentation, sizes)),
        error=words.error(segmentation.certificate, "pixel"),
        before=data_uri(small),
        after=data_uri(flat),
        borders=data_uri(with_borders(small, few)),
        labels=data_uri(coded(few)),
        sizes=_sizes(after, labels, sizes),
        origin=origin(about, {"Bandwidth": float(segmentation.bandwidth)}),
    )
    write(path, title, body, data, ["common.js", "segmentation.js"], plots=False)


def as_bytes(image: Any) -> NDArray[np.uint8]:
    """An image in 8 bits a channel, as a screen shows it."""
    array = pixels(image, alone=True)
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind == "f":  # floats are shares of white, or, where they go far beyond, levels of 8 bits
        array = array * (255 if float(np.abs(array).max()) <= 2 else 1)
    elif array.dtype.kind == "b":
        array = array * 255.0
    else:
        array = array * (255 / np.iinfo(array.dtype).max)
    return np.clip(np.rint(array), 0, 255).astype(np.uint8)


def shrunk(image: NDArray[np.uint8], step: int) -> NDArray[np.uint8]:
    """The mean of every square of step × step pixels; those at the end may be smaller."""
    if step == 1:
        return image
    height, width = image.shape[:2]
    rows, columns = np.arange(0, height, step), np.arange(0, width, step)
    sums = np.add.reduceat(np.add.reduceat(image.astype(np.float64), rows, axis=0), columns, axis=1)
    counts = np.diff(np.append(rows, height))[:, None] * np.diff(np.append(columns, width))
    return np.rint(sums / counts[:, :, None]).astype(np.uint8)


def borders(labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Pixels whose right or lower neighbour is of another segment."""
    found = np.zeros(labels.shape, bool)
    found[:, :-1] |= labels[:, 1:] != labels[:, :-1]
    found[:-1] |= labels[1:] != labels[:-1]
    return found


def with_borders(image: NDArray[np.uint8], labels: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The image in darker grey, the borders of its segments bright."""
    grey = image[:, :, :3].mean(axis=2, keepdims=True)
    drawn = np.repeat(np.rint(0.55 * grey), 3, axis=2).astype(np.uint8)
    drawn[borders(labels)] = BORDER
    return drawn


def coded(labels: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Labels as colours, for a script to read: label = red + 256 green + 65536 blue."""
    return np.stack([labels & 255, (labels >> 8) & 255, (labels >> 16) & 255], axis=2).astype(np.uint8)


def _cards(segmentation: Segmentation, sizes: NDArray[np.int64]) -> list[Card]:
    largest = float(sizes.max()) / segmentation.labels.size
    at = at_bandwidth(segmentation.certificate.bandwidth)
    half = int(np.searchsorted(np.cumsum(np.sort(sizes)[::-1]), segmentation.labels.size / 2)) + 1
    return [
        Card(
            "Segments",
            count(segmentation.count),
            f"Half of all pixels lie in the largest {half}." if half > 1 else "Half of all pixels lie in the largest.",
        ),
        replace(words.lost(segmentation.certificate, "pixel"), title=f"Error of the density{at}"),
        Card("Largest", percent(largest), "Of all pixels, in one segment."),
    ]


def _sizes(after: NDArray[np.uint8], labels: NDArray[np.int64], sizes: NDArray[np.int64]) -> Markup:
    """The largest segments, each in its colour, as long as it is large."""
    order = np.argsort(-sizes, kind="stable")[:LISTED]
    first = np.unique(labels, return_index=True)[1]
    colours = after.reshape(-1, after.shape[2])[first]
    row = (
        '<li data-segment="$label"><i style="background:$colour;width:$width%"></i><span>$share</span>'
        '<span class="aside">$size</span></li>'
    )
    rows = []
    for k in order:
        channels = (colours[k].tolist() * 3)[:3] if after.shape[2] == 1 else colours[k, :3].tolist()
        share = sizes[k] / labels.size
        rows.append(
            markup(
                row,
                label=k,
                colour="#" + "".join(f"{value:02x}" for value in channels),
                width=f"{max(100 * sizes[k] / sizes[order[0]], 0.5):.2f}",
                share=percent(share),
                size=count(int(sizes[k]), "pixel"),
            )
        )
    return markup('<ol class="sizes">$rows</ol>$rest', rows=joined(rows), rest=_rest(sizes, order))


def _rest(sizes: NDArray[np.int64], order: NDArray[np.int64]) -> Markup:
    """What the list leaves out."""
    left = len(sizes) - len(order)
    if not left:
        return Markup("")
    share = 1 - float(sizes[order].sum()) / float(sizes.sum())
    return markup('<p class="aside">and $left more, $share of all pixels together</p>', left=count(left), share=percent(share))
