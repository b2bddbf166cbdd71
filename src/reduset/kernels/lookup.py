"""Kernels from arguments and files: classes found by name. The registry of the classes is `kernels/__init__.py`."""

from __future__ import annotations

from numbers import Real
from typing import Any

from reduset import kernels
from reduset._messages import did_you_mean
from reduset._types import KernelLike
from reduset.kernels import FAMILIES, listed
from reduset.kernels.base import Kernel, RadialKernel
from reduset.kernels.function import FunctionKernel, named_kernel
from reduset.kernels.gaussian import Gaussian

KERNELS: dict[str, type[RadialKernel]] = {name: getattr(kernels, kind) for name, kind in FAMILIES.items()}


def as_kernel(kernel: KernelLike, dimension: int | None = None) -> Kernel:
    """A kernel from an argument.

    Parameters
    ----------
    kernel : None (a Gaussian with the median bandwidth), a kernel, a number (the bandwidth of a Gaussian), a function k(X, Y), the
        name of a family ("gaussian", …), or "rbf" (scikit-learn's default, exp(−‖x − y‖²/d))
    dimension : the number of columns d, for "rbf"
    """
    if kernel is None:
        return Gaussian("median")
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, Real) and not isinstance(kernel, bool):
        return Gaussian(float(kernel))
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    if kernel == "rbf" and dimension is not None:
        return Gaussian((dimension / 2) ** 0.5)
    if isinstance(kernel, type) or not callable(kernel):
        options = [f"{kind}(...)" for kind in FAMILIES.values()]
        names = [*FAMILIES, "rbf"]
        raise TypeError(
            f"kernel must be a {listed([*options, 'a bandwidth', 'a function k(X, Y)'])}, or one of "
            f"{', '.join(map(repr, names))}; got {kernel!r}{did_you_mean(kernel, names)}"
        )
    return FunctionKernel(kernel)


def kernel_from(fields: Any) -> Kernel:
    """A kernel from its description in a file; unknown names and fields raise `ValueError`."""
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        raise ValueError("the file describes no kernel")
    rest = {key: value for key, value in fields.items() if key != "name"}
    try:
        if fields["name"] == "function":
            return named_kernel(rest["function"], rest["parameters"])
        return KERNELS[fields["name"]](**rest)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the file describes a kernel that this version does not know: {fields['name']!r} ({error})") from error


def kernel_field(value: Any, name: str, sizes: Any) -> Kernel:
    """Reads a field of a file that holds a kernel (`_archive.fields`)."""
    return kernel_from(value)


def stored_kernel(value: Any, name: str, sizes: Any) -> Kernel:
    """Reads a kernel without open parameters, because a file holds no data to set them."""
    kernel = kernel_from(value)
    if isinstance(kernel, RadialKernel) and not kernel.is_resolved:
        raise ValueError(f"the bandwidth and scales of {name} must be numbers, got {kernel!r}")
    return kernel
