"""Types of the fields of a file. Each checks a value, converts it, and raises an error that names the field and its rule.

A field is called with the value from the file, its name, and the sizes known so far. Sizes have names: ``Numbers(("m", "d"))`` and
``names("d")`` must agree on d, whichever comes first.
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
    """An array of numbers."""

    shape: tuple[int | str, ...]  # numbers and names of sizes; names with "?" may be 0, and "..." allows more dimensions
    low: float = -LARGEST
    high: float = LARGEST
    above: bool = False  # whether values must exceed `low`
    integers: bool = False  # whether values must be whole numbers, stored as float64 and read as int64
    unbounded: bool = False  # whether values may be NaN or infinite
    optional: bool = False  # whether the array may be absent
    dtype: DTypeLike | None = np.float64  # stored type; None keeps float32 and float64, other types are read as float64

    def __call__(self, array: NDArray[Any], name: str, sizes: Sizes) -> NDArray[Any]:
        self._check_shape(array.shape, name, sizes)
        out = array if self.dtype is None and array.dtype in (np.float32, np.float64) else array.astype(np.float64)
        if not self.unbounded and not np.isfinite(out).all():
            raise ValueError(f"{name} must hold finite numbers, got {out[~np.isfinite(out)][0]}")
        low, high = np.float64(self.low), np.float64(self.high)  # single precision cannot represent them
        outside = (out < low) | (out > high) | (self.above & (out == low))
        if outside.any():
            raise ValueError(f"{name} must hold numbers that are {_range(low, high, self.above)}, got {out[outside][0]:g}")
        if self.integers:
            invalid = (out != np.rint(out)) | (np.abs(out) > MAX_EXACT)
            if invalid.any():
                raise ValueError(f"{name} must hold whole numbers below 2**53, got {out[invalid][0]:g}")
            return out.astype(np.int64)
        return out

    def _check_shape(self, shape: tuple[int, ...], name: str, sizes: Sizes) -> None:
        declared = self.shape[:-1] if self.shape[-1] == "..." else self.shape
        fits = len(shape) == len(declared) or (len(shape) > len(declared) < len(self.shape))
        for size, label in zip(shape, declared, strict=False):
            known = label if isinstance(label, int) else sizes.setdefault(label, size)
            fits = fits and known == size and (size > 0 or str(label).endswith("?"))
        if not fits:
            labels = [str(label) for label in self.shape]
            rule = ", ".join(f"{label.rstrip('?')} = {sizes[label]:,}" if label in sizes else label.rstrip("?") for label in labels)
            raise ValueError(f"{name} must have the shape ({rule}), got {shape}")


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
        checked = _validate.finite(value, name)
        if not low <= checked <= high or (above and checked == low):
            raise ValueError(f"{name} must be {_range(low, high, above)}, got {checked:g}")
        return checked

    return check


proportion = number(0.0, 1.0)


def measured(signed: bool = False) -> Field:
    """A measured number, which may be NaN or infinite; not negative unless ``signed``."""

    def check(value: Any, name: str, sizes: Sizes) -> float:
        if isinstance(value, bool):
            raise ValueError(f"{name} must be a number, got {value!r}")
        _expect(value, (int, float), name, "a number")
        if value < 0 and not signed:
            raise ValueError(f"{name} must not be negative, got {value!r}")
        return float(value)

    return check


def flag(value: Any, name: str, sizes: Sizes) -> bool:
    """True or false."""
    return _validate.flag(value, name)


def text(value: Any, name: str, sizes: Sizes) -> str:
    """A text."""
    return _expect(value, str, name, "text")


def scalar(value: Any, name: str, sizes: Sizes) -> str | float:
    """A text, a number or a truth value."""
    return _expect(value, (str, int, float), name, "text or a number")


def one_of(choices: Iterable[str]) -> Field:
    """One of these texts."""
    return lambda value, name, sizes: _validate.one_of(value, name, choices)


def optional(field: Field) -> Field:
    """A field that may be null."""
    return lambda value, name, sizes: None if value is None else field(value, name, sizes)


def listed(field: Field, size: int | str | None = None) -> Field:
    """A list of values of one type, as a tuple."""

    def check(value: Any, name: str, sizes: Sizes) -> tuple[Any, ...]:
        _expect(value, list, name, "a list")
        length = sizes.setdefault(size, len(value)) if isinstance(size, str) else size
        if length is not None and len(value) != length:
            raise ValueError(f"{name} must be a list of {length:,}, got {len(value):,} in {shortened(value)}")
        return tuple(field(item, name, sizes) for item in value)

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
    """A text for each column of a size."""

    def check(value: Any, name: str, sizes: Sizes) -> tuple[str, ...]:
        are_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        count = sizes.setdefault(size, len(value) if are_texts else 1)
        if not are_texts or len(value) != count or not count:
            raise ValueError(f"{name} must be {count} names, got {shortened(value)}")
        return tuple(value)

    return check


def entries(**known: Field) -> Field:
    """An object with any entries, some of them with a known type."""

    def check(value: Any, name: str, sizes: Sizes) -> dict[str, Any]:
        _expect(value, dict, name, "an object")
        for key, field in known.items():
            if key in value:
                field(value[key], f"{name}.{key}", sizes)
        return value

    return check


def mapping(field: Field) -> Field:
    """An object with values of one type."""
    return lambda value, name, sizes: {
        key: field(item, f"{name}.{key[:40]}", sizes) for key, item in _expect(value, dict, name, "an object").items()
    }


def record(make: Callable[..., Any], **parts: Field) -> Field:
    """An object with exactly these parts, as ``make(**parts)``; parts with a default in a dataclass may be absent."""
    defaults = set()
    if isinstance(make, type) and make is not dict:
        defaults = {part.name for part in fields_of(make) if part.default is not MISSING}

    def check(value: Any, name: str, sizes: Sizes) -> Any:
        _expect(value, dict, name, "an object")
        for key in value:
            if key not in parts:
                raise ValueError(f"{name}.{key[:40]} is not known")
        for key in parts:
            if key not in value and key not in defaults:
                raise ValueError(f"{name}.{key} is missing")
        return make(**{key: field(value[key], f"{name}.{key}", sizes) for key, field in parts.items() if key in value})

    return check


def _expect(value: Any, kind: type | tuple[type, ...], name: str, noun: str) -> Any:
    """The value, which must have this type."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {noun}, got {shortened(value)}")
    return value


def _range(low: float, high: float, above: bool) -> str:
    """Bounds in a message."""
    if low > -LARGEST and high < LARGEST and not above:
        return f"between {low:g} and {high:g}"
    least = f"{'above' if above else 'at least'} {low:g}" if low > -LARGEST else ""
    return " and ".join(filter(None, [least, f"at most {high:g}" if high < LARGEST else ""]))


def shortened(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
