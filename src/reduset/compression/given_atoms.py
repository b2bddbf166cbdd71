"""weigh: the best weights, and what was lost, for atoms that somebody else chose.

It is `compress` with the selection made: where no bandwidth is given, how fine these atoms see is searched for as there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reduset import _validate
from reduset._types import Array, Indices, KernelLike, PointsLike, ProgressLike, Report, SeedLike, WeightsLike
from reduset._validate import rows as _rows
from reduset._validate import seeded
from reduset.compression.compressing import as_mean, compress
from reduset.compression.plan import is_left_open
from reduset.compression.result import Compression
from reduset.data import opened
from reduset.mean import KernelMean
from reduset.select import Selector
from reduset.select.contract import Traversal
from reduset.weights import OWN


@dataclass(frozen=True)
class Given(Selector):
    """Atoms that were chosen already: rows of the data, or points; and their own weights, where they have any."""

    rows: Indices | None = field(compare=False)
    places: Array = field(compare=False, repr=False)
    own: Array | None = field(compare=False, repr=False)
    scale_free = True
    weighs = True

    def begin(self, mean: KernelMean, rng: np.random.Generator) -> Traversal:
        return _AsGiven(self)

    def __str__(self) -> str:
        return "given"


class _AsGiven(Traversal):
    nested = False  # so that they are put in the order of what each adds

    def __init__(self, given: Given) -> None:
        self._given = given

    def extend(self, size: int, report: Report | None = None) -> None:
        """Nothing is left to choose."""

    @property
    def indices(self) -> Indices | None:
        return self._given.rows

    @property
    def points(self) -> Array:
        return self._given.places

    def weights(self) -> Array | None:
        return self._given.own


@seeded
def weigh(
    data: KernelMean | PointsLike,
    atoms: Any,
    kernel: KernelLike = None,
    weights: str | WeightsLike = None,
    *,
    tol: float | None = None,
    sample_weight: WeightsLike = None,
    confidence: float = 0.95,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Compression:
    """The best weights for atoms of one's own, or their own weights, and a certificate of what was lost.

    For whoever has a coreset, a sketch, centres of clusters or a random sample already: the result is like that of `compress`.

    Parameters
    ----------
    data : KernelMean, or (n, d) array or frame
        What the atoms stand for.
    atoms : (m,) whole numbers, rows of the data; or (m, d) points of any kind
    kernel : Kernel or callable k(X, Y)
        Only with points; a KernelMean has its own. Where its bandwidth is left open, as by default, the finest at which these atoms
        lose at most ``tol`` is searched for.
    weights : str or (m,) array
        A kind of weights as in `compress` ("free", "simplex", …), with the same defaults; or the atoms' own weights, such as 1/m
        each, which are kept as they are and certified.
    tol : float, default 0.05; only where the bandwidth is left open
    sample_weight : (n,) array, optional; only with points
    confidence : float, of the certificate's interval
    rng : None, seed or Generator; the same seed gives the same result
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    Compression
        Atoms are in the order of what each adds; ``indices`` are rows of the data where rows were given.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian, weigh
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> rows = np.arange(40)  # a random sample, or what another library chose
    >>> equal = weigh(X, rows, Gaussian(1.0), weights=np.full(40, 1 / 40), rng=0)
    >>> best = weigh(X, rows, Gaussian(1.0), rng=0)
    >>> best.certificate.relative_error < equal.certificate.relative_error / 10
    True
    """
    if not isinstance(data, KernelMean):
        data = opened(data, sample_weight if isinstance(sample_weight, str) else None)
    full = as_mean(data, kernel, sample_weight)
    kind = weights if weights is None or isinstance(weights, str) else OWN
    given = _given(atoms, None if weights is kind else weights, full)
    is_open = full is not data and is_left_open(kernel)
    if tol is not None and not is_open:
        raise ValueError(
            f"tol goes with a bandwidth that is left open, which it then decides, got tol={tol!r} with {full.kernel!r}; leave out "
            "tol, or the kernel"
        )
    source = {"data": data, "kernel": kernel, "sample_weight": sample_weight} if is_open else {"data": full}
    options: dict[str, Any] = {"confidence": confidence, "rng": rng, "progress": progress}
    return compress(**source, size=len(given.places), tol=tol, select=given, weights=kind, **options)


def _given(atoms: Any, weights: Any, full: KernelMean) -> Given:
    values = np.asarray(atoms) if isinstance(atoms, list | tuple) else atoms
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if getattr(values, "ndim", None) == 1 and kind != "f":
        rows = _rows_among(np.asarray(values), full.size)
        places = np.asarray(full.atoms[rows], np.float64)
    else:
        rows, places = None, np.asarray(_rows.points(atoms, "atoms")[:], np.float64)
        if places.shape[1] != full.dimension:
            raise ValueError(f"atoms must have {full.dimension} columns like the data, got shape {places.shape}")
    if len(places) > full.size:
        raise ValueError(f"atoms must be at most as many as the data's {full.size:,} points, got {len(places):,}; leave some out")
    own = None
    if weights is not None:
        own = _validate.weights(weights, len(places), "weights", signed=True)
        total, mass = float(own.sum()), full.mass
        if full.stored_weights.min() >= 0 and not mass / 2 <= total <= 2 * mass:
            raise ValueError(
                f"weights must add up to the mass of the data, {mass:g}, nearly at least, got {total:g}; rescale them: "
                f"weights * ({mass:g} / weights.sum())"
            )
    return Given(rows, places, own)


def _rows_among(rows: Any, n: int) -> Indices:
    """Numbers of rows, each of the data and none twice."""
    if rows.dtype.kind not in "iu":
        raise TypeError(
            f"atoms must be whole numbers, rows of the data, or an (m, d) array of points; got {rows.dtype} of shape {rows.shape}"
            + ("; np.flatnonzero(mask) has the rows of a mask" if rows.dtype.kind == "b" else "")
        )
    if not len(rows):
        raise ValueError("atoms must be at least one row or point, got none")
    wrong = rows[(rows < 0) | (rows >= n)]
    if len(wrong):
        raise ValueError(f"atoms must be rows of the data, 0 to {n - 1:,}, got {wrong[0]:,}")
    twice = np.flatnonzero(np.bincount(rows) > 1)
    if len(twice):
        raise ValueError(
            f"atoms must be distinct rows, got row {twice[0]:,} more than once; np.unique(rows, return_counts=True) has them once, "
            "and how often each came, for weights"
        )
    return rows.astype(np.int64)
