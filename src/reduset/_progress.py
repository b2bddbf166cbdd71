"""Progress as a line on the error stream or through a function of the caller, and the seconds of each stage."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

Callback = Callable[[str, int, int], None]

SHOW_AFTER, SHOW_EVERY = 0.5, 0.1  # seconds
WIDTH, BAR = 78, 16  # characters of the line, and of its bar
DEFAULT_STAGE = "weigh"  # time between stages is added to this stage, because weights of prefixes are computed on demand


class Progress:
    """Report the progress of stages. ``progress`` is False, True (a line on stderr), or a function (stage, done, total)."""

    def __init__(self, progress: Any = False) -> None:
        if not isinstance(progress, bool) and not callable(progress):
            raise TypeError(f"progress must be True, False or a function of (stage, done, total), got {progress!r}")
        self._callback: Callback | None = progress if callable(progress) else (self._print if progress else None)
        self._begun = time.monotonic()
        self._shown = 0.0
        self._starts: dict[str, tuple[float, int]] = {}  # time and amount of the first report of each stage
        self._listeners = ExitStack()
        if progress is True:  # functions receive the stages only, which are the same in every run
            from reduset._engine import report_compilation

            self._listeners.enter_context(report_compilation(self._show_compiling))

    def stage(self, name: str) -> Callable[[int, int], None]:
        """A reporter (done, total) for one stage."""

        def report(done: int, total: int) -> None:
            if self._callback is not None:
                self._callback(name, done, total)

        return report

    def note(self, text: str, stage: str, done: int, total: int) -> None:
        """Report an amount before the work begins: the text on a line, or (stage, done, total)."""
        if self._callback == self._print:
            sys.stderr.write(f"{text}\n")
        else:
            self.stage(stage)(done, total)

    def _print(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        begun, first = self._starts.setdefault(stage, (now, done))
        if now - self._begun < SHOW_AFTER or (now - self._shown < SHOW_EVERY and done < total):
            return
        self._shown = now
        filled = int(BAR * done / max(total, 1))
        left = f", {(now - begun) * (total - done) / (done - first):,.0f} s left" if done > first else ""
        line = f"{stage:<12} [{'#' * filled:<{BAR}}] {done:,}/{total:,} {now - self._begun:6.1f} s{left}"
        sys.stderr.write(f"\r{line:<{WIDTH}}")
        sys.stderr.flush()

    def _show_compiling(self, begins: bool) -> None:
        self._shown = time.monotonic()
        text = f"compiling    on first use only, later runs start at once {self._shown - self._begun:6.1f} s "
        sys.stderr.write(f"\r{text if begins else '':<{WIDTH}}" + ("" if begins else "\r"))
        sys.stderr.flush()

    def close(self) -> None:
        """Clear the line."""
        self._listeners.close()
        if self._shown:
            sys.stderr.write("\r" + " " * WIDTH + "\r")
            sys.stderr.flush()


@dataclass
class Clock:
    """Seconds by stage, which add up to the total."""

    _begun: float = field(default_factory=time.perf_counter)
    _stages: dict[str, float] = field(default_factory=dict)
    _inside: list[float] = field(default_factory=list)  # seconds of the inner stages of each current stage

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside towards this stage, and not towards an outer one."""
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
        """Seconds of each stage, and the total."""
        total, stages = time.perf_counter() - self._begun, dict(self._stages)
        if stages:
            stages[DEFAULT_STAGE if DEFAULT_STAGE in stages else list(stages)[-1]] += max(total - sum(stages.values()), 0.0)
        return stages | {"total": total}
