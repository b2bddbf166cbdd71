"""CohortMap on Dask: one task a bag, and only what a comparison needs of each comes back.

A bag is read once for its size, once for its share of the pool (at most 32,768 rows of all bags together), and once each time it is
shown atoms. The chance numbers of a bag are its own, so that the numbers are those of `reduset.cohort.CohortMap`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset import cohort as in_memory
from reduset._frames import framed
from reduset._progress import Progress
from reduset._types import Array, BagsLike, Floats, Indices, Report
from reduset._validate import seeded
from reduset.cohort.bags import BagEvidence, BagProjector, BagSource
from reduset.cohort.comparison import Comparison, LaterDistances
from reduset.distributed.scheduling import Fault, Scheduler, constant, key, scheduler, tasks
from reduset.kernels import Kernel
from reduset.mean import KernelMean
from reduset.weights import Span


@seeded
@dataclass(eq=False, repr=False)
class CohortMap(in_memory.CohortMap):
    """`reduset.cohort.CohortMap` whose bags are worked on as Dask tasks, where they are.

    Bags are a list, or a mapping of names, of delayed arrays or frames (of a function that reads a file, say), Dask arrays, Dask
    data frames, or arrays in memory. Parameters, attributes and numbers are those of `reduset.cohort.CohortMap`, except that
    ``atoms="all"`` and one long table with ``sample=`` are not taken: these need the points in one place.

    Parameters
    ----------
    client : distributed.Client, or the address of a scheduler, optional
        By default the client in use, or else Dask's threads.
    others : as of `reduset.cohort.CohortMap`

    Examples
    --------
    >>> import numpy as np
    >>> from dask import delayed
    >>> from reduset.distributed import CohortMap
    >>> def read(shift):
    ...     return np.random.default_rng(shift).normal(shift, 1, size=(500, 2))
    >>> bags = [delayed(read)(shift) for shift in (0, 1, 5, 6)]
    >>> CohortMap(layout="mds", random_state=0).fit_transform(bags).shape
    (4, 2)
    """

    client: Any = field(default=None, kw_only=True)

    def fit(self, bags: BagsLike, y: object = None, *, sample: Any = None) -> Self:
        """Compare the bags and lay them out.

        Parameters
        ----------
        bags : list or mapping of delayed arrays or frames, Dask arrays or frames, or arrays
        y : ignored
        sample : must be None
        """
        if self.atoms == "all":
            raise ValueError("atoms='all' compares all points of all bags with each other; use reduset.cohort.CohortMap for that")
        with closing(Progress(self.progress)) as shown, scheduler(self.client) as workers:
            names, tasks = _named(bags, sample)
            remote = DaskBags(names, tasks, workers, shown.stage("opening"))
            return self._fit(names, remote, remote.dimension, remote.columns, shown)

    def _to_fitted(self, bags: BagsLike, sample: Any) -> tuple[Array, Array]:
        check_is_fitted(self, "embedding_")
        with closing(Progress(self.progress)) as shown, scheduler(self.client) as workers:
            names, tasks = _named(bags, sample)
            remote = DaskBags(names, tasks, workers, shown.stage("opening"), self.n_features_in_, self._columns)
            rng = _validate.generator(self.random_state, "random_state")
            found = remote.each(later, [(rng,)] * len(names), shown.stage("weighing bags"), self._comparison)
        all_ = LaterDistances(*(np.concatenate([getattr(each, name) for each in found]) for name in LaterDistances.__annotations__))
        self._comparison.warn_of_later(all_, names)
        return all_.distances, all_.errors


def _named(bags: BagsLike, sample: Any) -> tuple[list[Any], list[Any]]:
    if sample is not None:
        raise ValueError("sample goes with one long table in memory; give a list or mapping of bags, one delayed table each")
    if isinstance(bags, Mapping):
        return list(bags), list(bags.values())
    if is_dask_collection(bags) and not isinstance(bags, Delayed) and getattr(bags, "ndim", 2) == 3:
        return list(range(len(bags))), [bags[k] for k in range(len(bags))]
    listed = _validate.listed(bags, "sample") if not is_dask_collection(bags) else None
    if listed is None:
        raise TypeError("bags is one Dask collection; give a list or mapping of them, one a bag: a single bag X is the list [X]")
    return list(range(len(listed))), listed


class DaskBags(BagSource):
    """Bags that Dask has: a task each for whatever is asked of all."""

    def __init__(
        self,
        names: Sequence[Any],
        bags: Sequence[Any],
        workers: Scheduler,
        report: Report,
        dimension: int | None = None,
        columns: list[Any] | None = None,
    ) -> None:
        fewest = 2 if dimension is None else 1
        if len(bags) < fewest:
            raise ValueError(f"bags must hold at least {fewest} of them, got {len(bags)}")
        self._workers = workers
        self._titles = [f"bags[{name!r}]" for name in names]
        called = key("reduset-bag-given")
        self._bags = [bag if is_dask_collection(bag) else constant(f"{called}-{k}", bag) for k, bag in enumerate(bags)]
        known = None if columns is None else "the bags that were fitted"
        wanted, like = dimension, "the bags that were fitted"
        self.sizes: list[int] = []
        opening = tasks("reduset-bag-open", partial(Fault.in_place, opened), zip(self._bags, self._titles, strict=True))
        for title, (shape, mine) in zip(self._titles, workers.run(opening, opening, report), strict=True):
            if wanted is None:
                wanted, like = shape[1], title
            if shape[1] != wanted:
                raise ValueError(f"{title} must have {wanted} columns like {like}, got shape {shape}")
            if mine is not None:
                columns, known = _validate.same_columns(mine, columns, title, known)
            self.sizes.append(shape[0])
        self.dimension, self.columns = int(wanted or 0), columns

    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], report: Report, *shared: Any) -> list[Any]:
        name = f"reduset-bag-{function.__name__.replace('_', '-')}"
        own = [constant(key(f"{name}-own"), its) for its in arguments]
        calls = tasks(name, partial(on_bag, function), zip(self._bags, self._titles, own, strict=True), *shared)
        return self._workers.run(calls, calls, report)

    def pick(self, rows: Sequence[Indices | None]) -> list[Floats]:
        return self.each(pick_rows, [(some,) for some in rows], lambda *_: None)

    def project(
        self, spans: Sequence[Span], kernel: Kernel, confidence: float, rngs: Sequence[np.random.Generator], report: Report
    ) -> list[BagEvidence]:
        return self.each(project, [(rng,) for rng in rngs], report, kernel, confidence, *spans)

    def means(self, kernel: Kernel) -> list[KernelMean]:
        raise RuntimeError("bags that are spread out are not brought together")


# -- tasks ----------------------------------------------------------------------------------------------------------------


def opened(bag: Any, title: str) -> tuple[tuple[int, ...], list[Any] | None]:
    """The shape of a bag that has been looked over, and its columns, where it is a frame."""
    table = framed(bag)
    shape = _validate.points(table, title).shape
    if shape[0] < 2:
        raise ValueError(f"{title} must hold at least 2 points, got {shape[0]}; leave out what is no sample")
    return shape, list(table.columns) if hasattr(table, "columns") else None


def on_bag(function: Callable[..., Any], bag: Any, title: str, arguments: tuple[Any, ...], *shared: Any) -> Any:
    """A function of the points of one bag; chance numbers are copied, since a task must leave what it is given as it was."""
    points = Fault.in_place(_validate.points, framed(bag), title)
    return points if isinstance(points, Fault) else function(points, *deepcopy(arguments), *shared)


def pick_rows(points: Floats, rows: Indices | None) -> Floats:
    """Some rows of a bag."""
    return points if rows is None else points[rows]


def project(points: Floats, rng: np.random.Generator, kernel: Kernel, confidence: float, *spans: Span) -> BagEvidence:
    """A bag on the last of the spans: projected on all of them again, since a task remembers nothing."""
    projector = BagProjector(KernelMean.of_rows(points, kernel), confidence, rng)
    return [projector.project(span) for span in spans][-1]


def later(points: Floats, rng: np.random.Generator, comparison: Comparison) -> LaterDistances:
    """A later bag beside the fitted ones."""
    return comparison.later([points], rng, Progress())
