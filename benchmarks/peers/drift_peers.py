"""Calls of the drift peers (`drift_worker.py`), each in a process of its own in their environment."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from benchmarks._lib.remote import Failed, exchange

__all__ = ["Failed", "call"]


def call(method: str, arrays: dict[str, np.ndarray] | None = None, **options: Any) -> dict[str, Any]:
    """The result of ``method`` of the worker for these arrays and options."""
    return exchange("drift", "drift_worker.py", arrays or {}, method, json.dumps(options))
