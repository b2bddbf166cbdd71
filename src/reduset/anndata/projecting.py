"""project: labels, scores or an embedding of a sketch's cells, transferred to all cells by a weighted vote, with its confidence.

A cell is assigned to one sketch cell. The k sketch cells nearest to that sketch cell vote. The cell has distances d₁ … d_k from
them, and D is the largest of these:

    label with the largest Σ aⱼ,    score = Σ aⱼ sⱼ / Σ aⱼ,    aⱼ = (1 − (dⱼ / 1.05 D)³)³.

These are Cleveland's tricube weights (1979). Votes depend on distances and not on sketch weights, so that a rare cell near cells of
its type is not outvoted by a frequent type that is far. The cost is O(n·k·d), one sketch cell at a time, and O(m²·d) for the
neighbours of sketch cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, Floats, Indices
from reduset.anndata.annotated import check_annotated, first_cells, library, record_of, store, unknown_name
from reduset.anndata.representation import dense, representation
from reduset.anndata.sketching import ASSIGNMENT, NAME, SKETCH_MADE_BY

CONFIDENCE = "_sure"
REACH = 1.05  # times the distance of the farthest voter, so that its weight is above 0
MAX_ROWS = 1 << 16  # cells at a time
RECORD = ("column", "n_neighbors", "kind")


def project(
    adata: Any,
    column: str,
    *,
    small: Any = None,
    key: str = "sketch",
    use_rep: str | None = None,
    n_neighbors: int = 15,
    key_added: str | None = None,
) -> None:
    """Transfer labels, scores or an embedding of a sketch's cells to all cells, with the confidence for each cell.

    Parameters
    ----------
    adata : AnnData
        All cells, with a sketch made by `sketch`.
    column : str
        A column of obs or a key of obsm in ``small``. Without ``small`` it is in ``adata``, where only the cells of the sketch need
        values. Floating-point numbers are scores. Categories, texts, booleans and integers are labels.
    small : AnnData, optional
        The clustered or embedded cells of the sketch, from ``adata[adata.obs["sketch"]].copy()``, in any order.
    key : str
        The key of the sketch.
    use_rep : str, optional
        The coordinates in which distances are measured. The default is the coordinates of the sketch.
    n_neighbors : int
        The number of sketch cells that vote on each cell, including the one that represents it.
    key_added : str, optional
        The name of the result. The default is ``column``.

    Returns
    -------
    None. These are written:

    obs[key_added], or obsm[key_added]
        The values of all cells, in the type of the input: categories stay categories. Cells of the sketch keep their values.
    obs[key_added + "_sure"] : float
        The confidence, from 0 to 1. For labels it is the proportion of the votes. For scores and embeddings it is 1 − variance of
        the voters / variance of all sketch cells. It is 1 if neighbours agree, and 0 if they vary like all cells.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from reduset.anndata import project, sketch
    >>> rng = np.random.default_rng(0)
    >>> pca = rng.normal(size=(3000, 2)) + np.repeat([[0], [9]], [2900, 100], axis=0)
    >>> adata = anndata.AnnData(obs=pd.DataFrame(index=[f"cell{i}" for i in range(3000)]), obsm={"X_pca": pca})
    >>> sketch(adata, 100)
    >>> small = adata[adata.obs["sketch"]].copy()
    >>> small.obs["kind"] = np.where(small.obsm["X_pca"][:, 0] > 5, "rare", "common")
    >>> project(adata, "kind", small=small)
    >>> adata.obs["kind"].value_counts().to_dict()
    {'common': 2900, 'rare': 100}
    """
    check_annotated(adata)
    sketched = _SketchCells.of(adata, key)
    target = column if key_added is None else key_added
    k = min(_validate.whole(n_neighbors, "n_neighbors", 1), len(sketched.rows))
    title = "adata" if small is None else "small"
    all_values = _values_of(adata if small is None else small, column, title)
    values = all_values[sketched.rows if small is None else sketched.rows_in(small)]
    missing = values.missing
    if missing.any():
        raise ValueError(
            f"{column!r} must have a value for every cell of the sketch, but {int(missing.sum()):,} of {len(missing):,} have none "
            f"({first_cells(adata, sketched.rows[missing])}); add the missing values"
        )
    _check_target(adata, sketched, target, column, values.kind == "embedding")
    if values.kind == "scores" and bool(all_values.missing.any()) and bool((values.values == np.round(values.values)).all()):
        name = f"{title}.obs[{column!r}]"
        warn(
            f"{name} holds whole numbers as floating point because some cells have none, so they are averaged as scores; if they "
            f"are labels: {name} = {name}.astype('Int64').astype('category')"
        )
    coordinates = representation(adata, str(sketched.record["use_rep"]) if use_rep is None else use_rep).values
    result = np.empty((adata.n_obs, *values.values.shape[1:]), values.values.dtype)
    confidence = np.empty(adata.n_obs)
    for rows, voters, votes in _votes(coordinates, sketched, k):
        result[rows], confidence[rows] = values.elected(voters, votes)
    result[sketched.rows] = values.values
    projected = _projected(sketched.record) | {target: {"column": column, "n_neighbors": k, "kind": values.kind}}
    facts = {name: [record[name] for record in projected.values()] for name in RECORD}
    columns = {name: np.array(entries, None if name == "n_neighbors" else object) for name, entries in facts.items()}
    sketch_record = sketched.record | {"projected": {"name": np.array(list(projected), object), **columns}}
    if values.kind == "embedding":
        store(adata, {target + CONFIDENCE: confidence}, {key: sketch_record}, {target: result})
    else:
        store(adata, {target + CONFIDENCE: confidence, target: values.as_column(result)}, {key: sketch_record})


@dataclass(frozen=True)
class _SketchCells:
    """The cells of a sketch: its record, their rows in adata and names, and for each cell the number of its sketch cell."""

    record: dict[str, Any]
    rows: Indices
    assignments: Indices
    names: Any

    @classmethod
    def of(cls, adata: Any, key: str) -> _SketchCells:
        record = record_of(adata, key, SKETCH_MADE_BY)
        if record is None or key not in adata.obs or key + ASSIGNMENT not in adata.obs:
            keys = [name for name in adata.uns if record_of(adata, name, SKETCH_MADE_BY) is not None]
            message = unknown_name("key", key, "the sketches of adata", keys)
            raise ValueError(f"{message}; make one first: reduset.anndata.sketch(adata)")
        rows = np.flatnonzero(np.asarray(adata.obs[key], bool))
        if len(rows) == 0:
            raise ValueError(f"obs[{key!r}] marks no cell: the cells of the sketch were removed; make the sketch again")
        if str(record["assignments"]) != NAME or not adata.obs_names.is_unique:
            raise ValueError(
                f"cell names must be unique, because the sketch {key!r} assigns cells by name; call adata.obs_names_make_unique(), "
                "then make the sketch again"
            )
        assignments = adata.obs_names[rows].get_indexer(np.asarray(adata.obs[key + ASSIGNMENT]).astype(str))
        unassigned = np.flatnonzero(assignments < 0)
        if len(unassigned):
            raise ValueError(
                f"the sketch {key!r} was made for {int(record['n']):,} cells, and adata now has {adata.n_obs:,}: the sketch cells "
                f"that represent {len(unassigned):,} cells are missing ({first_cells(adata, unassigned)}); project before you take "
                "a subset, or make the sketch again"
            )
        return cls(record, rows, assignments, adata.obs_names[rows])

    def rows_in(self, small: Any) -> Indices:
        """The row of each sketch cell in another object."""
        check_annotated(small, "small", written=False)
        if not small.obs_names.is_unique:
            raise ValueError("small must have unique cell names, those of the sketch; make it from adata[adata.obs[...]]")
        rows = np.asarray(small.obs_names.get_indexer(self.names))
        if (rows < 0).any():
            raise ValueError(
                f"small must hold all {len(self.rows):,} cells of the sketch, but {int((rows < 0).sum()):,} are missing "
                f"(such as {self.names[rows < 0][0]}); make it from adata[adata.obs[...]]"
            )
        return rows


@dataclass(frozen=True)
class _Values:
    """The values to transfer: (m,) codes of labels, (m,) scores, or (m, c) an embedding."""

    values: NDArray[Any]
    kind: str  # "labels", "scores" or "embedding"
    column: Any = None  # of pandas; the result has its type and categories

    @property
    def missing(self) -> NDArray[np.bool_]:
        """(m,) which cells have no value."""
        if self.kind == "labels":
            return np.asarray(self.values < 0)
        return ~np.isfinite(self.values.reshape(len(self.values), -1)).all(axis=1)

    def __getitem__(self, rows: Indices) -> _Values:
        return _Values(self.values[rows], self.kind, self.column)

    def elected(self, voters: Indices, votes: Array) -> tuple[NDArray[Any], Array]:
        """The values of cells by the votes (r, k) of k sketch cells, and their confidence."""
        if self.kind == "labels":
            labels, of_voter = np.unique(self.values[voters], return_inverse=True)
            proportions = np.stack([votes[:, of_voter == j].sum(axis=1) for j in range(len(labels))], axis=1)
            best = proportions.argmax(axis=1)
            return labels[best], np.minimum(proportions[np.arange(len(best)), best], 1.0)
        near = self.values[voters].reshape(len(voters), -1)
        mean = votes @ near
        centred = near - near.mean(axis=0)
        variance = np.maximum(votes @ np.square(centred) - np.square(mean - near.mean(axis=0)), 0).sum(axis=1)
        overall = float(np.var(self.values.reshape(len(self.values), -1), axis=0).sum())
        confidence = np.clip(1 - variance / overall, 0, 1) if overall > 0 else np.ones(len(mean))
        return mean.reshape(-1, *self.values.shape[1:]), confidence

    def as_column(self, result: NDArray[Any]) -> Any:
        """A column of obs of the original type."""
        if self.kind != "labels":
            return result
        dtype = _as_categories(self.column).dtype
        if getattr(self.column.dtype, "kind", "O") in "biu":
            return np.asarray(dtype.categories)[result]
        return library("pandas").Categorical.from_codes(result, dtype=dtype)


def _as_categories(column: Any) -> Any:
    return column if hasattr(column, "cat") else column.astype("category")


def _of_obs(column: Any) -> _Values:
    if getattr(column.dtype, "kind", "O") == "f":  # integers are labels: the mean of two cluster numbers is a third cluster
        return _Values(column.to_numpy(np.float64, na_value=np.nan), "scores")
    return _Values(np.asarray(_as_categories(column).cat.codes, np.int64), "labels", column)


def _of_obsm(array: Any, name: str) -> _Values:
    try:
        values = np.asarray(dense(array), np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"obsm[{name!r}] must hold numbers only, got {type(array).__name__}; choose a column of obs") from error
    if values.ndim != 2:
        raise ValueError(f"obsm[{name!r}] must have two dimensions (cells, columns), got shape {values.shape}")
    return _Values(values, "embedding")


def _values_of(adata: Any, name: Any, title: str) -> _Values:
    """The values of a column of obs or an array of obsm."""
    check_annotated(adata, title, written=False)
    if isinstance(name, str) and name in adata.obs:
        return _of_obs(adata.obs[name])
    if isinstance(name, str) and name in adata.obsm:
        return _of_obsm(adata.obsm[name], name)
    options = f"the columns of {title}.obs, or the keys of {title}.obsm"
    raise ValueError(unknown_name("column", name, options, [*adata.obs.columns, *adata.obsm]))


def _projected(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The parameters of earlier calls, by the name of the result. They are stored as arrays: a file cannot have keys with "/"."""
    stored = dict(record.get("projected", {}))
    return {str(name): {fact: stored[fact][j] for fact in RECORD} for j, name in enumerate(stored.get("name", ()))}


