"""cover: rows chosen so that every other row is near one of them, with the exact covering radius.

There are two algorithms. With ``size`` it is farthest-first traversal: each step selects the row farthest from those already
selected. The covering radius is at most twice the smallest possible radius for this number of rows. No polynomial algorithm
guarantees a smaller factor unless P = NP (Gonzalez 1985). Distances are updated lazily (`_engine.lazy_cover`).

With ``radius`` alone it is a net: a row is kept unless a row of higher priority that is kept is within the radius
(`_engine.near_rows`). On any data it keeps no more rows than farthest-first selection in our measurements, and is faster unless
fewer than one row in a hundred is kept. In that case farthest-first selection is used, unless ``keep`` asks for an order.

Arrays stay where they are, and `.npy` files are memory-mapped. Tables with a column of lists, and single tables, are loaded. Other
files and Dask collections are read block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import FetchedRows, HostRows, LazyCover, NearRows, defining, to_numpy
from reduset._progress import Progress
from reduset._types import Indices, ProgressLike
from reduset.covers.near import WithPoints, nearest_within, net_of, priorities
from reduset.covers.result import FARTHEST, NET, Cover
from reduset.covers.rows import held, in_metric, naming_file, open_rows, radius_of, require_range, squared

METRICS = ("euclidean", "cosine")
ORDERS = ("first", "last", "medoid")
BLOCK_ROWS = 1 << 16
MIN_NORM = 1e-15  # rows with a smaller largest entry have no direction in single precision
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
        Folders, lists of files and Dask collections are read block by block. Arrays on a GPU (CuPy, torch, DLPack) stay there.
    size : int, number of rows to choose, farthest first
    radius : float
        Largest distance of a row to its nearest chosen row. Alone, it gives a net: no chosen row is within the radius of another.
        With ``size``, farthest-first selection stops at whichever is reached first.
    metric : "euclidean" or "cosine" (1 − cos)
    keep : "first", "last", "medoid" or (n,) array of priorities, for ``radius`` alone
        Which of several near rows is kept: the first or last one, the one with the most rows within the radius, or the one of the
        highest priority, such as a quality score. Among equal priorities the first row is kept. The default is "first"; if fewer
        than one row in a hundred is kept, it is farthest-first selection, which is faster there.
    start : (s,) row numbers or (s, d) points, optional
        Existing centres, to which the chosen rows are added. Default: farthest-first selection begins with the row nearest to the
        mean.
    assignments : bool
        Compute the nearest centre of every row. The default is True.
    column : str, name of the column of lists in a table
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
    with naming_file(data):
        rows = open_rows(data, column)
    n = rows.count
    limit = n if size is None else _validate.whole(size, "size", 1, n, "it is a number of rows")
    priority = _priority(keep, n, size)
    if cosine:
        with naming_file(data):
            require_directions(rows)
    display = Progress(progress)
    try:
        if size is None and radius is not None and (priority is not None or _keeps_many(rows, cosine, squared(radius, cosine))):
            return _net(rows, cosine, radius, "first" if priority is None else priority, start, assignments, display)
        return _farthest_first(rows, cosine, limit, radius, start, assignments, display)
    finally:
        display.close()


def _priority(keep: Any, n: int, size: int | None) -> Any:
    """The checked ``keep``."""
    if keep is None:
        return None
    if size is not None:
        raise ValueError("keep must not be given with size: farthest-first selection has its own order; give radius alone")
    if isinstance(keep, str):
        return _validate.one_of(keep, "keep", ORDERS)
    priority = np.asarray(keep.get() if hasattr(keep, "get") else keep)
    if priority.shape != (n,) or priority.dtype.kind not in "biuf":
        raise ValueError(
            f"keep must be one of {', '.join(map(repr, ORDERS))}, or hold one number for each of the {n:,} rows; got an array of "
            f"{priority.dtype} with shape {priority.shape}"
        )
    if np.isnan(priority).any():
        raise ValueError(
            f"keep must not hold NaN, got one in row {int(np.isnan(priority).argmax())}; give such rows the lowest priority"
        )
    return priority.astype(np.float64)


def _keeps_many(rows: Any, cosine: bool, squared_radius: float) -> bool:
    """Whether a net keeps so many rows that it is faster than farthest-first selection, judged by a sample."""
    sample = rows.take(rows.arrays.arange(0, rows.count, max(1, rows.count // SAMPLED)))
    held = HostRows(to_numpy(sample))
    kept = NearRows.of(held, cosine, squared_radius).net(np.arange(held.count))
    return bool(len(kept) >= FEW * min(rows.count, SAMPLED) or rows.count <= SAMPLED)


def _net(rows: Any, cosine: bool, radius: float, keep: Any, start: Any, assignments: bool, display: Progress) -> Cover:
    n, points = rows.count, None
    store = held(rows)
    given: Any = np.empty(0, np.int64) if start is None else _start(rows, cosine, start)
    fixed = given
    if given.ndim == 2:
        points, fixed = given, n + np.arange(len(given))
        store = WithPoints(store, given)
    search = NearRows.of(store, cosine, squared(radius, cosine))
    kept = net_of(search, priorities(search, keep, n), fixed, display.stage("choosing"))
    centres = np.concatenate([fixed, kept])
    nearest, distances, covering = np.full(n, -1, np.int64), np.full(n, np.inf), radius
    if assignments:
        own = np.zeros(store.count, bool)
        own[centres] = True
        nearest[centres[centres < n]], distances[centres[centres < n]] = np.flatnonzero(centres < n), 0.0
        dropped = np.flatnonzero(~own[:n])
        nearest[dropped], squares = nearest_within(search, dropped, centres, display.stage("nearest"))
        distances[dropped] = in_metric(np.sqrt(squares), cosine)
        covering = float(distances.max())
    return Cover(
        indices=kept,
        distances=np.full(len(kept), np.nan),
        radius=covering,
        spacing=radius,
        assignments=nearest,
        assignment_distances=distances,
        start=given if points is None else np.full(len(points), -1, np.int64),
        metric="cosine" if cosine else "euclidean",
        method=NET,
        rows=rows,
        added=points,
    )


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
        rows=rows,
        added=points,
    )


def _first_centres(traversal: LazyCover, start: Any) -> Indices:
    """Add the first centres and return their row numbers, −1 for points that are not rows."""
    rows = traversal.place
    if start is None:
        first = np.array([row_near_mean(traversal)])
        traversal.add_rows(first)
        return first
    given = _start(rows, traversal.cosine, start)
    if given.ndim == 1:
        traversal.add_rows(given)
        return given
    traversal.add(rows.arrays.asarray(given))
    return np.full(len(given), -1, np.int64)


def _start(rows: Any, cosine: bool, start: Any) -> Any:
    """(s,) row numbers, or (s, d) points."""
    centres = np.asarray(start.get() if hasattr(start, "get") else start)
    if not centres.size or (centres.ndim == 1 and centres.dtype.kind in "iu"):
        if not centres.size or centres.min() < 0 or centres.max() >= rows.count:
            raise ValueError(f"start must hold row numbers from 0 to {rows.count - 1}, at least one; got {centres.tolist()[:5]}")
        return centres.astype(np.int64)
    points = _validate.points(centres, "start")
    if points.shape[1] != rows.dimension:
        raise ValueError(f"start must have {rows.dimension} columns like the data, or hold row numbers; got shape {points.shape}")
    require_range(points, "start")
    if cosine and (np.abs(points).max(axis=1) < MIN_NORM).any():
        raise ValueError("start must not contain a row of zeros with metric='cosine', since it has no direction; remove it")
    return points.astype(np.float64)


def row_near_mean(traversal: LazyCover) -> int:
    """The row nearest to the mean of all rows; the lowest row number among ties."""
    rows, cosine = traversal.place, traversal.cosine
    with rows.at_work():
        mean = sum(total for _, total in _in_parts(rows, partial(_sum_of, cosine))) / rows.count
        nearest = [(least, a + k) for a, (least, k) in _in_parts(rows, partial(_nearest_to, mean, cosine))]
    return min(nearest)[1]


def _in_parts(rows: Any, function: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
    """The first row of each part of the rows, and the result of a function of the part."""
    if isinstance(rows, FetchedRows):
        yield from ((a, result) for a, _, result in rows.rows.results(function))
        return
    for a in range(0, rows.count, BLOCK_ROWS):
        yield a, function(rows.take(slice(a, a + BLOCK_ROWS)))


def _sum_of(cosine: bool, rows: Any) -> Any:
    return defining(rows, cosine).sum(axis=0)


def _nearest_to(mean: Any, cosine: bool, rows: Any) -> tuple[float, int]:
    """The smallest squared distance to the mean, and its row."""
    squares = np.square(defining(rows, cosine) - mean).sum(axis=1)
    k = int(squares.argmin())
    return float(squares[k]), k


def _zeros_of(rows: Any) -> tuple[int, int]:
    """The number of rows of zeros, and the first of them."""
    is_zero = abs(rows).max(axis=1) < MIN_NORM
    return int(is_zero.sum()), int(is_zero.argmax())


def require_directions(rows: Any) -> None:
    """Raise an error for rows of zeros. They have no direction, so their cosine is undefined."""
    found = [(count, a + k) for a, (count, k) in _in_parts(rows, _zeros_of) if count]
    if found:
        zeros, first = sum(count for count, _ in found), found[0][1]
        raise ValueError(
            f"data must not contain rows of zeros with metric='cosine', since they have no direction; {zeros:,} rows do, the first "
            f"is row {first}. Remove them, or use metric='euclidean'"
        )
