"""project: what is known of a sketch's cells, carried to all cells, with how sure that is.

A cell asks the sketch cell that stands for it and the sketch cells nearest to that one: k, at distances d₁ … d_k, the largest D.

    label = the one with the largest share of Σ aⱼ,    score = Σ aⱼ sⱼ / Σ aⱼ,    aⱼ = (1 − (dⱼ / 1.05 D)³)³,

which falls off smoothly (Cleveland's tricube weights, 1979). Votes are by closeness alone and not by mass: a rare cell near its own
kind is not outvoted by a common kind that is far. O(n·k·d), one sketch cell at a time, and O(m²·d) for the neighbours of its cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, Floats, Indices
from reduset.anndata.annotated import check_annotated, few_cells, missing_from, put, record_of
from reduset.anndata.representation import representation
from reduset.anndata.sketching import ASSIGNMENT, NAME, OURS
from reduset.io import need

SURE = "_sure"
BEYOND = 1.05  # of the farthest candidate's distance, so that its vote counts too
MOST_ROWS = 1 << 16  # cells at a time


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
    """Carry labels, scores or an embedding of a sketch's cells to all cells, with how sure that is.

    Parameters
    ----------
    adata : AnnData
        All cells, with a sketch that `sketch` made.
    column : str
        A column of obs, or a key of obsm: of ``small`` if that is given, else of ``adata`` itself, where only the sketch's cells
        need have values. Numbers with a decimal point are scores; categories, texts, flags and whole numbers are labels.
    small : AnnData, optional
        The sketch's cells, ``adata[adata.obs["sketch"]].copy()``, after they were clustered or embedded; in any order.
    key : str, under which the sketch was made
    use_rep : str, optional
        Where cells are near each other; what the sketch was made in, if not given.
    n_neighbors : int
        How many cells of the sketch each cell asks, the one that stands for it among them.
    key_added : str, optional
        What the result is called; as ``column`` if not given.

    Returns
    -------
    None. Written are

    obs[key_added], or obsm[key_added]
        Of the kind that it was: categories stay categories. Cells of the sketch keep what they have.
    obs[key_added + "_sure"] : float, from 0 to 1
        Of labels the share of the vote for the one that won. Of scores and embeddings 1 − the spread (variance) among the cells
        that were asked over that among all: 1 where neighbours agree, 0 where they differ as much as any two cells.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from reduset.anndata import project, sketch
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal(size=(3000, 2)) + np.repeat([[0], [9]], [2900, 100], axis=0)
    >>> adata = anndata.AnnData(obs=pd.DataFrame(index=[f"cell{i}" for i in range(3000)]), obsm={"X_pca": places})
    >>> sketch(adata, 100)
    >>> small = adata[adata.obs["sketch"]].copy()
    >>> small.obs["kind"] = np.where(small.obsm["X_pca"][:, 0] > 5, "rare", "common")
    >>> project(adata, "kind", small=small)
    >>> adata.obs["kind"].value_counts().to_dict()
    {'common': 2900, 'rare': 100}
    """
    check_annotated(adata)
    seats = _Seats.of(adata, key)
    target = column if key_added is None else key_added
    k = min(_validate.whole(n_neighbors, "n_neighbors", 1), len(seats.rows))
    of_column = _found(adata if small is None else small, column, "adata" if small is None else "small")
    values = of_column[seats.rows] if small is None else of_column[seats.seats_in(small)]
    values.check(adata, seats.rows, column)
    _check_target(adata, seats, target, column, values)
    if values.kind == "scores" and bool(of_column.lacks.any()) and bool((values.values == np.round(values.values)).all()):
        holder = "adata" if small is None else "small"
        warn(
            f"{holder}.obs[{column!r}] holds whole numbers, with a decimal point since some cells have none, so they are averaged "
            f"as scores; if they are labels: {holder}.obs[{column!r}] = {holder}.obs[{column!r}].astype('Int64').astype('category')"
        )
    where = representation(adata, seats.use_rep if use_rep is None else use_rep).values
    result, sure = values.empty(adata.n_obs), np.empty(adata.n_obs)
    for rows, asked, votes in _votes(where, seats, k):
        result[rows], sure[rows] = values.settled(asked, votes)
    result[seats.rows] = values.values
    record = dict(seats.record)
    params = {"column": column, "n_neighbors": k, "kind": values.kind}
    record["projected"] = _as_arrays(_projected(record) | {target: params})
    obs = {target + SURE: sure} | ({} if values.embeds else {target: values.told(result)})
    put(adata, obs, {key: record}, {target: result} if values.embeds else None)


@dataclass(frozen=True)
class _Seats:
    """The cells of a sketch, their rows in adata, and for each cell of adata which of them stands for it."""

    record: dict[str, Any]
    rows: Indices
    assignments: Indices
    names: Any

    @classmethod
    def of(cls, adata: Any, key: str) -> _Seats:
        record = record_of(adata, key, OURS)
        if record is None or key not in adata.obs or key + ASSIGNMENT not in adata.obs:
            made = [name for name in adata.uns if record_of(adata, name, OURS) is not None]
            raise ValueError(
                missing_from("key", key, "the sketches of adata", made) + "; make one first: reduset.anndata.sketch(adata)"
            )
        rows = np.flatnonzero(np.asarray(adata.obs[key], bool))
        if len(rows) == 0:
            raise ValueError(f"obs[{key!r}] marks no cell: the sketch's cells were left out since; make it anew")
        if str(record["assignments"]) == NAME:
            assignments = adata.obs_names[rows].get_indexer(np.asarray(adata.obs[key + ASSIGNMENT]).astype(str))
        else:
            if int(record["n"]) != adata.n_obs:
                raise ValueError(
                    _unfit(adata, record, key)
                    + "; assignments are positions, because cell names were not unique; make the sketch again"
                )
            assignments = _seats_of(rows, np.asarray(adata.obs[key + ASSIGNMENT], np.int64), key)
        lost = np.flatnonzero(assignments < 0)
        if len(lost):
            raise ValueError(
                f"{_unfit(adata, record, key)}: of {len(lost):,} cells ({few_cells(adata, lost)}) the one that stands for "
                "them is not there; project before taking a subset, or make the sketch anew"
            )
        return cls(record, rows, assignments, adata.obs_names[rows])

    @property
    def use_rep(self) -> str:
        """Where the sketch was made."""
        return str(self.record["use_rep"])

    def seats_in(self, small: Any) -> Indices:
        """Where each of these cells is in another object."""
        check_annotated(small, "small", written=False)
        if str(self.record["assignments"]) != NAME or not small.obs_names.is_unique:
            if small.n_obs != len(self.rows):
                raise ValueError(
                    f"small must hold the sketch's {len(self.rows):,} cells in their order, for names of cells are not unique; "
                    f"got {small.n_obs:,}"
                )
            return np.arange(len(self.rows))
        found = small.obs_names.get_indexer(self.names)
        absent = int((found < 0).sum())
        if absent:
            raise ValueError(
                f"small must hold all {len(self.rows):,} cells of the sketch, {absent:,} are not there "
                f"({self.names[found < 0][0]} for one); make it from adata[adata.obs[...]] and leave none out"
            )
        return np.asarray(found)


def _seats_of(rows: Indices, positions: Indices, key: str) -> Indices:
    """Which of the sketch's cells has each of these positions; refused where cells have moved since, and positions have not."""
    assignments = np.minimum(np.searchsorted(rows, positions), len(rows) - 1)
    astray = int((rows[assignments] != positions).sum())
    standing = np.unique(assignments)
    if astray or 2 * int((assignments[rows[standing]] == standing).sum()) < len(
        standing
    ):  # cells that stand for any do for themselves
        seen = f"of {astray:,} cells the one that stands for them is not where it was" if astray else "few stand for themselves"
        raise ValueError(
            f"the order of the cells has changed since the sketch {key!r} was made ({seen}), and assignments are "
            "positions, because cell names were not unique; call adata.obs_names_make_unique(), then make the sketch again"
        )
    return assignments


