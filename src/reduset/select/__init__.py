"""Selectors: which points become atoms. One a file, all on the contract of `Selector`."""

from __future__ import annotations

from typing import Any

from reduset.select.kcenter import KCenter
from reduset.select.random import Random
from reduset.select.selection import Selection, Selector

__all__ = ["KCenter", "Random", "Selection", "Selector", "as_selector"]

BY_NAME: dict[str, type[Selector]] = {"kcenter": KCenter, "random": Random}


def as_selector(select: Any) -> Selector:
    """A selector from a name or a selector."""
    if isinstance(select, Selector):
        return select
    if isinstance(select, str) and select in BY_NAME:
        return BY_NAME[select]()
    raise ValueError(
        f"select must be one of {', '.join(map(repr, sorted(BY_NAME)))}, or a selector such as KCenter(first=0); got {select!r}"
    )
