"""DriftMonitor: watch rows as they come, and raise an alarm when their law has changed.

The mean of the last w rows is compared with the reference's at every scale, for windows from 8 rows (a jump) to some thousand (a
slow slide), by one quadratic form that all statistics of the test are part of, each over its standard deviation. The alarm is set
so that without drift the first one comes after ``ert`` rows on average (`run_length`). A row costs one look at the atoms and O(p),
whatever was before, and the memory is that of the longest window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset._messages import warn
from reduset._progress import Progress
from reduset._types import Array, Indices, PointsLike, ProgressLike, SeedLike
from reduset._validate import seeded
from reduset.drift import monitor_file
from reduset.drift.estimator import DriftTest
from reduset.drift.reference import StoredReference
from reduset.drift.sample import Sample
from reduset.drift.watch_rule import DEPENDENCE_ROWS, Dependence, WatchRule

ERT = 10_000
FEWEST_ROWS = 50
SHORTEST, LONGEST = 8, 2048
OF_ERT, OF_ROWS = 2, 4  # a window is at most that part of the run length, and of the rows of the reference
DEPENDENT = 1e-4
ROWS_A_TIME = 4096


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


@seeded
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
        ert, thin = _validate.at_least(ert, "ert", 2 * SHORTEST), _validate.whole(thin, "thin", 1)
        rng = _validate.generator(random_state, "random_state")
        test = reference if isinstance(reference, DriftTest) else DriftTest(random_state=rng).fit(reference)
        known = test.stored()
        if known.rows < FEWEST_ROWS:
            raise ValueError(
                f"reference must have at least {FEWEST_ROWS} rows beside those that say where to look, got "
                f"{known.rows:,.0f}; give more rows"
            )
        lengths = _windows(windows, ert / thin, known.rows)
        if int(lengths[0]) * thin > ert:
            raise ValueError(
                f"ert must be longer than the shortest window, {int(lengths[0])} rows times thin={thin}; got {ert:g}, "
                "thin less or give shorter windows"
            )
        shown = Progress(progress)
        try:
            self._rule = WatchRule.calibrated(known, ert, thin, lengths, rng, shown.stage("run length"))
        finally:
            shown.close()
        self._state = self._rule.begun()

    # -- files --------------------------------------------------------------------------------------------------------------

    def checkpoint(self, path: _archive.Path_, about: dict[str, Any] | None = None) -> None:
        """Write all that is needed to go on, the reference included, atomically.

        Parameters
        ----------
        path : file
        about : plain values to keep beside it, ``about_`` once resumed
        """
        monitor_file.write(path, self._rule, self._state, self.about_ if about is None else about)

    @classmethod
    def resume(cls, path: _archive.Path_) -> DriftMonitor:
        """Go on from what `checkpoint` wrote; a damaged, edited, newer or foreign file is a ValueError, and stays as it is."""
        monitor = cls.__new__(cls)
        monitor._rule, monitor._state, monitor.about_ = monitor_file.read(path)
        return monitor

    # -- what it knows ------------------------------------------------------------------------------------------------------

    @property
    def reference_(self) -> StoredReference:
        """What rows are compared with."""
        return self._rule.reference

    @property
    def ert(self) -> float:
        """The expected run time."""
        return self._rule.ert

    @property
    def thin(self) -> int:
        """One of so many rows is taken in."""
        return self._rule.thin

    @property
    def alarm_(self) -> bool:
        """Whether there was an alarm."""
        return self._state.alarmed_at is not None

    @property
    def alarmed_at_(self) -> int | None:
        """The row of the alarm."""
        return self._state.alarmed_at

    @property
    def since_(self) -> tuple[int, int, int] | None:
        """Where the change began, and an interval for it."""
        return self._state.since

    @property
    def n_seen_(self) -> int:
        """Rows so far."""
        return self._state.n_seen

    @property
    def windows(self) -> tuple[int, ...]:
        """The lengths of the windows, in rows."""
        return tuple(int(each) * self.thin for each in self._rule.windows)

    @property
    def history_(self) -> dict[str, Array]:
        """The largest statistic over time, 1 being the threshold."""
        return self._state.history.arrays()

    def update(self, rows: PointsLike) -> MonitorState:
        """Take in rows in the order in which they came; a single one may be a vector."""
        known, state = self.reference_, self._state
        if isinstance(rows, np.ndarray) and rows.ndim == 1 and len(rows) == len(known.names):
            rows = rows[None]
        new = Sample.checked(rows, name="rows", fewest=1).like(known.names, known.named, "rows")
        state.last, state.window = 0.0, 0
        taken = np.arange(-state.n_seen % self.thin, new.size, self.thin)
        for a in range(0, len(taken), ROWS_A_TIME):
            some = taken[a : a + ROWS_A_TIME]
            coordinates = self._rule.coordinates(new.rows[some])
            self._watch_dependence(coordinates)
            self._rule.take(state, coordinates, state.n_seen + some)
        state.n_seen += new.size
        return self.state_

    @property
    def state_(self) -> MonitorState:
        """Where it stands."""
        return MonitorState(self.n_seen_, self._state.last, self._state.window, self.alarm_, self.since_)

    def reset(self) -> None:
        """Begin anew, as after an alarm that was dealt with; the threshold stays."""
        self._state = self._rule.begun()

    def _watch_dependence(self, rows: Array) -> None:
        """Once, when there are enough rows: warn where they depend on those before them."""
        state = self._state
        if state.early is None:
            return
        state.early = np.concatenate([state.early, rows[: DEPENDENCE_ROWS - len(state.early)]])
        if len(state.early) < DEPENDENCE_ROWS:
            return
        found, state.early = Dependence.of(state.early), None
        if found.p_value < DEPENDENT and not self.alarm_:
            warn(
                f"rows depend on those before them: {found.rows} in a row count as one, so that false alarms come sooner than "
                f"after ert={self.ert:g} rows; take in fewer of them, thin={found.rows * self.thin}"
            )


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
