"""The statistics of a test of drift by name. A new statistic is a subclass of `Statistic` in a separate file and a line here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reduset import _validate
from reduset.drift.column_scores import ColumnStatistics
from reduset.drift.kernel_statistics import KernelStatistics
from reduset.drift.statistic import Statistic

#: The statistics by name. ``STATISTICS["mine"] = MyStatistic()`` adds your own to `DriftTest(statistics=)` and the command.
STATISTICS: dict[str, Statistic] = {
    "kernel": KernelStatistics(),
    "columns": ColumnStatistics(),
}


def chosen_statistics(names: Any) -> tuple[Statistic, ...]:
    """The statistics of these names; all for None."""
    if names is None:
        return tuple(STATISTICS.values())
    given = [names] if isinstance(names, str) else list(names) if isinstance(names, Sequence) else [names]
    if not given:
        raise ValueError(f"statistics must hold at least one of {', '.join(map(repr, STATISTICS))}, got none; None uses all")
    return tuple(STATISTICS[_validate.one_of(name, "statistics", tuple(STATISTICS))] for name in dict.fromkeys(given))
