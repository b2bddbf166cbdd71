"""Selectors: rules that choose atoms. Each has its own file and follows the contract of `Selector` (`contract`).

To add one, write a file, import the class below and list it in `__all__`. All options then accept its name.
May import: mean, kernels, weights, certificate (a surrogate for rows that are evaluated repeatedly).
"""

from __future__ import annotations

from reduset._messages import REAL_ROWS
from reduset._types import SelectorLike
from reduset._validate import hint_for
from reduset.select.auto import KMEANS_ROWS, Auto
from reduset.select.cholesky import Cholesky
from reduset.select.clustering import partition
from reduset.select.contract import Selection, Selector, Traversal, support
from reduset.select.greedy import Greedy
from reduset.select.herding import Herding
from reduset.select.kcenter import KCenter
from reduset.select.kmeans import KMeans, coordinates_of
from reduset.select.random import ColumnNorm, Paring, Random
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
    name.lower(): kind
    for name in __all__
    if isinstance(kind := globals().get(name), type) and issubclass(kind, Selector) and kind is not Selector
}
HINTS = dict.fromkeys(("balanced", "stratified"), f"; {REAL_ROWS}")


def with_own_weights() -> str:
    """The names of the selectors that return weights, as a text."""
    *names, last = (kind.__name__ for kind in BY_NAME.values() if kind.weighs)
    return f"{', '.join(names)} and {last}"


def as_selector(select: SelectorLike) -> Selector:
    """A selector from a name or a selector."""
    if isinstance(select, Selector):
        return select
    if isinstance(select, str) and select in BY_NAME:
        return BY_NAME[select]()
    names = ", ".join(map(repr, sorted(BY_NAME)))
    hint = hint_for(select, BY_NAME, HINTS) if isinstance(select, str) else ""
    if isinstance(select, type) and issubclass(select, Selector):
        hint = f"; write {select.__name__}()"
    raise ValueError(f"select must be one of {names}, or a selector such as KCenter(first=0); got {select!r}{hint}")
