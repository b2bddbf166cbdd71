"""compress_svm: a fitted SVM in, one of few bumps out, and what that changed (Zhang & Kwok 2010, Section IV).

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

RESULTS: dict[str, type[CompressedSVM]] = {each.kind: each for each in (CompressedSVC, CompressedSVR, CompressedOneClassSVM)}


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
    """Replace the support vectors of a fitted SVM by few bumps, each with its own place, width and weights.

    Exactly one of ``size``, ``fraction`` and ``tol`` says how few.

    Parameters
    ----------
    fitted : SVC, NuSVC, SVR, NuSVR or OneClassSVM with kernel="rbf"
    size : int
        At most that many bumps.
    fraction : float in (0, 1]
        That share of the support vectors, rounded down, at least 1.
    tol : float
        As few as bring the relative error ``loss_.relative`` down to this, found by bisection; a `NotReachedWarning` where that
        takes every support vector.
    X : (N, d) rows like those that will be predicted, numbers encoded as those that ``fitted`` was fitted on, optional
        Training rows serve. The bumps are fitted to the decision values there, and the loss is measured there. Without X both look
        at the support vectors, and fitting at the norm of the kernel's space too.
    y : (N,) labels or targets of X, optional; only scores are taken from them
    method : "auto", "mixture", "zhang", "kl", "refine" or "kcenter"
        "mixture" groups support vectors in L2, and each group becomes one bump with its own width. "zhang" does so by Algorithm 1
        of Zhang & Kwok (2010) as printed, "kl" by divergence (Goldberger & Roweis 2005). "refine" keeps the width of the SVM and
        moves bumps, "kcenter" keeps support vectors unchanged. "auto" tries "mixture", "refine" and "kcenter", and returns the one
        of least error.
    refit : bool
        Fit all weights together; False keeps the weights of each group. The paper's method is ``method="zhang"`` with
        ``refit=False, polish=False``.
    polish : bool or int
        Move bumps by L-BFGS; a number is the most steps.
    rng : None, seed or Generator; the same seed gives the same result
    progress : bool, or a function of (stage, done, total)

    Returns
    -------
    CompressedSVC, CompressedSVR or CompressedOneClassSVM
        With the methods of the original, and ``n_components_``, ``loss_``, ``method_``, ``save``, ``load`` and ``to_onnx``.
        Probabilities of an SVC with probability=True are not carried over: calibrate the result anew,
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
        raise ValueError("y goes with X, and X is None; pass the rows that y belongs to")
    targets = None if y is None else _targets(y, len(rows))  # type: ignore[arg-type]
    rng = _validate.generator(rng)
    with closing(Progress(progress)) as shown:
        seed = int(rng.integers(2**63))
        target = target_of(full, rows, rng)
        evaluator = LossEvaluator(machine, rows)
        if targets is not None:
            evaluator.score(targets)  # what cannot be scored is said before the work, not after

        def attempt(size: int) -> ReducedSet:
            if size >= full.size:  # nothing to reduce
                return ReducedSet(full, "all support vectors", 0.0)
            return reduce_set(target, machine.parts, size, plan, seed, evaluator.relative, shown.stage("fitting"))

        if tol is None:
            found = attempt(given)
        else:
            found, _ = fewest(attempt, lambda each: each.lost <= tol, full.size, resolution=full.size)
        shown.stage("measuring")(0, 1)
        loss = evaluator.loss(found.expansion, float(target.bounds(found.expansion).max()), targets)
    if tol is not None and found.expansion is full:
        warn(
            f"tol={tol:g} was not reached with fewer than all {full.size} support vectors, which were kept; raise tol",
            NotReachedWarning,
        )
    return RESULTS[machine.rule.kind].holding(machine.rule, found.expansion, found.method, loss, full.size)


def _sizes(count: int, size: Any, fraction: Any, tol: Any) -> tuple[int, float | None]:
    """The number of bumps, of so many support vectors, or the tolerance to be reached by as few as possible."""
    goals = {name: goal for name, goal in (("size", size), ("fraction", fraction), ("tol", tol)) if goal is not None}
    if len(goals) != 1:
        rule = "give exactly one of size (a number of bumps), fraction (of the support vectors) and tol (a relative error)"
        raise ValueError(f"{rule}; got {' and '.join(goals) or 'none'}")
    if size is not None:
        return _validate.whole(size, "size", 1, count, f"fitted has {count} support vectors"), None
    if tol is not None:
        return count, _validate.positive(tol, "tol", "it is a share, 0.05 for five percent")
    share = _validate.positive(fraction, "fraction", "it is a share of the support vectors, 0.05 for five percent")
    if share > 1:
        raise ValueError(f"fraction must be at most 1, all support vectors; got {fraction!r}. For a number of bumps use size")
    return max(1, int(count * share + 1e-9)), None


def _rows_like(X: Any, machine: SupportVectorMachine) -> Array:
    rows, dimension, names = _validate.points(X.toarray() if issparse(X) else X), machine.full.dimension, machine.rule.names
    if rows.shape[1] != dimension:
        raise ValueError(f"X must have {dimension} columns like the rows that fitted was fitted on, got shape {rows.shape}")
    if names is not None and hasattr(X, "columns") and list(X.columns) != list(names):
        raise ValueError("X must have the columns that fitted was fitted on, in that order; use X[fitted.feature_names_in_]")
    return np.ascontiguousarray(rows, np.float64)


def _targets(y: Any, count: int) -> NDArray[Any]:
    targets = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if targets.shape != (count,):
        raise ValueError(f"y must have shape ({count},), one value a row of X; got {targets.shape}")
    return targets
