"""The run length of a drift monitor without change, and its delay after a jump or during a slow change.

A stream starts with the distribution of the reference and changes after `QUIET` rows; streams with an earlier alarm are counted and
omitted. The peer is alibi-detect's MMDDriftOnline on the same streams; `python -m benchmarks.statistics.drift_run_length --peer`
measures it and keeps the result in `results/drift_online.csv`. Goal: a run length within 10 % of the expected one, and delays of at
most the peer's, each up to two standard errors.
"""

from __future__ import annotations

import csv
import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict
from benchmarks.peers import drift_peers
from benchmarks.statistics import drift_level
from benchmarks.statistics.drift_level import clusters

TITLE = "Drift: run lengths and delays"
SOURCES = (
    *drift_level.SOURCES,
    "drift/watch_rule.py",
    "drift/run_length.py",
)

CACHE = Path(__file__).with_name("results") / "drift_online.csv"
HEAD = ["law", "change", "ert", "window", "bootstraps", "runs", "early", "never", "mean", "error", "prepare", "row"]
REFERENCE, COLUMNS = 1000, 5
RUNS, REFERENCES = 200, 20  # streams, and the references that they share
QUICK_RUNS, QUICK_REFERENCES, QUICK_ERT, QUICK_LAW = 8, 1, 1000, "normal, d=5"
PEER_REFERENCES = 4  # of MMDDriftOnline, which takes half a minute to prepare for each
QUIET, LONGEST = 200, 4000  # rows before the change, and after it
ERTS = (1000,)  # `peers/drift_e_detector` has 10,000, on fewer streams
WINDOWS = (20,)  # of MMDDriftOnline
BOOTSTRAPS = {1000: 10_000, 10_000: 20_000}  # its pages ask for ten times the ert, which takes many minutes a detector
BLOCK = 10  # rows of an update of the monitor
MONITORS: dict[tuple[str, int, int], Any] = {}
TIMES = 10  # a stream without change ends after so many expected run times


def ramp(rows: int, change: str) -> np.ndarray:
    """The proportion of the change at each row: 1 from `QUIET` on, or growing over 2,000 rows."""
    since = np.arange(rows) - QUIET
    full = {"none": 0 * since, "jump": since >= 0, "slide": np.clip(since / 2000, 0, 1)}[change]
    return full.astype(np.float64)


def normal_stream(rng: np.random.Generator, rows: int, change: str) -> np.ndarray:
    """The mean of the first of 5 normal columns moves by one standard deviation."""
    X = rng.normal(size=(rows, COLUMNS))
    X[:, 0] += ramp(rows, change)
    return X


def clusters_stream(rng: np.random.Generator, rows: int, change: str) -> np.ndarray:
    """A new group, up to 30 % of the rows."""
    X = clusters(rng, rows)
    new = rng.random(rows) < 0.3 * ramp(rows, change)
    X[new] = [6.0, 6.0] + rng.normal(size=(new.sum(), 2)) * 0.5
    return X


LAWS = {"normal, d=5": normal_stream, "clusters, d=2": clusters_stream}
CHANGES = ("none", "jump", "slide")


def reference(law: str, k: int) -> np.ndarray:
    return LAWS[law](np.random.default_rng([1, list(LAWS).index(law), k]), REFERENCE, "none")


def stream(law: str, change: str, ert: int, k: int) -> np.ndarray:
    rows = TIMES * ert if change == "none" else QUIET + LONGEST
    return LAWS[law](np.random.default_rng([2, list(LAWS).index(law), k]), rows, change)


def shares(references: int, runs: int = RUNS) -> list[tuple[int, range]]:
    """References, and the runs of each."""
    each = runs // references
    return [(r, range(r * each, (r + 1) * each)) for r in range(references)]


def delays(ran: np.ndarray, change: str, ert: int) -> tuple[int, int, float, float]:
    """Alarms before the change, streams without any, the mean run length or delay, and its standard error.

    A stream that ended without an alarm counts with its length.
    """
    never = ran < 0
    if change == "none":
        early, counted = 0, np.where(never, TIMES * ert, ran)
    else:
        early, counted = int(np.sum(~never & (ran <= QUIET))), np.where(never, LONGEST, ran - QUIET)[never | (ran > QUIET)]
    return early, int(never.sum()), float(counted.mean()), float(counted.std(ddof=1) / np.sqrt(len(counted)))


def by_peer(law: str, ert: int, window: int) -> list[dict[str, str]]:
    """Rows of the cache. Without change, the longer expected run time would take hours and is omitted."""
    changes = [change for change in CHANGES if change != "none" or ert <= 1000]
    found = []
    for r, mine in shares(PEER_REFERENCES):
        streams = {change: np.stack([stream(law, change, ert, k) for k in mine]).astype(np.float32) for change in changes}
        arrays = {"reference": reference(law, r), **streams}
        found.append(drift_peers.call("mmd_online", arrays, ert=ert, window=window, bootstraps=BOOTSTRAPS[ert], seed=r))
    spent = [float(np.mean([one[key] for one in found])) for key in ("prepare", "row")]
    rows = []
    for change in changes:
        measured = [*delays(np.concatenate([one[change] for one in found]), change, ert), *spent]
        rows.append([law, change, str(ert), str(window), str(BOOTSTRAPS[ert]), str(RUNS), *(f"{value:.6g}" for value in measured)])
    return [dict(zip(HEAD, row, strict=True)) for row in rows]


