"""compress on Dask: two passes over the partitions, and only small things between them.

    (look)     where the bandwidth is a rule: a sample of some rows of each partition decides it
    sample     each partition: its mass, a fair sample, and a small mean of its own; merged in a tree (`sampling`)
    choose     here: the atoms that explain most of the merged mean, in the order of the energy that each adds
    certify    each partition: sums against these atoms; added in a tree (`certifying`). Here: weights and certificate

The merged mean only says where atoms are worth having; weights, error and bounds come from all rows. A tolerance starts with as
many atoms as the merged mean says it takes, and goes on with more where that was too few.

Cost: every partition is read once a pass; about n·(m + 400) kernel values' worth of work in all; messages of some hundred kilobytes
a partition; and memory for `FAN_IN` small means of 1.5·m atoms here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._progress import Progress
from reduset._types import Array
from reduset.compression.builder import Builder
from reduset.compression.clock import Clock
from reduset.compression.compressing import MOST_ATOMS, NotReachedWarning
from reduset.compression.prefixes import Prefixes
from reduset.compression.result import Compression, assemble
from reduset.distributed.first_pass import SAMPLE_ROWS, Sketch, Small, Tally, local_rows, merge_sketches, put_together, seeded
from reduset.distributed.partitions import Partitions, Rows, partitions, rows_of
from reduset.distributed.scheduling import FAN_IN, Scheduler, constant, key, scheduler, task, tree
from reduset.distributed.second_pass import Plan, Sums, add_sums, density_change, promise_of, residual
from reduset.kernels.base import RadialKernel
from reduset.kernels.registry import as_kernel
from reduset.mean import KernelMean
from reduset.select import Auto, KMeans
from reduset.stream.reservoir import Reservoir
from reduset.weights.kinds import KINDS
from reduset.weights.span import CHOLESKY_UP_TO, span_of

MARGIN = 1.5  # small means have that many times the atoms asked for
LEAST_SIZE, TOGETHER = 512, 2048  # atoms of a small mean, and of those of few partitions together, at least
FIRST_SIZE = 1024  # of the search for a tolerance
AHEAD, AT_LEAST = 1.15, 16  # of the size that the merged mean asks for
PREFIXES = (0.5, 0.65, 0.75, 0.85, 0.93)  # of a search's atoms, for which bounds are summed too
SHRINKING = {"scott": 4, "silverman": 4, "mode_clustering": 6}  # rules that fall with the number of rows to the −1/(d + this)


def compress(
    collection: Any,
    kernel: Any = None,
    *,
    size: int | None = None,
    tol: float | None = None,
    max_size: int | None = None,
    weights: str = "free",
    sample_weight: Any = None,
    confidence: float = 0.95,
    rng: Any = None,
    client: Any = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Compression:
    """Replace the rows of a Dask collection by few weighted atoms, without ever bringing them together.

    Runs on the cluster of ``client``, or of the client in use, or else in Dask's threads. The result depends on the collection's
    partitions and on ``rng``, and not on where and in what order these are worked on.

    Parameters
    ----------
    collection : Dask array (n, d), Dask data frame, or list of delayed arrays or frames
        Partitions may be empty or of unknown length. Each is read once a pass: persist the collection where that is slow and memory
        is there.
    kernel : Gaussian, Laplacian or Student, default ``Gaussian("median")``
        A bandwidth rule takes one more pass and is applied to a sample of 4096 rows.
    size : int
        That many atoms (fewer where they are redundant to rounding). Exactly one of ``size`` and ``tol`` is given.
    tol : float
        The fewest atoms whose error, ‖f − f_m‖ / ‖f‖, is certified to be at most this.
    max_size : int, default min(n, 5000), the most atoms for ``tol``
    weights : "free", "sum_to_one", "clipped", "simplex_projection" or "simplex"
    sample_weight : Dask array or series, name of a column, or list of delayed arrays, as the collection is
    confidence : float, of the certificate's interval
    rng : None, seed or Generator
    client : distributed.Client, or the address of a scheduler, optional
    progress : bool, or a function of (stage, done, total)

    Examples
    --------
    >>> import dask.array as da
    >>> from reduset import Gaussian
    >>> from reduset.distributed import compress
    >>> X = da.random.default_rng(0).normal(size=(20_000, 2), chunks=(5_000, 2))
    >>> small = compress(X, Gaussian(0.5), size=50, rng=0)
    >>> small.size, small.n_samples, small.certificate.relative_error < 0.05
    (50, 20000, True)
    """
    asked = _asked(kernel, size, tol, max_size, weights, confidence)
    parts = partitions(collection, sample_weight)
    rng = _validate.generator(rng)
    shown = Progress(progress)
    try:
        with scheduler(client) as workers:
            work = _Work(asked, parts, workers, rng, shown)
            result = work.by_size() if asked.tol is None else work.by_tolerance(asked.tol)
    finally:
        shown.close()
    if not result.reached:
        warnings.warn(
            f"tol={tol} was not reached with {result.size} atoms: the error is {result.certificate.relative_error:.3g} "
            f"(at most {result.certificate.interval[1]:.3g}). Raise max_size, or widen the bandwidth",
            NotReachedWarning,
            stacklevel=2,
        )
    return result


@dataclass(frozen=True)
class _Asked:
    """What was asked for; exactly one of ``size`` and ``tol``."""

    kernel: RadialKernel
    size: int | None
    tol: float | None
    max_size: int | None
    kind: str
    confidence: float


def _asked(kernel: Any, size: Any, tol: Any, max_size: Any, weights: Any, confidence: Any) -> _Asked:
    kernel = as_kernel(kernel)
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"kernel must be a Gaussian, Laplacian or Student to be compressed in parts, got {kernel!r}")
    if (size is None) == (tol is None):
        given = "none" if size is None else "both"
        raise ValueError(f"give exactly one of size (a number of atoms) and tol (a relative error); got {given}")
    if size is not None and max_size is not None:
        raise ValueError("max_size goes with tol; with size it has no meaning, leave it out")
    return _Asked(
        kernel=kernel,
        size=None if size is None else _validate.whole(size, "size", 1, CHOLESKY_UP_TO),
        tol=None if tol is None else _validate.positive(tol, "tol", "it is a share, 0.01 for one percent"),
        max_size=None if max_size is None else _validate.whole(max_size, "max_size", 1, CHOLESKY_UP_TO),
        kind=_validate.one_of(weights, "weights", KINDS),
        confidence=_validate.confidence(confidence),
    )


class _Work:
    """One compression on its way."""

    def __init__(self, asked: _Asked, parts: Partitions, workers: Scheduler, rng: np.random.Generator, progress: Progress) -> None:
        self._asked, self._parts, self._workers, self._progress = asked, parts, workers, progress
        seeds = rng.integers(2**63, size=2)
        self._seed, self._rng = int(seeds[0]), np.random.default_rng(int(seeds[1]))
        self._clock = Clock()
        self._kernel = asked.kernel
        if isinstance(asked.kernel.bandwidth, str):
            self._kernel = resolved(asked.kernel, self._look())

    # -- the passes ---------------------------------------------------------------------------------------------------------

    def _pass(self, stage: str, name: str, each: Callable[..., Any], merge: Any, down_to: int, *constants: Any) -> list[Any]:
        """One task a partition and a tree of mergers; what is left at its top."""
        called = key(f"reduset-{name}")
        shared = [constant(f"{called}-given-{k}", value) for k, value in enumerate(constants)]
        leaves = [
            task(called, k, each, part, self._parts.weights_of(k), self._parts.weight_column, k, *shared)
            for k, part in enumerate(self._parts.parts)
        ]
        goals = tree(key("reduset-merge"), leaves, merge, down_to)
        with self._clock.stage(name):
            return self._workers.run(goals, leaves, self._progress.stage(stage))

    def _look(self) -> Tally:
        (tally,) = self._pass("looking", "look", look, lambda *_: merge_tallies, 1, self._seed)
        return _checked(tally)

    def _sketch(self, size: int) -> tuple[Tally, Small]:
        """All the data in little: how much there is, a sample, and a mean of a few times ``size`` atoms."""
        size = max(size, LEAST_SIZE)
        few = max(size, TOGETHER // len(self._parts))
        found = self._pass(
            "sampling",
            "sample",
            sketch,
            lambda level, place: partial(merge_by_chance, self._kernel, size, self._seed, level, place),
            FAN_IN,
            self._seed,
            self._kernel,
            few,
        )
        whole = put_together(found)
        tally, small = _checked(whole.tally), whole.small
        if small is None:
            raise RuntimeError("rows of weight, and no mean of them")
        return tally, Small(small.atoms, small.weights / tally.mass, small.masses / tally.mass)

    def _certify(self, plan: Plan) -> Sums:
        (sums,) = self._pass("certifying", "certify", certify, lambda *_: add_sums, 1, plan)
        return sums

    # -- how many atoms -----------------------------------------------------------------------------------------------------

    def by_size(self) -> Compression:
        """That many atoms."""
        size = self._asked.size or 1
        enough = int(np.ceil(MARGIN * size))
        tally, small = self._sketch(enough)
        size = _validate.whole(size, "size", 1, tally.count, "it is a number of the data's rows")
        # the best of more than enough, or clusters, as many as were asked for: which is better depends on size and bandwidth
        tried = [self._choose(small, enough), self._clusters(small, size)]
        chosen = max(tried, key=lambda run: run.span.energy(size))
        plan = self._plan(chosen, (min(size, chosen.size),), tally)
        prefixes, sums = self._prefixes(plan, tally)
        return self._finish(plan, sums, prefixes, len(prefixes.atoms), tally, chosen.remark, True)

    def by_tolerance(self, tol: float) -> Compression:
        """The fewest atoms within tol, all that are allowed where none are."""
        allowed = MOST_ATOMS if self._asked.max_size is None else self._asked.max_size
        first = min(allowed, FIRST_SIZE)
        while True:
            tally, small = self._sketch(int(np.ceil(MARGIN * first)))
            most = min(allowed, tally.count)
            chosen = self._choose(small, int(np.ceil(MARGIN * first)))
            with single_threaded_blas():
                expected = chosen.prefixes("free").smallest(tol)
            last = first >= most
            if expected is None and not last:  # the merged mean knows that it takes more
                first = min(most, 2 * first)
                continue
            available = min(most, chosen.size)
            sizes = [available] if expected is None else [min(available, int(AHEAD * expected) + AT_LEAST), available]
            for size in dict.fromkeys(sizes):
                looked_at = {max(1, int(share * size)) for share in PREFIXES} | {size}
                plan = self._plan(chosen, tuple(sorted(looked_at)), tally)
                prefixes, sums = self._prefixes(plan, tally)
                with single_threaded_blas():
                    smallest = prefixes.smallest(tol)
                if smallest is not None:
                    return self._finish(plan, sums, prefixes, smallest, tally, chosen.remark, True)
            if last:
                return self._finish(plan, sums, prefixes, len(prefixes.atoms), tally, chosen.remark, False)
            first = min(most, 2 * first)

    # -- what is done here --------------------------------------------------------------------------------------------------

    def _choose(self, small: Small, size: int) -> Builder:
        """The atoms that explain most of the merged mean, in the order of the energy that each adds."""
        with self._clock.stage("choose"), single_threaded_blas():
            run = self._run(small)
            run.open(Auto())
            run.grow(min(size, len(small.atoms)))
        return run

    def _clusters(self, small: Small, size: int) -> Builder:
        """The same with clusters of the merged mean's atoms."""
        with self._clock.stage("choose"), single_threaded_blas():
            run, masses = self._run(small), KernelMean(small.atoms, small.masses, self._kernel)
            run.place(KMeans(rows=None).select(masses, min(size, masses.size), self._rng).atoms, None)
            run.remark = "KMeans"
        return run

    def _run(self, small: Small) -> Builder:
        return Builder(KernelMean(small.atoms, small.weights, self._kernel), self._rng, self._asked.confidence, self._progress)

    def _plan(self, chosen: Builder, sizes: tuple[int, ...], tally: Tally) -> Plan:
        with single_threaded_blas():
            sample, square = sample_mean(tally, self._kernel), square_norm(chosen.full)
            return Plan.for_atoms(chosen.span, sizes, square, sample, self._asked.confidence, self._rng)

    def _prefixes(self, plan: Plan, tally: Tally) -> tuple[Prefixes, Sums]:
        """Every prefix of the atoms, with one measurement on all rows."""
        asked = self._asked
        sums = self._certify(plan)
        with self._clock.stage("weigh"), single_threaded_blas():
            span = span_of(self._kernel, plan.atoms, sums.kappa / tally.mass)
            measured = residual(plan, sums, span, tally.mass, asked.confidence)
        shares = np.zeros(span.size)
        return Prefixes(self._kernel, span, measured, asked.kind, 1.0, 1.0, shares, None, asked.confidence), sums

    def _finish(
        self, plan: Plan, sums: Sums, prefixes: Prefixes, size: int, tally: Tally, remark: str, reached: bool
    ) -> Compression:
        looked = len(plan.atoms) if size == len(prefixes.atoms) else size  # redundant atoms lie in the span of the others
        with single_threaded_blas():
            return assemble(
                prefixes,
                size,
                tally.count,
                f"{len(self._parts)} partitions merged",
                self._clock,
                bounds=promise_of(plan, sums, looked, tally.mass),
                density_change=lambda small: density_change(plan, sums, tally.mass, small),
                reached=reached,
                remark=remark,
            )


