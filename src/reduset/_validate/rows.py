"""Rows that may lie on a GPU: checked where they are, beside `arrays.points`, which takes those of the processor alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reduset._engine import DevicePoints, as_cupy, on_device
from reduset._frames import names_of
from reduset._types import Array, Floats
from reduset._validate import arrays, parameters

FEW = 4096  # rows


def points(value: Any, name: str = "X", dimension: int | None = None) -> Floats:
    """An (n, d) array of finite numbers, n, d ≥ 1; what lies on a GPU as `DevicePoints`, whose rows are taken like an array's.

    Of a table of few rows these are brought here at once: a launch would take longer than all there is to do.
    """
    if not on_device(value):
        return arrays.points(value, name, dimension)
    found = queries(value, name, dimension)
    return found if len(found) > FEW else found[:]


def queries(value: Any, name: str = "Q", dimension: int | None = None) -> Floats:
    """The same of places that something is evaluated at, which stay on their GPU however few they are."""
    if not on_device(value):
        return arrays.points(value, name, dimension)
    if not isinstance(value, DevicePoints):
        return DevicePoints.checked(value, name, dimension)  # type: ignore[return-value]
    if dimension is not None and value.shape[1] != dimension:
        raise ValueError(f"{name} must have {dimension} columns like the atoms, got shape {value.shape}")
    return value  # type: ignore[return-value]


def of_estimator(estimator: Any, X: Any, reset: bool = True) -> Floats:
    """Rows for an estimator, checked as scikit-learn does, by names of columns too; those on a GPU where they are."""
    if not on_device(X):
        from sklearn.utils.validation import validate_data

        with naming_columns(X):
            return np.asarray(validate_data(estimator, arrays.known(X), dtype=(np.float64, np.float32), reset=reset))
    found = points(X, "X", None if reset else estimator.n_features_in_)
    if reset:
        estimator.n_features_in_ = found.shape[1]
        if hasattr(estimator, "feature_names_in_"):  # of an earlier fit
            del estimator.feature_names_in_
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
