"""Calibrated weights meet their constraints, stay within their bounds, and move as little as possible."""

import numpy as np
import pytest
from scipy.optimize import minimize

from reduset.sketching.calibration import BOUND, EVERY, calibrate_weights
from reduset.sketching.summaries import LEVELS, summarise

DECILES = np.arange(1, 10) / 10


def columns(n=20_000, seed=0):
    """Normal, skewed, whole, 0/1, and constant columns."""
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.normal(5, 2, n), rng.lognormal(0, 0.7, n), rng.poisson(3, n), rng.random(n) < 0.2, np.full(n, 7.0)]
    ).astype(float)


def some_rows(X, m, seed=0):
    rng = np.random.default_rng(seed)
    return X[rng.choice(len(X), m, replace=False)], rng.uniform(0.8, 1.2, m) / m


def test_constraints_are_met_and_bounds_kept():
    X = columns()
    rows, start = some_rows(X, 1000)
    found = calibrate_weights(rows, start, summarise(X, None))
    assert found.exact == EVERY
    assert found.omitted == ()
    w, total = found.weights, start.sum()
    assert w.sum() == pytest.approx(total, rel=1e-12)
    mean = w @ rows / total
    assert np.allclose(mean, X.mean(axis=0), rtol=1e-9)
    spread = np.sqrt(w @ np.square(rows - mean) / total)
    assert np.allclose(spread, X.std(axis=0), rtol=1e-9, atol=1e-12)
    for j in range(3):
        for q in np.quantile(X[:, j], DECILES, method="inverted_cdf"):
            assert w[rows[:, j] <= q].sum() / total == pytest.approx(np.mean(X[:, j] <= q), rel=1e-9)
    assert (w >= start / BOUND * (1 - 1e-12)).all()
    assert (w <= start * BOUND * (1 + 1e-12)).all()


