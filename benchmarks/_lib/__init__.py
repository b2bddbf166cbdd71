"""Shared by the benchmarks: data, timing in one run, tables, other environments, and a description of the machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import reduset

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
LIBRARY = Path(reduset.__file__).parents[1]  # the folder that this process imports it from
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "fpsample")


def data_folder() -> Path:
    """Where the real data sets are."""
    return Path(os.environ.get("REDUSET_DATA", ROOT.parent / "shared" / "data"))


def python_of(environment: str) -> str:
    """The interpreter of a peers' environment, ``.venv-<environment>``, or the one that ``REDUSET_<ENVIRONMENT>_PYTHON`` names."""
    python = os.environ.get(f"REDUSET_{environment.upper()}_PYTHON", str(ROOT / f".venv-{environment}" / "bin" / "python"))
    if not Path(python).exists():
        raise SystemExit(f"no environment at {python}: run `make .venv-{environment}/peers.stamp`")
    return python


def pins(environment: str) -> dict[str, str]:
    """The pinned versions of a peers' environment."""
    lines = (BENCHMARKS / f"{environment}-requirements.txt").read_text(encoding="utf-8").split()
    return dict(line.split("==") for line in lines)


def own_process(file: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a benchmark's file (its ``__file__``) as a program of its own, and return what it printed."""
    module = ".".join(Path(file).resolve().relative_to(ROOT).with_suffix("").parts)
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, **options)


def seconds(function: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def medians(repeats: int, **functions: Callable[[], Any]) -> dict[str, float]:
    """The median time of each; they take turns, so that a busy spell of the machine hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(seconds(function))
    return {name: float(np.median(values)) for name, values in times.items()}


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(map(str, row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def verdict(value: float, least: float) -> str:
    return "yes" if value >= least else "NO"


def machine() -> str:
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return f"{platform.machine()}, {reduset.get_threads()} threads, Python {sys.version.split()[0]}, {', '.join(found)}"
