"""sketch of an AnnData: cells that stand for all others, marked in obs, and what was lost in uns.

The array-level `reduset.sketch` chooses; here its rows get the names that scanpy's users expect. O(n·m·d) at worst, and memory for
the coordinates in float32 alone, whatever X is.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from reduset import _validate
from reduset._messages import warn
from reduset._types import ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.anndata.annotated import MADE_BY, check_annotated, check_free, few_cells, labels_of, put, record_of
from reduset.anndata.representation import Representation, representation
from reduset.compression.grouped import SQUARE_ROOT
from reduset.compression.plan import TOL
from reduset.io import need
from reduset.kernels import Gaussian
from reduset.sketching import Sketch
from reduset.sketching import sketch as sketch_rows

SIZE = 5000
OURS = "reduset.anndata.sketch"
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
    """Choose cells that stand for all others, rare ones among them, with the number of cells that each stands for.

    Parameters
    ----------
    adata : AnnData
        In memory, backed by a file (also read-only: results go to obs and uns, which are in memory), or lazy.
    size : int
        That many cells; 5,000 if neither it nor ``fraction`` is given, or all where there are fewer.
    fraction : float, optional
        The share of the cells, above 0 and up to 1, in place of ``size``.
    use_rep : str or None
        The coordinates in which distances are measured: a key of obsm, or "X". None takes X_pca if there is one, else X itself if
        it has at most 50 columns, else a truncated SVD of X, which is stored as ``obsm["X_svd"]`` and used again. If there is no
        X_pca, a warning names the choice, and ``uns["sketch"]["note"]`` records it.
    sample_key : str, optional
        A column of obs: each of its samples, batches or donors gets cells of its own, whose weights add up to its number of cells.
    quotas : "square root", "proportional" or "equal"
        How ``size`` is shared out among these; one that has fewer cells than its quota is kept whole.
    key_added : str
        What is written is called by it.
    rng : None, seed or Generator; the same seed gives the same result
    copy : bool
        Whether to write into a copy, and return that; that of a backed object is in memory, X too.
    tol, coverage :
        As in `reduset.sketch`.
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    None, or the copy. Written are

    obs["sketch"] : bool
        Which cells.
    obs["sketch_weight"] : float
        How many cells each stands for, itself among them; 0 outside the sketch, so that sums over all cells are right too.
    obs["sketch_assignment"] : categorical
        The name of the sketch cell that represents each cell; its position, an integer, if cell names are not unique.
    uns["sketch"] : dict
        What was asked for, and what was lost: relative_error, interval, confidence, resolution, radius, the profile over all
        scales, and a summary in words.

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
    before = _before(adata, key_added)
    groups = None if sample_key is None else labels_of(adata, sample_key, "sample_key")
    asked = {"sample_key": sample_key, "quotas": quotas, "tol": tol, "coverage": coverage}
    where = representation(adata, use_rep)
    asked |= {"use_rep": where.name, "rng": rng if isinstance(rng, int | np.integer) else None}
    chosen: dict[str, Any] = {
        "groups": groups,
        "quotas": quotas,
        "coverage": coverage,
        "tol": tol,
        "rng": rng,
        "progress": progress,
    }
    # components of obsm are in one unit, however their spreads fall; columns of X need not be
    small = sketch_rows(where.values, count, kernel=None if where.name == "X" else Gaussian(), **chosen)
    if copy:
        adata = adata.to_memory() if adata.isbacked else adata.copy()
    uns = facts(small, asked, where, groups) | {"projected": before.get("projected", {})}
    columns, how = _columns(adata, small, key_added)
    kept = {where.name: where.values} if where.made else {}
    put(adata, columns, {key_added: uns | {"assignments": how}}, kept)
    return adata if copy else None


