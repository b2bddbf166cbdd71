"""DriftMonitor: watch rows as they arrive, and raise an alarm when their distribution has changed.

The mean of the last w rows is compared with the mean of the reference at every scale. By default, windows have 8 to 2,048 rows.
Short windows detect a jump, long windows a slow trend. The statistic is one quadratic form that combines the kernel statistics of
the test, each divided by its standard deviation. The threshold is calibrated so that without drift the first alarm comes after
``ert`` rows on average (`run_length`). A row costs its kernel values at the atoms and O(p). The memory is proportional to the
longest window.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset._engine import WindowSums
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, Indices, PointsLike, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.drift import reference_file
from reduset.drift.estimator import DriftTest
from reduset.drift.reference import StoredReference
from reduset.drift.reference_file import MAX_ROWS
from reduset.drift.run_length import Thresholds
from reduset.drift.sample import Sample
from reduset.drift.watch_rule import DEPENDENCE_ROWS, HISTORY_POINTS, Dependence, History, WatchRule, WatchState

f = _archive.fields

ERT = 10_000
MIN_ROWS = 50
SHORTEST, LONGEST = 8, 2048
ERT_FRACTION, ROWS_FRACTION = 2, 4  # windows have at most 1/2 of ``ert`` and 1/4 of the rows of the reference
DEPENDENCE_LEVEL = 1e-4
BLOCK_ROWS = 4096

COUNT = f.whole(0, MAX_ROWS)
FIELDS: f.Fields = {
    "about": f.entries(),
    "ert": f.number(1),
    "thin": f.whole(1, MAX_ROWS),
    "level": f.number(0, above=True),
    "position": COUNT,
    "every": f.whole(1, MAX_ROWS),
    "n_seen": COUNT,
    "last": f.number(),
    "window": COUNT,
    "alarmed_at": f.optional(COUNT),
    "since": f.optional(f.listed(COUNT, 3)),
    "form": f.Numbers(("form",), low=0, high=1e30),
    "kept": f.Numbers(("form",), low=0, high=1e9, integers=True),
    "windows": f.Numbers(("windows",), low=2, high=1e9, integers=True),
    "centres": f.Numbers(("windows",), low=-1e30, high=1e30),
    "factors": f.Numbers(("windows",), low=-1e30, high=1e30),
    # Coordinates are below 1e9, so that their sums over at most 2**53 rows are below 1e25.
    "ring": f.Numbers(("ring", "form"), low=-1e25, high=1e25),
    "early": f.Numbers(("early?", "form"), low=-1e10, high=1e10, optional=True),
    "history_rows": f.Numbers(("history?",), low=-1e50, high=1e50),
    "history_statistics": f.Numbers(("history?",), low=-1e50, high=1e50),
}
MONITOR_FILE = _archive.Kind("reduset.DriftMonitor", "monitor", reference_file.STORED | FIELDS)


@dataclass(frozen=True)
class MonitorState:
    """The state of a monitor.

    Attributes
    ----------
    n_seen : int
        Number of rows so far.
    statistic : float
        The largest statistic over all windows during the last update. 1 is the threshold.
    window : int
        The length of this window in rows.
    alarm : bool
        Whether an alarm was raised.
    since : (row, low, high) or None
        The row where the change began, and a confidence interval for it.
    """

    n_seen: int
    statistic: float
    window: int
    alarm: bool
    since: tuple[int, int, int] | None

    def __str__(self) -> str:
        if not self.alarm:
            return f"{self.n_seen:,} rows, no drift: {self.statistic:.2f} of 1"
        since = "" if self.since is None else f", since row {self.since[0]:,} (between {self.since[1]:,} and {self.since[2]:,})"
        return f"{self.n_seen:,} rows, DRIFT{since}"


@seeded
class DriftMonitor:
    """Compare rows with a reference as they arrive.

    Parameters
    ----------
    reference : fitted DriftTest, or any input of its ``fit``
    ert : float
        The expected run time: the average number of rows without drift until the first false alarm.
    windows : sequence of int, optional
        Numbers of the last rows that are compared with the reference. By default 8, 16, 32, … up to half of ``ert``, a quarter of
        the rows of the reference, or 2,048. Short windows detect a jump early, long windows detect a slow trend.
    thin : int
        Use only every ``thin``-th row, if rows depend on the rows before them. ``ert`` counts all rows.
    random_state : int, RandomState, Generator or None
    progress : bool, or a function of (stage, done, total)
        The calibration of the threshold takes seconds.

    Attributes
    ----------
    alarm_ : bool
    since_ : (row, low, high) or None
        The estimated row where the change began, and a 95 % confidence interval. If only a part of the rows changed, the interval
        begins too late more often.
    alarmed_at_ : int or None, the row of the alarm
    n_seen_ : int, rows so far
    about_ : dict, the plain values stored in the checkpoint that the monitor was resumed from
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
        ert, thin = _validate.at_least(ert, "ert", 2 * SHORTEST), _validate.whole(thin, "thin", 1)
        rng = _validate.generator(random_state, "random_state")
        test = reference if isinstance(reference, DriftTest) else DriftTest(random_state=rng).fit(reference)
        stored = test.stored()
        if stored.rows < MIN_ROWS:
            raise ValueError(
                f"reference must have at least {MIN_ROWS} rows in addition to the rows that determine the coordinates, got "
                f"{stored.rows:,.0f}; pass more rows"
            )
        lengths = _windows(windows, ert / thin, stored.rows)
        if int(lengths[0]) * thin > ert:
            raise ValueError(
                f"ert must be at least the shortest window, {int(lengths[0])} rows times thin={thin}, got {ert:g}; reduce thin or "
                "pass shorter windows"
            )
        with closing(Progress(progress)) as reporter:
            self._rule = WatchRule.calibrated(stored, ert, thin, lengths, rng, reporter.stage("run length"))
        self._state = self._rule.initial_state()

    # -- files --------------------------------------------------------------------------------------------------------------

    def checkpoint(self, path: _archive.Path_, about: dict[str, Any] | None = None) -> None:
        """Write the complete state, including the reference, atomically.

        Parameters
        ----------
        path : file
        about : plain values to store with it, ``about_`` once resumed
        """
        rule, state = self._rule, self._state
        values = {
            **reference_file.values_of(rule.reference),
            **vars(rule),
            **vars(rule.thresholds),
            **vars(state),
            "about": self.about_ if about is None else about,
            "position": state.sums.position,
            "ring": state.sums.ring,
            "every": state.history.every,
            "history_rows": state.history.rows,
            "history_statistics": state.history.statistics,
        }
        _archive.write(path, MONITOR_FILE, values)

    @classmethod
    def resume(cls, path: _archive.Path_) -> DriftMonitor:
        """Continue from a checkpoint. A damaged, edited, newer or foreign file raises `ValueError` and is unchanged."""
        monitor = cls.__new__(cls)
        monitor._rule, monitor._state, monitor.about_ = _archive.read(path, {MONITOR_FILE: _parts_from})
        return monitor

    # -- state --------------------------------------------------------------------------------------------------------------

    @property
    def reference_(self) -> StoredReference:
        """The summary of the reference."""
        return self._rule.reference

    @property
    def ert(self) -> float:
        """The expected run time."""
        return self._rule.ert

    @property
    def thin(self) -> int:
        """Every ``thin``-th row is used."""
        return self._rule.thin

    @property
    def alarm_(self) -> bool:
        """Whether an alarm was raised."""
        return self._state.alarmed_at is not None

    @property
    def alarmed_at_(self) -> int | None:
        """The row of the alarm."""
        return self._state.alarmed_at

    @property
    def since_(self) -> tuple[int, int, int] | None:
        """The row where the change began, and a confidence interval for it."""
        return self._state.since

    @property
    def n_seen_(self) -> int:
        """Number of rows so far."""
        return self._state.n_seen

    @property
    def windows(self) -> tuple[int, ...]:
        """The lengths of the windows, in rows."""
        return tuple(int(length) * self.thin for length in self._rule.windows)

    @property
    def history_(self) -> dict[str, Array]:
        """The largest statistic over time. 1 is the threshold."""
        return self._state.history.arrays()

    def update(self, rows: PointsLike) -> MonitorState:
        """Add rows in the order in which they arrived. A single row may be a vector."""
        reference, state = self.reference_, self._state
        if isinstance(rows, np.ndarray) and rows.ndim == 1 and len(rows) == len(reference.names):
            rows = rows[None]
        new = Sample.checked(rows, name="rows", fewest=1).like(reference.names, reference.named, "rows")
        state.last, state.window = 0.0, 0
        used = np.arange(-state.n_seen % self.thin, new.size, self.thin)
        for a in range(0, len(used), BLOCK_ROWS):
            positions = used[a : a + BLOCK_ROWS]
            coordinates = self._rule.coordinates(new.rows[positions])
            self._watch_dependence(coordinates)
            self._rule.advance(state, coordinates, state.n_seen + positions)
        state.n_seen += new.size
        return self.state_

    @property
    def state_(self) -> MonitorState:
        """The current state."""
        return MonitorState(self.n_seen_, self._state.last, self._state.window, self.alarm_, self.since_)

    def reset(self) -> None:
        """Start again without rows, for example after an alarm. The threshold stays the same."""
        self._state = self._rule.initial_state()

    def _watch_dependence(self, rows: Array) -> None:
        """Warn if rows depend on the rows before them. This is tested once, when enough rows have arrived."""
        state = self._state
        if state.early is None:
            return
        state.early = np.concatenate([state.early, rows[: DEPENDENCE_ROWS - len(state.early)]])
        if len(state.early) < DEPENDENCE_ROWS:
            return
        dependence, state.early = Dependence.of(state.early), None
        if dependence.p_value < DEPENDENCE_LEVEL and not self.alarm_:
            warn(
                f"rows depend on the rows before them: {dependence.rows} successive rows count as one independent row, so that "
                f"false alarms come sooner than after ert={self.ert:g} rows; set thin={dependence.rows * self.thin}"
            )


