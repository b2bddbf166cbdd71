"""The result: rows, labels and weights for any ``fit``, and what was lost of each class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Array, Indices
from reduset.certificate import Certificate
from reduset.certificate.certificate import percent


@dataclass(frozen=True)
class LabelledRows:
    """Few labelled rows that stand for many.

    Attributes
    ----------
    X : (m, d) rows of the data, as they were given: a frame's rows are a frame
    y : (m,) their labels, or numbers
    sample_weight : (m,) weights for ``fit``: those of each class add up to what it weighs, all of them to what all rows weigh
    indices : (m,) which rows of the data they are, ascending
    task : "classes" or "regression"
    classes : (k,) the classes; None where y is a quantity, and k is 1
    counts : (k,) how many of the m rows are of each
    masses : (k,) what all rows of each weigh
    certificates : k of them, each the measured error of one class in the norm of the kernel of columns
    n_samples : how many rows they stand for
    timings : seconds by stage
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    sample_weight: Array
    indices: Indices
    task: str
    classes: NDArray[Any] | None
    counts: Indices
    masses: Array
    certificates: list[Certificate] = field(repr=False)
    n_samples: int
    timings: dict[str, float] = field(repr=False)

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.indices)

    @property
    def relative_error(self) -> float:
        """‖f − f_m‖ / ‖f‖ of all classes at once, in the kernel of columns and equal labels: of their squares weighed by mass."""
        norms = self.masses * np.array([each.norm for each in self.certificates])
        errors = np.array([each.relative_error for each in self.certificates])
        return float(np.linalg.norm(norms * errors) / np.linalg.norm(norms))

    def __str__(self) -> str:
        m, n = self.size, self.n_samples
        share = f", 1 in {n / m:,.0f}" if n >= 2 * m else ""
        lines = [f"{m:,} labelled row{'s' * (m != 1)} that stand for {n:,}{share}"]
        text = f"lost       {percent(self.relative_error)} of ‖f‖"
        if self.classes is not None:
            shares = f"of {len(self.classes):,} classes, exact, each by {self.counts.min():,} to {self.counts.max():,} rows"
            lines.append(f"shares     {shares}")
            errors = np.array([each.relative_error for each in self.certificates])
            text += f"; {percent(errors.max())} of class {self.classes[np.argmax(errors)]!s}, at most"
        lines.append(text)
        lines.append(f"weights    sum to {self.sample_weight.sum():,.6g}, as those of all rows do")
        return "\n  ".join(lines)
