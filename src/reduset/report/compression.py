"""The report of a compression, from its model alone.

The page computes the densities of every size from its atoms and weights: Σ w N(s; x, h²) N(t; y, h²) on the grids of the portrait,
as in `MarginalDensities.joint_of`. For components, their covariances are added. Atoms are stored in single precision, relative to
the middle of their grid. So columns of large numbers keep their digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reduset import _archive
from reduset._describe import shortened, significant
from reduset._types import Array
from reduset.certificate import at_bandwidth
from reduset.kernels import Kernel
from reduset.mixture import ComponentMean, own_covariance
from reduset.model import Model
from reduset.report import words
from reduset.report.figures import ROUNDING, PathFigure, ProfileFigure, path_figure, profile_figure, wide_columns
from reduset.report.page import (
    DRAWN_AT_ONCE,
    Markup,
    Section,
    aside,
    choice,
    columns_of,
    described,
    folded,
    grid,
    hero,
    joined,
    markup,
    named,
    packed,
    pictures,
    plot,
    reduced,
    sentence,
    small,
    table,
    write_page,
)
from reduset.report.words import count

MAX_VALUES = 200_000  # coordinates of atoms in the file, so that it stays below 6 MB
LISTED = 20  # atoms in the table
NAMED = 18  # characters of a name in the box of pairs
SLIDER = """<div class="controls" role="group" aria-label="Size and columns of the figures">
<label class="slide"><span>$pieces</span><input type="range" id="step" min="0" max="$last" value="$last" step="1"></label>
<button type="button" id="play" aria-label="Play through all sizes">▶</button>
<output id="told" for="step">$shown</output>
$pairs
</div>
"""


def write_compression(path: _archive.Path_, model: Model) -> None:
    """Write the report of a compression: one HTML file that opens offline.

    Parameters
    ----------
    path : The HTML file.
    model : Model of `Model.of` or `Model.load`.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model must be a Model, got {type(model).__name__}; make one by Model.of(full, small)")
    shown = path_figure(model)
    components = isinstance(model.mean, ComponentMean)
    note = oversmoothing_note(model)
    write_page(
        path,
        f"{count(model.n_samples, 'row')} → {count(model.size, model.piece)}",
        hero(
            reduced(model.n_samples, "row", model.size, model.piece),
            [words.plain(model.about.get("sources") or []), columns_of(model.columns)],
            _cards(model, shown),
            aside(words.error(model.certificate, piece=model.piece)),
            sentence(note, "notice") if note else Markup(""),
        ),
        [_by_size(model, shown), _slider(model, shown), _by_bandwidth(model), _densities(model), _columns(model), _heaviest(model)],
        ["densities.js", "profile.js", "compression.js"],
        about={"components" if components and name == "selection" else name: value for name, value in model.about.items()},
        settings={"Kernel": repr(model.mean.kernel), "Columns": model.columns},
        data={"piece": model.piece, "profile": None} | _atoms(model),
    )


def oversmoothing_note(model: Model) -> str:
    """A sentence on columns that the bandwidth smooths into a single mode; empty if there are none."""
    is_whitened = not getattr(model.mean.kernel, "is_isotropic", True)
    return words.wide(wide_columns(model), len(model.columns), is_whitened)


def _cards(model: Model, path: PathFigure) -> list[words.Card]:
    n, m = model.n_samples, model.size
    third = words.promised(path)
    if third is None and model.resolved is not None:
        third = words.finest(model.resolved, m)
    shown = (
        words.kept(n, m, model.piece, m - int(np.count_nonzero(model.mean.weights))),
        words.lost(model.certificate, piece=model.piece, near=model.near_median),
        third,
        words.random_rows(path, n, model.total is None),
    )
    return [card for card in shown if card is not None]


def _atoms(model: Model) -> dict[str, Any]:
    """The atoms, their weights at every size, and the grids of the densities."""
    portrait, embedded = model.portrait, _embedded(model)
    middles = portrait.grids[:embedded].mean(axis=1)
    weights = [row[:size] for row, size in zip(model.step_weights, model.step_sizes, strict=True)]
    return {
        "columns": list(model.columns[:embedded]),
        "steps": {
            "sizes": model.step_sizes.tolist(),
            "errors": [model.error_at(k) for k in range(len(model.step_sizes))],
            "weights": packed(np.concatenate(weights), "f8"),
        },
        "middles": middles.tolist(),
        "atoms": packed((np.asarray(model.mean.atoms[:, :embedded], np.float64) - middles).T),  # by columns
        "laws": _covariances(model, embedded),
        "axes": _axes(portrait.grids[:embedded], portrait.widths, middles),
        "pairAxes": _axes(portrait.pair_grids, portrait.pair_widths, middles),
    }


