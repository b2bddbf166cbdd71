"""sketch of an AnnData: cells that represent all others, marked in obs, and the error of the sketch in uns.

`reduset.sketch` selects the cells. This module stores the result under names that are usual in scanpy. The cost is at most
O(n·m·d). Only the coordinates are in memory, in float32.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from reduset import _validate
from reduset._messages import warn
from reduset._types import ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.anndata.annotated import (
    MADE_BY,
    check_annotated,
    first_cells,
    labels_of,
    library,
    previous_record,
    profile_facts,
    store,
)
from reduset.anndata.representation import Representation, representation
from reduset.compression import SQUARE_ROOT, TOL
from reduset.kernels import Gaussian
from reduset.sketching import Sketch
from reduset.sketching import sketch as sketch_rows

SIZE = 5000
SKETCH_MADE_BY = "reduset.anndata.sketch"
WEIGHT, ASSIGNMENT = "_weight", "_assignment"
NAME, POSITION = "name", "position"


@seeded
def sketch(
    adata: Any,
    size: int | None = None,
    *,
    fraction: float | None = None,
    use_rep: str | None = None,
    sample_key: str | None = None,
    quotas: str = SQUARE_ROOT,
    key_added: str = "sketch",
    rng: SeedLike = 0,
    copy: bool = False,
    tol: float = TOL,
    coverage: float | None = None,
    progress: ProgressLike = False,
) -> Any:
    """Choose cells that represent all others, including rare types, with the number of cells that each represents.

    Parameters
    ----------
    adata : AnnData
        In memory, backed by a file, or lazy. The file may be read-only, because results are written to obs and uns, which are in
        memory.
    size : int, optional
        The number of cells. The default is 5,000, or all if there are fewer.
    fraction : float, optional
        The proportion of the cells, above 0 and up to 1. It replaces ``size``.
    use_rep : str, optional
        The coordinates in which distances are measured: a key of obsm, or "X". By default X_pca is used. If it does not exist, X
        itself is used if it has at most 50 columns. Otherwise a truncated SVD of X is computed, stored as ``obsm["X_svd"]`` and
        used in later calls. Without X_pca, a warning names the choice, and ``uns["sketch"]["note"]`` records it.
    sample_key : str, optional
        A column of obs with samples, batches or donors. Each sample is sketched separately, and its weights sum to its number of
        cells.
    quotas : "square root", "proportional" or "equal"
        How ``size`` is divided among the samples. All cells of a sample are selected if there are fewer than its quota.
    key_added : str
        The prefix of the names of all results.
    rng : None, seed or Generator
        The same seed gives the same result.
    copy : bool
        Whether to write into a copy and return it. The copy of a backed object is in memory.
    tol, coverage :
        As in `reduset.sketch`.
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    None, or the copy. These are written:

    obs["sketch"] : bool
        Whether a cell belongs to the sketch.
    obs["sketch_weight"] : float
        The number of cells that it represents, including itself. It is 0 for other cells, so that weighted sums over all cells are
        correct.
    obs["sketch_assignment"] : categorical
        The name of the sketch cell that represents each cell. If cell names repeat, it is the position, an integer.
    uns["sketch"] : dict
        The parameters, the error (relative_error, interval, confidence), resolution and radius. It also has the profile over all
        scales, and a summary as text.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from reduset.anndata import sketch
    >>> rng = np.random.default_rng(0)
    >>> cells = pd.DataFrame(index=[f"cell{i}" for i in range(3000)])
    >>> adata = anndata.AnnData(obs=cells, obsm={"X_pca": rng.normal(size=(3000, 5))})
    >>> sketch(adata, 100)
    >>> small = adata[adata.obs["sketch"]].copy()
    >>> small.n_obs, round(float(small.obs["sketch_weight"].sum()), 6)
    (100, 3000.0)
    """
    check_annotated(adata, written=not copy)
    count = _size(size, fraction, adata.n_obs)
    names = [f"{key_added}{suffix}" for suffix in ("", WEIGHT, ASSIGNMENT)]
    previous = previous_record(adata, key_added, SKETCH_MADE_BY, names)
    groups = None if sample_key is None else labels_of(adata, sample_key, "sample_key")
    coordinates = representation(adata, use_rep)
    # components in obsm have the same unit, even if their spreads differ; columns of X may have different units
    kernel = None if coordinates.name == "X" else Gaussian()
    options: dict[str, Any] = {"quotas": quotas, "tol": tol, "coverage": coverage}
    small = sketch_rows(coordinates.values, count, kernel=kernel, groups=groups, rng=rng, progress=progress, **options)
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    columns, assigned_by = _columns(adata, small, key_added)
    seed = rng if isinstance(rng, int | np.integer) else None
    facts = sketch_facts(small, options | {"sample_key": sample_key, "rng": seed}, coordinates, groups)
    facts |= {"projected": previous.get("projected", {}), "assignments": assigned_by}
    store(adata, columns, {key_added: facts}, {coordinates.name: coordinates.values} if coordinates.made else {})
    return adata if copy else None


def _size(size: int | None, fraction: float | None, n: int) -> int:
    """The number of cells of the sketch."""
    if size is not None and fraction is not None:
        raise ValueError(
            f"size and fraction both set the number of cells; pass one of the two, got size={size!r}, fraction={fraction!r}"
        )
    if fraction is not None:
        fraction = _validate.positive(fraction, "fraction", "it is a proportion of the cells, such as 0.01")
        if fraction > 1:
            raise ValueError(f"fraction must be at most 1, all cells, got {fraction!r}; size sets a number of cells")
        return max(1, round(fraction * n))
    if size is None:
        return min(SIZE, n)
    if isinstance(size, float) and 0 < size < 1:
        raise ValueError(f"size must be a whole number of cells, got {size!r}; for a proportion use fraction={size!r}")
    return _validate.whole(size, "size", 1, n, "there are no more cells")


def _columns(adata: Any, small: Sketch, key: str) -> tuple[dict[str, Any], str]:
    """The columns of obs, and whether assignments are names or positions."""
    is_selected, weights = np.zeros(adata.n_obs, bool), np.zeros(adata.n_obs)
    is_selected[small.indices], weights[small.indices] = True, adata.n_obs * small.weights
    assignments: Any
    names = adata.obs_names
    if names.is_unique:
        assigned_by = NAME
        assignments = library("pandas").Categorical.from_codes(small.assignments, names[small.indices].astype(str))
    else:
        repeated = np.flatnonzero(names.duplicated())
        warn(
            f"cell names must be unique for assignments by name, and {len(repeated):,} cells repeat a name "
            f"({first_cells(adata, repeated)}); obs[{key + ASSIGNMENT!r}] holds positions, which `project` does not support. Call "
            "adata.obs_names_make_unique() first to get names"
        )
        assigned_by, assignments = POSITION, small.indices[small.assignments]
    return {key: is_selected, key + WEIGHT: weights, key + ASSIGNMENT: assignments}, assigned_by


def sketch_facts(small: Sketch, params: dict[str, Any], coordinates: Representation, groups: Any) -> dict[str, Any]:
    """The facts of a sketch as plain values, which every file of AnnData can hold; None is omitted."""
    certificate, profile = small.certificate, small.profile
    params = params | {"use_rep": coordinates.name}
    facts: dict[str, Any] = {
        MADE_BY: SKETCH_MADE_BY,
        "params": {name: value for name, value in params.items() if value is not None},
        "n": small.n_samples,
        "size": small.size,
        "relative_error": certificate.relative_error,
        "interval": np.asarray(certificate.interval, float),
        "confidence": certificate.confidence,
        "resolution": small.resolution,
        "radius": certificate.radius,
        "tol": small.tol,
        "use_rep": coordinates.name,
        "summary": re.sub(r"\brow(s?)\b", r"cell\1", str(small)),
        "note": "; ".join(note for note in (coordinates.note, small.message) if note),
    }
    if profile is not None:
        facts["profile"] = profile_facts(profile)
    if groups is not None:
        names, codes = np.unique(groups, return_inverse=True)
        sizes = np.bincount(codes[small.indices], minlength=len(names))
        facts["samples"] = {"name": names.astype(object), "cells": np.bincount(codes), "sketch": sizes}
    return {name: value for name, value in facts.items() if value is not None}
