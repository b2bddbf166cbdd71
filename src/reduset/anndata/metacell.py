"""metacells: groups of similar cells, each summed to one profile of counts.

The cells are divided by `select.partition`. It averages each cell with its neighbours, which reduces noise. K-means with merges and
splits then forms the groups. On simulated cells these groups are purer than the cells assigned to the rows of a sketch, and than
strata of equal size (benchmarks/peers/metacells.py). The counts of each group are summed by sparse matrix products.

The certificate measures how well the means of the groups represent the distribution of all cells. The means are weighted by their
numbers of cells.

The cost is O(n·m·d) for the groups and O(nonzeros) for the sums. A few copies of the coordinates in float32, a block of counts and
the sums are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _validate
from reduset._describe import percent
from reduset._engine import single_threaded_blas
from reduset._types import Array, Floats, Indices, SeedLike
from reduset._validate import seeded
from reduset.anndata.annotated import (
    MADE_BY,
    check_annotated,
    column_of,
    labels_of,
    library,
    previous_record,
    profile_facts,
    store,
)
from reduset.anndata.representation import Representation, counts_of, group_sums, representation
from reduset.compression import TOL, Run, quotas
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.select import partition

METACELLS_MADE_BY = "reduset.anndata.metacells"
CELLS_PER_METACELL = 75
CONFIDENCE = 0.95


@seeded
def metacells(
    adata: Any,
    size: int | None = None,
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    label_key: str | None = None,
    sample_key: str | None = None,
    mean_keys: Sequence[str] = (),
    key_added: str | None = "metacell",
    tol: float = TOL,
    rng: SeedLike = 0,
) -> Any:
    """Sum the counts of groups of similar cells into a new AnnData with one row per metacell.

    Parameters
    ----------
    adata : AnnData
        In memory, backed by a file, or lazy. Counts are read by blocks.
    size : int, optional
        The number of metacells. The default is one for every 75 cells. There are fewer only if fewer cells have distinct
        coordinates.
    use_rep : str, optional
        The coordinates in which cells are compared: a key of obsm, or "X". By default X_pca is used. If it does not exist, X itself
        is used if it has at most 50 columns. Otherwise a truncated SVD of X is computed and stored as ``obsm["X_svd"]``.
    layer : str, optional
        The matrix to sum: a layer, "X" or "raw". The default is the first of ``layers["counts"]``, X and raw that holds counts.
    label_key : str, optional
        A column of obs with labels, such as cell types. The result has the majority label of each metacell, and the proportion of
        its cells with that label.
    sample_key : str, optional
        A column of obs with samples, batches or donors. Each sample is divided separately, so that no metacell mixes two samples.
        ``size`` is divided in proportion to the numbers of cells.
    mean_keys : sequence of str
        Columns of obs with numbers. The result has their mean over each metacell. Missing values are omitted.
    key_added : str or None
        The column of ``adata.obs`` for the metacell of every cell. None writes no column.
    tol : float
        The error that defines the resolution of the certificate.
    rng : None, seed or Generator
        The same seed gives the same metacells, even if the cells are stored in another order.

    Returns
    -------
    AnnData with

    X : (m, genes)
        The sums, sparse or dense like the matrix that was summed. The type is int64 for integers and float64 otherwise.
    obs
        ``n_cells``, ``label_key``, ``label_key + "_purity"``, ``sample_key`` and the columns of ``mean_keys``.
    var
        The annotation of the genes.
    obsm[use_rep] : (m, d)
        The mean coordinates of each metacell.
    uns["metacells"] : dict
        The parameters, ``explained_variance``, ``purity`` and a ``summary``. ``relative_error``, ``interval`` and ``resolution``
        are for the means weighted by ``n_cells``. ``radius`` is the largest distance from a cell to the mean of its metacell.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from reduset.anndata import metacells
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat(["T", "B"], [900, 100])
    >>> pca = rng.normal(size=(1000, 5)) + np.where(kind == "B", 8.0, 0.0)[:, None]
    >>> cells = pd.DataFrame({"kind": kind}, index=[f"cell{i}" for i in range(1000)])
    >>> adata = anndata.AnnData(rng.poisson(2.0, (1000, 30)), obs=cells, obsm={"X_pca": pca})
    >>> profiles = metacells(adata, 20, label_key="kind")
    >>> profiles.shape, int(profiles.X.sum()) == int(adata.X.sum()), int(profiles.obs["n_cells"].sum())
    ((20, 30), True, 1000)
    >>> float(profiles.obs["kind_purity"].min())
    1.0
    """
    check_annotated(adata, written=key_added is not None)
    n = adata.n_obs
    default = max(1, round(n / CELLS_PER_METACELL))
    count = default if size is None else _validate.whole(size, "size", 1, n, "there are no more cells")
    tol = _validate.positive(tol, "tol", "it is a relative error, 0.01 for one percent")
    if key_added is not None:
        previous_record(adata, key_added, METACELLS_MADE_BY, [key_added])
    labels, samples = _labels(adata, label_key, "label_key"), _labels(adata, sample_key, "sample_key")
    numbers = {key: _numbers(adata, key) for key in ([mean_keys] if isinstance(mean_keys, str) else mean_keys)}
    layer, matrix, var = counts_of(adata, layer)
    coordinates = representation(adata, use_rep)
    generator = _validate.generator(rng)
    with single_threaded_blas():
        groups = _Metacells.of(coordinates.values, count, samples, generator.spawn(1)[0])
        error, error_text = _certified(coordinates.values, groups, tol, generator)
    obs: dict[str, Any] = {"n_cells": groups.sizes}
    if samples is not None:
        obs[str(sample_key)] = _majority(samples, groups)[0]
    purity = {}
    if labels is not None:
        obs[str(label_key)], proportions = _majority(labels, groups)
        obs[f"{label_key}_purity"] = proportions
        purity = {"purity": float(proportions @ groups.sizes / n)}
    for key, values in numbers.items():  # means of the values that are not missing
        obs[key] = library("pandas").Series(values).groupby(groups.assignments).mean().to_numpy()
    params = {"use_rep": coordinates.name, "layer": layer, "label_key": label_key, "sample_key": sample_key, "tol": tol}
    params |= {"size": count, "rng": rng if isinstance(rng, int | np.integer) else None}
    names = [f"metacell{j}" for j in range(len(groups.sizes))]
    profiles = library().AnnData(
        group_sums(matrix, groups.assignments, len(names)),
        obs=library("pandas").DataFrame(obs, index=names),
        var=var.to_memory() if hasattr(var, "to_memory") else var.copy(),
    )
    profiles.obsm[coordinates.name if coordinates.name != "X" else "X_mean"] = groups.centres.astype(np.float32)
    profiles.uns["metacells"] = {
        MADE_BY: METACELLS_MADE_BY,
        "params": {key: value for key, value in params.items() if value is not None},
        "note": coordinates.note,
        "n": n,
        "size": len(names),
        "radius": float(groups.distances.max()),
        "explained_variance": groups.explained,
        **error,
        **purity,
        "summary": _summary(groups, error_text, coordinates, purity, str(label_key)),
    }
    _write_back(adata, coordinates, groups, names, key_added)
    return profiles


def _write_back(adata: Any, coordinates: Representation, groups: _Metacells, names: list[str], key: str | None) -> None:
    """The metacell of every cell in obs, and coordinates that were computed here in obsm."""
    obs = {} if key is None else {key: library("pandas").Categorical.from_codes(groups.assignments, names)}
    uns = {} if key is None else {key: {MADE_BY: METACELLS_MADE_BY, "n": adata.n_obs, "size": len(names)}}
    made = coordinates.made and not (adata.is_view and adata.isbacked)
    if obs or made:
        store(adata, obs, uns, {coordinates.name: coordinates.values} if made else {})


# -- groups -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Metacells:
    """(n,) the metacell of each cell, (m,) their sizes, (m, d) their means, and (n,) the distances of the cells from them."""

    assignments: Indices
    sizes: Indices
    centres: Array
    distances: Array
    explained: float

    @classmethod
    def of(cls, values: Floats, size: int, samples: Any, rng: np.random.Generator) -> _Metacells:
        """The metacells of all cells, or of each sample separately."""
        parts: list[Any] = [slice(None)]
        quota, rngs = np.array([size]), [rng]
        if samples is not None:
            cells = np.bincount(samples.codes, minlength=len(samples.categories))
            parts = [np.flatnonzero(samples.codes == k) for k in range(len(cells))]
            quota, rngs = quotas(size, cells.astype(float), cells, "proportional"), rng.spawn(len(cells))
        assignments, distances, centres = np.empty(len(values), np.int64), np.empty(len(values)), np.empty((0, values.shape[1]))
        for rows, count, sample_rng in zip(parts, quota.tolist(), rngs, strict=True):
            groups = partition(values[rows], count, sample_rng, smooth=True)
            assignments[rows], distances[rows] = groups.assignments + len(centres), groups.distances
            centres = np.concatenate([centres, groups.centres])
        sizes = np.bincount(assignments, minlength=len(centres))
        mean = sizes @ centres / len(values)
        between = float(sizes @ np.square(centres - mean).sum(axis=1))
        total = between + float(np.square(distances).sum())
        return cls(assignments, sizes, centres, distances, between / total if total > 0 else 1.0)


def _labels(adata: Any, key: str | None, parameter: str) -> Any:
    """The labels of cells, a Categorical. Its categories have the order of the column's, and so their colours."""
    if key is None:
        return None
    column = column_of(adata, key, parameter)
    names = [str(category) for category in column.cat.categories] if hasattr(column, "cat") else None
    return library("pandas").Categorical(labels_of(adata, key, parameter), names)


