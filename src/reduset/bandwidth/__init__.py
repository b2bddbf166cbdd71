"""Bandwidths: rules from points (and weights) to one number h, and scales of columns.

`rules` has those for any number of columns, `isj` the one that looks closer at a single one. Wherever a bandwidth is taken, so is a
name of `RULES`. May import: `_types`, `_engine`, `_validate`.
"""

from collections.abc import Callable

from reduset.bandwidth.isj import isj
from reduset.bandwidth.rules import (
    SCALES,
    column_scales,
    drowned_column,
    iqr,
    jaakkola,
    median,
    median_of_rows,
    mode_clustering,
    neighbour,
    scott,
    silverman,
)

RULES: dict[str, Callable[..., float]] = {
    rule.__name__: rule for rule in (scott, silverman, median, iqr, jaakkola, neighbour, mode_clustering, isj)
}

__all__ = ["RULES", "SCALES", "column_scales", "drowned_column"]
__all__ += ["iqr", "isj", "jaakkola", "median", "mode_clustering", "neighbour", "scott", "silverman"]
