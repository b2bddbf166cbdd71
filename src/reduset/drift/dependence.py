"""Whether rows depend on those before them: a video, a sensor, a queue. Then so many rows tell less than they seem to.

The autocorrelations of the leading coordinates at lags 1 to 5 give the statistic of Ljung and Box (1978), n(n + 2) Σ ρ²/(n − lag),
χ² for independent rows. It is taken in four parts of the rows, each about its own mean, and the largest of the four left out: a
change of the law, which is in one of them, is no dependence. The integrated time 1 + 2Σρ, summed as long as ρ is above its noise,
says how many rows count as one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from reduset._types import Array

ROWS = 512  # by which it is seen
LAGS, LEADING = 5, 4
PARTS = 4
LONGEST = 1000
NOISE = 2.0  # standard errors


@dataclass(frozen=True)
class Dependence:
    """How much rows depend on those before them.

    Attributes
    ----------
    p_value : of independence
    rows : how many rows count as one
    """

    p_value: float
    rows: int

    @classmethod
    def of(cls, coordinates: Array) -> Dependence:
        """Of rows (n, k) in the order in which they came; the first few coordinates are looked at."""
        parts = [cls._of_part(part) for part in np.array_split(coordinates[:, :LEADING], PARTS) if len(part) > 4 * LAGS]
        told = sorted((part for part in parts if part[1] > 0), key=lambda part: part[0])[: PARTS - 1]
        if not told:
            return cls(1.0, 1)
        value, freedom, time = (sum(each) for each in zip(*told, strict=True))
        return cls(float(chi2.sf(value, freedom)), max(int(np.ceil(time / len(told))), 1))

    @staticmethod
    def _of_part(rows: Array) -> tuple[float, int, float]:
        """The statistic, its degrees of freedom, and the integrated time of the slowest coordinate."""
        seen = rows - rows.mean(axis=0)
        power = np.square(seen).sum(axis=0)
        seen, power = seen[:, power > 0], power[power > 0]
        n = len(seen)
        if not len(power):
            return 0.0, 0, 1.0
        found = np.asarray([(seen[lag:] * seen[:-lag]).sum(axis=0) / power for lag in range(1, min(LONGEST, n // 4) + 1)])
        lags = np.arange(1, LAGS + 1)
        value = float((n * (n + 2) * np.square(found[:LAGS]) / (n - lags)[:, None]).sum())
        low = found < NOISE / np.sqrt(n)
        ends = np.where(low.any(axis=0), low.argmax(axis=0), len(found))
        times = [1 + 2 * float(found[:end, k].sum()) for k, end in enumerate(ends)]
        return value, LAGS * len(power), max(times)
