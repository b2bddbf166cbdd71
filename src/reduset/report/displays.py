"""Displays of a compression for matplotlib, in the style of scikit-learn. They draw the numbers of `figures`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from reduset._describe import significant
from reduset._drawing import axes, ellipses
from reduset._messages import did_you_mean
from reduset._types import Array
from reduset.certificate import at_bandwidth
from reduset.compression import Compression
from reduset.mean import KernelMean
from reduset.mixture import SmallMean
from reduset.model import MarginalDensities, Model, column_names
from reduset.report.figures import (
    AtomsFigure,
    DensityFigure,
    PathFigure,
    ProfileFigure,
    atoms_figure,
    density_figure,
    path_figure,
    profile_figure,
)

ACCENT, QUIET, SHADE = "#b23a22", "#5d646c", "#dcdfe3"
LARGEST_AREA = 160.0  # area of the marker of the largest weight, in points²
LINE_OPACITY, FILL_OPACITY = 0.25, 0.3  # line opacity of the smallest weight, and fill opacity of the largest
KINDS = ("full", "small", "difference")


class MatplotlibDisplay:
    """Base class of the displays. After drawing, they have ``ax_`` and ``figure_``."""

    ax_: Any
    figure_: Any

    def _on(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _check(kind: str, kinds: Sequence[str]) -> None:
        if kind not in kinds:
            raise ValueError(f"kind must be one of {', '.join(map(repr, kinds))}; got {kind!r}{did_you_mean(kind, kinds)}")


@dataclass(eq=False, repr=False)
class PathDisplay(MatplotlibDisplay):
    """Error by size, compared with random rows.

    Parameters
    ----------
    figure : PathFigure

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, KernelMean, compress
    >>> from reduset.report import PathDisplay
    >>> mean = KernelMean.from_samples(np.random.default_rng(0).normal(size=(500, 2)), Gaussian(1.0))
    >>> display = PathDisplay.from_compression(compress(mean, size=20, rng=0))
    >>> len(display.figure.sizes)
    20
    """

    figure: PathFigure

    @classmethod
    def from_model(cls, model: Model | Compression) -> Self:
        """The display of a model, or of a compression without a comparison with random rows."""
        return cls(path_figure(model))

    from_compression = from_model

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw it on ``ax`` or new axes; ``kw`` are options of ``Axes.plot`` for the line of the atoms."""
        ax, path = axes(ax), self.figure
        if path.random_sizes is not None:
            ax.plot(path.random_sizes, path.random_errors, color=QUIET, linestyle=":", label="random rows")
        ax.plot(path.sizes, path.errors, **{"color": ACCENT, "label": f"{path.piece}s"} | kw)
        low, high = path.interval
        ends = [[path.error - low], [high - path.error]]
        ax.errorbar([path.size], [path.error], ends, color=ACCENT, fmt="o", capsize=4, label="measured")
        if path.bound is not None and path.bound < 1:
            ax.plot([path.size], [path.bound], "v", color="black", label="a-priori bound")
        ax.set(xscale="log", yscale="log", xlabel=f"{path.piece}s, or rows", ylabel=f"relative error{at_bandwidth(path.bandwidth)}")
        ax.legend()
        return self._on(ax)


