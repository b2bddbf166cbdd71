"""Scales for columns: asinh (of x over a cofactor), logicle, log. As text: "asinh:150", "logicle", "logicle:T=10000,W=1", "log".

asinh:c is asinh(x/c), linear below c and logarithmic above; 150 is usual for fluorescence, 5 for mass cytometry. log is the natural
logarithm, of positive values alone. "auto" and "none", for all columns, are settled before (`automatic`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._messages import did_you_mean
from reduset.io.logicle import Logicle
from reduset.io.reader import PLAIN
from reduset.io.table import FileError, listed, nearest

WAYS = "None, 'asinh:150', 'logicle', 'log', 'auto', 'none', or a dict of columns to these"
NAMES = ("asinh", "logicle", "log")
PARTS = {"T": "top", "W": "linear", "M": "decades", "A": "below"}

Scale = Callable[[NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True)
class Transform:
    """The scale of one column: its name, and the function."""

    name: str
    scale: Scale

    def apply(self, path: str, column: str, values: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
        """The column on its new scale; a value that has none is named with its row."""
        if self.name == "log" and (values <= 0).any():
            first = int(np.argmax(values <= 0))
            raise FileError(
                f"{path}: transform 'log' needs values above 0, column {column!r} has {values[first]:g} in row {rows[first]}; "
                "use asinh, which takes all values"
            )
        return self.scale(values)


def parse_transform(text: Any) -> Transform:
    """A transform from its name."""
    if not isinstance(text, str):
        raise TypeError(f"transform must be {WAYS}; got {text!r}")
    name, _, options = text.strip().partition(":")
    if name in ("asinh", "arcsinh"):
        cofactor = _number(text, options or "1")
        if not cofactor > 0:
            raise ValueError(f"transform {text!r} needs a cofactor above 0, such as 'asinh:150'")
        return Transform(f"asinh:{cofactor:g}", lambda x: np.arcsinh(np.asarray(x, np.float64) / cofactor))
    if name == "logicle":
        given = {}
        for part in filter(None, options.split(",")):
            letter, _, value = part.partition("=")
            if letter.strip() not in PARTS:
                raise ValueError(f"transform {text!r} must be like 'logicle:T=262144,W=0.5,M=4.5,A=0'")
            given[PARTS[letter.strip()]] = _number(text, value)
        return Transform(text.strip(), Logicle(**given))
    if name == "log" and not options:
        return Transform("log", lambda x: np.log(np.asarray(x, np.float64)))
    raise ValueError(f"transform must be {WAYS}; got {text!r}{did_you_mean(name, NAMES)}")


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise ValueError(f"transform {text!r} needs numbers, got {value!r}; such as 'asinh:150'")
    return number


def chosen(transform: Any, path: str, columns: Sequence[str], upright: frozenset[str]) -> tuple[dict[str, Transform], list[str]]:
    """The transform of each column that has one, and a note; ``upright`` ones have none unless they are named."""
    if transform is None:
        return {}, []
    if isinstance(transform, Mapping):
        for name in transform:
            if name not in columns:
                raise FileError(f"{path}: transform names {name!r}, which was not read{nearest(str(name), columns)}")
        made = {name: parse_transform(text) for name, text in transform.items() if text is not None and text not in PLAIN}
        return made, [f"{column} on the scale {one.name}" for column, one in made.items()]
    one = parse_transform(transform)
    made = {name: one for name in columns if name not in upright}
    left = [name for name in columns if name in upright]
    note = f"{one.name} of {len(made)} columns" + (f"; left as they are: {listed(left)}" if left else "")
    return made, [note]
