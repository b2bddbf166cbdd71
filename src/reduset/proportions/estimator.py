"""Class proportions of an unlabelled sample, without classifying its rows.

All class means are projected onto shared atoms (`class_means`). Bandwidth and ridge are selected on held-out training rows
(`bandwidth_search`). "matching" returns the mixture of class means that is nearest to the sample's mean (`simplex_fit`; Cruz Cortés
& Scott 2017, Section VI-B). "likelihood" computes ratios of the class densities from the products of rows with the class means
(`cross_fit`). It returns the mixture that makes the sample most likely (`likelihood`). In both cases the class means test whether
the sample is a mixture. Fitting costs O(n·m·d), and a sample of n₀ rows O(n₀·m·d). Without compression (``size="all"``) the costs
are O(n²·d) and O(n₀·n·d).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
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
from reduset.kernels import ANY_FAMILY, Kernel, RadialKernel, as_kernel
from reduset.mean import KernelMean
from reduset.proportions.bandwidth_search import RIDGES, ProportionsSearch, search
from reduset.proportions.class_means import ClassMeans, FullClassMeans, LabelledPoints, ProjectedClassMeans, class_moments, grams
from reduset.proportions.cross_fit import CrossFittedClassifier, cross_fit_classifier, cross_fitted, learn_ratios
from reduset.proportions.likelihood import HeldOutRatios, most_likely
from reduset.proportions.simplex_fit import SOLVERS, goodness_of_fit, proportions
from reduset.select import as_selector

DEFAULT_ATOMS, DEFAULT_MAX_SIZE = 500, 2000
FALLBACK_RIDGE = 1e-3
MIN_P_VALUE, MAX_FOREIGN = 0.01, 0.05
METHODS = ("likelihood", "matching")
MIN_POSTERIOR = 1e-6  # keeps logarithms of posteriors finite


@dataclass(frozen=True)
class Proportions:
    """The class proportions of a sample.

    Attributes
    ----------
    classes : (k,) labels
    values : (k,) non-negative proportions with sum 1
    interval : (k, 2) array
        Lower and upper limits at the given confidence. They include the noise of the sample and of the training rows.
    confidence : float
    residual : float
        ‖f₀ − Σ πᵢ fᵢ‖ in the space of the kernel, projected onto the atoms. The norm of a kernel function is 1.
    expected : float
        Root mean square of the residual from sampling. It assumes that the sample is a mixture.
    p_value : float
        Probability of a residual at least this large. It assumes that the sample is a mixture.
    foreign : float
        Estimated proportion of rows that no class explains. It is 0 if sampling explains the residual.
    n_samples : number of rows in the sample
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
        """False if the sample is not a mixture: the p-value is below 1 %, and at least 5 % of the rows are foreign."""
        return self.p_value >= MIN_P_VALUE or self.foreign < MAX_FOREIGN

    def __str__(self) -> str:
        width = max(len(str(label)) for label in self.classes)
        lines = [f"Proportions of {len(self.classes)} classes in {self.n_samples:,} rows"]
        for label, value, (low, high) in zip(self.classes, self.values, self.interval, strict=True):
            lines.append(f"  {label!s:<{width}}  {value:6.1%}  ({low:.1%} to {high:.1%})")
        verdict = "consistent with a mixture of these classes" if self.fits else "NOT a mixture of these classes"
        lines.append(f"  {verdict}: residual {self.residual:.3g} (expected {self.expected:.3g}), p = {self.p_value:.2g}")
        lines.append(f"  foreign rows: {self.foreign:.1%}; intervals at {self.confidence:.0%} confidence")
        return "\n".join(lines)


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class ClassProportions(BaseEstimator):
    """Estimate the proportion of each class in a sample.

    Parameters
    ----------
    kernel : Kernel or callable, default a Gaussian
        The default searches for the bandwidth. With ``bandwidth_search=False`` or None, a kernel with a bandwidth is unchanged.
        Distances are of kernel means, or of density estimates in L2 for a kernel with ``space="l2"``.
    size : int or "all", default min(500, half the rows)
        Number of atoms shared by the class means. It must be at least the number of classes. "all" makes every row an atom. Fitting
        holds about 15·m² numbers, 0.4 GB for 1,900 atoms. A bandwidth search takes up to 0.15 GB more.
    tol : float, optional
        Use the fewest atoms for which the average of the class means has at most this relative error. Replaces ``size``.
    norm : "whitened" or "kernel"
        "kernel" is the norm of the space, as in the paper. "whitened" divides by the scatter within classes, which separates the
        classes much better.
    ridge : float, optional
        For "whitened", the variance below which a direction counts as noise. By default, it is searched for.
    bandwidth_search : bool, optional
        Search around the bandwidth of the kernel, on held-out training rows. By default, only without ``kernel``.
    solver : "simplex" or "projection"
        For "matching", "simplex" solves the quadratic program. "projection" projects the solution of the paper's linear system.
    classifier : scikit-learn classifier with predict_proba, optional
        Replace the rows by their posterior probabilities. These are cross-validated on training rows. "likelihood" uses logarithms.
        The classifiers of the folds are kept. "matching" and the test of `estimate` apply them to a sample. If X is a data frame or
        sparse, the classifiers get data frames or sparse rows.
    select : selector or its name
        Rule that chooses the atoms. See `reduset.select`.
    progress : bool, or a function of (stage, done, total)
    random_state : None, seed or Generator
    method : "likelihood" or "matching"
        "likelihood" returns the mixture that makes the sample most likely, by ratios of the class densities. "matching" returns the
        mixture with the kernel mean nearest to the sample's, as in the paper. It is linear in the sample.
    plateau : float, optional
        Stop at the first atom that adds at most this proportion of the energy added since the first atom. The energy refers to the
        average of the class means. This is the ε of the 2017 paper and replaces ``size``.
    max_size : int, "sqrt" or function of the number of rows
        Largest number of atoms with ``tol`` or ``plateau``. "sqrt" is the largest integer below √n.

    Attributes
    ----------
    classes_ : (k,) sorted labels
    kernel_ : the kernel, with a number as bandwidth
    ridge_ : the ridge, or None
    atoms_ : (m, d)
    means_ : list of KernelMean
        The mean of each class. Means are projected onto the atoms.
    search_ : object or None
        Result of the search, with `bandwidths` (b,), `ridges` (r,) and `errors` (b, r). None without a search.
    classifier_ : the classifier fitted to all rows, or None
    n_features_in_ : int
    feature_names_in_ : (d,) names of the columns, if X is a data frame with strings as column names

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

    kernel: KernelLike = field(default=None, kw_only=False)
    size: int | str | None = None
    tol: float | None = None
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
    max_size: MaxSizeLike = DEFAULT_MAX_SIZE

    def fit(self, X: PointsLike, y: ArrayLike, sample_weight: WeightsLike = None) -> ClassProportions:
        """Learn the class means.

        Parameters
        ----------
        X : (n, d) array
            Training rows. `reduset.io.as_table` encodes text columns of a data frame.
        y : (n,) array
            Labels of any type that can be sorted. There must be at least two classes.
        sample_weight : (n,) array, optional
            Non-negative weights with a positive sum in every class.
        """
        self._check_options()
        X = _validate.known(X)
        points = self._checked(X)
        n = points.shape[0]
        labels, classes, codes, weights = _validate.labelled(y, sample_weight, n)
        if self.size is not None and self.size != "all":
            rule = f"at least one for each of the {len(classes)} classes and at most one per row; 'all' uses every row"
            _validate.whole(self.size, "size", len(classes), n, rule)
        validate_data(self, X if hasattr(X, "columns") else points, skip_check_array=True)
        rng = _validate.generator(self.random_state, "random_state")
        present = weights > 0
        table = self._table(X, points)
        user_weights = None if sample_weight is None else _validate.weights(sample_weight, n)
        if not present.all():
            points, labels, codes, weights = points[present], labels[present], codes[present], weights[present]
            table = _safe_indexing(table, np.flatnonzero(present))
            user_weights = None if user_weights is None else user_weights[present]
        self.classes_ = classes
        self.classifier_: Any = None
        self._crossed: CrossFittedClassifier | None = None
        with closing(Progress(self.progress)) as display:
            if self.classifier is not None:
                report = display.stage("classifying")
                self._crossed, posteriors = cross_fit_classifier(self.classifier, table, labels, user_weights, rng, report)
                self.classifier_, points = self._crossed.whole, self._as_points(posteriors)
            elif self.size == "all":
                points = points.copy()  # The model keeps the points, and the user may change X.
            self._fit_means(LabelledPoints(points, codes, weights, len(classes)), rng, display)
        blurred = self._class_means.fit.blurred
        if blurred.any():
            warn(
                f"classes {', '.join(map(str, classes[blurred]))} cannot be separated: with this kernel and these atoms each is a "
                "mixture of the others. Their proportions are arbitrary and their intervals 0 to 1; merge them, or use more "
                "atoms, another bandwidth or other columns"
            )
        return self

    def _checked(self, X: Any, dimension: int | None = None) -> Any:
        """X as rows. Sparse rows stay sparse for a classifier, because only its posteriors are used."""
        if self.classifier is not None and is_sparse(X):
            return _validate.sparse_points(X, "X", dimension)
        return _validate.points(X, "X", dimension)

    def _table(self, X: Any, points: Floats) -> Any:
        """The input of the classifier: the data frame if its columns have names, otherwise the points."""
        return X if hasattr(self, "feature_names_in_") and hasattr(X, "columns") else points

    def _check_options(self) -> None:
        _validate.one_of(self.norm, "norm", ("whitened", "kernel"))
        _validate.one_of(self.solver, "solver", SOLVERS)
        _validate.one_of(self.method, "method", METHODS)
        if isinstance(self.size, str):
            _validate.one_of(self.size, "size", ("all",))
            at_most_one(size=self.size, tol=self.tol, plateau=self.plateau)
        AtomRequest.of(self, size=None if self.size == "all" else self.size)
        if self.ridge is not None:
            _validate.positive(self.ridge, "ridge", "it is a variance; 0.001 is a usual value")
        if self.size == "all" and self.norm == "whitened":
            raise ValueError(
                "size='all' needs norm='kernel', because the scatter of all rows is not factored; set a number of atoms"
            )
        if self.bandwidth_search is not None and not isinstance(self.bandwidth_search, bool | np.bool_):
            raise TypeError(f"bandwidth_search must be True, False or None, got {self.bandwidth_search!r}")
        if self.classifier is not None and not hasattr(self.classifier, "predict_proba"):
            raise TypeError(f"classifier must have predict_proba, {self.classifier!r} has none; wrap it in CalibratedClassifierCV")

    def _fit_means(self, data: LabelledPoints, rng: np.random.Generator, display: Progress) -> None:
        """Choose atoms, bandwidth and ridge, and store the class means and the scatter around them."""
        kernel = as_kernel(self.kernel)
        widths = self.kernel is None if self.bandwidth_search is None else bool(self.bandwidth_search)
        if widths and not isinstance(kernel, RadialKernel):
            raise TypeError(f"bandwidth_search needs a {ANY_FAMILY}, got {kernel!r}; omit bandwidth_search")
        average = KernelMean(data.points, data.row_weights / data.classes, kernel)
        kernel = average.kernel
        select_rng, search_rng, noise_rng = rng.spawn(3)
        atoms = None if self.size == "all" else self._choose_atoms(average, select_rng, display)
        ridges = (None,) if self.norm == "kernel" else RIDGES if self.ridge is None else (float(self.ridge),)
        report = display.stage("weighing")
        result: tuple[ClassMeans, float | None, ProportionsSearch | None] | None = None
        if widths or len(ridges) > 1:
            solver = None if self.method == "likelihood" else self.solver
            result = search(data, kernel, atoms, ridges, widths, solver, search_rng, report)
            if result is None:
                smallest = self.classes_[int(np.argmin(np.bincount(data.codes)))]
                warn(
                    f"class {smallest!s} has a single row, so none can be held out for a search: the bandwidth of the kernel is "
                    f"used as it is{'' if self.norm == 'kernel' else f', and ridge={FALLBACK_RIDGE:g} if none is set'}; set "
                    "kernel=Gaussian(bandwidth) and ridge to choose them"
                )
        if result is None:
            ridge = None if self.norm == "kernel" else FALLBACK_RIDGE if self.ridge is None else float(self.ridge)
            result = _class_means(data, kernel, atoms, ridge, search_rng, report), ridge, None
        self._class_means, self.ridge_, self.search_ = result
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
            self._held_out = HeldOutRatios(self._ratios(features, offset), rows.codes, rows.row_weights, rows.sizes)

    def _choose_atoms(self, average: KernelMean, rng: np.random.Generator, display: Progress) -> Array:
        n, classes = average.size, len(self.classes_)
        request = AtomRequest.of(self).or_else(size=max(classes, min(DEFAULT_ATOMS, n // 2)))
        if request.size is None:
            small = request.compress(average, rng, self.progress)
            request.warn_if_not_reached(small, "give size for more atoms")
            if small.size >= classes:
                return np.asarray(small.mean.atoms, np.float64)
        size = min(n, classes if request.size is None else request.size)
        return as_selector(self.select).select(average, size, rng, display.stage("selecting")).atoms

    def _as_points(self, posteriors: Array) -> Array:
        """Posteriors as points for the class means: unchanged for "matching", or as logarithms with mean 0."""
        if self.method == "matching":
            return posteriors
        logs = np.log(np.maximum(posteriors, MIN_POSTERIOR))
        return np.asarray(logs - logs.mean(axis=1, keepdims=True))

    def _sample_ratios(self, points: Floats, values: Array) -> Array:
        """The ratios of the class densities at the rows of a sample."""
        values = self._class_means.discriminants(values)
        if self._crossed is None:
            return self._ratios(values, None)
        offset = np.asarray(points, np.float64)
        return self._ratios(np.hstack([values, offset]), offset)

    def _read(self, X: Any) -> Any:
        """The checked rows of a sample, or the input of the classifier."""
        check_is_fitted(self)
        X = _validate.known(X)
        points = self._checked(X, self.n_features_in_)
        validate_data(self, X if hasattr(X, "columns") else points, reset=False, skip_check_array=True)
        return points if self._crossed is None else self._table(X, points)

    def _represent(self, table: Any) -> Floats:
        """The rows of a sample, or their posteriors. "matching" uses the classifiers of the folds, as for training rows."""
        if self._crossed is None:
            return table
        posteriors = self._crossed.posteriors(table)
        if self.method == "matching":
            return self._crossed.posteriors_in_turn(table, posteriors)
        return self._as_points(posteriors)

    def _evaluate(self, table: Any, points: Floats) -> tuple[Array, Array, float]:
        """As `ClassMeans.evaluate`. The goodness-of-fit test uses the classifiers of the folds, as for training rows."""
        if self._crossed is None or self.method == "matching":
            return self._class_means.evaluate(points)
        in_turn = self._crossed.posteriors_in_turn(table, np.asarray(points, np.float64))
        _, plain, energy = self._class_means.evaluate(self._as_points(in_turn))
        return self._class_means.values(points), plain, energy

    def predict_proportions(self, X: PointsLike) -> Array:
        """The proportions of the classes in a sample.

        Parameters
        ----------
        X : (n₀, d) rows of the sample

        Returns
        -------
        (k,) non-negative proportions with sum 1, in the order of ``classes_``
        """
        points = self._represent(self._read(X))
        values = self._class_means.values(points)
        if self.method == "likelihood":
            with single_threaded_blas():
                return most_likely(self._sample_ratios(points, values))
        b = values.mean(axis=0)
        return self._class_means.fit.solve(b[None], self.solver)[0]

    def estimate(self, X: PointsLike, confidence: float = 0.95) -> Proportions:
        """The proportions with intervals, and a test of whether the sample is a mixture of the classes.

        Parameters
        ----------
        X : (n₀, d) rows of the sample
        confidence : float between 0 and 1, level of the intervals
        """
        table = self._read(X)
        points = self._represent(table)
        confidence = _validate.between(confidence, "confidence", 0.0, 1.0)
        values, plain, energy = self._evaluate(table, points)
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
    """The class means for a fixed kernel and ridge."""
    if atoms is None:
        return FullClassMeans(kernel, data, report)
    mixed = data.part(rng.permutation(len(data.codes)))
    moments = class_moments(mixed, [kernel], atoms, ridge is not None, report)[0]
    return ProjectedClassMeans.of(kernel, atoms, grams([kernel], atoms)[0], moments, ridge)
