"""The kinds of rows that a user may pass, as one table or as many.

===========================  =================  ====================================================================
passed by the user           in the library     a pass runs
===========================  =================  ====================================================================
array, frame, table          NumPy array        in threads
array on a GPU               `DevicePoints`     as CUDA kernels
path, folder, `open_files`   `FileRows`         block by block from disk
Dask collection, delayed     `PartitionRows`    as tasks, in threads or on the cluster of the Dask client in use
Ray Dataset, references      `PartitionRows`    as tasks on the cluster of Ray
`partitions(data, engine)`   `PartitionRows`    as tasks of Dask, Ray or an executor
===========================  =================  ====================================================================

Sources of at most 4,096 rows are loaded.

**Many tables**, such as the bags of a cohort. A function of all rows of a table runs in the process that has the table. Each table
of Dask or Ray is computed by one task. Files are loaded one after the other. This process therefore has at most one table at a time
in memory, and the results.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from copy import deepcopy
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from reduset._engine import BlockRows, in_blocks
from reduset._frames import table_weights
from reduset._types import Floats
from reduset._validate import checked_rows, one_of
from reduset.data.engine import Engine, ExecutorEngine
from reduset.data.file_rows import FileRows
from reduset.data.partition_rows import PartitionRows, on_each_table
from reduset.io import TableFiles, need, open_files

ENGINES = {"dask": "DaskEngine", "ray": "RayEngine"}
RAY_DATA = ("ObjectRef", "Dataset", "MaterializedDataset")


def as_source(data: Any, name: str = "X") -> Floats:
    """Checked rows: an (n, d) array, `DevicePoints`, `FileRows` or `PartitionRows`."""
    return checked_rows(opened(data), name)


def partitions(data: Any, engine: Any, *, weight_column: str | None = None, **reading: Any) -> PartitionRows:
    """Rows whose passes run as tasks of an engine. Every function of the library that takes rows takes the result.

    Files are read by the tasks. Results do not depend on the engine or on the number of its workers.

    Parameters
    ----------
    data : path, list of paths, folder, the result of `reduset.io.open_files`, or a list of arrays or frames, one for each partition
        A partition of files has whole row groups of a Parquet file. CSV files are one partition each.
    engine : "dask", "ray" or a `concurrent.futures.Executor`
        Tasks run on the cluster of the current Dask client, or on the cluster to which Ray is connected.
    weight_column : name of the column with the weights of the rows, optional
    reading : other arguments of `reduset.io.read`, for paths

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import numpy as np
    >>> from reduset import compress
    >>> from reduset.data import partitions
    >>> blocks = [np.random.default_rng(k).normal(size=(3000, 2)) for k in range(2)]
    >>> with ThreadPoolExecutor(2) as executor:
    ...     small = compress(partitions(blocks, executor), size=20, rng=0)
    >>> small.n_samples
    6000
    """
    chosen = ExecutorEngine(engine) if isinstance(engine, Executor) else engine_named(one_of(engine, "engine", ENGINES))
    if _engine_of(data) not in (None, chosen):
        raise TypeError(f"the data are partitions of another library, got engine={engine!r}; pass them without partitions()")
    if has_paths(data):
        data = open_files(data, **{"transform": "auto"} | reading, weight_column=weight_column)
    if isinstance(data, TableFiles):
        return PartitionRows.of_files(chosen, data)
    return PartitionRows.of_data(chosen, data, weight_column)


@cache
def engine_named(name: str) -> Engine:
    """The engine of a library, which is imported."""
    need(f"engine={name!r}", name, name)
    engine: Engine = getattr(import_module(f"reduset.data.{name}_engine"), ENGINES[name])()
    return engine


def opened(data: Any, weight_column: str | None = None) -> Any:
    """Files as `FileRows`, and data of Dask and Ray as `PartitionRows`, checked in one pass. Other data are unchanged.

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
    engine = _engine_of(data)
    return data if engine is None else PartitionRows.of_data(engine, data, weight_column)


def row_weights(data: Any, rows: Any, sample_weight: Any) -> Any:
    """The weights of the rows as one array, or None: ``sample_weight``, or the weights of a table or of files.

    Parameters
    ----------
    data : as the user passed it
    rows : the result of `opened`
    sample_weight : array, Dask collection, list of delayed arrays or references, or the column from which `opened` took weights
    """
    if sample_weight is None or (isinstance(sample_weight, str) and isinstance(rows, BlockRows)):
        return rows.weights if isinstance(rows, BlockRows) else table_weights(data)
    engine = _engine_of(sample_weight)
    return sample_weight if engine is None else engine.gathered(sample_weight)


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


def _library_of(data: Any) -> str | None:
    """The library of a Dask collection, or of a Dataset or reference of Ray. This imports neither."""
    if type(data).__module__.split(".")[0] == "ray" and type(data).__name__ in RAY_DATA:
        return "ray"
    return "dask" if is_dask(data) else None


def _engine_of(data: Any) -> Engine | None:
    """The engine of a collection or of a list of partitions."""
    libraries = map(_library_of, data if isinstance(data, list | tuple) else [data])
    name = next(filter(None, libraries), None)
    return None if name is None else engine_named(name)


def is_elsewhere(table: Any) -> bool:
    """Whether the rows are not in memory: a collection of Dask or Ray, a delayed table, files, or rows in blocks."""
    return in_blocks(table) or isinstance(table, str | os.PathLike | TableFiles) or _library_of(table) is not None


def open_tables(tables: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Files and collections as rows in blocks, after input checks; other tables are unchanged. ``names`` are for errors."""
    libraries = [_library_of(table) for table in tables]
    result = [
        opened(table) if library is None and is_elsewhere(table) else table
        for table, library in zip(tables, libraries, strict=True)
    ]
    for name in ENGINES:
        remote = [k for k, library in enumerate(libraries) if library == name]
        if remote:
            given = [tables[k] for k in remote], [names[k] for k in remote]
            for k, rows in zip(remote, PartitionRows.of_tables(engine_named(name), *given), strict=True):
                result[k] = rows
    return result


def on_each(function: Callable[..., Any], tables: Sequence[Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """The results of ``function(rows, *arguments[k])`` for the k-th table, in order; ``rows`` are all rows of the table."""
    remote = [k for k, table in enumerate(tables) if getattr(table, "is_one_block", False)]  # one task per table
    results = iter(on_each_table(function, [tables[k] for k in remote], [arguments[k] for k in remote]))
    for k, table in enumerate(tables):
        if k in remote:
            yield next(results)
        else:
            yield function(table.map_rows(np.array) if isinstance(table, BlockRows) else table, *deepcopy(arguments[k]))
