"""The memory that a cover or an audit may use: the limit, the estimate before the start, and block sizes that keep within it.

Both count what a call allocates: rows that it loads, and its working set. Mapped files and arrays of the caller do not count.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from reduset._describe import Row
from reduset._engine import FetchedRows, HostRows, physical_memory, search_sizes, traversal_sizes
from reduset._progress import Progress

UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
READER_BLOCKS = 6
CENTRES_SHARE = 0.3  # proportion of the limit for the centres of an audit, which are compared in parts


class Memory(NamedTuple):
    """Estimated bytes, and the limit, which may be infinite."""

    needed: int
    limit: float

    def __str__(self) -> str:
        limit = f" of {as_size(self.limit)} allowed" if self.limit < np.inf else ""
        return f"working set of at most {as_size(self.needed)}{limit}"


def as_size(count: float) -> str:
    """Bytes in a unit that gives few digits."""
    unit, scale = ("GB", 1e9) if count >= 1e9 else ("MB", 1e6)
    return f"{count / scale:,.3g} {unit}"


def memory_rows(memory: Memory | None) -> list[Row]:
    """The estimate in a description. It is printed if there is a limit."""
    if memory is None:
        return []
    return [Row("memory", str(memory) if memory.limit < np.inf else "", "Estimated bytes.", {"memory": memory.needed})]


def memory_of(value: Any) -> float:
    """The checked ``max_memory`` in bytes; infinite for None."""
    if value is None:
        return np.inf
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*([kmgt]i?)?b?\s*", value, re.IGNORECASE) if isinstance(value, str) else None
    if found:
        value = float(found[1]) * UNITS[(found[2] or "").lower()]
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 1 <= value < np.inf:
        raise ValueError(f'max_memory must be a number of bytes, or text such as "16GB"; got {value!r}')
    return float(value)


def loadable(limit: float) -> float:
    """The largest number of bytes of rows that are loaded."""
    return min(limit / 2, physical_memory())


def of_reader(rows: FetchedRows) -> int:
    """Bytes for reading blocks: some exist at the same time, as text and as numbers."""
    return READER_BLOCKS * 8 * int(np.diff(rows.rows.starts).max()) * rows.dimension


def require_no_limit(limit: float) -> None:
    """Raise an error for a limit with rows on a GPU."""
    if limit < np.inf:
        raise ValueError("max_memory must not be given for rows on a GPU; omit it, or use the processor (set_device('cpu'))")


def limited(rows: Any, limit: float, loaded: int = 0) -> Any:
    """Rows whose computations keep within a limit, ``loaded`` bytes of which are used for the rows."""
    if rows.arrays is not np:
        require_no_limit(limit)
        return rows
    rows.max_memory, rows.loaded = limit - loaded, loaded
    return rows


def for_net(rows: Any, display: Progress) -> Memory | None:
    """Memory for the net of some rows. None on a GPU."""
    if rows.arrays is not np:
        return None
    return _announced(rows, search_sizes(rows.count, rows.dimension, rows.max_memory).memory, display)


def for_traversal(rows: Any, centres: int, extra: int, display: Progress) -> Memory | None:
    """Memory for a traversal of rows with some centres, and ``extra`` bytes. Sets the block sizes. None on a GPU."""
    if not isinstance(rows, HostRows):
        return None
    if isinstance(rows, FetchedRows):  # fetched rows are kept
        extra += of_reader(rows)
        return _announced(rows, 2 * _sized(rows, centres, (rows.max_memory - extra) / 2) + extra, display)
    return _announced(rows, _sized(rows, centres, rows.max_memory - extra) + extra, display)


def for_audit(rows: Any, kept: int, compare: bool, close: bool, display: Progress) -> tuple[Memory | None, int]:
    """Memory for an audit, and the number of kept rows that are compared at once. Sets the block sizes."""
    if not isinstance(rows, HostRows):
        return None, kept
    d, extra = rows.dimension, 40 * rows.count
    part = kept
    if CENTRES_SHARE * rows.max_memory < np.inf:
        part = min(kept, max(1, int(CENTRES_SHARE * rows.max_memory) // (48 * d)))
    needed = _sized(rows, kept if compare else part, rows.max_memory - extra)
    if close:
        needed = max(needed, search_sizes(kept, d, rows.max_memory - extra).memory)
    return _announced(rows, needed + extra, display), part


def _sized(rows: Any, centres: int, limit: float) -> int:
    rows.entries, rows.candidates, memory = traversal_sizes(rows.count, rows.dimension, centres, limit)
    return memory


def _announced(rows: Any, needed: int, display: Progress) -> Memory:
    if needed > rows.max_memory:
        raise ValueError(
            f"max_memory must be at least {as_size(rows.loaded + needed)} for {rows.count:,} rows of {rows.dimension} columns, got "
            f"{as_size(rows.loaded + rows.max_memory)}; allow more"
        )
    memory = Memory(rows.loaded + needed, rows.loaded + rows.max_memory)
    display.note(str(memory), "memory, MB", memory.needed // 10**6, int(min(memory.limit, memory.needed) // 10**6))
    return memory
