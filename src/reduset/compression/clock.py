"""Seconds by stage of a compression, which add up to the whole: what is between stages is weighing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

BETWEEN = "weigh"  # weights and errors of prefixes are found wherever they are asked for


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._stages: dict[str, float] = {}
        self._inside: list[float] = []  # seconds of the stages within each one that is going on

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside towards a stage, and none of it towards one around it."""
        begun = time.perf_counter()
        self._inside.append(0.0)
        try:
            yield
        finally:
            taken = time.perf_counter() - begun
            self._stages[name] = self._stages.get(name, 0.0) + taken - self._inside.pop()
            if self._inside:
                self._inside[-1] += taken

    def timings(self) -> dict[str, float]:
        """Seconds of each stage, and in all."""
        total, stages = time.perf_counter() - self._begun, dict(self._stages)
        if stages:
            rest = BETWEEN if BETWEEN in stages else list(stages)[-1]
            stages[rest] += max(total - sum(stages.values()), 0.0)
        return stages | {"total": total}
