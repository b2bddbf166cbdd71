"""Transforms of columns: asinh(x/c), logicle and log. As text: "asinh:150", "logicle", "logicle:T=10000,W=1", "log".

asinh:c is linear below c and logarithmic above. Usual are 150 for fluorescence and 5 for mass cytometry. log is the natural
logarithm of positive values. "auto" and "none" apply to all columns and are resolved earlier (`channels`).

Logicle is logarithmic for large values, linear around 0 and smooth between. It inverts a biexponential function:

    B(y) = a·e^(b·y) − c·e^(−d·y) − f,    logicle(x) = the y with B(y) = x,

with B(1) = T, the top of the scale, B((W + A)/(M + A)) = 0, and B″ = 0 there. M is the number of decades, W of them are linear,
and A further ones are below zero. Parks, Roederer and Moore (2006), Cytometry A 69:541; parameters as in Moore and Parks (2012),
Cytometry A 81:273. Cost: a table of 4,096 points, and three Newton steps for each value, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._messages import did_you_mean
from reduset.io.reader import PLAIN
from reduset.io.table import FileError, listed, nearest

WAYS = "None, 'asinh:150', 'logicle', 'log', 'auto', 'none', or a dict of columns to these"
LOGICLE_PARAMETERS = {"T": "top", "W": "linear", "M": "decades", "A": "below"}
TABLE_SIZE = 4096
NEWTON_STEPS = 3

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Logicle:
    """The logicle scale with top T, W linear decades, M decades and A below zero; 0 ≤ W ≤ M/2, −W ≤ A ≤ M − 2W."""

    top: float = 262144.0
    linear: float = 0.5
    decades: float = 4.5
    below: float = 0.0

    def __post_init__(self) -> None:
        if not (self.top > 0 and self.decades > 0 and np.isfinite([self.top, self.decades]).all()):
            raise ValueError(f"logicle needs T > 0 and M > 0, got T={self.top:g} and M={self.decades:g}")
        if not 0 <= self.linear <= self.decades / 2:
            raise ValueError(f"logicle needs W between 0 and M/2 = {self.decades / 2:g}, got W={self.linear:g}")
        if not -self.linear <= self.below <= self.decades - 2 * self.linear:
            high = self.decades - 2 * self.linear
            raise ValueError(f"logicle needs A between −W = {-self.linear:g} and M − 2W = {high:g}, got A={self.below:g}")

    def coefficients(self) -> tuple[float, float, float, float, float]:
        """a, b, c, d and f of the biexponential function."""
        from scipy.optimize import brentq  # slow to import, and most files need no logicle scale

        total = self.decades + self.below
        w, x2 = self.linear / total, self.below / total
        x1, x0 = x2 + w, x2 + 2 * w
        b = total * np.log(10.0)
        # Both exponentials have the same curvature at zero: 2·log(d/b) + w·(b + d) = 0, which increases with d.
        d = (
            b
            if w == 0
            else brentq(lambda d: 2 * np.log(d / b) + w * (b + d), b * np.exp(-w * b) * 1e-9, b, xtol=1e-300, rtol=1e-15)
        )
        c_a = np.exp(x0 * (b + d))
        f_a = np.exp(b * x1) - c_a * np.exp(-d * x1)
        a = self.top / (np.exp(b) - f_a - c_a * np.exp(-d))
        return float(a), float(b), float(c_a * a), float(d), float(f_a * a)

    def inverse(self, y: NDArray[Any]) -> Floats:
        """B(y): from the scale back to data."""
        a, b, c, d, f = self.coefficients()
        y = np.asarray(y, np.float64)
        return a * np.exp(b * y) - c * np.exp(-d * y) - f

    def __call__(self, x: NDArray[Any]) -> Floats:
        """logicle(x): 1 at the top of the scale."""
        a, b, c, d, f = self.coefficients()
        x = np.asarray(x, np.float64)
        if not x.size:
            return x.copy()
        high = max(1.0, np.log((max(float(x.max()), 0.0) + abs(f) + c + a) / a) / b)
        low = min(0.0, -np.log((max(-float(x.min()), 0.0) + abs(f) + c + a) / c) / d)
        grid = np.linspace(low, high, TABLE_SIZE)
        y = np.interp(x, self.inverse(grid), grid)
        for _ in range(NEWTON_STEPS):
            rise, fall = a * np.exp(b * y), c * np.exp(-d * y)
            y -= (rise - fall - f - x) / (b * rise + d * fall)
        return y


@dataclass(frozen=True)
class Transform:
    """The transform of a column: its name and its function."""

    name: str
    scale: Callable[[NDArray[Any]], Floats]

    def apply(self, path: str, column: str, values: NDArray[Any], rows: NDArray[Any]) -> Floats:
        """The transformed column. The error for a value without a logarithm names its row."""
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
            if letter.strip() not in LOGICLE_PARAMETERS:
                raise ValueError(f"transform {text!r} must be like 'logicle:T=262144,W=0.5,M=4.5,A=0'")
            given[LOGICLE_PARAMETERS[letter.strip()]] = _number(text, value)
        return Transform(text.strip(), Logicle(**given))
    if name == "log" and not options:
        return Transform("log", lambda x: np.log(np.asarray(x, np.float64)))
    raise ValueError(f"transform must be {WAYS}; got {text!r}{did_you_mean(name, ('asinh', 'logicle', 'log'))}")


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise ValueError(f"transform {text!r} needs numbers, got {value!r}; such as 'asinh:150'")
    return number


def chosen(transform: Any, path: str, columns: Sequence[str], upright: frozenset[str]) -> tuple[dict[str, Transform], list[str]]:
    """The transform of each transformed column, and notes. Columns in ``upright`` are transformed only if named."""
    if transform is None:
        return {}, []
    if isinstance(transform, Mapping):
        for name in transform:
            if name not in columns:
                raise FileError(f"{path}: transform names {name!r}, which was not read{nearest(str(name), columns)}")
        by_column = {name: parse_transform(text) for name, text in transform.items() if text is not None and text not in PLAIN}
        return by_column, [f"{column} on the scale {parsed.name}" for column, parsed in by_column.items()]
    parsed = parse_transform(transform)
    by_column = {name: parsed for name in columns if name not in upright}
    unchanged = [name for name in columns if name in upright]
    note = f"{parsed.name} of {len(by_column)} columns" + (f"; left as they are: {listed(unchanged)}" if unchanged else "")
    return by_column, [note]
