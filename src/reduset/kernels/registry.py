"""The kernels by name, and kernels from what a user or a file says. A new one is a file beside this and a line in `KERNELS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reduset.kernels.base import Kernel
from reduset.kernels.function import FunctionKernel
from reduset.kernels.gaussian import Gaussian
from reduset.kernels.laplacian import Laplacian
from reduset.kernels.student import Student

KERNELS: dict[str, Callable[..., Kernel]] = {kernel.name: kernel for kernel in (Gaussian, Laplacian, Student)}


def as_kernel(kernel: Any) -> Kernel:
    """A kernel from what a user may pass: None (a Gaussian of the median bandwidth), a kernel, or a function k(X, Y)."""
    if kernel is None:
        return Gaussian("median")
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) or not callable(kernel):
        raise TypeError(f"kernel must be a Gaussian(...), Laplacian(...), Student(...) or a function k(X, Y); got {kernel!r}")
    return FunctionKernel(kernel)


def kernel_from(fields: Any) -> Kernel:
    """A kernel from its plain description; unknown names and fields are refused."""
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        raise ValueError("the file describes no kernel")
    rest = {key: value for key, value in fields.items() if key != "name"}
    try:
        if fields["name"] == "function":
            return FunctionKernel(rest["function"], **rest["parameters"])
        return KERNELS[fields["name"]](**rest)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the file describes a kernel that this version does not know: {fields['name']!r} ({error})") from error
