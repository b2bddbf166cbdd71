"""Where the time of a test run goes: the slowest tests, and the seconds of each package (`pytest --timings`)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

SLOWEST = 20


class Timings:
    """Seconds of each test, set-up and tear-down included; with xdist, the controller collects those of all workers."""

    def __init__(self, file: str | None):
        self.file = file
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter):
        packages: Counter[str] = Counter()
        for test, seconds in self.seconds.items():
            packages[package_of(test)] += seconds
        write = terminalreporter.write_line
        terminalreporter.section("time by package, seconds")
        for package, seconds in packages.most_common():
            write(f"{seconds:8.1f}  {package}")
        terminalreporter.section(f"slowest {SLOWEST} tests, seconds")
        for test, seconds in self.seconds.most_common(SLOWEST):
            write(f"{seconds:8.1f}  {test}")
        if self.file:
            Path(self.file).write_text(json.dumps(dict(self.seconds.most_common()), indent=0))


def package_of(test: str) -> str:
    """`tests/select` of `tests/select/test_kcenter.py::test_radii`; doctests go by their package in `src/reduset`."""
    path = test.split("::")[0].split("/")
    depth = 3 if path[0] == "src" else 2
    return "/".join(path[:depth]) if len(path) > depth else "/".join(path[:-1])