def _windows(given: Any, ert: float, rows: float) -> Indices:
    """The validated lengths of windows, or the default lengths."""
    if given is None:
        longest = min(LONGEST, max(ert / ERT_FRACTION, SHORTEST), max(rows / ROWS_FRACTION, SHORTEST))
        return np.asarray([length for length in SHORTEST * 2 ** np.arange(10) if length <= longest], np.int64)
    lengths = sorted({_validate.whole(length, "windows", 2) for length in np.atleast_1d(given).tolist()})
    if not lengths:
        raise ValueError("windows must hold at least one length, got none; omit it for 8, 16, 32, …")
    if lengths[-1] > rows:
        raise ValueError(
            f"windows must be at most as long as the reference, {rows:,.0f} rows, got {lengths[-1]:,}; pass shorter windows"
        )
    return np.asarray(lengths, np.int64)


def _parts_from(values: dict[str, Any]) -> tuple[WatchRule, WatchState, dict[str, Any]]:
    """The rule, the state of the stream and the plain values of a file."""
    reference, windows, early = reference_file.reference_from(values), values["windows"], values["early"]
    if values["kept"].max() >= reference.features.size or not (np.diff(windows) > 0).all():
        raise ValueError("kept must be coordinates of the reference, and windows must increase")
    if len(values["ring"]) <= windows[-1] or (early is not None and len(early) > DEPENDENCE_ROWS):
        raise ValueError("ring must be longer than the longest window, and early at most as long as the rows that are examined")
    if len(values["history_rows"]) > HISTORY_POINTS or (values["alarmed_at"] is not None and values["since"] is None):
        raise ValueError(f"history must have at most {HISTORY_POINTS:,} points, and alarmed_at needs since")
    rule = WatchRule(
        reference,
        thresholds=Thresholds(values["centres"], values["factors"], values["level"]),
        **{name: values[name] for name in ("ert", "thin", "form", "kept", "windows")},
    )
    state = WatchState(
        WindowSums(windows, values["ring"], values["position"]),
        history=History(values["history_rows"], values["history_statistics"], values["every"]),
        **{name: values[name] for name in ("early", "n_seen", "last", "window", "alarmed_at", "since")},
    )
    return rule, state, values["about"]
