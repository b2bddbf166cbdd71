"""background: few weighted rows in place of the whole table that Shapley values are averaged over.

The value of a set S of columns at x is an average over the background law P, v(S) = E f(x_S, B_rest), B ~ P, and a Shapley value is
a fixed sum of such values: φᵢ(x) = E_P hᵢ, linear in P (interventional Shapley values: Štrumbelj & Kononenko 2014, Lundberg & Lee
2017). So with rows and weights Q in place of P

    |φᵢ(x; P) − φᵢ(x; Q)| = |E_P hᵢ − E_Q hᵢ| ≤ ‖hᵢ‖ · ‖f_P − f_Q‖

in any kernel's norm, whatever x is. In v(S) the columns of S stand still, so that hᵢ is made of functions of few columns more than
the model is: the kernel is one of sets of columns, beside one of whole rows (`explain.explaining_kernel`). A model that adds up
functions gⱼ of single columns needs no norm: its φᵢ changes by at most V(gᵢ) · sup |P(Xᵢ ≤ t) − Q(Xᵢ ≤ t)|, V the total variation
(Koksma).

Rows are chosen by `explain.selecting`. O(n·(m + 384)·d), and O(q²·d) for the choice among q ≤ 8,192 of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _validate
from reduset._frames import framed, table_weights
from reduset._messages import NotReachedWarning, warn
from reduset._types import PointsLike, ProgressLike, SeedLike, WeightsLike
from reduset._validate import seeded
from reduset.explain.columns import coordinates, distribution_gaps
from reduset.explain.explained import Background, names_of, rows_like
from reduset.explain.explaining_kernel import explaining_kernel
from reduset.explain.selecting import few_rows
from reduset.mean import KernelMean

WEIGHTS = ("equal", "simplex")
SIZE = 100
MAX_SIZE = 1000


@seeded
def background(
    X: PointsLike,
    size: int | None = None,
    *,
    tol: float | None = None,
    max_size: int | None = None,
    weights: str = "simplex",
    sample_weight: WeightsLike = None,
    confidence: float = 0.95,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Background:
    """Choose few weighted rows that explanations of a model can use as their background in place of all of X.

    The rows are rows of X, so that the model sees nothing that does not exist, and columns may be in any units: they count by their
    ranks and by their values in interquartile ranges. Codes of categories count as numbers; one-hot columns are better.

    Parameters
    ----------
    X : (n, d) array or frame of numbers; `reduset.io.as_table` encodes text
    size : int, default 100
        That many rows (fewer where some get no weight); beyond 1,000 their weights are equal.
    tol : float
        In place of ``size``: the fewest rows whose error is certified to be at most this share of ‖f‖ in the kernel's norm.
    max_size : int, default 1,000 (and no more than n), the most rows for ``tol``
    weights : "simplex" or "equal"
        "equal" for explainers that take rows without weights, as shap's do but for `KernelExplainer`. A row may then come twice,
        where ``sample_weight`` says so.
    sample_weight : (n,) array, optional
    confidence : float, of the certificate's interval
    rng : None, seed or Generator; the same seed gives the same result
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    Background
        With ``rows``, ``weights``, ``indices``, ``certificate``, and `Background.to_shap` for `shap.KernelExplainer`.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.explain import background
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=3000), 1000 * rng.exponential(size=3000), rng.integers(0, 2, 3000)])
    >>> small = background(X, 50, rng=0)
    >>> small.rows.shape, round(float(small.weights.sum()), 12)
    ((50, 3), 1.0)
    >>> model = lambda rows: rows[:, 0] + np.log1p(rows[:, 1]) * rows[:, 2]
    >>> abs(small.base_change(model, X)) < 0.02, small.random_rows > 500
    (True, True)
    """
    if size is not None and tol is not None:
        raise ValueError(f"size and tol both say how many rows; give one of the two, got size={size!r} and tol={tol!r}")
    if weights == "equal" and tol is not None:
        raise ValueError(f"tol needs weights='simplex', since equal weights have no order of rows; got tol={tol!r}, give a size")
    _validate.one_of(weights, "weights", WEIGHTS)
    sample_weight = table_weights(X) if sample_weight is None else sample_weight
    points = _validate.points(X)
    n = len(points)
    mass = np.broadcast_to(1.0, n) if sample_weight is None else _validate.weights(sample_weight, n)
    if tol is None:
        size = min(SIZE, n) if size is None else _validate.whole(size, "size", 1, n, "it is a number of X's rows")
    places = coordinates(points, mass)
    full = KernelMean.from_samples(places, explaining_kernel(places, mass), None if sample_weight is None else mass)
    options: dict[str, Any] = {"confidence": confidence, "rng": rng, "progress": progress}
    if tol is not None:
        options |= {"tol": tol, "max_size": _most(max_size, n)}
    indices, masses, small = few_rows(full, size, weights == "equal", **options)
    if not small.reached:
        warn(
            f"tol={tol:g} was not reached with {small.size} rows: the error is {small.certificate.relative_error:.3g} (at most "
            f"{small.certificate.interval[1]:.3g}). Raise max_size, or tol",
            NotReachedWarning,
        )
    if weights == "equal":
        times = np.maximum(np.rint(masses * (size or n)).astype(np.int64), 1)
        indices = np.repeat(indices, times)
        masses = np.full(len(indices), 1.0 / len(indices))
    return Background(
        rows=rows_like(X, points, indices),
        weights=np.asarray(masses / masses.sum()),
        indices=indices,
        certificate=small.certificate,
        n_samples=n,
        columns=names_of(framed(X), points.shape[1]),
        column_gaps=distribution_gaps(points, mass, points[indices], masses),
        reached=small.reached,
        timings=small.timings,
    )


def _most(max_size: int | None, n: int) -> int:
    return min(MAX_SIZE if max_size is None else _validate.whole(max_size, "max_size", 1), n)
