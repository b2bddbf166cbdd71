"""The rule of a monitor: the statistic of the last rows, the threshold of an alarm, and the state of a stream.

The statistic is one quadratic form of all kernel statistics, each over its standard deviation, in the coordinates that make up
most of it, for every window (`_engine/windows.py`). The threshold is that of `run_length`. `History` keeps the largest statistic of
every so many rows.

`Dependence` tests whether rows depend on those before them, as frames of a video do. The autocorrelations of the leading
coordinates at lags 1 to 5 give the statistic of Ljung and Box (1978), n(n + 2) Σ ρ²/(n − lag), which is χ² for independent rows. It
is computed in four parts of the rows, each about its own mean, and the largest of the four is left out: a change of the
distribution lies in one of them and is no dependence. The integrated time 1 + 2Σρ, summed while ρ exceeds its noise, is the number
of rows that count as one.

`ChangePoints` estimates the row at which a change began, with an interval. Along the direction u in which the last rows of the
alarming window differ, each row's score z is compared with a shift of its mean. The log-likelihood ratio of a change before row s
is ℓ(s) = Σ_{i>s} (a·zᵢ − a²/2)/σ². The part that a row itself has in u is subtracted from its score. The estimate maximises ℓ, and
the interval has all s with ℓ within c of the maximum. An alarm coincides with favourable noise, and u is known from few rows, so c
is simulated: streams that change to rows like the observed ones are watched until they alarm, and c is the 95 % quantile of the
difference between the largest ℓ and ℓ at their true s. If only some of the rows changed, the first rows after the change may look
as before, and the interval begins too late more often. O(rows·p), and as much for each simulated stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import chi2

from reduset._engine import WindowSums
from reduset._types import Array, Floats, Indices, Report
from reduset.drift import run_length
from reduset.drift.kernel_statistics import KernelStatistics
from reduset.drift.null_distribution import normal, square_root
from reduset.drift.reference import StoredReference
from reduset.drift.run_length import Thresholds

HISTORY_POINTS = 2048
DEPENDENCE_ROWS = 512
DEPENDENCE_LAGS, DEPENDENCE_COORDINATES, DEPENDENCE_PARTS = 5, 4, 4
LONGEST_LAG = 1000
STANDARD_ERRORS = 2.0  # of an autocorrelation, below which it is noise
CONFIDENCE = 0.95
SIMULATED_STREAMS = 200
LOCATION_ROUNDS = 3  # of direction, size and position in turn
CHANGED_SHARE = 0.6  # of the rows after a simulated change; below 1, since the observed change looks larger than it is
LONGEST_DELAY = 20  # times the rows since the observed change; simulated streams without an alarm by then are ignored
MOST_COORDINATES = 128
KEPT_SHARE = 0.995  # of the statistic, in the coordinates that are kept
LOOK_BACK = 2  # times the longest window: rows among which the beginning of a change is sought
NORMAL_ROWS = 8192


class History:
    """The largest statistic of every ``every`` rows, which doubles when there are too many of them."""

    def __init__(self, rows: Array | None = None, statistics: Array | None = None, every: int = 1) -> None:
        self.rows = np.empty(0) if rows is None else rows
        self.statistics = np.empty(0) if statistics is None else statistics
        self.every = every

    def add(self, rows: Indices, statistics: Array) -> None:
        """Statistics after these rows, which rise and come after all others."""
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
        """Rows and statistics."""
        return {"row": self.rows.copy(), "statistic": self.statistics.copy()}


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
        parts = [
            cls._of_part(part)
            for part in np.array_split(coordinates[:, :DEPENDENCE_COORDINATES], DEPENDENCE_PARTS)
            if len(part) > 4 * DEPENDENCE_LAGS
        ]
        told = sorted((part for part in parts if part[1] > 0), key=lambda part: part[0])[: DEPENDENCE_PARTS - 1]
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
        found = np.asarray([(seen[lag:] * seen[:-lag]).sum(axis=0) / power for lag in range(1, min(LONGEST_LAG, n // 4) + 1)])
        lags = np.arange(1, DEPENDENCE_LAGS + 1)
        value = float((n * (n + 2) * np.square(found[:DEPENDENCE_LAGS]) / (n - lags)[:, None]).sum())
        low = found < STANDARD_ERRORS / np.sqrt(n)
        ends = np.where(low.any(axis=0), low.argmax(axis=0), len(found))
        times = [1 + 2 * float(found[:end, k].sum()) for k, end in enumerate(ends)]
        return value, DEPENDENCE_LAGS * len(power), max(times)


@dataclass(frozen=True)
class ChangePoints:
    """Where changes begin, for one way of watching.

    Attributes
    ----------
    rows : (s, p) of the reference's law, their mean 0; covariance : (p, p) of them
    form : (p,) of the statistic; windows, thresholds : what is watched
    """

    rows: Array
    covariance: Array
    form: Array
    windows: Indices
    thresholds: Thresholds

    def locate(self, sums: Array, window: int, rng: np.random.Generator) -> tuple[int, int, int]:
        """How many rows before the end it began, and the ends of an interval for that: (best, least, most), in rows.

        Parameters
        ----------
        sums : (n + 1, p) running sums of the last n rows, the mean of the reference taken off
        window : length of the window that alarmed
        """
        rows = np.diff(sums, axis=0)
        best, gains = self._gains(rows, window)
        falls = self._falls(rows[-best:], len(rows) - best, rng)
        fall = np.quantile(falls, CONFIDENCE) if len(falls) else np.inf
        within = np.flatnonzero(gains >= gains[best - 1] - fall) + 1
        return best, int(within[0]), int(within[-1])

    def _gains(self, rows: Array, window: int) -> tuple[int, Array]:
        """The most probable number of changed rows, and the log-likelihood ratio of every such number."""
        n, since = len(rows), min(window, len(rows))
        for _ in range(LOCATION_ROUNDS):
            last = rows[n - since :]
            direction = self.form * last.mean(axis=0)
            scores = rows @ direction
            scores[n - since :] -= np.square(last) @ self.form / since  # what a row has done to the direction
            size, noise = float(scores[n - since :].mean()), float(direction @ self.covariance @ direction)
            gains = np.cumsum(((size * scores - size**2 / 2) / max(noise, 1e-300))[::-1])
            best = int(gains.argmax()) + 1
            if best == since or size <= 0:
                break
            since = best
        return best, gains

    def _falls(self, changed: Array, before: int, rng: np.random.Generator) -> Array:
        """By how much the largest ℓ is above that of the true place, in streams that change to rows like these."""
        values = np.concatenate([self.rows, changed]).astype(np.float32)
        count, since, still, set_to = len(self.rows), len(changed), np.zeros(len(self.form)), self.thresholds
        found = []
        for _ in range(SIMULATED_STREAMS):
            sums = WindowSums.empty(self.windows, len(still), before + since)
            order = rng.integers(count, size=before + LONGEST_DELAY * since)
            real = before + np.flatnonzero(rng.random(LONGEST_DELAY * since) < CHANGED_SHARE)
            order[real] = count + rng.integers(since, size=len(real))
            largest, which = np.empty(len(order)), np.empty(len(order), np.int64)
            ending = (set_to.level, largest, which)
            taken = sums.advance(values, order, still, self.form, set_to.centres, set_to.factors, *ending)
            if before < taken < len(order):
                _, gains = self._gains(np.diff(sums.kept(), axis=0), int(self.windows[which[taken - 1]]))
                found.append(gains.max() - gains[min(taken - before, len(gains)) - 1])
        return np.asarray(found)


@dataclass
class WatchState:
    """What is known of a stream so far.

    Attributes
    ----------
    sums : of the last rows
    early : (n, p) the first rows, until it is known whether they depend on each other; then None
    history : the statistic over time
    n_seen : rows so far
    last, window : the largest statistic while the last rows were taken in, 1 being the threshold, and the length of its window
    alarmed_at, since : the row of the alarm; where the change began, and an interval for it
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
    """What is looked at, and what is an alarm.

    Attributes
    ----------
    reference : what rows are compared with
    ert : the expected run time, in rows; thin : one of so many rows is taken in
    form : (p,) of the statistic; kept : (p,) the coordinates that it is made of
    windows : (k,) lengths, in rows that are taken in; thresholds : from which level on it is an alarm
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
        """With the level at which the first alarm without drift comes after ``ert`` rows."""
        form, kept = _form(reference)
        rows, covariance = _rows_and_covariance(reference, kept)
        root = square_root(covariance / reference.rows)
        thresholds = run_length.calibrated(rows, root, form, windows, ert / thin, rng, report)
        return cls(reference, ert, thin, form, kept, windows, thresholds)

    def initial_state(self) -> WatchState:
        """Before the first row."""
        sums = WindowSums.empty(self.windows, len(self.form), LOOK_BACK * int(self.windows[-1]))
        return WatchState(sums, np.empty((0, len(self.form))))

    def coordinates(self, rows: Floats) -> Array:
        """(n, p) of rows, the mean of the reference taken off."""
        return np.asarray((self.reference.features.rows(rows) - self.reference.mean)[:, self.kept])

    def advance(self, state: WatchState, rows: Array, numbers: Indices) -> None:
        """Go on by coordinates (n, p) of rows of these numbers, and look at them."""
        values, begun = rows.astype(np.float32), 0
        still, level = np.zeros(len(self.form)), self.thresholds.level
        while begun < len(rows):
            order = np.arange(begun, len(rows))
            largest, which = np.empty(len(order)), np.empty(len(order), np.int64)
            until = level if state.alarmed_at is None else np.inf
            seen = (self.form, self.thresholds.centres, self.thresholds.factors)
            taken = state.sums.advance(values, order, still, *seen, until, largest, which)
            looked = np.flatnonzero(which[:taken] >= 0)
            if len(looked):
                highest = looked[largest[looked].argmax()]
                if largest[highest] / level > state.last:
                    state.last = float(largest[highest]) / level
                    state.window = int(self.windows[which[highest]]) * self.thin
                state.history.add(numbers[begun + looked], largest[looked] / level)
            begun += taken
            if state.alarmed_at is None and taken and largest[taken - 1] >= level:
                self._alarm(state, int(numbers[begun - 1]), int(self.windows[which[taken - 1]]))

    def _alarm(self, state: WatchState, row: int, window: int) -> None:
        changes = ChangePoints(*_rows_and_covariance(self.reference, self.kept), self.form, self.windows, self.thresholds)
        best, least, most = changes.locate(state.sums.kept(), window, np.random.default_rng(state.sums.position))
        first, low, high = (max(row + self.thin * (1 - back), 0) for back in (best, most, least))
        state.alarmed_at, state.since = row, (first, low, high)


def _rows_and_covariance(reference: StoredReference, kept: Indices) -> tuple[Array, Array]:
    """(s, p) coordinates of rows of the reference's law, their mean 0, and their covariance; normal ones where no row is kept."""
    rows = reference.coordinates if len(reference.sample) else normal(reference.root, NORMAL_ROWS, np.random.default_rng(0))
    rows = rows[:, kept]
    return rows - rows.mean(axis=0), reference.covariance[np.ix_(kept, kept)]


def _form(reference: StoredReference) -> tuple[Array, Indices]:
    """(p,) one quadratic form of all statistics, each over its standard deviation; in the coordinates that make up most of it."""
    features, statistics = reference.features, KernelStatistics()
    counts = np.asarray([weight for *_, weight in statistics.forms(features)])
    total = np.zeros(features.size)
    for form, count in zip(statistics.coefficients(features), counts / counts.sum(), strict=True):
        root = np.sqrt(form)
        deviation = np.sqrt(2 * float(np.square(root[:, None] * reference.covariance * root).sum()))
        total += count * form / max(deviation, 1e-300)
    parts = total * np.maximum(np.diag(reference.covariance), 0.0)
    order = np.argsort(-parts)
    enough = int(np.searchsorted(np.cumsum(parts[order]), KEPT_SHARE * parts.sum())) + 1
    kept = np.sort(order[: min(enough, MOST_COORDINATES)])
    return total[kept], kept
