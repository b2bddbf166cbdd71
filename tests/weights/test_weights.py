"""Weights: each kind against its definition, and the dropping of redundant atoms."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import reference
from reduset import Gaussian, Laplacian, compress
from reduset._engine.factor import cholesky_dropping
from reduset.stream import StreamCompressor
from reduset.weights import (
    KINDS,
    WEIGHTINGS,
    FactoredSpan,
    IterativeSpan,
    is_signed,
    project_onto_simplex,
    simplex_by_exchange,
    weights_from,
)


def example(m=12, n=200, d=2, h=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    kernel = Gaussian(h)
    kappa = kernel.product_sums(X, np.full(n, 1 / n), X[:m])
    return X, kernel, FactoredSpan(kernel, X[:m].copy(), kappa), kernel.product_gram(X[:m], X[:m]), kappa


def objective(K, kappa, alpha):
    return float(alpha @ K @ alpha - 2 * kappa @ alpha)


def test_free_weights_solve_the_normal_equations():
    _, _, span, K, kappa = example()
    alpha = span.weights("free", 1.0, 12)
    np.testing.assert_allclose(K @ alpha, kappa, rtol=1e-9)


@pytest.mark.parametrize("size", [1, 5, 12])
def test_every_prefix_is_solved_by_the_one_factor(size):
    _, _, span, K, kappa = example()
    np.testing.assert_allclose(span.weights("free", 1.0, size), np.linalg.solve(K[:size, :size], kappa[:size]), rtol=1e-7)
    assert span.energy(size) == pytest.approx(kappa[:size] @ np.linalg.solve(K[:size, :size], kappa[:size]), rel=1e-10)
    assert span.energy(size) + span.energy_after(size) == pytest.approx(span.energy(12), rel=1e-12)


def test_sum_to_one_is_equation_8():
    _, _, span, K, kappa = example()
    ones = np.ones(12)
    inverse = np.linalg.inv(K)
    expected = inverse @ (kappa + (1 - ones @ inverse @ kappa) / (ones @ inverse @ ones) * ones)
    alpha = span.weights("sum_to_one", 1.0, 12)
    np.testing.assert_allclose(alpha, expected, rtol=1e-7)
    assert alpha.sum() == pytest.approx(1)
    assert span.excess_of_sum(1.0)[-1] == pytest.approx(span.excess(alpha, 12), rel=1e-6)


def test_clipped_weights_are_the_free_ones_without_the_negative():
    _, _, span, _, _ = example(h=2.0)
    free = span.weights("free", 1.0, 12)
    assert free.min() < 0
    clipped = span.weights("clipped", 1.0, 12)
    np.testing.assert_allclose(clipped, np.maximum(free, 0) / np.maximum(free, 0).sum())


@pytest.mark.parametrize("mass", [1.0, 2.5])
def test_the_second_weights_of_2014_are_those_of_equation_8_clipped_and_rescaled(mass):
    X, kernel, span, _, _ = example(h=2.0)
    expected = reference.sum_to_one_clipped_weights(kernel, X, np.full(200, 1 / 200), X[:12], mass)
    assert (expected == 0).sum() > 2  # some were negative
    np.testing.assert_allclose(span.weights("sum_to_one_clipped", mass, 12), expected, atol=1e-6 * mass)


def test_the_two_clipped_kinds_of_2014_differ():
    _, _, span, _, _ = example(h=2.0)
    first, second = (span.weights(kind, 1.0, 12) for kind in ("clipped", "sum_to_one_clipped"))
    assert np.abs(first - second).max() > 1e-3
    assert first.sum() == pytest.approx(1)
    assert second.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_named_where_users_look_for_it(kind):
    page = Path(__file__).parents[2] / "docs" / "compress.md"
    texts = [compress.__doc__, StreamCompressor.__doc__, page.read_text(encoding="utf-8")]
    assert all(f'"{kind}"' in text for text in texts)


@pytest.mark.parametrize("kind", KINDS)
def test_the_registry_states_which_weights_may_be_negative(kind):
    _, _, span, _, _ = example(h=2.0)
    assert (span.weights(kind, 1.0, 12).min() < 0) == WEIGHTINGS[kind].signed


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12), st.floats(0.1, 3))
def test_the_simplex_projection_is_the_nearest_point(values, mass):
    vector = np.array(values)
    nearest = project_onto_simplex(vector, mass)
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(mass)
    rng = np.random.default_rng(0)
    for other in mass * rng.dirichlet(np.ones(len(vector)), size=20):
        assert np.sum((vector - nearest) ** 2) <= np.sum((vector - other) ** 2) + 1e-9


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("mass", [1.0, 2.5])
def test_the_quadratic_program_is_solved(bandwidth, mass):
    _, _, span, K, kappa = example(h=bandwidth)
    alpha = span.weights("simplex", mass, 12)
    assert alpha.min() >= 0
    assert alpha.sum() == pytest.approx(mass)
    other = minimize(
        lambda a: objective(K, kappa, a),
        np.full(12, mass / 12),
        jac=lambda a: 2 * (K @ a - kappa),
        bounds=[(0, None)] * 12,
        constraints={"type": "eq", "fun": lambda a: a.sum() - mass},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert objective(K, kappa, alpha) <= objective(K, kappa, other.x) + 1e-9


def test_excess_is_what_other_weights_lose():
    _, _, span, K, kappa = example()
    best = span.weights("free", 1.0, 12)
    for alpha in (np.zeros(12), np.full(12, 1 / 12), best):
        assert span.excess(alpha, 12) == pytest.approx(objective(K, kappa, alpha) - objective(K, kappa, best), abs=1e-12)


@pytest.mark.parametrize("repeats", [1, 30])
def test_duplicates_are_dropped_and_named(repeats):
    rng = np.random.default_rng(1)
    atoms = rng.normal(size=(20, 2))
    doubled = np.concatenate([atoms, np.repeat(atoms[:3], repeats, axis=0)])
    kernel = Gaussian(0.5)
    span = FactoredSpan(kernel, doubled, kernel.product_sums(atoms, np.full(20, 0.05), doubled))
    assert span.kept[:20].all()
    assert not span.kept[20:].any()
    np.testing.assert_allclose(span.weights("free", 1.0, span.size), 0.05, rtol=1e-6)


def test_a_factor_with_dropped_rows_still_factors_what_is_left():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(150, 30))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    K = A @ A.T  # rank 30, in three blocks of 64
    L, kept = cholesky_dropping(K)
    assert kept.sum() == 30
    assert kept[:30].all()
    np.testing.assert_allclose(L @ L.T, K[np.ix_(kept, kept)], atol=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(1.0)], ids=repr)
def test_conjugate_gradients_agree_with_the_factor(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    atoms = X[:300].copy()
    kappa = kernel.product_sums(X, np.full(3000, 1 / 3000), atoms)
    by_factor, by_steps = FactoredSpan(kernel, atoms, kappa), IterativeSpan(kernel, atoms, kappa)
    for kind in [kind for kind in KINDS if kind != "simplex"]:
        weights = by_steps.weights(kind, 1.0, 300)
        assert by_factor.excess(weights, 300) == pytest.approx(
            by_factor.excess(by_factor.weights(kind, 1.0, 300), 300), rel=1e-5, abs=1e-9 * by_factor.energy(300)
        )
    assert by_steps.energy(300) == pytest.approx(by_factor.energy(300), rel=1e-8)
    assert by_steps.energy_after(100) == pytest.approx(by_factor.energy_after(100), rel=1e-4)


def test_many_atoms_go_to_conjugate_gradients(monkeypatch):
    monkeypatch.setattr("reduset.weights.span.CHOLESKY_UP_TO", 50)
    from reduset import compress

    X = np.random.default_rng(0).normal(size=(1500, 2))
    many = compress(X, Gaussian("scott"), size=120, select="kcenter", rng=0)
    monkeypatch.undo()
    plain = compress(X, Gaussian("scott"), size=120, select="kcenter", rng=0)
    assert many.certificate.relative_error == pytest.approx(plain.certificate.relative_error, rel=1e-4)
    assert many.at(40).certificate.relative_error == pytest.approx(plain.at(40).certificate.relative_error, rel=1e-4)
    assert many.path.sizes[-1] == 120
    with pytest.raises(ValueError, match="simplex"):
        many._prefixes.span.weights("simplex", 1.0, 120)


def test_mass_must_be_positive_for_the_simplex():
    _, _, span, _, _ = example()
    for kind in [kind for kind in KINDS if not is_signed(kind)]:
        with pytest.raises(ValueError, match="sum to more than 0"):
            span.weights(kind, 0.0, 12)


@given(seed=st.integers(0, 10_000), m=st.integers(1, 30), mass=st.sampled_from([0.1, 1.0, 50.0]), scaled=st.booleans())
@settings(max_examples=60, deadline=None)
def test_weights_on_the_simplex_by_exchange_are_those_of_the_quadratic_program(seed, m, mass, scaled):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    K = Gaussian(0.7).product_gram(X, X) + 1e-9 * np.eye(m)
    kappa = Gaussian(0.7).product_sums(rng.normal(size=(50, 2)), np.full(50, mass / 50), X)
    if scaled:  # bumps of any norm
        norms = np.exp(rng.uniform(-3, 3, m))
        K, kappa = K * norms * norms[:, None], kappa * norms
    found = simplex_by_exchange(K, kappa, mass, rng.random(m) < 0.5)
    assert found is not None
    assert found.min() >= 0
    assert found.sum() == pytest.approx(mass, rel=1e-9)
    L = np.linalg.cholesky(K)
    known = weights_from(L, np.linalg.solve(L, kappa), "simplex", mass)
    scale = abs(objective(K, kappa, known))
    assert objective(K, kappa, found) <= objective(K, kappa, known) + 1e-9 * scale


def test_an_exchange_that_does_not_settle_says_so():
    K, kappa = np.ones((3, 3)), np.ones(3)  # one bump three times: no factor
    assert simplex_by_exchange(K, kappa, 1.0, np.ones(3, bool)) is None
