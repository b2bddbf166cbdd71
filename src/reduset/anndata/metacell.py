"""metacells: groups of similar cells, each summed to one profile of counts.

The cells are divided by `select.partition`: each cell is averaged with its neighbours, which reduces noise, then k-means with
merges and splits forms the groups. On simulated cells they are purer than the cells assigned to the rows of a sketch and than
strata of equal size (benchmarks/peers/metacells.py). The counts of each group are summed by sparse matrix products. The certificate
measures how well the means of the groups, weighted by their numbers of cells, represent the distribution of all cells.

O(n·m·d) for the groups and O(nonzeros) for the sums. Held are a few copies of the coordinates in float32, a block of counts, and
the sums.
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
from reduset.anndata.annotated import MADE_BY, check_annotated, check_free, column_of, labels_of, put, record_of
from reduset.anndata.count_sums import Counts
from reduset.anndata.representation import Representation, representation
from reduset.certificate.by_scale import ErrorProfile
from reduset.compression.grouped import quotas
from reduset.compression.plan import TOL
from reduset.compression.target import Run
from reduset.io import need
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.select.partition import partition

OURS = "reduset.anndata.metacells"
KEY, SIZES, PURITY = "metacells", "n_cells", "_purity"
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
        The number of metacells; one for every 75 cells by default. There are fewer only if fewer cells have distinct coordinates.
    use_rep : str, optional
        The coordinates in which cells are compared: a key of obsm, or "X". None takes X_pca if there is one, else X itself if it
        has at most 50 columns, else a truncated SVD of X, which is stored as ``obsm["X_svd"]``.
    layer : str, optional
        The matrix to sum: a layer, "X" or "raw". None takes the first of ``layers["counts"]``, X and raw that holds counts.
    label_key : str, optional
        A column of obs with labels, such as cell types: the result has the majority label of each metacell and its proportion.
    sample_key : str, optional
        A column of obs with samples, batches or donors. Each is divided on its own, so that no metacell mixes two samples; ``size``
        is shared out in proportion to their numbers of cells.
    mean_keys : sequence of str
        Columns of obs with numbers, of which the result has the mean of each metacell; missing values are omitted.
    key_added : str or None
        The column of ``adata.obs`` that receives the metacell of every cell. None writes nothing there.
    tol : float
        The error that defines the resolution of the certificate.
    rng : None, seed or Generator
        The same seed gives the same metacells, in whatever order the cells are stored.

    Returns
    -------
    AnnData with

    X : (m, genes) the sums, sparse or dense as the matrix that was summed: int64 for integers, float64 otherwise
    obs : ``n_cells``; ``label_key`` and ``label_key + "_purity"``; ``sample_key``; the columns of ``mean_keys``
    var : the annotation of the genes
    obsm[use_rep] : (m, d) the mean coordinates of each metacell
    uns["metacells"] : parameters, ``relative_error``, ``interval`` and ``resolution`` of the means weighted by ``n_cells``,
        ``radius`` (the largest distance from a cell to its metacell's mean), ``explained_variance``, ``purity`` and a ``summary``

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from reduset.anndata import metacells
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat(["T", "B"], [900, 100])
    >>> pca = rng.normal(size=(1000, 5)) + np.where(kind == "B", 8.0, 0.0)[:, None]
    >>> cells = pd.DataFrame({"kind": kind}, index=[f"cell{i}" for i in range(1000)])
    >>> adata = anndata.AnnData(rng.poisson(2.0, (1000, 30)), obs=cells, obsm={"X_pca": pca})
    >>> few = metacells(adata, 20, label_key="kind")
    >>> few.shape, int(few.X.sum()) == int(adata.X.sum()), int(few.obs["n_cells"].sum())
    ((20, 30), True, 1000)
    >>> float(few.obs["kind_purity"].min())
    1.0
    """
    check_annotated(adata, written=key_added is not None)
    n = adata.n_obs
    count = (
        max(1, round(n / CELLS_PER_METACELL)) if size is None else _validate.whole(size, "size", 1, n, "there are no more cells")
    )
    tol = _validate.positive(tol, "tol", "it is a relative error, 0.01 for one percent")
    _check_key(adata, key_added)
    labels = None if label_key is None else _Labels.of(adata, label_key, "label_key")
    samples = None if sample_key is None else _Labels.of(adata, sample_key, "sample_key")
    numbers = {key: _numbers(adata, key) for key in ([mean_keys] if isinstance(mean_keys, str) else mean_keys)}
    counts = Counts.chosen(adata, layer)
    where = representation(adata, use_rep)
    generator = _validate.generator(rng)
    with single_threaded_blas():
        groups = _Metacells.of(where.values, count, samples, generator.spawn(1)[0])
        look = _Certified.of(where.values, groups, tol, generator)
    obs: dict[str, Any] = {SIZES: groups.sizes}
    if samples is not None:
        obs[str(sample_key)] = samples.majority(groups)[0]
    if labels is not None:
        obs[str(label_key)], obs[f"{label_key}{PURITY}"] = labels.majority(groups)
    obs |= {key: _group_means(each, groups) for key, each in numbers.items()}
    purity = {} if labels is None else {"purity": labels.purity(groups)}
    asked = {"use_rep": where.name, "layer": counts.name, "label_key": label_key, "sample_key": sample_key, "tol": tol}
    asked |= {"size": count, "rng": rng if isinstance(rng, int | np.integer) else None}
    uns = {MADE_BY: OURS, "params": {key: each for key, each in asked.items() if each is not None}, "note": where.note}
    uns |= groups.facts() | look.facts() | purity
    uns["summary"] = _summary(groups, look, where, purity, str(label_key))
    names = [f"metacell{j}" for j in range(len(groups.sizes))]
    found = _assembled(counts, groups, obs, names)
    found.obsm[where.name if where.name != "X" else "X_mean"] = groups.centres.astype(np.float32)
    found.uns[KEY] = uns
    _write_back(adata, where, groups, names, key_added)
    return found


