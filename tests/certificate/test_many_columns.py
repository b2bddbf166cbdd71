"""Few rows in very many columns: the work is that of the space that the rows span, and the error is measured as in that space."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, Matern, Student, compress
from reduset.certificate.by_frequencies import MAX_AXES, FrequencyProbe
from reduset.certificate.rule import ExactProbe

COLUMNS = 4000
KERNELS = [Gaussian(100.0), Laplacian(100.0), Laplacian(10_000.0, metric="cityblock"), Matern(100.0), Student(100.0)]


@pytest.fixture
def largest(monkeypatch):
    """The most entries of a matrix that was factorised, as a list of one number."""
    seen = [0]
    for name in ("eigh", "svd", "eigvalsh", "qr"):
        plain = getattr(np.linalg, name)

        def watched(matrix, *arguments, plain=plain, **options):
            seen[0] = max(seen[0], np.size(matrix))
            return plain(matrix, *arguments, **options)

        monkeypatch.setattr(np.linalg, name, watched)
    return seen


# few rows of many columns could be a table on its side, of which is warned: here they are meant
@pytest.mark.filterwarnings("ignore:X has 5 rows")
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("size", [3, 5])
def test_no_matrix_of_columns_by_columns_is_factorised(kernel, size, largest):
    X = np.random.default_rng(0).normal(size=(5, COLUMNS))
    small = compress(X, kernel, size=size, rng=0)
    assert largest[0] <= X.size
    assert (small.certificate.relative_error < 1e-6) == (size == 5)


@pytest.mark.slow
def test_many_rows_in_many_columns_are_looked_at_by_some_of_them(largest):
    X = np.random.default_rng(0).normal(size=(3000, 2100))
    probe = FrequencyProbe(KernelMean.from_samples(X, Gaussian(50.0)), 0.95, np.random.default_rng(0))
    assert probe._bank(8, 100)[0].climbing.shape == (8, 2100)
    assert largest[0] <= 1000 * 2100


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), Matern(1.0)], ids=repr)
def test_the_error_is_measured_as_in_the_space_that_the_rows_span(kernel):
    rng = np.random.default_rng(0)
    few = rng.normal(size=(60, 3))
    basis = np.linalg.qr(rng.normal(size=(500, 3)))[0]
    measured = []
    for X in (few, few @ basis.T):
        mean = KernelMean.from_samples(X, kernel)
        arguments = X[:10], np.full(10, 0.1), kernel.product_sums(mean.atoms, mean.weights, X[:10])
        truth = ExactProbe(mean, None).measure(*arguments).square
        seen = [FrequencyProbe(mean, 0.95, np.random.default_rng(seed)).measure(*arguments) for seed in range(20)]
        measured.append(np.median([each.square for each in seen]) / truth)
        assert np.mean([each.low <= truth <= each.high for each in seen]) >= 0.8
    assert np.allclose(measured, 1.0, atol=0.1)


def test_ladders_along_axes_climb_the_widest_columns_where_these_are_many():
    X = np.random.default_rng(0).normal(size=(20, 2 * MAX_AXES)) * np.linspace(1, 2, 2 * MAX_AXES)
    mean = KernelMean.from_samples(X, Laplacian(1000.0, metric="cityblock"))
    climbing = FrequencyProbe(mean, 0.95, np.random.default_rng(0))._bank(8, 5)[0].climbing
    climbs = np.flatnonzero(climbing.any(axis=0))
    assert len(climbs) == MAX_AXES
    assert climbs.mean() > MAX_AXES