def _check_target(adata: Any, sketched: _SketchCells, target: str, column: str, embeds: bool) -> None:
    """Raise an error if the result would overwrite values that no earlier call wrote. Missing values may be filled."""
    if target in _projected(sketched.record):
        return
    outside = np.ones(adata.n_obs, bool)
    outside[sketched.rows] = False
    for name, holder in ((target, "obsm" if embeds else "obs"), (target + CONFIDENCE, "obs")):
        if name not in getattr(adata, holder):
            continue
        present = _of_obsm(adata.obsm[name], name) if holder == "obsm" else _of_obs(adata.obs[name])
        if not present.missing[outside if name == column else slice(None)].all():  # the sketch's own values may be replaced
            which = "for cells outside the sketch" if name == column else "already"
            raise ValueError(f"{holder}[{name!r}] has values {which}, which would be overwritten; choose another key_added")


def _votes(coordinates: Floats, sketched: _SketchCells, k: int) -> Iterator[tuple[Indices, Indices, Array]]:
    """For the cells of one sketch cell after the other: their rows, the k sketch cells that vote, and the votes (r, k)."""
    centres = coordinates[sketched.rows]
    neighbours = NearestNeighbors(n_neighbors=k).fit(centres).kneighbors(centres, return_distance=False)
    numbers = np.arange(len(neighbours))
    absent = (neighbours != numbers[:, None]).all(axis=1)  # sketch cells that coincide with at least k others
    neighbours[absent, -1] = numbers[absent]
    order = np.argsort(sketched.assignments, kind="stable")
    ends = np.searchsorted(sketched.assignments[order], np.arange(len(neighbours) + 1)).tolist()
    for atom, voters in enumerate(neighbours):
        targets = (centres[voters] - centres[atom]).astype(np.float64)  # relative to the atom, so that no digits cancel
        squares = np.einsum("kd,kd->k", targets, targets)
        for first in range(ends[atom], ends[atom + 1], MAX_ROWS):
            rows = order[first : min(first + MAX_ROWS, ends[atom + 1])]
            cells = (coordinates[rows] - centres[atom]).astype(np.float64)
            distances = np.sqrt(np.maximum(np.einsum("rd,rd->r", cells, cells)[:, None] + squares - 2 * cells @ targets.T, 0))
            limits = REACH * distances.max(axis=1, keepdims=True)
            votes = (1 - (distances / np.where(limits > 0, limits, 1)) ** 3) ** 3
            yield rows, voters, votes / votes.sum(axis=1, keepdims=True)