# -- tasks ----------------------------------------------------------------------------------------------------------------


def look(part: Any, weights: Any, column: Any, number: int, seed: int) -> Tally:
    """The tally of one partition."""
    return _tallied(rows_of(part, weights, column, number), number, seed, SAMPLE_ROWS)[0]


def sketch(part: Any, weights: Any, column: Any, number: int, seed: int, kernel: RadialKernel, size: int) -> Sketch:
    """The sketch of one partition."""
    tally, local = _tallied(rows_of(part, weights, column, number), number, seed, local_rows(size))
    return Sketch.of(tally, local, kernel, size, seeded(seed, 1, number))


def certify(part: Any, weights: Any, column: Any, number: int, plan: Plan) -> Sums:
    """The sums over one partition."""
    rows = rows_of(part, weights, column, number)
    return Sums.of(plan, rows.points, rows.weights) if len(rows.points) else Sums.of_nothing(plan)


def merge_tallies(tallies: list[Tally]) -> Tally:
    """One tally for the partitions of several."""
    return tallies[0].merged(tallies[1:])


def merge_by_chance(kernel: RadialKernel, size: int, seed: int, level: int, place: int, sketches: list[Sketch]) -> Sketch:
    """One sketch for the partitions of several, with the chance numbers of that place in the tree."""
    return merge_sketches(kernel, size, seeded(seed, 2, level, place), sketches)


