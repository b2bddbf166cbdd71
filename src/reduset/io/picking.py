"""Some rows of files with all their columns, as they are stored: no transform, no choice of columns. O(n), a block at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Indices
from reduset.io.folders import files_of
from reduset.io.registry import open_source
from reduset.io.source import NUMERIC, CodedLabels, ReadOptions, Source

BLOCK = 65536  # rows


def pick_rows(paths: Any, rows: Indices, key: str | None = None) -> dict[str, NDArray[Any]]:
    """Columns of the rows of these numbers, ascending and counted from 0 over all files; those columns that all files have.

    What holds numbers stays numbers, all else becomes text, empty where it is missing. Of an .h5ad file obs comes too.
    """
    parts: list[dict[str, NDArray[Any]]] = []
    before = 0
    for path in files_of(paths):
        source = open_source(path, ReadOptions(key=key, compensate=False))
        found, count = _picked(source, rows - before)
        before += count
        parts.append(found)
    shared = [name for name in parts[0] if all(name in part for part in parts)]
    return {name: np.concatenate([part[name] for part in parts]) for name in shared}


def _picked(source: Source, rows: Indices) -> tuple[dict[str, NDArray[Any]], int]:
    """Those of one file, by their numbers in it, and how many rows it has."""
    kinds = {**source.kinds, **source.aside}
    numbers = [name for name, kind in kinds.items() if kind in NUMERIC]
    others = [name for name, kind in kinds.items() if kind not in NUMERIC]
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in kinds}
    count = 0
    for block in source.blocks(numbers, others, BLOCK):
        here = rows[(rows >= block.first) & (rows < block.end)] - block.first
        count = block.end
        for name, values in zip(numbers, block.columns, strict=True):
            columns[name].append(np.asarray(values)[here])
        for name, labels in zip(others, block.labels, strict=True):
            columns[name].append(_texts(labels.rows(here)))
    return {name: np.concatenate(each) for name, each in columns.items() if each}, count


def _texts(labels: CodedLabels) -> NDArray[Any]:
    known: Sequence[str] = [*map(str, labels.categories), ""]  # the last for those that are missing, whose code is −1
    return np.array(known, object)[labels.codes]
