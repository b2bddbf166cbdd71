"""Tables that lie on their side: SciPy's `gaussian_kde` takes a row a column, (d, n).

Few rows of very many columns are read as that: 2 to 20 rows, and at least 50 times their square of columns (200 for 2 rows, 5,000
for 10). Ten embeddings of 1,536 numbers and a hundred samples of 20,000 genes are left alone, and so is every frame, whose
columns have names. It is a warning, since six samples of 20,000 genes are a table too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset._messages import warn

MOST_ROWS = 20
COLUMNS = 50  # times the square of the rows


def warn_if_lying(value: Any, name: str = "X") -> None:
    """Say so where an array looks like (d, n)."""
    if not isinstance(value, np.ndarray) or value.ndim != 2:
        return
    rows, columns = value.shape
    if 2 <= rows <= MOST_ROWS and columns >= COLUMNS * rows**2:
        warn(
            f"{name} has {rows} rows and {columns:,} columns: rows are observations here, and this looks like the (d, n) of "
            f"scipy.stats.gaussian_kde; pass {name}.T, or a frame if it is meant so"
        )