def _unfit(adata: Any, record: dict[str, Any], key: str) -> str:
    return f"the sketch {key!r} was made for {int(record['n']):,} cells, and adata now has {adata.n_obs:,}"


@dataclass(frozen=True)
class _Values:
    """What is carried: (m,) codes of labels, or (m, c) numbers."""

    values: NDArray[Any]
    kind: str  # "labels", "scores" or "embedding"
    column: Any = None  # of pandas, whose kind and categories the result has

    @property
    def embeds(self) -> bool:
        return self.kind == "embedding"

    @property
    def lacks(self) -> NDArray[np.bool_]:
        """Which cells have no value."""
        if self.kind == "labels":
            return np.asarray(self.values < 0)
        return ~np.isfinite(self.values.reshape(len(self.values), -1)).all(axis=1)

    def __getitem__(self, rows: Indices) -> _Values:
        return _Values(self.values[rows], self.kind, self.column)

    def check(self, adata: Any, rows: Indices, name: str) -> None:
        """Refuse cells of the sketch that have no value."""
        lacks = self.lacks
        if lacks.any():
            raise ValueError(
                f"{name!r} must have a value for every cell of the sketch, {int(lacks.sum()):,} of {len(rows):,} have none "
                f"({few_cells(adata, rows[lacks])}); fill these in first"
            )

    def empty(self, n: int) -> NDArray[Any]:
        return np.empty((n, *self.values.shape[1:]), self.values.dtype)

    def settled(self, asked: Indices, votes: Array) -> tuple[NDArray[Any], Array]:
        """What candidates (k,) say of cells by their votes (r, k), and how sure that is."""
        if self.kind == "labels":
            said, place = np.unique(self.values[asked], return_inverse=True)
            shares = np.stack([votes[:, place == j].sum(axis=1) for j in range(len(said))], axis=1)
            best = shares.argmax(axis=1)
            return said[best], np.minimum(shares[np.arange(len(best)), best], 1.0)
        near = self.values[asked].reshape(len(asked), -1)
        mean = votes @ near
        spread = np.maximum(votes @ np.square(near - near.mean(axis=0)) - np.square(mean - near.mean(axis=0)), 0).sum(axis=1)
        overall = float(np.var(self.values.reshape(len(self.values), -1), axis=0).sum())
        sure = np.clip(1 - spread / overall, 0, 1) if overall > 0 else np.ones(len(mean))
        return mean.reshape(-1, *self.values.shape[1:]), sure

    def told(self, result: NDArray[Any]) -> Any:
        """A column of obs, of the kind that the values were."""
        if self.kind != "labels":
            return result
        pandas = need("reduset.anndata", "pandas", "anndata")
        if getattr(self.column.dtype, "kind", "O") in "biu":
            return np.asarray(_as_categories(self.column).cat.categories)[result]
        return pandas.Categorical.from_codes(result, dtype=_as_categories(self.column).dtype)


