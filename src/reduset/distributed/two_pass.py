"""compress on Dask: two passes over the partitions, and only small things between them.

    (look)     where the bandwidth is a rule: a sample of some rows of each partition decides it
    sample     each partition: its mass, a fair sample, and a small mean of its own; merged in a tree (`first_pass`)
    choose     here: the atoms that explain most of the merged mean, in the order of the energy that each adds
    certify    each partition: sums against these atoms; added in a tree (`second_pass`). Here: weights and certificate

The merged mean only says where atoms are worth having; weights, error and bounds come from all rows. A tolerance starts with as
many atoms as the merged mean says it takes, and goes on with more where that was too few.

Cost: every partition is read once a pass; about n·(m + 400) kernel values' worth of work in all; messages of some hundred kilobytes
a partition; and memory for `FAN_IN` small means of 1.5·m atoms here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._messages import is_quiet, warn
from reduset._progress import Clock, Progress
from reduset._types import KernelLike, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.bandwidth.rules import warn_of_units
from reduset.certificate.certificate import at_bandwidth
from reduset.compression import (
    MOST_ATOMS,
    Atoms,
    Compression,
    NotReachedWarning,
    Prefixes,
    Run,
    Target,
    Weighed,
    above_random_rows,
    assemble,
    begin,
    better_weights,
    certify,
    grow,
    weigh_atoms,
)
from reduset.distributed.first_pass import (
    PartitionSketch,
    SmallMean,
    join_sketches,
    look_at,
    merge_sketches,
    sketch_of,
)
from reduset.distributed.partitions import Partitions, partitions, rows_of
from reduset.distributed.scheduling import FAN_IN, Fault, Scheduler, key, scheduler, tasks, tree
from reduset.distributed.second_pass import (
    SecondPassPlan,
    SecondPassSums,
    add_sums,
    bounds_from_sums,
    density_change,
    residual,
    scales_from_sums,
)
from reduset.kernels import ANY_FAMILY, RadialKernel
from reduset.kernels.registry import as_kernel
from reduset.mean import KernelMean
from reduset.select import Auto, KMeans
from reduset.weights import CHOLESKY_UP_TO, WEIGHTINGS, span_of

MARGIN = 1.5  # small means have that many times the atoms asked for
LEAST_SIZE, TOGETHER = 512, 2048  # atoms of a small mean, and of those of few partitions together, at least
FIRST_SIZE = 1024  # of the search for a tolerance
FIRST_CHOSEN = 64  # atoms that the choice for a tolerance starts with
AHEAD, AT_LEAST = 1.15, 16  # of the size that the merged mean asks for
PREFIXES = (0.5, 0.65, 0.75, 0.85, 0.93)  # of a search's atoms, for which bounds are summed too


@seeded
def compress(
    collection: Any,
    kernel: KernelLike = None,
    *,
    size: int | None = None,
    tol: float | None = None,
    max_size: int | None = None,
    weights: str = "free",
    sample_weight: Any = None,
    confidence: float = 0.95,
    rng: SeedLike = None,
    client: Any = None,
    progress: ProgressLike = False,
) -> Compression:
    """Replace the rows of a Dask collection by few weighted atoms, without ever bringing them together.

    Runs on the cluster of ``client``, or of the client in use, or else in Dask's threads. The result depends on the collection's
    partitions and on ``rng``, and not on where and in what order these are worked on.

    Parameters
    ----------
    collection : Dask array (n, d), Dask data frame, or list of delayed arrays or frames
        Partitions may be empty or of unknown length. Each is read once a pass: persist the collection where that is slow and memory
        is there.
    kernel : kernel of a distance (any but a function), default ``Gaussian("median")``
        A bandwidth rule takes one more pass and is applied to a sample of 4096 rows.
    size : int
        That many atoms; fewer if the others are redundant to rounding, which ``print`` then states. Exactly one of ``size`` and
        ``tol`` is given.
    tol : float
        The fewest atoms whose error, ‖f − f_m‖ / ‖f‖, is certified to be at most this.
    max_size : int, default min(n, 5000), the most atoms for ``tol``
    weights : "free", "sum_to_one", "clipped", "sum_to_one_clipped", "simplex_projection" or "simplex"
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
    units_given, kernel = kernel is not None, as_kernel(kernel)
    if not isinstance(kernel, RadialKernel):
        raise TypeError(f"kernel must be a {ANY_FAMILY} to be compressed in parts, got {kernel!r}")
    if (size is None) == (tol is None):
        given = "none" if size is None else "both"
        raise ValueError(f"give exactly one of size (a number of atoms) and tol (a relative error); got {given}")
    if size is not None and max_size is not None:
        raise ValueError("max_size goes with tol; with size it has no meaning, leave it out")
    size = None if size is None else _validate.whole(size, "size", 1, CHOLESKY_UP_TO)
    share = None if tol is None else _validate.tolerance(tol)
    most = MOST_ATOMS if max_size is None else _validate.whole(max_size, "max_size", 1, CHOLESKY_UP_TO)
    kind, confidence = _validate.one_of(weights, "weights", WEIGHTINGS), _validate.confidence(confidence)
    parts = partitions(collection, sample_weight)
    rng = _validate.generator(rng)
    with closing(Progress(progress)) as shown, scheduler(client) as workers:
        run = TwoPassRun(kernel, kind, confidence, parts, workers, rng, shown, units_given)
        result = run.by_size(size or 1) if share is None else run.by_tolerance(share, most)
    comparison = above_random_rows(result)
    if comparison is not None and not is_quiet():
        warn(f"{comparison}; {better_weights(kind)}")
    if not result.reached:
        found = result.certificate
        warn(
            f"tol={tol} was not reached with {result.size} atoms: the error is {found.relative_error:.3g} (at most "
            f"{found.interval[1]:.3g}){at_bandwidth(found.bandwidth)}. Raise max_size, or widen the bandwidth",
            NotReachedWarning,
        )
    return result


