"""Any kernel with a constant diagonal, as a function of two sets of points in the style of scikit-learn.

Distances are then distances in feature space, ‖φ(x) − φ(y)‖² = 2C − 2k(x, y), and selection works there (Cruz Cortés & Scott
2017, Section V-A). The matrix is computed by blocks that are not kept, so memory stays bounded for any n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reduset import _validate
from reduset._engine import blocks
from reduset._types import Array, Floats, Precision
from reduset.kernels.base import Kernel

PAIRS_BLOCK = 1 << 22
CHECKED_ROWS, CHECKED_SINGLE_ROWS = 512, 64  # points at which the diagonal is checked; fewer for functions of single rows


def _named() -> Any:
    """The kernels of scikit-learn by name, imported on first use because this takes most of a second."""
    from sklearn.metrics import pairwise

    return pairwise


def _settings() -> Any:
    """The context manager for temporary settings of scikit-learn."""
    from sklearn import config_context

    return config_context


class FunctionKernel(Kernel):
    """A kernel given as ``function(X, Y) -> (n, m) array``, or as the name of a scikit-learn kernel with its parameters.

    A function of two single rows, ``function(x, y) -> number``, is detected by its result and called for every pair.

    >>> from sklearn.gaussian_process.kernels import Matern
    >>> from reduset import FunctionKernel
    >>> FunctionKernel(Matern(length_scale=2.0))
    FunctionKernel(Matern(length_scale=2, nu=1.5))
    >>> FunctionKernel("rbf", gamma=0.5)
    FunctionKernel('rbf', gamma=0.5)
    """

    space = "rkhs"
    normalized = False

    def __init__(self, function: Callable[[Any, Any], Any] | str, **parameters: Any) -> None:
        if not (callable(function) or isinstance(function, str)):
            raise TypeError(f"function must be callable as function(X, Y), or the name of a scikit-learn kernel; got {function!r}")
        if isinstance(function, str):
            _validate.one_of(function, "function", _named().PAIRWISE_KERNEL_FUNCTIONS)
        self.function = function
        self.parameters = parameters
        self._energy: float | None = None
        self._of_single_rows = False

    def matrix(self, points: Floats, others: Floats) -> Array:
        """k(xᵢ, yⱼ), checked."""
        if isinstance(self.function, str):
            # parameters and points were validated before, so this is not repeated for every block
            known = self._energy is not None
            points, others = (rows if rows.flags.writeable else rows.copy() for rows in (points, others))  # chi2 writes to a view
            with _settings()(assume_finite=known or None, skip_parameter_validation=known or None):
                values = _named().pairwise_kernels(points, others, metric=self.function, **self.parameters)
        elif self._of_single_rows:
            values = [[self.function(x, y, **self.parameters) for y in others] for x in points]
            values = np.reshape(np.asarray(values, np.float64), (len(points), len(others)))
        else:
            values = self.function(points, others, **self.parameters)
        values = np.asarray(values, dtype=np.float64)
        if values.shape != (len(points), len(others)):
            raise ValueError(
                f"the kernel function must return shape ({len(points)}, {len(others)}) for that many points, got {values.shape}; "
                "or a number for two single rows"
            )
        if not np.isfinite(values).all():
            raise ValueError("the kernel function must return finite values only")
        return values

    def resolve(self, points: Floats, sample_weight: Floats | None = None) -> FunctionKernel:
        if self._energy is not None:
            return self
        checked = points[np.linspace(0, len(points) - 1, min(len(points), CHECKED_ROWS)).astype(np.int64)]
        resolved = FunctionKernel(self.function, **self.parameters)
        resolved._of_single_rows = resolved._takes_single_rows(checked)
        if resolved._of_single_rows:
            checked = checked[:CHECKED_SINGLE_ROWS]
        diagonal = np.diagonal(resolved.matrix(checked, checked))
        energy = float(diagonal[0])
        if not energy > 0 or np.abs(diagonal - energy).max() > 1e-6 * abs(energy):
            raise ValueError(
                f"the kernel must have a constant diagonal above 0, k(x, x) ranges from {diagonal.min():g} to {diagonal.max():g}; "
                "normalise it: k(x, y) / sqrt(k(x, x) k(y, y))"
            )
        resolved._energy = energy
        return resolved

    def _takes_single_rows(self, points: Floats) -> bool:
        """True if the function takes two single rows: it returns a number for them, and no matrix for several rows."""
        if isinstance(self.function, str):
            return False
        several = np.repeat(points[:1], 3, axis=0)
        try:
            if np.shape(self.function(several, several[:2], **self.parameters)) == (3, 2):
                return False
        except (ValueError, TypeError, IndexError, AttributeError, np.linalg.LinAlgError):
            pass  # it may be a function of single rows
        try:
            return np.ndim(self.function(points[0], points[0], **self.parameters)) == 0
        except Exception:
            return False

    @property
    def energy(self) -> float:
        if self._energy is None:
            raise ValueError(
                "the diagonal of the kernel is not known yet; it needs data: use KernelMean.from_samples or kernel.resolve(X)"
            )
        return self._energy

    def log_peak(self, dimension: int) -> float:
        return float(np.log(self.energy))

    def log_energy(self, dimension: int) -> float:
        return float(np.log(self.energy))

    def product_gram(self, points: Floats, others: Floats) -> Array:
        return self.matrix(points, others) / self.energy

    def product_sums(self, points: Floats, weights: Floats, queries: Floats, precision: Precision = "double") -> Array:
        out = np.zeros(len(queries))
        for a, b in blocks(len(queries), 1024):
            for c, e in blocks(len(points), max(1, PAIRS_BLOCK // (b - a))):
                out[a:b] += self.product_gram(queries[a:b], points[c:e]) @ weights[c:e]
        return out

    value_sums = product_sums

    def product_at(self, distances: Array, dimension: int) -> Array:
        """g / g(0) of two points at a distance in feature space with kernel functions of norm 1; it may be negative."""
        return np.maximum(1.0 - np.square(distances) / 2, -1.0)

    def to_dict(self) -> dict[str, Any]:
        if not isinstance(self.function, str):
            raise TypeError(
                "a kernel given as a function cannot be saved, since loading would have to execute it; "
                "use a named scikit-learn kernel, FunctionKernel('rbf', gamma=...), or save mean.atoms and mean.weights"
            )
        shaping = _named().KERNEL_PARAMS[self.function]  # other parameters, such as n_jobs, change no value
        given = {key: value for key, value in self.parameters.items() if key in shaping}
        plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in given.items()}
        return {"name": "function", "function": self.function, "parameters": plain}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionKernel) and (self.function, self.parameters) == (other.function, other.parameters)

    def __hash__(self) -> int:
        name = self.function if isinstance(self.function, str) else type(self.function)  # kernels of scikit-learn have no hash
        return hash((name, tuple(sorted(self.parameters))))

    def __repr__(self) -> str:
        given = "".join(f", {k}={v!r}" for k, v in self.parameters.items())
        name = self.function.__name__ if hasattr(self.function, "__name__") else repr(self.function)
        return f"FunctionKernel({name}{given})"


def named_kernel(function: Any, parameters: Any) -> FunctionKernel:
    """A kernel of scikit-learn from a file; only its own parameters are accepted, and each must be a number."""
    kernel = FunctionKernel(_validate.one_of(function, "kernel.function", _named().PAIRWISE_KERNEL_FUNCTIONS))
    if not isinstance(parameters, dict):
        raise ValueError(f"kernel.parameters must be an object, got {parameters!r}")
    known = _named().KERNEL_PARAMS[function]
    for name, value in parameters.items():
        if name not in known:
            raise ValueError(
                f"kernel.parameters.{name} is no parameter of the kernel {function!r}; it has {', '.join(sorted(known)) or 'none'}"
            )
        if value is not None:
            _validate.finite(value, f"kernel.parameters.{name}")
    kernel.parameters = parameters
    return kernel
