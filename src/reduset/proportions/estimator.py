"""Class proportions of an unlabelled sample, without classifying its rows.

All class means are seen from shared atoms (`class_means`), with the bandwidth and the ridge that do best on training rows held out
(`bandwidth_search`). "matching" takes the mixture of them that is nearest to the sample's mean (`simplex_fit`; Cruz Cortés & Scott
2017, Section VI-B). "likelihood" takes from the nearness of rows to these means (`cross_fit`) the ratios of the classes' densities
(`class_ratios`), and the mixture that makes the sample most likely (`likelihood`). Whether the sample is a mixture is told by
the means either way. Fitting costs O(n·m·d), a sample of n₀ rows O(n₀·m·d); uncompressed (``size="all"``) O(n²·d) and O(n₀·n·d).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, validate_data

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._frames import is_sparse
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import (
    Array,
    Floats,
    KernelLike,
    MaxSizeLike,
    PointsLike,
    ProgressLike,
    Report,
    SeedLike,
    SelectorLike,
    WeightsLike,
)
from reduset._validate import seeded
from reduset.compression import AtomRequest, at_most_one
from reduset.kernels import ANY_FAMILY, Kernel, RadialKernel
from reduset.kernels.registry import as_kernel
from reduset.mean import KernelMean
from reduset.proportions.bandwidth_search import RIDGES, ProportionsSearch, search
from reduset.proportions.class_means import ClassMeans, FullClassMeans, LabelledPoints, ProjectedClassMeans, class_moments, grams
from reduset.proportions.class_ratios import held_out_ratios, learn_ratios
from reduset.proportions.cross_fit import cross_fitted
from reduset.proportions.likelihood import most_likely
from reduset.proportions.posteriors import CrossFittedClassifier, cross_fit_classifier
from reduset.proportions.simplex_fit import SOLVERS, goodness_of_fit, proportions
from reduset.select import as_selector

MOST_ATOMS, MOST_BY_TOL = 500, 2000
FALLBACK_RIDGE = 1e-3
DOUBT, FOREIGN = 0.01, 0.05
METHODS = ("likelihood", "matching")
SMALLEST = 1e-6  # of a posterior: its logarithm is looked at


@dataclass(frozen=True)
class Proportions:
    """The class proportions of a sample.

    Attributes
    ----------
    classes : (k,) labels
    values : (k,) proportions; at least 0, their sum 1
    interval : (k, 2) from and to, at the confidence asked for: the noise of the sample and of the training rows
    confidence : float
    residual : ‖f₀ − Σ πᵢ fᵢ‖ in the kernel's space, as far as the atoms see it, a bump having norm 1
    expected : what sampling alone makes of the residual (the root of its mean square), were the sample a mixture
    p_value : the chance of a residual as large from a mixture of the classes
    foreign : about the share of rows that no class explains; 0 where sampling explains the residual
    n_samples : how many rows the sample had
    """

    classes: NDArray[Any]
    values: Array
    interval: Array
    confidence: float
    residual: float
    expected: float
    p_value: float
    foreign: float
    n_samples: int

    @property
    def fits(self) -> bool:
        """False where the sample is no mixture of the classes: it is both improbable (1 %) and far (5 % of foreign rows)."""
        return self.p_value >= DOUBT or self.foreign < FOREIGN

    def __str__(self) -> str:
        width = max(len(str(label)) for label in self.classes)
        lines = [f"Proportions of {len(self.classes)} classes in {self.n_samples:,} rows"]
        for label, value, (low, high) in zip(self.classes, self.values, self.interval, strict=True):
            lines.append(f"  {label!s:<{width}}  {value:6.1%}  ({low:.1%} to {high:.1%})")
        told = "a mixture of these classes" if self.fits else "NOT a mixture of these classes"
        lines.append(f"  {told}: residual {self.residual:.3g}, sampling explains {self.expected:.3g}, p = {self.p_value:.2g},")
        lines.append(f"  as if {self.foreign:.1%} of the rows were of another kind; intervals at {self.confidence:.0%}")
        return "\n".join(lines)


@seeded
@dataclass(eq=False, repr=False)
class ClassProportions(BaseEstimator):
    """Estimate how many rows of a sample are of each class.

    Parameters
    ----------
    kernel : Kernel or callable, default a Gaussian whose bandwidth is searched for
        With a bandwidth of its own that is taken as it is, unless ``bandwidth_search`` is True.
    size : int or "all", default min(500, half the rows)
        The number of atoms that the class means share, at least that of the classes. "all" does not compress: every row is an atom.
        Fitting takes about 15·m² numbers, 0.4 GB for 1,900 atoms, and a search of bandwidths up to 0.15 GB more.
    tol : float, optional
        Instead of ``size``: the fewest atoms for which the relative error of the average of the class means is at most this.
    space : "rkhs" or "l2", optional
        Whose distance is minimised: that of kernel means, or the L2 distance of density estimates. Default: the kernel's own.
    norm : "whitened" or "kernel"
        "kernel" is the norm of the space, as in the paper. "whitened" measures distance against the scatter within classes, which
        tells them apart much better.
    ridge : float, optional
        Of "whitened": the variance below which a direction counts as noise. Searched for where it is not given.
    bandwidth_search : bool, optional
        Search the bandwidth around that of the kernel, on artificial mixtures of training rows. Default: where no kernel is given.
    solver : "simplex" or "projection"
        Of "matching": the quadratic program, or the paper's linear system projected onto the simplex.
    classifier : scikit-learn classifier with predict_proba, optional
        Look at its posterior probabilities, cross-validated on the training rows, in place of the rows themselves ("likelihood": at
        their logarithms). The classifiers of the folds are kept too: "matching" and the verdict of `estimate` look at a sample with
        them. Where X is a data frame they get data frames, and of sparse rows sparse ones.
    select : selector or its name
        How the atoms are chosen.
    progress : bool, or a function of (stage, done, total)
    random_state : None, seed or Generator
    method : "likelihood" or "matching"
        The mixture of the classes that makes the sample most likely, by ratios of their densities; or the one whose kernel mean is
        nearest to the sample's, as in the paper, which is linear in the sample.
    plateau : float, optional
        Instead of ``size``: stop at the first atom that adds at most this proportion of the energy of the average of the class
        means added since the first (the ε of the 2017 paper).
    max_size : int, "sqrt" or function of the number of rows
        The most atoms with ``tol`` or ``plateau``. "sqrt" is the largest integer below √n.

    Attributes
    ----------
    classes_ : (k,) labels, in order
    kernel_ : the kernel, with a number as bandwidth
    ridge_ : the ridge, None without
    atoms_ : (m, d)
    means_ : a KernelMean for each class, as seen from the atoms
    search_ : what was tried, as `bandwidths` (b,), `ridges` (r,) and `errors` (b, r); None without a search
    classifier_ : the classifier fitted to all rows, None without
    n_features_in_ : int
    feature_names_in_ : (d,) names of the columns, where X is a data frame whose columns are named by strings

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.proportions import ClassProportions
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 2])
    >>> model = ClassProportions(random_state=0).fit(X, np.repeat(["ill", "well"], 300))
    >>> sample = np.concatenate([rng.normal(size=(700, 2)), rng.normal(size=(300, 2)) + 2])
    >>> bool(abs(model.predict_proportions(sample)[0] - 0.7) < 0.05)
    True
    """

    kernel: KernelLike = None
    size: int | str | None = None
    tol: float | None = None
    space: str | None = None
    norm: str = "whitened"
    ridge: float | None = None
    bandwidth_search: bool | None = None
    solver: str = "simplex"
    classifier: Any = None
    select: SelectorLike = "kmeans"
    progress: ProgressLike = False
    random_state: SeedLike = None
    method: str = "likelihood"
    plateau: float | None = None
    max_size: MaxSizeLike = MOST_BY_TOL

    def fit(self, X: PointsLike, y: ArrayLike, sample_weight: WeightsLike = None) -> ClassProportions:
        """Learn the class means.

        Parameters
        ----------
        X : (n, d) training rows, numbers; `reduset.io.as_table` encodes text of a frame
        y : (n,) their labels, of any type that can be sorted; at least two classes
        sample_weight : (n,) array, optional; not negative, and not 0 for all of a class
        """
        self._check_options()
        X = _validate.known(X)
        points = self._checked(X)
        n = points.shape[0]
        labels, classes, codes, weights = _validate.labelled(y, sample_weight, n)
        if self.size is not None and self.size != "all":
            rule = f"at least one for each of the {len(classes)} classes and at most one a row; 'all' takes every row"
            _validate.whole(self.size, "size", len(classes), n, rule)
        validate_data(self, X if hasattr(X, "columns") else points, skip_check_array=True)
        rng = _validate.generator(self.random_state, "random_state")
        present = weights > 0
        table, given = self._table(X, points), None if sample_weight is None else _validate.weights(sample_weight, n)
        if not present.all():
            points, labels, codes, weights = points[present], labels[present], codes[present], weights[present]
            table, given = _safe_indexing(table, np.flatnonzero(present)), None if given is None else given[present]
        self.classes_ = classes
        self.classifier_: Any = None
        self._crossed: CrossFittedClassifier | None = None
        with closing(Progress(self.progress)) as shown:
            if self.classifier is not None:
                report = shown.stage("classifying")
                self._crossed, posteriors = cross_fit_classifier(self.classifier, table, labels, given, rng, report)
                self.classifier_, points = self._crossed.whole, self._seen(posteriors)
            elif self.size == "all":
                points = points.copy()  # they are kept, and X is the user's
            self._fit_means(LabelledPoints(points, codes, weights, len(classes)), rng, shown)
        blurred = self._class_means.fit.blurred
        if blurred.any():
            warn(
                f"classes {', '.join(map(str, classes[blurred]))} cannot be told apart: each is a mixture of the others, as far as "
                "the kernel and the atoms see. Their shares are arbitrary and their intervals 0 to 1; merge them, or give more "
                "atoms, another bandwidth or other columns"
            )
        return self

    def _checked(self, X: Any, dimension: int | None = None) -> Any:
        """X as rows; sparse ones stay so for a classifier, whose posteriors are all that is needed of them."""
        if self.classifier is not None and is_sparse(X):
            return _validate.sparse_points(X, "X", dimension)
        return _validate.points(X, "X", dimension)

    def _table(self, X: Any, points: Floats) -> Any:
        """What a classifier is given: the data frame, where columns have names."""
        return X if hasattr(self, "feature_names_in_") and hasattr(X, "columns") else points

    def _check_options(self) -> None:
        if self.space is not None:
            _validate.one_of(self.space, "space", ("rkhs", "l2"))
        _validate.one_of(self.norm, "norm", ("whitened", "kernel"))
        _validate.one_of(self.solver, "solver", SOLVERS)
        _validate.one_of(self.method, "method", METHODS)
        if isinstance(self.size, str):
            _validate.one_of(self.size, "size", ("all",))
            at_most_one(size=self.size, tol=self.tol, plateau=self.plateau)
        AtomRequest.of(self, size=None if self.size == "all" else self.size)
        if self.ridge is not None:
            _validate.positive(self.ridge, "ridge", "it is a variance, 0.001 of a bump's")
        if self.size == "all" and self.norm == "whitened":
            raise ValueError("size='all' goes with norm='kernel': the scatter of all rows has no factor; give a number of atoms")
        if self.bandwidth_search is not None and not isinstance(self.bandwidth_search, bool | np.bool_):
            raise TypeError(f"bandwidth_search must be True, False or None, got {self.bandwidth_search!r}")
        if self.classifier is not None and not hasattr(self.classifier, "predict_proba"):
            raise TypeError(
                f"classifier must have predict_proba, {self.classifier!r} has none; use CalibratedClassifierCV around it"
            )

    def _kernel(self) -> Kernel:
        kernel = as_kernel(self.kernel)
        if self.space is None or self.space == kernel.space:
            return kernel
        if not isinstance(kernel, RadialKernel):
            raise TypeError(f"space={self.space!r} needs a {ANY_FAMILY}, got {kernel!r}")
        return replace(kernel, space=self.space)

    def _fit_means(self, data: LabelledPoints, rng: np.random.Generator, shown: Progress) -> None:
        """Choose atoms, bandwidth and ridge, and keep the class means with the scatter around them."""
        kernel = self._kernel()
        widths = self.kernel is None if self.bandwidth_search is None else bool(self.bandwidth_search)
        if widths and not isinstance(kernel, RadialKernel):
            raise TypeError(f"bandwidth_search needs a {ANY_FAMILY}, got {kernel!r}; leave it out")
        average = KernelMean(data.points, data.shares / data.classes, kernel)
        kernel = average.kernel
        select_rng, search_rng, noise_rng = rng.spawn(3)
        atoms = None if self.size == "all" else self._choose_atoms(average, select_rng, shown)
        ridges = (None,) if self.norm == "kernel" else RIDGES if self.ridge is None else (float(self.ridge),)
        report = shown.stage("weighing")
        found: tuple[ClassMeans, float | None, ProportionsSearch | None] | None = None
        if widths or len(ridges) > 1:
            solver = None if self.method == "likelihood" else self.solver
            found = search(data, kernel, atoms, ridges, widths, solver, search_rng, report)
            if found is None:
                fewest = self.classes_[int(np.argmin(np.bincount(data.codes)))]
                warn(
                    f"class {fewest!s} has a single row, so none can be held out to search by: the kernel's own bandwidth is used; "
                    "give kernel=Gaussian(bandwidth) and ridge to choose them"
                )
        if found is None:
            ridge = None if self.norm == "kernel" else FALLBACK_RIDGE if self.ridge is None else float(self.ridge)
            found = _class_means(data, kernel, atoms, ridge, search_rng, report), ridge, None
        self._class_means, self.ridge_, self.search_ = found
        means = self._class_means
        self._scatter = means.scatter(data, noise_rng)
        self._plain_scatter = self._scatter if means.plain is means else means.plain.scatter(data, noise_rng)
        self.kernel_, self.atoms_, self.means_ = means.kernel, means.atoms, means.means()
        if self.method == "likelihood":
            (fit_rng,) = rng.spawn(1)
            rows, numbers, values = cross_fitted(data, means, self.ridge_, fit_rng)
            offset = None if self.classifier is None else np.asarray(data.points[numbers], np.float64)
            features = values if offset is None else np.hstack([values, offset])
            self._ratios = learn_ratios(rows, features, offset, fit_rng)
            self._held_out = held_out_ratios(self._ratios, rows, features, offset)

    def _choose_atoms(self, average: KernelMean, rng: np.random.Generator, shown: Progress) -> Array:
        n, classes = average.size, len(self.classes_)
        request = AtomRequest.of(self).or_else(size=max(classes, min(MOST_ATOMS, n // 2)))
        if request.size is None:
            small = request.compress(average, rng, self.progress)
            request.warn_if_not_reached(small, "give size for more atoms")
            if small.size >= classes:
                return np.asarray(small.mean.atoms, np.float64)
        size = min(n, classes if request.size is None else request.size)
        return as_selector(self.select).select(average, size, rng, shown.stage("selecting")).atoms

    def _seen(self, posteriors: Array) -> Array:
        """Posteriors as they are compared: as they are, or as logarithms with mean 0."""
        if self.method == "matching":
            return posteriors
        logs = np.log(np.maximum(posteriors, SMALLEST))
        return np.asarray(logs - logs.mean(axis=1, keepdims=True))

    def _sample_ratios(self, points: Floats, values: Array) -> Array:
        """The ratios of the classes' densities at the rows of a sample."""
        values = self._class_means.discriminants(values)
        if self._crossed is None:
            return self._ratios(values, None)
        offset = np.asarray(points, np.float64)
        return self._ratios(np.hstack([values, offset]), offset)

    def _read(self, X: Any) -> Any:
        """The rows of a sample, checked; as a classifier is given them where there is one."""
        check_is_fitted(self)
        X = _validate.known(X)
        points = self._checked(X, self.n_features_in_)
        validate_data(self, X if hasattr(X, "columns") else points, reset=False, skip_check_array=True)
        return points if self._crossed is None else self._table(X, points)

    def _represent(self, table: Any) -> Floats:
        """What a sample's proportions are told by: its rows, or their posteriors, of "matching" as training rows were seen."""
        if self._crossed is None:
            return table
        posteriors = self._crossed.posteriors(table)
        if self.method == "matching":
            return self._crossed.posteriors_in_turn(table, posteriors)
        return self._seen(posteriors)

    def _look(self, table: Any, points: Floats) -> tuple[Array, Array, float]:
        """As `ClassMeans.look`; what is told of the fit is about rows as training rows were seen."""
        if self._crossed is None or self.method == "matching":
            return self._class_means.look(points)
        in_turn = self._crossed.posteriors_in_turn(table, np.asarray(points, np.float64))
        _, plain, energy = self._class_means.look(self._seen(in_turn))
        return self._class_means.values(points), plain, energy

    def predict_proportions(self, X: PointsLike) -> Array:
        """The proportions of the classes in a sample.

        Parameters
        ----------
        X : (n₀, d) rows of the sample

        Returns
        -------
        (k,) array in the order of ``classes_``; at least 0, their sum 1
        """
        points = self._represent(self._read(X))
        values = self._class_means.values(points)
        if self.method == "likelihood":
            with single_threaded_blas():
                return most_likely(self._sample_ratios(points, values))
        b = values.mean(axis=0)
        return self._class_means.fit.solve(b[None], self.solver)[0]

    def estimate(self, X: PointsLike, confidence: float = 0.95) -> Proportions:
        """The proportions with their intervals, and whether the sample is a mixture of the classes at all.

        Parameters
        ----------
        X : (n₀, d) rows of the sample
        confidence : float between 0 and 1, of the intervals
        """
        table = self._read(X)
        points = self._represent(table)
        confidence = _validate.between(confidence, "confidence", 0.0, 1.0)
        values, plain, energy = self._look(table, points)
        if self.method == "likelihood":
            with single_threaded_blas():
                ratios = self._sample_ratios(points, values)
                pi = most_likely(ratios)
                interval = self._held_out.interval(ratios, pi, self._class_means.fit.blurred, confidence)
        else:
            pi, interval = proportions(self._class_means.fit, self._scatter, values, self.solver, confidence)
        quality = goodness_of_fit(self._class_means.plain.fit, self._plain_scatter, plain, energy, pi)
        return Proportions(self.classes_, pi, interval, confidence, *quality, n_samples=len(points))


def _class_means(
    data: LabelledPoints, kernel: Kernel, atoms: Array | None, ridge: float | None, rng: np.random.Generator, report: Report
) -> ClassMeans:
    """The class means for a kernel and a ridge that are given."""
    if atoms is None:
        return FullClassMeans(kernel, data, report)
    mixed = data.part(rng.permutation(len(data.codes)))
    moments = class_moments(mixed, [kernel], atoms, ridge is not None, report)[0]
    return ProjectedClassMeans.of(kernel, atoms, grams([kernel], atoms)[0], moments, ridge)
