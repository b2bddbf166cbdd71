"""Error of a compressed SVM: its decision values and labels compared with the original, on rows or on the support vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score

from reduset._types import Array
from reduset.svm.expansion import GaussianExpansion
from reduset.svm.machines import SupportVectorMachine

NEGLIGIBLE = 1e-9  # relative to the largest weight and to a peak: no support vector is near rows with smaller values


@dataclass(frozen=True)
class SvmLoss:
    """The change of decision values and labels by a compressed SVM.

    Attributes
    ----------
    largest, mean : absolute change of the decision values (of pairs for more than two classes)
    label_changes : number of rows with a changed label; None for regression
    rows : number of rows
    measured_on : "X" or "the support vectors"
    relative : ‖f − g‖ / ‖f‖ over the rows, without intercepts: the root mean square change relative to the root mean square of f
    bound : largest possible change of a decision value anywhere; ∞ if there is no bound
    score_before, score_after : accuracy, or R² for regression, if y was given
    """

    largest: float
    mean: float
    label_changes: int | None
    rows: int
    measured_on: str
    relative: float
    bound: float
    score_before: float | None = None
    score_after: float | None = None

    def __str__(self) -> str:
        lines = [
            f"decision values changed by {self.mean:.3g} on average, {self.largest:.3g} at most, "
            f"on {self.measured_on} ({self.rows:,} rows)"
        ]
        if self.label_changes is not None:
            lines.append(f"labels changed on {self.label_changes:,} rows ({self.label_changes / self.rows:.2%})")
        if self.score_before is not None:
            lines.append(f"score {self.score_after:.4f}, was {self.score_before:.4f}")
        bound = f"; no decision value changes by more than {self.bound:.3g} at any point" if np.isfinite(self.bound) else ""
        lines.append(f"relative error {self.relative:.3g}{bound}")
        return "\n".join(lines)


class LossEvaluator:
    """Measures the change of the decision functions of an SVM on rows, or on its support vectors."""

    def __init__(self, machine: SupportVectorMachine, rows: Array | None) -> None:
        self._machine, self._rows = machine, machine.full.centres if rows is None else rows
        self._measured_on = "the support vectors" if rows is None else "X"
        self._before = machine.full(self._rows)
        size = float(np.linalg.norm(self._before - machine.full.intercepts))
        self._scale = size or 1.0
        if rows is not None and size <= NEGLIGIBLE * float(np.abs(machine.full.weights).max()) and self._are_far(rows):
            raise ValueError(
                "X must hold rows like the training rows of fitted, and no support vector is near any of these: the decision "
                "functions are constant there. Pass rows transformed like the training rows, pipeline[:-1].transform(X)"
            )

    def _are_far(self, rows: Array) -> bool:
        """True if every Gaussian is negligible at every row, so that small values are not cancelling weights."""
        full = self._machine.full
        height = GaussianExpansion(full.centres, full.widths, np.ones((full.size, 1)), np.zeros(1))(rows)
        return float(height.max()) <= NEGLIGIBLE

    def score(self, targets: NDArray[Any], predicted: NDArray[Any] | None = None) -> float:
        """Accuracy, or R² for regression, of predictions; by default the predictions of the original."""
        machine = self._machine
        score = r2_score if machine.rule.kind == "regressor" else accuracy_score
        if targets.dtype.kind == "f" and not np.isfinite(targets).all():
            raise ValueError(f"y must be finite, got {targets[~np.isfinite(targets)][0]}; drop such rows")
        if predicted is None:
            predicted = machine.rule.predict(self._before)
        try:
            if (targets.dtype.kind in "OSU") != (predicted.dtype.kind in "OSU"):  # scikit-learn 1.6 counts all of these as errors
                raise TypeError(f"labels are {predicted.dtype}, y is {targets.dtype}")
            return float(score(targets, predicted))
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold labels of the classes of fitted, or finite targets: {error}") from error

    def relative(self, expansion: GaussianExpansion) -> float:
        return float(np.linalg.norm(expansion(self._rows) - self._before)) / self._scale

    def loss(self, expansion: GaussianExpansion, bound: float, targets: NDArray[Any] | None) -> SvmLoss:
        machine, after = self._machine, expansion(self._rows)
        change = np.abs(self._before - after)
        labels = [machine.rule.predict(values) for values in (self._before, after)]
        scores: list[float | None] = [None, None]
        if targets is not None:
            scores = [self.score(targets, predicted) for predicted in labels]
        return SvmLoss(
            largest=float(change.max()),
            mean=float(change.mean()),
            label_changes=None if machine.rule.kind == "regressor" else int((labels[0] != labels[1]).sum()),
            rows=len(change),
            measured_on=self._measured_on,
            relative=float(np.linalg.norm(change)) / self._scale,
            bound=bound,
            score_before=scores[0],
            score_after=scores[1],
        )
