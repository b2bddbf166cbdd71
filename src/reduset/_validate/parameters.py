"""Checks of parameters: single values, and arrays that belong to points.

Single values are numbers in a range, names of options, and seeds. Arrays are weights, labels, covariances, and limits of boxes.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reduset._messages import closest, did_you_mean
from reduset._types import Array
from reduset._validate.arrays import as_numbers

LIGHTEST, HEAVIEST = 1e-140, 1e140  # squares of weights between them can be summed
MAX_ASYMMETRY, MIN_EIGENVALUE = 1e-8, 1e-14  # relative to the largest


def positive(value: Any, name: str, way_out: str = "") -> float:
    """A finite number above zero."""
    number = finite(value, name)
    if not number > 0:
        raise ValueError(f"{name} must be above 0, got {value!r}{'; ' + way_out if way_out else ''}")
    return number


def tolerance(value: Any, name: str = "tol") -> float:
    """A relative error between 0 and 1, the relative error of the zero function."""
    way_out = "it is a relative error, 0.01 for one percent"
    number = positive(value, name, way_out)
    if number >= 1:
        raise ValueError(f"{name} must be below 1, got {value!r}; {way_out}")
    return number


def finite(value: Any, name: str) -> float:
    """A finite real number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a floating-point number, got one above 1e308") from None
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def confidence(value: Any, name: str = "confidence") -> float:
    """The coverage of an interval."""
    number = finite(value, name)
    if not 0 < number <= 0.999999:
        raise ValueError(f"{name} must lie between 0 and 1, got {number}; at most 0.999999 is supported")
    return number


