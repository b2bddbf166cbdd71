"""Types of the fields of a file: each checks a value, converts it, and raises an error that names the field and its rule.

A field is called with the value from the file, its name, and the sizes known so far. Sizes have names: ``Numbers(("m", "d"))`` and
``names("d")`` agree on d, whichever comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass
from dataclasses import fields as fields_of
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from reduset import _validate

LARGEST = 1e300
MAX_COUNT = 2**63 - 1
MAX_EXACT = 2**53  # floating point represents all smaller integers

Sizes = dict[str, int]
Field = Callable[[Any, str, Sizes], Any]
Fields = dict[str, Field]


@dataclass(frozen=True)
class Numbers:
    """An array of numbers.

    Attributes
    ----------
    shape : numbers and names of sizes; a size may be 0 if its name ends with "?", and "..." at the end allows more dimensions
    low, high : bounds of the values
    above : whether values must exceed ``low``
    integers : whether values must be whole numbers; they are stored as float64 and read as int64
    unbounded : whether values may be NaN or infinite
    optional : whether the array may be absent
    dtype : stored type; None keeps single and double precision as they are, others are read as float64
    """

    shape: tuple[int | str, ...]
    low: float = -LARGEST
    high: float = LARGEST
    above: bool = False
    integers: bool = False
    unbounded: bool = False
    optional: bool = False
    dtype: DTypeLike | None = np.float64

    def __call__(self, array: NDArray[Any], name: str, sizes: Sizes) -> NDArray[Any]:
        self._check_shape(array.shape, name, sizes)
        out = array if self.dtype is None and array.dtype in (np.float32, np.float64) else array.astype(np.float64)
        if not self.unbounded and not np.isfinite(out).all():
            raise ValueError(f"{name} must hold finite numbers, got {out[~np.isfinite(out)][0]}")
        low, high = np.float64(self.low), np.float64(self.high)  # which single precision could not represent
        outside = (out < low) | (out > high) | (self.above & (out == low))
        if outside.any():
            raise ValueError(
                f"{name} must hold numbers that are {_range(self.low, self.high, self.above)}, got {out[outside][0]:g}"
            )
        if self.integers:
            odd = (out != np.rint(out)) | (np.abs(out) > MAX_EXACT)
            if odd.any():
                raise ValueError(f"{name} must hold whole numbers below 2**53, got {out[odd][0]:g}")
            return out.astype(np.int64)
        return out

    def _check_shape(self, found: tuple[int, ...], name: str, sizes: Sizes) -> None:
        shape = self.shape[:-1] if self.shape[-1] == "..." else self.shape
        fits = len(found) == len(shape) or (len(found) > len(shape) < len(self.shape))
        for size, each in zip(found, shape, strict=False):
            known = each if isinstance(each, int) else sizes.setdefault(each, size)
            fits = fits and known == size and (size > 0 or str(each).endswith("?"))
        if not fits:
            parts = [str(each) for each in self.shape]
            rule = ", ".join(f"{each.rstrip('?')} = {sizes[each]:,}" if each in sizes else each.rstrip("?") for each in parts)
            raise ValueError(f"{name} must have the shape ({rule}), got {found}")


def whole(low: int = 0, high: int = MAX_COUNT) -> Field:
    """A whole number."""
    return lambda value, name, sizes: _validate.whole(value, name, low, high)


def size(of: str) -> Field:
    """A whole number from 1 on that is a size of arrays."""

    def check(value: Any, name: str, sizes: Sizes) -> int:
        sizes[of] = _validate.whole(value, name, 1, MAX_COUNT)
        return sizes[of]

    return check


def number(low: float = -LARGEST, high: float = LARGEST, above: bool = False) -> Field:
    """A finite number from ``low``, or above it, to ``high``."""

    def check(value: Any, name: str, sizes: Sizes) -> float:
        found = _validate.finite(value, name)
        if not low <= found <= high or (above and found == low):
            raise ValueError(f"{name} must be {_range(low, high, above)}, got {found:g}")
        return found

    return check


def measured(signed: bool = False) -> Field:
    """A measured number, which may be NaN or infinite; not negative unless ``signed``."""

    def check(value: Any, name: str, sizes: Sizes) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} must be a number, got {shortened(value)}")
        if value < 0 and not signed:
            raise ValueError(f"{name} must not be negative, got {value!r}")
        return float(value)

    return check


def proportion(value: Any, name: str, sizes: Sizes) -> float:
    """A number between 0 and 1."""
    found = _validate.finite(value, name)
    if not 0 <= found <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return found


def flag(value: Any, name: str, sizes: Sizes) -> bool:
    """True or false."""
    return _validate.flag(value, name)


def text(value: Any, name: str, sizes: Sizes) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {shortened(value)}")
    return value


def scalar(value: Any, name: str, sizes: Sizes) -> str | float:
    """A text, a number or a truth value, as it is."""
    if not isinstance(value, str | int | float):
        raise ValueError(f"{name} must be text or a number, got {shortened(value)}")
    return value


def one_of(choices: Iterable[str]) -> Field:
    """One of these texts."""
    return lambda value, name, sizes: _validate.one_of(value, name, choices)


def optional(field: Field) -> Field:
    """A field that may be null."""
    return lambda value, name, sizes: None if value is None else field(value, name, sizes)


def listed(field: Field, size: int | str | None = None) -> Field:
    """A list of values of one type, as a tuple."""

    def check(value: Any, name: str, sizes: Sizes) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list, got {shortened(value)}")
        length = sizes.setdefault(size, len(value)) if isinstance(size, str) else size
        if length is not None and len(value) != length:
            raise ValueError(f"{name} must be a list of {length:,}, got {len(value):,} in {shortened(value)}")
        return tuple(field(each, name, sizes) for each in value)

    return check


def either(*choices: Field) -> Field:
    """A field of one of these types."""

    def check(value: Any, name: str, sizes: Sizes) -> Any:
        for choice in choices[:-1]:
            try:
                return choice(value, name, sizes)
            except (TypeError, ValueError):
                continue
        return choices[-1](value, name, sizes)

    return check


def names(size: str) -> Field:
    """Texts, one of each of so many columns."""

    def check(value: Any, name: str, sizes: Sizes) -> tuple[str, ...]:
        plain = isinstance(value, list) and all(isinstance(each, str) for each in value)
        count = sizes.setdefault(size, len(value) if plain else 1)
        if not plain or len(value) != count or not count:
            raise ValueError(f"{name} must be {count} names, got {shortened(value)}")
        return tuple(value)

    return check


def entries(**known: Field) -> Field:
    """An object with any entries; those of these names have their types."""

    def check(value: Any, name: str, sizes: Sizes) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"{name} must be an object, got {shortened(value)}")
        for key, field in known.items():
            if key in value:
                field(value[key], f"{name}.{key}", sizes)
        return value

    return check


def mapping(field: Field) -> Field:
    """An object whose values have one type."""

    def check(value: Any, name: str, sizes: Sizes) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"{name} must be an object, got {shortened(value)}")
        return {key: field(each, f"{name}.{key[:40]}", sizes) for key, each in value.items()}

    return check


def record(make: Callable[..., Any], **parts: Field) -> Field:
    """An object with exactly these parts, as ``make(**parts)``; parts with a default in a dataclass may be absent."""
    given = (
        {each.name for each in fields_of(make) if each.default is not MISSING}
        if isinstance(make, type) and make is not dict
        else set()
    )

    def check(value: Any, name: str, sizes: Sizes) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{name} must be an object, got {shortened(value)}")
        for key in value:
            if key not in parts:
                raise ValueError(f"{name}.{key[:40]} is not known")
        for key in parts:
            if key not in value and key not in given:
                raise ValueError(f"{name}.{key} is missing")
        return make(**{key: field(value[key], f"{name}.{key}", sizes) for key, field in parts.items() if key in value})

    return check


def _range(low: float, high: float, above: bool) -> str:
    """Bounds in a message."""
    least = f"{'above' if above else 'at least'} {low:g}" if low > -LARGEST else ""
    return " and ".join(filter(None, [least, f"at most {high:g}" if high < LARGEST else ""]))


def shortened(value: Any) -> str:
    """A value in a message."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:59]}…"
