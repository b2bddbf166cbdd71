"""Results of tests of drift that are small and awkward, for words, reports and displays."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from reduset.drift import DriftTest
from reduset.report import WatchedFile
from report_cases import HOSTILE

NAMES = ("height", HOSTILE, "few", "c3")


class Frame:
    """Rows with names, as frames have them."""

    def __init__(self, rows, columns=NAMES):
        self.rows, self.columns = rows, list(columns)

    def to_numpy(self):
        return self.rows


def rows(n=600, seed=0, d=4):
    """Columns far from zero, one of them of three values."""
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(n, 4)) * [1.0, 5.0, 1.0, 2.0] + [1e5, 0.0, 0.0, -30.0]
    found[:, 2] = rng.integers(3, size=n)
    return found[:, :d]


def changed(n=600, seed=1, d=4):
    """One in ten rows in a corner of the first two columns, and the third column with fewer zeros."""
    rng = np.random.default_rng(seed)
    found = rows(n, seed, 4)
    found[: n // 10, :2] = rng.normal(size=(n // 10, 2)) * [0.2, 1.0] + [1e5 + 3.0, 15.0]
    found[:, 2] = np.maximum(found[:, 2], rng.integers(2, size=n))
    return found[:, :d]


def result(new=None, d=4, names=NAMES, **settings):
    """What a test of new rows against the same reference finds, by default of those that changed."""
    test = DriftTest(**{"random_state": 0, "size": 40, "n_resamples": 199} | settings)
    return test.fit(Frame(rows(d=d), names[:d])).test(Frame(changed(d=d) if new is None else new, names[:d]))


def as_told(found, **figures):
    """A result with other figures."""
    return replace(found, **figures)


def monitor(alarm=True):
    """What a report asks a monitor for, with an alarm at row 160 or none: setting one up takes seconds."""
    row = np.arange(7, 200)
    told = {"alarm_": alarm, "since_": (150, 140, 155) if alarm else None, "alarmed_at_": 160 if alarm else None, "n_seen_": 200}
    statistic = np.where(row >= 160, 1.5, 0.4) if alarm else np.full(len(row), 0.4)
    return SimpleNamespace(history_={"row": row, "statistic": statistic}, windows=(8, 16, 32), ert=1000.0, **told)


WATCHED = (WatchedFile("a/day-1.csv", 0, 120, 0.4), WatchedFile(f"a/{HOSTILE}.csv", 120, 80, 1.5))
