"""Error against time in six cells of the comparison with peers, one marker per method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

CELLS = (
    ("raetsch_banana", "median", 50),
    ("pendigits", "median", 200),
    ("cyto_itn15", "median", 200),
    ("usps", "scott", 100),
    ("images_std_china", "scott", 500),
    ("big_flights", "scott", 500),
)
BLUE, GREEN, ORANGE, GREY, RED = "#3b6fb5", "#2f8f5b", "#d98a1f", "#8a8a8a", "#c0272d"
LOOKS = {  # colour of the library, marker of the method
    "goodpoints-thin": (BLUE, "v"),
    "goodpoints-compress": (BLUE, "^"),
    "coreax-herding": (GREEN, "o"),
    "coreax-mapreduce": (GREEN, "p"),
    "coreax-cholesky-float32": (GREEN, "s"),
    "coreax-cholesky-float64": (GREEN, "D"),
    "coreax-thinning": (GREEN, "v"),
    "coreax-compress": (GREEN, "^"),
    "fpsample": (GREY, "X"),
    "kmeans": (ORANGE, "P"),
    "minibatch-kmeans": (ORANGE, "h"),
    "uniform": (GREY, "o"),
    "reduset-kcenter": (RED, "X"),
    "reduset-random": (RED, "."),
    "reduset-kmeans": (RED, "P"),
    "reduset-columnnorm": (RED, "<"),
    "reduset-herding": (RED, "o"),
    "reduset-cholesky": (RED, "s"),
    "reduset-thinning": (RED, "v"),
    "reduset-greedy": (RED, ">"),
    "reduset-auto": ("black", "d"),
    "reduset-auto+refine": ("black", "*"),
}
MIN_SECONDS = 1e-4  # below, the time is that of the call


def draw(cells: Mapping[tuple[str, str, int], Sequence[Any]], path: Path) -> None:
    """Panels for the measured cells of `CELLS`, or for the first cells if none of them was measured."""
    shown = [cell for cell in CELLS if cell in cells] or list(cells)[: len(CELLS)]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure, axes = plt.subplots(lines, columns, squeeze=False)
    met: set[str] = set()
    for axis, cell in zip(axes.flat, shown, strict=False):
        for result in cells[cell]:
            if result.status == "ok" and result.method in LOOKS:
                met.add(result.method)
                axis.plot([max(result.seconds, MIN_SECONDS)], [result.error], **_style(result.method, result.weights))
        axis.set(xscale="log", yscale="log", title=f"{cell[0]}, {cell[1]}, m = {cell[2]}")
        axis.title.set_fontsize(10)
        axis.tick_params(which="both", labelsize=7)
        axis.grid(alpha=0.25, linewidth=0.5)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    for axis in axes[-1]:
        axis.set_xlabel("seconds")
    for axis in axes[:, 0]:
        axis.set_ylabel("relative squared error")
    handles = [Line2D([], [], label=name, **_style(name, "optimal")) for name in LOOKS if name in met]
    handles.append(Line2D([], [], label="hollow: equal weights", **_style("uniform", "equal")))
    across = 2 * columns
    below = 0.25 + 0.2 * -(-len(handles) // across)  # inches
    height = 3.2 * lines + below
    figure.set_size_inches(4.1 * columns, height)
    figure.legend(handles=handles, loc="lower center", ncols=across, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, below / height, 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _style(method: str, weights: str) -> dict[str, Any]:
    colour, marker = LOOKS[method]
    return {
        "linestyle": "none",
        "marker": marker,
        "markersize": 13 if method == "reduset-auto+refine" else 7,
        "color": colour,
        "markerfacecolor": "none" if weights == "equal" else colour,
        "alpha": 0.9,
    }
