"""Since when: the row at which a stream began to differ, with an interval.

Along the direction u in which the last rows of the alarming window differ, each row's score z is compared with a shift of its
mean, the log-likelihood ratio of a change before row s being ℓ(s) = Σ_{i>s} (a·zᵢ − a²/2)/σ². The scores of rows that u was made
of are taken less their own part in it. The best s is where ℓ is largest; the interval is of all s whose ℓ is within c of that. An
alarm comes when chance helps, and u is known from few rows, so c is found by streams that change to rows like those that were
seen, watched until they alarm: the fall of ℓ to their true s that 95 in 100 stay within. Where only some of the rows changed, the
first ones after a change may look as ever, and the interval begins too late more often. O(rows·p), and as much for each stream.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reduset._engine import WindowSums
from reduset._types import Array, Indices
from reduset.drift.run_length import Thresholds

CONFIDENCE = 0.95
STREAMS = 200
ROUNDS = 3  # of direction, size and place in turn
HELPED = 0.6  # of the rows after a change are as those seen, the others as before: what is found looks larger than it is
LONGEST = 20  # times the rows since the change that was seen: where a stream has not alarmed by then it tells nothing


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
        for _ in range(ROUNDS):
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
        for _ in range(STREAMS):
            sums = WindowSums.empty(self.windows, len(still), before + since)
            order = rng.integers(count, size=before + LONGEST * since)
            real = before + np.flatnonzero(rng.random(LONGEST * since) < HELPED)
            order[real] = count + rng.integers(since, size=len(real))
            largest, which = np.empty(len(order)), np.empty(len(order), np.int64)
            ending = (set_to.level, largest, which)
            taken = sums.advance(values, order, still, self.form, set_to.centres, set_to.factors, *ending)
            if before < taken < len(order):
                _, gains = self._gains(np.diff(sums.kept(), axis=0), int(self.windows[which[taken - 1]]))
                found.append(gains.max() - gains[min(taken - before, len(gains)) - 1])
        return np.asarray(found)