@dataclass(eq=False, repr=False)
class ProfileDisplay(MatplotlibDisplay):
    """Error by bandwidth, compared with random rows and with the sampling error of the rows.

    Parameters
    ----------
    figure : ProfileFigure

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import compress
    >>> from reduset.report import ProfileDisplay
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> display = ProfileDisplay.from_compression(compress(X, size=20, tol=0.1, rng=0))
    >>> display.figure.tol
    0.1
    """

    figure: ProfileFigure

    @classmethod
    def from_model(cls, model: Model | Compression, step: int = -1) -> Self:
        """The display of a compression, or of a model for the size with a profile nearest to a ``step`` of ``model.step_sizes``."""
        return cls(profile_figure(model, step))

    from_compression = from_model

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw it on ``ax`` or new axes; ``kw`` are options of ``Axes.plot`` for the line of the atoms."""
        ax, shown = axes(ax), self.figure
        x = shown.bandwidths
        if not np.isnan(shown.noise).all():
            ax.plot(x, shown.noise, color=QUIET, linestyle="-.", linewidth=1, label="sampling error of the rows")
        if not np.isnan(shown.random_rows).all():
            ax.plot(x, shown.random_rows, color=QUIET, linestyle=":", label=f"{shown.size:,} random rows")
        band = f"{shown.confidence:.0%} simultaneous confidence interval"
        line = ax.plot(x, shown.errors, **{"color": ACCENT, "label": f"{shown.size:,} {shown.piece}s"} | kw)[0]
        ax.fill_between(x, shown.low, shown.high, color=line.get_color(), alpha=0.2, linewidth=0, label=band)
        if shown.finest is not None:
            ax.plot(
                [shown.bandwidths[0], shown.finest, shown.finest],
                [shown.tol, shown.tol, 0.0],
                color="black",
                linestyle="--",
                linewidth=1,
                label=f"at most {100 * shown.tol:.3g} % from bandwidth {significant(shown.finest)} on",
            )
        if shown.own is not None:
            ax.plot(*([value] for value in shown.own), "o", color=line.get_color(), label="at the bandwidth of the kernel")
        ax.set(xscale="log", yscale="log", xlabel="bandwidth", ylabel="relative error")
        ax.set_ylim(top=1.3 * shown.highest)
        ax.legend()
        return self._on(ax)


@dataclass(eq=False, repr=False)
class DensityDisplay(MatplotlibDisplay):
    """The density of all rows and of the atoms or components, along one column or over two.

    Parameters
    ----------
    figure : DensityFigure
    """

    figure: DensityFigure

    @classmethod
    def from_model(cls, model: Model, columns: Any, step: int = -1) -> Self:
        """The display of one or two ``columns`` of a model, by name or position, at a ``step`` of ``model.step_sizes``."""
        return cls(density_figure(model.portrait, model.at(step), model.columns, positions(columns, model.columns)))

    @classmethod
    def from_means(cls, full: KernelMean, small: SmallMean | Compression, columns: Any, names: Sequence[str] | None = None) -> Self:
        """The display of a mean and its compression. It makes passes over all points of ``full``."""
        titles = column_names(names, full.dimension, "names")
        mean = small.mean if isinstance(small, Compression) else small
        return cls(density_figure(MarginalDensities.of(full), mean, titles, positions(columns, titles)))

    def plot(self, ax: Any = None, kind: str = "small", **kw: Any) -> Self:
        """Draw it on ``ax`` or new axes.

        Parameters
        ----------
        ax : matplotlib axes, optional
        kind : "full", "small" or "difference", for two columns
            Along one column, both densities are drawn.
        **kw : options of ``Axes.plot`` for the line of the atoms, for two columns of ``Axes.pcolormesh``
        """
        self._check(kind, KINDS)
        ax, shown = axes(ax), self.figure
        ax.set_xlabel(shown.names[0])
        if len(shown.grids) == 1:
            ax.fill_between(shown.grids[0], shown.full, color=SHADE, label="all rows")
            ax.plot(shown.grids[0], shown.small, **{"color": ACCENT, "label": f"{shown.piece}s"} | kw)
            ax.set_ylabel("density")
            ax.legend()
            return self._on(ax)
        values = getattr(shown, kind)
        limit = float(np.abs(shown.difference if kind == "difference" else shown.full).max())
        style = (
            {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
            if kind == "difference" or shown.signed
            else {"cmap": "Blues", "vmin": 0.0, "vmax": limit}
        )
        mesh = ax.pcolormesh(*shown.grids, values.T, **style | {"shading": "gouraud"} | kw)
        ax.figure.colorbar(mesh, ax=ax)
        ax.set_ylabel(shown.names[1])
        return self._on(ax)


@dataclass(eq=False, repr=False)
class AtomsDisplay(MatplotlibDisplay):
    """Atoms over two columns, or over one column by value and weight. Areas are proportional to weights.

    Negative weights are rings. Components are ellipses of one standard deviation, with an opacity by weight. Over one column, they
    are bars of one standard deviation.

    Parameters
    ----------
    figure : AtomsFigure
    """

    figure: AtomsFigure

    @classmethod
    def from_model(cls, model: Model, columns: Any = (0, 1), step: int = -1) -> Self:
        """The display of ``columns`` of a model, by name or position, at a ``step`` of ``model.step_sizes``."""
        return cls(atoms_figure(model.at(step), model.columns, positions(columns, model.columns)))

    @classmethod
    def from_mean(cls, mean: SmallMean | Compression, columns: Any = (0, 1), names: Sequence[str] | None = None) -> Self:
        """The display of a mean or a compression."""
        small = mean.mean if isinstance(mean, Compression) else mean
        titles = column_names(names, small.dimension, "names")
        return cls(atoms_figure(small, titles, positions(columns, titles)))

    def plot(self, ax: Any = None, **kw: Any) -> Self:
        """Draw it on ``ax`` or new axes; ``kw`` are options of ``Axes.scatter``, for components of ``EllipseCollection``."""
        ax, shown = axes(ax), self.figure
        if shown.covariances is not None and len(shown.names) > 1:
            return self._ellipses(ax, shown.covariances, kw)
        x = shown.places[:, 0]
        y = shown.places[:, 1] if shown.places.shape[1] > 1 else shown.weights
        colour = kw.pop("color", ACCENT)
        if shown.covariances is not None:
            ax.errorbar(x, y, xerr=np.sqrt(shown.covariances[:, 0, 0]), fmt="none", ecolor=colour, elinewidth=0.8, alpha=0.6)
        for chosen, style in (
            (shown.weights >= 0, {"color": colour, "alpha": 0.6, "linewidths": 0.0}),
            (shown.weights < 0, {"facecolors": "none", "edgecolors": colour}),
        ):
            ax.scatter(x[chosen], y[chosen], **{"s": np.maximum(LARGEST_AREA * shown.areas[chosen], 2.0)} | style | kw)
        ax.set(xlabel=shown.names[0], ylabel=shown.names[1] if len(shown.names) > 1 else "weight")
        return self._on(ax)

    def _ellipses(self, ax: Any, covariances: Array, kw: dict[str, Any]) -> Self:
        EllipseCollection, to_rgba = ellipses()
        shown = self.figure
        values, vectors = np.linalg.eigh(covariances)
        axis = vectors[:, :, 1]  # the longer axis
        turned = np.degrees(np.arctan2(axis[:, 1], axis[:, 0]))
        shades = np.tile(to_rgba(kw.pop("color", ACCENT)), (len(values), 1))
        edges, faces = shades.copy(), shades.copy()
        edges[:, 3], faces[:, 3] = LINE_OPACITY + (1 - LINE_OPACITY) * np.sqrt(shown.areas), FILL_OPACITY * np.sqrt(shown.areas)
        style = {"facecolors": faces, "edgecolors": edges, "linewidths": 1.2, "linestyles": np.where(shown.weights < 0, "--", "-")}
        long, short = 2 * np.sqrt(values[:, 1]), 2 * np.sqrt(values[:, 0])
        drawn = EllipseCollection(
            long, short, turned, units="xy", offsets=shown.places, offset_transform=ax.transData, **style | kw
        )
        ax.add_collection(drawn)
        reach = np.sqrt(covariances.diagonal(axis1=1, axis2=2))
        ax.update_datalim(np.concatenate([shown.places - reach, shown.places + reach]))
        ax.autoscale_view()
        ax.set(xlabel=shown.names[0], ylabel=shown.names[1])
        return self._on(ax)


def positions(columns: Any, names: Sequence[str]) -> list[int]:
    """One or two different columns, by name or position, as positions."""
    requested = [columns] if isinstance(columns, (str, int, np.integer)) else list(columns)
    numbers: list[int] = []
    for column in requested:
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"columns must be among {', '.join(map(repr, names[:12]))}; got {column!r}")
            numbers.append(list(names).index(column))
        elif isinstance(column, (int, np.integer)) and 0 <= column < len(names):
            numbers.append(int(column))
        else:
            raise ValueError(f"columns must be names, or positions from 0 to {len(names) - 1}; got {column!r}")
    if len(numbers) not in (1, 2) or len(set(numbers)) != len(numbers):
        raise ValueError(f"columns must be one column, or two different columns; got {columns!r}")
    return numbers
