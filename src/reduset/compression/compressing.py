"""compress: n points in, m weighted atoms out, with the error they carry (Cruz Cortés & Scott 2017).

select (which atoms) → weigh (which weights) → certify (how much was lost).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._progress import Progress
from reduset.certificate.certificate import Certificate
from reduset.compression import sizing
from reduset.compression.builder import Builder
from reduset.compression.result import Compression, assemble_built
from reduset.kernels.base import RadialKernel
from reduset.mean import KernelMean
from reduset.select import as_selector
from reduset.weights.kinds import KINDS, OWN

MOST_ATOMS = 5000

_quiet: ContextVar[bool] = ContextVar("reduset_quiet", default=False)


class NotReachedWarning(UserWarning):
    """The tolerance was not reached within the largest size allowed."""


def compress(
    data: Any,
    kernel: Any = None,
    *,
    size: int | None = None,
    tol: float | None = None,
    plateau: float | None = None,
    max_size: int | None = None,
    select: Any = "auto",
    refine: bool | int = False,
    weights: str = "free",
    sample_weight: Any = None,
    confidence: float = 0.95,
    rng: Any = None,
    progress: bool | Callable[[str, int, int], None] = False,
) -> Compression:
    """Replace a kernel mean, or the points X of one, by few weighted atoms.

    Exactly one of ``size``, ``tol`` and ``plateau`` says how few; none is needed where the selector does (Shadow).

    Parameters
    ----------
    data : KernelMean, or (n, d) array or frame
    kernel : Kernel or callable k(X, Y), default ``Gaussian("median")``
        Only with points; a KernelMean has its own.
    size : int
        That many atoms (fewer where fewer points are distinct, or atoms are redundant to rounding).
    tol : float
        The fewest atoms whose error, ‖f − f_m‖ / ‖f‖, is certified to be at most this: the upper end of its interval is.
    plateau : float
        Stop at the first atom that adds at most this share of the energy added since the first (the ε of the 2017 paper).
    max_size : int, default min(n, 5000)
        The most atoms for ``tol`` and ``plateau``.
    select : "kcenter", "random", "kmeans", "greedy", "cholesky", "thinning", "herding", "columnnorm", "paring", "shadow", "auto",
        or a selector
    refine : bool or int
        Move the selected atoms to where the error is least, by L-BFGS; a number is the most steps. Moved atoms have no indices.
        The result is never worse than what it started from, and its certificate is measured on the data like any other.
    weights : "free", "sum_to_one", "clipped", "simplex_projection", "simplex", or "own" (the selector's own)
    sample_weight : (n,) array, optional; only with points
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
    selector = as_selector(select)
    kind = _validate.one_of(weights, "weights", (*KINDS, OWN))
    steps = _steps(refine, kind, full)
    if kind == OWN and not selector.weighs:
        raise ValueError(
            f"weights='own' are the selector's own, and {selector} has none (Shadow, KMeans, Herding, Thinning, Paring and Random "
            "do); use weights='free'"
        )
    confidence = _validate.confidence(confidence)
    goals = {name: goal for name, goal in (("size", size), ("tol", tol), ("plateau", plateau)) if goal is not None}
    if len(goals) > 1 or (not goals and not selector.ending):
        given = " and ".join(goals) or "none"
        raise ValueError(
            f"give exactly one of size (a number of atoms), tol (a relative error) and plateau (the ε rule); got {given}"
        )
    if size is not None:
        size = _validate.whole(size, "size", 1, full.size, "it is a number of the data's points")
        if max_size is not None:
            raise ValueError("max_size goes with tol or plateau; with size it has no meaning, leave it out")
    for name in ("tol", "plateau"):
        if name in goals:
            goals[name] = _validate.positive(goals[name], name, "it is a share, 0.01 for one percent")
    most = min(full.size, MOST_ATOMS) if max_size is None else _validate.whole(max_size, "max_size", 1, full.size)
    if kind not in ("free", "sum_to_one", OWN) and not full.mass > 0:
        raise ValueError(f"weights={kind!r} needs a mean whose weights sum to more than 0, got {full.mass:g}; use weights='free'")

    rng = _validate.generator(rng)
    shown = Progress(progress)
    try:
        # once for all, and not call by call: whoever compresses in several threads would have it switched under their feet
        with single_threaded_blas():
            builder = Builder(full, rng, confidence, shown)
            builder.open(selector)
            if size is not None:
                prefixes, m, reached = sizing.by_size(builder, size, kind, steps)
            elif tol is not None:
                prefixes, m, reached = sizing.by_tolerance(builder, goals["tol"], kind, most, steps)
            elif plateau is not None:
                prefixes, m, reached = sizing.by_plateau(builder, goals["plateau"], kind, most, steps)
            else:
                prefixes, m, reached = sizing.by_end(builder, kind, most, steps)
            result = assemble_built(builder, prefixes, m, str(selector), reached, rng)
    finally:
        shown.close()
    if not reached and not _quiet.get():
        what = f"tol={tol}" if tol is not None else f"plateau={plateau}" if plateau is not None else f"{selector}'s own end"
        warnings.warn(
            f"{what} was not reached with {result.size} atoms: the error is {result.certificate.relative_error:.3g} "
            f"(at most {result.certificate.interval[1]:.3g}). "
            + (
                "Raise max_size, or widen the bandwidth"
                if builder.size >= most
                else f"{selector} has no more atoms that add to these"
            ),
            NotReachedWarning,
            stacklevel=2,
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


def _steps(refine: Any, kind: str, full: KernelMean) -> int | None:
    """The number of steps to move the atoms by: None for none, 0 where it is left to the time they take."""
    if not isinstance(refine, bool | np.bool_ | int | np.integer):
        raise TypeError(f"refine must be True, False or a number of steps, got {refine!r}")
    if refine is False or refine is np.False_:
        return None
    if kind == OWN:
        raise ValueError("weights='own' belong to the atoms as they were selected, refine moves them; use weights='free'")
    if not isinstance(full.kernel, RadialKernel):
        raise TypeError(f"refine needs a kernel with a gradient, {full.kernel!r} has none; use Gaussian, Laplacian or Student")
    if isinstance(refine, bool | np.bool_):
        return 0
    return _validate.whole(refine, "refine", 1, None, "it is a number of steps, or True or False")


def _as_mean(data: Any, kernel: Any, sample_weight: Any) -> KernelMean:
    if isinstance(data, KernelMean) and not 1e-140 < float(data.magnitudes.sum()) < 1e140:
        raise ValueError(
            f"the weights' magnitudes must sum to between 1e-140 and 1e140 for their squares to be finite, "
            f"got {float(data.magnitudes.sum()):g}; rescale the mean: mean / scale"
        )
    if not isinstance(data, KernelMean):
        if isinstance(data, Compression):
            raise TypeError("data is a Compression; compress its mean: compress(small.mean, ...)")
        return KernelMean.from_samples(data, kernel, sample_weight)
    for name, given in (("kernel", kernel), ("sample_weight", sample_weight)):
        if given is not None:
            raise ValueError(
                f"{name} goes with points; a KernelMean has its own. Use KernelMean(mean.atoms, mean.weights, kernel) to change it"
            )
    return data


def compress_quietly(full: KernelMean, **options: Any) -> Compression:
    """`compress` without its warning: whoever calls looks at ``reached``, and says what that means to its users."""
    with quietly():
        return compress(full, **options)


def evaluated(full: KernelMean, compression: Compression | None) -> tuple[KernelMean, Certificate]:
    """The mean to keep and what it lost; without a compression a copy, since the data are the caller's and may change."""
    if compression is not None:
        return compression.mean, compression.certificate
    return KernelMean(np.array(full.atoms), full.weights, full.kernel), Certificate.of_nothing_lost(full)