def _as_categories(column: Any) -> Any:
    return column if hasattr(column, "cat") else column.astype("category")


def _of_obs(column: Any) -> _Values:
    if getattr(column.dtype, "kind", "O") == "f":  # whole numbers are labels: the mean of two clusters' numbers is a third's
        return _Values(column.to_numpy(np.float64, na_value=np.nan), "scores")
    return _Values(np.asarray(_as_categories(column).cat.codes, np.int64), "labels", column)


def _of_obsm(item: Any, name: str) -> _Values:
    held = item.compute() if hasattr(item, "compute") else item
    held = held.toarray() if hasattr(held, "toarray") else held
    try:
        array = np.asarray(held, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"obsm[{name!r}] must hold numbers, got {type(item).__name__} with others; choose a column of obs"
        ) from error
    if array.ndim != 2:
        raise ValueError(f"obsm[{name!r}] must have two dimensions (cells, columns), got shape {array.shape}")
    return _Values(array, "embedding")


def _found(holder: Any, name: Any, called: str) -> _Values:
    """A column of obs or an array of obsm, by name."""
    check_annotated(holder, called, written=False)
    if isinstance(name, str) and name in holder.obs:
        return _of_obs(holder.obs[name])
    if isinstance(name, str) and name in holder.obsm:
        return _of_obsm(holder.obsm[name], name)
    place = f"the columns of {called}.obs, or the keys of {called}.obsm"
    raise ValueError(missing_from("column", name, place, [*holder.obs.columns, *holder.obsm]))


