"""compress: n points in, m weighted atoms out, with the error they carry (Cruz Cortés & Scott 2017).

select (which atoms) → weigh (which weights) → certify (how much was lost).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import KernelLike, PointsLike, ProgressLike, SeedLike, SelectorLike, WeightsLike
from reduset.certificate import Certificate
from reduset.certificate.cancelling import require_norm
from reduset.compression import resolution, sizing
from reduset.compression.builder import Builder
from reduset.compression.clock import Clock
from reduset.compression.grouped import compress_groups
from reduset.compression.result import Compression, assemble_built, assemble_resolved
from reduset.kernels import ANY_FAMILY, RadialKernel
from reduset.mean import KernelMean
from reduset.select import Auto, KMeans, Selector, Thinning, as_selector, with_own_weights
from reduset.select.auto import KMEANS_ROWS
from reduset.weights import KINDS
from reduset.weights.kinds import COUNTS, OWN
from reduset.weights.simplex import require_mass

_quiet: ContextVar[bool] = ContextVar("reduset_quiet", default=False)


class NotReachedWarning(UserWarning):
    """The tolerance was not reached within the largest size allowed."""


def compress(
    data: KernelMean | PointsLike,
    kernel: KernelLike = None,
    *,
    size: int | None = None,
    tol: float | None = None,
    plateau: float | None = None,
    max_size: int | None = None,
    select: SelectorLike = "auto",
    refine: bool | int = False,
    weights: str | None = None,
    sample_weight: WeightsLike = None,
    groups: Any = None,
    confidence: float = 0.95,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Compression:
    """Replace a kernel mean, or the points X of one, by few weighted atoms.

    How many, how wrong, how fine: two of ``size``, ``tol`` and the kernel's bandwidth give the third. Without a kernel ``size`` and
    ``tol`` give the resolution, the finest bandwidth at which so many atoms lose at most so much, there and at every coarser scale;
    1,000 atoms and 5 % where nothing is said.

    Parameters
    ----------
    data : KernelMean, or (n, d) array or frame
    kernel : Kernel or callable k(X, Y)
        Only with points; a KernelMean has its own. By default a Gaussian: of the resolution where ``size`` and ``tol`` are given or
        neither, else of the median distance.
    size : int
        That many atoms (fewer where fewer points are distinct, or atoms are redundant to rounding or got no weight).
    tol : float
        The fewest atoms whose error, ‖f − f_m‖ / ‖f‖, is certified to be at most this: the upper end of its interval is.
    plateau : float
        Stop at the first atom that adds at most this share of the energy added since the first (the ε of the 2017 paper).
    max_size : int, default min(n, 5000)
        The most atoms for ``tol`` and ``plateau``.
    select : "auto", the name of another class of `reduset.select` in small letters ("kcenter", "kmeans", …), or a selector
        For counts "auto" is "thinning": rows that stand for their neighbourhood.
    refine : bool or int
        Move the selected atoms to where the error is least, by L-BFGS; a number is the most steps. Moved atoms have no indices.
        The result is never worse than what it started from, and its certificate is measured on the data like any other.
    weights : "free", "sum_to_one", "clipped", "simplex_projection", "simplex", "counts", or "own" (the selector's own)
        By default "free", and at a resolution "simplex" ("sum_to_one" with ``refine``), which fine and coarse scales bear alike.
        "free" are the best and may be negative: sums of them over a part of the data are not its share. "counts" are the masses of
        the rows nearest to each atom: for proportions, and for whatever takes a ``sample_weight``.
    sample_weight : (n,) array, optional; only with points
    groups : (n,) array of labels, optional
        Each group gets atoms of its own, whose weights add up to exactly its share; ``tol`` holds for each.
    confidence : float, of the certificate's interval
    rng : None, seed or Generator; the same seed gives the same result
    progress : bool, or a function of (stage, done, total)

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, compress
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> small = compress(X, kernel=Gaussian("median"), tol=0.01, rng=0)
    >>> small.size < 40, small.certificate.relative_error <= 0.01
    (True, True)
    """
    full = _as_mean(data, kernel, sample_weight)
    require_norm(full)
    selector = as_selector(select)
    wanted, default = None, "free"
    if (size is None) == (tol is None) and plateau is None and max_size is None and not selector.ending:
        wanted = resolution.asked_for(full, kernel is None and full is not data, groups, size, tol)
        size, default = None, "simplex" if refine is False else "sum_to_one"
    kind = _kind(default if weights is None else weights, selector, full)
    if kind == COUNTS and isinstance(selector, Auto):
        # what explains most of the norm may lie between the rows or at their rim, where no population is
        selector = Thinning()
    elif wanted is not None and isinstance(selector, Auto):
        selector = KMeans(rows=KMEANS_ROWS)  # what others gain at one scale they lose at the coarser ones
    steps = _steps(refine, kind, full)
    confidence = _validate.confidence(confidence)
    tol = tol if wanted is None else wanted[1]
    goal = sizing.asked_for(full.size, selector.ending, max_size, size=size, tol=tol, plateau=plateau)
    rng = _validate.generator(rng)
    shown = Progress(progress)
    try:
        # once for all, and not call by call: whoever compresses in several threads would have it switched under their feet
        with single_threaded_blas():
            if wanted is not None:
                clock = Clock()
                found = resolution.resolve(
                    full, selector, *wanted, kind, steps, lambda mean: Builder(mean, rng, confidence, shown, clock)
                )
                result = assemble_resolved(found, str(selector), rng)
                filled, outlook = (
                    True,
                    "it is beyond so few atoms at any bandwidth tried: give more atoms, or a larger tol",
                )
            elif groups is not None:
                limits = {"size": size, "max_size": max_size}
                options = {"tol": tol, "plateau": plateau, "refine": refine}
                result = compress_groups(full, groups, compress_quietly, selector, kind, confidence, rng, shown, limits, options)
                filled, outlook = True, ""
            else:
                builder = Builder(full, rng, confidence, shown)
                builder.open(selector)
                prefixes, m, reached = goal.search(builder, kind, steps)
                result = assemble_built(builder, prefixes, m, str(selector), reached, rng)
                filled, outlook = builder.size >= goal.most, builder.outlook
    finally:
        shown.close()
    if not result.reached and not is_quiet():
        own_end = f"{selector}'s own end"
        ended = f"{selector} has no more atoms that add to these"
        warn(
            f"{goal.words or own_end} was not reached with {result.size} atoms: the error is "
            f"{result.certificate.relative_error:.3g} (at most {result.certificate.interval[1]:.3g}). "
            + (outlook[:1].upper() + outlook[1:] or ("Raise max_size, or widen the bandwidth" if filled else ended)),
            NotReachedWarning,
        )
    return result


@contextmanager
def quietly() -> Iterator[None]:
    """No `NotReachedWarning` from the calling thread inside; those of other threads are heard, as no filter of warnings could."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def is_quiet() -> bool:
    """Whether the caller is within `quietly`."""
    return _quiet.get()


def _kind(weights: str, selector: Selector, full: KernelMean) -> str:
    """The kind of weights, where the selector and the mean have such."""
    kind = _validate.one_of(weights, "weights", (*KINDS, COUNTS, OWN))
    if kind == OWN and not selector.weighs:
        raise ValueError(
            f"weights='own' are the selector's own, and {selector} has none ({with_own_weights()} do); use weights='free'"
        )
    if kind not in ("free", "sum_to_one", COUNTS, OWN):
        require_mass(kind, full.mass)
    return kind


def _steps(refine: Any, kind: str, full: KernelMean) -> int | None:
    """The number of steps to move the atoms by: None for none, 0 where it is left to the time they take."""
    if not isinstance(refine, bool | np.bool_ | int | np.integer):
        raise TypeError(f"refine must be True, False or a number of steps, got {refine!r}")
    if refine is False or refine is np.False_:
        return None
    if kind == OWN:
        raise ValueError("weights='own' belong to the atoms as they were selected, refine moves them; use weights='free'")
    if not isinstance(full.kernel, RadialKernel):
        raise TypeError(f"refine needs a kernel with a gradient, {full.kernel!r} has none; use {ANY_FAMILY}")
    if isinstance(refine, bool | np.bool_):
        return 0
    return _validate.whole(refine, "refine", 1, None, "it is a number of steps, or True or False")


def _as_mean(data: KernelMean | PointsLike, kernel: KernelLike, sample_weight: WeightsLike) -> KernelMean:
    if not isinstance(data, KernelMean):
        if isinstance(data, Compression):
            raise TypeError("data is a Compression; compress its mean: compress(small.mean, ...)")
        return KernelMean.from_samples(data, kernel, sample_weight)
    for name, given in (("kernel", kernel), ("sample_weight", sample_weight)):
        if given is not None:
            raise ValueError(
                f"{name} goes with points; a KernelMean has its own. Use KernelMean(mean.atoms, mean.weights, kernel) to change it"
            )
    total = float(data.magnitudes.sum())
    _validate.squares_summable(total, "the weights' magnitudes must sum to", f"got {total:g}; rescale the mean: mean / scale")
    return data


def compress_quietly(full: KernelMean, **options: Any) -> Compression:
    """`compress` without its warning: whoever calls looks at ``reached``, and says what that means to its users."""
    with quietly():
        return compress(full, **options)


def compress_below(full: KernelMean, size: int, tol: float | None, max_size: int, **options: Any) -> Compression | None:
    """For an estimator: the fewest atoms within ``tol``, or ``size`` of them; None where these are as many as the points."""
    if tol is None:
        return compress(full, size=size, **options) if size < full.size else None
    most = min(_validate.whole(max_size, "max_size", 1), full.size)
    return compress_quietly(full, tol=tol, max_size=most, **options)


def evaluated(full: KernelMean, compression: Compression | None) -> tuple[KernelMean, Certificate]:
    """The mean to keep and what it lost; without a compression a copy, since the data are the caller's and may change."""
    if compression is not None:
        return compression.mean, compression.certificate
    return KernelMean(np.array(full.atoms), full.weights, full.kernel), Certificate.of_nothing_lost(full)
