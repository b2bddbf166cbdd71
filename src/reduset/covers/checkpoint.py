"""Checkpoints of long selections: a file with the state, written atomically at intervals and continued by the next call.

The file names the data by their shape, type and a digest of a sample of rows, and the options of the call.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from reduset import _archive
from reduset._engine import LazyCover, NearRows, to_numpy
from reduset._types import Indices, Report
from reduset.covers.near import net_of, priorities

f = _archive.fields
INTERVAL, RATIO = 10.0, 100.0  # least seconds between two files, and their ratio to the seconds of writing one
SAMPLED = 1024
MIN_PART = 1 << 12  # rows of the first part of a net
FILE = _archive.Kind(
    "reduset.CoverCheckpoint",
    "checkpoint",
    {
        "data": f.entries(),
        "options": f.entries(),
        "done": f.whole(0),
        "indices": f.Numbers(("m?",), 0, integers=True),
        "distances": f.Numbers(("m?",), 0, np.inf, unbounded=True),
        "bounds": f.Numbers(("n?",), 0, np.inf, unbounded=True, dtype=np.float32),
        "seen": f.Numbers(("n?",), 0, integers=True),
        "order": f.Numbers(("k?",), 0, integers=True),
    },
)
EMPTY = {name: np.empty(0) for name in ("indices", "distances", "bounds", "seen", "order")} | {"done": 0}


class CoverCheckpoint:
    """The file of one selection.

    Attributes
    ----------
    state : the fields of the file, empty if there is none
    """

    def __init__(self, path: str | os.PathLike[str], rows: Any, **options: Any) -> None:
        self.path = Path(path)
        self.data, self.options = _identity(rows), {name: _plain(value) for name, value in options.items()}
        self.state: dict[str, Any] = dict(EMPTY)
        if self.path.exists():
            self.state = _archive.read(self.path, {FILE: self._checked})
        self._next = time.monotonic() + INTERVAL

    def _checked(self, values: dict[str, Any]) -> dict[str, Any]:
        for name, mine in (("data", self.data), ("options", self.options)):
            stored = values.pop(name)
            for key in mine:
                if stored.get(key) != mine[key]:
                    raise ValueError(
                        f"checkpoint must be of the same data and options, but its {key} is {stored.get(key)!r} and that of this "
                        f"call is {mine[key]!r}; delete the file, or give another name"
                    )
        n = self.data["shape"][0]
        sizes = [len(values[name]) for name in ("bounds", "order") if len(values[name])]
        numbers = [values[name].max() for name in ("indices", "order") if len(values[name])]
        if set(sizes) - {n} or max(numbers, default=0) >= n or values["done"] > n:
            raise ValueError(f"row numbers must be below {n:,}")
        return values

    def save(self, state: Callable[[], dict[str, Any]], at_once: bool = False) -> None:
        """Write the state if the last file is old enough."""
        begun = time.monotonic()
        if not at_once and begun < self._next:
            return
        self.state |= state()
        _archive.write(self.path, FILE, self.state | {"data": self.data, "options": self.options})
        now = time.monotonic()
        self._next = now + max(INTERVAL, RATIO * (now - begun))

    def remove(self) -> None:
        """Delete the file after the end of the work."""
        self.path.unlink(missing_ok=True)


def _identity(rows: Any) -> dict[str, Any]:
    """Shape, type and digest of a sample of rows."""
    numbers = np.unique(np.linspace(0, rows.count - 1, min(rows.count, SAMPLED)).astype(np.int64))
    sample = np.ascontiguousarray(to_numpy(rows.take(rows.arrays.asarray(numbers))))
    return {
        "shape": [rows.count, rows.dimension],
        "type": sample.dtype.name,
        "digest of rows": hashlib.sha256(sample.tobytes()).hexdigest()[:16],
    }


def _plain(value: Any) -> Any:
    """An option as JSON; arrays by their digest."""
    if value is None or isinstance(value, str | int | float):
        return value
    array = np.ascontiguousarray(to_numpy(value))
    return f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"


def continued(traversal: LazyCover, limit: int, squared_radius: float, checkpoint: CoverCheckpoint | None, report: Report) -> float:
    """`LazyCover.extend` from the state of a checkpoint, which is updated."""
    if checkpoint is None:
        return traversal.extend(limit, squared_radius, report)
    names = ("indices", "distances", "bounds", "seen")
    traversal.restore(*(checkpoint.state[name] for name in names))

    def reported(done: int, total: int) -> None:
        report(done, total)
        checkpoint.save(traversal.state)

    remaining = traversal.extend(limit - len(traversal.indices), squared_radius, reported)
    checkpoint.save(traversal.state, at_once=True)
    return remaining


def net_in_parts(
    search: NearRows, keep: Any, n: int, fixed: Indices, checkpoint: CoverCheckpoint | None, report: Report
) -> Indices:
    """`net_of` the rows in order of their priority. With a checkpoint, part by part: each without the rows near to kept ones."""
    if checkpoint is None:
        return net_of(search, priorities(search, keep, n), fixed, report)
    state = checkpoint.state
    order = state["order"] if len(state["order"]) else priorities(search, keep, n)
    if isinstance(keep, str) and keep == "medoid":  # its order takes about as long as the net
        checkpoint.save(lambda: {"order": order}, at_once=not len(state["order"]))
    kept, done, length = state["indices"].astype(np.int64), state["done"], MIN_PART
    while done < n:
        begun, end = time.monotonic(), min(n, done + length)
        kept = np.concatenate([kept, net_of(search, order[done:end], np.concatenate([fixed, kept]))])
        done = end
        report(done, n)
        so_far = {"indices": kept, "distances": np.zeros(len(kept)), "done": done}
        checkpoint.save(lambda so_far=so_far: so_far, at_once=done == n)  # type: ignore[misc]
        if time.monotonic() - begun < INTERVAL:  # a part prepares all kept rows, so that many parts take longer
            length *= 2
    return kept
