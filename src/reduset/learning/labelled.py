"""compress_labelled: few rows with their labels and weights, to fit any model to in place of all.

What a model minimises is a sum over rows of a loss ℓ(x, y). Apart for each class k it is the mass of the class times a mean over
its rows, so that with rows and weights Q_k in place of a class's own P_k, of the same mass, no model's loss is off by more than

    Σ_k mass_k · ‖ℓ(·, k)‖ · ‖f_{P_k} − f_{Q_k}‖,

in the norm of the kernel of single columns and sets of them (`learning.columns`). A quantity y has no classes: it is a column
beside the others, and counts as much as all of them, so that k(x, x′)·k(y, y′)ᵈ is the kernel and ℓ(x, y) the function.

Rows are chosen by `learning.selecting`, those of each class apart. O(n·(m + 384)·d), and O(q²·d) for the choice among q ≤ 8,192 of
the rows of a class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _validate
from reduset._frames import table_weights
from reduset._progress import Progress
from reduset._types import Array, Indices, Labels, PointsLike, ProgressLike, SeedLike, WeightsLike
from reduset.certificate import Certificate
from reduset.compression.clock import Clock
from reduset.compression.grouped import QUOTAS
from reduset.compression.grouped import quotas as shared_out
from reduset.learning.columns import column_kernel, coordinates, with_quantity
from reduset.learning.explained import rows_like
from reduset.learning.rows_with_labels import LabelledRows
from reduset.learning.selecting import few_rows
from reduset.mean import KernelMean

CLASSES, REGRESSION = "classes", "regression"


def compress_labelled(
    X: PointsLike,
    y: Any,
    size: int,
    *,
    task: str | None = None,
    quotas: str = "proportional",
    sample_weight: WeightsLike = None,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> LabelledRows:
    """Choose few rows of labelled data, with weights, that a model can be fitted to in place of all.

    ``model.fit(small.X, small.y, sample_weight=small.sample_weight)`` works for whatever takes a ``sample_weight``. The weights of
    each class add up to exactly what the class weighs, and all of them to what all rows weigh (n, if nothing is said), so that a
    penalty such as that of `LogisticRegression` is as strong as it was.

    Parameters
    ----------
    X : (n, d) array or frame of numbers, in any units
    y : (n,) labels, or numbers
    size : int
        That many rows (fewer where some get no weight); those of a class of more than 1,000 have equal weights.
    task : "classes" or "regression", default by y as scikit-learn does
        Numbers that are not all whole are a quantity; all else are classes.
    quotas : "proportional", "square root" or "equal"
        How ``size`` is shared out among classes, each of which gets one row at least and no more than it has.
    sample_weight : (n,) array, optional
    rng : None, seed or Generator; the same seed gives the same result
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    LabelledRows
        With ``X``, ``y``, ``sample_weight`` and ``indices``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from reduset import compress_labelled
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 4))
    >>> y = np.where(X[:, 0] + X[:, 1] + rng.logistic(size=5000) > 1.5, "yes", "no")
    >>> small = compress_labelled(X, y, 100, rng=0)
    >>> model = LogisticRegression().fit(small.X, small.y, sample_weight=small.sample_weight)
    >>> bool(model.score(X, y) > LogisticRegression().fit(X, y).score(X, y) - 0.01)
    True
    >>> round(float(small.sample_weight[small.y == "yes"].sum()), 6) == float((y == "yes").sum())
    True
    """
    sample_weight = table_weights(X) if sample_weight is None else sample_weight
    points = _validate.points(X)
    n = len(points)
    size = _validate.whole(size, "size", 1, n, "it is a number of X's rows")
    _validate.one_of(quotas, "quotas", QUOTAS)
    mass = np.broadcast_to(1.0, n) if sample_weight is None else _validate.weights(sample_weight, n)
    task = _task(y, task)
    if task == CLASSES:
        labels, classes, of, _ = _validate.labelled(y, mass, n)
    else:
        labels, classes, of = _quantity(y, n), None, np.zeros(n, np.int64)
    given = _quotas(size, of, mass, quotas)
    clock, shown = Clock(), Progress(progress)
    report = shown.stage("classes")
    rows: list[Indices] = []
    weights: list[Array] = []
    certificates: list[Certificate] = []
    try:
        for k, stream in enumerate(_validate.generator(rng).spawn(len(given))):
            report(k, len(given))
            own = np.flatnonzero((of == k) & (mass > 0))
            with clock.stage("select"):
                places = coordinates(points[own], mass[own])
                kernel = column_kernel(places)
                if task == REGRESSION:
                    places = with_quantity(places, np.asarray(labels[own], np.float64), mass[own])
                full = KernelMean.from_samples(places, kernel, None if sample_weight is None else mass[own])
                found, share, small = few_rows(full, int(given[k]), rng=stream)
            rows.append(own[found])
            weights.append(share * (mass[own].sum() / share.sum()))
            certificates.append(small.certificate)
    finally:
        shown.close()
    order = np.argsort(np.concatenate(rows), kind="stable")
    indices = np.concatenate(rows)[order]
    return LabelledRows(
        X=rows_like(X, points, indices),
        y=rows_like(y, labels, indices),
        sample_weight=np.concatenate(weights)[order],
        indices=indices,
        task=task,
        classes=classes,
        counts=np.array([len(each) for each in rows]),
        masses=np.bincount(of, mass, len(given)).astype(np.float64),
        certificates=certificates,
        n_samples=n,
        timings=clock.timings(),
    )


def _task(y: Any, task: str | None) -> str:
    """What is to be learnt: as it is said, or by y."""
    if y is None:
        raise ValueError("y must hold one label, or one number, a row; got None: background(X) is for rows without labels")
    if task is not None:
        return _validate.one_of(task, "task", (CLASSES, REGRESSION))
    numbers = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    whole = numbers.dtype.kind != "f" or bool((numbers == np.rint(numbers))[np.isfinite(numbers)].all())
    return CLASSES if whole else REGRESSION


def _quantity(y: Any, count: int) -> Array:
    """(count,) finite numbers."""
    values = _validate.as_numbers(y, "y").astype(np.float64)
    if values.shape not in ((count,), (count, 1)):
        raise ValueError(f"y must have shape ({count},), one number a row of X; got {values.shape}")
    return np.asarray(_validate.points(values.reshape(-1, 1), "y")[:, 0], np.float64)


def _quotas(size: int, of: Labels, mass: Array, rule: str) -> Indices:
    """How many rows each class gets."""
    masses = np.bincount(of, mass).astype(np.float64)
    if size < len(masses):
        raise ValueError(
            f"size must be at least the number of classes, {len(masses)}, since each needs a row; got {size}. Ask for more rows, "
            "or say task='regression' where y is a quantity"
        )
    return shared_out(size, masses, np.bincount(of, mass > 0).astype(np.int64), rule)
