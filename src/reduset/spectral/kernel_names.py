"""Kernels by the names that scikit-learn's users know, as kernels of this library.

"rbf" exp(−γ‖x − y‖²) is a Gaussian of bandwidth (2γ)^(−½), "laplacian" exp(−γ‖x − y‖₁) a city-block Laplacian of bandwidth 1/γ,
both with γ = 1/d unless said. Kernels whose diagonal is not constant (linear, polynomial) are refused with the way out.
"""

from __future__ import annotations

from typing import Any

from reduset import _validate
from reduset.kernels import FAMILIES, FunctionKernel, Gaussian, Kernel, Laplacian
from reduset.kernels.registry import KERNELS, as_kernel

NAMES = sorted({"cosine", "rbf", *FAMILIES})
REFUSED = {
    "linear": "use sklearn.decomposition.PCA, which costs O(n·d²)",
    "poly": "expand the columns by sklearn.preprocessing.PolynomialFeatures, then use PCA",
    "polynomial": "expand the columns by sklearn.preprocessing.PolynomialFeatures, then use PCA",
    "sigmoid": "it is no positive definite kernel; use kernel='rbf'",
    "precomputed": (
        "atoms are chosen from points, a matrix of all pairs is what they avoid; pass the points and a kernel, or give the "
        "matrix to scikit-learn's own class"
    ),
    "nearest_neighbors": (
        "which rows are neighbours cannot be told from few atoms; use kernel='rbf', or scikit-learn's own class for this affinity"
    ),
}
REFUSED["precomputed_nearest_neighbors"] = REFUSED["nearest_neighbors"]
RATED = "rbf", "laplacian"  # have a gamma


def rate_of(kernel: Any, gamma: float | None, dimension: int) -> float | None:
    """γ of a named kernel that has one: 1/d unless said."""
    if not isinstance(kernel, str) or kernel not in RATED:
        return None
    return 1.0 / dimension if gamma is None else _validate.positive(gamma, "gamma")


def kernel_of(kernel: Any, gamma: float | None, dimension: int) -> Kernel:
    """The kernel that a user means: None (a Gaussian of the median bandwidth), a kernel, a function of rows, or a name."""
    if gamma is not None and not (isinstance(kernel, str) and kernel in RATED):
        raise ValueError(
            f"gamma goes with kernel='rbf' or 'laplacian', got gamma={gamma!r} and kernel={kernel!r}; "
            "a kernel object has its bandwidth, (2·gamma)^-0.5 of a Gaussian"
        )
    if not isinstance(kernel, str):
        return as_kernel(kernel)
    if kernel in REFUSED:
        raise ValueError(f"kernel={kernel!r} is not offered: {REFUSED[kernel]}")
    name = _validate.one_of(kernel, "kernel", NAMES)
    if name == "cosine":
        return FunctionKernel("cosine")
    rate = rate_of(name, gamma, dimension)
    if rate is None:
        return KERNELS[name]("median")
    return Gaussian((2 * rate) ** -0.5) if name == "rbf" else Laplacian(1 / rate, metric="cityblock")
