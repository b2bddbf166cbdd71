"""What every function here asks of an AnnData: that it is one, columns and arrays by name, and a place for what is written.

An assignment to a view makes a copy of it, as anndata has it, which is what whoever asked for a result there wants; so its warning
is not passed on. A view of a file cannot be copied, and is refused before any work is done.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from reduset.io import listed, nearest, need

MADE_BY = "made_by"


def library() -> Any:
    """The library anndata."""
    return need("reduset.anndata", "anndata", "anndata")


def check_annotated(adata: Any, name: str = "adata", *, written: bool = True) -> None:
    """Refuse what is no AnnData, and, where something is to be written, a view of a file."""
    if not isinstance(adata, library().AnnData):
        kind = type(adata).__name__
        if isinstance(adata, str) or hasattr(adata, "__fspath__"):
            raise TypeError(f"{name} must be an AnnData, got a path; open it first: anndata.read_h5ad(path, backed='r')")
        part = "; take one of its modalities, mdata['rna'] say" if kind == "MuData" else ""
        raise TypeError(f"{name} must be an AnnData, got {kind}{part}")
    if adata.n_obs == 0:
        raise ValueError(f"{name} must hold cells, got none")
    if written and adata.is_view and adata.isbacked:
        raise ValueError(
            f"{name} is a view of a file, which cannot hold results of its own; use {name}.to_memory(), or give the whole file"
        )


def missing_from(name: str, value: Any, place: str, there: Iterable[Any]) -> str:
    """What to say where a name is not there: the nearest one, and those there are."""
    known = [str(each) for each in there]
    return f"{name} must be one of {place}, got {value!r}{nearest(str(value), known)}; there are {listed(known) or 'none'}"


def column_of(adata: Any, key: Any, name: str, holder: str = "adata") -> Any:
    """A column of obs."""
    if not isinstance(key, str) or key not in adata.obs:
        raise ValueError(missing_from(name, key, f"the columns of {holder}.obs", adata.obs.columns))
    column = adata.obs[key]
    return column.to_series() if hasattr(column, "to_series") else column


def labels_of(adata: Any, key: Any, name: str) -> Any:
    """(n,) labels of a column of obs, all there; the names of categories as texts, so that those without cells do not count."""
    column = column_of(adata, key, name)
    lacking = np.flatnonzero(np.asarray(column.isna()))
    if len(lacking):
        raise ValueError(
            f"{name} must give every cell a label, and {len(lacking):,} of {adata.n_obs:,} have none in obs[{key!r}] "
            f"({few_cells(adata, lacking)}); give them one, or leave these cells out: adata[adata.obs[{key!r}].notna()]"
        )
    return np.asarray(column.astype(str))


def few_cells(adata: Any, rows: Any, most: int = 3) -> str:
    """The first of some cells, by name."""
    return "the first are " * (len(rows) > 1) + listed(np.asarray(adata.obs_names)[rows[:most]])


def check_free(adata: Any, columns: Iterable[str], ours: bool, way_out: str) -> None:
    """Refuse to write over columns of obs that are not ours."""
    taken = [] if ours else [each for each in columns if each in adata.obs]
    if taken:
        raise ValueError(f"obs[{taken[0]!r}] is there already, and holds something else that would be lost; {way_out}")


def put(adata: Any, obs: Mapping[str, Any], uns: Mapping[str, Any], obsm: Mapping[str, Any] | None = None) -> None:
    """Write columns, arrays and facts; a view becomes a copy of its own by that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", library().ImplicitModificationWarning)
        for name, array in (obsm or {}).items():
            adata.obsm[name] = array
        for name, column in obs.items():
            adata.obs[name] = column
        for name, facts in uns.items():
            adata.uns[name] = facts


def record_of(adata: Any, key: str, made_by: str) -> dict[str, Any] | None:
    """What was written into uns under a key, if that was written by this function."""
    found = adata.uns.get(key)
    return dict(found) if isinstance(found, Mapping) and str(found.get(MADE_BY)) == made_by else None
