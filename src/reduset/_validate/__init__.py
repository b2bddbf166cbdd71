"""The only place that checks input. Every message names the parameter, the rule, the value seen and the way out.

`checks` examines arrays, tables, bags and weights; `values` single values; `rows` arrays that may be on a GPU.

May import: `_types`, `_messages`, `_engine`, `_columns`, `_frames`.
"""

from reduset._validate.checks import (
    HEAVIEST,
    as_numbers,
    bags,
    covariance,
    covariances,
    known,
    labelled,
    listed,
    missing,
    points,
    same_columns,
    shortened,
    sparse_points,
    squares_summable,
    weights,
)
from reduset._validate.values import (
    at_least,
    between,
    confidence,
    finite,
    flag,
    generator,
    hint_for,
    one_of,
    positive,
    tolerance,
    whole,
)

__all__ = [
    "HEAVIEST",
    "as_numbers",
    "at_least",
    "bags",
    "between",
    "confidence",
    "covariance",
    "covariances",
    "finite",
    "flag",
    "generator",
    "hint_for",
    "known",
    "labelled",
    "listed",
    "missing",
    "one_of",
    "points",
    "positive",
    "same_columns",
    "shortened",
    "sparse_points",
    "squares_summable",
    "tolerance",
    "weights",
    "whole",
]