def whole(value: Any, name: str, low: int, high: int | None = None, way_out: str = "") -> int:
    """A whole number between low and high."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < low or (high is not None and value > high):
        rule = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ValueError(f"{name} must be {rule}, got {value}{'; ' + way_out if way_out else ''}")
    return int(value)


def flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def one_of(value: Any, name: str, choices: Iterable[str], hints: Mapping[str, str] | None = None) -> str:
    """One of the given names; ``hints`` has recommendations for other values that users may expect."""
    names = sorted(choices)
    if isinstance(value, str) and value in names:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}; got {value!r}{hint_for(value, names, hints)}")


def hint_for(value: Any, choices: Iterable[str], hints: Mapping[str, str] | None = None) -> str:
    """The end of a message about an unknown name: its hint, the closest choice, or the hint for the closest name."""
    hints = hints or {}
    if isinstance(value, str) and value in hints:
        return hints[value]
    near = closest(value, hints)
    return did_you_mean(value, choices) or ("" if near is None else hints[near])


def between(value: Any, name: str, low: float, high: float) -> float:
    """A number strictly between low and high."""
    number = finite(value, name)
    if not low < number < high:
        raise ValueError(f"{name} must lie between {low:g} and {high:g}, got {value!r}")
    return number


def at_least(value: Any, name: str, low: float) -> float:
    """A finite number of at least low."""
    number = finite(value, name)
    if number < low:
        raise ValueError(f"{name} must be at least {low:g}, got {value!r}")
    return number


def generator(rng: Any, name: str = "rng") -> np.random.Generator:
    """A NumPy generator from a seed, a generator, or None (fresh entropy)."""
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(0, 2**31 - 1, size=4))
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        rule = f"{name} must be None, a seed or a numpy Generator, got {rng!r}; a seed is a whole number of at least 0"
        raise TypeError(rule) from error


OTHER_NAME = {"rng": "random_state", "random_state": "rng"}

Seeded = TypeVar("Seeded", bound=Callable[..., Any])


def seeded(target: Seeded) -> Seeded:
    """A function, method or class that accepts its seed as `rng` or as `random_state`. Both raise a TypeError.

    A class accepts them in its constructor, and in `set_params` if it is an estimator.
    """
    if not inspect.isclass(target):
        return _renaming(target, target.__qualname__)
    kind: Any = target
    kind.__init__ = _renaming(kind.__init__, kind.__name__)
    if hasattr(kind, "set_params"):
        kind.set_params = _renaming(kind.set_params, f"{kind.__name__}.set_params", _seed_name(kind.__init__))
    return target


def _renaming(function: Callable[..., Any], title: str, name: str = "") -> Any:
    """The function with its seed under either name; ``name`` is the seed of a function that takes any keyword."""
    name = name or _seed_name(function)
    other, parameters = OTHER_NAME[name], inspect.signature(function).parameters
    by_position = name in parameters and parameters[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    position = list(parameters).index(name) if by_position else None

    @wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        if other in kwargs:
            if name in kwargs or (position is not None and len(args) > position):
                raise TypeError(f"{title} takes one of rng and random_state, which are two names of the seed; got both; omit one")
            kwargs[name] = kwargs.pop(other)
        return function(*args, **kwargs)

    return renamed


def _seed_name(function: Callable[..., Any]) -> str:
    (name,) = OTHER_NAME.keys() & inspect.signature(function).parameters.keys()
    return name


def weights(value: Any, count: int, name: str = "sample_weight", *, signed: bool = False, zero: bool = False) -> Array:
    """(count,) finite weights; non-negative unless ``signed``, and not all zero unless ``zero``."""
    array = as_numbers(value, name).astype(np.float64, copy=False)
    if array.shape != (count,):
        raise ValueError(f"{name} must have shape ({count},), one weight for each point; got {array.shape}")
    given, array = array, array[:1] if array.strides == (0,) else array  # a broadcast number is checked once
    is_finite = np.isfinite(array)
    if not is_finite.all():
        position = int(np.argmin(is_finite))
        raise ValueError(f"{name} must be finite, got {array[position]} at position {position}")
    if not signed and (array < 0).any():
        position = int(np.argmax(array < 0))
        raise ValueError(
            f"{name} must not be negative, got {array[position]} at position {position}; "
            "for signed weights build KernelMean(atoms, weights, kernel)"
        )
    if not zero and not array.any():
        raise ValueError(f"{name} must not be all zero" + ("" if signed else "; omit it for equal weights"))
    return given


def squares_summable(weight: float, rule: str, value: str) -> None:
    """Raise an error if the square of a weight, or of a sum of absolute weights, leaves the range of floating point."""
    if not LIGHTEST < weight < HEAVIEST:
        raise ValueError(f"{rule} between {LIGHTEST:g} and {HEAVIEST:g}, so that their squares are finite; {value}")


def labelled(y: Any, sample_weight: Any, count: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64], Array]:
    """(count,) labels, the (k,) sorted classes, the number of each label's class, and (count,) weights, the largest 1."""
    if y is None:
        raise ValueError("y must hold one label for each row, got None; class proportions are learnt from labelled rows")
    labels = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (count,):
        raise ValueError(f"y must have shape ({count},), one label for each row of X; got {labels.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.argmin(np.isfinite(labels)))
        raise ValueError(f"y must hold no missing labels, got {labels[row]} in row {row}; drop such rows")
    if labels.dtype.kind == "f" and (labels != np.rint(labels)).any():
        raise ValueError("y must hold classes, got a continuous quantity (Unknown label type); bin it, or use whole numbers")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"y must hold labels of one type that can be sorted: {error}; convert them, y.astype(str)") from error
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got only one class, {classes[0]!s}; a mixture of one is all of it")
    mass = np.broadcast_to(1.0, count)
    if sample_weight is not None:
        mass = weights(sample_weight, count)
        mass = mass / mass.max()  # so that sums are finite
    empty = np.flatnonzero(np.bincount(codes, mass, len(classes)) == 0)
    if len(empty):
        raise ValueError(
            f"sample_weight must leave some weight to every class, class {classes[empty[0]]!s} has none; drop its rows from X and y"
        )
    return labels, classes, np.asarray(codes, np.int64), np.asarray(mass, np.float64)


