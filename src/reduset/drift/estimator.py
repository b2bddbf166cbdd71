"""DriftTest and two_sample: has the law of the rows changed (Gretton et al. 2012), from a reference that was made small once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reduset import _validate
from reduset._types import PointsLike, SeedLike, WeightsLike
from reduset.bandwidth import SCALES
from reduset.drift.comparison import pooled, stored
from reduset.drift.reference import StoredReference
from reduset.drift.result import DriftResult
from reduset.drift.sample import Sample

SIZE = 256
DRAWS = 999
ALPHA = 0.05
WHOLE_ROWS, WHOLE_BYTES = 8192, 2_500_000  # of a reference whose rows are all kept
LARGEST_SEED = 2**63


@dataclass(eq=False, repr=False, kw_only=True)
class DriftTest(BaseEstimator):
    scales: str | None = "robust"
    size: int = SIZE
    n_resamples: int = DRAWS
    alpha: float = ALPHA
    keep_rows: bool = True
    random_state: SeedLike = None

    def fit(self, X: Any, y: Any = None, sample_weight: WeightsLike = None) -> DriftTest:
        settings = self._settings()
        rng = _validate.generator(self.random_state, "random_state")
        sample = Sample.checked(X, sample_weight)
        whole = min(WHOLE_ROWS, WHOLE_BYTES // (sample.rows.itemsize * sample.rows.shape[1]))
        self.reference_: Sample | StoredReference
        if self.keep_rows and sample.size <= whole:
            self.reference_ = Sample(np.array(sample.rows), sample.weights, sample.names, sample.named)
        else:
            self.reference_ = StoredReference.of(sample, settings[0], self.scales, self.keep_rows, rng)
        self.n_features_in_ = len(sample.names)
        self._seed = int(rng.integers(LARGEST_SEED))
        return self

    def test(self, X: PointsLike, sample_weight: WeightsLike = None) -> DriftResult:
        check_is_fitted(self, "reference_")
        size, draws, alpha = self._settings()
        kept = self.reference_
        new = Sample.checked(X, sample_weight).like(kept.names, kept.named)
        rng = np.random.default_rng(self._seed)
        if isinstance(kept, Sample):
            found = pooled(kept, new, size, self.scales, draws, rng)
        else:
            found = stored(kept, new, draws, rng)
        return DriftResult.of(found, alpha, self._seed)

    def stored(self) -> StoredReference:
        """The reference in the form that needs no rows of it at hand; a small one is made so."""
        check_is_fitted(self, "reference_")
        kept = self.reference_
        if isinstance(kept, StoredReference):
            return kept
        return StoredReference.of(kept, self._settings()[0], self.scales, self.keep_rows, np.random.default_rng(self._seed))

    def _settings(self) -> tuple[int, int, float]:
        if self.scales is not None:
            _validate.one_of(self.scales, "scales", SCALES)
        return (
            _validate.whole(self.size, "size", 2),
            _validate.whole(self.n_resamples, "n_resamples", 99),
            _validate.between(self.alpha, "alpha", 0, 1),
        )


def two_sample(X: Any, Y: Any, *, scales: str | None = "robust", size: int = SIZE, n_resamples: int = DRAWS, alpha: float = ALPHA,
               sample_weight: tuple[Any, Any] = (None, None), rng: SeedLike = None) -> DriftResult:
    rng = _validate.generator(rng)
    old = Sample.checked(X, sample_weight[0], "X")
    new = Sample.checked(Y, sample_weight[1], "Y").like(old.names, old.named, "Y")
    seed = int(rng.integers(LARGEST_SEED))
    return DriftResult.of(pooled(old, new, size, scales, n_resamples, np.random.default_rng(seed)), alpha, seed)
