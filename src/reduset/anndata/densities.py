"""density: the density of the cells in an embedding, like scanpy's embedding_density, for any number of cells, with its error.

    f(x) = (1/n) Σᵢ exp(−½ (x − xᵢ)ᵀ(h²C)⁻¹(x − xᵢ)),    C the covariance of the cells, h = n^(−1/6) (Scott's factor).

The result is f at each cell, scaled to [0, 1]. Up to `MAX_EXACT` cells the sum is computed exactly. For more cells, each cell is
divided linearly among the four nearest points of a lattice with a spacing of h/6 or less. A Gaussian filter smooths the weights of
these points, and cubic splines interpolate the result with an error of at most 1e-4 of the peak. O(n + lattice).

The error of the weighted lattice points against all n cells is measured by random frequencies in one pass, O(n). If the lattice
would be large, because the embedding is wide, f is compressed to a few atoms, which are summed at every cell. O(n·m).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates, spline_filter

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, Floats
from reduset.anndata.annotated import MADE_BY, check_annotated, check_free, labels_of, record_of, store, unknown_name
from reduset.anndata.representation import dense, rows_of, single
from reduset.compression import Run, compress_quietly
from reduset.kernels import Gaussian
from reduset.mean import KernelMean

DENSITY_MADE_BY = "reduset.anndata.density"
MAX_EXACT = 5000  # cells
MAX_ATOMS = 6000  # their weights take some ten seconds
POINTS_PER_BANDWIDTH = 6  # of the lattice, at a tolerance of 0.01 or more
REACH = 6.0  # bandwidths of the filter
SPLINE_ERROR = 1e-4  # of the peak: the largest error observed, which is added to the bound of every value
MARGIN = 12  # lattice points around all cells, which splines use
MAX_LATTICE_POINTS = 1 << 23
MIN_LATTICE_TOL = 1e-3  # below, splines and the lattice are not exact enough
ROWS = 1 << 20  # at a time
CONFIDENCE = 0.95


def density(
    adata: Any,
    basis: str = "umap",
    *,
    groupby: str | None = None,
    key_added: str | None = None,
    tol: float = 0.01,
    components: Any = None,
) -> None:
    """The density of the cells in two columns of an embedding, from 0 to 1, as ``scanpy.tl.embedding_density``.

    Parameters
    ----------
    adata : AnnData
    basis : str
        The embedding is ``obsm["X_" + basis]``.
    groupby : str, optional
        A column of obs. The density of each group is computed and scaled separately.
    key_added : str, optional
        The name of the result. The default is ``umap_density``, or ``umap_density_[groupby]`` for groups.
    tol : float
        The error of a density before scaling, relative to its norm in the kernel's space. It bounds the error of every value.
    components : str or two numbers, optional
        The columns, counted from 1. The default is "1,2". In diffmap the first column is not counted, as in scanpy.

    Returns
    -------
    None. These are written:

    obs[key_added] : float
        The density, from 0 to 1 in each group.
    uns[key_added + "_params"] : dict
        ``covariate`` and ``components`` are read by ``scanpy.pl.embedding_density``. ``relative_error``, ``interval`` and
        ``sup_error`` are the values of the worst group, and 0 if the density is exact. ``groups`` has them for each group.
        ``sup_error`` is the largest error of any value, relative to the peak.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from reduset.anndata import density
    >>> umap = np.random.default_rng(0).normal(size=(2000, 2))
    >>> adata = anndata.AnnData(obs=pd.DataFrame(index=[f"cell{i}" for i in range(2000)]), obsm={"X_umap": umap})
    >>> density(adata)
    >>> float(adata.obs["umap_density"].max()), float(adata.uns["umap_density_params"]["relative_error"])
    (1.0, 0.0)
    """
    check_annotated(adata)
    tol = _validate.positive(tol, "tol", "it is a relative error, 0.01 for one percent")
    name = "draw_graph_fa" if str(basis).lower() == "fa" else str(basis).lower()
    target = key_added or (f"{name}_density" if groupby is None else f"{name}_density_{groupby}")
    params = f"{target}_params"
    if not _is_density(adata, params):
        check_free(adata, [target], "choose another key_added")
    points, numbers = _coordinates(adata, name, components)
    labels = np.zeros(adata.n_obs, np.int64) if groupby is None else labels_of(adata, groupby, "groupby")
    groups = []
    for label in np.unique(labels):  # every group is checked before the first density is computed
        rows = slice(None) if groupby is None else np.flatnonzero(labels == label)
        title = f"obsm['X_{name}']" if groupby is None else f"obsm['X_{name}'] of {label}"
        groups.append((rows, title, _mean_of(points[rows], title)))
    values, facts = np.empty(adata.n_obs), []
    for rows, title, mean in groups:
        values[rows], group_facts = embedding_density(mean, points[rows], tol, title)
        facts.append(group_facts)
    written: dict[str, Any] = {"covariate": groupby, "components": numbers, MADE_BY: DENSITY_MADE_BY, "tol": tol}
    written["confidence"] = CONFIDENCE
    written |= max(facts, key=lambda group: group["interval"][1])
    if groupby is not None:
        columns = {key: np.array([group[key] for group in facts]) for key in facts[0]}
        written["groups"] = {"name": np.unique(labels).astype(str).astype(object), **columns}
    store(adata, {target: values}, {params: written})


def _is_density(adata: Any, params: str) -> bool:
    """Whether an earlier call of this function or of scanpy wrote a density. Both use the same keys."""
    record = adata.uns.get(params)
    return record_of(adata, params, DENSITY_MADE_BY) is not None or (
        hasattr(record, "keys") and {"covariate", "components"} <= set(record)
    )


def _coordinates(adata: Any, basis: str, components: Any) -> tuple[NDArray[np.float32], list[int]]:
    """(n, 2) the two columns, and their numbers as scanpy's plots need them."""
    key = f"X_{basis}"
    if key not in adata.obsm:
        names = [name.removeprefix("X_") for name in adata.obsm if name.startswith("X_")]
        raise ValueError(unknown_name("basis", basis, "the embeddings in obsm, without X_", names) + "; compute it first")
    given = components.split(",") if isinstance(components, str) else [1, 2] if components is None else list(components)
    first = 1 if basis == "diffmap" else 0  # its first column is constant
    width, rows = rows_of(adata, key)
    try:
        numbers = [int(number) for number in given]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != 2 or not all(1 <= number <= width - first for number in numbers):
        raise ValueError(f"components must be two numbers from 1 to {width - first}, columns of obsm[{key!r}]; got {components!r}")
    columns = [number - 1 + first for number in numbers]
    return single(adata, lambda a, b: dense(rows(a, b))[:, columns], 2, f"obsm[{key!r}]"), numbers


