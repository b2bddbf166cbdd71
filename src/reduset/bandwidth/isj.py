"""The improved Sheather–Jones bandwidth of one column (Botev, Grotowski & Kroese 2010, Section 5.3).

The bandwidth of least mean square error of a Gaussian kernel density is h = √t with t = (2 n √π ‖f″‖²)^(−2/5). The norm is unknown.
It is replaced by the norm of an estimate smoothed by t₂, and the best t₂ depends on ‖f‴‖² in the same way:

    tⱼ = ((1 + 2^(−j−½))/3 · (1·3···(2j − 1)) / (n √(π/2) ‖f^(j+1)‖²))^(2/(3 + 2j)),        ‖f^(j)‖² = ½ Σₖ (kπ)^(2j) aₖ² e^(−k²π²t)

with aₖ the cosine coefficients of the data on [0, 1]. Five such steps from t₇ = t down to t map t to a new t. The bandwidth is a
fixed point of this map. The rule assumes no normal reference distribution, so modes far apart do not widen the bandwidth.

Rows are binned linearly. The number of bins grows while the bandwidth is only a few bins wide. Four additions make the rule robust:

- values farther than 100 interquartile ranges from the median are omitted;
- rounded values are spread over the rounding step, because ties have no smooth density;
- of several fixed points the largest is used, because repeated rows add a fixed point finer than the data;
- without a fixed point, usually for few rows, the result is Silverman's bandwidth.

O(n + bins·log bins).
"""

from __future__ import annotations

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from reduset._types import Array, PointsLike, WeightsLike
from reduset.bandwidth import rules

STAGES = 7
BINS, MAX_BINS = 1 << 12, 1 << 18
MIN_BINS_PER_BANDWIDTH = 8
MARGIN = 0.1  # beyond both ends, relative to the range
OUTLIER_RANGES = 100.0  # interquartile ranges
MIN_TIED = 0.5  # proportion of rows with tied values, from which values count as rounded
NEGLIGIBLE_EXPONENT = 120.0  # k²π²t, above which a frequency is negligible
GRID = 64  # values of log t, equally spaced, between which the fixed point is searched


def isj(X: PointsLike, sample_weight: WeightsLike = None) -> float:
    """The improved Sheather–Jones rule for one column, which does not oversmooth modes that are far apart.

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
            f"isj needs one column, got {X.shape[1]}; use 'scott' or 'median', or a scale for each column: "
            "Gaussian(1.0, scales=[isj(X[:, [j]]) for j in range(d)])"
        )
    x = X[:, 0].astype(np.float64)
    middle, spread = rules._quantile(x, w, 0.5), rules._quantile(x, w, 0.75) - rules._quantile(x, w, 0.25)
    kept = np.abs(x - middle) <= OUTLIER_RANGES * spread if spread > 0 else np.ones(len(x), bool)
    if not kept.all():
        x, w = x[kept], w[kept]
    count = rules._effective(w)
    low, high = float(x.min()), float(x.max())
    if not high > low:
        return rules.silverman(X, sample_weight)
    step = _rounding_step(x)
    low, length = low - MARGIN * (high - low), (1 + 2 * MARGIN) * (high - low)
    bins = BINS
    while True:
        t = _fixed_point(_squares((x - low) / length, w, bins, step / length), count)
        if t is None:
            return rules.silverman(X, sample_weight)
        if np.sqrt(t) * bins >= MIN_BINS_PER_BANDWIDTH or bins >= MAX_BINS:
            return float(np.sqrt(t) * length)
        bins *= 8


def _rounding_step(x: Array) -> float:
    """The step of rounded values; 0 if fewer than half of the rows have tied values."""
    values, counts = np.unique(x, return_counts=True)
    if len(values) < 3 or counts[counts > 1].sum() < MIN_TIED * len(x):
        return 0.0
    return float(np.median(np.diff(values)))


def _squares(x: Array, w: Array, bins: int, step: float) -> Array:
    """aₖ² for k = 1, 2, … from rows x in [0, 1], each spread over ``step``."""
    position = np.clip(x * bins - 0.5, 0.0, bins - 1.0)
    bin_ = np.minimum(position.astype(np.int64), bins - 2)
    fraction = position - bin_
    mass = np.bincount(bin_, w * (1 - fraction), bins) + np.bincount(bin_ + 1, w * fraction, bins)
    a = dct(mass / mass.sum(), 2)[1:]  # twice the sum of cosines at the middles of the bins
    if step > 0:
        a *= np.sinc(np.arange(1, bins) * step / 2)
    return np.asarray(np.square(a))


def _fixed_point(squares: Array, count: float) -> float | None:
    """The largest fixed point t; None if there is no fixed point."""
    k = np.arange(1, len(squares) + 1) * np.pi
    logs, k2 = np.log(k), k**2

    def norm(order: int, t: float) -> float:
        last = min(len(k), int(np.sqrt(NEGLIGIBLE_EXPONENT / t) / np.pi) + 2)
        with np.errstate(under="ignore"):
            return float(0.5 * np.exp(2 * order * logs[:last] - k2[:last] * t) @ squares[:last])

    def difference(log_t: float) -> float:
        estimate = norm(STAGES, float(np.exp(log_t)))
        for j in range(STAGES - 1, 1, -1):
            if not 0 < estimate < np.inf:
                return np.nan
            odd = float(np.prod(np.arange(1.0, 2 * j, 2)))
            t_j = ((1 + 0.5 ** (j + 0.5)) / 3 * odd / (count * np.sqrt(np.pi / 2) * estimate)) ** (2 / (3 + 2 * j))
            estimate = norm(j, t_j)
        return log_t + 0.4 * float(np.log(2 * count * np.sqrt(np.pi) * estimate)) if estimate > 0 else np.nan

    grid = np.linspace(2 * np.log(0.5 / len(k)), np.log(0.1), GRID)
    values = np.array([difference(log_t) for log_t in grid])
    rising = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    if not len(rising):
        return None
    last = rising[-1]
    return float(np.exp(brentq(difference, grid[last], grid[last + 1], xtol=1e-12)))
