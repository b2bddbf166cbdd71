"""The result of `cover`: row numbers, the exact covering radius, and the nearest chosen row of every row."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reduset import _archive
from reduset._describe import Description, Row
from reduset._engine import HostRows, near_rows, to_numpy
from reduset._progress import Progress
from reduset._types import Array, Indices, ProgressLike
from reduset.covers.auditing import Audit, audit
from reduset.covers.checkpoint import CoverCheckpoint, net_in_parts
from reduset.covers.memory import Memory, for_net, memory_rows
from reduset.covers.near import Pairs, WithPoints, chains, diameter, nearest_within, pairs_within, priority_of
from reduset.covers.parquet import read_rows_of_cover, write_rows_of_cover
from reduset.covers.rows import held, in_metric, joined, open_rows, radius_of, squared, start_of

f = _archive.fields
FARTHEST, NET = "farthest-first", "net"
FILE = _archive.Kind(
    "reduset.Cover",
    "cover",
    {
        "indices": f.Numbers(("m?",), 0, integers=True),
        "distances": f.Numbers(("m?",), 0, np.inf, unbounded=True),
        "start": f.Numbers(("s?",), -1, integers=True),
        "assignments": f.Numbers(("n",), -1, integers=True),
        "assignment_distances": f.Numbers(("n",), 0, np.inf, unbounded=True),
        "points": f.Numbers(("k", "d"), dtype=None),
        "radius": f.number(0.0),
        "spacing": f.measured(),
        "metric": f.one_of(("euclidean", "cosine")),
        "method": f.one_of((FARTHEST, NET)),
    },
)


class Group(NamedTuple):
    """A kept row, the rows that it replaces, and their distances to it, nearest first."""

    kept: int
    rows: Indices
    distances: Array


class Component(NamedTuple):
    """Rows that are joined by chains of near rows, and the largest distance of two of them."""

    rows: Indices
    diameter: float


@dataclass(frozen=True)
class Cover:
    """Rows such that every row of the data is near one of them.

    Attributes
    ----------
    indices : (m,) array
        Row numbers in order of selection. With ``method="farthest-first"``, each row is the farthest from all earlier ones, so
        every prefix is the cover of its size. With ``method="net"``, rows are in the order of their priorities.
    distances : (m,) array
        Distance of each row to the earlier ones when it was selected; the first is infinite. NaN for a net.
    radius : float
        Largest distance of any row to its nearest centre. Computed in double precision.
    spacing : float
        No two of the chosen rows are nearer to each other than this. In a net they are farther apart.
    assignments : (n,) array
        Nearest centre of each row, as a position in ``start`` followed by ``indices``. Values are −1 if not computed.
    assignment_distances : (n,) array
        Distance of each row to its nearest centre. Values are infinite if not computed.
    start : (s,) array
        Row numbers of the centres passed as ``start``. Points that are not rows have −1.
    metric : "euclidean" or "cosine" (1 − cos)
    method : "farthest-first" or "net"
    """

    indices: Indices
    distances: Array
    radius: float
    spacing: float
    assignments: Indices = field(repr=False)
    assignment_distances: NDArray[np.float64] = field(repr=False)
    start: Indices = field(repr=False)
    metric: str
    method: str
    _rows: Any = field(default=None, repr=False, compare=False)  # the rows of the data, None after loading
    _added: Any = field(default=None, repr=False, compare=False)  # (s, d) points passed as ``start``, or all centres after loading
    _memory: Memory | None = field(default=None, repr=False, compare=False)  # the estimate before the start

    @property
    def size(self) -> int:
        """Number of rows chosen."""
        return len(self.indices)

    @property
    def counts(self) -> Indices:
        """(s + m,) number of rows assigned to each centre, beginning with the centres of ``start``."""
        return np.bincount(self.assignments[self.assignments >= 0], minlength=len(self.start) + len(self.indices))

    @property
    def points(self) -> Array:
        """(s + m, d) the centres: first ``start``, then the chosen rows."""
        if self._rows is None:
            return self._added
        chosen = to_numpy(self._rows.take(self._rows.arrays.asarray(np.concatenate([self.start[self.start >= 0], self.indices]))))
        return chosen if self._added is None else np.concatenate([self._added, chosen])

    # -- near rows ----------------------------------------------------------------------------------------------------------------

    def groups(self, radius: float | None = None) -> list[Group]:
        """Each centre that replaces other rows, with these rows and their distances; the largest groups first.

        Parameters
        ----------
        radius : float
            Largest distance of a row to its centre. The default is the radius of the cover. Two rows of a group are at most twice
            as far apart, four times for the cosine distance.
        """
        reach = self.radius if radius is None else radius_of(radius)
        centres = np.concatenate([self.start, self.indices])
        own = np.zeros(len(self.assignments), bool)
        own[centres[centres >= 0]] = True
        rows = np.flatnonzero((self.assignments >= 0) & ~own & (self.assignment_distances <= reach * (1 + 1e-12)))
        order = rows[np.lexsort((self.assignment_distances[rows], self.assignments[rows]))]
        ends = np.flatnonzero(np.diff(self.assignments[order])) + 1
        parts = np.split(order, ends) if len(order) else []
        groups = [Group(int(centres[self.assignments[part[0]]]), part, self.assignment_distances[part]) for part in parts]
        return sorted(groups, key=lambda group: -len(group.rows))

    def pairs(self, radius: float | None = None, data: Any = None, *, max_memory: float | str | None = None) -> Pairs:
        """All pairs of rows of the data within a radius.

        Parameters
        ----------
        radius : float
            The default is the radius that was asked for.
        data : array or any other rows
            Needed only for a cover that was loaded from a file.
        max_memory : as for `cover`
            The default is the limit of the cover. The pairs themselves do not count.
        """
        first, second, squares = pairs_within(self._data(data, max_memory), self._reach(radius), self._cosine)
        return Pairs(first, second, in_metric(np.sqrt(squares), self._cosine))

    def components(
        self, radius: float | None = None, data: Any = None, *, max_memory: float | str | None = None
    ) -> list[Component]:
        """Rows that are joined by chains of pairs within a radius, the largest components first.

        Two rows of a component may be far apart: its diameter is the largest distance of two of its rows.
        """
        rows = self._data(data, max_memory)
        first, second, _ = pairs_within(rows, self._reach(radius), self._cosine)
        members = chains(first, second)
        return [Component(part, float(in_metric(np.sqrt(diameter(rows, part, self._cosine)), self._cosine))) for part in members]

    @property
    def _cosine(self) -> bool:
        return self.metric == "cosine"

    def _reach(self, radius: float | None) -> float:
        return self.spacing if radius is None else radius_of(radius)

    def _data(self, data: Any, max_memory: Any = None) -> Any:
        if data is None and self._rows is None:
            raise ValueError("data must be given, because a cover that was loaded from a file has no rows")
        rows = open_rows(self._rows if data is None else data, cosine=self._cosine, max_memory=max_memory)
        if rows.count != len(self.assignments):
            raise ValueError(f"data must have the {len(self.assignments):,} rows of this cover, got {rows.count:,}")
        return held(rows)

    def update(
        self,
        data: Any,
        keep: Any = None,
        *,
        column: str | None = None,
        max_memory: float | str | None = None,
        progress: ProgressLike = False,
    ) -> Cover:
        """The cover with more rows: all centres stay, and of the new rows those are kept that are near no centre.

        The rows of this cover keep their assignments, although a new centre may be nearer.

        Parameters
        ----------
        data : array or any other rows
            The new rows. They are numbered after the rows of this cover.
        keep : "first", "last", "medoid" or array
            The order in which new rows are kept, as for `cover`. The default is "first".
        column, max_memory, progress : as for `cover`
        """
        if self.method != NET:
            raise ValueError("update needs a cover of a radius; pass start= to cover() for more farthest-first rows")
        n, points = len(self.assignments), self._centres()
        rows = open_rows(data, column, self._cosine, max_memory)
        if rows.dimension != points.dimension:
            raise ValueError(f"data must have the {points.dimension} columns of this cover, got {rows.dimension}")
        priority = priority_of("first" if keep is None else keep, rows.count, None)
        display = Progress(progress)
        try:
            new = net_cover(rows, self._cosine, self.spacing, priority, points, True, display)
        finally:
            display.close()
        both = None if self._rows is None else joined(self._rows, new._rows)
        return replace(
            self,
            indices=np.concatenate([self.indices, n + new.indices]),
            distances=np.concatenate([self.distances, new.distances]),
            radius=max(self.radius, new.radius),
            assignments=np.concatenate([self.assignments, new.assignments]),
            assignment_distances=np.concatenate([self.assignment_distances, new.assignment_distances]),
            _rows=both,
            _added=self._added if both is not None else np.concatenate([points.values, new.points[points.count :]]),
            _memory=new._memory,
        )

    def _centres(self) -> Any:
        """The centres as a store: rows of the data that are not copied, or points."""
        rows = np.concatenate([self.start, self.indices])
        if self._rows is None or self._rows.arrays is not np or (rows < 0).any():
            return HostRows(self.points)
        return self._rows.among(rows)

    def audit(self, data: Any = None, radius: float | None = None, **options: Any) -> Audit:
        """Measure this cover like any list of rows (`audit`); ``data`` is needed only if the cover was loaded from a file."""
        if (self.start < 0).any():
            raise ValueError("this cover cannot be audited, because its first centres are points that are not rows")
        kept = np.concatenate([np.unique(self.start), self.indices])
        return audit(self._data(data), kept, radius, metric=self.metric, **options)

    # -- files --------------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the cover with its centres as ``.npz`` or ``.parquet``.

        A Parquet file has the row number, the row of its nearest centre, the distance and whether it is kept, of every row.
        """
        values = {name: getattr(self, name) for name in FILE.fields}
        if Path(path).suffix.lower() == ".parquet":
            write_rows_of_cover(path, values)
        else:
            _archive.write(path, FILE, values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Cover:
        """Read a cover. Every field is checked, and nothing in the file is executed."""
        if Path(path).suffix.lower() == ".parquet":
            return read_rows_of_cover(path, lambda header, arrays: cls._from_file(FILE.checked(header | FILE.described, arrays)))
        return _archive.read(path, {FILE: cls._from_file})

    @classmethod
    def _from_file(cls, values: dict[str, Any]) -> Cover:
        points, n, k = values.pop("points"), len(values["assignments"]), len(values["start"]) + len(values["indices"])
        if len(points) != k or len(values["distances"]) != len(values["indices"]) or len(values["assignment_distances"]) != n:
            raise ValueError(f"points must hold {k:,} centres, got {len(points):,}")
        for name, limit in (("indices", n), ("start", n), ("assignments", k)):
            if len(values[name]) and values[name].max() >= limit:
                raise ValueError(f"{name} must hold numbers below {limit:,}, got {values[name].max():,}")
        return cls(**values, _added=points)

    def describe(self) -> Description:
        """Size, covering radius and spacing as rows of (label, value, explanation)."""
        n, distance = len(self.assignments), "cosine distance" if self.metric == "cosine" else "distance"
        added = f" added to {len(self.start):,} existing centres" if len(self.start) else ""
        facts = {"n": n, "size": self.size, "start": len(self.start), "metric": self.metric, "radius": self.radius}
        limit = "more than" if self.method == NET else "at least"
        apart = f"any two of the rows are {limit} {self.spacing:.4g} apart" if self.size > 1 else ""
        return Description(
            f"Cover: {self.size:,} of {n:,} rows{added}",
            (
                Row(
                    "radius",
                    f"every row is within {distance} {self.radius:.4g} of its nearest centre",
                    "The largest distance of a row to its nearest centre.",
                    facts | {"spacing": self.spacing, "method": self.method},
                ),
                Row("spacing", apart, "The smallest distance of two chosen rows."),
                *memory_rows(self._memory),
            ),
        )

    def __str__(self) -> str:
        return str(self.describe())


def net_cover(
    rows: Any,
    cosine: bool,
    radius: float,
    keep: Any,
    start: Any,
    assignments: bool,
    display: Progress,
    checkpoint: CoverCheckpoint | None = None,
) -> Cover:
    """The net of the rows, with the nearest centre of every row. ``start`` may be a store of points."""
    n, points = rows.count, None
    store = rows = held(rows)
    fixed: Any = np.empty(0, np.int64)
    if hasattr(start, "take") and hasattr(start, "dimension"):
        points = start
    elif start is not None:
        fixed = start_of(rows, cosine, start)
        points = HostRows(fixed) if fixed.ndim == 2 else None
    if points is not None:
        fixed, store = n + np.arange(points.count), WithPoints(rows, points)
    memory = for_net(store, display)
    search = near_rows(store, cosine, squared(radius, cosine))
    kept = net_in_parts(search, keep, n, fixed, checkpoint, display.stage("choosing"))
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
        start=fixed if points is None else np.full(points.count, -1, np.int64),
        metric="cosine" if cosine else "euclidean",
        method=NET,
        _rows=rows,
        _added=None if points is None else points.values,
        _memory=memory,
    )