def _mean_of(points: Floats, name: str) -> KernelMean:
    """The kernel mean of all cells, with the bandwidth and covariance of scipy's gaussian_kde."""
    n = len(points)
    centre = points.mean(axis=0, dtype=np.float64)
    scatter = np.zeros((2, 2))
    for a in range(0, n, ROWS):
        block = points[a : a + ROWS] - centre
        scatter += block.T @ block
    covariance = scatter / max(n - 1, 1)
    if n < 3 or np.linalg.matrix_rank(covariance) < 2:
        raise ValueError(
            f"{name} must have at least 3 cells that do not lie on one line, because a density needs their covariance; got {n:,}. "
            "Omit them, or join small groups"
        )
    return KernelMean.from_samples(points, Gaussian(n ** (-1 / 6), covariance=covariance))


def embedding_density(mean: KernelMean, points: Floats, tol: float, name: str) -> tuple[Array, dict[str, Any]]:
    """(n,) the density at the cells, scaled to [0, 1], and its facts: error, interval, largest error, size and n."""
    size, error, interval, spline_error = mean.size, 0.0, np.zeros(2), 0.0
    if mean.size <= MAX_EXACT:
        values = mean(points)
    else:
        lattice = _Lattice.of(mean, tol)
        if lattice is None:
            limit = min(MAX_ATOMS, mean.size)
            compressed = compress_quietly(mean, tol=tol, max_size=limit, select="kcenter", weights="free", rng=0)
            small = cast(KernelMean, compressed.mean)
            values = np.maximum(small(points), 0.0)
        else:
            weights = lattice.weights(points)
            small = KernelMean.from_samples(lattice.coordinates(weights), mean.kernel, weights[weights > 0])
            values, spline_error = np.maximum(lattice.smoothed(weights, points), 0.0), SPLINE_ERROR
        size = small.size
        scales: Any = Run(np.random.default_rng(0), CONFIDENCE).target(mean).scales(size)
        profile = scales.profile(small, np.array([cast(Gaussian, mean.kernel).width]), CONFIDENCE, size)
        error, interval = float(profile.relative_errors[0]), np.array(profile.intervals[0])
        if error > tol:
            warn(f"tol={tol:g} was not reached: the relative error of the density of {name} is {error:.2g}")
    low, high = float(values.min()), float(values.max())
    norm = float(np.sqrt(values.mean()))  # of f in the kernel's space, since ‖f‖² = (1/n) Σ f(xᵢ)
    return np.clip((values - low) / (high - low), 0, 1) if high > low else np.ones(len(values)), {
        "relative_error": error,
        "interval": interval,
        "sup_error": float(interval[1]) * norm / high + spline_error,
        "size": size,
        "n": len(values),
    }


