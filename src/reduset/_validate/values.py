"""Single values: numbers in a range, names of options, seeds."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from reduset._messages import closest, did_you_mean


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
