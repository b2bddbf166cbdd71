"""Types of signatures: arrays inside the library, and arguments of public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:  # not imported at run time
    from reduset.kernels import Kernel
    from reduset.select import Selector

# Inside.
Array: TypeAlias = NDArray[np.float64]
Floats: TypeAlias = NDArray[np.floating]  # float32 or float64, like the data of the user
Indices: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.int64]
Report: TypeAlias = Callable[[int, int], None]  # (done, total) of a stage
Precision: TypeAlias = Literal["auto", "single", "double"]

# Public functions.
PointsLike: TypeAlias = Any  # (n, d) array, list of rows, or a frame of pandas, polars or Arrow
BagsLike: TypeAlias = Any  # a list of PointsLike, a column of lists, or one long table with a label a row
WeightsLike: TypeAlias = "ArrayLike | None"  # (n,) non-negative; None for equal weights
KernelLike: TypeAlias = "Kernel | Callable[[Any, Any], Any] | float | str | None"  # None: a Gaussian with the median bandwidth
BandwidthLike: TypeAlias = "float | str"  # a number, or the name of a rule
SelectorLike: TypeAlias = "Selector | str"
SeedLike: TypeAlias = "int | np.random.Generator | np.random.RandomState | np.random.SeedSequence | None"
ProgressLike: TypeAlias = "bool | Callable[[str, int, int], None]"
MaxSizeLike: TypeAlias = "int | str | Callable[[int], int]"  # a number, "sqrt", or a function of the number of points
