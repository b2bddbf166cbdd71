"""What was asked for, so that a report can say how to make it again: the command, the versions, and kernels from their options."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reduset._messages import printable
from reduset.cli import targets

if TYPE_CHECKING:
    from reduset.kernels import RadialKernel
    from reduset.model import Model

MOST_UNITS = 4  # columns that are told one by one


def command_line() -> str:
    """The command as it was typed, quoted so that a shell reads it as it was."""
    return shlex.join(["reduset", *sys.argv[1:]])


def origin(sources: Sequence[str], notes: Sequence[str]) -> dict[str, Any]:
    """Where a result comes from, in plain values."""
    from importlib.metadata import version

    packages = {name: version(name) for name in ("reduset", "numpy", "scipy", "scikit-learn", "numba")}
    return {
        "command": command_line(),
        "versions": {**packages, "python": platform.python_version()},
        "sources": list(sources),
        "notes": list(notes),
    }


def reading_of(model: Model) -> dict[str, Any]:
    """What is read of files for a model: the columns, transforms and categories that it was made with."""
    about = model.about
    done = {"transform": about.get("transform"), "compensate": bool(about.get("compensate", True))}
    return {"columns": list(model.columns), **done, "encode": about.get("encode")}


def kernel_of(name: str, bandwidth: float | str | None, covariance: Any = None, scales: Any = None) -> RadialKernel:
    """A kernel from its options."""
    from reduset import _validate
    from reduset.kernels.registry import KERNELS

    return KERNELS[_validate.one_of(name, "--kernel", KERNELS)](bandwidth=bandwidth, covariance=covariance, scales=scales)


def are_pictures(files: Sequence[Any]) -> bool:
    """Whether rows are pixels, whose columns have one unit."""
    return any(Path(name).suffix.lower() in targets.IMAGE for name in files)


def units_told(kernel: Any, columns: Sequence[str]) -> list[str]:
    """What columns were divided by, in a line; none where nothing was done."""
    scales = getattr(kernel, "units", None)
    if scales is None:
        return []
    words = [f"{name} by {_figures(scale)}" for name, scale in zip(columns[:MOST_UNITS], scales, strict=False)]
    return [printable(f"  units      {', '.join(words)}{', …' if len(columns) > MOST_UNITS else ''}: so columns were divided")]


def units_by_name(kernel: Any, columns: Sequence[str]) -> dict[str, float] | None:
    """What each column was divided by; None where nothing was."""
    scales = getattr(kernel, "units", None)
    return None if scales is None else dict(zip(columns, scales.tolist(), strict=True))


def _figures(number: float) -> str:
    """Three digits: 31,000."""
    return f"{float(f'{number:.3g}'):,g}"


def covariance_of(values: Any, weights: Any = None) -> Any:
    """(d, d) covariance of rows, by which distances are measured with --whiten."""
    import numpy as np

    if len(values) < 2:
        raise ValueError("--whiten needs at least two rows, got one; leave it out")
    found = np.atleast_2d(np.cov(values, rowvar=False, aweights=weights))
    if not np.isfinite(found).all() or np.linalg.matrix_rank(found) < len(found):
        raise ValueError(
            "--whiten needs columns of which none follows from the others, got a covariance that cannot be inverted; leave out "
            "constant or repeated columns, and one of the 0/1 columns of each encoded one, with --columns"
        )
    return found


def spread_note(values: Any, columns: Sequence[str]) -> list[str]:
    """What to say where some columns are so wide that the others do not count."""
    from reduset.bandwidth import drowned_column

    found = drowned_column(values)
    if found is None:
        return []
    wide, narrow, times = found
    return [
        f"column {columns[wide]!r} spreads {times:,.0f} times as far as {columns[narrow]!r}, which hardly counts beside it; use "
        "--scales robust, --whiten, --transform, or choose --columns of one scale"
    ]
