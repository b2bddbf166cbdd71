"""Base classes of the spectral estimators: kernels by scikit-learn's names, validation, and the weighted atoms.

"rbf", exp(−γ‖x − y‖²), is a Gaussian of bandwidth (2γ)^(−½). "laplacian", exp(−γ‖x − y‖₁), is a city-block Laplacian of bandwidth
1/γ. The default is γ = 1/d. Kernels with a non-constant diagonal (linear, polynomial) raise an error that names the alternative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from reduset import _validate
from reduset._engine import in_blocks, map_rows
from reduset._messages import warn
from reduset._types import Array, KernelLike, PointsLike, SeedLike, WeightsLike
from reduset._validate import naming_columns
from reduset.data import opened
from reduset.kernels import FAMILIES, KERNELS, FunctionKernel, Gaussian, Kernel, Laplacian, as_kernel
from reduset.spectral.components import PrincipalComponents
from reduset.spectral.graph import DisconnectedWarning, RandomWalk
from reduset.spectral.reduction import WeightedAtoms, is_reduced, reduce_rows

KERNEL_NAMES = sorted({"cosine", "rbf", *FAMILIES})
WITH_GAMMA = "rbf", "laplacian"
POLYNOMIAL = "expand the columns by sklearn.preprocessing.PolynomialFeatures, then use PCA"
NEIGHBOURS = "neighbour graphs need all rows; use kernel='rbf', or scikit-learn's own class for this affinity"
UNSUPPORTED = {
    "linear": "use sklearn.decomposition.PCA, which costs O(n·d²)",
    "poly": POLYNOMIAL,
    "polynomial": POLYNOMIAL,
    "sigmoid": "it is not positive definite; use kernel='rbf'",
    "precomputed": "atoms are selected from points; pass the points and a kernel, or give the matrix to scikit-learn's own class",
    "nearest_neighbors": NEIGHBOURS,
    "precomputed_nearest_neighbors": NEIGHBOURS,
}


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralEstimator(BaseEstimator):
    """Base of the spectral estimators: rows become weighted atoms. The fields are scikit-learn's parameters."""

    kernel: KernelLike | str = None
    gamma: float | None = None
    kernel_params: dict[str, Any] | None = None
    reduce: Any = "shadow"
    ell: float = 4.0
    random_state: SeedLike = None
    _reduced: WeightedAtoms = field(init=False)

    def _rows(self, X: PointsLike, *, reset: bool = False) -> Any:
        """The validated rows of X. Unless ``reset``, they must have the columns of the fitted data."""
        if not reset:
            check_is_fitted(self)
        given = opened(X)
        if in_blocks(given):
            return _validate.of_estimator(self, given, reset)
        with naming_columns(X):
            rows = validate_data(self, _validate.known(X), dtype=(np.float64, np.float32), reset=reset)
        return _validate.points(rows)

    def _default_kernel(self, X: PointsLike, sample_weight: WeightsLike) -> Kernel:
        """The kernel for ``kernel=None``: a Gaussian with the median bandwidth."""
        return as_kernel(None)

    def _reduce(self, X: PointsLike, sample_weight: WeightsLike, size: int | None, weights: str) -> WeightedAtoms:
        """Compute and store the weighted atoms."""
        kernel: Kernel | None
        if self.kernel is None and self.gamma is None and self.kernel_params in (None, {}):
            kernel, self.gamma_ = None if is_reduced(self.reduce) else self._default_kernel(X, sample_weight), None
        else:
            kernel, self.gamma_ = kernel_and_gamma(self.kernel, self.gamma, X.shape[1], self.kernel_params)
        rng = _validate.generator(self.random_state, "random_state")
        self._reduced = reduced = reduce_rows(
            X, kernel, self.reduce, ell=self.ell, size=size, weights=weights, sample_weight=sample_weight, rng=rng
        )
        self.atoms_, self.weights_, self.indices_ = reduced.atoms, reduced.masses, reduced.indices
        self.kernel_ = reduced.kernel
        return reduced


def with_dtype_of(X: Any, values: Array) -> Any:
    """The values in single precision if X has single precision."""
    return values.astype(np.float32) if getattr(X, "dtype", None) == np.float32 else values


class FeatureTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A mixin for transformers that preserve single precision."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class EigenEstimator(SpectralEstimator):
    """A spectral estimator that solves an eigenproblem of the weighted atoms."""

    size: int | None = None
    weights: str = "auto"
    eigen_solver: str = "auto"
    parts_: NDArray[np.int64] = field(init=False)

    def _weighted_atoms(self, X: PointsLike, sample_weight: WeightsLike = None) -> WeightedAtoms:
        return self._reduce(X, sample_weight, self.size, self.weights)

    def _component_count(self, reduced: WeightedAtoms, name: str, value: Any, extra: int = 0) -> int:
        """Validate a number of components. ``extra`` further components are computed, but not returned."""
        if value is None:
            return max(reduced.size - extra, 1)
        maximum = max(reduced.n_samples - extra, 1)
        return _validate.whole(value, name, 1, maximum, f"X has n_samples={reduced.n_samples}")

    def _warn_of_zeros(self, eigenvalues: Array) -> None:
        positive = int(np.count_nonzero(eigenvalues))
        if positive < len(eigenvalues):
            warn(
                f"only {positive} of the {len(eigenvalues)} components have an eigenvalue above rounding errors, with "
                f"{len(self.atoms_)} atoms: the coordinates of the others are 0. Lower n_components, or keep more atoms",
            )

    def _warn_of_parts(self, maximum: int, consequence: str) -> None:
        masses = np.bincount(self.parts_, self.weights_)
        if len(masses) > maximum:
            sizes = ", ".join(f"{mass:.6g}" for mass in np.sort(masses)[::-1][:10]) + (", …" if len(masses) > 10 else "")
            warn(
                f"the graph has {len(masses)} disconnected parts, of {sizes} rows: {consequence}. Use a larger "
                "bandwidth, or fit each part separately (parts_ has the part of every atom)",
                DisconnectedWarning,
            )


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralTransformer(FeatureTransformer, EigenEstimator):
    """Base of the maps to eigenfunctions: principal components, or eigenfunctions of a random walk."""

    eigenvalues_: Array = field(init=False)
    _functions: PrincipalComponents | RandomWalk = field(init=False)

    def transform(self, X: PointsLike) -> Array:
        """(q, k) coordinates of the rows of X."""
        X = self._rows(X)
        return with_dtype_of(X, map_rows(X, partial(self._functions.evaluate, self._reduced)))

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)


def kernel_and_gamma(
    kernel: Any, gamma: float | None, dimension: int, parameters: Mapping[str, Any] | None = None
) -> tuple[Kernel, float | None]:
    """The kernel from an argument: a kernel, a function of rows, or a name. None is a Gaussian with the median bandwidth.

    Also returns γ of "rbf" and "laplacian", 1/d by default, from ``gamma`` or the parameters. It is None for other kernels.
    """
    if parameters is not None and not (isinstance(parameters, Mapping) and all(isinstance(name, str) for name in parameters)):
        raise TypeError(f"kernel_params must be None or a dict of parameters by name, got {parameters!r}")
    others, has_gamma = dict(parameters or {}), isinstance(kernel, str) and kernel in WITH_GAMMA
    if not has_gamma and gamma is not None:
        raise ValueError(
            f"gamma is a parameter of kernel='rbf' and 'laplacian', got gamma={gamma!r} and kernel={kernel!r}; "
            "a kernel object has its bandwidth, (2·gamma)^-0.5 for a Gaussian"
        )
    if not isinstance(kernel, str):
        return _function_with_parameters(kernel, others), None
    if kernel in UNSUPPORTED:
        raise ValueError(f"kernel={kernel!r} is not supported: {UNSUPPORTED[kernel]}")
    _validate.one_of(kernel, "kernel", KERNEL_NAMES)
    names = ["gamma"] if has_gamma else [] if kernel == "cosine" else [field.name for field in fields(KERNELS[kernel])]
    for name in others:
        if name not in names:
            raise ValueError(
                f"kernel_params must have only parameters of kernel={kernel!r}, got {name!r}; use {', '.join(names) or 'None'}"
            )
    if not has_gamma:
        return (FunctionKernel("cosine") if kernel == "cosine" else KERNELS[kernel](**{"bandwidth": "median", **others})), None
    if gamma is not None and others:
        raise ValueError(f"gamma={gamma!r} and kernel_params={parameters!r} both set gamma; omit one")
    gamma = others.get("gamma", gamma)
    rate = 1.0 / dimension if gamma is None else _validate.positive(gamma, "gamma")
    return (Gaussian((2 * rate) ** -0.5) if kernel == "rbf" else Laplacian(1 / rate, metric="cityblock")), rate


def _function_with_parameters(kernel: Any, parameters: Mapping[str, Any]) -> Kernel:
    resolved = as_kernel(kernel)
    if not parameters:
        return resolved
    if isinstance(kernel, Kernel) or not isinstance(resolved, FunctionKernel):
        raise ValueError(
            "kernel_params needs a kernel that is a function or a name, got "
            f"kernel_params={parameters!r} and kernel={kernel!r}; set the parameters of a kernel object when you create it"
        )
    return FunctionKernel(kernel, **parameters)
