"""Components as changes of a start: the compiled way there and back against matrices written out."""

import numpy as np
import pytest

from reduset._engine import from_lower_rows, from_whitened, whitened_gradients
from reference_mixture import covariances_of

DIMENSIONS = pytest.mark.parametrize("d", [1, 2, 3, 5])
WIDEST = 2.0


def placed(variables, means, root):
    m, d = means.shape
    centres, factors, entries, even = np.empty((m, d)), np.zeros((m, d, d)), np.empty((m, d * (d + 1) // 2)), np.empty(m)
    from_whitened(variables, means, root, WIDEST, centres, factors, entries, even)
    return centres, factors, entries, even


def start_of(d, m=4, spread=0.5):
    rng = np.random.default_rng(d)
    root = np.linalg.cholesky(covariances_of(rng, m, d, "full"))
    return spread * rng.normal(size=(m, d + d * (d + 1) // 2)), rng.normal(size=(m, d)), root, rng


def triangle(row, d):
    T = np.zeros((d, d))
    T[np.tril_indices(d)] = np.clip(row, -WIDEST, WIDEST)
    T[np.diag_indices(d)] = np.exp(np.diagonal(T))
    return T


@DIMENSIONS
@pytest.mark.parametrize("spread", [0.5, 3.0], ids=["within", "beyond"])
def test_places_are_those_of_the_definition(d, spread):
    variables, means, root, _ = start_of(d, spread=spread)
    centres, factors, entries, even = placed(variables, means, root)
    for i, row in enumerate(variables):
        L = root[i] @ triangle(row[d:], d)
        H = L @ L.T
        np.testing.assert_allclose(centres[i], means[i] + root[i] @ row[:d], rtol=1e-12)
        np.testing.assert_allclose(factors[i], L, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(entries[i], H[np.tril_indices(d)], rtol=1e-12, atol=1e-14)
        assert even[i] == pytest.approx(np.prod(np.diagonal(L) ** 2 / np.diagonal(H)), rel=1e-12)


@DIMENSIONS
def test_the_least_eigenvalue_of_a_correlation_is_bounded_by_its_determinant(d):
    variables, means, root, _ = start_of(d, m=50, spread=2.0)
    _, _, entries, even = placed(variables, means, root)
    H = from_lower_rows(entries, d)
    widths = np.sqrt(np.diagonal(H, axis1=1, axis2=2))
    values = np.linalg.eigvalsh(H / widths[:, :, None] / widths[:, None, :])
    assert (values[:, 0] >= even / np.e * (1 - 1e-9)).all()


@DIMENSIONS
def test_slopes_are_those_of_a_function_of_the_mean_and_the_covariance(d):
    variables, means, root, rng = start_of(d)
    by_mean, by_covariance = rng.normal(size=means.shape), rng.normal(size=(len(means), d, d))
    by_covariance += by_covariance.transpose(0, 2, 1)

    def value(variables):
        centres, _, entries, _ = placed(variables, means, root)
        return (by_mean * centres).sum() + (by_covariance * from_lower_rows(entries, d)).sum()

    found = np.empty_like(variables)
    lower = np.tril_indices(d)
    whitened_gradients(root, placed(variables, means, root)[1], by_mean, np.ascontiguousarray(by_covariance[:, *lower]), found)
    step = 1e-6
    for place in np.ndindex(*variables.shape):
        change = np.zeros_like(variables)
        change[place] = step
        expected = (value(variables + change) - value(variables - change)) / (2 * step)
        assert found[place] == pytest.approx(expected, rel=1e-6, abs=1e-6)
