"""cover: rows chosen so that every other row is near one of them, with the exact covering radius.

There are two algorithms. With ``size`` it is farthest-first traversal: each step selects the row farthest from those already
selected. The covering radius is at most twice the smallest possible radius for this number of rows. No polynomial algorithm
guarantees a smaller factor unless P = NP (Gonzalez 1985). Distances are updated lazily (`_engine.lazy_cover`).

With ``radius`` alone it is a net: a row is kept unless a row of higher priority that is kept is within the radius
(`_engine.radius_search`). In our measurements a net has fewer rows than farthest-first selection of the same radius. It is also
faster, unless fewer than one row in a hundred is kept. Then farthest-first selection is used, unless ``keep`` sets an order.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import DeviceRows, HostRows, LazyCover, near_rows, to_numpy
from reduset._progress import Progress
from reduset._types import Indices, ProgressLike
from reduset.covers.checkpoint import CoverCheckpoint, continued
from reduset.covers.memory import for_traversal, limited
from reduset.covers.near import priority_of
from reduset.covers.result import FARTHEST, NET, Cover, net_cover
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
STATE = 48  # bytes for each row while a checkpoint is written


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
    max_memory: float | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: ProgressLike = False,
) -> Cover:
    """Choose rows so that every row is near one of them.

    Parameters
    ----------
    data : (n, d) array, frame, files, Dask collection or GPU array
        Rows of any floating type, bfloat16 included. ``.npy`` and safetensors files are memory-mapped. Folders, lists and glob
        patterns of them are one array, in natural order of the names. A single table, and tables with a column of lists, are
        loaded. Other files and Dask collections are read block by block, or loaded for ``radius`` alone. Rows that do not fit into
        half of ``max_memory`` are copied into a temporary file instead. Arrays on a GPU (CuPy, torch, DLPack) stay there.
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
        Name of the column of lists in a table, or of the tensor in a safetensors file.
    max_memory : number of bytes, or text such as "16GB"
        Largest amount of memory for rows that are loaded and for the working set. It changes the time, not the result. Mapped files
        do not count. The estimate is reported before the start, and an error is raised if it is above the limit. `max_memory` must
        not be given for rows that are on a GPU or sent there.
    checkpoint : path
        File with the state of the selection. Writing it takes at most 1 % of the time. An interrupted call with the same data and
        options continues from it. The file is deleted at the end.
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
    rows = open_rows(data, column, cosine, max_memory)
    n = rows.count
    limit = n if size is None else _validate.whole(size, "size", 1, n, "it is a number of rows")
    priority = priority_of(keep, n, size)
    known = size is not None or priority is not None or n <= SAMPLED
    share = None if known else _share_kept(rows, cosine, squared(float(radius or 0), cosine))
    is_net = size is None and (share is None or share >= FEW)
    method = NET if is_net else FARTHEST
    options = {"size": size, "radius": radius, "metric": metric, "keep": keep, "start": start, "method": method}
    saved = None if checkpoint is None else CoverCheckpoint(checkpoint, rows, **options)
    display = Progress(progress)
    try:
        if is_net and radius is not None:
            found = net_cover(rows, cosine, radius, "first" if priority is None else priority, start, assignments, display, saved)
        else:
            expected = limit if share is None else int(np.ceil(share * n))
            found = _farthest_first(rows, cosine, limit, radius, start, assignments, display, saved, expected)
    finally:
        display.close()
    if saved is not None:
        saved.remove()
    return found


def _share_kept(rows: Any, cosine: bool, squared_radius: float) -> float:
    """The share of a sample that a net keeps. A net is faster than farthest-first selection from one row in a hundred on."""
    values = rows.take(rows.arrays.arange(0, rows.count, -(-rows.count // SAMPLED)))
    sample = limited((HostRows if rows.arrays is np else DeviceRows)(values), rows.max_memory - values.nbytes)
    return len(near_rows(sample, cosine, squared_radius).net(np.arange(sample.count))) / sample.count


def _farthest_first(
    rows: Any,
    cosine: bool,
    limit: int,
    radius: float | None,
    start: Any,
    assignments: bool,
    display: Progress,
    checkpoint: CoverCheckpoint | None,
    expected: int,
) -> Cover:
    n = rows.count
    given = 0 if start is None else len(start)
    memory = for_traversal(rows, given + expected, STATE * n if checkpoint else 0, display)
    traversal = LazyCover(rows, cosine)
    first = _first_centres(traversal, start)
    chosen = [] if start is not None else first.tolist()
    squared_radius = 0.0 if radius is None else float(squared(radius, cosine))
    remaining = continued(traversal, max(limit - len(chosen), 0), squared_radius, checkpoint, display.stage("choosing"))
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
        _memory=memory,
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
