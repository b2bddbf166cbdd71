"""StreamCompressor: compress rows that come in chunks and are read once. A result is available at any time.

Validates, calls `buffer`, stores. `sketch` describes the state of the stream, `checkpoint` the file.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array

from reduset import _archive, _validate
from reduset._engine import on_device
from reduset._frames import framed, is_table, table_weights
from reduset._messages import is_quiet, warn
from reduset._types import Array, KernelLike, PointsLike, SeedLike, WeightsLike
from reduset._validate import naming_columns, seeded
from reduset.compression import Compression, better_weights
from reduset.mean import KernelMean
from reduset.stream import checkpoint
from reduset.stream.buffer import RowBuffer, StreamSettings
from reduset.weights import WEIGHTINGS

__all__ = ["StreamCompressor"]

MAX_LABELS = 20  # distinct positive numbers in y; more are counts


@seeded
class StreamCompressor(BaseEstimator):
    """Compress data that do not fit in memory, or that never end.

    Rows are read once, in any order, in chunks of any length, and memory is bounded. The result depends on the sequence of the
    rows, not on the chunks.

    It passes scikit-learn's common checks: `fit` starts a new stream, `partial_fit` continues it. It has no `predict` and no
    `transform`; `result` returns the compression. A clone has the parameters and no rows. Parameters that determine the state
    cannot be changed during a stream, and ``random_state`` is used once, at its start.

    Parameters
    ----------
    kernel : kernel of a distance (any but a function), default ``Gaussian("median")``
        The first ``buffer`` rows resolve a bandwidth rule. Give a number if these rows differ from the rest, or if compressors are
        to be merged.
    size : int, the number of atoms
    random_state : None, seed, Generator or RandomState
    weights : "free", "sum_to_one", "clipped", "sum_to_one_clipped", "simplex_projection" or "simplex"
    half_life : float, optional
        The number of rows after which a row counts half, for streams that drift. By default nothing is forgotten.
    buffer : int
        The number of rows that are gathered and then sketched together. At least twice the size, and at most 2²² numbers.
    select : name of the selector of the first candidate atoms
    confidence : float, of the certificate's interval

    Attributes
    ----------
    n_samples_seen_ : int, rows so far
    n_features_in_ : int
    feature_names_in_ : (d,) array, if the first chunk was a frame with texts as column names
    kernel_ : Kernel with a resolved bandwidth, once the first buffer is full
    about_ : dict, the values in the checkpoint that the stream was resumed from; otherwise empty

    Examples
    --------
    >>> import numpy as np
    >>> from reduset import Gaussian
    >>> from reduset.stream import StreamCompressor
    >>> rng = np.random.default_rng(0)
    >>> stream = StreamCompressor(kernel=Gaussian(1.0), size=50, random_state=0)
    >>> for _ in range(5):
    ...     stream = stream.partial_fit(rng.normal(size=(1000, 2)))
    >>> small = stream.result()
    >>> small.n_samples, small.size, small.certificate.relative_error < 0.01
    (5000, 50, True)
    """

    _stream: RowBuffer | None = None  # before the first row

    def __init__(
        self,
        kernel: KernelLike = None,
        size: int = 500,
        random_state: SeedLike = None,
        *,
        weights: str = "free",
        half_life: float | None = None,
        buffer: int = 65536,
        select: str = "auto",
        confidence: float = 0.95,
    ) -> None:
        self.kernel = kernel
        self.size = size
        self.random_state = random_state
        self.weights = weights
        self.half_life = half_life
        self.buffer = buffer
        self.select = select
        self.confidence = confidence

    def _settings(self) -> StreamSettings:
        return StreamSettings.checked(self.kernel, self.size, self.buffer, self.half_life, self.select)

    def _ending(self) -> tuple[str, float]:
        return _validate.one_of(self.weights, "weights", WEIGHTINGS), _validate.confidence(self.confidence)

    def fit(self, X: PointsLike, y: object = None, *, sample_weight: WeightsLike = None) -> Self:
        """Start a new stream with X as the first chunk.

        Parameters
        ----------
        X : (n, d) array or frame
        y : ignored
            Numbers that look like weights raise an error: non-negative ones with fractions, or positive ones with more than 20
            distinct values. Other arrays are labels, which pipelines pass.
        sample_weight : (n,) array, optional
        """
        _require_no_weights(y)
        sample_weight = table_weights(X) if sample_weight is None else sample_weight
        if not on_device(X):
            with naming_columns(X):
                rows = check_array(_validate.known(X.values if is_table(X) else X), dtype=(np.float64, np.float32))
            if sample_weight is not None:
                sample_weight = _validate.weights(sample_weight, len(rows))
        before = self._stream
        self._stream = None
        try:
            return self._take(X, sample_weight, empty=False)
        except BaseException:
            self._stream = before
            raise

    def partial_fit(self, X: PointsLike, y: object = None, *, sample_weight: WeightsLike = None) -> Self:
        """Add rows. After an error or an interrupt the state is unchanged; an empty chunk changes nothing.

        Parameters
        ----------
        X : (n, d) array or frame
        y : ignored; numbers that look like weights raise an error, as in `fit`
        sample_weight : (n,) array, optional
            Non-negative, on one scale for all chunks; 1 for each row by default.
        """
        _require_no_weights(y)
        return self._take(X, sample_weight, empty=True)

    def _begun(self) -> RowBuffer:
        if self._stream is None:
            raise NotFittedError("the stream has no rows yet; call partial_fit with a chunk first")
        return self._stream

    def _new(self, settings: StreamSettings, dimension: int) -> RowBuffer:
        seed = _validate.generator(self.random_state, "random_state").integers(1 << 62)
        return RowBuffer(settings, int(seed), dimension)

    def _take(self, X: PointsLike, sample_weight: WeightsLike, empty: bool) -> Self:
        settings, stream = self._settings(), self._stream
        self._ending()
        if stream is not None and stream.settings != settings:
            changed = next(field for field in vars(settings) if getattr(settings, field) != getattr(stream.settings, field))
            raise ValueError(
                f"{'buffer' if changed == 'block' else changed} must not change during a stream; call fit to start a new stream, "
                "or use a clone"
            )
        sample_weight = table_weights(X) if sample_weight is None else sample_weight
        chunk = framed(X)
        shape = getattr(chunk, "shape", None)  # sparse matrices have one, and no length
        if empty and (shape[0] == 0 if shape else shape is None and isinstance(chunk, Sized) and len(chunk) == 0):
            return self
        points = _validate.rows.points(chunk)
        columns = _names(chunk)
        if stream is not None:
            self._require_same_columns(points.shape[1], columns, "X")
        weights = None if sample_weight is None else _weights(sample_weight, chunk, len(points))
        if stream is None:
            stream = self._new(settings, points.shape[1])
        return self._store(stream.absorb(points, weights), columns)

    def _store(self, stream: RowBuffer, columns: list[str] | None) -> Self:
        """Store a state; the first one determines the columns."""
        if self._stream is None:
            self.n_features_in_ = stream.dimension
            self.about_: dict[str, Any] = {}
            if columns is not None:
                self.feature_names_in_ = np.array(columns, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        self._stream = stream
        self.n_samples_seen_ = stream.seen
        if stream.sketch is not None:
            self.kernel_ = stream.kernel
        elif hasattr(self, "kernel_"):
            del self.kernel_
        return self

    def _require_same_columns(self, width: int, columns: list[str] | None, name: str) -> None:
        if width != self.n_features_in_:
            raise ValueError(
                # scikit-learn's sentence, which its common checks require
                f"{name} has {width} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input, "
                "like the rows before; call fit to start a new stream, or use a clone"
            )
        known = _known(self)
        if known is not None and columns is not None and known != columns:
            raise ValueError(f"{name} must have the columns {known} in this order like the rows before it, got {columns}")

    def merge(self, other: StreamCompressor) -> Self:
        """Add the rows of another stream to this one; the other stream is unchanged.

        Both need the same size and the same kernel. Its bandwidth must be a number, unless both still gather their first rows.
        """
        if not isinstance(other, StreamCompressor):
            raise TypeError(f"other must be a StreamCompressor, got {type(other).__name__}")
        stream, other_stream = self._stream, other._stream
        if other_stream is None:
            return self
        if stream is None:
            stream = self._new(self._settings(), other_stream.dimension)
        else:
            self._require_same_columns(other_stream.dimension, _known(other), "other")
        _require_mergeable(stream, other_stream)
        return self._store(stream.merge(other_stream), _known(other))

    def sibling(self) -> Self:
        """An empty stream with the same kernel and candidate atoms, for another part of the same data.

        Streams with the same candidates are merged by adding sums, without interpolation. They may have a bandwidth rule.
        """
        stream = self._begun().sibling()
        return type(self)(**self.get_params(deep=False))._store(stream, _known(self))

    def result(self) -> Compression:
        """The compression of all rows so far; the stream can be continued.

        If the error exceeds the error of the same number of random rows, a warning suggests other parameters.
        """
        result = self._begun().result(*self._ending())
        comparison = result.above_random_rows()
        if comparison is not None and not is_quiet():
            warn(f"{comparison}; {better_weights(self.weights)}; sample() returns random rows of the stream")
        return result

    def sample(self) -> KernelMean:
        """A uniform sample of at most 8,192 of the rows so far, with weights that represent all rows."""
        return self._begun().complete().sample()

    # -- files --------------------------------------------------------------------------------------------------------------

    def checkpoint(self, path: _archive.Path_, about: dict[str, Any] | None = None) -> None:
        """Write the state, atomically: after an interruption the file holds this state or the one before.

        Parameters
        ----------
        path : file
        about : plain values to store with it, ``about_`` once resumed
        """
        settings = {"weights": self.weights, "confidence": self.confidence}
        checkpoint.write(path, self._begun(), settings, _known(self), self.about_ if about is None else about)

    @classmethod
    def resume(cls, path: _archive.Path_) -> Self:
        """Continue from a checkpoint, with the same bits as without an interruption.

        A damaged, edited, newer or foreign file raises `ValueError` and is unchanged.
        """
        stream, ending, columns, about = checkpoint.read(path)
        settings = stream.settings
        resumed = cls(
            settings.kernel,
            settings.size,
            half_life=settings.half_life,
            buffer=settings.block,
            select=settings.select,
            **ending,
        )
        resumed._store(stream, columns).about_ = about
        return resumed


def _require_mergeable(stream: RowBuffer, other: RowBuffer) -> None:
    """Raise an error for different settings, or if a rule found different bandwidths."""
    for name in ("size", "half_life"):
        first, second = getattr(stream.settings, name), getattr(other.settings, name)
        if first != second:
            raise ValueError(f"both must have the same {name}, got {first} and {second}; start both streams with equal parameters")
    if stream.kernel == other.kernel:
        return
    if stream.settings.kernel != other.settings.kernel:
        raise ValueError(f"both must have the same kernel, got {stream.kernel} and {other.kernel}; give both the same bandwidth")
    if stream.sketch is not None and other.sketch is not None:
        raise ValueError(
            f"both streams must have the same bandwidth, got {stream.kernel} and {other.kernel} from the bandwidth rule; give "
            "both the same number as bandwidth"
        )


def _names(chunk: PointsLike) -> list[str] | None:
    """The columns of a frame, if all of them are texts."""
    columns = getattr(chunk, "columns", None)
    names = None if columns is None else list(columns)
    return names if names is not None and all(isinstance(name, str) for name in names) else None


def _known(stream: StreamCompressor) -> list[str] | None:
    return list(stream.feature_names_in_) if hasattr(stream, "feature_names_in_") else None


def _weights(value: WeightsLike, given: PointsLike, count: int) -> Array:
    """Weights of a chunk; all of them may be 0."""
    value = _validate.rows.brought(value, given)
    array = np.asarray(value)
    if array.shape == (count,) and array.dtype.kind in "fiu" and not array.any():
        return np.zeros(count)
    weights = _validate.weights(value, count)
    heaviest = float(weights.max())
    _validate.squares_summable(
        heaviest, "where it is not 0, sample_weight must lie", f"the largest is {heaviest:g}; rescale all of them by one factor"
    )
    return weights


def _require_no_weights(y: object) -> None:
    """Raise an error for weights in the position of y: non-negative numbers with fractions, or many different counts.

    scikit-learn's pipelines and checks pass labels there, so that y is ignored otherwise.
    """
    if y is None or not hasattr(y, "__len__"):
        return
    values = np.asarray(y)
    if values.dtype.kind not in "fiu" or values.size != len(values) or not (np.isfinite(values) & (values >= 0)).all():
        return
    if (values % 1 != 0).any() or (values.all() and len(np.unique(values)) > MAX_LABELS):
        raise ValueError(f"y is ignored, got {len(values):,} non-negative numbers that look like weights; pass sample_weight=")
