"""subset: rows so chosen that every other is near one of them, with how near as a certificate.

Farthest-first: always the row farthest from those chosen. Its covering radius is at most twice that of the best choice of as many
rows, and no polynomial algorithm does better (Gonzalez 1985). Exact, and lazy (`_engine.lazy_cover`): on embeddings most rows are
looked at a few times in all.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import LazyCover
from reduset._progress import Progress
from reduset._types import Indices, ProgressLike
from reduset.subset.places import row_place, within
from reduset.subset.result import Subset

METRICS = ("euclidean", "cosine")
BLOCK = 1 << 16  # rows at a time
LARGEST_RADIUS, ROUNDINGS = 1e150, 8
SHORTEST = 1e-15  # of the largest entry of a row: of less single precision knows no direction


def subset(
    E: Any,
    size: int | None = None,
    *,
    radius: float | None = None,
    metric: str = "euclidean",
    start: Any = None,
    owners: bool = True,
    column: str | None = None,
    progress: ProgressLike = False,
) -> Subset:
    """Choose rows so that every row is near one of them.

    Parameters
    ----------
    E : (n, d) rows of any floating type: an array, a path of a ``.npy`` (which is mapped, not read at once) or of a Parquet or
        Feather file (a column of lists, or all columns of numbers), or an array on a GPU (CuPy, torch, anything with DLPack),
        where it then stays.
    size : how many rows to choose.
    radius : choose until every row is within this distance of one chosen, or ``size`` are chosen; one of the two must be given.
    metric : "euclidean", or "cosine": 1 − cos.
    start : centres to go on from: row numbers, or (s, d) places that need not be rows. What is chosen is beside them. None begins
        with the row nearest to the mean of all.
    owners : whether to say of every row which centre is nearest.
    column : of a table, the column of lists.
    progress : True for a line on the terminal, or a function of (stage, done, total).

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.subset import subset
    >>> E = np.random.default_rng(0).normal(size=(1000, 32)).astype(np.float16)
    >>> found = subset(E, 50)
    >>> found.size, round(found.radius, 2)
    (50, 7.58)
    >>> bool(found.owner_distances.max() <= found.radius * (1 + 1e-6))
    True
    """
    cosine = _validate.one_of(metric, "metric", METRICS) == "cosine"
    if size is None and radius is None:
        raise ValueError("size or radius must be given: how many rows, or how near every row is to be to one of them")
    if radius is not None and not (isinstance(radius, Real) and np.isfinite(float(radius)) and radius >= 0):
        raise ValueError(f"radius must be a finite distance of at least 0, got {radius!r}")
    place = row_place(E, column)
    n = place.count
    most = n if size is None else _validate.whole(size, "size", 1, n, "it is a number of rows")
    if cosine:
        _refuse_zeros(place)
    cover = LazyCover(place, cosine)
    begun = _begin(cover, start)
    chosen = [] if start is not None else begun.tolist()
    shown = Progress(progress)
    try:
        nearer = 0.0 if radius is None else float(_squared(radius, cosine))
        left = cover.extend(max(most - len(chosen), 0), nearer, shown.stage("choosing"))
        owner, distance = np.full(n, -1, np.int64), np.full(n, np.inf, np.float32)
        if owners:
            owner, distance = cover.owners(shown.stage("nearest"))
    finally:
        shown.close()
    at = np.sqrt(np.concatenate([np.full(len(chosen), np.inf), cover.gaps]))
    return Subset(
        indices=np.array([*chosen, *cover.indices], np.int64),
        distances=_told(at, cosine),
        radius=float(_told(np.sqrt(left), cosine)),
        owners=owner,
        owner_distances=_told(distance, cosine).astype(np.float32),
        start=np.empty(0, np.int64) if start is None else begun,
        metric=metric,
    )


def _squared(radius: float, cosine: bool) -> float:
    """The square of a distance, as the traversal has it: on the sphere |x − y|² = 2(1 − cos). The largest that is told as it."""
    square = 2.0 * radius if cosine else min(float(radius), LARGEST_RADIUS) ** 2
    for _ in range(ROUNDINGS):
        larger = float(np.nextafter(square, np.inf))
        if _told(np.sqrt(larger), cosine) > radius:
            break
        square = larger
    return square


def _told(distance: Any, cosine: bool) -> Any:
    """A distance of the traversal in the metric that was asked for."""
    return np.square(distance) / 2 if cosine else distance


def _begin(cover: LazyCover, start: Any) -> Indices:
    """Take the first centres; their rows, −1 for those that are none."""
    place = cover.place
    if start is None:
        rows = np.array([_row_near_mean(cover)])
        cover.add_rows(rows)
        return rows
    given = np.asarray(start.get() if hasattr(start, "get") else start)
    if not given.size or (given.ndim == 1 and given.dtype.kind in "iu"):
        if not given.size or given.min() < 0 or given.max() >= place.count:
            raise ValueError(f"start must hold one or more rows of E, each from 0 to {place.count - 1}; got {given.tolist()[:5]}")
        cover.add_rows(given.astype(np.int64))
        return given.astype(np.int64)
    places = _validate.points(given, "start")
    if places.shape[1] != place.dimension:
        raise ValueError(f"start must have {place.dimension} columns like E, or hold numbers of rows; got shape {places.shape}")
    within(places, "start")
    if cover.cosine and (np.abs(places).max(axis=1) < SHORTEST).any():
        raise ValueError("start must hold no row of zeros under the cosine, which has no direction; leave it out")
    cover.add(place.arrays.asarray(places.astype(np.float64)))
    return np.full(len(places), -1, np.int64)


def _row_near_mean(cover: LazyCover) -> int:
    """The row nearest to the mean of all; the lowest of equals."""
    with cover.place.at_work():
        return _found_near_mean(cover)


def _found_near_mean(cover: LazyCover) -> int:
    place, xp = cover.place, cover.place.arrays
    starts = range(0, place.count, BLOCK)
    total = sum(cover.defining(place.take(slice(a, a + BLOCK))).sum(axis=0) for a in starts)
    mean = total / place.count
    best, least = 0, np.inf
    for a in starts:
        gaps = xp.square(cover.defining(place.take(slice(a, a + BLOCK))) - mean).sum(axis=1)
        k = int(gaps.argmin())
        if float(gaps[k]) < least:
            best, least = a + k, float(gaps[k])
    return best


def _refuse_zeros(place: Any) -> None:
    """The cosine has no direction for a row of zeros."""
    zeros, first = 0, -1
    for a in range(0, place.count, BLOCK):
        none = abs(place.take(slice(a, a + BLOCK))).max(axis=1) < SHORTEST
        count = int(none.sum())
        if count and first < 0:
            first = a + int(none.argmax())
        zeros += count
    if zeros:
        raise ValueError(
            f"E must hold no row of zeros under the cosine, which has no direction; {zeros:,} are, the first is row {first}; leave "
            "them out, or take metric='euclidean'"
        )
