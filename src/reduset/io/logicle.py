"""The logicle scale: logarithmic for large values, linear around 0, smooth between; the inverse of a biexponential function.

    B(y) = a·e^(b·y) − c·e^(−d·y) − f,    logicle(x) = the y with B(y) = x,

with B(1) = T, the top of the scale, B((W + A)/(M + A)) = 0, and B″ = 0 there; M decades in all, W of them linear, A further ones
below zero. Parks, Roederer and Moore (2006), Cytometry A 69:541; parameters as in Moore and Parks (2012), Cytometry A 81:273.
Cost: a table of 4,096 places, and three steps of Newton's method for each value, to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLACES = 4096
STEPS = 3

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Logicle:
    """The scale with top T, W linear decades, M decades in all and A below zero; 0 ≤ W ≤ M/2, −W ≤ A ≤ M − 2W."""

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
        from scipy.optimize import brentq  # most files have another scale, and it takes a while to import

        whole = self.decades + self.below
        w, x2 = self.linear / whole, self.below / whole
        x1, x0 = x2 + w, x2 + 2 * w
        b = whole * np.log(10.0)
        # equal curvature of both exponentials at zero: 2·log(d/b) + w·(b + d) = 0, which grows with d
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
        places = np.linspace(low, high, PLACES)
        y = np.interp(x, self.inverse(places), places)
        for _ in range(STEPS):
            rise, fall = a * np.exp(b * y), c * np.exp(-d * y)
            y -= (rise - fall - f - x) / (b * rise + d * fall)
        return y
