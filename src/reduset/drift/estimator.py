"""DriftTest and two_sample: has the law of the rows changed (Gretton et al. 2012), from a reference that was made small once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from reduset import _archive, _validate
from reduset._archive import fields as f
from reduset._messages import warn
from reduset._types import PointsLike, SeedLike, WeightsLike
from reduset._validate import seeded
from reduset.bandwidth import SCALES
from reduset.drift import reference_file
from reduset.drift.comparison import pooled, stored
from reduset.drift.reference import StoredReference, is_compression, of_compression
from reduset.drift.registry import chosen_statistics
from reduset.drift.result import DriftResult
from reduset.drift.sample import Sample, warn_of_copies
from reduset.stream import StreamCompressor

SIZE = 256
DRAWS = 999
MAX_SIZE, MAX_RESAMPLES, MAX_FILE_RESAMPLES = 100_000, 1_000_000, 50_000
ALPHA = 0.05
WHOLE_ROWS, WHOLE_BYTES = 8192, 2_500_000  # of a reference whose rows are all kept
LARGEST_SEED = 2**63
SETTINGS = ("scales", "size", "n_resamples", "alpha", "keep_rows", "statistics")
FIELDS: f.Fields = {"settings": f.entries(), "seed": f.whole(0, LARGEST_SEED), "about": f.entries()}
ROWS_FILE = _archive.Kind("reduset.DriftTest.rows", "reference", reference_file.ROWS | FIELDS)
STORED_FILE = _archive.Kind("reduset.DriftTest", "reference", reference_file.STORED | FIELDS)


@seeded
@dataclass(eq=False, repr=False, kw_only=True)
class DriftTest(BaseEstimator):
    """Has the law of the rows changed since a reference, where, in which columns, and how sure is that?

    The reference is looked at once and kept small; a test then costs one pass over the new rows. Where all its rows are kept (up to
    8,192, or 2.5 MB of them), new rows are told apart from them by permutations, which is exact at any size. Of more rows, what is
    needed of them is kept in less than 5 MB (of up to 200 columns).

    Parameters
    ----------
    scales : "robust", "standard" or None
        Units of the columns, by which each is divided: its interquartile range (its standard deviation where that is 0), the
        standard deviation, or none, for columns of one unit such as embeddings.
    size : int
        Number of atoms at which the samples are compared, at most 100,000.
    n_resamples : int
        Number of resamples under the null hypothesis, at most 1,000,000, and at most 50,000 from a file.
    alpha : float
        The p-value from which on down a difference is called drift.
    keep_rows : bool
        False keeps no row of the reference, only numbers that stand for ten rows or more each: centres of clusters, sums, edges of
        bins. That is not anonymous, but tells no row. The p-values of less than some 200 new rows are then less exact.
    statistics : None, or names of statistics
        None takes all that are registered. "kernel" has distances of kernel means at several scales, "columns" the largest shift
        and spread of a single column (up to 100 columns).
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    reference_ : what is kept of the reference
    n_features_in_ : int
    about_ : plain values that were kept beside it in a file

    Examples
    --------
    >>> import numpy as np
    >>> from reduset.drift import DriftTest
    >>> rng = np.random.default_rng(1)
    >>> test = DriftTest(random_state=0).fit(rng.normal(size=(5000, 3)))
    >>> test.test(rng.normal(size=(500, 3))).drift
    False
    >>> found = test.test(rng.normal(loc=(0.0, 0.5, 0.0), size=(500, 3)))
    >>> found.drift, found.columns()[0].name, found.columns()[0].direction
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
        """Look at the reference.

        Parameters
        ----------
        X : (n, d) array, frame, files or Dask collection of numbers; or a `Compression`, `Model` or `StreamCompressor`
            `reduset.io.as_table` encodes frames with text, those to be tested with the ``encoding`` of the reference's table.
            Of a stream its fair sample is the reference. A compression knows its own error, by which differences are taken shorter.
        y : ignored
        sample_weight : (n,) array, optional; of files and Dask frames also a column; none with a compression or a stream
        """
        settings = self.checked()
        rng = _validate.generator(self.random_state, "random_state")
        self.reference_ = self._kept(X, sample_weight, settings[0], rng)
        self.n_features_in_ = len(self.reference_.names)
        self.about_: dict[str, Any] = {}
        self._seed = int(rng.integers(LARGEST_SEED))
        return self

    def _kept(self, X: Any, sample_weight: Any, size: int, rng: np.random.Generator) -> Sample | StoredReference:
        """What is kept of a reference of any kind."""
        if is_compression(X):
            _require_none(sample_weight)
            return of_compression(X, size, self.keep_rows, rng)
        if isinstance(X, StreamCompressor):
            _require_none(sample_weight)
            fair = X.sample()
            sample = Sample.of(np.array(fair.atoms), fair.weights, getattr(X, "feature_names_in_", None))
        else:
            sample = Sample.checked(X, sample_weight)
        sample.require_rows("X")
        whole = min(WHOLE_ROWS, WHOLE_BYTES // (sample.rows.itemsize * sample.rows.shape[1]))
        if self.keep_rows and sample.size <= whole:
            return Sample(np.array(sample.rows[:]), sample.weights, sample.names, sample.named)
        return StoredReference.of(sample, size, self.scales, self.keep_rows, rng)

    def test(self, X: PointsLike, sample_weight: WeightsLike = None) -> DriftResult:
        """Compare new rows with the reference.

        Parameters
        ----------
        X : (n', d) array or frame, its columns found by name where both have names
        sample_weight : (n',) array, optional
        """
        check_is_fitted(self, "reference_")
        size, draws, alpha = self.checked()
        statistics = chosen_statistics(self.statistics)
        kept = self.reference_
        new = Sample.checked(X, sample_weight).like(kept.names, kept.named)
        others = kept.rows if isinstance(kept, Sample) else kept.own_rows
        if len(others):
            warn_of_copies("X", new.rows, others)
        if isinstance(kept, Sample):
            found = pooled(kept, new, size, self.scales, draws, statistics, np.random.default_rng(self._seed))
        else:
            found = stored(kept, new, draws, statistics, self._seed)
        return DriftResult.of(found, alpha, self._seed)

    def stored(self) -> StoredReference:
        """The reference in the form that needs no rows of it at hand; a small one is made so."""
        check_is_fitted(self, "reference_")
        kept = self.reference_
        if isinstance(kept, StoredReference):
            return kept
        return StoredReference.of(kept, self.checked()[0], self.scales, self.keep_rows, np.random.default_rng(self._seed))

    def save(self, path: _archive.Path_, about: dict[str, Any] | None = None) -> None:
        """Write one .npz with a JSON header, atomically. Nothing in it is ever executed.

        Parameters
        ----------
        path : file
        about : plain values to keep beside it, ``about_`` once loaded
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
        """Read what `save` wrote; a damaged, edited, newer or foreign file is a ValueError.

        A file sets at most 50,000 resamples: a larger ``n_resamples`` is lowered to that with a warning; `set_params` raises it.
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
        """The size, the number of draws and the level."""
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
    """Are two samples of one law? Both at hand, and treated alike.

    Parameters
    ----------
    X, Y : (n, d) and (n', d) arrays or frames of numbers; what is said of the result is of Y compared with X
        `reduset.io.as_table` encodes frames with text, Y with the ``encoding`` of X's table.
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
            f"sample_weight must be a pair, the weights of X and those of Y or None, got {type(sample_weight).__name__}"
        )
    first, second = sample_weight
    old = Sample.checked(X, first, "X")
    new = Sample.checked(Y, second, "Y").like(old.names, old.named, "Y")
    for name, mine, others in (("X", old, new), ("Y", new, old)):
        warn_of_copies(name, mine.rows, others.rows)
    seed = int(_validate.generator(rng).integers(LARGEST_SEED))
    chosen = chosen_statistics(statistics)
    return DriftResult.of(pooled(old, new, count, scales, draws, chosen, np.random.default_rng(seed)), level, seed)


def _require_none(sample_weight: Any) -> None:
    if sample_weight is not None:
        raise ValueError("sample_weight goes with rows; a compression or a stream has its own weights, leave it out")
