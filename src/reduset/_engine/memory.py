"""How much memory there is for this process: what a request is compared with before it is made.

The machine's, or less where a container (a control group) or the shell (`ulimit -v`) allows less: there a process that asks for
more is ended without a word, or told so in the midst of its work.
"""

from __future__ import annotations

import os

CONTAINERS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of both versions; "max" is none


def physical_memory(unknown: float = float("inf")) -> float:
    """Bytes of memory that this process may have; ``unknown`` where nobody says."""
    return min([*_machine(), *_containers(), *_shell()], default=unknown)


def _machine() -> list[float]:
    try:
        return [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    except (AttributeError, OSError, ValueError):  # no such call on Windows, no such names elsewhere
        return []


def _containers() -> list[float]:
    found = []
    for path in CONTAINERS:
        try:
            with open(path, encoding="ascii") as file:
                found.append(float(int(file.read())))
        except (OSError, ValueError):
            continue
    return found


def _shell() -> list[float]:
    try:
        import resource
    except ImportError:  # Windows has none
        return []
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return [] if limit == resource.RLIM_INFINITY else [float(limit)]
