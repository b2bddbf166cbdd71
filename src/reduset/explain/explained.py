"""The result: rows, weights, what was lost, and what that does to explanations of a given model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._describe import percent
from reduset._engine import blocks
from reduset._types import Array, Floats, Indices, PointsLike, SeedLike, WeightsLike
from reduset._validate import seeded
from reduset.certificate import Certificate

ROWS_A_CALL = 1 << 16
PERMUTATIONS = 8

Predictor = Callable[[Any], Any]  # rows in, numbers out: (k,) or (k, outputs)


@dataclass(frozen=True)
class Background:
    """Weighted rows that stand for a table as the background of explanations.

    Attributes
    ----------
    rows : (m, d) rows of the table, as it was given: a frame's rows are a frame
    weights : (m,) of sum 1, none negative
    indices : (m,) which rows of the table they are
    certificate : the measured error in the norm of the kernel of columns and rows
    n_samples : how many rows they stand for
    columns : the names of the columns, their numbers where they have none
    column_gaps : (d,) the largest difference between the distribution functions of each column, in the table and in these rows
        What a model adds up of a column changes by at most this share of its total variation: of its range, where it is monotone.
    reached : whether the ``tol`` asked for was reached
    timings : seconds by stage
    """

    rows: Any = field(repr=False)
    weights: Array
    indices: Indices
    certificate: Certificate
    n_samples: int
    columns: list[Any]
    column_gaps: Array
    reached: bool
    timings: dict[str, float] = field(repr=False)

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.indices)

    @property
    def random_rows(self) -> float:
        """How many rows drawn at random, with replacement, have the same error in the mean: (1 − ‖f‖²) / ‖f − f_m‖²."""
        certificate = self.certificate
        lost = (certificate.relative_error * certificate.norm) ** 2
        return float(max(certificate.energy - certificate.norm**2, 0.0) / lost) if lost > 0 else float("inf")

    def to_shap(self) -> Any:
        """The rows and their weights as the background that `shap.KernelExplainer` takes, like that of `shap.kmeans`.

        Explainers that take rows alone would ignore the weights: give these the ``rows`` of ``background(..., weights="equal")``.
        """
        try:
            legacy = import_module("shap.utils._legacy")
        except ImportError as error:
            raise ImportError("to_shap needs shap, which is not installed: pip install shap") from error
        values = _validate.as_numbers(self.rows, "rows")
        return legacy.DenseData(np.array(values), list(self.columns), None, self.weights.copy())

    def base_change(self, model: Predictor, X: PointsLike, sample_weight: WeightsLike = None) -> Any:
        """How far the base value, the mean of the model's output, is from that over all rows: exact, by n + m rows of the model.

        Parameters
        ----------
        model : function of rows like X's, (k,) or (k, outputs) numbers out: ``model.predict``
        X : (n, d) the table that the rows came from
        sample_weight : (n,) array, optional
            Of its rows, where they had any.
        """
        points, mass = self._table(X, sample_weight)
        small = self.weights @ _outputs(model, X, points[self.indices])
        whole = sum(mass[a:b] @ _outputs(model, X, points[a:b]) for a, b in blocks(len(points), ROWS_A_CALL))
        return _plain(small - whole)

    @seeded
    def change(
        self,
        model: Predictor,
        X: PointsLike,
        x: PointsLike,
        *,
        permutations: int = PERMUTATIONS,
        sample_weight: WeightsLike = None,
        rng: SeedLike = None,
    ) -> Array:
        """How far Shapley values by these rows are from those by all rows of X, measured on the model.

        Both are averaged over the same random orders of the columns and their reverses, so that the difference is without bias, and
        exact where the orders are all there are. That takes 2·permutations·(d + 1)·(n + m) rows of the model for each row
        explained: a sample of X is enough to see how large the change is.

        Parameters
        ----------
        model : function of rows like X's, (k,) or (k, outputs) numbers out: ``model.predict``
        X : (n, d) the table that the rows came from
        x : (k, d) rows to explain
        permutations : int
        sample_weight : (n,) array, optional
            Of the rows of X, where they had any.
        rng : None, seed or Generator

        Returns
        -------
        array
            (k, d) Shapley values by these rows less those by all of X; (k, d, outputs) for a model of several.

        Examples
        --------
        >>> import numpy as np
        >>> from reduset.explain import background
        >>> X = np.random.default_rng(0).normal(size=(1000, 3))
        >>> small = background(X, 50, rng=0)
        >>> model = lambda rows: 2 * rows[:, 0] + rows[:, 1] * rows[:, 2]
        >>> bool((np.abs(small.change(model, X, X[:5], rng=0)) < 0.1).all())
        True
        """
        points, mass = self._table(X, sample_weight)
        explained = _validate.points(x, "x")
        if explained.shape[1] != points.shape[1]:
            raise ValueError(f"x must have {points.shape[1]} columns like X, got shape {explained.shape}")
        count = _validate.whole(permutations, "permutations", 1)
        rng = _validate.generator(rng)
        orders = [order for _ in range(count) for drawn in [rng.permutation(points.shape[1])] for order in (drawn, drawn[::-1])]
        # of the law of these rows less that of all: what the model says of either is added up with its sign
        every = np.concatenate([points[self.indices], points])
        signed = np.concatenate([self.weights, -mass])
        return np.stack([_shapley(model, X, row, every, signed, orders) for row in explained])

    def _table(self, X: PointsLike, sample_weight: WeightsLike) -> tuple[Floats, Array]:
        points = _validate.points(X)
        if len(points) != self.n_samples or points.shape[1] != len(self.columns):
            raise ValueError(
                f"X must be the table that the rows came from, of {self.n_samples:,} rows and {len(self.columns)} columns; "
                f"got shape {points.shape}"
            )
        mass = np.broadcast_to(1.0, len(points)) if sample_weight is None else _validate.weights(sample_weight, len(points))
        return points, mass / mass.sum()

    def __str__(self) -> str:
        m, n, d = self.size, self.n_samples, len(self.columns)
        worst = int(np.argmax(self.column_gaps))
        low, high = self.certificate.interval
        spread = f" ({percent(low)} to {percent(high)})" if self.certificate.method != "exact" else " (exact)"
        lines = [f"{m:,} row{'s' * (m != 1)} as the background, for {n:,} of {d} column{'s' * (d != 1)}"]
        lines.append(f"lost       {percent(self.certificate.relative_error)} of ‖f‖{spread}")
        if np.isfinite(self.random_rows):
            lines.append(f"worth      {self.random_rows:,.0f} rows drawn at random, which lose as much in the mean")
        lines.append(
            f"columns    no distribution function is off by more than {percent(self.column_gaps[worst])} "
            f"(column {self.columns[worst]!s})"
        )
        return "\n  ".join(lines)


def names_of(given: Any, dimension: int) -> list[Any]:
    """The names of a frame's columns, or their numbers as texts."""
    return list(given.columns) if hasattr(given, "columns") else [str(j) for j in range(dimension)]


