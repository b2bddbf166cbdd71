"""What the estimators share: checking the data and their parameters, and the weighted atoms that stand for the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from reduset import _validate
from reduset._messages import warn
from reduset._types import Array, KernelLike, PointsLike, SeedLike, WeightsLike
from reduset._validate.rows import naming_columns
from reduset.kernels import Kernel
from reduset.spectral.components import PrincipalComponents
from reduset.spectral.graph import DisconnectedWarning, RandomWalk
from reduset.spectral.kernel_names import kernel_of, rate_of, with_rate
from reduset.spectral.reduction import WeightedAtoms, is_given, reduce_rows


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralEstimator(BaseEstimator):
    """Base of the spectral estimators: rows become weighted atoms. Fields are scikit-learn's parameters, stored and no more."""

    kernel: KernelLike | str = None
    gamma: float | None = None
    kernel_params: dict[str, Any] | None = None
    reduce: Any = "shadow"
    ell: float = 4.0
    random_state: SeedLike = None
    _reduced: WeightedAtoms = field(init=False)

    def _rows(self, X: PointsLike, *, reset: bool = False) -> Any:
        """X, checked: by the columns of the data that were fitted unless ``reset``."""
        if not reset:
            check_is_fitted(self)
        with naming_columns(X):
            found = validate_data(self, _validate.known(X), dtype=(np.float64, np.float32), reset=reset)
        return _validate.points(found)

    def _default_kernel(self, X: PointsLike, sample_weight: WeightsLike) -> Kernel:
        """The kernel of ``kernel=None``: a Gaussian of the median bandwidth."""
        return kernel_of(None, None, X.shape[1])

    def _reduce(self, X: PointsLike, sample_weight: WeightsLike, size: int | None, weights: str) -> WeightedAtoms:
        """The weighted atoms, also stored."""
        gamma, parameters = with_rate(self.kernel, self.gamma, self.kernel_params)
        kernel: Kernel | None
        if self.kernel is not None or gamma is not None or parameters:
            kernel = kernel_of(self.kernel, gamma, X.shape[1], parameters)
        else:
            kernel = None if is_given(self.reduce) else self._default_kernel(X, sample_weight)
        rng = _validate.generator(self.random_state, "random_state")
        self._reduced = found = reduce_rows(
            X, kernel, self.reduce, ell=self.ell, size=size, weights=weights, sample_weight=sample_weight, rng=rng
        )
        self.atoms_, self.weights_, self.indices_ = found.atoms, found.masses, found.indices
        self.kernel_ = found.kernel
        self.gamma_ = rate_of(self.kernel, gamma, X.shape[1])
        return found


def as_rows(values: Array, X: Any) -> Any:
    """Numbers in the precision of the rows that they belong to: single of single."""
    return values.astype(np.float32) if getattr(X, "dtype", None) == np.float32 else values


def keeping_single(tags: Any) -> Any:
    """The tags of a transformer that gives single precision back for single precision."""
    tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return tags


@dataclass(eq=False, repr=False, kw_only=True)
class EigenEstimator(SpectralEstimator):
    """A spectral estimator that solves an eigenproblem of the atoms, with their weights."""

    size: int | None = None
    weights: str = "auto"
    eigen_solver: str = "auto"
    parts_: NDArray[np.int64] = field(init=False)

    def _weighted_atoms(self, X: PointsLike, sample_weight: WeightsLike = None) -> WeightedAtoms:
        return self._reduce(X, sample_weight, self.size, self.weights)

    def _count(self, found: WeightedAtoms, name: str, wanted: Any, spare: int = 0) -> int:
        """A number of components that the rows could give; ``spare`` is how many of them are none of the user's."""
        if wanted is None:
            return max(found.size - spare, 1)
        most = max(found.n_samples - spare, 1)
        return _validate.whole(wanted, name, 1, most, f"X has n_samples={found.n_samples}")

    def _tell_of_zeros(self, eigenvalues: Array) -> None:
        """A word where so few atoms do not have so many components."""
        above = int(np.count_nonzero(eigenvalues))
        if above < len(eigenvalues):
            warn(
                f"only {above} of the {len(eigenvalues)} components have an eigenvalue above 0 (to rounding, of "
                f"{len(self.atoms_)} atoms): the coordinates of the others are 0. Lower n_components, or keep more atoms",
            )

    def _tell_of_parts(self, most: int, what: str) -> None:
        """A word where the graph falls into more than ``most`` parts: how many rows each has, and ``what`` comes of it."""
        masses = np.bincount(self.parts_, self.weights_)
        if len(masses) > most:
            told = ", ".join(f"{mass:.6g}" for mass in np.sort(masses)[::-1][:10]) + (", …" if len(masses) > 10 else "")
            warn(
                f"the graph falls into {len(masses)} parts that the kernel does not connect, of {told} rows: {what}. Widen the "
                "bandwidth, or fit each part alone (parts_ has the part of every atom)",
                DisconnectedWarning,
            )


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, EigenEstimator):
    """A map to the values of eigenfunctions: principal components, or those of a random walk."""

    eigenvalues_: Array = field(init=False)
    _functions: PrincipalComponents | RandomWalk = field(init=False)

    def _at(self, X: PointsLike) -> Array:
        X = self._rows(X)
        return as_rows(self._functions.at(self._reduced, X), X)

    def __sklearn_tags__(self) -> Any:
        return keeping_single(super().__sklearn_tags__())

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)
