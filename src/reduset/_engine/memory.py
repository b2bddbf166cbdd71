"""How much memory the machine has: what a request is compared with before it is made."""

from __future__ import annotations

import os


def physical_memory(unknown: float = float("inf")) -> float:
    """Bytes of memory that the machine has; ``unknown`` where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # no such call on Windows, no such names elsewhere
        return unknown
