"""The kinds of rows that a user may pass, as one table or as many.

===========================  =================  ====================================================================
passed by the user           in the library     a pass runs
===========================  =================  ====================================================================
array, frame, table          NumPy array        in threads
array on a GPU               `DevicePoints`     as CUDA kernels
path, folder, `open_files`   `FileRows`         block by block from disk
Dask collection, delayed     `DaskRows`         as tasks, in threads or on the cluster of the Dask client in use
===========================  =================  ====================================================================

Sources of at most 4,096 rows are loaded.

**Many tables**, such as the bags of a cohort. A function of all rows of a table runs in the process that has the table. Each Dask
table is computed by one task. Files are loaded one after the other. This process therefore has at most one table at a time in
memory, and the results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from reduset._engine import BlockRows, in_blocks
from reduset._frames import table_weights
from reduset._types import Floats
from reduset._validate import checked_rows
from reduset.data.file_rows import FileRows
from reduset.io import TableFiles, open_files


def as_source(data: Any, name: str = "X") -> Floats:
    """Checked rows: an (n, d) array, `DevicePoints`, `FileRows` or `DaskRows`."""
    return checked_rows(opened(data), name)


def opened(data: Any, weight_column: str | None = None) -> Any:
    """Files as `FileRows` and Dask collections as `DaskRows`. Their rows are checked in one pass. Other data are unchanged.

    Parameters
    ----------
    data : as the user passed it
    weight_column : name of the column with the weights of the rows, optional
    """
    if in_blocks(data):
        return data
    if has_paths(data):
        return FileRows(open_files(data, transform="auto", weight_column=weight_column))
    if isinstance(data, TableFiles):
        return FileRows(data)
    if _has_partitions(data):
        from reduset.data.dask_rows import dask_rows

        return dask_rows(data, weight_column)
    return data


def row_weights(data: Any, rows: Any, sample_weight: Any) -> Any:
    """The weights of the rows as one array, or None: ``sample_weight``, or the weights of a table or of files.

    Parameters
    ----------
    data : as the user passed it
    rows : the result of `opened`
    sample_weight : array, Dask collection, list of delayed arrays, or the name of the column from which `opened` took the weights
    """
    if sample_weight is None or (isinstance(sample_weight, str) and isinstance(rows, BlockRows)):
        return rows.weights if isinstance(rows, BlockRows) else table_weights(data)
    if _has_partitions(sample_weight):
        from reduset.data.dask_rows import gathered

        return gathered(sample_weight)
    return sample_weight


def has_paths(data: Any) -> bool:
    """Whether it is a path, or a list of paths."""
    paths = data if isinstance(data, list | tuple) and data else [data]
    return all(isinstance(path, str | os.PathLike) for path in paths)


def is_dask(data: Any) -> bool:
    """Whether it is one Dask collection. This does not import Dask."""
    if "dask" not in sys.modules or isinstance(data, np.ndarray):
        return False
    from dask.base import is_dask_collection

    return bool(is_dask_collection(data))


def _has_partitions(data: Any) -> bool:
    """Whether it is a Dask collection or a list of delayed partitions."""
    return is_dask(data) or (isinstance(data, list | tuple) and any(map(is_dask, data)))


def is_elsewhere(table: Any) -> bool:
    """Whether the rows are not in memory: a Dask collection, a delayed array or frame, files, or rows in blocks."""
    return in_blocks(table) or isinstance(table, str | os.PathLike | TableFiles) or is_dask(table)


def open_tables(tables: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Files and Dask collections as rows in blocks, after input checks; other tables are unchanged. ``names`` are for errors."""
    result = [table if is_dask(table) or not is_elsewhere(table) else opened(table) for table in tables]
    remote = [k for k, table in enumerate(tables) if is_dask(table)]
    if remote:
        from reduset.data.dask_rows import DaskRows

        for k, rows in zip(remote, DaskRows.of_tables([tables[k] for k in remote], [names[k] for k in remote]), strict=True):
            result[k] = rows
    return result


def on_each(function: Callable[..., Any], tables: Sequence[Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """The results of ``function(rows, *arguments[k])`` for the k-th table, in order; ``rows`` are all rows of the table."""
    remote = {k for k, table in enumerate(tables) if getattr(table, "is_one_block", False)}  # one Dask task per table
    results: Iterator[Any] = iter(())
    if remote:
        from reduset.data.dask_rows import on_each_table

        results = iter(on_each_table(function, [tables[k] for k in sorted(remote)], [arguments[k] for k in sorted(remote)]))
    for k, table in enumerate(tables):
        if k in remote:
            yield next(results)
        else:
            yield function(table.map_rows(np.array) if isinstance(table, BlockRows) else table, *deepcopy(arguments[k]))
