"""What the estimators share: checking the data and their parameters, and the weighted atoms that stand for the data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from reduset import _validate
from reduset._types import Array
from reduset.spectral.graph import DisconnectedWarning
from reduset.spectral.kernel_names import kernel_of
from reduset.spectral.reduction import WeightedAtoms, is_given, reduce_rows


class SpectralEstimator(BaseEstimator):
    """Base of the spectral estimators, whose eigenproblem is that of weighted atoms."""

    kernel: Any
    gamma: Any
    reduce: Any
    ell: float
    random_state: Any
    parts_: NDArray[np.int64]
    _reduced: WeightedAtoms

    def _rows(self, X: Any, *, reset: bool = False) -> Any:
        """X, checked: by the columns of the data that were fitted unless ``reset``."""
        if not reset:
            check_is_fitted(self)
        return _validate.points(validate_data(self, X, dtype=(np.float64, np.float32), reset=reset))

    def _reduce(self, X: Any, sample_weight: Any, size: Any, weights: str) -> WeightedAtoms:
        """The weighted atoms, also stored."""
        own = is_given(self.reduce) and self.kernel is None and self.gamma is None
        kernel = None if own else kernel_of(self.kernel, self.gamma, X.shape[1])
        rng = _validate.generator(self.random_state, "random_state")
        found = reduce_rows(
            X,
            kernel,
            self.reduce,
            ell=self.ell,
            size=size,
            weights=weights,
            sample_weight=sample_weight,
            rng=rng,
        )
        self._reduced = found
        self.atoms_, self.weights_, self.indices_ = found.atoms, found.masses, found.indices
        self.kernel_ = found.kernel
        return found

    def _count(self, found: WeightedAtoms, name: str, wanted: Any, spare: int = 0) -> int:
        """A number of components that the rows could give; ``spare`` is how many of them are none of the user's."""
        if wanted is None:
            return max(found.size - spare, 1)
        most = max(found.n_samples - spare, 1)
        return _validate.whole(wanted, name, 1, most, f"X has n_samples={found.n_samples}")

    def _tell_of_zeros(self, eigenvalues: Array, stacklevel: int = 3) -> None:
        """A word where so few atoms do not have so many components."""
        above = int(np.count_nonzero(eigenvalues))
        if above < len(eigenvalues):
            warnings.warn(
                f"only {above} of the {len(eigenvalues)} components have an eigenvalue above 0 (to rounding, of "
                f"{len(self.atoms_)} atoms): the coordinates of the others are 0. Lower n_components, or keep more atoms",
                UserWarning,
                stacklevel=stacklevel,
            )

    def _tell_of_parts(self, most: int, what: str, stacklevel: int = 3) -> None:
        """A word where the graph falls into more than ``most`` parts: how many rows each has, and ``what`` comes of it."""
        masses = np.bincount(self.parts_, self.weights_)
        if len(masses) > most:
            told = ", ".join(f"{mass:.6g}" for mass in np.sort(masses)[::-1][:10]) + (", …" if len(masses) > 10 else "")
            warnings.warn(
                f"the graph falls into {len(masses)} parts that the kernel does not connect, of {told} rows: {what}. Widen the "
                "bandwidth, or fit each part alone (parts_ has the part of every atom)",
                DisconnectedWarning,
                stacklevel=stacklevel,
            )
