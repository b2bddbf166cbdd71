"""Selectors: which points become atoms. One a file, all on the contract of `Selector`."""

from __future__ import annotations

from typing import Any

from reduset.select.auto import Auto
from reduset.select.cholesky import Cholesky
from reduset.select.columnnorm import ColumnNorm
from reduset.select.contract import Selection, Selector
from reduset.select.greedy import Greedy
from reduset.select.herding import Herding
from reduset.select.kcenter import KCenter
from reduset.select.kmeans import KMeans
from reduset.select.paring import Paring
from reduset.select.random import Random
from reduset.select.shadow import Shadow
from reduset.select.thinning import Thinning

__all__ = [
    "Auto",
    "Cholesky",
    "ColumnNorm",
    "Greedy",
    "Herding",
    "KCenter",
    "KMeans",
    "Paring",
    "Random",
    "Selection",
    "Selector",
    "Shadow",
    "Thinning",
    "as_selector",
]

BY_NAME: dict[str, type[Selector]] = {
    kind.__name__.lower(): kind
    for kind in (Auto, Cholesky, ColumnNorm, Greedy, Herding, KCenter, KMeans, Paring, Random, Shadow, Thinning)
}


def as_selector(select: Any) -> Selector:
    """A selector from a name or a selector."""
    if isinstance(select, Selector):
        return select
    if isinstance(select, str) and select in BY_NAME:
        return BY_NAME[select]()
    names = ", ".join(map(repr, sorted(BY_NAME)))
    hint = f"; write {select.__name__}()" if isinstance(select, type) and issubclass(select, Selector) else ""
    raise ValueError(f"select must be one of {names}, or a selector such as KCenter(first=0); got {select!r}{hint}")
