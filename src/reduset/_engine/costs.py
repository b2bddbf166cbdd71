"""What a computation may take: estimated seconds on two cores, and the memory available to this process.

Time budgets use estimates instead of a clock, so that the same seed gives the same result on any machine. The constants were
measured on the machine of `benchmarks/RESULTS.md`. On another machine, times differ by a factor.

Large requests are compared in advance with the memory of the machine, or the limit of a container (control group) or shell
(`ulimit -v`) if that is lower. A process that exceeds such a limit is killed without a message, or fails in the middle of its work.
"""

from __future__ import annotations

import os

MANY = 40  # dimensions from which sums use matrix products (`sums.BLAS_FROM`)
FLOP = 4e-11  # seconds of one operation of a factorisation in double precision
START = 1e-4  # seconds to call compiled code and return
# control groups version 2 and 1; "max" means no limit
CGROUP_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def of_sums(points: int, queries: int, dimension: int) -> float:
    """Seconds for kernel sums in double precision."""
    if dimension < MANY:
        return START + points * (35e-9 + 1e-9 * dimension) + points * queries * (0.4e-9 + 0.055e-9 * dimension)
    return START + points * (220e-9 + 0.5e-9 * dimension) + points * queries * (0.8e-9 + 0.021e-9 * dimension)


def of_slopes(points: int, queries: int, dimension: int) -> float:
    """Seconds for kernel sums with gradients in double precision."""
    if dimension < MANY:
        return START + points * (45e-9 + 1.5e-9 * dimension) + points * queries * (0.6e-9 + 0.1e-9 * dimension)
    return START + points * 400e-9 + points * queries * (1e-9 + 0.072e-9 * dimension)


def of_factor(size: int) -> float:
    """Seconds for a Cholesky factor and its solves."""
    return START + FLOP * size**2 * (size / 3 + 50)


def of_quadratic_program(size: int) -> float:
    """Seconds for weights on the simplex."""
    return START + 2.5e-9 * size**3


def physical_memory(unknown: float = float("inf")) -> float:
    """Bytes of memory available to this process; ``unknown`` if no limit can be read."""
    return min([*_machine(), *_containers(), *_shell()], default=unknown)


def _machine() -> list[float]:
    try:
        return [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    except (AttributeError, OSError, ValueError):  # Windows has no such function, and other systems may lack the names
        return []


def _containers() -> list[float]:
    limits = []
    for path in CGROUP_FILES:
        try:
            with open(path, encoding="ascii") as file:
                limits.append(float(int(file.read())))
        except (OSError, ValueError):
            continue
    return limits


def _shell() -> list[float]:
    try:
        import resource
    except ImportError:  # not available on Windows
        return []
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return [] if limit == resource.RLIM_INFINITY else [float(limit)]
