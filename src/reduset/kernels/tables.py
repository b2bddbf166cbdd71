"""Products without a fast closed form, tabulated once: a spline with 1e-12 of relative error."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from reduset import _engine as engine
from reduset._engine import Profile
from reduset._types import Array
from reduset.kernels.spectra import log_bessel_k

KNOTS = 1 << 15


def tabulate(depth: Array, top: float, slopes: Array | None = None) -> Profile:
    """A spline of depth over log(1 + r), knots at equal steps up to ``top``; its slopes there from the depths, if not known."""
    knots = np.linspace(0.0, top, len(depth))
    if slopes is None:
        from scipy.interpolate import CubicSpline  # only kernels that need it pay for importing it

        slopes = CubicSpline(knots, depth)(knots, 1)
    table = np.ascontiguousarray(np.stack([depth, slopes], axis=1))
    table.setflags(write=False)
    return Profile(family=engine.TABLE, table=table, step=float(knots[1]))


@lru_cache(maxsize=32)
def matern_table(order: float) -> Profile:
    """2^(1 − ν)/Γ(ν) · r^ν K_ν(r)."""
    top = np.log1p(760.0)  # beyond, exp underflows
    r = np.expm1(np.linspace(0.0, top, KNOTS))
    depth = np.zeros(KNOTS)
    depth[1:] = -((1 - order) * np.log(2.0) - special.gammaln(order) + order * np.log(r[1:]) + log_bessel_k(order, r[1:]))
    return tabulate(depth, top)
