"""compress_svm: replace the support vectors of a fitted SVM by a few Gaussians (Zhang & Kwok 2010, Section IV).

It reads the decision functions (`machines`), finds a reduced set for them (`reduced_set`) and measures the change (`loss`).
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from reduset import _validate
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, PointsLike, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.compression import NotReachedWarning
from reduset.simplification.pipeline import fewest
from reduset.simplification.simplifying import fitting_stages
from reduset.svm.estimators import CompressedOneClassSVM, CompressedSVC, CompressedSVM, CompressedSVR
from reduset.svm.loss import LossEvaluator
from reduset.svm.machines import SupportVectorMachine, read
from reduset.svm.reduced_set import METHODS, TRIED, ReducedSet, ReductionPlan, reduce_set, target_of

RESULTS: dict[str, type[CompressedSVM]] = {
    estimator.kind: estimator for estimator in (CompressedSVC, CompressedSVR, CompressedOneClassSVM)
}


@seeded
def compress_svm(
    fitted: Any,
    *,
    size: int | None = None,
    fraction: float | None = None,
    tol: float | None = None,
    X: PointsLike = None,
    y: ArrayLike | None = None,
    method: str = "auto",
    refit: bool = True,
    polish: bool | int = True,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Any:
    """Replace the support vectors of a fitted SVM by a few Gaussians, each with its own centre, width and weights.

    Pass exactly one of ``size``, ``fraction`` and ``tol``.

    Parameters
    ----------
    fitted : SVC, NuSVC, SVR, NuSVR or OneClassSVM with kernel="rbf"
    size : int
        The maximum number of Gaussians.
    fraction : float in (0, 1]
        The number of Gaussians as a proportion of the support vectors, rounded down, at least 1.
    tol : float
        The largest relative error ``loss_.relative``. The smallest size within it is found by bisection. If every support vector is
        needed, a `NotReachedWarning` reports it.
    X : (N, d) array, optional
        Rows like the ones to predict, with the columns and encoding of the training rows, such as the training rows themselves. The
        Gaussians are fitted to the decision values at X, and the loss is measured there. Without X, both use the support vectors,
        and the fit also uses the norm in the space of the kernel.
    y : (N,) labels or targets of X, optional; used for scores only
    method : "auto", "mixture", "zhang", "kl", "refine" or "kcenter"
        "mixture" groups support vectors in L2, and each group becomes one Gaussian with its own width. "zhang" groups by Algorithm
        1 of Zhang & Kwok (2010) as printed, "kl" by divergence (Goldberger & Roweis 2005). "refine" moves Gaussians with the width
        of the SVM. "kcenter" keeps support vectors unchanged. "auto" tries "mixture", "refine" and "kcenter", and returns the
        result of least error.
    refit : bool
        Fit all weights together; False keeps the weights of each group. The paper's method is ``method="zhang"`` with
        ``refit=False, polish=False``.
    polish : bool or int
        Move the Gaussians by L-BFGS; a number sets the maximum of steps.
    rng : None, seed or Generator; the same seed gives the same result
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    CompressedSVC, CompressedSVR or CompressedOneClassSVM
        With the methods of the original, and ``n_components_``, ``loss_``, ``method_``, ``save``, ``load`` and ``to_onnx``.
        The result has no probabilities, even if the SVC has probability=True. Calibrate it again with
        `CalibratedClassifierCV(FrozenEstimator(small))`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.svm import SVC
    >>> from reduset.svm import compress_svm
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> svm = SVC(gamma=2.0).fit(X, y)
    >>> small = compress_svm(svm, fraction=0.1, X=X, rng=0)
    >>> small.n_components_ <= len(svm.support_) / 10, float((small.predict(X) == svm.predict(X)).mean()) > 0.98
    (True, True)
    """
    machine = read(fitted)
    full = machine.full
    given, tol = _sizes(full.size, size, fraction, tol)
    method = _validate.one_of(method, "method", ("auto", *METHODS))
    plan = ReductionPlan(TRIED if method == "auto" else (method,), *fitting_stages(refit, polish))
    rows = None if X is None else _rows_like(X, machine)
    if y is not None and rows is None:
        raise ValueError("y needs X, got X=None; pass the rows of y as X")
    targets = None if y is None else _targets(y, len(rows))  # type: ignore[arg-type]
    rng = _validate.generator(rng)
    with closing(Progress(progress)) as display:
        seed = int(rng.integers(2**63))
        target = target_of(full, rows, rng)
        evaluator = LossEvaluator(machine, rows)
        if targets is not None:
            evaluator.score(targets)  # labels that cannot be scored raise an error before the fit

        def attempt(size: int) -> ReducedSet:
            if size >= full.size:  # no reduction is needed
                return ReducedSet(full, "all support vectors", 0.0)
            return reduce_set(target, machine.parts, size, plan, seed, evaluator.relative, display.stage("fitting"))

        if tol is None:
            reduced = attempt(given)
        else:
            reduced, _ = fewest(attempt, lambda result: result.error <= tol, full.size, resolution=full.size)
        display.stage("measuring")(0, 1)
        loss = evaluator.loss(reduced.expansion, float(target.bounds(reduced.expansion).max()), targets)
    if tol is not None and reduced.expansion is full:
        warn(
            f"tol={tol:g} was not reached with fewer than all {full.size} support vectors, which were kept; raise tol",
            NotReachedWarning,
        )
    return RESULTS[machine.rule.kind].holding(machine.rule, reduced.expansion, reduced.method, loss, full.size)


def _sizes(count: int, size: Any, fraction: Any, tol: Any) -> tuple[int, float | None]:
    """The number of Gaussians for ``count`` support vectors, or the tolerance."""
    goals = {name: goal for name, goal in (("size", size), ("fraction", fraction), ("tol", tol)) if goal is not None}
    if len(goals) != 1:
        rule = "give exactly one of size (a number of Gaussians), fraction (of the support vectors) and tol (a relative error)"
        raise ValueError(f"{rule}; got {' and '.join(goals) or 'none'}")
    if size is not None:
        return _validate.whole(size, "size", 1, count, f"fitted has {count} support vectors"), None
    if tol is not None:
        return count, _validate.positive(tol, "tol", "it is a proportion, 0.05 for five percent")
    proportion = _validate.positive(fraction, "fraction", "it is a proportion of the support vectors, 0.05 for five percent")
    if proportion > 1:
        raise ValueError(f"fraction must be at most 1, all support vectors; got {fraction!r}. For a number of Gaussians use size")
    return max(1, int(count * proportion + 1e-9)), None


def _rows_like(X: Any, machine: SupportVectorMachine) -> Array:
    rows, dimension, names = _validate.points(X.toarray() if issparse(X) else X), machine.full.dimension, machine.rule.names
    if rows.shape[1] != dimension:
        raise ValueError(f"X must have {dimension} columns like the training rows of fitted, got shape {rows.shape}")
    if names is not None and hasattr(X, "columns") and list(X.columns) != list(names):
        raise ValueError("X must have the columns of the training rows of fitted, in that order; use X[fitted.feature_names_in_]")
    return np.ascontiguousarray(rows, np.float64)


def _targets(y: Any, count: int) -> NDArray[Any]:
    targets = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if targets.shape != (count,):
        raise ValueError(f"y must have shape ({count},), one value for each row of X; got {targets.shape}")
    return targets
