"""The improved Sheather–Jones bandwidth of one column (Botev, Grotowski & Kroese 2010, Section 5.3).

The bandwidth of least mean square error of a Gaussian kernel density is h = √t, t = (2 n √π ‖f″‖²)^(−2/5). The norm is not known,
but that of an estimate smoothed by t₂ is, and the best t₂ depends on ‖f‴‖² in the same way:

    tⱼ = ((1 + 2^(−j−½))/3 · (1·3···(2j − 1)) / (n √(π/2) ‖f^(j+1)‖²))^(2/(3 + 2j)),        ‖f^(j)‖² = ½ Σₖ (kπ)^(2j) aₖ² e^(−k²π²t)

with aₖ the cosine coefficients of the data on [0, 1]. Five such steps from t₇ = t down to t give a t again; the t that comes back
as itself is taken. No normal law is a reference anywhere, so that modes far apart do not widen it.

Rows are counted in cells (linearly shared between two), more of them while the bandwidth found is a few cells only. What is added
to make it sturdy: values far out (100 interquartile ranges) are left out; of rounded values each is taken as spread over its step,
since a comb of ties has no smooth density; of several t the largest is taken, since rows that are there twice make another, finer
than the data are; and where none comes back, few rows mostly, it is Silverman's. O(n + cells·log cells).
"""

from __future__ import annotations

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from reduset._types import Array, PointsLike, WeightsLike
from reduset.bandwidth import rules

STAGES = 7
CELLS, MOST_CELLS = 1 << 12, 1 << 18
PER_BANDWIDTH = 8  # cells, at least
MARGIN = 0.1  # of the range, beyond both ends
FAR_OUT = 100.0  # interquartile ranges
TIED = 0.5  # of the rows that share their value with others, from which values count as rounded
NOTHING = 120.0  # k²π²t, from which a frequency adds nothing
LOOKS = 64  # at t, evenly in its logarithm, for where it comes back


def isj(X: PointsLike, sample_weight: WeightsLike = None) -> float:
    """The improved Sheather–Jones rule, for one column: it sees modes far apart, where the others see one wide spread.

    >>> import numpy as np
    >>> from reduset import bandwidth
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-10, 1, (500, 1)), rng.normal(10, 1, (500, 1))])
    >>> round(bandwidth.isj(X), 2), round(bandwidth.scott(X), 2)
    (0.32, 2.52)
    """
    X, w = rules._checked(X, sample_weight)
    if X.shape[1] > 1:
        raise ValueError(
            f"isj is for one column, got {X.shape[1]}; use 'scott' or 'median', or give each column its own: "
            "Gaussian(1.0, scales=[isj(X[:, [j]]) for j in range(d)])"
        )
    x = X[:, 0].astype(np.float64)
    middle, spread = rules._quantile(x, w, 0.5), rules._quantile(x, w, 0.75) - rules._quantile(x, w, 0.25)
    near = np.abs(x - middle) <= FAR_OUT * spread if spread > 0 else np.ones(len(x), bool)
    if not near.all():
        x, w = x[near], w[near]
    count = rules._effective(w)
    low, high = float(x.min()), float(x.max())
    if not high > low:
        return rules.silverman(X, sample_weight)
    step = _rounded_to(x)
    low, length = low - MARGIN * (high - low), (1 + 2 * MARGIN) * (high - low)
    cells = CELLS
    while True:
        t = _fixed_point(_squares((x - low) / length, w, cells, step / length), count)
        if t is None:
            return rules.silverman(X, sample_weight)
        if np.sqrt(t) * cells >= PER_BANDWIDTH or cells >= MOST_CELLS:
            return float(np.sqrt(t) * length)
        cells *= 8


def _rounded_to(x: Array) -> float:
    """The step of values of which most share theirs with others; 0 where they do not."""
    values, counts = np.unique(x, return_counts=True)
    if len(values) < 3 or counts[counts > 1].sum() < TIED * len(x):
        return 0.0
    return float(np.median(np.diff(values)))


def _squares(x: Array, w: Array, cells: int, step: float) -> Array:
    """aₖ² for k = 1, 2, …: of rows x in [0, 1], each spread over ``step``."""
    place = np.clip(x * cells - 0.5, 0.0, cells - 1.0)
    cell = np.minimum(place.astype(np.int64), cells - 2)
    share = place - cell
    mass = np.bincount(cell, w * (1 - share), cells) + np.bincount(cell + 1, w * share, cells)
    a = dct(mass / mass.sum(), 2)[1:]  # twice the sum of cosines at the middles of the cells
    if step > 0:
        a *= np.sinc(np.arange(1, cells) * step / 2)
    return np.asarray(np.square(a))


def _fixed_point(squares: Array, count: float) -> float | None:
    """The largest t that comes back as itself; None where there is none."""
    k = np.arange(1, len(squares) + 1) * np.pi
    logs, k2 = np.log(k), k**2

    def norm(order: int, t: float) -> float:
        last = min(len(k), int(np.sqrt(NOTHING / t) / np.pi) + 2)
        with np.errstate(under="ignore"):
            return float(0.5 * np.exp(2 * order * logs[:last] - k2[:last] * t) @ squares[:last])

    def off(log_t: float) -> float:
        found = norm(STAGES, float(np.exp(log_t)))
        for j in range(STAGES - 1, 1, -1):
            if not 0 < found < np.inf:
                return np.nan
            odd = float(np.prod(np.arange(1.0, 2 * j, 2)))
            smooth = ((1 + 0.5 ** (j + 0.5)) / 3 * odd / (count * np.sqrt(np.pi / 2) * found)) ** (2 / (3 + 2 * j))
            found = norm(j, smooth)
        return log_t + 0.4 * float(np.log(2 * count * np.sqrt(np.pi) * found)) if found > 0 else np.nan

    grid = np.linspace(2 * np.log(0.5 / len(k)), np.log(0.1), LOOKS)
    values = np.array([off(each) for each in grid])
    rising = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    if not len(rising):
        return None
    last = rising[-1]
    return float(np.exp(brentq(off, grid[last], grid[last + 1], xtol=1e-12)))
