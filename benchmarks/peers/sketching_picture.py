"""Measures of the comparison of sketches against size: one row of panels per measure, one column per data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

SHOWN = ("pbmc68k", "cyto_itn15", "rare_10", "rare_50", "simulated")
OURS = "reduset"
MEASURES = {  # the column of peers, that of ours, the label, and the scale
    "proportions": ("mae_plain", "mae_weighted", "error of proportions", "log"),
    "cover": ("hausdorff", "hausdorff", "partial Hausdorff", "linear"),
    "rare": ("recall_01", "recall_01", "recall of 0.1 % types", "linear"),
    "clusters": ("ari_kmeans_plain", "ari_kmeans_weighted", "adjusted Rand, k-means", "linear"),
    "time": ("seconds", "seconds", "seconds", "log"),
}
LOOKS = {
    "hopper": ("#3b6fb5", "s"),
    "treehopper": ("#7fa8d9", "D"),
    "geosketch": ("#2f8f5b", "^"),
    "sketchkh": ("#d98a1f", "o"),
    "scsampler": ("#7b4fa3", "v"),
    "scsampler-16": ("#b496cf", "<"),
    "leverage": ("#8c6d46", "P"),
    "kmeans": ("#1aa3a3", "X"),
    "uniform": ("#8a8a8a", "."),
    OURS: ("#c0272d", "*"),  # last, so that it is drawn in front
}
MIN_SECONDS = 1e-3  # below, the time is that of the call


def draw(results: Any, path: Path) -> None:
    """Panels for the measured data sets of `SHOWN`, or for the first ones if none of them was measured."""
    names = [name for name in SHOWN if name in results.shapes] or list(results.shapes)[: len(SHOWN)]
    figure, axes = plt.subplots(
        len(MEASURES), len(names), squeeze=False, figsize=(2.9 * len(names) + 0.6, 2.15 * len(MEASURES) + 0.9)
    )
    for row, (theirs, ours, title, scale) in zip(axes, MEASURES.values(), strict=True):
        for axis, name in zip(row, names, strict=True):
            _panel(axis, results, name, theirs, ours, scale)
        row[0].set_ylabel(title, fontsize=9)
    for axis, name in zip(axes[0], names, strict=True):
        n, d = results.shapes[name]
        axis.set_title(f"{name}\n{n:,} × {d}", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("rows of the sketch", fontsize=8)
    handles = [Line2D([], [], label=_label(method), **_style(method)) for method in reversed(LOOKS) if method in results.methods]
    below = (0.6 if len(names) > 2 else 0.95) / figure.get_figheight()
    figure.legend(handles=handles, loc="lower center", ncols=5 if len(names) > 2 else 3, fontsize=8.5, frameon=False)
    figure.tight_layout(rect=(0, below, 1, 1), h_pad=0.6, w_pad=0.6)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(axis: Any, results: Any, name: str, theirs: str, ours: str, scale: str) -> None:
    sizes = [size for data, size in results.cells if data == name]
    drawn = False
    for method in (method for method in LOOKS if method in results.methods):
        values = np.array([results.mean((name, size), method, ours if method == OURS else theirs) for size in sizes])
        if theirs == "seconds":
            values = np.maximum(values, MIN_SECONDS)
        fine = ~np.isnan(values) & ((values > 0) | (scale == "linear"))
        if fine.any():
            drawn = True
            axis.plot(np.array(sizes)[fine], values[fine], **_style(method), zorder=3 if method == OURS else 2)
    if not drawn:  # a set without planted types has no recall
        axis.text(0.5, 0.5, "none planted" if theirs.startswith("recall") else "not measured", ha="center", va="center",
                  transform=axis.transAxes, fontsize=8, color="#8a8a8a")  # fmt: skip
        axis.set(xticks=[], yticks=[])
        axis.spines[["top", "right", "left", "bottom"]].set_visible(False)
        return
    axis.set(xscale="log", yscale=scale)
    if scale == "linear":
        axis.set_ylim(bottom=0, top=1.05 if theirs.startswith("recall") else None)
    axis.set_xticks(sizes)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size / 1000:g}k" if size >= 1000 else f"{size:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.minorticks_off()
    axis.tick_params(which="both", labelsize=7)
    axis.grid(alpha=0.25, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)


def _label(method: str) -> str:
    return f"{method} (its own weights)" if method == OURS else method


def _style(method: str) -> dict[str, Any]:
    colour, marker = LOOKS[method]
    front = method == OURS
    return {
        "color": colour,
        "marker": marker,
        "markersize": 11 if front else 5,
        "linewidth": 2.2 if front else 1.1,
        "alpha": 1 if front else 0.85,
    }