def test_weights_are_the_nearest_ones_that_meet_the_constraints():
    """Against a general solver, on a problem small enough for it."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 2))
    rows, start = some_rows(X, 40, 3)
    found = calibrate_weights(rows, start, summarise(X, None))
    assert found.exact == EVERY[:2]
    means, spreads, total = X.mean(axis=0), X.std(axis=0), start.sum()
    z = (rows - means) / spreads
    A = np.concatenate([np.ones((1, 40)), z.T, (z**2 - 1).T])
    b = np.array([total, 0, 0, 0, 0])
    by_hand = minimize(
        lambda g: start @ (g - 1) ** 2,
        np.ones(40),
        jac=lambda g: 2 * start * (g - 1),
        bounds=[(1 / BOUND, BOUND)] * 40,
        constraints={"type": "eq", "fun": lambda g: A @ (start * g) - b, "jac": lambda g: A * start},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert by_hand.success
    assert np.allclose(found.weights / start, by_hand.x, atol=1e-4)


def test_units_and_order_do_not_matter():
    X = columns()[:, :3]
    rows, start = some_rows(X, 600)
    first = calibrate_weights(rows, start, summarise(X, None)).weights
    factor, shift = np.array([1000.0, 1e-3, 2.0]), np.array([5.0, -3.0, 100.0])
    moved = calibrate_weights(rows * factor + shift, start, summarise(X * factor + shift, None)).weights
    assert np.allclose(moved, first, rtol=1e-4)
    order = np.random.default_rng(0).permutation(600)
    assert np.allclose(calibrate_weights(rows[order], start[order], summarise(X, None)).weights, first[order], rtol=1e-6)


def test_rows_that_have_the_summaries_keep_their_weights():
    X = columns(2000)
    found = calibrate_weights(X, np.full(2000, 1 / 2000), summarise(X, None))
    assert found.exact == EVERY
    assert np.allclose(found.weights, 1 / 2000, rtol=1e-9)


def test_few_rows_get_fewer_constraints():
    X = np.random.default_rng(0).normal(size=(5000, 6))
    for m, exact in ((1000, EVERY), (250, (*EVERY[:2], "medians")), (60, EVERY[:2]), (25, EVERY[:1]), (10, ())):
        rows, start = some_rows(X, m, 2)
        found = calibrate_weights(rows, start, summarise(X, None))
        assert found.exact == exact
        assert set(found.omitted) == set(EVERY) - set(exact)
        assert found.weights.sum() == pytest.approx(start.sum())


def test_a_column_that_no_weights_match_is_omitted_alone():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    rows = X[X[:, 0] > 0][:500]  # whose mean cannot be 0 in the first column
    start = np.full(500, 1 / 500)
    found = calibrate_weights(rows, start, summarise(X, None))
    assert set(found.exceptions) >= {(0, "mean"), (0, "standard deviation")}
    assert not {(1, "mean"), (1, "standard deviation")} & set(found.exceptions)
    mean = found.weights @ rows
    assert mean[1] == pytest.approx(X[:, 1].mean(), abs=1e-9)
    assert np.sqrt(found.weights @ np.square(rows[:, 1] - mean[1])) == pytest.approx(X[:, 1].std(), rel=1e-9)
    assert (found.weights <= start * BOUND * (1 + 1e-12)).all()


def test_a_category_with_one_row_of_small_weight_starts_at_its_mass():
    """Its row would need 200 times its weight."""
    X = columns()
    X[:, 4] = np.arange(len(X)) < 40  # a category of 0.2 %
    rows, start = some_rows(X[40:], 800)
    rows, start = np.concatenate([rows, X[:1]]), np.append(start, 1e-5)
    found = calibrate_weights(rows, start, summarise(X, None))
    assert found.exact == EVERY
    assert found.exceptions == ()
    mean = found.weights @ rows / start.sum()
    assert np.allclose(mean, X.mean(axis=0), rtol=1e-9)
    assert found.weights[-1] / start.sum() == pytest.approx(40 / len(X))
    for q in np.quantile(X[:, 0], DECILES, method="inverted_cdf"):
        assert found.weights[rows[:, 0] <= q].sum() / start.sum() == pytest.approx(np.mean(X[:, 0] <= q), rel=1e-9)


def test_quantiles_are_omitted_before_moments():
    """No row but one lies in the upper tail, so that it cannot have its mass and its share of the variance."""
    rng = np.random.default_rng(3)
    X = rng.lognormal(0, 1.2, (20_000, 1))
    rows, start = some_rows(X[X[:, 0] < np.quantile(X, 0.995)], 600)
    rows, start = np.concatenate([rows, [[np.quantile(X, 0.9995)]]]), np.append(start, 1 / 600)
    found = calibrate_weights(rows, start, summarise(X, None))
    assert found.exact[:2] == EVERY[:2]
    assert all("quantile" in statistic for _, statistic in found.exceptions)
    mean = found.weights @ rows / start.sum()
    assert mean == pytest.approx(X.mean(axis=0), rel=1e-9)
    assert np.sqrt(found.weights @ np.square(rows - mean) / start.sum()) == pytest.approx(X.std(axis=0), rel=1e-9)


def test_rows_without_any_feasible_column_keep_their_weights():
    X = np.random.default_rng(0).normal(size=(5000, 1))
    rows = X[X[:, 0] > 0][:500]
    found = calibrate_weights(rows, np.full(500, 1 / 500), summarise(X, None))
    assert found.exact == ()
    assert found.omitted == EVERY
    assert (found.weights == 1 / 500).all()


def test_groups_keep_their_masses():
    X = columns()
    rows, start = some_rows(X, 900)
    groups = np.arange(900) % 3
    found = calibrate_weights(rows, start, summarise(X, None), groups)
    assert found.exact == EVERY
    assert np.allclose(np.bincount(groups, found.weights), np.bincount(groups, start), rtol=1e-9)


def test_columns_that_repeat_each_other():
    X = columns()[:, [0, 0, 3]]
    X = np.column_stack([X, 1 - X[:, 2]])
    rows, start = some_rows(X, 400)
    found = calibrate_weights(rows, start, summarise(X, None))
    assert "means" in found.exact
    assert np.allclose(found.weights @ rows / start.sum(), X.mean(axis=0), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_summaries_are_those_of_repeated_rows(weighted):
    rng = np.random.default_rng(0)
    X = columns(300)
    weights = rng.integers(0, 4, 300).astype(float) if weighted else None
    repeated = X if weights is None else np.repeat(X, weights.astype(int), axis=0)
    found = summarise(X, weights)
    assert np.allclose(found.means, repeated.mean(axis=0))
    assert np.allclose(found.spreads, repeated.std(axis=0))
    assert np.array_equal(found.minima, repeated.min(axis=0))
    assert np.array_equal(found.maxima, repeated.max(axis=0))
    assert found.binary.tolist() == [False, False, False, True, True]
    at = np.quantile(repeated, LEVELS, axis=0, method="inverted_cdf")
    assert np.array_equal(found.quantiles(LEVELS), at)
    assert np.allclose(found.below(LEVELS), (repeated[None] <= at[:, None]).mean(axis=1))
    with pytest.raises(ValueError, match="levels must be among"):
        found.quantiles(np.array([0.33]))


def test_a_category_without_a_row_costs_one_other_proportion_and_nothing_else():
    rng = np.random.default_rng(0)
    kinds = rng.choice(4, 20_000, p=[0.5, 0.3, 0.1999, 0.0001])
    X = np.column_stack([rng.normal(size=20_000), *(kinds == k for k in range(4))]).astype(float)
    able = np.flatnonzero(kinds < 3)
    rows = X[rng.choice(able, 500, replace=False)]
    found = calibrate_weights(rows, np.full(500, 1 / 500), summarise(X, None))
    assert set(found.exceptions) == {(1, "proportion"), (4, "proportion")}  # the largest category, and the one without a row
    assert found.exact == EVERY
    others = [0, 2, 3]
    assert np.allclose(found.weights @ rows[:, others], X[:, others].mean(axis=0), atol=1e-9)


def test_standard_deviations_of_heavy_tails_are_omitted_before_quantiles():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.pareto(1.3, 50_000), rng.normal(size=50_000)])
    rows = X[rng.choice(np.argsort(X[:, 0])[:-20], 1000, replace=False)]  # without the largest values
    found = calibrate_weights(rows, np.full(1000, 1e-3), summarise(X, None))
    assert (0, "standard deviation") in found.exceptions
    assert not any("quantile" in statistic for _, statistic in found.exceptions)
    for q in np.quantile(X[:, 0], DECILES, method="inverted_cdf"):
        assert found.weights[rows[:, 0] <= q].sum() == pytest.approx(np.mean(X[:, 0] <= q), abs=1e-9)
