"""cover: rows chosen so that every other row is near one of them, with the exact covering radius.

There are two algorithms. With ``size`` it is farthest-first traversal: each step selects the row farthest from those already
selected. The covering radius is at most twice the smallest possible radius for this number of rows. No polynomial algorithm
guarantees a smaller factor unless P = NP (Gonzalez 1985). Distances are updated lazily (`_engine.lazy_cover`).

With ``radius`` alone it is a net: a row is kept unless a row of higher priority that is kept is within the radius
(`_engine.radius_search`). In our measurements a net has fewer rows than farthest-first selection of the same radius. It is also
faster, unless fewer than one row in a hundred is kept. Then farthest-first selection is used, unless ``keep`` sets an order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import HostRows, LazyCover, near_rows, to_numpy
from reduset._progress import Progress
from reduset._types import Indices, ProgressLike
from reduset.covers.near import priority_of
from reduset.covers.result import FARTHEST, Cover, net_cover
from reduset.covers.rows import (
    METRICS,
    in_metric,
    open_rows,
    radius_of,
    row_near_mean,
    squared,
    start_of,
)

SAMPLED, FEW = 4096, 0.01  # rows of a sample, and the share that is kept below which farthest-first selection is faster


def cover(
    data: Any,
    size: int | None = None,
    *,
    radius: float | None = None,
    metric: str = "euclidean",
    keep: Any = None,
    start: Any = None,
    assignments: bool = True,
    column: str | None = None,
    progress: ProgressLike = False,
) -> Cover:
    """Choose rows so that every row is near one of them.

    Parameters
    ----------
    data : (n, d) array, frame, files, Dask collection or GPU array
        Rows of any floating type. A ``.npy`` file is memory-mapped. A single table, and tables with a column of lists, are loaded.
        Folders, lists of files and Dask collections are read block by block, or loaded for ``radius`` alone. Arrays on a GPU
        (CuPy, torch, DLPack) stay there.
    size : int
        Number of rows to choose, farthest first.
    radius : float
        Largest distance of a row to its nearest chosen row. Alone, it gives a net: no chosen row is within the radius of another.
        With ``size``, farthest-first selection stops at whichever is reached first.
    metric : "euclidean" or "cosine"
        The cosine distance is 1 − cos.
    keep : "first", "last", "medoid" or (n,) array
        For ``radius`` without ``size``: the order in which rows are kept. "medoid" begins with the row that has the most rows
        within the radius. An array has a priority for each row, such as a quality score. The highest is first; among equal
        priorities, the first row. The default is "first". If a sample shows that fewer than one row in a hundred is kept, the
        default is farthest-first selection, which is then faster.
    start : (s,) row numbers or (s, d) points, optional
        Existing centres, to which the chosen rows are added. Default: farthest-first selection begins with the row nearest to the
        mean.
    assignments : bool
        Compute the nearest centre of every row. The default is True.
    column : str
        Name of the column of lists in a table.
    progress : bool, or a function of (stage, done, total)

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import cover
    >>> E = np.random.default_rng(0).normal(size=(1000, 32)).astype(np.float16)
    >>> chosen = cover(E, 50)
    >>> chosen.size, round(chosen.radius, 2)
    (50, 7.58)
    >>> bool(chosen.assignment_distances.max() <= chosen.radius * (1 + 1e-6))
    True

    Near-duplicates: of two rows within the radius, the first is kept.

    >>> E[500:520] = E[:20]
    >>> unique = cover(E, radius=0.1)
    >>> unique.size, unique.groups()[0].kept, unique.groups()[0].rows
    (980, 0, array([500]))
    """
    cosine = _validate.one_of(metric, "metric", METRICS) == "cosine"
    if size is None and radius is None:
        raise ValueError("size or radius must be given: the number of rows, or the largest distance of a row to a chosen one")
    radius = None if radius is None else radius_of(radius)
    rows = open_rows(data, column, cosine)
    n = rows.count
    limit = n if size is None else _validate.whole(size, "size", 1, n, "it is a number of rows")
    priority = priority_of(keep, n, size)
    display = Progress(progress)
    try:
        if size is None and radius is not None and (priority is not None or _keeps_many(rows, cosine, squared(radius, cosine))):
            return net_cover(rows, cosine, radius, "first" if priority is None else priority, start, assignments, display)
        return _farthest_first(rows, cosine, limit, radius, start, assignments, display)
    finally:
        display.close()


def _keeps_many(rows: Any, cosine: bool, squared_radius: float) -> bool:
    """Whether a net of a sample keeps at least one row in a hundred. Then it is faster than farthest-first selection."""
    if rows.count <= SAMPLED:
        return True
    sample = rows.take(rows.arrays.arange(0, rows.count, max(1, rows.count // SAMPLED)))
    held = HostRows(to_numpy(sample))
    kept = near_rows(held, cosine, squared_radius).net(np.arange(held.count))
    return len(kept) >= FEW * SAMPLED


def _farthest_first(
    rows: Any, cosine: bool, limit: int, radius: float | None, start: Any, assignments: bool, display: Progress
) -> Cover:
    n = rows.count
    traversal = LazyCover(rows, cosine)
    first = _first_centres(traversal, start)
    chosen = [] if start is not None else first.tolist()
    squared_radius = 0.0 if radius is None else float(squared(radius, cosine))
    remaining = traversal.extend(max(limit - len(chosen), 0), squared_radius, display.stage("choosing"))
    nearest, distance = np.full(n, -1, np.int64), np.full(n, np.inf, np.float32)
    if assignments:
        nearest, distance = traversal.assignments(display.stage("nearest"))
    distances = in_metric(np.sqrt(np.concatenate([np.full(len(chosen), np.inf), traversal.distances])), cosine)
    points = None if start is None or (first >= 0).all() else np.asarray(to_numpy(start), np.float64)
    return Cover(
        indices=np.array([*chosen, *traversal.indices], np.int64),
        distances=distances,
        radius=float(in_metric(np.sqrt(remaining), cosine)),
        spacing=float(distances[-1]) if len(distances) else np.inf,
        assignments=nearest,
        assignment_distances=in_metric(distance, cosine).astype(np.float64),
        start=np.empty(0, np.int64) if start is None else first,
        metric="cosine" if cosine else "euclidean",
        method=FARTHEST,
        _rows=rows,
        _added=points,
    )


def _first_centres(traversal: LazyCover, start: Any) -> Indices:
    """Add the first centres and return their row numbers, −1 for points that are not rows."""
    rows = traversal.place
    if start is None:
        first = np.array([row_near_mean(traversal)])
        traversal.add_rows(first)
        return first
    given = start_of(rows, traversal.cosine, start)
    if given.ndim == 1:
        traversal.add_rows(given)
        return given
    traversal.add(rows.arrays.asarray(given))
    return np.full(len(given), -1, np.int64)
