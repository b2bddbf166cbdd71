"""The rule of a monitor: the statistic of the last rows, the threshold of an alarm, and the state of a stream.

The statistic is one quadratic form that combines all kernel statistics, each divided by its standard deviation. It is evaluated for
every window (`_engine/windows.py`), in the coordinates with the largest contributions. `run_length` calibrates the threshold.
`History` keeps the largest statistic in each interval of rows.

`Dependence` tests whether rows depend on the rows before them, for example frames of a video. The statistic of Ljung and Box (1978)
combines the autocorrelations ρ of the leading coordinates at lags 1 to 5: n(n + 2) Σ ρ²/(n − lag). It is χ² for independent rows.
The rows are split into four parts, each centred at its mean, and the largest of the four statistics is omitted. A change of the
distribution lies in one part only, so that it does not count as dependence. The integrated autocorrelation time 1 + 2Σρ is summed
while ρ exceeds its noise. It is the number of rows that count as one independent row.

`ChangePoints` estimates the row at which a change began, with an interval. Rows are projected on the direction u in which the last
rows of the alarming window differ, and a shift of the mean of these scores z is fitted. The log-likelihood ratio of a change before
row s is ℓ(s) = Σ_{i>s} (a·zᵢ − a²/2)/σ². A row's contribution to u is subtracted from its score. The estimate maximises ℓ, and the
interval contains all s with ℓ within c of the maximum.

Alarms coincide with favourable noise, and u is estimated from few rows. Therefore c is simulated. Streams change to rows like the
observed rows and are watched until an alarm. The 95 % quantile of the difference between the largest ℓ and ℓ at the true s is c. If
only some of the rows changed, the first rows after the change may look unchanged, and the interval begins too late more often.
O(rows·p) time, and the same for each simulated stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import chi2

from reduset._engine import WindowSums
from reduset._types import Array, Floats, Indices, Report
from reduset.drift import run_length
from reduset.drift.null_distribution import normal, square_root
from reduset.drift.reference import StoredReference
from reduset.drift.run_length import Thresholds
from reduset.drift.statistics import KernelStatistics

HISTORY_POINTS = 2048
DEPENDENCE_ROWS = 512
DEPENDENCE_LAGS, DEPENDENCE_COORDINATES, DEPENDENCE_PARTS = 5, 4, 4
MAX_LAG = 1000
STANDARD_ERRORS = 2.0  # smaller autocorrelations count as noise
CONFIDENCE = 0.95
SIMULATED_STREAMS = 200
LOCATION_ROUNDS = 3  # each estimates direction, size and position in turn
CHANGED_SHARE = 0.6  # proportion of changed rows after a simulated change; below 1, because alarms overestimate the change
MAX_DELAY = 20  # times the rows since the observed change; simulated streams without an alarm up to this delay are ignored
MAX_COORDINATES = 128
KEPT_SHARE = 0.995  # proportion of the statistic's mean that the kept coordinates contribute
SEARCHED_WINDOWS = 2  # the start of a change is sought among this number of times the rows of the longest window
NORMAL_ROWS = 8192  # drawn from a normal distribution if the reference keeps no rows


class History:
    """The largest statistic in each interval of ``every`` rows. Intervals double if there are more than 2,048."""

    def __init__(self, rows: Array | None = None, statistics: Array | None = None, every: int = 1) -> None:
        self.rows = np.empty(0) if rows is None else rows
        self.statistics = np.empty(0) if statistics is None else statistics
        self.every = every

    def add(self, rows: Indices, statistics: Array) -> None:
        """Add statistics after these rows. Row numbers increase and are larger than all earlier ones."""
        self.rows = np.concatenate([self.rows, rows])
        self.statistics = np.concatenate([self.statistics, statistics])
        self._thin()
        while len(self.rows) > HISTORY_POINTS:
            self.every *= 2
            self._thin()

    def _thin(self) -> None:
        bucket = self.rows // self.every
        order = np.lexsort((-self.statistics, bucket))
        first = np.flatnonzero(np.diff(bucket[order], prepend=-1.0))
        self.rows, self.statistics = self.rows[order[first]], self.statistics[order[first]]

    def arrays(self) -> dict[str, Array]:
        """Row numbers and statistics."""
        return {"row": self.rows.copy(), "statistic": self.statistics.copy()}


@dataclass(frozen=True)
class Dependence:
    """The dependence of rows on the rows before them.

    Attributes
    ----------
    p_value : The p-value of independence.
    rows : The number of rows that count as one independent row.
    """

    p_value: float
    rows: int

    @classmethod
    def of(cls, coordinates: Array) -> Dependence:
        """The dependence of rows (n, k) in their order of arrival. The first four coordinates are used."""
        parts = [
            cls._of_part(part)
            for part in np.array_split(coordinates[:, :DEPENDENCE_COORDINATES], DEPENDENCE_PARTS)
            if len(part) > 4 * DEPENDENCE_LAGS
        ]
        used = sorted((part for part in parts if part[1] > 0), key=lambda part: part[0])[: DEPENDENCE_PARTS - 1]
        if not used:
            return cls(1.0, 1)
        value, freedom, time = (sum(figures) for figures in zip(*used, strict=True))
        return cls(float(chi2.sf(value, freedom)), max(int(np.ceil(time / len(used))), 1))

    @staticmethod
    def _of_part(rows: Array) -> tuple[float, int, float]:
        """The statistic, its degrees of freedom, and the largest integrated autocorrelation time of the coordinates."""
        centred = rows - rows.mean(axis=0)
        power = np.square(centred).sum(axis=0)
        centred, power = centred[:, power > 0], power[power > 0]
        n = len(centred)
        if not len(power):
            return 0.0, 0, 1.0
        tested = range(1, min(MAX_LAG, n // 4) + 1)
        correlations = np.asarray([(centred[lag:] * centred[:-lag]).sum(axis=0) / power for lag in tested])
        lags = np.arange(1, DEPENDENCE_LAGS + 1)
        value = float((n * (n + 2) * np.square(correlations[:DEPENDENCE_LAGS]) / (n - lags)[:, None]).sum())
        low = correlations < STANDARD_ERRORS / np.sqrt(n)
        ends = np.where(low.any(axis=0), low.argmax(axis=0), len(correlations))
        times = [1 + 2 * float(correlations[:end, k].sum()) for k, end in enumerate(ends)]
        return value, DEPENDENCE_LAGS * len(power), max(times)


@dataclass(frozen=True)
class ChangePoints:
    """Estimates of the row at which a change began.

    Attributes
    ----------
    rows : (s, p) coordinates of rows from the distribution of the reference, with mean 0.
    covariance : (p, p) covariance of these rows.
    form : (p,) coefficients of the statistic.
    windows, thresholds : The windows and thresholds of the monitor.
    """

    rows: Array
    covariance: Array
    form: Array
    windows: Indices
    thresholds: Thresholds

    def locate(self, sums: Array, window: int, rng: np.random.Generator) -> tuple[int, int, int]:
        """The start of the change as a number of rows before the end, and its interval: (best, lowest, highest).

        Parameters
        ----------
        sums : (n + 1, p) running sums of the last n rows, minus the mean of the reference.
        window : Length of the window that raised the alarm.
        rng : Generator for the simulated streams.
        """
        rows = np.diff(sums, axis=0)
        best, ratios = self._log_likelihood_ratios(rows, window)
        deficits = self._deficits(rows[-best:], len(rows) - best, rng)
        limit = np.quantile(deficits, CONFIDENCE) if len(deficits) else np.inf
        within = np.flatnonzero(ratios >= ratios[best - 1] - limit) + 1
        return best, int(within[0]), int(within[-1])

    def _log_likelihood_ratios(self, rows: Array, window: int) -> tuple[int, Array]:
        """The most probable number of changed rows, and ℓ for every number of changed rows."""
        n, since = len(rows), min(window, len(rows))
        for _ in range(LOCATION_ROUNDS):
            last = rows[n - since :]
            direction = self.form * last.mean(axis=0)
            scores = rows @ direction
            scores[n - since :] -= np.square(last) @ self.form / since  # the contribution of a row to the direction
            size, noise = float(scores[n - since :].mean()), float(direction @ self.covariance @ direction)
            ratios = np.cumsum(((size * scores - size**2 / 2) / max(noise, 1e-300))[::-1])
            best = int(ratios.argmax()) + 1
            if best == since or size <= 0:
                break
            since = best
        return best, ratios

    def _deficits(self, changed: Array, before: int, rng: np.random.Generator) -> Array:
        """Differences of the largest ℓ and ℓ at the true start, in simulated streams that change to rows like ``changed``."""
        values = np.concatenate([self.rows, changed]).astype(np.float32)
        since, zero, thresholds = len(changed), np.zeros(len(self.form)), self.thresholds
        deficits = []
        for _ in range(SIMULATED_STREAMS):
            sums = WindowSums.empty(self.windows, len(zero), before + since)
            order = rng.integers(len(self.rows), size=before + MAX_DELAY * since)
            replaced = before + np.flatnonzero(rng.random(MAX_DELAY * since) < CHANGED_SHARE)
            order[replaced] = len(self.rows) + rng.integers(since, size=len(replaced))
            scaled = (self.form, thresholds.centres, thresholds.factors)
            count, _, which = run_length.watched(sums, values, order, zero, scaled, thresholds.level)
            if before < count < len(order):
                window = int(self.windows[which[count - 1]])
                _, ratios = self._log_likelihood_ratios(np.diff(sums.kept(), axis=0), window)
                deficits.append(ratios.max() - ratios[min(count - before, len(ratios)) - 1])
        return np.asarray(deficits)


@dataclass
class WatchState:
    """The state of a watched stream.

    Attributes
    ----------
    sums : Running sums of the last rows.
    early : (n, p) the first rows, until they are tested for dependence; then None.
    history : The statistic over time.
    n_seen : Number of rows so far.
    last, window : The largest statistic during the last update (1 is the threshold), and the length of its window in rows.
    alarmed_at : The row of the alarm, or None.
    since : The row where the change began, and the ends of an interval for it; or None.
    """

    sums: WindowSums
    early: Array | None
    history: History = field(default_factory=History)
    n_seen: int = 0
    last: float = 0.0
    window: int = 0
    alarmed_at: int | None = None
    since: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class WatchRule:
    """The statistic, the windows and the threshold of a monitor.

    Attributes
    ----------
    reference : The summary of the reference.
    ert : Expected run time in rows.
    thin : Every ``thin``-th row is used.
    form : (p,) coefficients of the statistic.
    kept : (p,) positions of its coordinates.
    windows : (k,) lengths of the windows, in used rows.
    thresholds : The threshold of an alarm, and the scales of the windows.
    """

    reference: StoredReference
    ert: float
    thin: int
    form: Array
    kept: Indices
    windows: Indices
    thresholds: Thresholds

    @classmethod
    def calibrated(
        cls, reference: StoredReference, ert: float, thin: int, windows: Indices, rng: np.random.Generator, report: Report
    ) -> WatchRule:
        """A rule with the threshold at which the first alarm without drift comes after ``ert`` rows on average."""
        form, kept = _form(reference)
        rows, covariance = _rows_and_covariance(reference, kept)
        root = square_root(covariance / reference.rows)
        thresholds = run_length.calibrated(rows, root, form, windows, ert / thin, rng, report)
        return cls(reference, ert, thin, form, kept, windows, thresholds)

    def initial_state(self) -> WatchState:
        """The state before the first row."""
        sums = WindowSums.empty(self.windows, len(self.form), SEARCHED_WINDOWS * int(self.windows[-1]))
        return WatchState(sums, np.empty((0, len(self.form))))

    def coordinates(self, rows: Floats) -> Array:
        """(n, p) coordinates of rows, minus the mean of the reference."""
        return np.asarray((self.reference.features.rows(rows) - self.reference.mean)[:, self.kept])

    def advance(self, state: WatchState, rows: Array, numbers: Indices) -> None:
        """Add rows to the stream, evaluate the statistic, and raise an alarm if it reaches the threshold.

        Parameters
        ----------
        state : The state of the stream, which is updated.
        rows : (n, p) coordinates of the rows.
        numbers : (n,) numbers of the rows in the stream.
        """
        values, start = rows.astype(np.float32), 0
        zero, level = np.zeros(len(self.form)), self.thresholds.level
        while start < len(rows):
            order = np.arange(start, len(rows))
            limit = level if state.alarmed_at is None else np.inf
            scaled = (self.form, self.thresholds.centres, self.thresholds.factors)
            count, largest, which = run_length.watched(state.sums, values, order, zero, scaled, limit)
            evaluated = np.flatnonzero(which[:count] >= 0)
            if len(evaluated):
                highest = evaluated[largest[evaluated].argmax()]
                if largest[highest] / level > state.last:
                    state.last = float(largest[highest]) / level
                    state.window = int(self.windows[which[highest]]) * self.thin
                state.history.add(numbers[start + evaluated], largest[evaluated] / level)
            start += count
            if state.alarmed_at is None and count and largest[count - 1] >= level:
                self._raise_alarm(state, int(numbers[start - 1]), int(self.windows[which[count - 1]]))

    def _raise_alarm(self, state: WatchState, row: int, window: int) -> None:
        """Record an alarm at a row, and estimate where the change began."""
        changes = ChangePoints(*_rows_and_covariance(self.reference, self.kept), self.form, self.windows, self.thresholds)
        best, lowest, highest = changes.locate(state.sums.kept(), window, np.random.default_rng(state.sums.position))
        first, low, high = (max(row + self.thin * (1 - back), 0) for back in (best, highest, lowest))
        state.alarmed_at, state.since = row, (first, low, high)


def _rows_and_covariance(reference: StoredReference, kept: Indices) -> tuple[Array, Array]:
    """(s, p) coordinates of random rows of the reference with mean 0, and their covariance.

    The rows are drawn from a normal distribution if the reference keeps no rows.
    """
    rows = reference.coordinates if len(reference.sample) else normal(reference.root, NORMAL_ROWS, np.random.default_rng(0))
    rows = rows[:, kept]
    return rows - rows.mean(axis=0), reference.covariance[np.ix_(kept, kept)]


def _form(reference: StoredReference) -> tuple[Array, Indices]:
    """(p,) coefficients of the statistic, and the positions of the coordinates with the largest contributions to it.

    The statistic is the weighted sum of all kernel statistics, each divided by its standard deviation.
    """
    features, statistics = reference.features, KernelStatistics()
    weights = np.asarray([weight for *_, weight in statistics.forms(features)])
    total = np.zeros(features.size)
    for form, weight in zip(statistics.coefficients(features), weights / weights.sum(), strict=True):
        root = np.sqrt(form)
        deviation = np.sqrt(2 * float(np.square(root[:, None] * reference.covariance * root).sum()))
        total += weight * form / max(deviation, 1e-300)
    parts = total * np.maximum(np.diag(reference.covariance), 0.0)
    order = np.argsort(-parts)
    needed = int(np.searchsorted(np.cumsum(parts[order]), KEPT_SHARE * parts.sum())) + 1
    kept = np.sort(order[: min(needed, MAX_COORDINATES)])
    return total[kept], kept