def _tallied(rows: Rows, number: int, seed: int, most: int) -> tuple[Tally, Reservoir | None]:
    """The tally of one partition, and a larger sample of it."""
    if not len(rows.points):
        return Tally(rows.count, 0.0, 0.0, number, None, None), None
    weights = rows.weights
    local = Reservoir.empty(rows.points.shape[1], most).absorb(rows.points, weights, seeded(seed, 0, number))
    mass, squares = float(weights.sum()), float(weights @ weights)
    return Tally(rows.count, mass, squares, number, local.first(SAMPLE_ROWS), rows.columns), local


# -- what a tally says ----------------------------------------------------------------------------------------------------


def _checked(tally: Tally) -> Tally:
    if tally.sample is None:
        seen = "all its partitions are empty" if not tally.count else "all weights are zero"
        raise ValueError(f"collection must hold at least one row of weight, but {seen}")
    return tally


def sample_mean(tally: Tally, kernel: RadialKernel) -> KernelMean:
    """The sample as a mean of mass 1 that stands for all rows."""
    rows, weights = _sample(tally)
    return KernelMean(
        rows, np.broadcast_to(1 / len(rows), len(rows)) if weights.strides == (0,) else weights / weights.sum(), kernel
    )


def _sample(tally: Tally) -> tuple[Array, Array]:
    if tally.sample is None:
        raise RuntimeError("no rows to sample from")
    points, weights = tally.sample.points, tally.sample.weights
    # equal weights as one number: by this the rules for bandwidths know that the rows count alike
    return points, np.broadcast_to(1.0, len(points)) if (weights == weights[0]).all() else tally.sample.shares


def resolved(kernel: RadialKernel, tally: Tally) -> RadialKernel:
    """The kernel with its bandwidth a number: the rule's for the sample, shrunk where it depends on the number of rows."""
    rows, weights = _sample(tally)
    found = kernel.resolve(rows, weights)
    power = SHRINKING.get(str(kernel.bandwidth))
    if power is None or (rows == rows[0]).all():
        return found
    here = len(rows) if weights.strides == (0,) else float(weights.sum() ** 2 / (weights @ weights))
    return replace(found, bandwidth=found.width * (tally.effective / here) ** (-1 / (rows.shape[1] + power)))


def square_norm(mean: KernelMean) -> float:
    """‖f‖² in units where every bump has norm 1."""
    return float(mean.weights @ mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms))