@dataclass(frozen=True)
class ChosenAtoms:
    """Atoms that were chosen for the merged mean."""

    target: Target
    weighed: Weighed

    @property
    def size(self) -> int:
        """How many are kept."""
        return self.weighed.span.size


@dataclass(frozen=True)
class Evidence:
    """What pass two says of some atoms: the sums over all rows, and every prefix of the atoms measured by them."""

    sketch: PartitionSketch
    plan: SecondPassPlan
    sums: SecondPassSums
    prefixes: Prefixes


class TwoPassRun:
    """One compression on its way."""

    def __init__(
        self,
        kernel: RadialKernel,
        kind: str,
        confidence: float,
        parts: Partitions,
        workers: Scheduler,
        rng: np.random.Generator,
        progress: Progress,
        units_given: bool = True,
    ) -> None:
        self._kernel, self._kind, self._confidence = kernel, kind, confidence
        self._parts, self._workers, self._progress = parts, workers, progress
        seeds = rng.integers(2**63, size=2)
        self._seed, self._rng = int(seeds[0]), np.random.default_rng(int(seeds[1]))
        self._clock = Clock()
        if not kernel.is_resolved:
            (looked,) = self._pass("looking", "look", look_at, lambda *_: join_sketches, 1, self._seed)
            looked.require_rows()
            if not units_given:
                warn_of_units(looked.sample.points, looked.columns, "the error is that of the wide column alone")
            self._kernel = looked.resolved(kernel)

    # -- the passes ---------------------------------------------------------------------------------------------------------

    def _pass(self, stage: str, name: str, each: Callable[..., Any], merge: Any, down_to: int, *constants: Any) -> list[Any]:
        """One task a partition, of its rows, and a tree of mergers; what is left at its top."""
        column = self._parts.weight_column
        rows = ((part, weights, column, k) for k, (part, weights) in enumerate(self._parts.parts))
        leaves = tasks(f"reduset-{name}", partial(on_rows, each), rows, *constants)
        goals = tree(key("reduset-merge"), leaves, merge, down_to)
        with self._clock.stage(name):
            return self._workers.run(goals, leaves, self._progress.stage(stage))

    def _sketch(self, size: int) -> tuple[PartitionSketch, SmallMean]:
        """All the data in little: how much there is, a sample, and a mean of a few times ``size`` atoms."""
        size = max(size, LEAST_SIZE)
        few = max(size, TOGETHER // len(self._parts.parts))

        def merge(level: int, place: int) -> Callable[..., Any]:
            return partial(merge_sketches, self._kernel, size, self._seed, level, place)

        whole = join_sketches(self._pass("sampling", "sample", sketch_of, merge, FAN_IN, self._seed, self._kernel, few))
        whole.require_rows()
        small, mass = whole.small, whole.mass
        if small is None:
            raise RuntimeError("rows of weight, and no mean of them")
        return whole, SmallMean(small.atoms, small.weights / mass, small.masses / mass)

    def _evidence(self, chosen: ChosenAtoms, sizes: tuple[int, ...], sketch: PartitionSketch) -> Evidence:
        """Every prefix of the chosen atoms up to the last size, with one measurement on all rows."""
        with single_threaded_blas():
            mean = chosen.target.full
            square = float(mean.weights @ mean.kernel.product_sums(mean.atoms, mean.weights, mean.atoms))
            sample = sketch.mean(self._kernel)
            plan = SecondPassPlan.for_atoms(chosen.weighed.span, sizes, square, sample, self._confidence, self._rng)
        (sums,) = self._pass("certifying", "certify", SecondPassSums.of, lambda *_: add_sums, 1, plan)
        with self._clock.stage("weigh"), single_threaded_blas():
            span = span_of(self._kernel, plan.atoms, sums.kappa / sketch.mass)
            measured = residual(plan, sums, span, sketch.mass, self._confidence)
        return Evidence(sketch, plan, sums, Prefixes.of_new_points(self._kernel, span, measured, self._kind, self._confidence))

    # -- how many atoms -----------------------------------------------------------------------------------------------------

    def by_size(self, size: int) -> Compression:
        """That many atoms."""
        enough = int(np.ceil(MARGIN * size))
        sketch, small = self._sketch(enough)
        size = _validate.whole(size, "size", 1, sketch.count, "it is a number of the data's rows")
        # the best of more than enough, or clusters, as many as were asked for: which is better depends on size and bandwidth
        tried = [self._best(small, enough), self._clusters(small, size)]
        chosen = max(tried, key=lambda each: each.weighed.span.energy(size))
        evidence = self._evidence(chosen, (min(size, chosen.size),), sketch)
        return self._result(evidence, len(evidence.prefixes.atoms), chosen.weighed.atoms.remarks, True, size)

    def by_tolerance(self, tol: float, allowed: int) -> Compression:
        """The fewest atoms within tol, all that are allowed where none are.

        Twice as many are chosen from in each round, until the merged mean says that they are enough and the rows agree.
        """
        first = min(allowed, FIRST_SIZE)
        while True:
            enough = int(np.ceil(MARGIN * first))
            sketch, small = self._sketch(enough)
            most = min(allowed, sketch.count)
            chosen, expected = self._fewest(small, tol, enough)
            last = first >= most
            if expected is not None or last:
                evidence, smallest = self._within(tol, chosen, expected, min(most, chosen.size), sketch)
                if smallest is None and chosen.size < min(enough, len(small.atoms)):  # the rows need more than the merged mean
                    chosen = self._best(small, enough)
                    evidence, smallest = self._within(tol, chosen, None, min(most, chosen.size), sketch)
                if smallest is not None or last:
                    size = len(evidence.prefixes.atoms) if smallest is None else smallest
                    return self._result(evidence, size, chosen.weighed.atoms.remarks, smallest is not None)
            first = min(most, 2 * first)

    def _within(
        self, tol: float, chosen: ChosenAtoms, expected: int | None, available: int, sketch: PartitionSketch
    ) -> tuple[Evidence, int | None]:
        """How many of the chosen atoms are within tol of all rows, None where not all of them are.

        A little more than the merged mean expects are tried first, and then all.
        """
        sizes = [available] if expected is None else [min(available, _ahead(expected)), available]
        for size in dict.fromkeys(sizes):
            looked_at = {max(1, int(share * size)) for share in PREFIXES} | {size}
            evidence = self._evidence(chosen, tuple(sorted(looked_at)), sketch)
            with single_threaded_blas():
                smallest = evidence.prefixes.smallest(tol)
            if smallest is not None:
                break
        return evidence, smallest

    # -- what is done here --------------------------------------------------------------------------------------------------

    def _best(self, small: SmallMean, size: int) -> ChosenAtoms:
        """The atoms that explain most of the merged mean, in the order of the energy that each adds."""
        with self._clock.stage("choose"), single_threaded_blas():
            target = self._target(small)
            return ChosenAtoms(target, grow(target, begin(target, Auto()), min(size, len(small.atoms))))

    def _fewest(self, small: SmallMean, tol: float, most: int) -> tuple[ChosenAtoms, int | None]:
        """Atoms that are enough for tol by the merged mean, with some to spare, and how many it takes; at most ``most`` of them.

        Their number doubles until it is enough, so that a coarse tolerance does not cost what a fine one does.
        """
        size = FIRST_CHOSEN
        while True:
            chosen = self._best(small, min(size, most))
            with single_threaded_blas():
                expected = certify(chosen.target, chosen.weighed, "free").smallest(tol)
            enough = expected is not None and _ahead(expected) <= chosen.size
            if enough or size >= min(most, len(small.atoms)):
                return chosen, expected
            size *= 2

    def _clusters(self, small: SmallMean, size: int) -> ChosenAtoms:
        """The same with clusters of the merged mean's atoms."""
        with self._clock.stage("choose"), single_threaded_blas():
            target, masses = self._target(small), KernelMean(small.atoms, small.masses, self._kernel)
            centres = KMeans(rows=None).select(masses, min(size, masses.size), self._rng).atoms
            return ChosenAtoms(target, weigh_atoms(target, Atoms(centres, in_order=False, remark="KMeans")))

    def _target(self, small: SmallMean) -> Target:
        mean = KernelMean(small.atoms, small.weights, self._kernel)
        return Run(self._rng, self._confidence, self._progress).target(mean)

    def _result(self, evidence: Evidence, size: int, remark: str, reached: bool, asked: int | None = None) -> Compression:
        prefixes, plan, sums, sketch = evidence.prefixes, evidence.plan, evidence.sums, evidence.sketch
        looked = len(plan.atoms) if size == len(prefixes.atoms) else size  # redundant atoms lie in the span of the others
        with single_threaded_blas():
            with self._clock.stage("certify"):
                sample = sketch.mean(self._kernel)
                scales = scales_from_sums(plan, sums, sample, sketch.mass, sketch.squares, self._rng)
            return assemble(
                prefixes,
                size,
                sketch.count,
                f"{len(self._parts.parts)} partitions merged",
                self._clock,
                bounds=bounds_from_sums(plan, sums, looked, sketch.mass),
                density_change=lambda small: density_change(plan, sums, sketch.mass, cast(KernelMean, small)),
                reached=reached,
                remark=remark,
                scales=scales,
                asked=asked,
            )


def _ahead(expected: int) -> int:
    """A little more than the merged mean expects."""
    return int(AHEAD * expected) + AT_LEAST


def on_rows(function: Callable[..., Any], part: Any, weights: Any, column: Any, number: int, *given: Any) -> Any:
    """A function of the rows of one partition, looked over: a task."""
    rows = Fault.in_place(rows_of, part, weights, column, number)
    return rows if isinstance(rows, Fault) else function(rows, *given)