def _projected(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What was carried before, by the name that it was written under; the first version had one record a name."""
    found = dict(record.get("projected", {}))
    if isinstance(found.get("name"), Mapping) or "name" not in found:
        return {name: dict(facts) for name, facts in found.items() if isinstance(facts, Mapping)}
    names = [str(name) for name in found.pop("name")]
    return {name: {fact: np.asarray(each)[j] for fact, each in found.items()} for j, name in enumerate(names)}


def _as_arrays(projected: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Names and facts side by side, since a name with "/" in it would be a folder in a file."""
    facts = {fact: [each.get(fact, "") for each in projected.values()] for fact in ("column", "n_neighbors", "kind")}
    texts = {fact: np.array([str(each) for each in facts[fact]], object) for fact in ("column", "kind")}
    numbers = np.array([int(each or 0) for each in facts["n_neighbors"]], np.int64)
    return {"name": np.array(list(projected), object), **texts, "n_neighbors": numbers}


def _check_target(adata: Any, seats: _Seats, target: str, column: str, values: _Values) -> None:
    """Refuse to write over what others wrote; what an earlier call wrote may go, and empty places may be filled."""
    if target in _projected(seats.record):
        return
    outside = np.ones(adata.n_obs, bool)
    outside[seats.rows] = False
    for name in (target, target + SURE):
        embeds = values.embeds and name == target
        if name not in (adata.obsm if embeds else adata.obs):
            continue
        there = _of_obsm(adata.obsm[name], name) if embeds else _of_obs(adata.obs[name])
        if there.lacks[outside if name == column else slice(None)].all():  # those of the sketch are told anew
            continue
        which = "for cells outside the sketch, which" if name == column else "already, which"
        raise ValueError(f"{'obsm' if embeds else 'obs'}[{name!r}] has values {which} would be lost; choose key_added")


def _votes(where: Floats, seats: _Seats, k: int) -> Iterator[tuple[Indices, Indices, Array]]:
    """For the cells of one sketch cell after the other: their rows, the k sketch cells that vote on them, and the votes (r, k)."""
    sketched = where[seats.rows]
    near = NearestNeighbors(n_neighbors=k).fit(sketched).kneighbors(sketched, return_distance=False)
    own = np.arange(len(near))
    lacking = (near != own[:, None]).all(axis=1)  # where others lie in the same place
    near[lacking, -1] = own[lacking]
    order = np.argsort(seats.assignments, kind="stable")
    ends = np.searchsorted(seats.assignments[order], np.arange(len(near) + 1))
    for atom, (a, b) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
        asked = near[atom]
        targets = (sketched[asked] - sketched[atom]).astype(np.float64)  # relative to it, so that no digits cancel
        squares = np.einsum("kd,kd->k", targets, targets)
        for first in range(a, b, MOST_ROWS):
            rows = order[first : min(first + MOST_ROWS, b)]
            cells = (where[rows] - sketched[atom]).astype(np.float64)
            distances = np.sqrt(np.maximum(np.einsum("rd,rd->r", cells, cells)[:, None] + squares - 2 * cells @ targets.T, 0))
            farthest = BEYOND * distances.max(axis=1, keepdims=True)
            votes = (1 - (distances / np.where(farthest > 0, farthest, 1)) ** 3) ** 3
            yield rows, asked, votes / votes.sum(axis=1, keepdims=True)