def _embedded(model: Model) -> int:
    """The number of columns with coordinates in the file. It is smaller for very many atoms."""
    portrait = model.portrait
    return min(len(portrait.grids), max(len(portrait.pair_grids), MAX_VALUES // model.size))


def _covariances(model: Model, embedded: int) -> dict[str, Any] | None:
    """The covariances of the components and of the kernel, in units of the bandwidths along the columns; None for atoms.

    They are the variances of each column and the covariances of each pair. Double precision is needed to invert the covariance of a
    long and thin component.
    """
    if not isinstance(model.mean, ComponentMean):
        return None
    portrait, covariances = model.portrait, model.mean.pieces.spreads
    own = own_covariance(model.mean.kernel, model.mean.dimension)
    widths, (first, second) = portrait.widths[:embedded], portrait.pairs.T
    scale, crossed = np.square(widths), portrait.widths[first] * portrait.widths[second]
    return {
        "variances": packed((covariances.diagonal(axis1=1, axis2=2)[:, :embedded] / scale).T, "f8"),
        "crossed": packed((covariances[:, first, second] / crossed).T, "f8"),
        "bump": (np.diag(own)[:embedded] / scale).tolist(),
        "bumpCrossed": (own[first, second] / crossed).tolist(),
    }


def _axes(grids: Array, widths: Array, middles: Array) -> list[list[float]]:
    """First and last point of each grid relative to its middle, number of points, and bandwidth."""
    ends = zip(grids[:, 0] - middles[: len(grids)], grids[:, -1] - middles[: len(grids)], widths, strict=False)
    return [[float(low), float(high), grids.shape[1], float(width)] for low, high, width in ends]


def _by_size(model: Model, path: PathFigure) -> Section:
    """The error of every size, and all numbers of the certificate."""
    at = at_bandwidth(path.bandwidth)
    bound = ". The triangle is the a-priori bound" if (path.bound or 1) < 1 else ""
    blocks = [
        f"Smaller sizes use the first of these {model.piece}s. The ring is the size of the slider below. The bar is the confidence "
        f"interval of the measured error{bound}.",
        joined(
            [
                plot("path", f"Relative error by number of {model.piece}s, compared with random rows"),
                folded("All numbers of the certificate", described(model.certificate.describe())),
            ]
        ),
    ]
    return Section("size", f"Error{at} by size", blocks, {"path": vars(path) | {"at": at}})


def _slider(model: Model, path: PathFigure) -> Markup:
    """The controls of the figures below: the size, and the pair of columns."""
    error = words.percent(path.error if path.error >= ROUNDING else 0.0)

    names = [[model.columns[j] for j in pair] for pair in model.portrait.pairs]
    options = [(k, " × ".join(shortened(name, NAMED) for name in pair), " × ".join(pair)) for k, pair in enumerate(names)]
    return markup(
        SLIDER,
        pieces=f"{model.piece}s".capitalize(),
        last=len(model.step_sizes) - 1,
        shown=f"{count(model.size, model.piece)}, error {error}{at_bandwidth(path.bandwidth)}",
        pairs=choice("pair", "Columns", options) if len(options) > 1 else "",
    )


def _by_bandwidth(model: Model) -> Section | None:
    """The error at every scale, for each size with a profile."""
    sizes = model.profiles.sizes
    if not len(sizes):
        return None
    shown = [profile_figure(model, int(np.abs(model.step_sizes - size).argmin())) for size in sizes]
    curves = f"{count(len(sizes), 'size')} {'has' if len(sizes) == 1 else 'have'} a curve"
    dashed = ""
    if any(each.finest is not None for each in shown):
        dashed = "The dashed line ends at the smallest bandwidth with an error within the tolerance, there and at all larger ones. "
    return Section(
        "fine",
        "Error by bandwidth",
        [
            error_by_bandwidth(profile_figure(model), model.n_samples),
            plot("fine", "Relative error by bandwidth, compared with random rows and the sampling error of the rows"),
            aside(
                "The error usually increases as the bandwidth decreases. The band is a simultaneous confidence interval at all "
                f"bandwidths. {dashed}{curves}. The figure shows the size nearest to the slider."
            ),
        ],
        {"profile": profile_data(shown, [model.profiles.nearest(int(size)) for size in model.step_sizes], model.mean.kernel)},
    )


def error_by_bandwidth(shown: ProfileFigure, n: int, kind: str = "") -> Markup:
    """The error at every scale as sentences. A script rewrites the first one."""
    return markup(
        '<p$kind><span id="fine-told">$error</span> $noise</p>',
        kind=markup(' class="$kind"', kind=kind) if kind else "",
        error=words.fine(shown),
        noise=words.noise(shown, n),
    )


def profile_data(shown: Sequence[ProfileFigure], steps: Sequence[int], kernel: Kernel) -> dict[str, Any]:
    """The error at every scale of several sizes, for scripts, and the size for each step of the slider."""
    return {
        "unit": "units of the columns" if getattr(kernel, "is_isotropic", True) else "units of the columns' scales",
        "bandwidths": shown[-1].bandwidths,
        "noise": shown[-1].noise,
        "confidence": shown[-1].confidence,
        "tol": shown[-1].tol,
        "steps": list(steps),
        "sizes": [vars(curve) | {"highest": curve.highest, "told": words.fine(curve)} for curve in shown],
    }


def _densities(model: Model) -> Section:
    """The densities over two columns, and the atoms. With one column, only the atoms."""
    portrait, pieces = model.portrait, f"{model.piece}s"
    components, many = isinstance(model.mean, ComponentMean), pieces.capitalize()
    data = {"pairs": portrait.pairs.tolist(), "joint": packed(portrait.joint)}
    if not len(portrait.pairs):
        bars = ", with a bar of one standard deviation" if components else ""
        blocks = [f"Each {model.piece} by value and weight{bars}.", plot("atoms", f"{many}, by value and weight")]
        return Section("atoms", f"The {pieces}", [*blocks, aside(name="drawn")], data)
    drawn = "as ellipses of one standard deviation" if components else "with areas proportional to weights"
    looks = "as ellipses" if components else "by weight"
    frames = [
        plot("full", "Density of all rows", "square", "All rows", small(name="full-shades")),
        plot("small", f"Density of the {pieces}", "square", many, small(name="small-shades")),
        plot("difference", f"Density of the {pieces} minus the density of all rows", "square", "Difference", small(name="largest")),
        plot("atoms", f"{many}, {drawn}, over the density of all rows", "square", f"The {pieces} {looks}"),
    ]
    text = markup(
        '<p>Joint densities of two columns. They are smoothed, so they extend beyond the rows. <span id="shades"></span></p>'
    )
    return Section("pairs", "Before and after", [text, grid(frames), aside(name="drawn")], data)


def _columns(model: Model) -> Section:
    """The densities along each column."""
    portrait, embedded = model.portrait, _embedded(model)
    drawn = [
        plot(
            f"marginal-{k}",
            f"Density of {name}, all rows against {model.piece}s",
            "small",
            named(name),
            markup("$width $off", width=small(f"bandwidth {significant(float(width))}"), off=small(name=f"off-{k}")),
        )
        for k, (name, width) in enumerate(zip(model.columns[:embedded], portrait.widths, strict=False))
    ]
    text = words.curves(model.piece, model.mean.kernel, len(portrait.bars) > 0)
    missing = embedded < len(model.columns)
    rest = f"Figures of the first {embedded} columns of {len(model.columns)}." if missing else ""
    data = {
        "marginals": packed(portrait.marginals[:embedded]),
        "bars": [bars[:, bars[1] > bars[0]].tolist() for bars in portrait.bars[:embedded]],  # ends and heights
    }
    return Section("marginals", "Columns", [text, pictures(drawn, rest)], data)


def _heaviest(model: Model) -> Section:
    """A table of the atoms or components with the largest weights. Components have standard deviations."""
    weights = np.asarray(model.mean.weights)
    order = np.argsort(-np.abs(weights), kind="stable")[:LISTED]
    titles = model.columns[:DRAWN_AT_ONCE]
    rows = [[f"{k + 1}", f"{weights[k]:.4g}", *(_position(model, k, column) for column in range(len(titles)))] for k in order]
    caption = f"The {len(order)} largest weights of {count(model.size, model.piece)}"
    shown = table([model.piece, "weight", *titles], rows, caption)
    return Section("table", f"{model.piece.capitalize()}s with the largest weights", [folded("As a table", shown)])


def _position(model: Model, piece: int, column: int) -> str:
    text = significant(float(model.mean.atoms[piece, column]), 5)
    if not isinstance(model.mean, ComponentMean):
        return text
    return f"{text} ± {significant(float(np.sqrt(model.mean.covariances[piece, column, column])), 2)}"