def _assembled(counts: Counts, groups: _Metacells, obs: dict[str, Any], names: list[str]) -> Any:
    anndata, pandas = (need("reduset.anndata", each, "anndata") for each in ("anndata", "pandas"))
    var = counts.var
    var = var.to_memory() if hasattr(var, "to_memory") else var.copy()
    sums = counts.sums(groups.assignments, len(groups.sizes))
    return anndata.AnnData(sums, obs=pandas.DataFrame(obs, index=names), var=var)


def _check_key(adata: Any, key: str | None) -> None:
    """Raise if the column for the assignments holds something else."""
    if key is None:
        return
    if not isinstance(key, str) or not key:
        raise TypeError(f"key_added must be a name for a column of obs or None, got {key!r}")
    is_ours = record_of(adata, key, OURS) is not None
    check_free(adata, [key], is_ours, "choose another key_added, or key_added=None")
    if key in adata.uns and not is_ours:
        raise ValueError(f"uns[{key!r}] exists and was not written by metacells; choose another key_added, or key_added=None")


def _write_back(adata: Any, where: Representation, groups: _Metacells, names: list[str], key: str | None) -> None:
    """The metacell of every cell in obs, and coordinates that were made on the way in obsm."""
    pandas = need("reduset.anndata", "pandas", "anndata")
    obs = {} if key is None else {key: pandas.Categorical.from_codes(groups.assignments, names)}
    uns = {} if key is None else {key: {MADE_BY: OURS, "n": adata.n_obs, "size": len(names)}}
    made = where.made and not (adata.is_view and adata.isbacked)
    if obs or made:
        put(adata, obs, uns, {where.name: where.values} if made else {})


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
    def of(cls, values: Floats, size: int, samples: _Labels | None, rng: np.random.Generator) -> _Metacells:
        """Of all cells, or of each sample on its own."""
        if samples is None:
            found = partition(values, size, rng, smooth=True)
            assignments, centres, distances = found.assignments, found.centres, found.distances
        else:
            cells = np.bincount(samples.codes, minlength=len(samples.names))
            given = quotas(size, cells.astype(float), cells, "proportional")
            assignments, distances, parts, begun = np.empty(len(values), np.int64), np.empty(len(values)), [], 0
            for k, stream in enumerate(rng.spawn(len(given))):
                own = np.flatnonzero(samples.codes == k)
                found = partition(values[own], int(given[k]), stream, smooth=True)
                assignments[own], distances[own] = found.assignments + begun, found.distances
                parts.append(found.centres)
                begun += len(found.centres)
            centres = np.concatenate(parts)
        sizes = np.bincount(assignments, minlength=len(centres))
        mean = sizes @ centres / len(values)
        between = float(sizes @ np.square(centres - mean).sum(axis=1))
        total = between + float(np.square(distances).sum())
        return cls(assignments, sizes, centres, distances, between / total if total > 0 else 1.0)

    def facts(self) -> dict[str, Any]:
        """What is stored of the groups."""
        return {
            "n": len(self.assignments),
            "size": len(self.sizes),
            "radius": float(self.distances.max()),
            "explained_variance": self.explained,
        }


