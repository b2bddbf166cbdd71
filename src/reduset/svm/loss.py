"""What a smaller SVM changed: its decision values and labels beside those of the original, on rows or on the support vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score

from reduset._types import Array
from reduset.svm.expansion import GaussianExpansion
from reduset.svm.machines import SupportVectorMachine

UNSEEN = 1e-9  # of the largest weight, and of a bump: below, given rows are seen by no support vector


@dataclass(frozen=True)
class SvmLoss:
    """What a compressed SVM changed.

    Attributes
    ----------
    largest, mean : absolute change of the decision values (those of the pairs, where there are more than two classes)
    label_changes : rows whose label changed; None of a regression
    rows : how many were looked at
    measured_on : "X" or "the support vectors"
    relative : ‖f − g‖ / ‖f‖ over the rows, the root of the mean square change over that of f itself, intercepts left out
    bound : no decision value changes by more anywhere; ∞ where there is no bound
    score_before, score_after : accuracy, or R² of a regression, where y was given
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
        lines.append(f"relative error {self.relative:.3g}; anywhere at all, a change of at most {self.bound:.3g}")
        return "\n".join(lines)


class LossEvaluator:
    """Measures the loss: the change of an SVM's functions on rows, or on its support vectors."""

    def __init__(self, machine: SupportVectorMachine, rows: Array | None) -> None:
        self._machine, self._rows = machine, machine.full.centres if rows is None else rows
        self._words = "the support vectors" if rows is None else "X"
        self._before = machine.full(self._rows)
        size = float(np.linalg.norm(self._before - machine.full.intercepts))
        self._scale = size or 1.0
        if rows is not None and size <= UNSEEN * float(np.abs(machine.full.weights).max()) and self._are_unseen(rows):
            raise ValueError(
                "X must hold rows like those that fitted was fitted on, and no support vector is near any of these: its functions "
                "are constant there. Pass rows as the steps before the SVM make them, pipeline[:-1].transform(X)"
            )

    def _are_unseen(self, rows: Array) -> bool:
        """Whether every bump is next to nothing at every row, so that it is not weights that cancel."""
        full = self._machine.full
        height = GaussianExpansion(full.centres, full.widths, np.ones((full.size, 1)), np.zeros(1))(rows)
        return float(height.max()) <= UNSEEN

    def score(self, targets: NDArray[Any], predicted: NDArray[Any] | None = None) -> float:
        """Accuracy, or R² of a regression; of the original where nothing else is given."""
        machine = self._machine
        score = r2_score if machine.rule.kind == "regressor" else accuracy_score
        if targets.dtype.kind == "f" and not np.isfinite(targets).all():
            raise ValueError(f"y must be finite, got {targets[~np.isfinite(targets)][0]}; drop such rows")
        if predicted is None:
            predicted = machine.rule.predict(self._before)
        try:
            if (targets.dtype.kind in "OSU") != (predicted.dtype.kind in "OSU"):  # scikit-learn 1.6 calls all of these wrong
                raise TypeError(f"labels are {predicted.dtype}, y is {targets.dtype}")
            return float(score(targets, predicted))
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold what fitted predicts, labels of its classes or finite targets: {error}") from error

    def relative(self, expansion: GaussianExpansion) -> float:
        return float(np.linalg.norm(expansion(self._rows) - self._before)) / self._scale

    def loss(self, expansion: GaussianExpansion, bound: float, targets: NDArray[Any] | None) -> SvmLoss:
        machine, after = self._machine, expansion(self._rows)
        change = np.abs(self._before - after)
        labels = [machine.rule.predict(values) for values in (self._before, after)]
        scores: list[float | None] = [None, None]
        if targets is not None:
            scores = [self.score(targets, each) for each in labels]
        return SvmLoss(
            largest=float(change.max()),
            mean=float(change.mean()),
            label_changes=None if machine.rule.kind == "regressor" else int((labels[0] != labels[1]).sum()),
            rows=len(change),
            measured_on=self._words,
            relative=float(np.linalg.norm(change)) / self._scale,
            bound=bound,
            score_before=scores[0],
            score_after=scores[1],
        )
