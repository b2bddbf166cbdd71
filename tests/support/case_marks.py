"""Marks that select the cases of parametrised tests for `make test`; the other cases are slow.

`fast_cases(k)` keeps the first k cases. `covering_cases` keeps a set in which each value of each parameter occurs at least once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

import pytest

PLAIN = (str, int, float, bool, type(None))


def mark_slow_cases(items: Iterable[pytest.Item]) -> None:
    """Mark the other cases as slow; cases that are slow already count as absent."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None:
            cases[item.nodeid.split("[")[0]].append(item)
    for of_one in cases.values():
        first, covering = (of_one[0].get_closest_marker(name) for name in ("fast_cases", "covering_cases"))
        kept = of_one if first is None else of_one[: first.args[0]]
        if covering is not None:
            kept = covering_set(kept, [values_of(item) for item in kept])
        chosen = {id(item) for item in kept}
        for item in of_one:
            if id(item) not in chosen:
                item.add_marker(pytest.mark.slow)


def values_of(item: pytest.Item) -> set[Hashable]:
    """The parameters of a case with their values. A value that is no plain number or text counts by its position in the list."""
    call = getattr(item, "callspec", None)
    if call is None:
        return set()
    return {(name, value if isinstance(value, PLAIN) else ("at", call.indices[name])) for name, value in call.params.items()}


def covering_set(cases: list, values: list[set[Hashable]]) -> list:
    """Cases that hold every value, chosen greedily: each holds the most values that those before it lack, the first of equals."""
    missing, kept = set().union(*values), []
    while missing:
        best = max(range(len(cases)), key=lambda i: len(values[i] & missing))
        kept.append(best)
        missing -= values[best]
    return [cases[i] for i in sorted(kept)] or cases[:1]
