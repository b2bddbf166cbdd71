"""The memory available to this process, which large requests are compared with in advance.

This is the memory of the machine, or the limit of a container (control group) or shell (`ulimit -v`) if that is lower. A process
that exceeds such a limit is killed without a message, or fails in the middle of its work.
"""

from __future__ import annotations

import os

# control groups version 2 and 1; "max" means no limit
CGROUP_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


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