@dataclass(frozen=True)
class _Labels:
    """The labels of cells as codes, with their names."""

    codes: Indices
    names: Any

    @classmethod
    def of(cls, adata: Any, key: str, name: str) -> _Labels:
        texts = labels_of(adata, key, name)
        column = column_of(adata, key, name)
        names, codes = np.unique(texts, return_inverse=True)
        if hasattr(column, "cat"):  # keep the order of the categories, and colours with it
            every = [str(each) for each in column.cat.categories]
            codes, names = np.array([every.index(each) for each in names])[codes], np.array(every, object)
        return cls(codes.astype(np.int64), names)

    def majority(self, groups: _Metacells) -> tuple[Any, Array]:
        """(m,) the most frequent label of each metacell, the first of equally frequent ones, and its proportion."""
        pandas = need("reduset.anndata", "pandas", "anndata")
        k, m = len(self.names), len(groups.sizes)
        pairs, counts = np.unique(groups.assignments * k + self.codes, return_counts=True)
        order = np.lexsort((pairs, -counts, pairs // k))
        first = order[np.unique(pairs[order] // k, return_index=True)[1]]
        return pandas.Categorical.from_codes(pairs[first] % k, self.names.astype(object)), counts[first] / groups.sizes[:m]

    def purity(self, groups: _Metacells) -> float:
        """The proportion of cells whose label is the majority label of their metacell."""
        return float(self.majority(groups)[1] @ groups.sizes / len(self.codes))


def _numbers(adata: Any, key: str) -> Array:
    column = column_of(adata, key, "mean_keys")
    if getattr(column.dtype, "kind", "O") not in "fiub":
        raise ValueError(f"mean_keys must name columns of obs with numbers, and obs[{key!r}] holds {column.dtype}; use label_key")
    return np.asarray(column.to_numpy(np.float64, na_value=np.nan))


def _group_means(values: Array, groups: _Metacells) -> Array:
    """(m,) means of the values that are not missing; NaN where all are."""
    known, m = ~np.isnan(values), len(groups.sizes)
    counts = np.bincount(groups.assignments[known], minlength=m)
    sums = np.bincount(groups.assignments[known], values[known], m)
    return np.divide(sums, counts, out=np.full(m, np.nan), where=counts > 0)


# -- the certificate ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Certified:
    """The error of the means, weighted by their numbers of cells, at the resolution and at every scale."""

    error: float
    interval: tuple[float, float]
    bandwidth: float
    resolution: float | None
    tol: float
    profile: ErrorProfile

    @classmethod
    def of(cls, values: Floats, groups: _Metacells, tol: float, rng: np.random.Generator) -> _Certified:
        size = len(groups.sizes)
        coincide = size == 1 and bool((values == values[0]).all())  # cells without a median distance
        full = KernelMean.from_samples(values, Gaussian(1.0) if coincide else Gaussian())
        scales = Run(rng, CONFIDENCE).target(full).scales(size)
        if scales is None:
            raise RuntimeError("a Gaussian kernel has an error profile at every scale")
        small = KernelMean(groups.centres, groups.sizes / len(values), full.kernel)
        profile = scales.profile(small, scales.bandwidths, CONFIDENCE, size)
        resolution = profile.finest(tol)
        at = 0 if resolution is None else int(np.flatnonzero(profile.bandwidths == resolution)[0])
        low, high = profile.intervals[at].tolist()
        return cls(float(profile.relative_errors[at]), (low, high), float(profile.bandwidths[at]), resolution, tol, profile)

    def facts(self) -> dict[str, Any]:
        """What is stored of the error."""
        found: dict[str, Any] = {"relative_error": self.error, "interval": np.array(self.interval), "confidence": CONFIDENCE}
        found |= {"bandwidth": self.bandwidth, "tol": self.tol}
        found |= {} if self.resolution is None else {"resolution": self.resolution}
        profile = self.profile
        columns = {"bandwidths": profile.bandwidths, "relative_errors": profile.relative_errors, "intervals": profile.intervals}
        return found | {"profile": columns}

    def __str__(self) -> str:
        low, high = map(percent, self.interval)
        text = f"{percent(self.error)} (95 % CI {low} to {high}) at bandwidth {self.bandwidth:.3g}"
        if self.resolution is None:
            return f"{text}, the coarsest: above the tolerance of {percent(self.tol)} at every scale"
        return f"{text}, at most {percent(self.tol)} at all coarser ones"


def _summary(groups: _Metacells, look: _Certified, where: Representation, purity: dict[str, float], label_key: str) -> str:
    n, m, d = len(groups.assignments), len(groups.sizes), groups.centres.shape[1]
    name = "X" if where.name == "X" else f"obsm['{where.name}']"
    lines = [f"{m:,} metacells of {n:,} cells, {d} column{'s' * (d != 1)} of {name}"]
    lines.append(
        f"cells      {groups.sizes.min():,} to {groups.sizes.max():,} in a metacell, median {np.median(groups.sizes):,.0f}"
    )
    if purity:
        lines.append(f"purity     {percent(purity['purity'])} of the cells have the majority {label_key} of their metacell")
    lines.append(f"variance   {percent(groups.explained)} lies between metacells; radius {groups.distances.max():.3g}")
    lines.append(f"error      {look}")
    return "\n  ".join(lines)
