"""Rows of files, read block by block from disk. Each pass reads the files once, and reads the next block during the current one.

Two blocks are in memory at a time, for any number and size of files. Opening the files counts and checks the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import BlockRows, cached_property
from reduset.io import FileError, Table, TableFiles, ahead


class FileRows(BlockRows):
    """The rows of files with the same columns. Rows that are dropped for missing values do not count.

    Parameters
    ----------
    files : the result of `reduset.io.open_files`

    Attributes
    ----------
    columns : d names
    weights : (n,) from the weight column, or None
    notes : sentences about the steps of reading, such as dropped rows
    in_one_unit : True if all columns have the same unit, such as transformed channels
    """

    def __init__(self, files: TableFiles) -> None:
        self.files = files
        self.columns, self.in_one_unit = list(files.columns), files.in_one_unit
        lengths: list[int] = []
        positions, dropped, weights, types = [0], 0, [], set()
        for block in ahead(files.blocks()):
            _validate.points(block.values, f"X (its rows from {sum(lengths):,} on)")
            lengths.append(len(block))
            positions.append(positions[-1] + len(block) + block.dropped)
            dropped += block.dropped
            weights.append(np.empty(0) if block.weights is None else block.weights)
            types.add(block.values.dtype)
        if not lengths:
            raise FileError(f"{files.sources[0]}: has no rows to read")
        super().__init__(lengths, len(files.columns), np.result_type(*types))
        self._positions = positions
        self.weights = np.concatenate(weights) if len(weights[0]) else None
        self.notes = files.notes(dropped)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The names of the files."""
        return self.files.sources

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], blocks: Sequence[int]) -> Iterable[Any]:
        for k, block, given in zip(blocks, self._read(blocks), arguments, strict=True):
            if len(block) != self.starts[k + 1] - self.starts[k]:
                raise FileError(f"{self.sources[0]}: has changed since it was opened; open it again")
            yield function(np.ascontiguousarray(block.values, self.dtype), *given)

    def _read(self, blocks: Sequence[int]) -> Iterator[Table]:
        """Blocks in ascending order; other blocks are skipped if the format allows it."""
        ends = [k for k, block in enumerate(blocks) if k + 1 == len(blocks) or blocks[k + 1] != block + 1]
        first = 0
        for last in ends:
            tables = ahead(self.files.blocks(start=self._positions[blocks[first]]))
            for _ in range(first, last + 1):
                yield next(tables)
            tables.close()
            first = last + 1
