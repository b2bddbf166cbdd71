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
    "precomputed": "atoms are chosen from points, a matrix of all pairs is what they avoid; pass the points and a kernel",
}


def kernel_of(kernel: Any, gamma: float | None, dimension: int) -> Kernel:
    """The kernel that a user means: None (a Gaussian of the median bandwidth), a kernel, a function k(X, Y), or a name."""
    if gamma is not None and kernel not in ("rbf", "laplacian"):
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
    if name not in ("rbf", "laplacian"):
        return KERNELS[name]("median")
    rate = 1.0 / dimension if gamma is None else _validate.positive(gamma, "gamma")
    return Gaussian((2 * rate) ** -0.5) if name == "rbf" else Laplacian(1 / rate, metric="cityblock")
