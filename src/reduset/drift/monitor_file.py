"""A monitor as a file (`reduset._archive`): its rule, its reference and its state."""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _archive
from reduset._archive import fields as f
from reduset._engine import WindowSums
from reduset.drift import reference_file
from reduset.drift.reference_file import MAX_ROWS
from reduset.drift.run_length import Thresholds
from reduset.drift.watch_rule import DEPENDENCE_ROWS, HISTORY_POINTS, History, WatchRule, WatchState

COUNT = f.whole(0, MAX_ROWS)
MONITOR: f.Fields = {
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
KIND = _archive.Kind("reduset.DriftMonitor", "monitor", reference_file.STORED | MONITOR)


def write(path: _archive.Path_, rule: WatchRule, state: WatchState, about: dict[str, Any]) -> None:
    """Write a monitor and plain values."""
    values = {
        **reference_file.values_of(rule.reference),
        **vars(rule),
        **vars(rule.thresholds),
        **vars(state),
        "about": about,
        "position": state.sums.position,
        "ring": state.sums.ring,
        "every": state.history.every,
        "history_rows": state.history.rows,
        "history_statistics": state.history.statistics,
    }
    _archive.write(path, KIND, values)


def read(path: _archive.Path_) -> tuple[WatchRule, WatchState, dict[str, Any]]:
    """The rule, the state of the stream, and the plain values."""
    return _archive.read(path, {KIND: _monitor})


def _monitor(values: dict[str, Any]) -> tuple[WatchRule, WatchState, dict[str, Any]]:
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
