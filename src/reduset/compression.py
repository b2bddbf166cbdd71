"""compress: n points in, m weighted atoms out, with the error they carry (Cruz Cortés & Scott 2017).

select (which atoms) → weigh (which weights) → certify (how much was lost).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate, search, weigh
from reduset._engine.threads import single_threaded_blas
from reduset._progress import Progress
from reduset.certificate import Certificate, log_density_change
from reduset.mean import KernelMean, as_kernel
from reduset.nested import Nested, Path
from reduset.radial import RadialKernel
from reduset.run import Run
from reduset.select import as_selector

MOST_ATOMS = 5000

_quiet: ContextVar[bool] = ContextVar("reduset_quiet", default=False)


class NotReachedWarning(UserWarning):
    """The tolerance was not reached within the largest size allowed."""


@dataclass(frozen=True)
class Compression:
    """A small kernel mean and what it lost.

    Attributes
    ----------
    mean : KernelMean of m atoms
    indices : (m,) rows of the data, or None where atoms are new points
    certificate : Certificate
    n_samples : how many atoms the original had
    dropped : rows that were selected and left out as redundant
    reached : whether the ``tol`` or ``plateau`` asked for was reached
    timings : seconds by stage
    remark : what the selector chose and why, and whether the atoms were moved, where there is something to say
    """

    mean: KernelMean
    indices: NDArray[np.int64] | None
    certificate: Certificate
    n_samples: int
    selection: str
    weighting: str
    dropped: NDArray[np.int64]
    reached: bool
    timings: dict[str, float]
    remark: str
    _nested: Nested = field(repr=False)

    @property
    def size(self) -> int:
        """The number of atoms."""
        return self.mean.size

    @cached_property
    def path(self) -> Path:
        """The error of every prefix (of some, where weights must be found anew for each: "simplex", or very many atoms)."""
        return self._nested.path(self.size)

    def at(self, size: int) -> Compression:
        """The nested compression of the first ``size`` atoms: no new selection, no pass over the data."""
        size = _validate.whole(size, "size", 1, self.size, "compress again for more atoms")
        if size == self.size:
            return self
        begun = time.perf_counter()
        mean, certificate = self._nested.state(size)
        rows = None if self.indices is None else self.indices[:size]
        timings = {"total": time.perf_counter() - begun}
        return replace(self, mean=mean, indices=rows, certificate=certificate, timings=timings)

    def reweigh(self, full: KernelMean, kernel: Any = None, weights: str | None = None, rng: Any = None) -> Compression:
        """The same atoms for another kernel (or other weights): one pass over ``full``, no new selection.

        Parameters
        ----------
        full : KernelMean that was compressed; a result keeps no data of its own
        kernel : Kernel, default the one of ``full``
        weights : str, default those of this result
        """
        if not isinstance(full, KernelMean):
            raise TypeError(
                f"full must be the KernelMean that was compressed, got {type(full).__name__}; use KernelMean.from_samples(X)"
            )
        if full.size != self.n_samples or full.dimension != self.mean.dimension:
            raise ValueError(
                f"full must be the mean that was compressed, of {self.n_samples:,} atoms in {self.mean.dimension} dimensions; "
                f"got {full.size:,} in {full.dimension}"
            )
        if self.indices is not None and not np.array_equal(full.atoms[self.indices], self.mean.atoms):
            raise ValueError("full must be the mean that was compressed: its rows at .indices are not the atoms of this result")
        if kernel is not None:
            full = KernelMean(full.atoms, full.weights, as_kernel(kernel))
        kind = self.weighting if weights is None else weights
        if weights is None and kind == weigh.OWN:
            raise ValueError("weights='own' are the selector's, for the kernel it saw; say which weights to give the atoms now")
        kind = _validate.one_of(kind, "weights", weigh.KINDS)
        rng = _validate.generator(rng)
        run = Run(full, rng, self._nested.confidence, Progress())
        run.place(np.asarray(self.mean.atoms, np.float64), self.indices, ordered=True)
        return _finish(run, run.nested(kind), run.size, self.selection, True, rng)

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {seconds:.3g}" for name, seconds in self.timings.items() if name != "total")
        lines = [
            f"Compression of {self.n_samples:,} points to {self.size:,} atoms in {self.mean.dimension}-D, {self.mean.kernel!r}",
            *str(self.certificate).splitlines(),
            f"atoms      {self.selection}, weights {self.weighting}"
            + (f", {len(self.dropped)} redundant dropped" if len(self.dropped) else ""),
        ]
        if self.remark:
            lines.extend(f"           {line}" for line in self.remark.split("; "))
        if not self.reached:
            lines.append("NOT REACHED within the largest size allowed: see max_size")
        lines.append(f"time       {self.timings['total']:.3g} s" + (f" ({parts})" if parts else ""))
        return "\n  ".join(lines)


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
    kind = _validate.one_of(weights, "weights", (*weigh.KINDS, weigh.OWN))
    steps = _steps(refine, kind, full)
    if kind == weigh.OWN and not selector.weighs:
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
    if kind not in ("free", "sum_to_one", weigh.OWN) and not full.mass > 0:
        raise ValueError(f"weights={kind!r} needs a mean whose weights sum to more than 0, got {full.mass:g}; use weights='free'")

    rng = _validate.generator(rng)
    shown = Progress(progress)
    try:
        # once for all, and not call by call: whoever compresses in several threads would have it switched under their feet
        with single_threaded_blas():
            run = Run(full, rng, confidence, shown)
            run.open(selector)
            if size is not None:
                nested, m, reached = search.by_size(run, size, kind, steps)
            elif tol is not None:
                nested, m, reached = search.by_tolerance(run, goals["tol"], kind, most, steps)
            elif plateau is not None:
                nested, m, reached = search.by_plateau(run, goals["plateau"], kind, most, steps)
            else:
                nested, m, reached = search.by_end(run, kind, most, steps)
            result = _finish(run, nested, m, str(selector), reached, rng)
    finally:
        shown.close()
    if not reached and not _quiet.get():
        what = f"tol={tol}" if tol is not None else f"plateau={plateau}" if plateau is not None else f"{selector}'s own end"
        warnings.warn(
            f"{what} was not reached with {result.size} atoms: the error is {result.certificate.relative_error:.3g} "
            f"(at most {result.certificate.interval[1]:.3g}). "
            + ("Raise max_size, or widen the bandwidth" if run.size >= most else f"{selector} has no more atoms that add to these"),
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
    if kind == weigh.OWN:
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


def _finish(run: Run, nested: Nested, size: int, selection: str, reached: bool, rng: np.random.Generator) -> Compression:
    """The result for the first ``size`` atoms of a run."""
    bounds = run.promise(nested, size)
    with run.clock.stage("weigh"):
        mean, certificate = nested.state(size, bounds)
    with run.clock.stage("certify"):
        certificate = replace(certificate, log_density_change=log_density_change(run.full, mean, rng))
    rows, dropped = (run.atoms.rows, np.empty(0, np.int64)) if nested.kind == weigh.OWN else run.rows()
    return Compression(
        mean=mean,
        indices=None if rows is None else rows[:size],
        certificate=certificate,
        n_samples=run.full.size,
        selection=selection,
        weighting=nested.kind,
        dropped=dropped,
        reached=reached,
        timings=run.clock.timings(),
        remark=run.remark,
        _nested=nested,
    )