def _size(size: int | None, fraction: float | None, n: int) -> int:
    """How many cells were asked for."""
    if size is not None and fraction is not None:
        raise ValueError(
            f"size and fraction both say how many cells; give one of the two, got size={size!r}, fraction={fraction!r}"
        )
    if fraction is not None:
        share = _validate.positive(fraction, "fraction", "it is a share of the cells, 0.01 for one in a hundred")
        if share > 1:
            raise ValueError(f"fraction must be at most 1, all cells, got {fraction!r}; for a number of cells there is size")
        return max(1, round(share * n))
    if size is None:
        return min(SIZE, n)
    if isinstance(size, float) and 0 < size < 1:
        raise ValueError(f"size must be a whole number of cells, got {size!r}; for a share of them there is fraction={size!r}")
    return _validate.whole(size, "size", 1, n, "there are no more cells")


def _before(adata: Any, key: str) -> dict[str, Any]:
    """What an earlier call wrote under the same key; anything else there is refused."""
    if not isinstance(key, str) or not key:
        raise TypeError(f"key_added must be a name for columns of obs, got {key!r}")
    found = record_of(adata, key, OURS)
    way_out = f"choose another key_added than {key!r}, or delete it"
    check_free(adata, (key, key + WEIGHT, key + ASSIGNMENT), found is not None, way_out)
    if found is None and key in adata.uns:
        raise ValueError(f"uns[{key!r}] is there already, and holds something else that would be lost; {way_out}")
    return found or {}


def _columns(adata: Any, small: Sketch, key: str) -> tuple[dict[str, Any], str]:
    """The columns of obs, and whether assignments are names or positions."""
    pandas = need("reduset.anndata", "pandas", "anndata")
    chosen, weights = np.zeros(adata.n_obs, bool), np.zeros(adata.n_obs)
    chosen[small.indices], weights[small.indices] = True, adata.n_obs * small.weights
    assignments: Any
    names = adata.obs_names
    if names.is_unique:
        how, assignments = NAME, pandas.Categorical.from_codes(small.assignments, names[small.indices].astype(str))
    else:
        repeated = np.flatnonzero(names.duplicated())
        warn(
            f"cell names must be unique for assignments by name, and {len(repeated):,} cells repeat a name "
            f"({few_cells(adata, repeated)}); obs[{key + ASSIGNMENT!r}] holds positions, which become wrong in a subset of the "
            "cells. Call adata.obs_names_make_unique() first to get names"
        )
        how, assignments = POSITION, small.indices[small.assignments]
    return {key: chosen, key + WEIGHT: weights, key + ASSIGNMENT: assignments}, how


def facts(small: Sketch, asked: dict[str, Any], where: Representation, groups: Any) -> dict[str, Any]:
    """What a sketch says, in plain values that every file of AnnData can hold."""
    certificate, profile = small.certificate, small.profile
    notes = [each for each in (where.note, small.message) if each]
    found: dict[str, Any] = {
        MADE_BY: OURS,
        "params": asked,
        "n": small.n_samples,
        "size": small.size,
        "relative_error": certificate.relative_error,
        "interval": np.asarray(certificate.interval, float),
        "confidence": certificate.confidence,
        "resolution": small.resolution,
        "radius": certificate.radius,
        "tol": small.tol,
        "use_rep": where.name,
        "summary": re.sub(r"\brow(s?)\b", r"cell\1", str(small)),
        "note": "; ".join(notes),
    }
    if profile is not None:
        found["profile"] = {
            "bandwidths": profile.bandwidths,
            "relative_errors": profile.relative_errors,
            "intervals": profile.intervals,
        }
    if groups is not None:
        names, of = np.unique(groups, return_inverse=True)
        sizes = np.bincount(of[small.indices], minlength=len(names))
        found["samples"] = {"name": names.astype(object), "cells": np.bincount(of), "sketch": sizes}
    return _written(found)


def _written(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is None, for which older files have no way."""
    return {name: _written(each) if isinstance(each, dict) else each for name, each in values.items() if each is not None}
