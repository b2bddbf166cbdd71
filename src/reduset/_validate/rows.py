"""Checks of rows that may be on a GPU. They are checked on the GPU. `arrays.points` checks rows in main memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reduset._engine import DevicePoints, as_cupy, in_blocks, on_device
from reduset._frames import names_of
from reduset._types import Array, Floats
from reduset._validate import arrays, parameters

LOADED_UP_TO = 4096  # rows


def points(value: Any, name: str = "X", dimension: int | None = None) -> Floats:
    """An (n, d) array of finite numbers, n, d ≥ 1. Rows on a GPU become `DevicePoints`. Rows in blocks were checked before.

    Up to `LOADED_UP_TO` rows are loaded, since a launch on a GPU, or a pass, would take longer than the work.
    """
    if not (on_device(value) or in_blocks(value)):
        return arrays.points(value, name, dimension)
    rows = queries(value, name, dimension)
    return rows if len(rows) > LOADED_UP_TO else rows[:]


def queries(value: Any, name: str = "Q", dimension: int | None = None) -> Floats:
    """Check query points as `points` does. Any number of them stays on its GPU."""
    if not (on_device(value) or in_blocks(value)):
        return arrays.points(value, name, dimension)
    rows: Any = value if in_blocks(value) or isinstance(value, DevicePoints) else DevicePoints.checked(value, name, dimension)
    if dimension is not None and rows.shape[1] != dimension:
        raise ValueError(f"{name} must have {dimension} columns like the atoms, got shape {rows.shape}")
    return rows


def of_estimator(estimator: Any, X: Any, reset: bool = True) -> Floats:
    """Rows for an estimator, with the checks of scikit-learn, including names of columns. Rows on a GPU stay there."""
    if not (on_device(X) or in_blocks(X)):
        from sklearn.utils.validation import validate_data

        with naming_columns(X):
            return np.asarray(validate_data(estimator, arrays.known(X), dtype=(np.float64, np.float32), reset=reset))
    rows = points(X, "X", None if reset else estimator.n_features_in_)
    if reset:
        estimator.n_features_in_ = rows.shape[1]
        if hasattr(estimator, "feature_names_in_"):  # from an earlier fit
            del estimator.feature_names_in_
        columns = getattr(X, "columns", None) or []
        if columns and all(isinstance(column, str) for column in columns):
            estimator.feature_names_in_ = np.asarray(columns, dtype=object)
    return rows


@contextmanager
def naming_columns(X: Any, name: str = "X") -> Iterator[None]:
    """Replace errors of scikit-learn about text or missing values in a frame by errors that name the column and the row."""
    try:
        yield
    except (TypeError, ValueError):
        fault = _fault_of_frame(X, name)
        if fault is None:
            raise
        raise fault from None


def _fault_of_frame(X: Any, name: str) -> Exception | None:
    if names_of(X) is not None:
        try:
            arrays.points(X, name)
        except (TypeError, ValueError) as error:
            return error.with_traceback(None)
    return None


def brought(value: Any, given: Any, name: str = "sample_weight") -> Any:
    """Weights or labels of rows, in main memory. They must be on the same device as the rows ``given``."""
    if on_device(value):
        if not on_device(given):
            raise ValueError(
                f"{name} must be an array in main memory like the rows, got one on a GPU; copy it ({name}.get(), or "
                f"{name}.cpu()), or copy the rows to the GPU"
            )
        return as_cupy(value, name).get()
    if on_device(given) and not isinstance(given, DevicePoints):  # the weights of checked `DevicePoints` are in main memory
        raise ValueError(
            f"{name} must be on the GPU of the rows, got an array in main memory; copy it to the GPU (cupy.asarray({name}))"
        )
    return value


def weights(value: Any, given: Any, count: int, name: str = "sample_weight", *, signed: bool = False, zero: bool = False) -> Array:
    """(count,) weights of rows, in main memory."""
    return parameters.weights(brought(value, given, name), count, name, signed=signed, zero=zero)