def covariance(value: Any, name: str = "covariance") -> Array:
    """A (d, d) symmetric positive definite matrix, or the (d,) variances of a diagonal one."""
    array = as_numbers(value, name).astype(np.float64)
    if array.ndim not in (1, 2) or array.shape[0] != array.shape[-1] or not len(array):
        raise ValueError(f"{name} must be a square matrix (d, d) or a vector of variances (d,), got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    if not np.allclose(array, array.T, rtol=MAX_ASYMMETRY, atol=1e-12 * float(np.abs(array).max())):
        raise ValueError(f"{name} must be symmetric; use ({name} + {name}.T) / 2 if the difference is rounding")
    array = (array + array.T) / 2
    eigenvalues = np.sort(array) if array.ndim == 1 else np.linalg.eigvalsh(array)
    if eigenvalues[0] <= MIN_EIGENVALUE * eigenvalues[-1]:
        raise ValueError(
            f"{name} must be positive definite, its smallest eigenvalue is {eigenvalues[0]:.3g}; "
            "drop constant or repeated columns, or add a small diagonal"
        )
    return array


def covariances(value: Any, count: int, dimension: int, name: str = "covariances") -> Array:
    """(count, d, d) symmetric positive definite matrices, (count, d) or (count,) positive variances.

    Errors name the first invalid one. A broadcast view (one covariance for all) stays one.
    """
    array = as_numbers(value, name)
    array = array if array.dtype == np.float64 else array.astype(np.float64)
    shapes = ((count,), (count, dimension), (count, dimension, dimension))
    if array.shape not in shapes:
        raise ValueError(
            f"{name} must have shape {shapes[0]} (spherical: one variance for each component), {shapes[1]} (diagonal) or "
            f"{shapes[2]} (full) for {count} means in {dimension} dimensions, got {array.shape}"
        )
    is_broadcast = array.strides[0] == 0
    once = array[:1] if is_broadcast else array
    finite = np.isfinite(once.reshape(len(once), -1)).all(axis=1)
    if not finite.all():
        raise ValueError(f"{name} must be finite, number {np.argmin(finite)} is not")
    if array.ndim < 3:
        least = once.reshape(len(once), -1).min(axis=1)
        if (least <= 0).any():
            first = int(np.argmax(least <= 0))
            raise ValueError(f"{name} must be variances above 0, number {first} has {least[first]:.3g}; drop such components")
        return array
    asymmetry = np.abs(once - once.transpose(0, 2, 1)).max(axis=(1, 2))
    is_asymmetric = asymmetry > MAX_ASYMMETRY * np.abs(once).max(axis=(1, 2))
    if is_asymmetric.any():
        first = int(np.argmax(is_asymmetric))
        raise ValueError(
            f"{name} must be symmetric, number {first} differs from its transpose by {asymmetry[first]:.3g}; "
            f"use ({name} + {name}.transpose(0, 2, 1)) / 2 if that is rounding"
        )
    diagonal = np.diagonal(once, axis1=1, axis2=2)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))  # the result does not depend on the units of the columns
    least, largest = np.linalg.eigvalsh(once / (scale[:, :, None] * scale[:, None, :]))[:, [0, -1]].T
    is_singular = least <= MIN_EIGENVALUE * largest
    if is_singular.any():
        first = int(np.argmax(is_singular))
        raise ValueError(
            f"{name} must be positive definite, number {first} has eigenvalues from {least[first]:.3g} to {largest[first]:.3g} "
            "(as a correlation); drop such components, or add a small diagonal"
        )
    if asymmetry.any():
        once = (once + once.transpose(0, 2, 1)) / 2
        return np.broadcast_to(once, array.shape) if is_broadcast else once
    return array


def limits(value: Any, name: str, dimension: int) -> tuple[Array, bool]:
    """(q, d) limits, and whether they are of a single box: d numbers, or one number for one column."""
    array = np.asarray(as_numbers(value, name), np.float64)
    single = array.ndim < 2
    if array.ndim == 0 and dimension == 1:
        array = array.reshape(1, 1)
    if single and array.shape == (dimension,):
        array = array[None]
    if array.ndim != 2 or array.shape[1] != dimension or not len(array):
        way_out = f"; use {name}.reshape(-1, 1) for one box for each number" if dimension == 1 and array.ndim == 1 else ""
        raise ValueError(
            f"{name} must be {dimension} limits, one for each column, or one row of limits for each box, "
            f"got shape {np.shape(value)}{way_out}"
        )
    if np.isnan(array).any():
        row = int(np.argmax(np.isnan(array).any(axis=1)))
        raise ValueError(f"{name} must hold numbers, or infinity for no limit, got NaN in row {row}")
    return array, single


def box(low: Any, high: Any, dimension: int) -> tuple[Array, Array, bool]:
    """(q, d) lower and upper limits, broadcast to the same number of boxes, and whether it is a single box."""
    (lower, one), (upper, other) = limits(low, "low", dimension), limits(high, "high", dimension)
    if len(lower) != len(upper) and 1 not in (len(lower), len(upper)):
        raise ValueError(f"low and high must have a row for every box, got {len(lower)} and {len(upper)} rows")
    lower, upper = np.broadcast_arrays(lower, upper)
    crossed = (lower > upper).any(axis=1)
    if crossed.any():
        row = int(np.argmax(crossed))
        raise ValueError(
            f"low must not exceed high, got {lower[row].tolist()} and {upper[row].tolist()} for box {row}; exchange them"
        )
    return lower, upper, one and other
