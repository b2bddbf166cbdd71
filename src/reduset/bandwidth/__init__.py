"""Bandwidth rules, which compute a number h from points and weights, and scales of columns.

`rules` holds the rules for any number of columns, and `isj` a rule for one column. Parameters that accept a bandwidth also accept a
name of `RULES`. May import: `_types`, `_engine`, `_validate`.
"""

from collections.abc import Callable

from reduset.bandwidth.isj import isj
from reduset.bandwidth.rules import (
    SCALES,
    column_scales,
    dominated_column,
    iqr,
    jaakkola,
    median,
    median_of_rows,
    mode_clustering,
    neighbour,
    scott,
    silverman,
    warn_of_units,
)

RULES: dict[str, Callable[..., float]] = {
    rule.__name__: rule for rule in (scott, silverman, median, iqr, jaakkola, neighbour, mode_clustering, isj)
}

__all__ = ["RULES", "SCALES", "column_scales", "dominated_column"]
__all__ += ["iqr", "isj", "jaakkola", "median", "mode_clustering", "neighbour", "scott", "silverman"]
