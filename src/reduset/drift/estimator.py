"""DriftTest and two_sample: tests for a change in distribution (Gretton et al. 2012), against a stored or a second sample."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reduset import _archive, _validate
from reduset._messages import warn
from reduset._types import PointsLike, SeedLike, WeightsLike
from reduset._validate import seeded
from reduset.bandwidth import SCALES
from reduset.drift import reference_file
from reduset.drift.comparison import pooled, stored
from reduset.drift.reference import StoredReference, of_compression
from reduset.drift.result import DriftResult
from reduset.drift.sample import Sample, warn_of_copies
from reduset.drift.statistics import chosen_statistics
from reduset.stream import StreamCompressor

f = _archive.fields

SIZE = 256
DRAWS = 999
MAX_SIZE, MAX_RESAMPLES, MAX_FILE_RESAMPLES = 100_000, 1_000_000, 50_000
ALPHA = 0.05
WHOLE_ROWS, WHOLE_BYTES = 8192, 2_500_000  # up to this size, all rows of a reference are kept
LARGEST_SEED = 2**63
SETTINGS = ("scales", "size", "n_resamples", "alpha", "keep_rows", "statistics")
FIELDS: f.Fields = {"settings": f.entries(), "seed": f.whole(0, LARGEST_SEED), "about": f.entries()}
ROWS_FILE = _archive.Kind("reduset.DriftTest.rows", "reference", reference_file.ROWS | FIELDS)
STORED_FILE = _archive.Kind("reduset.DriftTest", "reference", reference_file.STORED | FIELDS)


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class DriftTest(BaseEstimator):
    """Test whether the distribution of the rows has changed since a reference, where, and in which columns.

    The reference is read once and summarised. A test then costs one pass over the new rows. Small references (up to 8,192 rows or
    2.5 MB) are kept completely, and the p-value comes from permutations, which are exact at any sample size. The summary of a
    larger reference takes less than 5 MB (for up to 200 columns).

    Parameters
    ----------
    scales : "robust", "standard" or None
        Units of the columns, by which each column is divided. "robust" is the interquartile range, or the standard deviation if
        that range is 0. "standard" is the standard deviation. None is for columns of one unit, such as embeddings.
    size : int
        Number of atoms at which the samples are compared, at most 100,000.
    n_resamples : int
        Number of resamples under the null hypothesis, at most 1,000,000, and at most 50,000 from a file.
    alpha : float
        Significance level: p-values up to this level count as drift.
    keep_rows : bool
        False keeps no row of the reference. All stored numbers (centres of clusters, sums, edges of bins) then summarise at least
        ten rows each. This is not anonymous, but reveals no single row. P-values for fewer than about 200 new rows are less exact.
    statistics : None, or names of statistics
        None uses all registered statistics. "kernel" uses distances of kernel means at several scales. "columns" uses the largest
        shift and spread of a single column (up to 100 columns).
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    reference_ : summary of the reference
    n_features_in_ : int
    about_ : dict, the plain values stored in the file that the test was loaded from

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.drift import DriftTest
    >>> rng = np.random.default_rng(1)
    >>> test = DriftTest(random_state=0).fit(rng.normal(size=(5000, 3)))
    >>> test.test(rng.normal(size=(500, 3))).drift
    False
    >>> result = test.test(rng.normal(loc=(0.0, 0.5, 0.0), size=(500, 3)))
    >>> result.drift, result.columns()[0].name, result.columns()[0].direction
    (True, 'x2', 'higher')
    """

    scales: str | None = "robust"
    size: int = SIZE
    n_resamples: int = DRAWS
    alpha: float = ALPHA
    keep_rows: bool = True
    statistics: str | Sequence[str] | None = None
    random_state: SeedLike = None

    def fit(self, X: Any, y: Any = None, sample_weight: WeightsLike = None) -> DriftTest:
        """Summarise the reference.

        Parameters
        ----------
        X : (n, d) array, frame, files or Dask collection of numbers; or a `Compression`, `Model` or `StreamCompressor`
            `reduset.io.as_table` encodes frames with text. Encode new rows with the ``encoding`` of the reference's table. For a
            stream, the reference is its random sample. For a compression, differences are shortened by its certified error.
        y : ignored
        sample_weight : (n,) array, or a column of files and Dask frames, optional
            Not allowed for a compression or a stream, which has weights.
        """
        settings = self.checked()
        rng = _validate.generator(self.random_state, "random_state")
        self.reference_ = self._kept(X, sample_weight, settings[0], rng)
        self.n_features_in_ = len(self.reference_.names)
        self.about_: dict[str, Any] = {}
        self._seed = int(rng.integers(LARGEST_SEED))
        return self

    def _kept(self, X: Any, sample_weight: Any, size: int, rng: np.random.Generator) -> Sample | StoredReference:
        """The summary of a reference of any kind."""
        is_compression = all(hasattr(X, part) for part in ("mean", "n_samples", "certificate", "profile"))  # or a `Model`
        is_stream = isinstance(X, StreamCompressor)
        if sample_weight is not None and (is_compression or is_stream):
            raise ValueError("sample_weight is for rows only, got it with a compression or a stream, which has weights; omit it")
        if is_compression:
            return of_compression(X, size, self.keep_rows, rng)
        if is_stream:
            drawn = X.sample()
            sample = Sample.of(np.array(drawn.atoms), drawn.weights, getattr(X, "feature_names_in_", None))
        else:
            sample = Sample.checked(X, sample_weight)
        sample.require_rows("X")
        limit = min(WHOLE_ROWS, WHOLE_BYTES // (sample.rows.itemsize * sample.rows.shape[1]))
        if self.keep_rows and sample.size <= limit:
            return Sample(np.array(sample.rows[:]), sample.weights, sample.names, sample.named)
        return StoredReference.of(sample, size, self.scales, self.keep_rows, rng)

    def test(self, X: PointsLike, sample_weight: WeightsLike = None) -> DriftResult:
        """Compare new rows with the reference.

        Parameters
        ----------
        X : (n', d) array or frame
            Columns are matched by name if both have names.
        sample_weight : (n',) array, optional
        """
        check_is_fitted(self, "reference_")
        size, draws, alpha = self.checked()
        statistics = chosen_statistics(self.statistics)
        reference = self.reference_
        new = Sample.checked(X, sample_weight).like(reference.names, reference.named)
        others = reference.rows if isinstance(reference, Sample) else reference.real_rows
        if len(others):
            warn_of_copies("X", new.rows, others)
        if isinstance(reference, Sample):
            comparison = pooled(reference, new, size, self.scales, draws, statistics, np.random.default_rng(self._seed))
        else:
            comparison = stored(reference, new, draws, statistics, self._seed)
        return DriftResult.of(comparison, alpha, self._seed)

    def stored(self) -> StoredReference:
        """The reference as a summary. The rows of a small reference are summarised now."""
        check_is_fitted(self, "reference_")
        reference = self.reference_
        if isinstance(reference, StoredReference):
            return reference
        return StoredReference.of(reference, self.checked()[0], self.scales, self.keep_rows, np.random.default_rng(self._seed))

    def save(self, path: _archive.Path_, about: dict[str, Any] | None = None) -> None:
        """Write one .npz with a JSON header, atomically. Nothing in it is ever executed.

        Parameters
        ----------
        path : file
        about : plain values to store with it, ``about_`` once loaded
        """
        check_is_fitted(self, "reference_")
        values = reference_file.values_of(self.reference_) | {
            "settings": {name: getattr(self, name) for name in SETTINGS},
            "seed": self._seed,
            "about": self.about_ if about is None else about,
        }
        _archive.write(path, ROWS_FILE if isinstance(self.reference_, Sample) else STORED_FILE, values)

    @classmethod
    def load(cls, path: _archive.Path_) -> DriftTest:
        """Read what `save` wrote. A damaged, edited, newer or foreign file raises `ValueError`.

        A file sets at most 50,000 resamples. A larger ``n_resamples`` is reduced to this number with a warning, and `set_params`
        sets more.
        """
        test = _archive.read(
            path,
            {
                STORED_FILE: lambda values: cls._with(values, reference_file.reference_from(values)),
                ROWS_FILE: lambda values: cls._with(values, reference_file.sample_from(values)),
            },
        )
        if test.n_resamples > MAX_FILE_RESAMPLES:
            warn(
                f"n_resamples in {os.fspath(path)} is {test.n_resamples:,}, and a file sets at most {MAX_FILE_RESAMPLES:,}; "
                f"set_params(n_resamples={test.n_resamples}) uses more"
            )
            test.n_resamples = MAX_FILE_RESAMPLES
        return test

    @classmethod
    def _with(cls, values: dict[str, Any], reference: Sample | StoredReference) -> DriftTest:
        """A fitted test with the settings in a file."""
        test = cls(**{name: values["settings"][name] for name in SETTINGS})
        test.checked()
        test.reference_, test.about_, test._seed = reference, values["about"], values["seed"]
        test.n_features_in_ = len(reference.names)
        return test

    def checked(self) -> tuple[int, int, float]:
        """The validated size, number of draws and level."""
        if self.scales is not None:
            _validate.one_of(self.scales, "scales", SCALES)
        _validate.flag(self.keep_rows, "keep_rows")
        chosen_statistics(self.statistics)
        return (
            _validate.whole(self.size, "size", 2, MAX_SIZE),
            _validate.whole(self.n_resamples, "n_resamples", 99, MAX_RESAMPLES),
            _validate.between(self.alpha, "alpha", 0, 1),
        )


@seeded
def two_sample(
    X: PointsLike,
    Y: PointsLike,
    *,
    sample_weight: tuple[WeightsLike, WeightsLike] = (None, None),
    scales: str | None = "robust",
    size: int = SIZE,
    n_resamples: int = DRAWS,
    alpha: float = ALPHA,
    statistics: str | Sequence[str] | None = None,
    rng: SeedLike = None,
) -> DriftResult:
    """Test whether two samples have the same distribution.

    Both samples are treated symmetrically. The result describes the change from X to Y.

    Parameters
    ----------
    X, Y : (n, d) and (n', d) arrays or frames of numbers
        `reduset.io.as_table` encodes frames with text. Encode Y with the ``encoding`` of X's table.
    sample_weight : pair of (n,) and (n',) arrays, or None
    scales, size, n_resamples, alpha, statistics : as in `DriftTest`
    rng : None, seed or Generator

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.drift import two_sample
    >>> rng = np.random.default_rng(0)
    >>> two_sample(rng.normal(size=(300, 2)), rng.normal(size=(200, 2)), rng=0).p_value > 0.05
    True
    """
    settings = DriftTest(scales=scales, size=size, n_resamples=n_resamples, alpha=alpha, statistics=statistics)
    count, draws, level = settings.checked()
    if not isinstance(sample_weight, tuple | list) or len(sample_weight) != 2:
        raise ValueError(
            f"sample_weight must be a pair, the weights of X and the weights of Y, got {type(sample_weight).__name__}; None in "
            "the pair gives equal weights"
        )
    first, second = sample_weight
    old = Sample.checked(X, first, "X")
    new = Sample.checked(Y, second, "Y").like(old.names, old.named, "Y")
    for name, sample, other in (("X", old, new), ("Y", new, old)):
        warn_of_copies(name, sample.rows, other.rows)
    seed = int(_validate.generator(rng).integers(LARGEST_SEED))
    chosen = chosen_statistics(statistics)
    return DriftResult.of(pooled(old, new, count, scales, draws, chosen, np.random.default_rng(seed)), level, seed)
