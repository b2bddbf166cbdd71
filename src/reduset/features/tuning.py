"""Choosing bandwidths, kernel widths and a model's own parameters by validation, computing each thing once.

Three nested loops: vectors A(p) are computed once for each bandwidth (or what else changes them); widths of the kernel between them
only scale the same random frequencies; the model's own parameters see the same features. For ridge regression all penalties share
one eigendecomposition, O(D²·N + D³). The vectors of all bags are held in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import clone, is_classifier
from sklearn.linear_model import Ridge
from sklearn.metrics import check_scoring, r2_score
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.pipeline import Pipeline

from reduset import _validate
from reduset._engine import single_threaded_blas
from reduset._progress import Progress
from reduset._types import Array, ProgressLike, SeedLike
from reduset._validate.seeds import seeded
from reduset.features.base import BagTransformer
from reduset.features.embedding import frequencies_of, kernel_width_of
from reduset.features.fourier import fourier_features

SMALL = 2048  # rows or columns
OWN = {
    "kernel_width": "give widths=, multiples of the median distance",
    "output": "features of the kernel are what is tuned",
    "group": "bags are grouped once",
    "random_state": "give random_state= to tune",
}


@dataclass(frozen=True)
class Tuned:
    """What validation chose.

    Attributes
    ----------
    features : dict, parameters of the features; ``kernel_width`` among them as a number
    model : dict, parameters of the model
    score : of the choice, on the validation bags
    tried : list of (parameters of the features, parameters of the model, score)
    pipeline : fitted to all bags
    """

    features: dict[str, Any]
    model: dict[str, Any]
    score: float
    tried: list[tuple[dict[str, Any], dict[str, Any], float]]
    pipeline: Pipeline

    def __str__(self) -> str:
        chosen = ", ".join(f"{name}={_short(value)}" for name, value in {**self.features, **self.model}.items())
        return f"Tuned: {chosen}; score {self.score:.4g} on validation bags, best of {len(self.tried)}"


@seeded
def tune(
    features: BagTransformer,
    model: Any,
    bags: Any,
    y: Any,
    *,
    features_grid: Mapping[str, Iterable[Any]] | None = None,
    widths: Iterable[float] = (0.5, 1.0, 2.0),
    model_grid: Mapping[str, Iterable[Any]] | None = None,
    validation: float = 0.1,
    scoring: Any = None,
    rng: SeedLike = None,
    progress: ProgressLike = False,
) -> Tuned:
    """The parameters that do best on a part of the bags that is set aside.

    Parameters
    ----------
    features : unfitted `DensityFeatures`, `MeanMapFeatures` or `HistogramFeatures`
    model : unfitted linear estimator of scikit-learn
    bags, y : as for ``fit`` of a pipeline of the two; ``y`` has a value a bag, of a long table in the order of their first rows
    features_grid : parameters of the features that change the vectors, ``{"bandwidth": [0.02, 0.05]}``
    widths : of the kernel, as multiples of the median distance of the bags
    model_grid : parameters of the model, ``{"alpha": [0.01, 0.1, 1.0]}``
    validation : share of the bags that is set aside; by class for a classifier
    scoring : name of a scorer of scikit-learn, or a function of (estimator, X, y); the model's own score if not given
    rng : None, seed, Generator or RandomState
    progress : bool, or a function of (stage, done, total)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from reduset.features import DensityFeatures, tune
    >>> rng = np.random.default_rng(0)
    >>> spread = rng.uniform(0.5, 2.0, size=200)
    >>> bags = [rng.normal(0, s, size=(100, 2)) for s in spread]
    >>> found = tune(DensityFeatures("js", n_components=200, margin=0.2), Ridge(), bags, spread,
    ...     features_grid={"bandwidth": [0.03, 0.1]}, model_grid={"alpha": [1e-3, 0.1]}, rng=0)
    >>> found.score > 0.9, found.pipeline.predict(bags[:3]).shape
    (True, (3,))
    """
    if not all(hasattr(features, name) for name in ("kernel_width", "n_components", "output")):
        raise TypeError(
            "features must be DensityFeatures(), MeanMapFeatures() or HistogramFeatures(), whose random features are a kernel of "
            f"vectors, got {type(features).__name__}"
        )
    share = _validate.between(validation, "validation", 0.0, 1.0)
    factors = [_validate.positive(width, "widths", "they multiply the median distance") for width in widths]
    if not factors:
        raise ValueError("widths must hold at least one multiple of the median distance, got none; [1.0] is the median itself")
    grids = [list(ParameterGrid(dict(grid or {}))) for grid in (features_grid, model_grid)]
    for name, way_out in OWN.items():
        if any(name in options for options in grids[0]):
            raise ValueError(f"features_grid must not hold {name!r}; {way_out}")
    rng = _validate.generator(rng)
    parts = _as_list(bags, features.group)
    y = np.asarray(y)
    if len(y) != len(parts):
        raise ValueError(f"y must hold a value for each of the {len(parts)} bags, got shape {y.shape}")
    kept, aside = train_test_split(
        np.arange(len(parts)), test_size=share, random_state=int(rng.integers(2**31)), stratify=y if is_classifier(model) else None
    )
    seed, tried, report = int(rng.integers(2**31)), [], Progress(progress)
    stage = report.stage("validation")
    try:
        for k, options in enumerate(grids[0]):
            vectors = clone(features).set_params(**options, output="distance", group=None, random_state=seed)
            known = vectors.fit_transform([parts[i] for i in kept])
            unknown = vectors.transform([parts[i] for i in aside])
            draw = np.random.default_rng(seed)
            median = kernel_width_of("median", known, draw)
            with single_threaded_blas():
                unit = frequencies_of(known.shape[1], vectors.n_components, vectors.orthogonal, 1.0, draw)
            for j, factor in enumerate(factors):
                with calm_blas(len(known)):
                    known_waves, unknown_waves = (fourier_features(each, unit / (factor * median)) for each in (known, unknown))
                scores = _scores(model, grids[1], scoring, known_waves, y[kept], unknown_waves, y[aside])
                tried += [
                    ({**options, "kernel_width": factor * median}, own, score) for own, score in zip(grids[1], scores, strict=True)
                ]
                stage(k * len(factors) + j + 1, len(grids[0]) * len(factors))
    finally:
        report.close()
    best = max(tried, key=lambda each: -np.inf if np.isnan(each[2]) else each[2])
    if np.isnan(best[2]):
        raise ValueError(f"validation={share:g} sets {len(aside)} bags aside, on which every score is NaN; set more aside")
    chosen = clone(features).set_params(**best[0], output="features", random_state=seed)
    pipeline = Pipeline([("features", chosen), ("model", clone(model).set_params(**best[1]))])
    pipeline.fit(parts if features.group is None else bags, y)
    return Tuned(*best, tried, pipeline)


def _as_list(bags: Any, group: Any) -> list[Any]:
    if group is None and isinstance(bags, Mapping):
        return list(bags.values())
    return list(bags) if group is None and isinstance(bags, list | tuple) else _validate.bags(bags, group, by="group")[1]


def _scores(model: Any, grid: list[dict[str, Any]], scoring: Any, X: Array, y: Any, X_aside: Array, y_aside: Any) -> list[float]:
    """The score of each set of the model's parameters."""
    alphas = [own.get("alpha", model.alpha) for own in grid] if type(model) is Ridge else []
    alone = all(set(own) <= {"alpha"} for own in grid) and np.ndim(y) == 1 and all(np.ndim(alpha) == 0 for alpha in alphas)
    if alphas and alone and scoring is None and model.fit_intercept and not model.positive:
        return [float(r2_score(y_aside, each)) for each in ridge_predictions(X, y, X_aside, alphas)]
    score = check_scoring(model, scoring)
    return [float(score(clone(model).set_params(**own).fit(X, y), X_aside, y_aside)) for own in grid]


def ridge_predictions(X: Array, y: Array, queries: Array, alphas: list[float]) -> list[Array]:
    """Predictions of ridge regression with an intercept for several penalties, by one eigendecomposition of the smaller side."""
    centre, level = X.mean(axis=0), float(np.mean(y))
    X, queries, target = X - centre, queries - centre, y - level
    with calm_blas(min(X.shape)):
        if X.shape[1] <= X.shape[0]:
            values, vectors = eigh(X.T @ X, overwrite_a=True, check_finite=False)
            left, right = queries @ vectors, vectors.T @ (X.T @ target)
        else:
            values, vectors = eigh(X @ X.T, overwrite_a=True, check_finite=False)
            left, right = (queries @ X.T) @ vectors, vectors.T @ target
        values = np.maximum(values, 0.0)
        return [level + left @ (right / (values + alpha)) for alpha in alphas]


def calm_blas(size: int) -> AbstractContextManager[None]:
    """One thread for small matrices, for which several mostly wait for each other, long where others use the machine too."""
    return single_threaded_blas() if size <= SMALL else nullcontext()


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else repr(value)
