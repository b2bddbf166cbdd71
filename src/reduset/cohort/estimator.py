"""CohortMap: a map of bags, as a scikit-learn estimator (Cruz Cortés & Scott 2017, Section VI-A).

bags → compressions (`shared_atoms`) → distances (`distances`, `divergences`) → map (`layouts`). Validates, calls, stores.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._progress import Progress
from reduset._types import Array, BagsLike, KernelLike, MaxSizeLike, ProgressLike, SeedLike, SelectorLike
from reduset._validate import seeded
from reduset.cohort.bags import bag_points, opened_bags
from reduset.cohort.comparison import PIECES, WAYS, Comparison, ComparisonOptions
from reduset.cohort.layouts import LAYOUTS, lay_out, scatter
from reduset.compression import MOST_ATOMS, AtomRequest
from reduset.kernels import ANY_FAMILY, Gaussian, Kernel, RadialKernel, as_kernel

DENSITY_SIZE = {"atoms": 400, "components": 100}  # without tol and size
DRAWS = {"atoms": 1000, "components": 4000}  # the error of components is smaller than the noise of 1,000 draws
MAX_SIZE = {"mmd": MOST_ATOMS, "kl": 1000}  # weights of densities are a quadratic program for each bag


@seeded
@dataclass(eq=False, repr=False)
class CohortMap(TransformerMixin, BaseEstimator):
    """A map on which similar bags are near each other.

    A bag is a sample, for example the (n, d) points of one patient. Bags are a list of arrays or frames, a mapping from names to
    them, or an (N, n, d) array. They can also be one long table with ``sample=``, the name of the column with the bag of each row,
    or an array of labels. A bag may also be a path, a Dask collection, or a delayed array or frame. Such bags are never in memory
    at once. Each bag of Dask is computed by one task.

    Parameters
    ----------
    distance : "mmd" or "kl"
        "mmd" is the maximum mean discrepancy, the distance of the bags' kernel means. "kl" is the symmetrised Kullback-Leibler
        divergence of their densities, by Monte Carlo. With ``space="l2"`` of the kernel, "mmd" is the L2 distance of densities.
    layout : "isomap" or "mds"
    n_components : int, dimensions of the map
    kernel : Kernel or callable
        The default is ``Gaussian("median")``, for "kl" ``Gaussian("iqr", normalized=True)``. A bandwidth rule is applied to the
        points of all bags, with the same weight for each bag.
    tol : float
        The largest relative error ‖f − f_m‖ / ‖f‖ of each bag. The smallest number of atoms certified to reach it is used.
    size : int
        The number of atoms or components. Without ``tol`` and ``size``, "kl" uses 100 components or 400 atoms. "mmd" then chooses
        the number so that ‖errors_‖ ≤ 0.01 ‖distances_‖ in the Frobenius norm (with own atoms, tol 0.02). If bags are nearly equal,
        distances count as at least 0.01 times the bags' norms, with a warning.
    pieces : "atoms" or "components"
        Weighted points, or Gaussian components with their own covariances for each bag. The default is components for "kl" with a
        Gaussian kernel, unless ``atoms`` or ``plateau`` is given, and atoms otherwise. On blood samples, components have a tenth of
        the error of four times as many atoms, and take longer to fit.
    atoms : "shared", "own" or "all"
        The same atoms for all bags (default), different atoms for each bag, as in the paper, or no compression.
    select : selector or its name, of atoms
    plateau : float
        The ε rule of the paper, instead of ``tol`` or ``size``. It stops at the first atom that adds at most this proportion of the
        energy added since the first. The rule applies to each bag with own atoms, and to the mean of all bags with shared atoms.
    max_size : int, "sqrt" or function of the number of points
        The largest number of atoms or components for ``tol`` and ``plateau``; default 5000, for "kl" 1000. With own atoms it
        applies to each bag. The paper uses ``lambda n: int(3 * n**0.5)``. "sqrt" is the largest integer below √n.
    n_neighbors : int
        The number of neighbours in the graph of layout "isomap". At most the number of bags minus one is used.
    draws : int
        The number of draws from each density, for "kl"; default 4000 from components, 1000 from atoms.
    confidence : float
        The confidence of the certificates behind ``errors_``.
    random_state : None, seed, Generator or RandomState
    progress : bool, or a function of (stage, done, total)

    Attributes
    ----------
    embedding_ : (N, n_components)
    distances_ : (N, N)
    errors_ : (N, N)
        For "mmd", an upper bound on the effect of the compression on each distance. With shared atoms, the full distance lies
        between ``distances_`` and ``distances_ + errors_``, with own atoms within ``distances_ ± errors_``. For "kl", the standard
        error of the Monte Carlo estimate.
    compressions_ : Compressions of the bags, a list, or None for atoms "all".
        With components, ``mean`` of each is a `Mixture`.
    pieces_ : "atoms" or "components"
    names_ : Names of the bags, a list of numbers from 0, keys, or labels in the order of their first row.
    kernel_ : Kernel with a resolved bandwidth.
    n_features_in_ : int
    feature_names_in_ : Columns of the bags, (d,), if they are frames with texts as column names.

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.cohort import CohortMap
    >>> rng = np.random.default_rng(0)
    >>> bags = [rng.normal(shift, 1, size=(500, 2)) for shift in (0, 0.1, 0.2, 3, 3.1, 3.2)]
    >>> cohort = CohortMap(layout="mds", random_state=0)
    >>> cohort.fit_transform(bags).shape
    (6, 2)
    >>> bool(cohort.distances_[0, 1] < cohort.distances_[0, 3])
    True
    """

    distance: str = "mmd"
    layout: str = "isomap"
    n_components: int = 2
    kernel: KernelLike = None
    tol: float | None = None
    size: int | None = None
    random_state: SeedLike = None
    _: KW_ONLY
    pieces: str | None = None
    atoms: str | None = None
    select: SelectorLike = "greedy"
    plateau: float | None = None
    max_size: MaxSizeLike | None = None
    n_neighbors: int = 5
    draws: int | None = None
    confidence: float = 0.95
    progress: ProgressLike = False

    def _options(self) -> ComparisonOptions:
        distance = _validate.one_of(self.distance, "distance", MAX_SIZE)
        usual = Gaussian("iqr", normalized=True) if distance == "kl" else None
        kernel = as_kernel(usual if self.kernel is None else self.kernel)
        if distance == "kl" and not isinstance(kernel, RadialKernel):
            raise TypeError(f"distance='kl' compares densities, got {kernel!r}; use {ANY_FAMILY}")
        pieces = self._pieces(distance, kernel)
        request = AtomRequest.of(
            self,
            pieces=pieces,
            select="auto" if pieces == "components" else self.select,  # components are fitted, not selected
            max_size=MAX_SIZE[distance] if self.max_size is None else self.max_size,
            weights="simplex" if distance == "kl" else "free",  # a divergence needs densities, a distance the best weights
            confidence=_validate.confidence(self.confidence),
        )
        if distance == "kl":
            request = request.or_else(size=DENSITY_SIZE[pieces])
        draws = DRAWS[pieces] if self.draws is None else self.draws
        return ComparisonOptions(
            distance=distance,
            kernel=kernel,
            atoms=WAYS[0] if self.atoms is None else _validate.one_of(self.atoms, "atoms", WAYS),
            request=request,
            draws=_validate.whole(draws, "draws", 2, None, "a standard error needs at least two"),
        )

    def _pieces(self, distance: str, kernel: Kernel) -> str:
        """Components if they are requested, or by default for "kl" without options of atoms; otherwise atoms."""
        if self.pieces is None:
            of_atoms = self.atoms is not None or self.plateau is not None
            return "components" if distance == "kl" and isinstance(kernel, Gaussian) and not of_atoms else "atoms"
        pieces = _validate.one_of(self.pieces, "pieces", PIECES)
        if pieces == "components":
            if distance != "kl":
                raise ValueError(f"pieces='components' are for distance='kl', got {distance!r}; use pieces='atoms'")
            if self.atoms is not None:
                raise ValueError(f"pieces='components' excludes atoms, got atoms={self.atoms!r}; remove one of the two")
            if self.plateau is not None:
                raise ValueError(f"plateau={self.plateau!r} goes with atoms, not with pieces='components'; give tol or size")
            if not isinstance(kernel, Gaussian):
                raise TypeError(
                    f"pieces='components' are Gaussian, got kernel={kernel!r}; use a Gaussian kernel, or pieces='atoms'"
                )
        return pieces

    def fit(self, bags: BagsLike, y: Any = None, *, sample: Any = None) -> Self:
        """Compare the bags and compute the map.

        Parameters
        ----------
        bags : list, mapping, (N, n, d) array, or long table with ``sample``
        y : ignored
        sample : column of the table, or (n,) labels
        """
        names, checked, columns = _validate.bags(opened_bags(bags, sample), sample, fewest=2, check=bag_points)
        options = self._options()
        layout = _validate.one_of(self.layout, "layout", LAYOUTS)
        neighbours = _validate.whole(self.n_neighbors, "n_neighbors", 1)
        limit = len(names) - 1
        components = _validate.whole(
            self.n_components, "n_components", 1, limit, f"{len(names)} bags lie in at most {limit} dimensions"
        )
        rng = _validate.generator(self.random_state, "random_state")
        with closing(Progress(self.progress)) as shown:
            comparison = Comparison(options).fit(checked, names, rng, shown)
        self._layout = lay_out(layout, comparison.distances, components, neighbours)
        self._comparison = comparison
        self._columns = columns
        if columns is not None and all(isinstance(column, str) for column in columns):
            self.feature_names_in_ = np.array(columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self.names_ = names
        self.n_features_in_ = int(checked[0].shape[1])
        self.kernel_ = comparison.kernel
        self.pieces_ = options.pieces
        self.compressions_ = comparison.compressions
        self.distances_, self.errors_ = comparison.distances, comparison.errors
        self.embedding_ = self._layout.points
        return self

    def fit_transform(self, bags: BagsLike, y: Any = None, *, sample: Any = None) -> Array:
        """Fit, and return the points of the bags, (N, n_components)."""
        return self.fit(bags, y, sample=sample).embedding_

    def transform(self, bags: BagsLike, *, sample: Any = None) -> Array:
        """Points of later bags on the unchanged map, (M, n_components)."""
        distances, _ = self.distances_to_fitted(bags, sample=sample)
        return self._layout.place(distances)

    def distances_to_fitted(self, bags: BagsLike, *, sample: Any = None) -> tuple[Array, Array]:
        """The distances of later bags to the fitted ones, and their errors, (M, N) each.

        A bag with a large error is compared in full, with a warning that names it. The limit for the measured error is ``tol``.
        Without ``tol`` it is 0.02, or 1.5 times the error of the worst fitted bag if that is larger. For "kl", the missing part of
        the divergence has the limit 0.05, or 1.5 times the value of the worst fitted bag. For "mmd", only the fitted bag then
        contributes to the error of the distance.
        """
        check_is_fitted(self, "embedding_")
        dimension, columns = self.n_features_in_, self._columns
        given = opened_bags(bags, sample)
        names, checked, _ = _validate.bags(given, sample, dimension=dimension, columns=columns, check=bag_points)
        rng = _validate.generator(self.random_state, "random_state")
        with closing(Progress(self.progress)) as shown:
            later = self._comparison.later(checked, rng, shown)
        self._comparison.warn_of_later(later, names)
        return later.distances, later.errors

    def plot(self, ax: Any = None, labels: Any = None, groups: Any = None) -> Any:
        """Draw the map with matplotlib.

        Parameters
        ----------
        ax : Matplotlib axes, optional; new axes by default.
        labels : List of N texts next to the points, True for the names of the bags, False or None for no text.
        groups : List of N values, each with a colour. Bags without a group (None, NaN) are grey.

        Returns
        -------
        the axes
        """
        check_is_fitted(self, "embedding_")
        labels = self.names_ if labels is True else None if labels is False else labels
        return scatter(np.asarray(self.embedding_), ax, labels, groups)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # rows of one table have no bags
        tags.input_tags.three_d_array = True
        return tags
