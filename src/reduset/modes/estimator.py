"""Clusters as the basins of a density's modes: mean shift on few atoms or components, behind scikit-learn's interface.

One compression or simplification, O(n·m), then steps of O(m) a point instead of O(n).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._engine import as_given, nearest, on_device, take_on_device, to_device_of
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
from reduset._validate import rows as _rows
from reduset._validate import seeded
from reduset.certificate import Certificate
from reduset.certificate.certificate import at_bandwidth
from reduset.compression import Compression, NotReachedWarning
from reduset.compression.atom_request import AtomRequest, at_most_one
from reduset.compression.compressing import evaluated
from reduset.kernels import Gaussian
from reduset.mean import KernelMean
from reduset.mixture import Mixture
from reduset.modes.component_density import full_mixture, gathered, simplified_density
from reduset.modes.mean_shift import MOST_STEPS, Ascent, find_modes, mean_shift
from reduset.modes.segmentation import Segmentation, features, flat, pixels
from reduset.modes.steps import AscentDensity, KernelMeanAscent, MixtureAscent
from reduset.simplification import Simplification
from reduset.weights import is_signed

LEAST_ATOMS, MOST_ATOMS = 500, 1000


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class SparseMeanShift(ClusterMixin, BaseEstimator):
    """Mean shift on a compressed Gaussian density: in place of `sklearn.cluster.MeanShift`, whose kernel is flat.

    Parameters
    ----------
    bandwidth : float, str or None
        Of the Gaussian, a number or a rule of `reduset.bandwidth`; None means "mode_clustering".
    via : "atoms" or "mixture"
        What stands for the density: atoms of its own bandwidth, as `compress` finds them, or components with covariances of their
        own, as `simplify` does: fewer, but each costs more.
    tol : float, optional
        The largest relative L2 error of the density. If ``max_size`` atoms do not reach it, these are used, with a warning.
    size : int, optional
        The number of atoms or components, instead of ``tol``; as many as there are points, or more, climbs the full density. If
        nothing is given, 500 atoms or √n, whichever is more; or with "mixture" as ``radius=2 * bandwidth``, which is as fine as
        modes of that bandwidth can be told apart (100 components where that takes more than ``max_size``).
    radius : float, optional
        With "mixture", instead of ``size``: as many groups of points as have this radius, each a component. In the units of X.
    max_size : int, "sqrt" or function of n
        The most atoms or components with ``tol``, the most atoms with ``plateau``. "sqrt" is the largest integer below √n.
    finish : bool, optional
        Whether the few places at which points come to rest climb on from there on the density of all rows (gathered in cells of a
        third of a bandwidth, where they are many), so that the modes are its own and none that the few atoms or components make.
        By default with "mixture"; False is the papers' way.
    merge : float
        Modes within so many bandwidths of each other are one. (Saddles on which points stop are none.)
    cluster_all : bool
        Whether points farther than ``orphan`` bandwidths from where any point comes to rest belong to the mode they climb to, or
        are labelled −1.
    orphan : float
    max_iter : int
        The most steps of a point.
    progress : bool or function of (stage, done, total)
    random_state : int, RandomState, Generator or None
    select : selector or its name
        How the atoms are chosen, as in `compress`.
    plateau : float, optional
        With "atoms", instead of ``size`` or ``tol``: stop at the first atom that adds at most this proportion of the energy added
        since the first. The 2017 paper sets ``select="kcenter", plateau=1e-8, max_size="sqrt"``.
    weights : str
        Of the atoms, non-negative, as in `compress`. "simplex_projection" is the 2017 paper's.

    Attributes
    ----------
    cluster_centers_ : (k, d) the modes, the highest first
    labels_ : (n,)
    ends_ : (n, d) where each point came to rest
    n_iter_ : the most steps that a point took
    mean_, compression_ : the atoms that are climbed, and how they were found (None for the full density); None with "mixture"
    mixture_, simplification_ : the same for components; None with "atoms"
    certificate_, bandwidth_ : what was lost, and the bandwidth

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
    max_size: MaxSizeLike = MOST_ATOMS
    finish: bool | None = None
    merge: float = 1.0
    cluster_all: bool = True
    orphan: float = 3.0
    max_iter: int = MOST_STEPS
    progress: ProgressLike = False
    random_state: SeedLike = None
    select: SelectorLike = "auto"
    plateau: float | None = None
    weights: str = "simplex"

    def fit(self, X: PointsLike, y: Any = None, sample_weight: WeightsLike = None) -> SparseMeanShift:
        """Compress the density of X and climb it from every row.

        Parameters
        ----------
        X : (n, d)
        y : ignored
        sample_weight : (n,) array, optional
            Non-negative; only their ratios matter.
        """
        given, X = X, self._points(X)
        merge = _validate.positive(self.merge, "merge", "it is a number of bandwidths")
        _validate.whole(self.max_iter, "max_iter", 1)
        rule = "mode_clustering" if self.bandwidth is None else self.bandwidth
        weights = None if sample_weight is None else _rows.weights(sample_weight, given, len(X))
        full = KernelMean.from_samples(X, Gaussian(rule, normalized=True, space="l2"), weights)
        self.bandwidth_ = cast(Gaussian, full.kernel).width
        self._fit_surrogate(full)
        density = self._ascent_density()
        found = self._ascend(density, X)
        self._limits = found.limits
        if self._finishes(full.size):
            density = KernelMeanAscent(gathered(full, self.bandwidth_)[0])
            last = self._ascend(density, found.limits)
        else:
            last = Ascent(found.limits, np.arange(len(found.limits)), 0, 0)
        self.cluster_centers_, mode_of = find_modes(density, last.limits, merge, self.max_iter)
        self._mode_of = mode_of[last.owner]
        self.ends_ = as_given(take_on_device(last.ends, found.owner), given)
        self.n_iter_ = found.steps + last.steps
        self.labels_: Labels = as_given(self._without_orphans(density, X, take_on_device(self._mode_of, found.owner)), given)
        return self

    def _points(self, X: PointsLike, reset: bool = True) -> Floats:
        """The rows; those on a GPU where they are, where they can climb there."""
        _validate.one_of(self.via, "via", ("atoms", "mixture"))
        if on_device(X) and (self.via != "atoms" or self.finish):
            raise TypeError("X is an array on a GPU, where only atoms are climbed; use via='atoms', finish=False, or bring X over")
        return _rows.of_estimator(self, X, reset)

    def _finishes(self, rows: int) -> bool:
        """Whether places go on to climb the density of all rows, where what they climbed is not that already."""
        wanted = self.via == "mixture" if self.finish is None else _validate.flag(self.finish, "finish")
        climbed = self.mean_ if self.mixture_ is None else self.mixture_
        return wanted and climbed is not None and climbed.size < rows

    def _fit_surrogate(self, full: KernelMean) -> None:
        """The few atoms or components that are climbed in place of all points."""
        _validate.one_of(self.via, "via", ("atoms", "mixture"))
        at_most_one(size=self.size, tol=self.tol, plateau=self.plateau, radius=self.radius)
        request = AtomRequest.of(self)
        if is_signed(request.weights):
            raise ValueError(f"weights must not be negative, for a density to climb; got {self.weights!r}, use 'simplex'")
        rng = _validate.generator(self.random_state, "random_state")
        self.mean_: KernelMean | None = None
        self.compression_: Compression | None = None
        self.mixture_: Mixture | None = None
        self.simplification_: Simplification | None = None
        if self.via == "atoms":
            if self.radius is not None:
                raise ValueError(f"radius={self.radius!r} is of a mixture's groups; use via='mixture', or give tol or size")
            request = request.or_else(size=max(LEAST_ATOMS, int(np.sqrt(full.size))))
            self.compression_ = request.compress_below(full, rng, self.progress)
            if self.compression_ is not None:
                request.warn_if_not_reached(self.compression_, "the modes of these atoms may differ from those of all points")
            kept, self.certificate_ = evaluated(full, self.compression_)
            self.mean_ = cast(KernelMean, kept)  # of atoms
        else:
            self.mixture_, self.certificate_ = self._simplified(full, request, rng)

    def _simplified(self, full: KernelMean, request: AtomRequest, rng: np.random.Generator) -> tuple[Mixture, Certificate]:
        if request.plateau is not None:
            raise ValueError(f"plateau={self.plateau!r} goes with via='atoms'; give tol, size or radius for a mixture")
        if request.size is not None and request.size >= full.size:
            return full_mixture(full), Certificate.of_nothing_lost(full)
        most = request.most(full.size)
        goals = {name: getattr(self, name) for name in ("tol", "size", "radius") if getattr(self, name) is not None}
        if request.tol is not None:
            goals["max_size"] = most
        found, certificate = simplified_density(full, cast(Gaussian, full.kernel), most, rng=rng, progress=self.progress, **goals)
        if not found.reached:
            warn(
                f"{request.goal} was not reached with {found.size:,} components, which leave an error of {found.error:.2g}"
                f"{at_bandwidth(certificate.bandwidth)}: their modes may differ from those of all points. A wider bandwidth, a "
                "larger tol or a larger max_size reaches it",
                NotReachedWarning,
            )
        if self.radius is not None and found.size == 1:
            warn(
                f"radius={self.radius:g} covers all rows, so that one component stands for them; it is in the units of X (of an "
                "image's colours as shares of 1: 25 levels of 8 bits are 25/255)"
            )
        self.simplification_ = found
        return found.mixture, certificate

    def _ascent_density(self) -> AscentDensity:
        if self.mixture_ is None:
            return KernelMeanAscent(cast(KernelMean, self.mean_))
        return MixtureAscent(self.mixture_, self.bandwidth_)

    def _ascend(self, density: AscentDensity, X: Any) -> Ascent:
        with closing(Progress(self.progress)) as shown:
            found = mean_shift(density, X, self.max_iter, report=shown.stage("climb"))
        if found.unfinished:
            warn(
                f"{found.unfinished:,} of {len(X):,} points were still climbing after max_iter={self.max_iter} steps; raise it",
                ConvergenceWarning,
            )
        return found

    def predict(self, X: PointsLike) -> Labels:
        """The cluster of each row of X: that of the fitted points that came to rest nearest to where it does."""
        check_is_fitted(self)
        given, X = X, self._points(X, reset=False)
        density = self._ascent_density()
        found = self._ascend(density, X)
        closest, _ = nearest(found.limits, self._limits, density.frame)
        return as_given(self._without_orphans(density, X, take_on_device(self._mode_of[closest], found.owner)), given)

    def _without_orphans(self, density: AscentDensity, X: Any, labels: Labels) -> Labels:
        if self.cluster_all:
            return labels
        _, distance = nearest(X, self._limits, density.frame)
        return np.where(to_device_of(labels, distance) > _validate.positive(self.orphan, "orphan"), -1, labels)