def _majority(labels: Any, groups: _Metacells) -> tuple[Any, Array]:
    """(m,) the most frequent label of each metacell, and its proportion. Of equally frequent labels, the first is returned."""
    k = len(labels.categories)
    pairs, counts = np.unique(groups.assignments * k + labels.codes, return_counts=True)
    order = np.lexsort((pairs, -counts, pairs // k))
    first = order[np.unique(pairs[order] // k, return_index=True)[1]]
    return library("pandas").Categorical.from_codes(pairs[first] % k, dtype=labels.dtype), counts[first] / groups.sizes


def _numbers(adata: Any, key: str) -> Array:
    column = column_of(adata, key, "mean_keys")
    if getattr(column.dtype, "kind", "O") not in "fiub":
        raise ValueError(f"mean_keys must name columns of obs with numbers, and obs[{key!r}] holds {column.dtype}; use label_key")
    return np.asarray(column.to_numpy(np.float64, na_value=np.nan))


# -- the certificate ----------------------------------------------------------------------------------------------------------


def _certified(values: Floats, groups: _Metacells, tol: float, rng: np.random.Generator) -> tuple[dict[str, Any], str]:
    """The error at the resolution and at every scale, as facts and as text. The means are weighted by their numbers of cells."""
    size = len(groups.sizes)
    coincide = size == 1 and bool((values == values[0]).all())  # cells without a median distance
    full = KernelMean.from_samples(values, Gaussian(1.0) if coincide else Gaussian())
    scales: Any = Run(rng, CONFIDENCE).target(full).scales(size)
    small = KernelMean(groups.centres, groups.sizes / len(values), full.kernel)
    profile = scales.profile(small, scales.bandwidths, CONFIDENCE, size)
    resolution = profile.finest(tol)
    at = 0 if resolution is None else int(np.flatnonzero(profile.bandwidths == resolution)[0])
    error, bandwidth = float(profile.relative_errors[at]), float(profile.bandwidths[at])
    low, high = profile.intervals[at].tolist()
    facts = {"relative_error": error, "interval": np.array([low, high]), "confidence": CONFIDENCE, "bandwidth": bandwidth}
    facts |= {"tol": tol, "profile": profile_facts(profile)} | ({} if resolution is None else {"resolution": resolution})
    text = f"{percent(error)} (95 % CI {percent(low)} to {percent(high)}) at bandwidth {bandwidth:.3g}"
    if resolution is None:
        return facts, f"{text}, the coarsest: above the tolerance of {percent(tol)} at every scale"
    return facts, f"{text}, at most {percent(tol)} at all coarser scales"


def _summary(groups: _Metacells, error: str, coordinates: Representation, purity: dict[str, float], label_key: str) -> str:
    n, m, d = len(groups.assignments), len(groups.sizes), groups.centres.shape[1]
    name = "X" if coordinates.name == "X" else f"obsm['{coordinates.name}']"
    smallest, largest, median = groups.sizes.min(), groups.sizes.max(), np.median(groups.sizes)
    lines = [f"{m:,} metacells of {n:,} cells, {d} column{'s' * (d != 1)} of {name}"]
    lines.append(f"cells      {smallest:,} to {largest:,} in a metacell, median {median:,.0f}")
    if purity:
        lines.append(f"purity     {percent(purity['purity'])} of the cells have the majority {label_key} of their metacell")
    lines.append(f"variance   {percent(groups.explained)} lies between metacells; radius {groups.distances.max():.3g}")
    lines.append(f"error      {error}")
    return "\n  ".join(lines)
