"""density: how densely cells lie in an embedding, as scanpy's embedding_density tells it, for any number of cells, with its error.

    f(x) = (1/n) Σᵢ exp(−½ (x − xᵢ)ᵀ(h²C)⁻¹(x − xᵢ)),    C the covariance of the cells, h = n^(−1/6) (Scott's factor),

at each cell, scaled to [0, 1]. Up to `EXACT` cells by the sum itself. Beyond, f is compressed to few atoms, whose error is measured
against all cells:

1. cells within a quarter of a bandwidth or less become one weighted point each, their mean: O(n);
2. these are compressed within the tolerance: O(bins·m);
3. the error of the m atoms is measured against all n cells, by waves, in one pass: O(n), so that the first step is in it too;
4. the atoms are summed on a lattice and read off by cubic splines, within 1e-4 of the peak at a spacing of h/6: O(lattice·m + n).

Where the embedding is so far spread that a lattice would be large, steps 1 and 4 are left out, which costs O(n·m).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates, spline_filter

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, Floats
from reduset.anndata.annotated import MADE_BY, check_annotated, check_free, labels_of, missing_from, put, record_of
from reduset.anndata.representation import check_finite, single
from reduset.compression.compressing import compress_quietly
from reduset.compression.target import Run
from reduset.kernels import Gaussian
from reduset.mean import KernelMean

OURS = "reduset.anndata.density"
EXACT = 5000  # cells, whose n² bumps take a moment
WITHIN = 0.9  # of the tolerance is what the atoms may lose, which leaves room for the bins
MOST_ATOMS = 6000  # whose weights take some ten seconds; most densities take fewer
COARSEST = 0.25  # bandwidths, of bins at a tolerance of 0.01 or more
SPACING = 1 / 6  # bandwidths, of the lattice
SPLINES = 1e-4  # of the peak is the most that they were seen to be off; it is added to the bound of every value
MARGIN = 12  # lattice points around all cells, which splines look at
MOST_POINTS = 1 << 23  # of a lattice
MOST_PAIRS = 3e10  # of its points and bins, which are summed themselves where no few atoms do: half a minute
FINEST_TOL = 1e-3  # below, splines and bins are not near enough
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
    """How densely cells lie in two columns of an embedding, from 0 to 1, as ``scanpy.tl.embedding_density`` has it.

    Parameters
    ----------
    adata : AnnData
    basis : str
        The embedding is ``obsm["X_" + basis]``.
    groupby : str, optional
        A column of obs: each group has a density of its own, which is scaled by itself.
    key_added : str, optional
        What the result is called; ``umap_density`` or ``umap_density_[groupby]`` if not given.
    tol : float
        The error of a density before it is scaled, relative to its norm (that of the kernel's space, which bounds every value).
    components : str or two numbers, optional
        Which columns, counted from 1: "1,2" if not given; of diffmap those after the first, as scanpy counts.

    Returns
    -------
    None. Written are

    obs[key_added] : float, from 0 to 1 in each group
    uns[key_added + "_params"] : dict
        covariate and components, which ``scanpy.pl.embedding_density`` reads; and relative_error, interval and sup_error (the
        largest error of any value, as a share of the peak), of the worst group, or of each in ``groups``; 0 where it is exact.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from reduset.anndata import density
    >>> places = np.random.default_rng(0).normal(size=(2000, 2))
    >>> adata = anndata.AnnData(obs=pd.DataFrame(index=[f"cell{i}" for i in range(2000)]), obsm={"X_umap": places})
    >>> density(adata)
    >>> float(adata.obs["umap_density"].max()), float(adata.uns["umap_density_params"]["relative_error"])
    (1.0, 0.0)
    """
    check_annotated(adata)
    tol = _validate.positive(tol, "tol", "it is a share, 0.01 for one percent")
    name = "draw_graph_fa" if str(basis).lower() == "fa" else str(basis).lower()
    target = key_added or (f"{name}_density" if groupby is None else f"{name}_density_{groupby}")
    params = f"{target}_params"
    check_free(adata, [target], _is_density(adata, params), "choose another key_added")
    places, counted = _coordinates(adata, name, components)
    labels = np.zeros(adata.n_obs, np.int64) if groupby is None else labels_of(adata, groupby, "groupby")
    values, found, means = np.empty(adata.n_obs), {}, {}
    for label in np.unique(labels):  # all before the first density, for one that is too small would be found late
        own = slice(None) if groupby is None else np.flatnonzero(labels == label)
        title = f"obsm['X_{name}']" if groupby is None else f"obsm['X_{name}'] of {label}"
        means[str(label)] = own, title, _mean_of(places[own], title)
    for label, (own, title, mean) in means.items():
        found[label] = each = EmbeddingDensity.of(mean, places[own], tol, title)
        values[own] = each.scaled
    told = {"covariate": groupby, "components": counted, MADE_BY: OURS, "tol": tol, "confidence": CONFIDENCE}
    worst = max(found.values(), key=lambda each: each.interval[1])
    put(adata, {target: values}, {params: told | worst.facts() | _by_group(found, groupby)})


def _is_density(adata: Any, params: str) -> bool:
    """Whether a density was written before, by us or by scanpy, which has the same keys."""
    found = adata.uns.get(params)
    return record_of(adata, params, OURS) is not None or (hasattr(found, "keys") and {"covariate", "components"} <= set(found))


def _by_group(found: dict[str, EmbeddingDensity], groupby: str | None) -> dict[str, Any]:
    if groupby is None:
        return {}
    facts = [each.facts() for each in found.values()]
    return {"groups": {"name": np.array(list(found), object)} | {key: np.array([each[key] for each in facts]) for key in facts[0]}}


def _coordinates(adata: Any, basis: str, components: Any) -> tuple[NDArray[np.float32], list[int]]:
    """(n, 2) the columns asked for, and their numbers as scanpy's plots take them."""
    key = f"X_{basis}"
    if key not in adata.obsm:
        there = [each.removeprefix("X_") for each in adata.obsm if each.startswith("X_")]
        raise ValueError(missing_from("basis", basis, "the embeddings in obsm, without X_", there) + "; compute it first")
    asked = components.split(",") if isinstance(components, str) else [1, 2] if components is None else list(components)
    first = 1 if basis == "diffmap" else 0  # whose first column is constant, and not counted
    item = adata.obsm[key]
    width = int(item.shape[1])
    try:
        numbers = [int(each) for each in asked]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != 2 or not all(1 <= each <= width - first for each in numbers):
        raise ValueError(f"components must be two numbers from 1 to {width - first}, columns of obsm[{key!r}]; got {components!r}")
    places = np.empty((adata.n_obs, 2), np.float32)
    for a in range(0, adata.n_obs, ROWS):
        block = item.iloc[a : a + ROWS] if hasattr(item, "iloc") else item[a : a + ROWS]
        block = block.compute() if hasattr(block, "compute") else block
        block = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
        places[a : a + ROWS] = single(adata, block[:, [each - 1 + first for each in numbers]], a, f"obsm[{key!r}]")
    check_finite(adata, places, f"obsm[{key!r}]")
    return places, numbers


@dataclass(frozen=True)
class EmbeddingDensity:
    """Values at the cells, scaled, and what they lack."""

    scaled: Array
    relative_error: float
    interval: tuple[float, float]
    sup_error: float
    size: int
    cells: int

    @classmethod
    def of(cls, mean: KernelMean, places: Floats, tol: float, name: str) -> EmbeddingDensity:
        if mean.size <= EXACT:
            return cls._told(mean, mean(places), 0.0, (0.0, 0.0))
        lattice = _Lattice.of(mean, tol)
        binned = mean if lattice is None else lattice.binned(mean)
        most = min(MOST_ATOMS, binned.size)
        found = compress_quietly(binned, tol=WITHIN * tol, max_size=most, select="kcenter", weights="free", rng=0)
        small = cast(KernelMean, found.mean)
        scales = Run(np.random.default_rng(0), CONFIDENCE).target(mean).scales(small.size)
        if scales is None:
            raise RuntimeError("a Gaussian has waves, which tell the error at its bandwidth")
        width = np.array([cast(Gaussian, mean.kernel).width])
        look = scales.profile(small, width, CONFIDENCE, small.size)
        if look.relative_errors[0] > tol and lattice is not None and lattice.size * binned.size <= MOST_PAIRS:
            small = binned
            look = scales.profile(small, width, CONFIDENCE, small.size)
        values = small(places) if lattice is None else lattice.read(small, places)
        low, high = look.intervals[0].tolist()
        if look.relative_errors[0] > tol:
            warn(f"tol={tol:g} was not reached: the density of {name} is off by {look.relative_errors[0]:.2g} of its norm")
        return cls._told(
            small, np.maximum(values, 0.0), float(look.relative_errors[0]), (low, high), SPLINES * (lattice is not None)
        )

    @classmethod
    def _told(
        cls, mean: KernelMean, values: Array, error: float, interval: tuple[float, float], more: float = 0.0
    ) -> EmbeddingDensity:
        least, most = float(values.min()), float(values.max())
        norm = float(np.sqrt(values.mean()))  # of f in the kernel's space, since ‖f‖² = (1/n) Σ f(xᵢ)
        scaled = np.clip((values - least) / (most - least), 0, 1) if most > least else np.ones(len(values))
        return cls(scaled, error, interval, interval[1] * norm / most + more, mean.size, len(values))

    def facts(self) -> dict[str, Any]:
        """In plain values."""
        return {
            "relative_error": self.relative_error,
            "interval": np.array(self.interval),
            "sup_error": self.sup_error,
            "size": self.size,
            "n": self.cells,
        }


def _mean_of(places: Floats, name: str) -> KernelMean:
    """The bumps at all cells, as wide and as oblique as scipy's gaussian_kde makes them."""
    n = len(places)
    centre = places.mean(axis=0, dtype=np.float64)
    scatter = np.zeros((2, 2))
    for a in range(0, n, ROWS):
        block = places[a : a + ROWS] - centre
        scatter += block.T @ block
    covariance = scatter / max(n - 1, 1)
    if n < 3 or np.linalg.matrix_rank(covariance) < 2:
        raise ValueError(
            f"{name} must have at least 3 cells that do not lie on one line, for a density needs their covariance; got {n:,}. "
            "Leave them out, or join small groups"
        )
    return KernelMean.from_samples(places, Gaussian(n ** (-1 / 6), covariance=covariance))


@dataclass(frozen=True)
class _Lattice:
    """Points in rows and columns, in coordinates in which bumps are round and 1 wide: z = (x − centre) @ turn."""

    centre: Array
    turn: Array
    least: Array  # of z
    most: Array
    bin: float

    @classmethod
    def of(cls, mean: KernelMean, tol: float) -> _Lattice | None:
        """None where it would be large, or not fine enough."""
        kernel = cast(Gaussian, mean.kernel)
        factor = np.linalg.cholesky(kernel.covariance) * kernel.width
        turn, centre = np.asarray(np.linalg.inv(factor).T, np.float64), np.asarray(mean.atoms[0], np.float64)
        least, most = np.full(2, np.inf), np.full(2, -np.inf)
        for a in range(0, mean.size, ROWS):
            block = (mean.atoms[a : a + ROWS] - centre) @ turn
            least, most = np.minimum(least, block.min(axis=0)), np.maximum(most, block.max(axis=0))
        found = cls(centre, turn, least, most, COARSEST * min(1.0, float(np.sqrt(tol / 0.01))))
        points = float(np.prod(found._sides(min(found.bin, SPACING))))
        return found if tol >= FINEST_TOL and points <= MOST_POINTS else None

    @property
    def size(self) -> int:
        """How many points it has."""
        return int(self._sides(SPACING).prod())

    def _sides(self, spacing: float) -> Array:
        return np.floor((self.most - self.least) / spacing) + 1 + 2 * MARGIN

    def binned(self, mean: KernelMean) -> KernelMean:
        """One weighted atom for the cells of each bin: their mean."""
        sides = self._sides(self.bin).astype(np.int64)
        bins = int(sides.prod())
        counts, sums = np.zeros(bins), np.zeros((2, bins))
        for a in range(0, mean.size, ROWS):
            block = mean.atoms[a : a + ROWS] - self.centre
            seats = ((block @ self.turn - self.least) / self.bin).astype(np.int64)
            flat = seats[:, 0] * sides[1] + seats[:, 1]
            counts += np.bincount(flat, minlength=bins)
            for column in range(2):
                sums[column] += np.bincount(flat, block[:, column], bins)
        there = counts > 0
        return KernelMean.from_samples((sums[:, there] / counts[there]).T + self.centre, mean.kernel, counts[there])

    def read(self, small: KernelMean, places: Floats) -> Array:
        """Values of a small mean at many places, by splines through its values on the lattice."""
        rows, columns = self._sides(SPACING).astype(np.int64).tolist()
        first = self.least - MARGIN * SPACING
        z = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), axis=-1).reshape(-1, 2) * SPACING + first
        x = z @ np.linalg.inv(self.turn) + self.centre
        spline = spline_filter(np.asarray(small(x), np.float64).reshape(rows, columns))
        values = np.empty(len(places))
        for a in range(0, len(places), ROWS):
            seats = ((places[a : a + ROWS] - self.centre) @ self.turn - first) / SPACING
            values[a : a + ROWS] = map_coordinates(spline, seats.T, prefilter=False, mode="nearest")
        return values
