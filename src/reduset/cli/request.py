"""What was asked for, so that a report can say how to make it again: the command, the versions, and kernels from their options."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reduset.io import Table
    from reduset.mean import KernelMean

KERNELS = ("gaussian", "laplacian", "student")


def command_line() -> str:
    """The command as it was typed, quoted so that a shell reads it as it was."""
    return shlex.join(["reduset", *sys.argv[1:]])


def origin(sources: Sequence[str], notes: Sequence[str]) -> dict[str, Any]:
    """Where a result comes from, in plain values."""
    packages = {name: version(name) for name in ("reduset", "numpy", "scipy", "scikit-learn", "numba")}
    return {
        "command": command_line(),
        "versions": {**packages, "python": platform.python_version()},
        "sources": list(sources),
        "notes": list(notes),
    }


def mean_of(table: Table, name: str, bandwidth: float | str, whiten: bool) -> KernelMean:
    """The kernel mean of a table's rows."""
    import numpy as np

    from reduset import _validate
    from reduset.kernels import Gaussian, Laplacian, Student
    from reduset.mean import KernelMean

    kind = {"gaussian": Gaussian, "laplacian": Laplacian, "student": Student}[_validate.one_of(name, "--kernel", KERNELS)]
    options: dict[str, Any] = {"bandwidth": bandwidth}
    if whiten:
        if len(table) < 2:
            raise ValueError("--whiten needs at least two rows, got one; leave it out")
        covariance = np.atleast_2d(np.cov(table.values, rowvar=False, aweights=table.weights))
        if not np.isfinite(covariance).all() or np.linalg.matrix_rank(covariance) < len(covariance):
            raise ValueError(
                "--whiten needs columns of which none follows from the others, got a covariance that cannot be inverted; leave "
                "out constant or repeated columns with --columns"
            )
        options["covariance"] = covariance
    return KernelMean.from_samples(table.values, kind(**options), table.weights)
