"""Checks of input. Every error names the parameter, the rule, the value and the way out.

`arrays` checks points, `bags` lists of arrays and long tables, and `parameters` weights, labels, covariances and box limits.
`values` checks single values, and `rows` arrays that may be on a GPU.

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
    box,
    covariance,
    covariances,
    labelled,
    limits,
    squares_summable,
    weights,
)
from reduset._validate.rows import naming_columns, of_estimator
from reduset._validate.rows import points as checked_rows
from reduset._validate.rows import weights as row_weights
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
    seeded,
    tolerance,
    whole,
)
