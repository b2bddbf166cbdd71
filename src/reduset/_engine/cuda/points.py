"""Rows on a GPU. The engine processes them there, and selections of rows are copied to main memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cached import cached_property
from reduset._engine.cuda.arrays import ON_DEVICE, as_cupy, device_table, on_device
from reduset._engine.cuda.guard import cuda_errors
from reduset._engine.cuda.kernels import TYPES, kernel
from reduset._engine.threads import blocks

if TYPE_CHECKING:
    from reduset._engine.profile import Frame

ENTRIES = 1 << 28  # entries searched at once for an invalid number
THREADS, WORKERS = 256, 1 << 18  # threads per block, and in all for the pass over all numbers


class DevicePoints:
    """An (n, d) array of finite numbers on a GPU.

    Indexing copies the selected rows to a NumPy array; half precision becomes single. The table is never converted as a whole. An
    attempt raises `TypeError`.

    Attributes
    ----------
    values : the CuPy array
    """

    ndim = 2

    def __init__(self, values: Any) -> None:
        self.values = values
        self.shape: tuple[int, int] = values.shape
        self.size = values.size
        self.dtype = np.dtype(np.float32 if values.dtype == np.float16 else values.dtype)

    @classmethod
    def checked(cls, value: Any, name: str = "X", dimension: int | None = None) -> DevicePoints:
        """From any array on a GPU; raises an error unless it is a table of finite numbers, as for arrays in main memory."""
        array = as_cupy(value, name)
        with cuda_errors():
            points = cls(device_table(array, name, dimension))
            low, high = points.min(), points.max()
            if not np.isfinite([low, high]).all():
                with points.values.device:
                    points._raise_first_invalid(name)
        if points.dtype == np.float64 and max(-low, high) > 1e150:
            raise ValueError(f"{name} must stay below 1e150 in size, so that squared distances are finite; rescale it")
        return points

    def _raise_first_invalid(self, name: str) -> NoReturn:
        """Raise an error for the first number that is not finite."""
        import cupy

        n, d = self.shape
        for a, b in blocks(n, max(1, ENTRIES // d)):
            row, column = (index[:1].get() for index in cupy.nonzero(~cupy.isfinite(self.values[a:b])))
            if len(row):
                bad, at = self.values[a + row[0], column[0]].get(), a + int(row[0])
                raise ValueError(f"{name} must be finite, got {bad} in row {at}, column {column[0]}; drop or impute such rows")
        raise RuntimeError("all numbers are finite")

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return int(self.dtype.itemsize)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        with self.values.device:
            values = self.values[rows]
        return np.asarray(values.get(), None if values.dtype != np.float16 else np.float32)

    def __matmul__(self, matrix: NDArray[np.float64]) -> DevicePoints:
        """The image under a linear map, in double precision, on the device."""
        import cupy

        with cuda_errors(), self.values.device:
            return DevicePoints(self.values.astype(cupy.float64) @ cupy.asarray(matrix))

    def __truediv__(self, units: NDArray[np.float64]) -> DevicePoints:
        """Divide each column by its unit."""
        return self @ np.diag(1 / units)

    def copy(self) -> DevicePoints:
        """A copy on the same device."""
        with self.values.device:
            return DevicePoints(self.values.copy())

    def among(self, rows: Any) -> DevicePoints:
        """A selection of rows, which stays on the device."""
        with self.values.device:
            return DevicePoints(self.values[rows])

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, int(self.values.device.id)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"X is {ON_DEVICE}, which is not supported here; copy it to the processor (X.get(), or X.cpu())")

    @cached_property
    def _box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The minimum and maximum of each column; NaN for columns with a number that is not finite."""
        import cupy

        n, d = self.shape
        with self.values.device:
            workers = max(1, min(n, WORKERS // d)) * d
            low, high = (cupy.empty(workers) for _ in range(2))
            program = kernel("ends", TYPE=TYPES[self.values.dtype.name], REAL="double" if self.dtype == np.float64 else "float")
            program(((workers + THREADS - 1) // THREADS,), (THREADS,), (self.values, np.int64(n * d), np.int32(workers), low, high))
            return low.reshape(-1, d).min(axis=0).get(), high.reshape(-1, d).max(axis=0).get()

    def min(self, axis: int | None = None) -> Any:
        """The minimum of all numbers, or of each column."""
        return self._box[0].min() if axis is None else self._box[0]

    def max(self, axis: int | None = None) -> Any:
        """The maximum of all numbers, or of each column."""
        return self._box[1].max() if axis is None else self._box[1]

    def reach(self, frame: Frame) -> NDArray[np.float64]:
        """(d,) an upper bound on |coordinate| in a frame, from the corners of the box of the rows."""
        low, high = (bound - frame.centre for bound in self._box)
        half = np.maximum(np.abs(low), np.abs(high))
        return np.asarray(half * np.abs(frame.matrix) if np.ndim(frame.matrix) < 2 else half @ np.abs(frame.matrix))

    def __repr__(self) -> str:
        return f"DevicePoints({self.shape[0]:,} by {self.shape[1]}, {self.values.dtype}, GPU {self.values.device.id})"


def device_of(values: Any) -> AbstractContextManager[Any]:
    """A context that selects the device of the values."""
    if isinstance(values, DevicePoints):
        return values.values.device
    return values.device if on_device(values) else nullcontext()


def take_on_device(values: NDArray[Any], index: Any) -> Any:
    """values[index] on the device of the index."""
    if isinstance(index, np.ndarray):
        return values[index]
    import cupy

    with index.device:
        return cupy.asarray(values)[index]


def column_of(points: Any, k: int) -> Any:
    """(n,) a column in double precision, on the device of the points."""
    if not isinstance(points, DevicePoints):
        return points[:, k].astype(np.float64)
    with points.values.device:
        return points.values[:, k].astype(np.float64)


def rows_of(points: Any, rows: Any) -> Any:
    """A selection of rows, on the device of the points."""
    return points.among(rows) if hasattr(points, "among") else points[rows]
