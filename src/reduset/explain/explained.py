"""The result of `background`: rows, weights, the certificate, and the change of the explanations of a given model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset import _validate
from reduset._describe import counted, percent
from reduset._engine import blocks
from reduset._types import Array, Floats, Indices, PointsLike, SeedLike, WeightsLike
from reduset._validate import seeded
from reduset.certificate import Certificate

ROWS_A_CALL = 1 << 16
PERMUTATIONS = 8

Predictor = Callable[[Any], Any]  # from rows to (k,) or (k, outputs) numbers


@dataclass(frozen=True)
class Background:
    """Weighted rows that represent a table as the background of explanations.

    Attributes
    ----------
    rows : DataFrame or array, (m, d)
    weights : (m,) non-negative weights with sum 1
    indices : (m,) row numbers in the table
    certificate : Certificate of the error in the norm of the kernel
    n_samples : number of rows of the table
    columns : names of the columns, or their numbers as text
    column_gaps : (d,) array
        The largest difference between the distribution functions of each column, in the table and in these rows. In an additive
        model, a term of one column changes by at most this proportion of its total variation.
    reached : True if ``tol`` was reached
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
        """The number of rows."""
        return len(self.indices)

    @property
    def random_rows(self) -> float:
        """The number of random rows (with replacement) with the same mean squared error, (1 − ‖f‖²) / ‖f − f_m‖²."""
        certificate = self.certificate
        squared_error = (certificate.relative_error * certificate.norm) ** 2
        return float(max(certificate.energy - certificate.norm**2, 0.0) / squared_error) if squared_error > 0 else float("inf")

    def to_shap(self) -> Any:
        """The rows and their weights as the background of a `shap.KernelExplainer`, in the format of `shap.kmeans`.

        Other explainers ignore weights: give them the ``rows`` of ``background(..., weights="equal")``.
        """
        try:
            legacy = import_module("shap.utils._legacy")
        except ImportError as error:
            raise ImportError("to_shap needs shap, which is not installed: pip install shap") from error
        values = _validate.as_numbers(self.rows, "rows")
        return legacy.DenseData(np.array(values), list(self.columns), None, self.weights.copy())

    def base_change(self, model: Predictor, X: PointsLike, sample_weight: WeightsLike = None) -> Any:
        """The change of the base value (mean output of the model) compared with all rows. It is exact, from n + m predictions.

        Parameters
        ----------
        model : Callable, such as ``model.predict``
            A function of (k, d) rows like X that returns (k,) or (k, outputs) numbers.
        X : (n, d) the table of the rows
        sample_weight : (n,) array, optional
            The weights of X, if `background` had any.
        """
        points, mass = self._table(X, sample_weight)
        small = self.weights @ _outputs(model, X, points[self.indices])
        whole = sum(mass[a:b] @ _outputs(model, X, points[a:b]) for a, b in blocks(len(points), ROWS_A_CALL))
        change = small - whole
        return float(change) if np.ndim(change) == 0 else np.asarray(change)

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
        """The change of Shapley values if these rows replace all rows of X, measured on the model.

        Both are averaged over the same random orders of the columns and their reverses. So the difference is unbiased, and exact if
        the orders are all orders. Each explained row needs 2·permutations·(d + 1)·(n + m) predictions.

        Parameters
        ----------
        model : Callable, such as ``model.predict``
            A function of (k, d) rows like X that returns (k,) or (k, outputs) numbers.
        X : (n, d) the table of the rows
        x : (k, d) rows to explain
            A sample of rows is enough to estimate the change.
        permutations : int
        sample_weight : (n,) array, optional
            The weights of X, if `background` had any.
        rng : None, seed or Generator

        Returns
        -------
        array
            Shapley values by these rows minus Shapley values by all rows, (k, d). With several outputs, (k, d, outputs).

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
        # Shapley values are linear in the background, so one signed background gives the difference
        both = np.concatenate([points[self.indices], points])
        signed = np.concatenate([self.weights, -mass])
        return np.stack([_shapley(model, X, row, both, signed, orders) for row in explained])

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
        lines = [f"Background: {counted(n, 'row')} × {counted(d, 'column')} -> {counted(m, 'weighted row')}"]
        lines.append(f"error      {percent(self.certificate.relative_error)}{spread}, in the norm of the kernel")
        if np.isfinite(self.random_rows):
            lines.append(f"           {self.random_rows:,.0f} random rows have the same error")
        gap = percent(self.column_gaps[worst])
        lines.append(f"columns    distribution functions differ by at most {gap} (column {self.columns[worst]!s})")
        return "\n  ".join(lines)


def rows_like(given: Any, points: Floats, rows: Indices) -> Any:
    """Rows of the data, as a pandas or polars frame if the data are one, otherwise as an array."""
    library = type(given).__module__.split(".")[0]
    if library == "pandas":
        return given.iloc[rows]
    if library == "polars" and not hasattr(given, "collect"):
        return given[rows]
    return points[rows]


def _like(given: Any, values: Floats) -> Any:
    """Values in the form of the training data: a frame with the same columns and types, or an array."""
    library = type(given).__module__.split(".")[0]
    if library == "pandas":
        return import_module("pandas").DataFrame(values, columns=given.columns).astype(given.dtypes)
    if library == "polars" and not hasattr(given, "collect"):
        return import_module("polars").DataFrame(values, schema=list(given.columns)).cast(dict(given.schema))
    return values


def _outputs(model: Predictor, given: Any, values: Floats) -> NDArray[np.float64]:
    """The output of the model for rows."""
    outputs = np.asarray(model(_like(given, values)), np.float64)
    if outputs.ndim not in (1, 2) or len(outputs) != len(values):
        raise ValueError(
            f"model must give one number, or one row of them, for each of {len(values)} rows, got shape {outputs.shape}"
        )
    if not np.isfinite(outputs).all():
        raise ValueError("model must give finite numbers only")
    return outputs


def _shapley(model: Predictor, given: Any, row: Floats, background: Floats, signed: Array, orders: list[Indices]) -> Any:
    """(d,) or (d, outputs) Shapley values of a row over the orders, by a background with signed weights."""
    known: dict[bytes, Any] = {}

    def value(mask: NDArray[np.bool_]) -> Any:
        key = mask.tobytes()
        if key not in known:
            parts = blocks(len(background), ROWS_A_CALL)
            known[key] = sum(signed[a:b] @ _outputs(model, given, np.where(mask, row, background[a:b])) for a, b in parts)
        return known[key]

    totals: list[Any] = [0.0] * background.shape[1]
    for order in orders:
        mask = np.zeros(background.shape[1], np.bool_)
        before = value(mask)
        for j in order:
            mask[j] = True
            after = value(mask)
            totals[j] = totals[j] + (after - before) / len(orders)
            before = after
    return np.stack([np.asarray(column) for column in totals])
