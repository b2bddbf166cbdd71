"""Checks of input. Every error names the parameter, the rule, the value and the way out.

`arrays` checks points, `bags` lists of arrays and long tables, and `rows` arrays that may be on a GPU. `parameters` checks single
values, weights, labels, covariances and box limits.

May import: `_types`, `_messages`, `_engine` and `_frames`.
"""

from reduset._validate.arrays import (
    LARGEST_EXACT,
    SUBTRACT,
    as_numbers,
    known,
    merged_integers,
    points,
    sparse_points,
    warn_if_lying,
)
from reduset._validate.bags import bags, listed, missing, same_columns, shortened
from reduset._validate.parameters import (
    HEAVIEST,
    at_least,
    between,
    box,
    confidence,
    covariance,
    covariances,
    finite,
    flag,
    generator,
    hint_for,
    labelled,
    limits,
    one_of,
    positive,
    seeded,
    squares_summable,
    tolerance,
    weights,
    whole,
)
from reduset._validate.rows import naming_columns, of_estimator
from reduset._validate.rows import points as checked_rows
from reduset._validate.rows import weights as row_weights
