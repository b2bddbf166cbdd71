"""Clusters as the basins of a density's modes: mean shift on atoms or components, with scikit-learn's interface.

One compression or simplification costs O(n·m). Each step then costs O(m) a point instead of O(n).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._engine import as_cupy, as_given, nearest, on_device, take_on_device, to_device_of
from reduset._frames import table_weights
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import (
    Array,
    BandwidthLike,
    Floats,
    Labels,
    MaxSizeLike,
    PointsLike,
    ProgressLike,
    SeedLike,
    SelectorLike,
    WeightsLike,
)
from reduset._validate import of_estimator, seeded
from reduset.certificate import Certificate, at_bandwidth
from reduset.compression import AtomRequest, Compression, NotReachedWarning, at_most_one, evaluated
from reduset.data import opened, row_weights
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.modes.component_density import binned_if_large, simplified_density
from reduset.modes.mean_shift import MAX_STEPS, Ascent, AscentDensity, KernelMeanAscent, MixtureAscent, find_modes, mean_shift
from reduset.simplification import Simplification
from reduset.weights import is_signed

MIN_ATOMS, MAX_ATOMS = 500, 1000


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class SparseMeanShift(ClusterMixin, BaseEstimator):
    """Mean shift clustering on a compressed Gaussian density.

    It has the interface of `sklearn.cluster.MeanShift`, which uses a flat kernel.

    Parameters
    ----------
    bandwidth : float, str or None
        Bandwidth of the Gaussian. A string is the name of a rule of `reduset.bandwidth`. The default is "mode_clustering".
    via : "atoms" or "mixture"
        Approximation of the density. "atoms" uses atoms with its bandwidth, as in `compress`. "mixture" uses components with their
        own covariances, as in `simplify`. The same error needs fewer components than atoms, but each component costs more.
    tol : float, optional
        Largest relative L2 error of the density. A warning is issued if ``max_size`` atoms do not reach it.
    size : int, optional
        Number of atoms or components, instead of ``tol``. With n or more, the full density is used. The default is 500 atoms, or √n
        if this is more. With "mixture", the default is ``radius=2 * bandwidth``, the smallest distance of distinct modes. If this
        needs more than ``max_size`` components, the default is 100 components.
    radius : float, optional
        Radius of the groups of rows with "mixture", instead of ``size``. Each group becomes a component. It has the unit of X.
    max_size : int, "sqrt" or function of n
        Maximum number of atoms or components with ``tol`` or ``plateau``. "sqrt" is the largest integer below √n.
    finish : bool, optional
        Whether the limits of the points continue on the density of all rows. Then the modes are exact. More than 10,000 rows are
        first gathered in cells of a third of a bandwidth. The default is True with "mixture", and False with "atoms". The papers
        use False.
    merge : float
        Modes within this number of bandwidths are merged. A saddle point is not a mode, even if points stop on it.
    cluster_all : bool
        True labels all points by their mode. False labels points far from every limit −1. ``orphan`` sets the distance.
    orphan : float
        Largest distance from a limit with ``cluster_all=False``. The unit is the bandwidth.
    max_iter : int
        Maximum number of steps of a point. If points have not converged, a warning is issued.
    progress : bool or function of (stage, done, total)
        Whether to show the progress. A function receives it instead.
    random_state : int, RandomState, Generator or None
        Seed of random selections. None draws a fresh seed.
    select : selector or its name
        Selector of the atoms, as in `compress`.
    plateau : float, optional
        Stopping rule with "atoms", instead of ``size`` or ``tol``. The selection stops at the first atom that adds at most this
        proportion of the energy added since the first atom. The 2017 paper sets
        ``select="kcenter", plateau=1e-8, max_size="sqrt"``.
    weights : str
        Rule for the weights of the atoms, as in `compress`. They must be non-negative. The 2017 paper uses "simplex_projection".

    Attributes
    ----------
    cluster_centers_ : (k, d)
        Modes, in descending order of density. Mode k is the centre of cluster k.
    labels_ : (n,)
        Label of each point.
    ends_ : (n, d)
        Limit of each point. The limits of points of one cluster are close to its mode.
    n_iter_ : int
        Maximum number of steps.
    mean_, compression_ : KernelMean and Compression
        Atoms and their compression. The compression is None for the full density. Both are None with "mixture".
    mixture_, simplification_ : Mixture and Simplification
        Components and their simplification. The simplification is None for the full density. Both are None with "atoms".
    certificate_ : Certificate
        Approximation error of the density.
    bandwidth_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.modes import SparseMeanShift
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + 6.0])
    >>> shift = SparseMeanShift(bandwidth=1.0, random_state=0).fit(X)
    >>> len(shift.cluster_centers_)
    2
    >>> shift.predict([[0.5, 0.0], [5.0, 7.0]]).tolist() == shift.labels_[[0, -1]].tolist()
    True
    """

    bandwidth: BandwidthLike | None = None
    via: str = "atoms"
    tol: float | None = None
    size: int | None = None
    radius: float | None = None
    max_size: MaxSizeLike = MAX_ATOMS
    finish: bool | None = None
    merge: float = 1.0
    cluster_all: bool = True
    orphan: float = 3.0
    max_iter: int = MAX_STEPS
    progress: ProgressLike = False
    random_state: SeedLike = None
    select: SelectorLike = "auto"
    plateau: float | None = None
    weights: str = "simplex"

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> SparseMeanShift:
        """Compress the density of X, and run mean shift from every row.

        Parameters
        ----------
        X : (n, d) array, frame, files or Dask collection
        y : ignored
        sample_weight : (n,) array, optional
            Non-negative weights of the rows. Only their ratios matter. For files and Dask frames also the name of a column.
        """
        given = opened(X, sample_weight if isinstance(sample_weight, str) else None)
        sample_weight = row_weights(X, given, sample_weight)
        given = given.values if table_weights(given) is not None else given
        X = self._points(given)
        merge = _validate.positive(self.merge, "merge", "it is a number of bandwidths")
        _validate.whole(self.max_iter, "max_iter", 1)
        rule = "mode_clustering" if self.bandwidth is None else self.bandwidth
        weights = None if sample_weight is None else _validate.row_weights(sample_weight, given, len(X))
        full = KernelMean.from_samples(X, Gaussian(rule, normalized=True, space="l2"), weights)
        self.bandwidth_ = cast(Gaussian, full.kernel).width
        self._fit_approximation(full)
        density = self._ascent_density()
        ascent = self._ascend(density, X)
        self._limits = ascent.limits
        if self._finishes(full.size):
            density = KernelMeanAscent(binned_if_large(full, self.bandwidth_)[0])
            final = self._ascend(density, ascent.limits)
        else:
            final = Ascent(ascent.limits, np.arange(len(ascent.limits)), 0, 0)
        self.cluster_centers_, mode_of = find_modes(density, final.limits, merge, self.max_iter)
        self._mode_of = mode_of[final.assignments]
        self._ends, self._end_of = final.ends, as_given(ascent.assignments, given)
        self.n_iter_ = ascent.steps + final.steps
        self.labels_: Labels = as_given(self._without_orphans(density, X, take_on_device(self._mode_of, ascent.assignments)), given)
        return self

    @property
    def ends_(self) -> Array:
        """(n, d) the limit of each point."""
        check_is_fitted(self)
        end_of = as_cupy(self._end_of, "labels_") if on_device(self._end_of) else self._end_of
        return cast(Array, as_given(take_on_device(self._ends, end_of), self._end_of))

    def _points(self, X: PointsLike, reset: bool = True) -> Floats:
        """The validated rows. Arrays on a GPU stay there; ``via="mixture"`` and ``finish=True`` need main memory."""
        _validate.one_of(self.via, "via", ("atoms", "mixture"))
        if on_device(X) and (self.via != "atoms" or self.finish):
            raise TypeError("an array X on a GPU needs via='atoms' and finish=False; set these, or move X to the CPU")
        return of_estimator(self, X, reset)

    def _finishes(self, rows: int) -> bool:
        """Whether the limits continue on the density of all rows. This is False if the approximation has all rows."""
        finish = self.via == "mixture" if self.finish is None else _validate.flag(self.finish, "finish")
        approximation = self.mean_ if self.mixture_ is None else self.mixture_
        return finish and approximation is not None and approximation.size < rows

    def _fit_approximation(self, full: KernelMean) -> None:
        """Compute the atoms or components that replace the rows."""
        at_most_one(size=self.size, tol=self.tol, plateau=self.plateau, radius=self.radius)
        request = AtomRequest.of(self)
        if is_signed(request.weights):
            raise ValueError(f"weights must be a rule for non-negative weights, got {self.weights!r}; use 'simplex'")
        rng = _validate.generator(self.random_state, "random_state")
        self.mean_: KernelMean | None = None
        self.compression_: Compression | None = None
        self.mixture_: Mixture | None = None
        self.simplification_: Simplification | None = None
        if self.via == "atoms":
            if self.radius is not None:
                raise ValueError(f"radius={self.radius!r} needs via='mixture'; set it, or use tol or size")
            request = request.or_else(size=max(MIN_ATOMS, int(np.sqrt(full.size))))
            self.compression_ = request.compress_below(full, rng, self.progress)
            if self.compression_ is not None:
                request.warn_if_not_reached(self.compression_, "the modes of these atoms may differ from the modes of all points")
            mean, self.certificate_ = evaluated(full, self.compression_)
            self.mean_ = cast(KernelMean, mean)
        else:
            self.mixture_, self.certificate_ = self._simplified(full, request, rng)

    def _simplified(self, full: KernelMean, request: AtomRequest, rng: np.random.Generator) -> tuple[Mixture, Certificate]:
        if request.plateau is not None:
            raise ValueError(f"plateau={self.plateau!r} needs via='atoms'; use tol, size or radius for a mixture")
        if request.size is not None and request.size >= full.size:
            copy = KernelMean(np.array(full.atoms[:]), full.weights, full.kernel)  # The caller may change X.
            return Mixture.from_mean(copy), Certificate.without_error(full)
        max_size = request.most(full.size)
        goals = {name: getattr(self, name) for name in ("tol", "size", "radius") if getattr(self, name) is not None}
        if request.tol is not None:
            goals["max_size"] = max_size
        kernel = cast(Gaussian, full.kernel)
        small, certificate = simplified_density(full, kernel, max_size, rng=rng, progress=self.progress, **goals)
        if not small.reached:
            warn(
                f"{request.goal} was not reached with {small.size:,} components; the error is {small.error:.2g}"
                f"{at_bandwidth(certificate.bandwidth)}: the modes of these components may differ from the modes of all points. A "
                "wider bandwidth, a larger tol or a larger max_size reaches it",
                NotReachedWarning,
            )
        if self.radius is not None and small.size == 1:
            warn(
                f"radius={self.radius:g} covers all rows, so there is only one component; use a smaller radius in the units of X "
                "(for the colours of an image, 25 levels of 8 bits are 25/255)"
            )
        self.simplification_ = small
        return small.mixture, certificate

    def _ascent_density(self) -> AscentDensity:
        if self.mixture_ is None:
            return KernelMeanAscent(cast(KernelMean, self.mean_))
        return MixtureAscent(self.mixture_, self.bandwidth_)

    def _ascend(self, density: AscentDensity, X: Any) -> Ascent:
        with closing(Progress(self.progress)) as shown:
            ascent = mean_shift(density, X, self.max_iter, report=shown.stage("climb"))
        if ascent.unfinished:
            warn(
                f"{ascent.unfinished:,} of {len(X):,} points have not converged after max_iter={self.max_iter} steps; raise it",
                ConvergenceWarning,
            )
        return ascent

    def predict(self, X: PointsLike) -> Labels:
        """The cluster of each row of X. It is the cluster of the fitted limit that is nearest to the row's limit."""
        check_is_fitted(self)
        given = opened(X)
        X = self._points(given, reset=False)
        density = self._ascent_density()
        ascent = self._ascend(density, X)
        closest, _ = nearest(ascent.limits, self._limits, density.frame)
        return as_given(self._without_orphans(density, X, take_on_device(self._mode_of[closest], ascent.assignments)), given)

    def _without_orphans(self, density: AscentDensity, X: Any, labels: Labels) -> Labels:
        if self.cluster_all:
            return labels
        _, distance = nearest(X, self._limits, density.frame)
        return np.where(to_device_of(labels, distance) > _validate.positive(self.orphan, "orphan"), -1, labels)
