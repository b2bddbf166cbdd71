"""Kernels by the names that scikit-learn's users know, as kernels of this library.

"rbf" exp(−γ‖x − y‖²) is a Gaussian of bandwidth (2γ)^(−½), "laplacian" exp(−γ‖x − y‖₁) a city-block Laplacian of bandwidth 1/γ,
both with γ = 1/d unless said. Further parameters, of a function or of one of the library's kernels by its name, come as a mapping.
Kernels whose diagonal is not constant (linear, polynomial) are refused with the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
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


def is_rated(kernel: Any) -> bool:
    """Whether it is the name of a kernel with a γ."""
    return isinstance(kernel, str) and kernel in RATED


def with_rate(kernel: Any, gamma: float | None, parameters: Any) -> tuple[float | None, dict[str, Any]]:
    """γ, as a parameter of its own or among the others; and the others."""
    if parameters is None:
        return gamma, {}
    if not isinstance(parameters, Mapping) or not all(isinstance(name, str) for name in parameters):
        raise TypeError(f"kernel_params must be None or a dict of parameters by name, got {parameters!r}")
    others = dict(parameters)
    if is_rated(kernel) and "gamma" in others:
        if gamma is not None:
            raise ValueError(f"gamma={gamma!r} and kernel_params={parameters!r} both give gamma; leave one out")
        gamma = others.pop("gamma")
    return gamma, others


def rate_of(kernel: Any, gamma: float | None, dimension: int) -> float | None:
    """γ of a named kernel that has one: 1/d unless said."""
    if not is_rated(kernel):
        return None
    return 1.0 / dimension if gamma is None else _validate.positive(gamma, "gamma")


def kernel_of(kernel: Any, gamma: float | None, dimension: int, parameters: Mapping[str, Any] | None = None) -> Kernel:
    """The kernel that a user means: None (a Gaussian of the median bandwidth), a kernel, a function of rows, or a name."""
    parameters = parameters or {}
    if gamma is not None and not is_rated(kernel):
        raise ValueError(
            f"gamma goes with kernel='rbf' or 'laplacian', got gamma={gamma!r} and kernel={kernel!r}; "
            "a kernel object has its bandwidth, (2·gamma)^-0.5 of a Gaussian"
        )
    if not isinstance(kernel, str):
        return _with_parameters(as_kernel(kernel), kernel, parameters)
    if kernel in REFUSED:
        raise ValueError(f"kernel={kernel!r} is not offered: {REFUSED[kernel]}")
    name = _validate.one_of(kernel, "kernel", NAMES)
    if name in KERNELS and not is_rated(name):
        _require_known(name, parameters, [each.name for each in fields(KERNELS[name])])
        return KERNELS[name](**{"bandwidth": "median", **parameters})
    _require_known(name, parameters, ["gamma"] if is_rated(name) else [])
    rate = rate_of(name, gamma, dimension)
    if rate is None:
        return FunctionKernel("cosine")
    return Gaussian((2 * rate) ** -0.5) if name == "rbf" else Laplacian(1 / rate, metric="cityblock")


def _with_parameters(known: Kernel, given: Any, parameters: Mapping[str, Any]) -> Kernel:
    """A function with its parameters; a kernel object has its own."""
    if not parameters:
        return known
    if isinstance(given, Kernel) or not isinstance(known, FunctionKernel):
        raise ValueError(
            "kernel_params goes with a kernel that is a function or a name, got "
            f"kernel_params={parameters!r} and kernel={given!r}; give a kernel object its parameters where it is made"
        )
    return FunctionKernel(given, **parameters)


def _require_known(name: str, parameters: Mapping[str, Any], known: list[str]) -> None:
    for each in parameters:
        if each not in known:
            raise ValueError(f"kernel_params: {each!r} is no parameter of kernel={name!r}; it has {', '.join(known) or 'none'}")
