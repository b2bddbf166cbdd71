"""AnnData objects: checks of input, columns by name, results in obs, obsm and uns, and .h5ad files.

Writing into a view makes a copy of it. This is intended here, so anndata's warning is suppressed. A view of a file cannot be
copied, and raises an error before the computation. Files are written completely or not at all.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from typing import Any

import numpy as np

from reduset.certificate import ErrorProfile
from reduset.io import FileError, head_of, listed, nearest, need, one_line, path_text, suffix_of, write_file

MADE_BY = "made_by"


def library(name: str = "anndata") -> Any:
    """The library anndata, or another library that it requires, such as pandas."""
    return need("reduset.anndata", name, "anndata")


def check_annotated(adata: Any, name: str = "adata", *, written: bool = True) -> None:
    """Raise an error unless ``adata`` is an AnnData with cells; with ``written`` also for a view of a file."""
    if not isinstance(adata, library().AnnData):
        kind = type(adata).__name__
        if isinstance(adata, str) or hasattr(adata, "__fspath__"):
            raise TypeError(f"{name} must be an AnnData, got a path; open it first: anndata.read_h5ad(path, backed='r')")
        modality = "; use one of its modalities, such as mdata['rna']" if kind == "MuData" else ""
        raise TypeError(f"{name} must be an AnnData, got {kind}{modality}")
    if adata.n_obs == 0:
        raise ValueError(f"{name} must hold cells, got none")
    if written and adata.is_view and adata.isbacked:
        raise ValueError(f"{name} is a view of a file, which cannot hold results; use {name}.to_memory(), or pass the whole file")


def unknown_name(parameter: str, value: Any, options: str, names: Iterable[Any]) -> str:
    """The message for a name that is not among the options, with the nearest one."""
    titles = [str(name) for name in names]
    hint = nearest(str(value), titles)
    return f"{parameter} must be one of {options}, got {value!r}{hint}; there are {listed(titles) or 'none'}"


def column_of(adata: Any, key: Any, name: str) -> Any:
    """A column of obs; ``name`` is the parameter that names it."""
    if not isinstance(key, str) or key not in adata.obs:
        raise ValueError(unknown_name(name, key, "the columns of adata.obs", adata.obs.columns))
    column = adata.obs[key]
    return column.to_series() if hasattr(column, "to_series") else column


def labels_of(adata: Any, key: Any, name: str) -> Any:
    """(n,) labels of a column of obs as text, none missing; categories without cells do not count."""
    column = column_of(adata, key, name)
    missing = np.flatnonzero(np.asarray(column.isna()))
    if len(missing):
        raise ValueError(
            f"{name} must give every cell a label, and {len(missing):,} of {adata.n_obs:,} have none in obs[{key!r}] "
            f"({first_cells(adata, missing)}); add labels, or omit these cells: adata[adata.obs[{key!r}].notna()]"
        )
    return np.asarray(column.astype(str))


def first_cells(adata: Any, rows: Any) -> str:
    """The names of the first three of these cells."""
    return "the first are " * (len(rows) > 1) + listed(np.asarray(adata.obs_names)[rows[:3]])


def check_free(adata: Any, columns: Iterable[str], way_out: str) -> None:
    """Raise an error if obs has one of these columns."""
    existing = next((name for name in columns if name in adata.obs), None)
    if existing is not None:
        raise ValueError(f"obs[{existing!r}] exists and would be overwritten; {way_out}")


def previous_record(adata: Any, key: Any, made_by: str, columns: Iterable[str]) -> dict[str, Any]:
    """The facts of an earlier call with the same key, which is replaced. Raises an error if there is other content."""
    if not isinstance(key, str) or not key:
        raise TypeError(f"key_added must be a name for columns of obs, got {key!r}")
    record = record_of(adata, key, made_by)
    if record is None:
        way_out = f"choose another key_added than {key!r}, or delete it"
        check_free(adata, columns, way_out)
        if key in adata.uns:
            raise ValueError(f"uns[{key!r}] exists and was not written by {made_by}; {way_out}")
    return record or {}


def store(adata: Any, obs: Mapping[str, Any], uns: Mapping[str, Any], obsm: Mapping[str, Any] | None = None) -> None:
    """Write columns, arrays and facts; a view becomes a copy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", library().ImplicitModificationWarning)
        for name, array in (obsm or {}).items():
            adata.obsm[name] = array
        for name, column in obs.items():
            adata.obs[name] = column
        for name, facts in uns.items():
            adata.uns[name] = facts


def record_of(adata: Any, key: str, made_by: str) -> dict[str, Any] | None:
    """The facts in uns under a key; None if another function wrote them."""
    record = adata.uns.get(key)
    return dict(record) if isinstance(record, Mapping) and str(record.get(MADE_BY)) == made_by else None


def profile_facts(profile: ErrorProfile) -> dict[str, Any]:
    """The error at every scale, as arrays."""
    return {name: getattr(profile, name) for name in ("bandwidths", "relative_errors", "intervals")}


# -- files --------------------------------------------------------------------------------------------------------------------


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """An AnnData backed by a file, read-only, so that X is never in memory as a whole. The file is closed at the end."""
    anndata = library()
    head_of(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old layouts, and repeated names, for which `sketch` warns
            adata = anndata.read_h5ad(path, backed="r")
    except Exception as error:  # a damaged file may cause any exception in the libraries that read it
        message = str(error).lower()
        if "lock" in message or "already open" in message:
            raise FileError(f"{path}: is open for writing in another program; close it there first") from error
        raise FileError(f"{path}: cannot be read as AnnData; it is damaged or truncated ({one_line(error)})") from error
    try:
        yield adata
    except (OSError, KeyError, IndexError, RuntimeError) as error:  # damage that appears when arrays are read
        raise FileError(f"{path}: cannot be read as AnnData; it is damaged or truncated ({one_line(error)})") from error
    finally:
        adata.file.close()


def write_annotated(path: Any, adata: Any) -> None:
    """Write an AnnData as .h5ad, completely or not at all: first to a temporary folder next to the target.

    Parameters
    ----------
    path : the file, ending in .h5ad
    adata : AnnData
    """
    name = path_text(path)
    check_annotated(adata, written=False)
    if suffix_of(name) != (".h5ad", False):
        raise FileError(f"{name}: must end in .h5ad, the only format for AnnData")
    target = Path(os.path.realpath(name))

    def fill(stream: Any) -> None:
        with written.open("rb") as source:
            copyfileobj(source, stream)

    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".part") as folder:
            written = Path(folder) / "cells.h5ad"
            adata.write_h5ad(written)
            write_file(name, fill)
    except FileError:
        raise
    except Exception as error:  # errors of the disk, and values that HDF5 cannot store
        raise FileError(f"{name}: cannot be written ({one_line(error)}); nothing was left behind") from error
