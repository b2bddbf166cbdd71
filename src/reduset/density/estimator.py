"""Density estimation on few atoms or components: a scikit-learn shell around `compress` with weights on the simplex.

Fitting costs one compression, O(n·m); a query O(m) instead of O(n).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reduset import _validate, bandwidth
from reduset._engine import on_device
from reduset._frames import table_weights
from reduset._messages import warn
from reduset._types import Array, BandwidthLike, Floats, KernelLike, MaxSizeLike, PointsLike, SeedLike, SelectorLike, WeightsLike
from reduset._validate import rows as _rows
from reduset._validate.orientation import warn_if_lying
from reduset.compression import Compression, NotReachedWarning
from reduset.compression.atom_request import AtomRequest
from reduset.compression.compressing import evaluated
from reduset.compression.request import COMPONENTS, PIECE_HINTS, PIECES
from reduset.compression.summary import noun
from reduset.density import likelihood
from reduset.kernels import ANY_FAMILY, RadialKernel
from reduset.kernels.registry import KERNELS
from reduset.mean import KernelMean
from reduset.mixture import ComponentMean, Mixture, conditioning

NAMED = KERNELS | {"exponential": KERNELS["laplacian"]}  # scikit-learn calls it so
# kernels that end at their bandwidth, which others have and this house has not: (1 − r²)^p as p, and the cone
COMPACT: dict[str, int | None] = {"tophat": 0, "box": 0, "epanechnikov": 1, "epa": 1, "cosine": 1, "biweight": 2, "triweight": 3}
COMPACT |= {"linear": None, "tri": None, "triangular": None}
EUCLIDEAN = "euclidean", "l2", "minkowski"  # the names that scikit-learn has for it
SEARCH = "likelihood"
TOL = 0.03
MOST_ATOMS = 1000  # beyond, weights on the simplex take seconds and a query as long as a tree's


@dataclass(eq=False, repr=False, kw_only=True)
class SparseKernelDensity(BaseEstimator):
    """Kernel density estimation, compressed: in place of `sklearn.neighbors.KernelDensity`.

    Parameters
    ----------
    bandwidth : float, str, array or None
        A number; the name of a rule of `reduset.bandwidth`; "likelihood" to search 50 around Scott's rule by the likelihood of
        points left out; or an array of bandwidths to search. Where ``size`` is given, it is the likelihood of a density of so many
        atoms. None takes the kernel's own, and "scott" for a kernel given by name.
    kernel : "gaussian", "exponential" (or "laplacian"), "student", … (`reduset.kernels.FAMILIES`), or a kernel object
    metric : "euclidean" (or "l2", "minkowski")
        As scikit-learn's, which has others: distances other than Euclidean are a kernel's own, ``Laplacian(metric="cityblock")``.
    tol : float, optional
        The largest L2 error of the density, relative to its norm; 0.03 if none of ``tol``, ``size`` and ``plateau`` is given. If
        that takes more than ``max_size`` atoms, the density is evaluated exactly, from all points, with a warning.
    size : int, optional
        The number of atoms, instead of ``tol``; as many as there are points, or more, evaluates the density exactly.
    max_size : int, "sqrt" or function of n, optional
        The most atoms with ``tol`` or ``plateau``; by default half the points, 1,000 at most. "sqrt" is the largest integer below
        √n.
    pieces : "atoms" or "components"
        As in `compress`. Components have covariances of their own: some hundred do what takes thousands of atoms (Gaussian
        kernels, up to 64 columns; ``select`` and ``refine`` are for atoms). ``size``, ``tol`` and ``max_size`` then count them, and
        a search for the bandwidth is by the likelihood of the full density.
    whiten : bool
        Bumps as wide and as oblique as the data: the kernel's covariance is that of the data.
    weights, select, refine :
        As in `compress`; the default weights make a valid density.
    random_state : int, RandomState, Generator or None
    plateau : float, optional
        Instead of ``tol``: stop at the first atom that adds at most this proportion of the energy added since the first (the ε of
        the 2017 paper). If ``max_size`` atoms do not reach it, these are used, with a warning.

    Attributes
    ----------
    mean_ : KernelMean, or ComponentMean where pieces are components
        What is evaluated.
    certificate_ : Certificate
        How much was lost, in L2; an error of 0 where nothing was compressed.
    compression_ : Compression or None
        None where the density is evaluated exactly.
    bandwidth_ : float
    search_ : BandwidthScores or None
        The bandwidths tried and their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.density import SparseKernelDensity
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> density = SparseKernelDensity(tol=0.02, random_state=0).fit(X)
    >>> density.mean_.size < 300
    True
    >>> bool(np.exp(density.score_samples(np.zeros((1, 2))))[0] > 0.12)
    True
    """

    bandwidth: BandwidthLike | ArrayLike | None = None
    kernel: KernelLike | str = "gaussian"
    metric: str = "euclidean"
    tol: float | None = None
    size: int | None = None
    max_size: MaxSizeLike | None = None
    pieces: str = "atoms"
    whiten: bool = False
    weights: str = "simplex"
    select: SelectorLike = "auto"
    refine: bool | int = False
    random_state: SeedLike = None
    plateau: float | None = None

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> SparseKernelDensity:
        """Choose the bandwidth and compress.

        Parameters
        ----------
        X : (n, d)
        y : ignored
        sample_weight : (n,) array, optional
            Non-negative; only their ratios matter.
        """
        if table_weights(X) is not None:
            X, sample_weight = X.values, X.weights if sample_weight is None else sample_weight
        warn_if_lying(X)
        given, X = X, _rows.of_estimator(self, X)
        _validate.one_of(self.pieces, "pieces", PIECES, PIECE_HINTS)
        if self.metric not in EUCLIDEAN:
            raise ValueError(
                f"metric must be {', '.join(map(repr, EUCLIDEAN[:-1]))} or {EUCLIDEAN[-1]!r}, got {self.metric!r}; a density in "
                "city-block distance is kernel=Laplacian(metric='cityblock'), for others use sklearn.neighbors.KernelDensity"
            )
        request = AtomRequest.of(self).or_else(tol=TOL)
        if self.max_size is None:
            request = replace(request, max_size=_most_atoms)
        rng = _validate.generator(self.random_state, "random_state")
        weights = None if sample_weight is None else _rows.weights(sample_weight, given, len(X))
        kernel = self._kernel(X, weights)
        self.search_: likelihood.BandwidthScores | None = None
        if self._searches():
            candidates = None if isinstance(self.bandwidth, str) else self.bandwidth
            of_atoms = self.size is not None and self.pieces != COMPONENTS
            how: dict[str, Any] = {"method": "atoms", "size": self.size} if of_atoms else {}
            self.search_ = likelihood.search_bandwidth(X, kernel, candidates, weights, rng=rng, **how)
            kernel = replace(kernel, bandwidth=self.search_.best)
        full = KernelMean.of_rows(X, kernel, weights)
        self.compression_: Compression | None = self._compressed(full, request, rng)
        self.mean_, self.certificate_ = evaluated(full, self.compression_)
        self.bandwidth_ = cast(RadialKernel, full.kernel).width
        return self

    def _kernel(self, X: Floats, weights: Array | None) -> RadialKernel:
        """The kernel as a density in L2, with the bandwidth that does not need a search."""
        kernel = self.kernel
        if isinstance(kernel, str):
            _require_tails(kernel, X.shape[1])
            kernel = NAMED[_validate.one_of(kernel, "kernel", NAMED)]("scott")
        if not isinstance(kernel, RadialKernel):
            raise TypeError(f"kernel must be one of {', '.join(NAMED)}, or a {ANY_FAMILY}; got {kernel!r}")
        changes: dict[str, Any] = {"normalized": True, "space": "l2"}
        if self.bandwidth is not None and not self._searches():
            changes["bandwidth"] = self.bandwidth
        if self.whiten:
            if kernel.covariance is not None or kernel.scales is not None:
                own = "scales" if kernel.covariance is None else "one"
                raise ValueError(
                    f"whiten takes the covariance of the data, and the kernel has {own} of its own; give one of the two"
                )
            changes["covariance"] = _covariance(X, weights)
        return replace(kernel, **changes)

    def _searches(self) -> bool:
        """Whether the bandwidth is neither a number nor a rule."""
        if isinstance(self.bandwidth, str):
            return _validate.one_of(self.bandwidth, "bandwidth", (*bandwidth.RULES, SEARCH)) == SEARCH
        return self.bandwidth is not None and np.ndim(self.bandwidth) > 0

    def _compressed(self, full: KernelMean, request: AtomRequest, rng: np.random.Generator) -> Compression | None:
        """The compression; None where the density is evaluated from all points."""
        found = request.compress_below(full, rng)
        if found is None or found.reached:
            return found
        if request.plateau is not None:
            request.warn_if_not_reached(found, "the density is that of these atoms")
            return found
        warn(
            f"{request.goal} takes more than {found.size:,} {noun(found.mean)}s for {full.size:,} points (these leave an error of "
            f"{found.certificate.relative_error:.2g}): the density is evaluated exactly, from all points. A wider bandwidth, "
            "a larger tol or max_size, or a given size make it small",
            NotReachedWarning,
        )
        return None

    def score_samples(self, X: PointsLike) -> Array:
        """log density at each row of X, (q,); on a GPU, in the library of X, where X is."""
        check_is_fitted(self)
        return self.mean_.log_density(X if on_device(X) else _rows.of_estimator(self, X, reset=False))

    def score(self, X: PointsLike, y: Any = None) -> float:
        """The log-likelihood of X: the sum of `score_samples`."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: SeedLike = None) -> Array:
        """(n_samples, d) draws from the density; with bumps of every kernel."""
        check_is_fitted(self)
        return self.mean_.sample(n_samples, _validate.generator(random_state, "random_state"))

    def cdf(self, X: PointsLike) -> Array:
        """Of each row x of X, the probability that no column exceeds x, (q,)."""
        check_is_fitted(self)
        return self.mean_.cdf(X)

    def integrate_box(self, low: Any, high: Any) -> float | Array:
        """The probability of a box between two corners, (d,) each; of many, (q, d)."""
        check_is_fitted(self)
        return self.mean_.integrate_box(low, high)

    def marginal(self, columns: Any) -> KernelMean | Mixture:
        """The density of some columns, by number or by name; of a Gaussian kernel. A `Mixture` where pieces are components."""
        check_is_fitted(self)
        numbers = self._numbers(columns)
        if isinstance(self.mean_, ComponentMean):
            return self.mean_.marginal(numbers)
        return conditioning.marginal(self.mean_, numbers)

    def conditional(self, columns: Any, values: Any) -> KernelMean | Mixture:
        """The density of the other columns where these have the given values; of a Gaussian kernel."""
        check_is_fitted(self)
        if hasattr(values, "index") and not callable(values.index):  # a Series: its values go by their names
            values = [values[column] for column in ([columns] if isinstance(columns, str) else columns)]
        if isinstance(self.mean_, ComponentMean):
            return self.mean_.conditional(self._numbers(columns), values)
        return conditioning.conditional(self.mean_, self._numbers(columns), values)

    def _numbers(self, columns: Any) -> list[Any]:
        names = list(getattr(self, "feature_names_in_", ()))
        asked = [columns] if isinstance(columns, str) else list(np.ravel(np.asarray(columns, object)))
        if asked and all(isinstance(column, bool | np.bool_) for column in asked):
            if len(asked) != self.n_features_in_:
                raise ValueError(f"columns as a mask must have {self.n_features_in_} entries, got {len(asked)}")
            return np.flatnonzero(asked).tolist()
        unknown = [column for column in asked if isinstance(column, str) and column not in names]
        if unknown:
            raise ValueError(f"columns must be numbers or among {names}, got {unknown[0]!r}")
        return [names.index(column) if isinstance(column, str) else column for column in asked]


def _most_atoms(n: int) -> int:
    """The most atoms for n points, where none is given."""
    return min(MOST_ATOMS, -(-n // 2))


def _require_tails(kernel: str, d: int) -> None:
    """Refuse a kernel that ends, and say which Gaussian is as wide."""
    if kernel in COMPACT:
        p = COMPACT[kernel]
        spread = (d + 1) / ((d + 2) * (d + 3)) if p is None else 1 / (d + 2 * p + 2)  # of a column, at unit bandwidth
        raise ValueError(
            f"kernel must be one of {', '.join(NAMED)}, got {kernel!r}, which ends at its bandwidth: it has no logarithm beyond, "
            f"and no certificate here; use kernel='gaussian' with {np.sqrt(spread):.3f} times the bandwidth, which is as wide"
        )


def _covariance(X: Floats, weights: Array | None) -> Array:
    if (len(X) if weights is None else np.count_nonzero(weights)) < 2:
        raise ValueError("whiten takes the covariance of the data, and needs at least 2 points of weight; got 1. Use whiten=False")
    shares = None if weights is None else weights / weights.max()
    return _validate.covariance(np.atleast_2d(np.cov(X, rowvar=False, aweights=shares)), "the covariance of X")
