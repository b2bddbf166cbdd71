"""The report of a compression, from its model alone.

The page redraws the densities of every step itself, from the atoms and the weights of the step: Σ w N(s; x, h²) N(t; y, h²) on the
portrait's grids, as `MarginalDensities.joint_of` has it; of components, with the covariance of each added to that. Atoms travel in
single precision, measured from the middle of their grid, so that a column of large numbers loses no digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _archive
from reduset._types import Array
from reduset.certificate.certificate import at_bandwidth
from reduset.mixture import ComponentMean
from reduset.mixture.pieces import own_covariance
from reduset.model import Model
from reduset.report import words
from reduset.report.figures import ROUNDING, PathFigure, ProfileFigure, is_whitened, path_figure, profile_figure, wide_columns
from reduset.report.page import Markup, cards, file, joined, markup, named, names, origin, packed, pairs, table, write
from reduset.report.words import count

MOST_VALUES = 200_000  # of atoms in the file: what keeps it under 6 MB
LISTED = 20  # atoms in the table
LISTED_COLUMNS = 12
NAMED = 18  # letters of a name in the box of pairs


def write_compression(path: _archive.Path_, model: Model) -> None:
    """Write the report of a compression: one HTML file that opens offline.

    Parameters
    ----------
    path : where to, usually with the ending .html
    model : Model, of `Model.of` or `Model.load`
    """
    if not isinstance(model, Model):
        raise TypeError(f"model must be a Model, got {type(model).__name__}; make one by Model.of(full, small)")
    drawn = path_figure(model)
    title = f"{count(model.n_samples, 'row')} → {count(model.size, model.piece)}"
    write(path, title, _body(model, drawn), contents(model, drawn), ["common.js", "densities.js", "profile.js", "compression.js"])


def contents(model: Model, path: PathFigure) -> dict[str, Any]:
    """What the scripts of the page read."""
    portrait = model.portrait
    embedded = _embedded(model)
    middles = portrait.grids[:embedded].mean(axis=1)
    return {
        "columns": list(model.columns[:embedded]),
        "piece": model.piece,
        "path": {
            "sizes": path.sizes.tolist(),
            "errors": finite(path.errors),
            "randomSizes": None if path.random_sizes is None else finite(path.random_sizes),
            "randomErrors": None if path.random_errors is None else finite(path.random_errors),
            "size": path.size,
            "error": finite(path.error),
            "interval": finite(np.array(path.interval)),
            "bound": None if path.bound is None else finite(path.bound),
            "at": at_bandwidth(path.bandwidth),
        },
        "steps": {
            "sizes": model.step_sizes.tolist(),
            "errors": finite(np.array([model.error_at(k) for k in range(len(model.step_sizes))])),
            "weights": packed(
                np.concatenate([row[:size] for row, size in zip(model.step_weights, model.step_sizes, strict=True)]), "f8"
            ),
        },
        "profile": _profile(model),
        "middles": middles.tolist(),
        "atoms": packed((np.asarray(model.mean.atoms[:, :embedded], np.float64) - middles).T),  # by columns
        "laws": _laws(model, embedded),
        "axes": _axes(portrait.grids[:embedded], portrait.widths, middles),
        "marginals": packed(portrait.marginals[:embedded]),
        "bars": [_histogram(each) for each in portrait.bars[:embedded]],
        "pairAxes": _axes(portrait.pair_grids, portrait.pair_widths, middles),
        "pairs": portrait.pairs.tolist(),
        "joint": packed(portrait.joint),
    }


def _laws(model: Model, embedded: int) -> dict[str, Any] | None:
    """The covariances of components without the kernel's bump, and that bump, in units of the bumps along the columns.

    Variances of each column, covariances of each pair; None for atoms. In double precision: in single, the covariance of a long and
    thin one could not be inverted.
    """
    if not isinstance(model.mean, ComponentMean):
        return None
    portrait, laws = model.portrait, model.mean.pieces.spreads
    bump = own_covariance(model.mean.kernel, model.mean.dimension)
    widths, (first, second) = portrait.widths[:embedded], portrait.pairs.T
    scale, crossed = np.square(widths), portrait.widths[first] * portrait.widths[second]
    return {
        "variances": packed((laws.diagonal(axis1=1, axis2=2)[:, :embedded] / scale).T, "f8"),
        "crossed": packed((laws[:, first, second] / crossed).T, "f8"),
        "bump": (np.diag(bump)[:embedded] / scale).tolist(),
        "bumpCrossed": (bump[first, second] / crossed).tolist(),
    }


def _profile(model: Model) -> dict[str, Any] | None:
    """The error at every scale of each size of which it is known, and which of them each step shows; None where there is none."""
    if not len(model.profiles.sizes):
        return None
    shown = [profile_figure(model, int(np.abs(model.step_sizes - size).argmin())) for size in model.profiles.sizes]
    return {
        "bandwidths": finite(shown[-1].bandwidths),
        "noise": finite(shown[-1].noise),
        "confidence": shown[-1].confidence,
        "tol": shown[-1].tol,
        "steps": [model.profiles.nearest(int(size)) for size in model.step_sizes],
        "sizes": [profile_of_size(each) for each in shown],
    }


def profile_of_size(shown: ProfileFigure) -> dict[str, Any]:
    """The error at every scale of one size, as the scripts read it."""
    return {
        "size": shown.size,
        "errors": finite(shown.errors),
        "low": finite(shown.low),
        "high": finite(shown.high),
        "randomRows": finite(shown.random_rows),
        "finest": shown.finest,
        "own": None if shown.own is None else finite(np.array(shown.own)),
        "highest": shown.highest,
        "told": words.fine(shown),
    }


def _histogram(bars: Array) -> list[list[float]]:
    """Where the bars of a column begin and end, and their heights."""
    return bars[:, bars[1] > bars[0]].tolist()


def _embedded(model: Model) -> int:
    """How many columns the file has the atoms of: fewer where there are very many atoms."""
    portrait = model.portrait
    return min(len(portrait.grids), max(len(portrait.pair_grids), MOST_VALUES // model.size))


def finite(values: Any) -> Any:
    """As JSON has them: None for what is not finite."""
    listed = np.asarray(values, np.float64)
    found = listed.astype(object)
    found[~np.isfinite(listed)] = None
    return found.tolist()


def _axes(grids: Array, widths: Array, middles: Array) -> list[list[float]]:
    """First and last place of each grid, from its middle, how many there are, and the width of the bumps."""
    ends = zip(grids[:, 0] - middles[: len(grids)], grids[:, -1] - middles[: len(grids)], widths, strict=False)
    return [[float(low), float(high), grids.shape[1], float(width)] for low, high, width in ends]


def _body(model: Model, path: PathFigure) -> Markup:
    sources = model.about.get("sources") or []
    columns, piece, laws = model.columns, model.piece, isinstance(model.mean, ComponentMean)
    many = f"{len(columns)} columns" if len(columns) > 1 else "One column"
    vain = path.bound is None or path.bound >= 1
    shown = [
        words.kept(model.n_samples, model.size, piece),
        words.lost(model.certificate, piece=piece, near=model.near_median),
        words.finest(model.resolved, model.size) if vain and model.resolved is not None else words.promised(path),
        words.random_rows(path, model.n_samples, model.total is None),
    ]
    told, at = {"Kernel": repr(model.mean.kernel), "Columns": columns}, at_bandwidth(path.bandwidth)
    return markup(
        file("compression.html"),
        n=count(model.n_samples),
        rows="row" if model.n_samples == 1 else "rows",
        m=count(model.size),
        atoms=piece if model.size == 1 else f"{piece}s",
        pieces=f"{piece}s",
        many=f"{piece}s".capitalize(),
        sources=words.plain(sources) if sources else "",
        columns=markup("$many: $names", many=many, names=names(columns)),
        cards=cards(shown),
        triangle=", the triangle what was certain before measuring" if (path.bound or 1) < 1 else "",
        error=words.error(model.certificate, piece=piece),
        wide=_wide(model),
        certificate=pairs(words.figures_of(model.certificate)),
        last=len(model.step_sizes) - 1,
        told=f"{count(model.size, piece)}, error {words.percent(path.error if path.error >= ROUNDING else 0.0)}{at}",
        at=at,
        pairs=_pair_box(model),
        fine=_fine_section(model),
        densities=_density_section(model),
        drawn=words.curves(model.piece, len(model.portrait.bars) > 0),
        meaning=words.densities(model.mean.kernel),
        marginals=_marginals(model),
        table=_heaviest(model),
        origin=origin({"components" if laws and name == "selection" else name: each for name, each in model.about.items()}, told),
    )


def _wide(model: Model) -> Markup:
    text = words.wide(wide_columns(model), len(model.columns), is_whitened(model))
    return markup('<p class="notice">$text</p>', text=text) if text else Markup("")


def _pair_box(model: Model) -> Markup:
    if len(model.portrait.pairs) < 2:
        return Markup("")
    option = '<option value="$value" title="$full">$short</option>'

    def both(pair: Any, most: int | None = None) -> str:
        return " × ".join(words.shortened(model.columns[k], most or len(model.columns[k])) for k in pair)

    pairs_of = enumerate(model.portrait.pairs)
    options = joined(markup(option, value=k, short=both(pair, NAMED), full=both(pair)) for k, pair in pairs_of)
    return markup('<label class="choice"><span>Columns</span><select id="pair">$options</select></label>', options=options)


def _fine_section(model: Model) -> Markup:
    """The error at every scale, where it is known."""
    if not len(model.profiles.sizes):
        return Markup("")
    shown = profile_figure(model)
    many = len(model.profiles.sizes)
    sizes = f"{count(many, 'size')} {'has' if many == 1 else 'have'}"
    return markup(file("fine.html"), told=words.fine(shown), noise=words.noise(shown, model.n_samples), sizes=sizes)


def _density_section(model: Model) -> Markup:
    laws = isinstance(model.mean, ComponentMean)
    return markup(
        file("pairs.html") if len(model.portrait.pairs) else file("one-column.html"),
        pieces=f"{model.piece}s",
        many=f"{model.piece}s".capitalize(),
        looks="as ellipses" if laws else "by weight",
        drawn="as ellipses of one standard deviation" if laws else "their areas as their weights",
        bars=", a bar of one standard deviation to either side" if laws else "",
    )


def _marginals(model: Model) -> Markup:
    """A place for each column; beyond the first dozen they are drawn when they are asked for."""
    embedded = _embedded(model)
    place = (
        '<figure><figcaption>$short <span class="aside">smoothed at $width</span> '
        '<span class="aside" id="off-$k"></span></figcaption>'
        '<div class="plot small" id="marginal-$k" role="img" '
        'aria-label="Density of $name, all rows against $pieces"></div></figure>'
    )
    places = [
        markup(place, k=k, name=name, short=named(name), pieces=f"{model.piece}s", width=words.figures(float(width)))
        for k, (name, width) in enumerate(zip(model.columns[:embedded], model.portrait.widths, strict=False))
    ]
    first, rest = joined(places[:LISTED_COLUMNS]), joined(places[LISTED_COLUMNS:])
    parts = [markup('<div class="grid three">$first</div>', first=first)]
    if rest:
        fold = '<details id="more"><summary>$count more columns</summary><div class="grid three">$rest</div></details>'
        parts.append(markup(fold, count=len(places) - LISTED_COLUMNS, rest=rest))
    if embedded < len(model.columns):
        parts.append(
            markup('<p class="aside">Pictures of the first $count columns of $all.</p>', count=embedded, all=len(model.columns))
        )
    return joined(parts)


def _heaviest(model: Model) -> Markup:
    """The heaviest pieces as a table, components with their standard deviations: for those who read rather than look."""
    weights = np.asarray(model.mean.weights)
    order = np.argsort(-np.abs(weights), kind="stable")[:LISTED]
    titles = model.columns[:LISTED_COLUMNS]
    rows = [[f"{k + 1}", f"{weights[k]:.4g}", *(_place(model, k, column) for column in range(len(titles)))] for k in order]
    return table([model.piece, "weight", *titles], rows, f"The {len(order)} heaviest of {count(model.size, model.piece)}")


def _place(model: Model, which: int, column: int) -> str:
    place = f"{model.mean.atoms[which, column]:.5g}"
    if not isinstance(model.mean, ComponentMean):
        return place
    return f"{place} ± {np.sqrt(model.mean.covariances[which, column, column]):.2g}"
