"""Cells of .h5ad files: opened where they are, so that X of all of them is never in memory, and some written whole."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfileobj
from typing import Any

from reduset.anndata.annotated import check_annotated, library
from reduset.io import FileError, head_of, one_line, path_text, suffix_of, write_file


@contextmanager
def opened(path: str, use_rep: str | None = None) -> Iterator[Any]:
    """An AnnData that is backed by a file, read-only; closed in the end."""
    anndata = library()
    head_of(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of layouts that are old, and of names that repeat, which a sketch tells
            adata = anndata.read_h5ad(path, backed="r")
    except Exception as error:  # whatever a damaged file provokes in the libraries that read it
        words = str(error).lower()
        if "lock" in words or "already open" in words:
            raise FileError(f"{path}: is open elsewhere, and being written; close it there first") from error
        raise FileError(f"{path}: cannot be read as AnnData; it is damaged or cut short ({one_line(error)})") from error
    try:
        yield adata
    except (OSError, KeyError, IndexError, RuntimeError) as error:  # what is wrong is found when it is read
        raise FileError(f"{path}: cannot be read as AnnData; it is damaged or cut short ({one_line(error)})") from error
    finally:
        adata.file.close()


def write_annotated(path: Any, adata: Any) -> None:
    """Write an AnnData as .h5ad; it appears whole or not at all.

    Parameters
    ----------
    path : where to, ending in .h5ad
    adata : AnnData, of `to_anndata` say
    """
    name = path_text(path)
    check_annotated(adata, written=False)
    if suffix_of(name) != (".h5ad", False):
        raise FileError(f"{name}: must end in .h5ad, which is what is written")
    write_cells(name, adata)


def write_cells(path: str, adata: Any) -> None:
    """Write an AnnData as .h5ad; it appears whole or not at all. What is wrong there is told of this file, and not of one read."""
    target = Path(os.path.realpath(path))

    def fill(stream: Any) -> None:
        with beside.open("rb") as written:
            copyfileobj(written, stream)

    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".part") as folder:
            beside = Path(folder) / "cells.h5ad"
            adata.write_h5ad(beside)
            write_file(path, fill)
    except FileError:
        raise
    except Exception as error:  # of the disk, and of values for which HDF5 has no way
        raise FileError(f"{path}: cannot be written ({one_line(error)}); nothing was left behind") from error
