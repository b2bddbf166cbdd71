"""Arrays and mapped files one after the other as one array that is not copied, and temporary files."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class RowParts:
    """Arrays with the same columns as one array. Rows are read in ascending order, as files are.

    Parameters
    ----------
    parts : (n, d) arrays
    bfloat16 : whether the parts are bfloat16, stored as uint16; they are read as float32
    """

    ndim = 2

    def __init__(self, parts: Sequence[Any], bfloat16: bool = False) -> None:
        self.parts, self.bfloat16 = list(parts), bfloat16
        self.starts = np.cumsum([0, *map(len, self.parts)])
        self.shape = (int(self.starts[-1]), int(self.parts[0].shape[1]))
        self.dtype = np.dtype(np.float32) if bfloat16 else np.result_type(*{part.dtype for part in self.parts})

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return len(self) * self.shape[1] * (2 if self.bfloat16 else self.dtype.itemsize)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        if isinstance(rows, slice):
            a, b, step = rows.indices(len(self))
            if step == 1 and a < b:
                inside = [(part, s) for part, s in zip(self.parts, self.starts, strict=False) if s < b and s + len(part) > a]
                return self._joined([part[max(a - s, 0) : b - s] for part, s in inside])
            rows = np.arange(a, b, step)
        numbers, positions = np.unique(rows, return_inverse=True)
        ends = np.searchsorted(numbers, self.starts)
        pieces = zip(self.parts, self.starts, ends, ends[1:], strict=False)
        values = self._joined([part[numbers[a:b] - s] for part, s, a, b in pieces if a < b])
        return values if np.array_equal(numbers, rows) else values[positions.reshape(-1)]

    def _joined(self, pieces: list[Any]) -> NDArray[Any]:
        if not pieces:
            return np.empty((0, self.shape[1]), self.dtype)
        values = np.asarray(pieces[0]) if len(pieces) == 1 else np.concatenate(pieces, dtype=None if self.bfloat16 else self.dtype)
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32) if self.bfloat16 else values


def scratch(shape: tuple[int, int], dtype: Any, limit: float) -> NDArray[Any]:
    """An empty array: in memory, or in an unnamed temporary file if it has more bytes than the limit."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    if size <= limit:
        return np.empty(shape, dtype)
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if size > free:
        raise OSError(
            errno.ENOSPC,
            f"rows of {size / 1e9:,.1f} GB need a temporary file, and {free / 1e9:,.1f} GB are free; set TMPDIR to another folder",
            tempfile.gettempdir(),
        )
    with tempfile.TemporaryFile(prefix="reduset-") as stream:
        if hasattr(os, "posix_fallocate"):  # a disk that is full later would end the process
            os.posix_fallocate(stream.fileno(), 0, size)
        return np.memmap(stream, dtype, "w+", shape=shape)
