"""Rows that may lie on a GPU: checked where they are, beside `arrays.points`, which takes those of the processor alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reduset._engine import DevicePoints, as_cupy, in_blocks, on_device
from reduset._frames import names_of
from reduset._types import Array, Floats
from reduset._validate import arrays, parameters

FEW = 4096  # rows


def points(value: Any, name: str = "X", dimension: int | None = None) -> Floats:
    """An (n, d) array of finite numbers, n, d ≥ 1; rows on a GPU as `DevicePoints`, and rows in blocks, which were checked before.

    Few rows are loaded: a launch on a GPU, or a pass, would take longer than the work.
    """
    found = queries(value, name, dimension)
    return found if isinstance(found, np.ndarray) or len(found) > FEW else found[:]


def queries(value: Any, name: str = "Q", dimension: int | None = None) -> Floats:
    """The same of places that something is evaluated at, which stay on their GPU however few they are."""
    if not (on_device(value) or in_blocks(value)):
        return arrays.points(value, name, dimension)
    rows: Any = value if in_blocks(value) or isinstance(value, DevicePoints) else DevicePoints.checked(value, name, dimension)
    if dimension is not None and rows.shape[1] != dimension:
        raise ValueError(f"{name} must have {dimension} columns like the atoms, got shape {rows.shape}")
    return rows


def of_estimator(estimator: Any, X: Any, reset: bool = True) -> Floats:
    """Rows for an estimator, checked as scikit-learn does, by names of columns too; those on a GPU where they are."""
    if not (on_device(X) or in_blocks(X)):
        from sklearn.utils.validation import validate_data

        with naming_columns(X):
            return np.asarray(validate_data(estimator, arrays.known(X), dtype=(np.float64, np.float32), reset=reset))
    found = points(X, "X", None if reset else estimator.n_features_in_)
    if reset:
        estimator.n_features_in_ = found.shape[1]
        if hasattr(estimator, "feature_names_in_"):  # of an earlier fit
            del estimator.feature_names_in_
        columns = getattr(X, "columns", None) or []
        if columns and all(isinstance(column, str) for column in columns):
            estimator.feature_names_in_ = np.asarray(columns, dtype=object)
    return found


@contextmanager
def naming_columns(X: Any, name: str = "X") -> Iterator[None]:
    """Errors of scikit-learn about a frame with text or missing values replaced by ours, which name the column and the row."""
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
    """Weights, labels and the like of rows, here; refused where they do not lie where the rows were ``given``."""
    if on_device(value):
        if not on_device(given):
            raise ValueError(
                f"{name} must be an array of the processor like the rows, got one on a GPU; bring it over ({name}.get(), or "
                f"{name}.cpu()), or send the rows there"
            )
        return as_cupy(value, name).get()
    if on_device(given) and not isinstance(given, DevicePoints):  # which have been taken in, and their weights brought here
        raise ValueError(
            f"{name} must lie on the GPU that the rows lie on, got an array of the processor; send it there (cupy.asarray({name}))"
        )
    return value


def weights(value: Any, given: Any, count: int, name: str = "sample_weight", *, signed: bool = False, zero: bool = False) -> Array:
    """(count,) weights of rows, on the processor."""
    return parameters.weights(brought(value, given, name), count, name, signed=signed, zero=zero)
