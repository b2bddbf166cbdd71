"""The kernels' classes by name, and kernels from what a user or a file says. Which there are stands in `reduset.kernels`."""

from __future__ import annotations

from typing import Any

from reduset import kernels
from reduset._types import KernelLike
from reduset.kernels import FAMILIES, listed
from reduset.kernels.base import Kernel, RadialKernel
from reduset.kernels.function import FunctionKernel, named_kernel
from reduset.kernels.gaussian import Gaussian

KERNELS: dict[str, type[RadialKernel]] = {name: getattr(kernels, kind) for name, kind in FAMILIES.items()}


def as_kernel(kernel: KernelLike) -> Kernel:
    """A kernel from what a user may pass: None (a Gaussian of the median bandwidth), a kernel, or a function k(X, Y)."""
    if kernel is None:
        return Gaussian("median")
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) or not callable(kernel):
        offered = [f"{kind}(...)" for kind in FAMILIES.values()]
        raise TypeError(f"kernel must be a {listed([*offered, 'a function k(X, Y)'])}; got {kernel!r}")
    return FunctionKernel(kernel)


def kernel_from(fields: Any) -> Kernel:
    """A kernel from its plain description; unknown names and fields are refused."""
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        raise ValueError("the file describes no kernel")
    rest = {key: value for key, value in fields.items() if key != "name"}
    try:
        if fields["name"] == "function":
            return named_kernel(rest["function"], rest["parameters"])
        return KERNELS[fields["name"]](**rest)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the file describes a kernel that this version does not know: {fields['name']!r} ({error})") from error
