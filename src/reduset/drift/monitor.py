"""DriftMonitor: watch rows as they come, and raise an alarm when their law has changed.

The mean of the last w rows is compared with the reference's at every scale, for windows from 8 rows (a jump) to some thousand (a
slow slide), by one quadratic form that all statistics of the test are part of, each over its standard deviation. The alarm is set
so that without drift the first one comes after ``ert`` rows on average (`run_length`). A row costs one look at the atoms and O(p),
whatever was before, and the memory is that of the longest window.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset._engine import WindowSums
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, Indices, PointsLike, ProgressLike, SeedLike
from reduset.drift import reference_file
from reduset.drift.change_point import ChangePoints
from reduset.drift.dependence import Dependence
from reduset.drift.estimator import DriftTest
from reduset.drift.history import MOST_POINTS, History
from reduset.drift.null_law import normal, square_root
from reduset.drift.reference import StoredReference
from reduset.drift.run_length import Thresholds, calibrated
from reduset.drift.sample import Sample

ERT = 10_000
FEWEST_ROWS = 50
SHORTEST, LONGEST = 8, 2048
OF_ERT, OF_ROWS = 2, 4  # a window is at most that part of the run length, and of the rows of the reference
MOST_COORDINATES = 128
ENOUGH = 0.995  # of the statistic, in the coordinates that are kept
DEPENDENCE_ROWS = 512  # by which rows are seen to depend on each other
DEPENDENT = 1e-4
BACK = 2  # times the longest window: rows among which the beginning of a change is sought
DRAWN_ROWS = 8192
ROWS_A_TIME = 4096
MOST, LARGEST = reference_file.MOST, 1e100  # of a file: counts, and numbers
KIND = "reduset.DriftMonitor"
OWN = ("form", "kept", "windows", "thresholds", "ring", "early", "history")
FORMAT = _archive.Kind(1, (*reference_file.STORED, *OWN))


@dataclass(frozen=True)
class MonitorState:
    """Where a monitor stands.

    Attributes
    ----------
    n_seen : rows so far
    statistic : the largest of all windows while the last rows were taken in; 1 is the threshold
    window : the length of that window in rows
    alarm : whether there was one
    since : (row, low, high) where the change began and between which rows it did, or None
    """

    n_seen: int
    statistic: float
    window: int
    alarm: bool
    since: tuple[int, int, int] | None

    def __str__(self) -> str:
        if not self.alarm:
            return f"{self.n_seen:,} rows, no drift: {self.statistic:.2f} of 1"
        told = "" if self.since is None else f", since row {self.since[0]:,} (between {self.since[1]:,} and {self.since[2]:,})"
        return f"{self.n_seen:,} rows, DRIFT{told}"


class DriftMonitor:
    """Watch rows as they come against a reference.

    Parameters
    ----------
    reference : DriftTest that was fitted, or whatever its ``fit`` takes
    ert : float
        The expected run time: how many rows go by without drift until the first false alarm, on average.
    windows : sequence of int, optional
        How many of the last rows are looked at together, each in turn; by default 8, 16, 32, … up to half of ``ert``, a quarter
        of the rows of the reference, or 2,048. Short ones see a jump soon, long ones a slow slide.
    thin : int
        Take in every so many-th row alone, where rows depend on those before them; ``ert`` counts all rows.
    random_state : int, RandomState, Generator or None
    progress : bool, or a function of (stage, done, total); setting the threshold takes seconds

    Attributes
    ----------
    alarm_ : bool
    since_ : (row, low, high) or None
        The row where the change began, as far as can be told, and an interval for it, made to hold the true one 95 times in 100;
        where only a part of the rows changed, it begins too late more often.
    alarmed_at_ : the row of the alarm, or None
    n_seen_ : rows so far
    about_ : plain values that were kept beside it in a checkpoint
    history_ : dict of arrays "row" and "statistic" (1 is the threshold), at most 2,048 of each

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.drift import DriftMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(rng.normal(size=(5000, 2)), ert=1000, random_state=0)
    >>> monitor.update(rng.normal(size=(100, 2))).alarm
    False
    >>> state = monitor.update(rng.normal(loc=2.0, size=(100, 2)))
    >>> state.alarm, bool(95 <= monitor.since_[0] <= 105)
    (True, True)
    """

    def __init__(
        self,
        reference: Any,
        ert: float = ERT,
        windows: Any = None,
        *,
        thin: int = 1,
        random_state: SeedLike = None,
        progress: ProgressLike = False,
    ) -> None:
        self.about_: dict[str, Any] = {}
        self.ert = _validate.at_least(ert, "ert", 2 * SHORTEST)
        self.thin = _validate.whole(thin, "thin", 1)
        rng = _validate.generator(random_state, "random_state")
        test = reference if isinstance(reference, DriftTest) else DriftTest(random_state=rng).fit(reference)
        self.reference_: StoredReference = test.stored()
        if self.reference_.rows < FEWEST_ROWS:
            raise ValueError(
                f"reference must have at least {FEWEST_ROWS} rows beside those that say where to look, got "
                f"{self.reference_.rows:,.0f}; give more rows"
            )
        self._form, self._kept = _form(self.reference_)
        lengths = _windows(windows, self.ert / self.thin, self.reference_.rows)
        if int(lengths[0]) * self.thin > self.ert:
            raise ValueError(
                f"ert must be longer than the shortest window, {int(lengths[0])} rows times thin={self.thin}; got {self.ert:g}, "
                "thin less or give shorter windows"
            )
        shown = Progress(progress)
        try:
            self._changes = self._set(lengths, rng, shown)
        finally:
            shown.close()
        self._begin(WindowSums.empty(lengths, len(self._form), BACK * int(lengths[-1])))

    def _begin(self, sums: WindowSums) -> None:
        self._sums = sums
        self.alarm_ = False
        self.since_: tuple[int, int, int] | None = None
        self.alarmed_at_: int | None = None
        self.n_seen_ = 0
        self._last, self._window = 0.0, 0
        self._early: Array | None = np.empty((0, len(self._form)))
        self._history = History()

    def _set(self, windows: Indices, rng: np.random.Generator, shown: Progress) -> ChangePoints:
        """What is called an alarm, and where the change then began."""
        known = self.reference_
        centred, covariance = _law(known, self._kept)
        root = square_root(covariance / known.rows)
        found = calibrated(centred, root, self._form, windows, self.ert / self.thin, rng, shown.stage("run length"))
        return ChangePoints(centred, covariance, self._form, windows, found)

    # -- files --------------------------------------------------------------------------------------------------------------

    def checkpoint(self, path: _archive.Path_, about: dict[str, Any] | None = None) -> None:
        """Write all that is needed to go on, the reference included, atomically.

        Parameters
        ----------
        path : file
        about : plain values to keep beside it, ``about_`` once resumed
        """
        told, arrays = reference_file.arrays_of(self.reference_)
        set_to, history = self._changes.thresholds, self._history
        own = {
            "form": self._form,
            "kept": self._kept.astype(np.float64),
            "windows": self._sums.windows.astype(np.float64),
            "thresholds": np.stack([set_to.centres, set_to.factors]),
            "ring": self._sums.ring,
            "early": np.empty((0, len(self._form))) if self._early is None else self._early,
            "history": np.stack([history.rows, history.statistics]),
        }
        header = {
            "kind": KIND,
            "version": FORMAT.version,
            **told,
            "ert": self.ert,
            "thin": self.thin,
            "level": set_to.level,
            "position": self._sums.position,
            "n_seen": self.n_seen_,
            "last": self._last,
            "window": self._window,
            "watched": self._early is None,
            "alarmed_at": self.alarmed_at_,
            "since": self.since_,
            "every": history.every,
            "about": self.about_ if about is None else about,
        }
        _archive.write(path, header, reference_file.padded(arrays | own, FORMAT.names))

    @classmethod
    def resume(cls, path: _archive.Path_) -> DriftMonitor:
        """Go on from what `checkpoint` wrote; a damaged, edited, newer or foreign file is a ValueError, and stays as it is."""
        header, arrays = _archive.read(path, {KIND: FORMAT})
        monitor = cls.__new__(cls)
        try:
            monitor._restore(header, arrays)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{os.fspath(path)} describes no monitor: {error}") from error
        return monitor

    def _restore(self, told: dict[str, Any], arrays: reference_file.Arrays) -> None:
        own = {name: np.asarray(arrays.pop(name), np.float64) for name in OWN}
        arrays = {name: array for name, array in arrays.items() if name in reference_file.STORED}
        known = reference_file.from_arrays(told, arrays)
        if isinstance(known, Sample):
            raise ValueError("its reference is none that can be watched against")
        self.reference_, self.ert = known, _validate.at_least(told["ert"], "ert", 1)
        self.thin = _validate.whole(told["thin"], "thin", 1, MOST)
        self._form, self._kept = own["form"], own["kept"].astype(np.int64)
        windows = own["windows"].astype(np.int64)
        p, k = len(self._form), len(windows)
        fits = (
            self._kept.shape == (p,)
            and p > 0
            and ((self._kept >= 0) & (self._kept < known.features.size)).all()
            and k > 0
            and (windows >= 2).all()
            and (np.diff(windows) > 0).all()
            and own["thresholds"].shape == (2, k)
            and own["ring"].ndim == 2
            and own["ring"].shape[1] == p
            and len(own["ring"]) > windows[-1]
            and own["early"].ndim == 2
            and own["early"].shape[1] == p
            and len(own["early"]) <= DEPENDENCE_ROWS
            and own["history"].ndim == 2
            and len(own["history"]) == 2
            and own["history"].shape[1] <= MOST_POINTS
            and all(np.isfinite(each).all() and np.abs(each).max(initial=0.0) < LARGEST for each in own.values())
            and (own["form"] >= 0).all()
        )
        if not fits:
            raise ValueError("its parts do not belong together")
        centres, factors = own["thresholds"]
        set_to = Thresholds(centres, factors, _validate.positive(told["level"], "level"))
        self._changes = ChangePoints(*_law(known, self._kept), self._form, windows, set_to)
        self._begin(WindowSums(windows, own["ring"], _validate.whole(told["position"], "position", 0, MOST)))
        self.n_seen_ = _validate.whole(told["n_seen"], "n_seen", 0, MOST)
        self._last, self._window = _validate.finite(told["last"], "last"), _validate.whole(told["window"], "window", 0, MOST)
        self._early = None if _validate.flag(told["watched"], "watched") else own["early"]
        self.about_ = reference_file.about_from(told)
        self._history = History(own["history"][0], own["history"][1], _validate.whole(told["every"], "every", 1, MOST))
        if told["alarmed_at"] is not None:
            self.alarm_, self.alarmed_at_ = True, _validate.whole(told["alarmed_at"], "alarmed_at", 0, MOST)
            first, low, high = (_validate.whole(each, "since", 0, MOST) for each in told["since"])
            self.since_ = (first, low, high)

    @property
    def windows(self) -> tuple[int, ...]:
        """The lengths of the windows, in rows."""
        return tuple(int(each) * self.thin for each in self._sums.windows)

    @property
    def history_(self) -> dict[str, Array]:
        """The largest statistic over time, 1 being the threshold."""
        return self._history.arrays()

    def update(self, rows: PointsLike) -> MonitorState:
        """Take in rows in the order in which they came; a single one may be a vector."""
        known = self.reference_
        if isinstance(rows, np.ndarray) and rows.ndim == 1 and len(rows) == len(known.names):
            rows = rows[None]
        new = Sample.checked(rows, name="rows", fewest=1).like(known.names, known.named, "rows")
        first, self._last, self._window = -self.n_seen_ % self.thin, 0.0, 0
        taken = np.arange(first, new.size, self.thin)
        for a in range(0, len(taken), ROWS_A_TIME):
            some = taken[a : a + ROWS_A_TIME]
            self._take(known.features.rows(new.rows[some])[:, self._kept] - known.mean[self._kept], self.n_seen_ + some)
        self.n_seen_ += new.size
        return self.state_

    @property
    def state_(self) -> MonitorState:
        """Where it stands."""
        return MonitorState(self.n_seen_, self._last, self._window, self.alarm_, self.since_)

    def reset(self) -> None:
        """Begin anew, as after an alarm that was dealt with; the threshold stays."""
        self._begin(WindowSums.empty(self._sums.windows, len(self._form), len(self._sums.ring) - 1))

    def _take(self, rows: Array, numbers: Indices) -> None:
        """Go on by coordinates (n, p) of rows of these numbers, and look at them."""
        self._watch_dependence(rows)
        values, begun = rows.astype(np.float32), 0
        still, set_to = np.zeros(len(self._form)), self._changes.thresholds
        while begun < len(rows):
            order = np.arange(begun, len(rows))
            largest, which = np.empty(len(order)), np.empty(len(order), np.int64)
            level = np.inf if self.alarm_ else set_to.level
            taken = self._sums.advance(values, order, still, self._form, set_to.centres, set_to.factors, level, largest, which)
            looked = np.flatnonzero(which[:taken] >= 0)
            if len(looked):
                highest = looked[largest[looked].argmax()]
                if largest[highest] / set_to.level > self._last:
                    self._last = float(largest[highest]) / set_to.level
                    self._window = int(self._sums.windows[which[highest]]) * self.thin
                self._history.add(numbers[begun + looked], largest[looked] / set_to.level)
            begun += taken
            if not self.alarm_ and taken and largest[taken - 1] >= set_to.level:
                self._alarm(int(numbers[begun - 1]), int(self._sums.windows[which[taken - 1]]))

    def _alarm(self, row: int, window: int) -> None:
        self.alarm_, self.alarmed_at_ = True, row
        best, least, most = self._changes.locate(self._sums.kept(), window, np.random.default_rng(self._sums.position))
        first, low, high = (max(row + self.thin * (1 - back), 0) for back in (best, most, least))
        self.since_ = (first, low, high)

    def _watch_dependence(self, rows: Array) -> None:
        """Once, when there are enough rows: warn where they depend on those before them."""
        if self._early is None:
            return
        self._early = np.concatenate([self._early, rows[: DEPENDENCE_ROWS - len(self._early)]])
        if len(self._early) < DEPENDENCE_ROWS:
            return
        found, self._early = Dependence.of(self._early), None
        if found.p_value < DEPENDENT and not self.alarm_:
            warn(
                f"rows depend on those before them: {found.rows} in a row count as one, so that false alarms come sooner than "
                f"after ert={self.ert:g} rows; take in fewer of them, thin={found.rows * self.thin}"
            )


def _law(reference: StoredReference, kept: Indices) -> tuple[Array, Array]:
    """(s, p) coordinates of rows of the reference's law, their mean 0, and their covariance; normal ones where no row is kept."""
    rows = reference.coordinates if len(reference.sample) else normal(reference.root, DRAWN_ROWS, np.random.default_rng(0))
    rows = rows[:, kept]
    return rows - rows.mean(axis=0), reference.covariance[np.ix_(kept, kept)]


def _form(reference: StoredReference) -> tuple[Array, Indices]:
    """(p,) one quadratic form of all statistics, each over its standard deviation; in the coordinates that make up most of it."""
    forms, counts = reference.features.forms
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


def _windows(given: Any, ert: float, rows: float) -> Indices:
    """Lengths of windows, checked, or those by default."""
    if given is None:
        most = min(LONGEST, max(ert / OF_ERT, SHORTEST), max(rows / OF_ROWS, SHORTEST))
        return np.asarray([length for length in SHORTEST * 2 ** np.arange(10) if length <= most], np.int64)
    lengths = sorted({_validate.whole(each, "windows", 2) for each in np.atleast_1d(given).tolist()})
    if not lengths:
        raise ValueError("windows must be one length or more, got none; leave it out for 8, 16, 32, …")
    if lengths[-1] > rows:
        raise ValueError(
            f"windows must be at most as long as the reference, {rows:,.0f} rows, got {lengths[-1]:,}; give shorter ones"
        )
    return np.asarray(lengths, np.int64)
