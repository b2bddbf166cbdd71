"""Size and tolerance give the resolution: the finest bandwidth at which so many atoms lose at most so much."""

import numpy as np
import pytest

from reduset import FunctionKernel, Gaussian, KernelMean, NotReachedWarning, bandwidth, compress
from reduset.compression import resolution


def clumps(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return 0.3 * rng.normal(size=(n, d)) + 2 * rng.normal(size=(6, d))[rng.integers(0, 6, n)]


@pytest.mark.parametrize(
    "how", [{}, {"weights": "free"}, {"weights": "counts"}, {"select": "kmeans", "refine": 5}, {"select": "greedy"}], ids=repr
)
@pytest.mark.parametrize("d", [1, 3])
def test_the_tolerance_is_kept_there_and_at_every_coarser_scale(how, d):
    X = clumps(900, d)
    small = compress(X, size=60, tol=0.05, rng=0, **how)
    assert small.reached
    assert small.resolution == small.mean.kernel.bandwidth
    for width in small.resolution * 2.0 ** np.arange(0, 5, 0.5):
        full = KernelMean.from_samples(X, Gaussian(width))
        assert full.distance(KernelMean(small.mean.atoms, small.mean.weights, Gaussian(width))) <= 0.05 * full.norm() * (1 + 1e-9)


def test_there_is_not_much_that_is_finer():
    X = clumps(6000, 2)
    small = compress(X, size=100, tol=0.05, rng=0)
    finer = compress(X, Gaussian(0.8 * small.resolution), size=100, select="kmeans", weights="simplex", rng=0)
    assert small.certificate.interval[1] <= 0.05 < finer.certificate.interval[1]
    more = compress(X, size=300, tol=0.05, rng=0)
    looser = compress(X, size=100, tol=0.1, rng=0)
    assert more.resolved.random_rows > 2 * more.resolution
    assert more.resolution < small.resolution
    assert looser.resolution < small.resolution


def test_nothing_said_is_a_thousand_atoms_and_five_per_cent(monkeypatch):
    assert (resolution.SIZE, resolution.TOL) == (1000, 0.05)
    monkeypatch.setattr(resolution, "SIZE", 60)
    small = compress(clumps(900, 2), rng=0)
    assert small.selected <= 60
    assert small.resolved.tol == 0.05
    assert small.certificate.negative_mass == 0
    few = compress(clumps(40, 2), rng=0)
    assert few.certificate.relative_error < 1e-6


def test_the_result_says_how_fine_it_sees():
    text = str(compress(clumps(3000, 2), size=50, tol=0.05, rng=0))
    assert "the median distance, are within 5 %; 50 random rows lose more at all scales" in text
    assert compress(clumps(3000, 2), size=50, tol=0.05, rng=0).at(20).resolution is None


def test_a_rare_group_is_kept():
    rng = np.random.default_rng(0)
    X = np.concatenate([clumps(9950, 2), [9.0, 9.0] + 0.2 * rng.normal(size=(50, 2))])
    small = compress(X, size=200, tol=0.05, rng=0)
    kept = float(small.mean.weights[(small.mean.atoms > 7).all(axis=1)].sum())
    assert kept == pytest.approx(0.005, rel=0.2)


@pytest.mark.parametrize(
    "X",
    [
        np.column_stack([clumps(300, 2), np.ones(300)]),
        np.random.default_rng(0).integers(0, 2, size=(300, 2)),
        np.random.default_rng(0).integers(0, 50, size=(300, 3)),
        np.random.default_rng(0).normal(size=(20, 60)),
        1e-8 * clumps(300, 2),
        1e9 + clumps(300, 2),
    ],
    ids=["constant column", "two values", "integers", "more columns than rows", "small", "far from 0"],
)
def test_data_of_every_kind_have_a_resolution(X):
    small = compress(X, size=15, tol=0.1, rng=0)
    assert small.reached
    assert small.certificate.interval[1] <= 0.1
    assert 0 < small.resolution < np.inf


def test_of_one_distinct_row_nothing_is_lost():
    with pytest.warns(UserWarning, match="all points coincide"):
        small = compress(np.ones((30, 2)), size=3, tol=0.1, rng=0)
    assert (small.size, small.reached) == (1, True)


def test_a_tolerance_beyond_any_bandwidth_is_told():
    with pytest.warns(NotReachedWarning, match="give more atoms, or a larger tol"):
        small = compress(clumps(300, 2), size=1, tol=1e-9, rng=0)
    assert small.resolution is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": Gaussian(1.0), "size": 3, "tol": 0.1}, r"are three, of which two give the third: .* got size=3 and tol=0.1"),
        ({"kernel": Gaussian(1.0)}, "so give one of size and tol"),
        ({"kernel": FunctionKernel("rbf", gamma=1.0), "size": 3, "tol": 0.1}, "has no bandwidth to search for, so got size=3"),
        ({"size": 3, "tol": 0.0}, "tol must be above 0"),
        ({"size": 31, "tol": 0.1}, "size must be"),
    ],
)
def test_what_cannot_be_searched_for_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        compress(clumps(30, 2), rng=0, **options)
    with pytest.raises(ValueError, match="of which two give the third"):
        compress(KernelMean.from_samples(clumps(30, 2)), size=3, tol=0.1)


def test_the_median_distance_is_said():
    X = clumps(500, 2)
    assert compress(X, size=20, tol=0.1, rng=0).resolved.median == pytest.approx(bandwidth.median(X))
