"""The file of a monitor on its way: the rule, the reference that it is of, and what is known of the stream, as plain arrays with a
JSON header (`reduset._archive`), read as if a stranger had written it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from reduset import _archive, _validate
from reduset._engine import WindowSums
from reduset._types import Array
from reduset.drift import reference_file
from reduset.drift.reference_file import MOST
from reduset.drift.run_length import Thresholds
from reduset.drift.sample import Sample
from reduset.drift.watch_rule import DEPENDENCE_ROWS, HISTORY_POINTS, History, WatchRule, WatchState

KIND = "reduset.DriftMonitor"
OWN = ("form", "kept", "windows", "thresholds", "ring", "early", "history")
FORMAT = _archive.Kind(reference_file.VERSION, (*reference_file.STORED, *OWN), reference_file.SINCE)
# largest absolute value of each array: coordinates are below 1e9, and sums of them over at most 2**53 rows below 1e25
BOUNDS = {"form": 1e30, "kept": 1e9, "windows": 1e9, "thresholds": 1e30, "ring": 1e25, "early": 1e10, "history": 1e50}


def write(path: _archive.Path_, rule: WatchRule, state: WatchState, about: dict[str, Any]) -> None:
    """Write a monitor, and plain values beside it."""
    told, arrays = reference_file.arrays_of(rule.reference)
    set_to, history = rule.thresholds, state.history
    own = {
        "form": rule.form,
        "kept": rule.kept.astype(np.float64),
        "windows": rule.windows.astype(np.float64),
        "thresholds": np.stack([set_to.centres, set_to.factors]),
        "ring": state.sums.ring,
        "early": np.empty((0, len(rule.form))) if state.early is None else state.early,
        "history": np.stack([history.rows, history.statistics]),
    }
    header = {
        "kind": KIND,
        "version": FORMAT.version,
        **told,
        "ert": rule.ert,
        "thin": rule.thin,
        "level": set_to.level,
        "position": state.sums.position,
        "watched": state.early is None,
        "every": history.every,
        **{name: getattr(state, name) for name in ("n_seen", "last", "window", "alarmed_at", "since")},
        "about": about,
    }
    _archive.write(path, header, reference_file.padded(arrays | own, FORMAT.names))


def read(path: _archive.Path_) -> tuple[WatchRule, WatchState, dict[str, Any]]:
    """The rule, what is known of the stream, and the values beside them."""
    told, arrays = _archive.read(path, {KIND: FORMAT})
    try:
        own = {name: _bounded(name, np.asarray(arrays.pop(name), np.float64)) for name in OWN}
        rule = _rule(told, own, reference_file.from_arrays(told, arrays))
        return rule, _state(told, own, rule), reference_file.about_from(told)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{os.fspath(path)} describes no monitor: {error}") from error


def _bounded(name: str, array: Array) -> Array:
    """The array, or an error if a value is not finite or larger than any monitor has."""
    if not np.isfinite(array).all() or np.abs(array).max(initial=0.0) > BOUNDS[name]:
        raise ValueError(f"{name} must hold finite numbers of at most {BOUNDS[name]:g}")
    return array


def _rule(told: dict[str, Any], own: dict[str, Array], known: Any) -> WatchRule:
    if isinstance(known, Sample):
        raise ValueError("its reference is none that can be watched against")
    form, kept, windows = own["form"], own["kept"].astype(np.int64), own["windows"].astype(np.int64)
    fits = (
        form.ndim == 1
        and len(form) > 0
        and (form >= 0).all()
        and kept.shape == form.shape
        and ((kept >= 0) & (kept < known.features.size)).all()
        and windows.ndim == 1
        and len(windows) > 0
        and (windows >= 2).all()
        and (np.diff(windows) > 0).all()
        and own["thresholds"].shape == (2, len(windows))
    )
    if not fits:
        raise ValueError("the parts of its rule do not belong together")
    centres, factors = own["thresholds"]
    level = _validate.positive(told["level"], "level")
    ert, thin = _validate.at_least(told["ert"], "ert", 1), _validate.whole(told["thin"], "thin", 1, MOST)
    return WatchRule(known, ert, thin, form, kept, windows, Thresholds(centres, factors, level))


def _state(told: dict[str, Any], own: dict[str, Array], rule: WatchRule) -> WatchState:
    ring, early, history = own["ring"], own["early"], own["history"]
    fits = (
        ring.ndim == early.ndim == history.ndim == 2
        and ring.shape[1] == early.shape[1] == len(rule.form)
        and len(ring) > rule.windows[-1]
        and len(early) <= DEPENDENCE_ROWS
        and len(history) == 2
        and history.shape[1] <= HISTORY_POINTS
    )
    if not fits:
        raise ValueError("the parts of its state do not belong together")
    alarmed_at, since = told["alarmed_at"], told["since"]
    if alarmed_at is not None:
        alarmed_at = _validate.whole(alarmed_at, "alarmed_at", 0, MOST)
        first, low, high = (_validate.whole(each, "since", 0, MOST) for each in since)
        since = (first, low, high)
    return WatchState(
        WindowSums(rule.windows, ring, _validate.whole(told["position"], "position", 0, MOST)),
        None if _validate.flag(told["watched"], "watched") else early,
        History(history[0], history[1], _validate.whole(told["every"], "every", 1, MOST)),
        _validate.whole(told["n_seen"], "n_seen", 0, MOST),
        _validate.finite(told["last"], "last"),
        _validate.whole(told["window"], "window", 0, MOST),
        alarmed_at,
        since,
    )
