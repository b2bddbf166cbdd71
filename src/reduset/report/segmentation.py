"""The report of a segmented image: before and after, the borders of the segments, and their sizes.

Images larger than a screen are reduced. The mean of each square of pixels is shown, with the label of its middle pixel.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _archive
from reduset.certificate import at_bandwidth
from reduset.io import need
from reduset.modes import Segmentation, pixels
from reduset.report import words
from reduset.report.page import Markup, Section, aside, hero, joined, markup, reduced, write_page
from reduset.report.words import Card, count, percent

LONGEST = 900  # pixels of a side
LISTED = 24  # segments
BORDER = (255, 255, 255)
COMPARED = "Move the handle to compare the image (left) with its segments in their mean colours (right)."
WIPE = """<figure>
<div class="wipe" id="wipe">
<img src="$after" alt="The image after: each segment in its mean colour">
<img src="$before" alt="The image before" id="before">
<span id="handle" aria-hidden="true"></span>
</div>
<label class="slide"><span>Before</span>
<input type="range" id="share" min="0" max="100" value="50" step="0.5" aria-label="Part of the image shown as it was, in percent">
<span>After</span></label>
</figure>"""
SEGMENTS = """<figure><div class="wipe" id="segments">
<img src="$borders" alt="The borders of the segments, drawn over the image">
<canvas id="lit" aria-hidden="true"></canvas>
<img src="$labels" alt="" id="labels" hidden>
</div></figure>"""


def write_segmentation(
    path: _archive.Path_, image: Any, segmentation: Segmentation, *, about: Mapping[str, Any] | None = None
) -> None:
    """Write the report of a segmented image: one HTML file that opens offline.

    Parameters
    ----------
    path : The HTML file.
    image : (h, w), (h, w, 3) or (h, w, 4) image that was segmented
    segmentation : Segmentation of `reduset.modes.segment`.
    about : Plain values to show: "command", "sources", "notes", "versions", and any others.
    """
    before, after = as_bytes(image), as_bytes(segmentation.image)
    labels = segmentation.labels
    height, width = labels.shape
    if before.shape[:2] != labels.shape:
        raise ValueError(f"image must be the one that was segmented, of {height} × {width} pixels; got {before.shape[:2]}")
    step = -(-max(labels.shape) // LONGEST)
    reduced_labels = labels[step // 2 :: step, step // 2 :: step]
    h, w = reduced_labels.shape
    small, flat = (shrunk(array, step)[:h, :w] for array in (before, after))
    sizes = np.bincount(labels.ravel())
    write_page(
        path,
        f"{width:,} × {height:,} pixels in {count(segmentation.count, 'segment')}",
        hero(
            reduced(labels.size, "pixel", segmentation.count, "segment"),
            [f"{width:,} × {height:,} pixels" + (f", shown at 1 : {step}" if step > 1 else "")],
            _cards(segmentation, sizes),
            aside(words.error(segmentation.certificate, "pixel")),
        ),
        [
            Section("images", "Before and after", [COMPARED, markup(WIPE, before=data_uri(small), after=data_uri(flat))]),
            Section(
                "segments",
                "Borders of the segments",
                [
                    markup('<p id="pointed" aria-live="polite">Hover over a pixel, or touch it, for its segment.</p>'),
                    markup(SEGMENTS, borders=data_uri(with_borders(small, reduced_labels)), labels=data_uri(coded(reduced_labels))),
                ],
                {"sizes": sizes.tolist(), "width": w, "height": h},
            ),
            Section(
                "sizes",
                "Sizes of the segments",
                ["Each bar is a segment in its mean colour, the largest first.", _sizes(after, labels, sizes)],
            ),
        ],
        ["segmentation.js"],
        about=about,
        settings={"Bandwidth": f"{float(segmentation.bandwidth):.3g}, in units in which colours are from 0 to 1"},
        plots=False,
    )


def data_uri(image: NDArray[np.uint8]) -> str:
    """A (h, w), (h, w, 1), (h, w, 3) or (h, w, 4) image as a PNG in a data URI."""
    file = BytesIO()
    _picture(image).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + b64encode(file.getvalue()).decode("ascii")


def _picture(image: NDArray[np.uint8]) -> Any:
    """An image of Pillow."""
    grey = image.ndim == 3 and image.shape[2] == 1
    return need("reports of images", "PIL.Image", "images").fromarray(np.ascontiguousarray(image[:, :, 0] if grey else image))


def as_bytes(image: Any) -> NDArray[np.uint8]:
    """An image with 8 bits per channel."""
    array = pixels(image, colours_only=True)
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind == "f":  # floats are from 0 to 1, or from 0 to 255 if one is above 2
        array = array * (255 if float(np.abs(array).max()) <= 2 else 1)
    elif array.dtype.kind == "b":
        array = array * 255.0
    else:
        array = array * (255 / np.iinfo(array.dtype).max)
    return np.clip(np.rint(array), 0, 255).astype(np.uint8)


def shrunk(image: NDArray[np.uint8], step: int) -> NDArray[np.uint8]:
    """The mean of every square of step × step pixels. Squares at the edge may be smaller."""
    return np.asarray(_picture(image).reduce(step)).reshape(*(-(-side // step) for side in image.shape[:2]), -1)


def borders(labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Pixels with a right or lower neighbour in another segment."""
    is_border = np.zeros(labels.shape, bool)
    is_border[:, :-1] |= labels[:, 1:] != labels[:, :-1]
    is_border[:-1] |= labels[1:] != labels[:-1]
    return is_border


def with_borders(image: NDArray[np.uint8], labels: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The image in dark grey with white borders of its segments."""
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
            f"The largest {half} have half of all pixels." if half > 1 else "The largest has half of all pixels.",
        ),
        replace(words.lost(segmentation.certificate, "pixel"), title=f"Error of the density{at}"),
        Card("Largest", percent(largest), "The proportion of pixels in the largest segment."),
    ]


def _sizes(after: NDArray[np.uint8], labels: NDArray[np.int64], sizes: NDArray[np.int64]) -> Markup:
    """The largest segments as bars in their colours, and the total of the others."""
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
        proportion = sizes[k] / labels.size
        rows.append(
            markup(
                row,
                label=k,
                colour="#" + "".join(f"{value:02x}" for value in channels),
                width=f"{max(100 * sizes[k] / sizes[order[0]], 0.5):.2f}",
                share=percent(proportion),
                size=count(int(sizes[k]), "pixel"),
            )
        )
    listed = markup('<ol class="sizes">$rows</ol>', rows=joined(rows))
    others = len(sizes) - len(order)
    if not others:
        return listed
    proportion = 1 - float(sizes[order].sum()) / float(sizes.sum())
    return joined([listed, aside(f"The other {count(others)} have {percent(proportion)} of all pixels.")])
