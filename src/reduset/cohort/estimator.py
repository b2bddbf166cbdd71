"""CohortMap: bags in, a map of them out, in the manner of scikit-learn (Cruz Cortés & Scott 2017, Section VI-A).

bags → compressions (`shared`) → distances (`distances`, `divergences`) → map (`layouts`). Validates, calls, stores.
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
from reduset._types import Array, BagsLike, Floats, KernelLike, MaxSizeLike, ProgressLike, SeedLike, SelectorLike
from reduset._validate import rows as _rows
from reduset._validate import seeded
from reduset.cohort.bag_components import require_gaussian
from reduset.cohort.bag_source import BagSource
from reduset.cohort.comparison import PIECES, WAYS, Comparison, ComparisonOptions
from reduset.cohort.layouts import LAYOUTS, lay_out
from reduset.cohort.scatter import scatter
from reduset.compression import MOST_ATOMS, AtomRequest
from reduset.kernels import ANY_FAMILY, Gaussian, Kernel, RadialKernel
from reduset.kernels.registry import as_kernel

DENSITY_SIZE = {"atoms": 400, "components": 100}  # where neither tol nor size is given
DRAWS = {"atoms": 1000, "components": 4000}  # components lose less than the noise of 1,000 draws, which are cheap from so few
MOST = {"mmd": MOST_ATOMS, "kl": 1000}  # weights of densities are a quadratic program for each bag


@seeded
@dataclass(eq=False, repr=False)
class CohortMap(TransformerMixin, BaseEstimator):
    """A map on which bags that are alike are near each other.

    A bag is a sample: the (n, d) points of one patient, say. Bags come as a list of arrays or frames, a mapping of names to them,
    an (N, n, d) array, or one long table with ``sample=``: the name of the column that says which bag a row belongs to, or an
    array with a label for each row.

    Parameters
    ----------
    distance : "mmd" or "kl"
        The distance of the bags' kernel means (maximum mean discrepancy; L2 for a kernel with ``space="l2"``), or the symmetrised
        Kullback-Leibler divergence of their densities, by Monte Carlo.
    layout : "isomap" or "mds"
    n_components : int, dimensions of the map
    kernel : Kernel or callable, default ``Gaussian("median")``, for "kl" ``Gaussian("iqr", normalized=True)``
        A bandwidth rule is applied to the points of all bags together, each bag with the same weight.
    tol : float
        The fewest atoms for which ‖f − f_m‖ / ‖f‖ of each bag is certified to be at most this.
    size : int
        That many atoms. Where neither is given: for "mmd" as many as make the distances certain to 1 %,
        ‖errors_‖ ≤ 0.01 ‖distances_‖ in the Frobenius norm (with own atoms, tol 0.02); for "kl" 100 components or 400 atoms. Of
        bags that hardly differ, distances below 0.01 of the bags' norms count as that large; a warning says so.
    pieces : "atoms" or "components"
        Points with weights, whose bumps all have the kernel's width; or Gaussian components with covariances of their own, each
        bag's own, for "kl" with a Gaussian kernel: of blood samples a quarter as many are ten times nearer to the divergences of
        all points, and take longer to find.
        By default components for "kl" with a Gaussian kernel, unless ``atoms`` or ``plateau`` is given.
    atoms : "shared", "own" or "all"
        The same atoms for all bags, the default; each bag its own, as in the paper; or no compression.
    select : selector or its name, of atoms
    plateau : float
        The ε rule of the paper, instead of ``tol`` or ``size``: stop at the first atom that adds at most this proportion of the
        energy added since the first. With own atoms for each bag, with shared atoms for the mean of all bags.
    max_size : int, "sqrt" or function of the number of points
        The most atoms or components for ``tol`` and ``plateau``; default 5000, for "kl" 1000. With own atoms it is applied to each
        bag: the paper's is ``lambda n: int(3 * n**0.5)``. "sqrt" is the largest integer below √n.
    n_neighbors : int, of the graph of layout "isomap"; at most one less than there are bags is used
    draws : int, from each density, for "kl"; default 4000 from components, 1000 from atoms
    confidence : float, of the certificates behind ``errors_``
    random_state : None, seed, Generator or RandomState
    progress : bool, or a function of (stage, done, total)

    Attributes
    ----------
    embedding_ : (N, n_components)
    distances_ : (N, N)
    errors_ : (N, N)
        "mmd": what the compression can have changed in each distance, at most: with shared atoms the full distance lies between
        ``distances_`` and ``distances_ + errors_``, with own atoms within ``errors_`` on either side. "kl": the standard error of
        the Monte-Carlo estimate.
    compressions_ : list of Compression, one a bag; None for atoms "all"
        With components ``mean`` of each is a `Mixture`.
    pieces_ : "atoms" or "components"
    names_ : list, of the bags: positions in the list, keys, or labels in the order in which they appear
    kernel_ : Kernel, with its bandwidth a number
    n_features_in_ : int
    feature_names_in_ : (d,) array, the columns of the frames, where bags are frames whose columns have texts as names

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
        distance = _validate.one_of(self.distance, "distance", MOST)
        usual = Gaussian("iqr", normalized=True) if distance == "kl" else None
        kernel = as_kernel(usual if self.kernel is None else self.kernel)
        if distance == "kl" and not isinstance(kernel, RadialKernel):
            raise TypeError(f"distance='kl' compares densities, and {kernel!r} is none; use {ANY_FAMILY}")
        pieces = self._pieces(distance, kernel)
        request = AtomRequest.of(
            self,
            pieces=pieces,
            select="auto" if pieces == "components" else self.select,  # components are fitted, not selected
            max_size=MOST[distance] if self.max_size is None else self.max_size,
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
            draws=_validate.whole(draws, "draws", 2, None, "an error needs at least two"),
        )

    def _pieces(self, distance: str, kernel: Kernel) -> str:
        """What bags are put on: components where they are asked for, or can be had and no way of atoms was asked for."""
        if self.pieces is None:
            of_atoms = self.atoms is not None or self.plateau is not None
            return "components" if distance == "kl" and isinstance(kernel, Gaussian) and not of_atoms else "atoms"
        pieces = _validate.one_of(self.pieces, "pieces", PIECES)
        if pieces == "components":
            if distance != "kl":
                raise ValueError(f"pieces='components' are for distance='kl', got {distance!r}; use pieces='atoms'")
            if self.atoms is not None:
                raise ValueError(f"pieces='components' leaves no atoms, got atoms={self.atoms!r}; leave one of the two out")
            if self.plateau is not None:
                raise ValueError(f"plateau={self.plateau!r} goes with atoms, not with pieces='components'; give tol or size")
            require_gaussian(kernel)
        return pieces

    def fit(self, bags: BagsLike, y: Any = None, *, sample: Any = None) -> Self:
        """Compare the bags and lay them out.

        Parameters
        ----------
        bags : list, mapping, (N, n, d) array, or long table with ``sample``
        y : ignored
        sample : column of the table, or (n,) labels
        """
        names, checked, columns = _validate.bags(bags, sample, fewest=2, check=_rows.points)
        with closing(Progress(self.progress)) as shown:
            return self._fit(names, checked, int(checked[0].shape[1]), columns, shown)

    def _fit(
        self, names: list[Any], bags: list[Floats] | BagSource, dimension: int, columns: list[Any] | None, progress: Progress
    ) -> Self:
        options = self._options()
        layout = _validate.one_of(self.layout, "layout", LAYOUTS)
        neighbours = _validate.whole(self.n_neighbors, "n_neighbors", 1)
        most = len(names) - 1
        components = _validate.whole(
            self.n_components, "n_components", 1, most, f"{len(names)} bags lie in at most {most} dimensions"
        )
        rng = _validate.generator(self.random_state, "random_state")
        comparison = Comparison(options).fit(bags, names, rng, progress)
        self._layout = lay_out(layout, comparison.distances, components, neighbours)
        self._comparison = comparison
        self._columns = columns
        if columns is not None and all(isinstance(column, str) for column in columns):
            self.feature_names_in_ = np.array(columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self.names_ = names
        self.n_features_in_ = dimension
        self.kernel_ = comparison.kernel
        self.pieces_ = options.pieces
        self.compressions_ = comparison.compressions
        self.distances_, self.errors_ = comparison.distances, comparison.errors
        self.embedding_ = self._layout.places
        return self

    def fit_transform(self, bags: BagsLike, y: Any = None, *, sample: Any = None) -> Array:
        """Fit, and return the places of the bags, (N, n_components)."""
        return self.fit(bags, y, sample=sample).embedding_

    def transform(self, bags: BagsLike, *, sample: Any = None) -> Array:
        """Places for later bags, (M, n_components); the map stays as it is."""
        distances, _ = self._to_fitted(bags, sample)
        return self._layout.place(distances)

    def distances_to_fitted(self, bags: BagsLike, *, sample: Any = None) -> tuple[Array, Array]:
        """The distances of later bags to the fitted ones, and their errors, (M, N) each.

        A bag that its pieces do not show well enough is compared in full, with a warning that names it: one whose measured error is
        above ``tol``; where none was given, above 0.02 and 1.5 times that of the worst bag fitted. For "kl" also one with points
        whose logarithms alone change a divergence by 0.05 and 1.5 times as much as in the worst bag fitted. The error of its
        distance, for "mmd", is then what the fitted bag lost, on either side.
        """
        return self._to_fitted(bags, sample)

    def _to_fitted(self, bags: BagsLike, sample: Any) -> tuple[Array, Array]:
        check_is_fitted(self, "embedding_")
        dimension, columns = self.n_features_in_, self._columns
        names, checked, _ = _validate.bags(bags, sample, dimension=dimension, columns=columns, check=_rows.points)
        rng = _validate.generator(self.random_state, "random_state")
        with closing(Progress(self.progress)) as shown:
            later = self._comparison.later(checked, rng, shown)
        self._comparison.warn_of_later(later, names)
        return later.distances, later.errors

    def plot(self, ax: Any = None, labels: Any = None, groups: Any = None) -> Any:
        """Draw the map with matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional; new ones by default
        labels : list of N texts to write beside the places, True for the names of the bags, False or None for none
        groups : list of N, one colour for each value; bags whose group is missing (None, NaN) are grey

        Returns
        -------
        the axes
        """
        check_is_fitted(self, "embedding_")
        labels = self.names_ if labels is True else None if labels is False else labels
        return scatter(np.asarray(self.embedding_), ax, labels, groups)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # one table alone does not say which rows make a bag
        tags.input_tags.three_d_array = True
        return tags
