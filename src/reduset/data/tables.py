"""Many tables, such as the bags of a cohort, as Dask collections, delayed arrays or files.

A function of all rows of a table runs in the process that has the table. Each Dask table is computed by one task. Files are loaded
one after the other. This process therefore has at most one table at a time in memory, and the results.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from reduset._engine import BlockRows, in_blocks
from reduset.data.source import is_dask, opened
from reduset.io import TableFiles


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
