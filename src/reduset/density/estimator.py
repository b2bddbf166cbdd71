"""Kernel density estimation: a scikit-learn estimator around `fit_leaves`, or around `compress` with weights on the simplex.

By default all rows of low density are kept, and a query sums the leaves near it (`leaf_density`). The tails are then accurate. With
``tol`` or ``size`` the rows are compressed in L2: fitting costs O(n·m), a query O(m).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reduset import _validate, bandwidth
from reduset._engine import map_rows, on_device
from reduset._frames import table_weights
from reduset._messages import did_you_mean, warn
from reduset._types import Array, BandwidthLike, Floats, KernelLike, MaxSizeLike, PointsLike, SeedLike, SelectorLike, WeightsLike
from reduset._validate import seeded, warn_if_lying
from reduset.certificate import Certificate, at_bandwidth, certificate_between
from reduset.compression import COMPONENTS, PIECE_HINTS, PIECES, AtomRequest, Compression, NotReachedWarning, evaluated, noun
from reduset.data import opened, row_weights
from reduset.density import likelihood
from reduset.density.leaf_density import LeafDensity, fit_leaves
from reduset.density.log_error import EXACT, LogError, left_out_error
from reduset.kernels import ANY_FAMILY, KERNELS, RadialKernel
from reduset.mean import KernelMean
from reduset.mixture import ComponentMean, Mixture, SmallMean, conditional_of, marginal_of

NAMED = KERNELS | {"exponential": KERNELS["laplacian"]}  # the name in scikit-learn
# unsupported kernels with compact support: the power p of (1 − r²)^p, or None for the cone
COMPACT: dict[str, int | None] = {"tophat": 0, "box": 0, "epanechnikov": 1, "epa": 1, "cosine": 1, "biweight": 2, "triweight": 3}
COMPACT |= {"linear": None, "tri": None, "triangular": None}
EUCLIDEAN = "euclidean", "l2", "minkowski"  # the names in scikit-learn
SEARCH = "likelihood"
TOL, LOG_TOL = 0.03, 0.1
MAX_ATOMS = 1000  # above, weights on the simplex take seconds, and a query takes as long as with a tree
COMPRESSION_DEFAULTS = {"pieces": "atoms", "weights": "simplex", "select": "auto", "refine": False}


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class SparseKernelDensity(BaseEstimator):
    """Kernel density estimation with fast queries: an alternative to `sklearn.neighbors.KernelDensity`.

    By default `score_samples` is accurate in the tails, so that it can rank outliers. Rows closer than a tenth of a bandwidth are
    merged, and all others are kept. A query sums the rows near it. ``log_error_`` is the error of the log density at held-out rows.

    With ``tol`` or ``size``, the rows are replaced by a few atoms or components whose density is close in L2. Queries and storage
    then cost less, but the log density of outliers can have a large error.

    Parameters
    ----------
    bandwidth : float, str, array or None
        A number, or the name of a rule of `reduset.bandwidth`. "likelihood" searches 50 bandwidths around Scott's rule by the
        likelihood of held-out points. An array lists the bandwidths to search. With ``size``, the search uses the likelihood of a
        density with ``size`` atoms. None takes the bandwidth of the kernel object, or "scott" for a kernel given by name.
    kernel : "gaussian", "exponential" (or "laplacian"), "student", … (`reduset.kernels.FAMILIES`), or a kernel object
    metric : "euclidean" (or "l2", "minkowski")
        As in scikit-learn. Other distances are set by a kernel object: ``Laplacian(metric="cityblock")``.
    log_tol : float, optional
        The largest error of the log density at 99 % of held-out rows. The default is 0.1. It cannot be combined with ``tol``,
        ``size`` or ``plateau``.
    tol : float, optional
        The largest L2 error of the density, relative to its norm. If that takes more than ``max_size`` atoms, a warning is given
        and the density is evaluated exactly, from all points. The default is 0.03 for rows on a GPU, and if ``pieces``,
        ``weights``, ``select`` or ``refine`` is set without ``size``.
    size : int, optional
        The number of atoms, instead of ``tol``. If it is at least the number of points, the density is evaluated exactly.
    max_size : int, "sqrt" or function of n, optional
        The largest number of atoms. The default is 1,048,576. With ``tol`` or ``plateau`` it is half the number of points, and at
        most 1,000. "sqrt" is the largest integer below √n.
    pieces : "atoms" or "components"
        As in `compress`. Each component has its own covariance, so that a few hundred components are as accurate as thousands of
        atoms. They need a Gaussian kernel and at most 64 columns. ``size``, ``tol`` and ``max_size`` then refer to components, a
        bandwidth search uses the likelihood of the full density, and ``select`` and ``refine`` do not apply.
    whiten : bool
        If True, the kernel has the covariance of the data.
    weights, select, refine :
        As in `compress`. With the default weights the result is a valid density.
    random_state : int, RandomState, Generator or None
    plateau : float, optional
        Instead of ``tol``: stop at the first atom that adds at most this proportion of the energy added since the first atom. It is
        the ε of the 2017 paper. If ``max_size`` atoms do not reach it, these are used, with a warning.

    Attributes
    ----------
    mean_ : KernelMean, or ComponentMean if pieces are components
        The density.
    log_error_ : LogError or None
        The error of the log density at up to 2,000 held-out rows: ``median``, 99 % quantile ``q99`` and ``maximum``. They are zero
        if the density is evaluated exactly. None for rows on a GPU, where the error is not measured.
    certificate_ : Certificate
        The L2 error; 0 if no rows were merged or compressed.
    compression_ : Compression or None
        None if the rows were not compressed by ``tol`` or ``size``.
    bandwidth_ : float
    search_ : BandwidthScores or None
        The bandwidths tried and their scores.

    Notes
    -----
    The setting of Cruz Cortés and Scott (2017) is ``select="kcenter", plateau=1e-7, weights="simplex_projection"``.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.density import SparseKernelDensity
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> density = SparseKernelDensity(random_state=0).fit(X)
    >>> density.log_error_.q99 < 0.1
    True
    >>> bool(np.exp(density.score_samples(np.zeros((1, 2))))[0] > 0.12)
    True
    >>> SparseKernelDensity(tol=0.02, random_state=0).fit(X).mean_.size < 300
    True
    """

    bandwidth: BandwidthLike | ArrayLike | None = None
    kernel: KernelLike | str = "gaussian"
    metric: str = "euclidean"
    log_tol: float | None = None
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
        X : (n, d) array, frame, files or Dask collection
        y : ignored
        sample_weight : (n,) array, optional
            Non-negative weights, of which only the ratios matter. For files and Dask frames also the name of a column.
        """
        warn_if_lying(X)
        given = opened(X, sample_weight if isinstance(sample_weight, str) else None)
        sample_weight = row_weights(X, given, sample_weight)
        given = given.values if table_weights(given) is not None else given
        X = _validate.rows.of_estimator(self, given)
        _validate.one_of(self.pieces, "pieces", PIECES, PIECE_HINTS)
        if self.metric not in EUCLIDEAN:
            raise ValueError(
                f"metric must be {', '.join(map(repr, EUCLIDEAN[:-1]))} or {EUCLIDEAN[-1]!r}, got {self.metric!r}; for city-block "
                "distance use kernel=Laplacian(metric='cityblock'), for other metrics sklearn.neighbors.KernelDensity"
                f"{did_you_mean(self.metric, EUCLIDEAN)}"
            )
        request = AtomRequest.of(self).or_else(tol=TOL)
        if self.log_tol is not None:
            self._require_leaves(on_device(X))
        rng = _validate.generator(self.random_state, "random_state")
        weights = None if sample_weight is None else _validate.rows.weights(sample_weight, given, len(X))
        kernel = self._kernel(X, weights)
        self.search_: likelihood.BandwidthScores | None = None
        if self._searches():
            candidates = None if isinstance(self.bandwidth, str) else self.bandwidth
            size = None if self.pieces == COMPONENTS else self.size
            self.search_ = likelihood.search_bandwidth(X, kernel, candidates, weights, size, rng)
            kernel = replace(kernel, bandwidth=self.search_.best)
        full = KernelMean.of_rows(X, kernel, weights)
        self.compression_: Compression | None = None
        self.log_error_: LogError | None = None
        self._leaves: LeafDensity | None = None
        if self._compresses() or on_device(X):
            self._fit_compressed(full, replace(request, max_size=self.max_size or (lambda n: min(MAX_ATOMS, -(-n // 2)))), rng)
        else:
            self._fit_leaves(full, None if self.max_size is None else request.most(full.size), rng)
        self.bandwidth_ = cast(RadialKernel, full.kernel).width
        return self

    def _compresses(self) -> bool:
        """Whether an option of `compress` is set."""
        changed = any(getattr(self, name) != default for name, default in COMPRESSION_DEFAULTS.items())
        return changed or any(goal is not None for goal in (self.tol, self.size, self.plateau))

    def _require_leaves(self, rows_on_device: bool) -> None:
        """Raise an error if ``log_tol`` is set and rows are compressed in L2."""
        _validate.positive(self.log_tol, "log_tol")
        if self._compresses():
            raise ValueError(
                "log_tol cannot be combined with tol, size, plateau, pieces, weights, select or refine, which compress in L2; "
                "omit log_tol or the other parameters"
            )
        if rows_on_device:
            raise ValueError("log_tol needs rows in main memory, got rows on a GPU; use tol or size")

    def _fit_leaves(self, full: KernelMean, max_size: int | None, rng: np.random.Generator) -> None:
        kernel = cast(RadialKernel, full.kernel)
        self._leaves, self.log_error_ = fit_leaves(full, kernel, LOG_TOL if self.log_tol is None else self.log_tol, max_size, rng)
        self.mean_: SmallMean = self._leaves.mean
        merged = self.log_error_ != EXACT and self.mean_.size < np.count_nonzero(full.weights)
        self.certificate_ = certificate_between(full, self.mean_, kernel, rng) if merged else Certificate.without_error(full)

    def _fit_compressed(self, full: KernelMean, request: AtomRequest, rng: np.random.Generator) -> None:
        self.compression_ = self._compressed(full, request, rng)
        self.mean_, self.certificate_ = evaluated(full, self.compression_)
        if self.compression_ is None:
            self.log_error_ = EXACT
        elif not on_device(full.atoms):
            self.log_error_ = left_out_error(full, self.mean_.log_density, self.compression_.indices, rng)

    def _kernel(self, X: Floats, weights: Array | None) -> RadialKernel:
        """The kernel as a density in L2, with its bandwidth unless that is searched for."""
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
                conflict = "scales" if kernel.covariance is None else "a covariance"
                raise ValueError(
                    f"whiten=True cannot be combined with a kernel that has {conflict}; use whiten=False, or omit {conflict}"
                )
            changes["covariance"] = _covariance(X, weights)
        return replace(kernel, **changes)

    def _searches(self) -> bool:
        """Whether the bandwidth is neither a number nor a rule."""
        if isinstance(self.bandwidth, str):
            return _validate.one_of(self.bandwidth, "bandwidth", (*bandwidth.RULES, SEARCH)) == SEARCH
        return self.bandwidth is not None and np.ndim(self.bandwidth) > 0

    def _compressed(self, full: KernelMean, request: AtomRequest, rng: np.random.Generator) -> Compression | None:
        """The compression; None if the density is evaluated from all points."""
        compression = request.compress_below(full, rng)
        if compression is None or compression.reached:
            return compression
        if request.plateau is not None:
            request.warn_if_not_reached(compression, "the density has these atoms")
            return compression
        error = f"{compression.certificate.relative_error:.2g}{at_bandwidth(compression.certificate.bandwidth)}"
        warn(
            f"{request.goal} takes more than {compression.size:,} {noun(compression.mean)}s for {full.size:,} points (their error "
            f"is {error}), so the density is evaluated exactly, from all points. For a smaller density use a wider bandwidth, a "
            "larger tol or max_size, or set size",
            NotReachedWarning,
        )
        return None

    def score_samples(self, X: PointsLike) -> Array:
        """log density at each row of X, (q,). For X on a GPU, all atoms are summed there and the result has the array type of X."""
        check_is_fitted(self)
        X = opened(X)
        if on_device(X):
            return self.mean_.log_density(X)
        rows = _validate.rows.of_estimator(self, X, reset=False)
        return self.mean_.log_density(rows) if self._leaves is None else map_rows(rows, self._leaves.log_density)

    def score(self, X: PointsLike, y: Any = None) -> float:
        """The log-likelihood of X: the sum of `score_samples`."""
        return float(self.score_samples(X).sum())

    @seeded
    def sample(self, n_samples: int = 1, random_state: SeedLike = None) -> Array:
        """(n_samples, d) draws from the density, for every kernel.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState, Generator or None
        """
        check_is_fitted(self)
        return self.mean_.sample(n_samples, _validate.generator(random_state, "random_state"))

    def cdf(self, X: PointsLike) -> Array:
        """For each row x of X, the probability that no column exceeds x, (q,).

        Parameters
        ----------
        X : (q, d) array or frame
        """
        check_is_fitted(self)
        return self.mean_.cdf(X)

    def integrate_box(self, low: Any, high: Any) -> float | Array:
        """The probability of a box with sides along the axes.

        Parameters
        ----------
        low, high : (d,) or (q, d)
            Limits of one box, or of q boxes. Limits may be infinite.
        """
        check_is_fitted(self)
        return self.mean_.integrate_box(low, high)

    def marginal(self, columns: Any) -> KernelMean | Mixture:
        """The density of some columns, for a Gaussian kernel. A `Mixture` if pieces are components.

        Parameters
        ----------
        columns : number or name, several of them, or a mask of d booleans
        """
        check_is_fitted(self)
        numbers = self._numbers(columns)
        if isinstance(self.mean_, ComponentMean):
            return self.mean_.marginal(numbers)
        return marginal_of(self.mean_, numbers)

    def conditional(self, columns: Any, values: Any) -> KernelMean | Mixture:
        """The density of the other columns, given the values of these, for a Gaussian kernel.

        Parameters
        ----------
        columns : number or name, several of them, or a mask of d booleans
        values : numbers, one for each of the columns; a Series is matched by name
        """
        check_is_fitted(self)
        if hasattr(values, "index") and not callable(values.index):  # a Series: values are matched by name
            values = [values[column] for column in ([columns] if isinstance(columns, str) else columns)]
        if isinstance(self.mean_, ComponentMean):
            return self.mean_.conditional(self._numbers(columns), values)
        return conditional_of(self.mean_, self._numbers(columns), values)

    def _numbers(self, columns: Any) -> list[Any]:
        names = list(getattr(self, "feature_names_in_", ()))
        requested = [columns] if isinstance(columns, str) else list(np.ravel(np.asarray(columns, object)))
        if requested and all(isinstance(column, bool | np.bool_) for column in requested):
            if len(requested) != self.n_features_in_:
                raise ValueError(f"columns as a mask must have {self.n_features_in_} entries, got {len(requested)}")
            return np.flatnonzero(requested).tolist()
        unknown = [column for column in requested if isinstance(column, str) and column not in names]
        if unknown:
            raise ValueError(f"columns must be numbers or among {names}, got {unknown[0]!r}")
        return [names.index(column) if isinstance(column, str) else column for column in requested]


def _require_tails(kernel: str, d: int) -> None:
    """Raise an error for a kernel with compact support, with the bandwidth of a Gaussian of the same standard deviation."""
    if kernel in COMPACT:
        p = COMPACT[kernel]
        variance = (d + 1) / ((d + 2) * (d + 3)) if p is None else 1 / (d + 2 * p + 2)  # of a column, at unit bandwidth
        raise ValueError(
            f"kernel must be one of {', '.join(NAMED)}, got {kernel!r}, which is 0 beyond its bandwidth, where the log density is "
            f"-inf; use kernel='gaussian' with {np.sqrt(variance):.3f} times the bandwidth, which has the same standard deviation"
        )


def _covariance(X: Floats, weights: Array | None) -> Array:
    if (len(X) if weights is None else np.count_nonzero(weights)) < 2:
        raise ValueError("whiten=True needs at least 2 points with weight for a covariance, got 1. Use whiten=False")
    relative = None if weights is None else weights / weights.max()
    return _validate.covariance(np.atleast_2d(np.cov(X, rowvar=False, aweights=relative)), "the covariance of X")