def recorded() -> list[dict[str, str]]:
    if not CACHE.exists():
        return []
    with CACHE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def peer(erts: Sequence[int] = ERTS, windows: Sequence[int] = WINDOWS) -> list[dict[str, str]]:
    rows = recorded()
    for ert, window, law in itertools.product(erts, windows, LAWS):
        key = {"law": law, "ert": str(ert), "window": str(window), "bootstraps": str(BOOTSTRAPS[ert]), "runs": str(RUNS)}
        if any(key.items() <= row.items() for row in rows):
            continue
        begun = time.perf_counter()
        measured = by_peer(law, ert, window)
        rows += measured
        with CACHE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, HEAD, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"{measured} ({time.perf_counter() - begun:.0f} s)", flush=True)
    return rows


def ran_for(monitor: object, X: np.ndarray) -> int:
    """The row, from 1 on, at which it alarms, or −1."""
    for begin in range(0, len(X), BLOCK):
        monitor.update(X[begin : begin + BLOCK])
        if monitor.alarm_:
            return int(monitor.alarmed_at_) + 1
    return -1


def by_us(law: str, change: str, ert: int, references: int, runs: int) -> tuple[tuple[int, int, float, float], float]:
    """`delays`, and the seconds of a row."""
    from reduset.drift import DriftMonitor

    ran, rows, spent = [], 0, 0.0
    for r, mine in shares(references, runs):
        if (law, ert, r) not in MONITORS:
            MONITORS[law, ert, r] = DriftMonitor(reference(law, r), ert=ert, random_state=r)
        monitor = MONITORS[law, ert, r]
        for k in mine:
            X = stream(law, change, ert, k)
            monitor.reset()
            begun = time.perf_counter()
            ran.append(ran_for(monitor, X))
            spent += time.perf_counter() - begun
            rows += len(X) if ran[-1] < 0 else ran[-1]
    return delays(np.array(ran), change, ert), spent / rows


QUESTIONS = {"none": "run length without change", "jump": "delay after a jump", "slide": "delay in a slow change"}


def measure(quick: bool) -> dict[str, Any]:
    others = recorded()  # `--peer` measures what is missing, about ten minutes for each distribution
    references, runs = (QUICK_REFERENCES, QUICK_RUNS) if quick else (REFERENCES, RUNS)
    lines, summary = [], []
    for ert in (QUICK_ERT,) if quick else ERTS:
        for law in (QUICK_LAW,) if quick else LAWS:
            for change in CHANGES:
                (early, never, mean, error), row = by_us(law, change, ert, references, runs)
                shown = f"{mean:,.0f} ± {error:,.0f}"
                cells = [f"{ert:,}", law, change, shown, early, never, f"{1e6 * row:.0f} µs"]
                theirs = []
                for window in WINDOWS:
                    key = {"law": law, "change": change, "ert": str(ert), "window": str(window)}
                    found = next((other for other in others if key.items() <= other.items()), None)
                    if found is None:
                        cells += ["", ""]
                        continue
                    theirs.append((float(found["mean"]), f"{float(found['mean']):,.0f} ± {float(found['error']):,.0f}"))
                    cells += [f"{theirs[-1][1]} ({found['early']}, {found['never']})", f"{1e6 * float(found['row']):.0f} µs"]
                best = min(theirs, default=None)
                goal, met = "", ""
                if change == "none":
                    goal, met = f"{ert:,} ± 10 %", verdict(0.1 * ert + 2 * error, abs(mean - ert))
                elif best is not None:
                    goal, met = f"≤ {best[1]} (MMDDriftOnline)", verdict(best[0] + 2 * error, mean)
                lines.append([*cells, met])
                summary.append([f"{law}: {QUESTIONS[change]}", shown, goal, met])
    head = ["ert", "distribution", "change", "reduset", "early", "never", "a row"]
    for window in WINDOWS:
        head += [f"MMDDriftOnline, window {window} (early, never)", "a row"]
    text = (
        f"Mean rows to the alarm over {runs} streams, with its standard error: all rows without change, those after the change "
        f"otherwise. The change comes after {QUIET} rows. *Early* alarms came before it and are omitted. *Never* are streams "
        "without "
        f"an alarm in {LONGEST:,} rows after it, which count as that ({TIMES} ert without change). {references} references of "
        f"{REFERENCE:,} rows (MMDDriftOnline: {PEER_REFERENCES}) share the streams; reduset gets {BLOCK} rows an update. In the "
        "normal "
        "distribution the mean of a column moves by one standard deviation, in the clusters a new group gets 30 % of the rows; at "
        "once, or over 2,000 rows. Goals: the run length within 10 % of ert, and the delay at most that of MMDDriftOnline, each up "
        "to "
        "two standard errors.\n\n"
    )
    return {"summary": summary, "details": text + table([*head, "goal met"], lines)}


if __name__ == "__main__" and "--peer" in sys.argv:  # and, if wanted, expected run times
    peer([int(given) for given in sys.argv[2:]] or ERTS)
