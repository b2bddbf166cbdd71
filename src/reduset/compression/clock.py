"""Seconds by stage of a compression."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count what happens inside towards a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._stages[name] = self._stages.get(name, 0.0) + time.perf_counter() - begun

    def timings(self) -> dict[str, float]:
        """Seconds of each stage, and in all."""
        return self._stages | {"total": time.perf_counter() - self._begun}
