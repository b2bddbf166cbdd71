"""How rows are watched: what is looked at in them, from which level on it is an alarm, and what is known of a stream so far.

One quadratic form of all statistics of the test, each over its standard deviation, in the coordinates that make up most of it, for
every window (`_engine/windows.py`); the level is that of `run_length`, the place of a change that of `change_point`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reduset._engine import WindowSums
from reduset._types import Array, Floats, Indices, Report
from reduset.drift import run_length
from reduset.drift.change_point import ChangePoints
from reduset.drift.history import History
from reduset.drift.null_law import normal, square_root
from reduset.drift.reference import StoredReference
from reduset.drift.run_length import Thresholds

MOST_COORDINATES = 128
ENOUGH = 0.995  # of the statistic, in the coordinates that are kept
BACK = 2  # times the longest window: rows among which the beginning of a change is sought
DRAWN_ROWS = 8192


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
        rows, covariance = _law(reference, kept)
        root = square_root(covariance / reference.rows)
        thresholds = run_length.calibrated(rows, root, form, windows, ert / thin, rng, report)
        return cls(reference, ert, thin, form, kept, windows, thresholds)

    def begun(self) -> WatchState:
        """Before the first row."""
        sums = WindowSums.empty(self.windows, len(self.form), BACK * int(self.windows[-1]))
        return WatchState(sums, np.empty((0, len(self.form))))

    def coordinates(self, rows: Floats) -> Array:
        """(n, p) of rows, the mean of the reference taken off."""
        return np.asarray((self.reference.features.rows(rows) - self.reference.mean)[:, self.kept])

    def take(self, state: WatchState, rows: Array, numbers: Indices) -> None:
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
        changes = ChangePoints(*_law(self.reference, self.kept), self.form, self.windows, self.thresholds)
        best, least, most = changes.locate(state.sums.kept(), window, np.random.default_rng(state.sums.position))
        first, low, high = (max(row + self.thin * (1 - back), 0) for back in (best, most, least))
        state.alarmed_at, state.since = row, (first, low, high)


def _law(reference: StoredReference, kept: Indices) -> tuple[Array, Array]:
    """(s, p) coordinates of rows of the reference's law, their mean 0, and their covariance; normal ones where no row is kept."""
    rows = reference.coordinates if len(reference.sample) else normal(reference.root, DRAWN_ROWS, np.random.default_rng(0))
    rows = rows[:, kept]
    return rows - rows.mean(axis=0), reference.covariance[np.ix_(kept, kept)]


def _form(reference: StoredReference) -> tuple[Array, Indices]:
    """(p,) one quadratic form of all statistics, each over its standard deviation; in the coordinates that make up most of it."""
    forms, counts = reference.features.forms[0], reference.features.forms[1] / reference.features.forms[1].sum()
    total = np.zeros(reference.features.size)
    for form, count in zip(forms, counts, strict=True):
        root = np.sqrt(form)
        deviation = np.sqrt(2 * float(np.square(root[:, None] * reference.covariance * root).sum()))
        total += count * form / max(deviation, 1e-300)
    parts = total * np.maximum(np.diag(reference.covariance), 0.0)
    order = np.argsort(-parts)
    enough = int(np.searchsorted(np.cumsum(parts[order]), ENOUGH * parts.sum())) + 1
    kept = np.sort(order[: min(enough, MOST_COORDINATES)])
    return total[kept], kept
