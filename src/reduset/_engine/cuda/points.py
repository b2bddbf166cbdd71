"""Rows that lie on a GPU and stay there: the engine works on them where they are; whoever takes some of them gets these here."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from reduset._engine.cached import cached_property
from reduset._engine.cuda.arrays import ON_DEVICE, as_cupy, device_table, on_device
from reduset._engine.cuda.guard import told
from reduset._engine.cuda.kernels import TYPES, kernel
from reduset._engine.threads import blocks

if TYPE_CHECKING:
    from reduset._engine.profile import Frame

ENTRIES = 1 << 28  # looked at together for one that is no number
THREADS, WORKERS = 256, 1 << 18  # of a block, and of the pass that looks at all numbers


class DevicePoints:
    """An (n, d) array of finite numbers on a GPU.

    Indexed like NumPy's, it gives NumPy's: some rows, brought to the processor, in single precision where they are in half. All of
    them are never brought by accident: what asks for that is told that it does not run on a GPU.

    Attributes
    ----------
    values : the array of CuPy
    """

    ndim = 2

    def __init__(self, values: Any) -> None:
        self.values = values
        self.shape: tuple[int, int] = values.shape
        self.size = values.size
        self.dtype = np.dtype(np.float32 if values.dtype == np.float16 else values.dtype)

    @classmethod
    def checked(cls, value: Any, name: str = "X", dimension: int | None = None) -> DevicePoints:
        """From anything on a GPU; refused like an array of the processor where it is no table of finite numbers."""
        array = as_cupy(value, name)
        with told():
            points = cls(device_table(array, name, dimension))
            low, high = points.min(), points.max()
            if not np.isfinite([low, high]).all():
                with points.values.device:
                    points._refuse_first(name)
        if points.dtype == np.float64 and max(-low, high) > 1e150:
            raise ValueError(f"{name} must stay below 1e150 in size, so that squared distances are finite; rescale it")
        return points

    def _refuse_first(self, name: str) -> NoReturn:
        """Refuse the first number that is none."""
        import cupy

        n, d = self.shape
        for a, b in blocks(n, max(1, ENTRIES // d)):
            row, column = (found[:1].get() for found in cupy.nonzero(~cupy.isfinite(self.values[a:b])))
            if len(row):
                bad, at = self.values[a + row[0], column[0]].get(), a + int(row[0])
                raise ValueError(f"{name} must be finite, got {bad} in row {at}, column {column[0]}; drop or impute such rows")
        raise RuntimeError("no number is at fault")

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return int(self.dtype.itemsize)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        with self.values.device:
            some = self.values[rows]
        return np.asarray(some.get(), None if some.dtype != np.float16 else np.float32)

    def __matmul__(self, matrix: NDArray[np.float64]) -> DevicePoints:
        """Their images under a linear map, in double precision, where they are."""
        import cupy

        with told(), self.values.device:
            return DevicePoints(self.values.astype(cupy.float64) @ cupy.asarray(matrix))

    def __truediv__(self, units: NDArray[np.float64]) -> DevicePoints:
        """Every column in units of its own."""
        return self @ np.diag(1 / units)

    def copy(self) -> DevicePoints:
        """The same in memory of its own, where it is."""
        with self.values.device:
            return DevicePoints(self.values.copy())

    def among(self, rows: Any) -> DevicePoints:
        """Some of the rows, which stay where they are."""
        with self.values.device:
            return DevicePoints(self.values[rows])

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, int(self.values.device.id)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"X is {ON_DEVICE}, where this does not run; bring it to the processor (X.get(), or X.cpu())")

    @cached_property
    def _box(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least and the largest of each column; NaN where one is not finite."""
        import cupy

        n, d = self.shape
        with self.values.device:
            workers = max(1, min(n, WORKERS // d)) * d
            low, high = (cupy.empty(workers) for _ in range(2))
            program = kernel("ends", TYPE=TYPES[self.values.dtype.name], REAL="double" if self.dtype == np.float64 else "float")
            program(((workers + THREADS - 1) // THREADS,), (THREADS,), (self.values, np.int64(n * d), np.int32(workers), low, high))
            return low.reshape(-1, d).min(axis=0).get(), high.reshape(-1, d).max(axis=0).get()

    def min(self, axis: int | None = None) -> Any:
        """The least of all numbers, or of each column."""
        return self._box[0].min() if axis is None else self._box[0]

    def max(self, axis: int | None = None) -> Any:
        """The largest of all numbers, or of each column."""
        return self._box[1].max() if axis is None else self._box[1]

    def reach(self, frame: Frame) -> NDArray[np.float64]:
        """(d,) how large a coordinate in a frame is in size, at most: that of a corner of the box of the rows."""
        low, high = (each - frame.centre for each in self._box)
        half = np.maximum(np.abs(low), np.abs(high))
        return np.asarray(half * np.abs(frame.matrix) if np.ndim(frame.matrix) < 2 else half @ np.abs(frame.matrix))

    def __repr__(self) -> str:
        return f"DevicePoints({self.shape[0]:,} by {self.shape[1]}, {self.values.dtype}, GPU {self.values.device.id})"


def device_of(values: Any) -> AbstractContextManager[Any]:
    """While something is computed where values lie: their device is the current one."""
    if isinstance(values, DevicePoints):
        return values.values.device
    return values.device if on_device(values) else nullcontext()


def take_on_device(values: NDArray[Any], index: Any) -> Any:
    """values[index] where the index lies."""
    if isinstance(index, np.ndarray):
        return values[index]
    import cupy

    with index.device:
        return cupy.asarray(values)[index]


def column_of(points: Any, k: int) -> Any:
    """(n,) a column in double precision, where the points are."""
    if not isinstance(points, DevicePoints):
        return points[:, k].astype(np.float64)
    with points.values.device:
        return points.values[:, k].astype(np.float64)


def rows_of(points: Any, rows: Any) -> Any:
    """Some rows of points, where the points are."""
    return points.among(rows) if hasattr(points, "among") else points[rows]
