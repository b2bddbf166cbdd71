"""The memory of searches and traversals of rows in addition to the rows, and sizes of blocks that keep it within a limit.

Estimates are upper bounds of the arrays that exist at the same time. Sizes change the time, never a result.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from reduset._engine.threads import get_threads

WIDTHS, CHUNKS, PART = (32, 24, 16, 8), (2048, 1024, 512, 256), 64  # coordinates; rows of a chunk; chunks of a part of the targets
LISTS, KEPT = 80, 56  # bytes for each row: row numbers of a search and of its results; bounds and assignments of a traversal
CENTRE, ENTRY, CANDIDATE = 44, 24, 32  # bytes for each column of a centre, entry of a product, and column of a candidate
BUFFERS = 1 << 21  # bytes of a thread


class SearchSizes(NamedTuple):
    """Sizes of a search within a radius.

    Attributes
    ----------
    coordinates : principal coordinates of a row, the length of the rest included
    chunk : rows of a chunk of products
    part : targets whose coordinates are in tiles at once
    memory : bytes in all
    """

    coordinates: int
    chunk: int
    part: int
    memory: int


class TraversalSizes(NamedTuple):
    """Sizes of a traversal: entries of a matrix product, rows among which centres are chosen, and bytes in all."""

    entries: int
    candidates: int
    memory: int


def search_sizes(n: int, d: int, limit: float) -> SearchSizes:
    """The largest sizes of a search of (n, d) rows within a limit, or the smallest sizes."""
    threads = get_threads()
    for width, chunk, is_whole in product(WIDTHS, CHUNKS, (True, False)):
        part, rows = n if is_whole else min(n, PART * chunk), min(n, chunk)
        columns = min(width, 8 * -(-d // 8))
        of_thread = 24 * rows**2 + 32 * rows * d + 5120 * chunk + BUFFERS
        fixed = threads * of_thread + 24 * min(n, 2 * chunk) * d + 32 * min(d, n) * d
        sizes = SearchSizes(width, chunk, max(part, 1), n * (4 * columns + LISTS) + 8 * part * (columns + 4) + fixed)
        if sizes.memory <= limit:
            break
    return sizes


def traversal_sizes(n: int, d: int, centres: int, limit: float) -> TraversalSizes:
    """The largest sizes of a traversal of (n, d) rows with some centres within a limit, or the smallest sizes."""
    for level in range(9):
        entries, count = 1 << (24 - level), max(4096 >> level, 256)
        used = min(entries, n * max(centres, 2 * d)) + max(centres, 2 * d)
        memory = KEPT * n + CENTRE * centres * d + ENTRY * used + CANDIDATE * min(n, 4 * count) * d
        sizes = TraversalSizes(entries, count, memory)
        if memory <= limit:
            break
    return sizes