def segment(
    image: ArrayLike, bandwidth: BandwidthLike | None = None, spatial: float = 1.0, min_size: int = 1, **options: Any
) -> Segmentation:
    """Cut an image into segments of one colour, by mean shift on position and colour.

    Parameters
    ----------
    image : (h, w), (h, w, 3) or (h, w, 4) array
        Grey, RGB or RGBA; whole numbers of their type's range, or floats. What is transparent counts by its colour all the same.
    bandwidth : float, str or None
        In units where colours go from 0 to 1 (floats are taken as they are) and so does the longer side of the image.
    spatial : float
        How much the position counts: the longer side, in those units. 0 leaves the position out: colours alone.
    min_size : int
        Segments of fewer pixels go to the segment whose mode is nearest.
    **options : as `SparseMeanShift`
        A ``radius`` with ``via="mixture"`` is in those units too: 25/255 is 25 levels of 8 bits.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.modes import segment
    >>> image = np.zeros((20, 30), np.uint8)
    >>> image[:, 15:] = 200
    >>> found = segment(image, bandwidth=0.2, random_state=0)
    >>> found.count, found.image[0, 0].item(), found.image[0, 29].item()
    (2, 0, 200)
    """
    if _validate.finite(spatial, "spatial") != 0:
        spatial = _validate.positive(spatial, "spatial", "it is the length of the longer side, or 0 for colours alone")
    array = pixels(image, alone=spatial == 0)
    least = _validate.whole(min_size, "min_size", 1)
    X = features(array, spatial)
    shift = SparseMeanShift(bandwidth=bandwidth, **options)
    if not shift.cluster_all:
        raise ValueError("every pixel belongs to a segment, so cluster_all must be True, got False; leave it out")
    shift.fit(X)
    labels = _dissolved(shift.labels_, shift.cluster_centers_, least)
    coloured = flat(array, labels).reshape(np.shape(image))
    return Segmentation(labels.reshape(array.shape[:2]), coloured, shift.certificate_, shift.bandwidth_)


def _dissolved(labels: Labels, modes: Array, least: int) -> Labels:
    """Labels 0, 1, … of the segments that are large enough; the pixels of the others go to the nearest of these modes."""
    counts = np.bincount(labels, minlength=len(modes))
    kept = np.flatnonzero(counts >= min(least, int(counts.max())))
    _, closest = cKDTree(modes[kept]).query(modes)
    return np.asarray(closest, np.int64)[labels]