def rows_like(given: Any, points: Floats, rows: Indices) -> Any:
    """These rows of what was given: of pandas and polars frames as such, of all else an array."""
    home = type(given).__module__.split(".")[0]
    if home == "pandas":
        return given.iloc[rows]
    if home == "polars" and not hasattr(given, "collect"):
        return given[rows]
    return points[rows]


def _like(given: Any, values: Floats) -> Any:
    """Rows of new values for a model that was fitted to what was given: a frame with its columns and their types."""
    home = type(given).__module__.split(".")[0]
    if home == "pandas":
        return import_module("pandas").DataFrame(values, columns=given.columns).astype(given.dtypes)
    if home == "polars" and not hasattr(given, "collect"):
        return import_module("polars").DataFrame(values, schema=list(given.columns)).cast(dict(given.schema))
    return values


def _outputs(model: Predictor, given: Any, values: Floats) -> NDArray[np.float64]:
    """What the model says of rows."""
    found = np.asarray(model(_like(given, values)), np.float64)
    if found.ndim not in (1, 2) or len(found) != len(values):
        raise ValueError(f"model must give one number, or one row of them, for each of {len(values)} rows; got shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("model must give finite numbers only")
    return found


def _shapley(model: Predictor, given: Any, row: Floats, every: Floats, signed: Array, orders: list[Indices]) -> Any:
    """(d,) or (d, outputs) Shapley values of a row over the orders, by a background of signed weights."""
    known: dict[bytes, Any] = {}

    def value(mask: NDArray[np.bool_]) -> Any:
        key = mask.tobytes()
        if key not in known:
            parts = blocks(len(every), ROWS_A_CALL)
            known[key] = sum(signed[a:b] @ _outputs(model, given, np.where(mask, row, every[a:b])) for a, b in parts)
        return known[key]

    found: list[Any] = [0.0] * every.shape[1]
    for order in orders:
        mask = np.zeros(every.shape[1], np.bool_)
        before = value(mask)
        for j in order:
            mask[j] = True
            after = value(mask)
            found[j] = found[j] + (after - before) / len(orders)
            before = after
    return np.stack([np.asarray(each) for each in found])


def _plain(value: Any) -> Any:
    """A number where there is one output, an array where there are several."""
    return float(value) if np.ndim(value) == 0 else np.asarray(value)