@dataclass(frozen=True)
class _Lattice:
    """The integer points of coordinates z = (x − centre) @ transform − low, in which the kernel is isotropic."""

    centre: Array
    transform: Array
    low: Array
    shape: tuple[int, int]
    bandwidth: float  # in coordinates z

    @classmethod
    def of(cls, mean: KernelMean, tol: float) -> _Lattice | None:
        """The lattice of a kernel mean; None if it would be large, or if its error would exceed the tolerance."""
        kernel = cast(Gaussian, mean.kernel)
        bandwidth = POINTS_PER_BANDWIDTH * max(1.0, float(np.sqrt(0.01 / tol)))
        transform = np.asarray(np.linalg.inv(np.linalg.cholesky(kernel.covariance) * kernel.width / bandwidth).T, np.float64)
        lattice = cls(np.asarray(mean.atoms[0], np.float64), transform, np.zeros(2), (0, 0), bandwidth)
        ends = np.array([[block.min(axis=0), block.max(axis=0)] for block in lattice.positions(mean.atoms)])
        low, high = ends[:, 0].min(axis=0) - MARGIN, ends[:, 1].max(axis=0) + MARGIN
        rows, columns = np.floor(high - low) + 2
        if tol < MIN_LATTICE_TOL or rows * columns > MAX_LATTICE_POINTS:
            return None
        return replace(lattice, low=low, shape=(int(rows), int(columns)))

    def positions(self, points: Floats) -> Iterator[Array]:
        """Coordinates z of points, block by block."""
        for a in range(0, len(points), ROWS):
            yield (points[a : a + ROWS] - self.centre) @ self.transform - self.low

    def weights(self, points: Floats) -> Array:
        """The number of cells at each lattice point. A cell is divided linearly among the four points around it."""
        sums = np.zeros(self.shape[0] * self.shape[1])
        for positions in self.positions(points):
            first = positions.astype(np.int64)
            upper = positions - first
            codes = first[:, 0] * self.shape[1] + first[:, 1]
            for i, j in product((0, 1), repeat=2):
                proportions = np.abs(1 - i - upper[:, 0]) * np.abs(1 - j - upper[:, 1])
                sums += np.bincount(codes + i * self.shape[1] + j, proportions, len(sums))
        return sums.reshape(self.shape)

    def coordinates(self, weights: Array) -> Array:
        """The lattice points with a weight, in the coordinates of the cells."""
        return (np.argwhere(weights > 0) + self.low) @ np.linalg.inv(self.transform) + self.centre

    def smoothed(self, weights: Array, points: Floats) -> Array:
        """The mean of the kernel functions at all lattice points, at the given points."""
        peak = 2 * np.pi * self.bandwidth**2 / len(points)  # of the filter, whose weights sum to 1
        spline = spline_filter(peak * gaussian_filter(weights, self.bandwidth, mode="constant", truncate=REACH))
        values = [map_coordinates(spline, z.T, prefilter=False, mode="nearest") for z in self.positions(points)]
        return np.concatenate(values)
