"""The only place that checks input. Every message names the parameter, the rule, the value seen and the way out.

`checks` looks at arrays of the processor, tables and single values; `rows` at what may lie on a GPU, and leaves it there.

May import: `_types`, `_messages`, `_engine`, `_columns`, `_frames`.
"""

from reduset._validate.checks import (
    HEAVIEST,
    as_numbers,
    at_least,
    bags,
    between,
    confidence,
    covariance,
    covariances,
    finite,
    flag,
    generator,
    known,
    labelled,
    listed,
    missing,
    one_of,
    points,
    positive,
    same_columns,
    shortened,
    sparse_points,
    squares_summable,
    tolerance,
    weights,
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
