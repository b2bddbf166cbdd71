"""Size and tolerance give the resolution: the finest bandwidth at which so many atoms lose at most so much."""

import numpy as np
import pytest

from reduset import FunctionKernel, Gaussian, KernelMean, Matern, NotReachedWarning, bandwidth, compress
from reduset.certificate.by_scale import ExactScales
from reduset.compression import plan
from reduset.select import Selector
from reduset.select.contract import Traversal


def clumps(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return 0.3 * rng.normal(size=(n, d)) + 2 * rng.normal(size=(6, d))[rng.integers(0, 6, n)]


def small_atoms(result):
    """A selector of the atoms that a result has."""

    class Given(Selector):
        def begin(self, mean, rng):
            return Points()

    class Points(Traversal):
        nested, indices, points = False, None, result.mean.atoms

        def extend(self, size, report=None):
            pass

    return Given()


@pytest.mark.parametrize(
    "how", [{}, {"weights": "free"}, {"weights": "simplex"}, {"select": "kmeans", "refine": 5}, {"select": "greedy"}], ids=repr
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
    assert (plan.SIZE, plan.TOL) == (1000, 0.05)
    monkeypatch.setattr(plan, "SIZE", 60)
    small = compress(clumps(900, 2), rng=0)
    assert small.selected <= 60
    assert small.resolved.tol == 0.05
    assert small.certificate.negative_mass == 0
    few = compress(clumps(40, 2), rng=0)
    assert few.certificate.relative_error < 1e-6


def test_the_result_says_how_fine_it_sees():
    text = str(compress(clumps(3000, 2), size=50, tol=0.05, rng=0))
    assert "(50 random rows: above 5 % at every bandwidth)" in text
    assert compress(clumps(3000, 2), size=50, tol=0.05, rng=0).at(20).resolution is None


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("d", [2, 6, 12])
@pytest.mark.parametrize("spread", [0.05, 0.5])
def test_a_rare_group_keeps_its_mass(d, spread):
    rng = np.random.default_rng(d)
    X = np.concatenate([clumps(9950, d), 9 + spread * rng.normal(size=(50, d))])
    small = compress(X, size=200, tol=0.05, rng=0)
    kept = float(small.mean.weights[(small.mean.atoms > 6).all(axis=1)].sum())
    assert kept == pytest.approx(0.005, rel=0.12)
    assert small.mean.mass == pytest.approx(1)
    assert small.certificate.negative_mass == 0


@pytest.mark.slow
def test_a_group_of_less_than_one_thinned_row_is_not_missed():
    masses = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = np.concatenate([rng.normal(size=(4970, 12)), 9 + 0.1 * rng.normal(size=(30, 12))])
        small = compress(X, size=100, tol=0.1, rng=seed)
        assert small.selection == "Thinning"
        assert len(np.unique(small.indices)) == small.size
        masses.append(float(small.mean.weights[(small.mean.atoms > 6).all(axis=1)].sum()))
    np.testing.assert_allclose(masses, 30 / 5000, rtol=0.12)


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


@pytest.mark.slow
@pytest.mark.parametrize("n", [400, 4200], ids=["exact", "by waves"])
def test_in_many_dimensions_no_scale_is_worse_than_random_rows(n):
    X = np.random.default_rng(0).normal(size=(n, 15))
    small = compress(X, size=n // 8, tol=0.1, rng=0)
    assert (small.selection, small.reached, small.certificate.negative_mass) == ("Thinning", True, 0)
    assert (small.mean.atoms == X[small.indices]).all()
    centres = compress(X, size=n // 8, tol=0.1, select="kmeans", weights="simplex", rng=0)
    assert small.resolution < centres.resolution
    profile = small.profile()
    random = profile.random_rows * np.sqrt((8 / n - 1 / n) / (1 / small.size - 1 / n))  # as many as were asked for
    tell = random < 0.5
    assert tell.sum() >= 4
    assert (profile.relative_errors[tell] <= random[tell]).all()


def test_in_few_dimensions_atoms_are_centres():
    assert compress(clumps(900, 2), size=60, tol=0.05, rng=0).selection == "KMeans"


@pytest.mark.slow
def test_columns_in_very_different_units_are_seen_as_fine_as_the_atoms_bear():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(rng.normal(10, 0.7, 6000)), rng.normal(50, 15, 6000)])
    small = compress(X, Gaussian(), size=600, tol=0.05, rng=0)
    assert small.resolution < small.resolved.median / 64  # the finest of the first octaves
    assert 0.7 * 0.05 < small.certificate.relative_error <= small.certificate.interval[1] <= 0.05
    assert not small.resolved.alone


@pytest.mark.parametrize(
    ("X", "options"),
    [(clumps(40, 2), {}), (np.arange(6.0)[np.arange(5000) % 6, None], {})],
    ids=["all rows", "few places"],
)
def test_finer_than_rows_stand_alone_nothing_is_searched_for(X, options):
    small = compress(X, rng=0, **options)
    assert small.reached
    assert small.resolved.alone
    apart = np.diff(np.unique(X[:, 0])).max()
    assert 0 < small.resolution < apart
    assert "at all finer scales too, since distinct rows do not overlap there" in str(small)
    finer = small.profile([small.resolution / 4, small.resolution / 64])
    np.testing.assert_allclose(finer.noise[0], finer.noise[1], rtol=2e-3)


def test_fewer_atoms_of_a_result_have_the_best_weights():
    X = np.random.default_rng(0).normal(size=(400, 15))
    small = compress(X, size=50, tol=0.1, rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    fewer = small.at(30)
    again = compress(full, size=30, select=small_atoms(fewer), weights="simplex", rng=0)
    assert fewer.certificate.relative_error == pytest.approx(again.certificate.relative_error, rel=1e-6)
    assert full.distance(small.mean) == pytest.approx(small.certificate.relative_error * full.norm(), rel=1e-6)


def test_rows_of_zero_weight_are_as_good_as_absent():
    X = clumps(900, 2)
    weights = (np.arange(900) % 3 > 0).astype(float)
    small = compress(X, size=60, tol=0.05, sample_weight=weights, rng=0)
    assert small.reached
    full = KernelMean.from_samples(X[weights > 0], small.mean.kernel)
    assert full.distance(small.mean) <= 0.05 * full.norm() * (1 + 1e-9)


def test_of_one_distinct_row_nothing_is_lost():
    with pytest.warns(UserWarning, match="all points coincide"):
        small = compress(np.ones((30, 2)), size=3, tol=0.1, rng=0)
    assert (small.size, small.reached) == (1, True)


def test_a_tolerance_beyond_any_bandwidth_is_told():
    with pytest.warns(NotReachedWarning, match="raise the number of atoms or tol"):
        small = compress(clumps(300, 2), size=1, tol=1e-9, rng=0)
    assert small.resolution is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": Gaussian(1.0), "size": 3, "tol": 0.1}, r"determine the third: .* omit one of size=3 and tol=0.1"),
        ({"kernel": Gaussian(1.0)}, "so give size or tol"),
        ({"kernel": FunctionKernel("rbf", gamma=1.0), "size": 3, "tol": 0.1}, "has .*omit one of size=3"),
        ({"size": 3, "tol": 0.0}, "tol must be above 0"),
        ({"size": 31, "tol": 0.1}, "size must be"),
    ],
)
def test_what_cannot_be_searched_for_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        compress(clumps(30, 2), rng=0, **options)
    with pytest.raises(ValueError, match=r"two of size .* determine the third"):
        compress(KernelMean.from_samples(clumps(30, 2)), size=3, tol=0.1)


def test_the_median_distance_is_said():
    X = clumps(500, 2)
    assert compress(X, size=20, tol=0.1, rng=0).resolved.median == pytest.approx(bandwidth.median(X))


def test_a_group_that_thinning_gave_no_row_gets_one():
    from reduset.compression.resolution import SearchAtoms, with_missing_groups

    rng = np.random.default_rng(0)
    many = rng.normal(size=(5000, 4))
    X = np.concatenate([many, 12 + 0.3 * rng.normal(size=(40, 4)), [[-30.0] * 4]])  # a group, and a row that is alone
    full = KernelMean.from_samples(X, Gaussian(1.0))
    rows = np.arange(100)
    chosen = SearchAtoms(X[rows], rows, np.full(100, 0.01), np.full(100, 0.01), "Thinning", "")
    found = with_missing_groups(full, chosen)
    assert ((found.rows >= 5000) & (found.rows < 5040)).sum() == 1
    assert 5040 not in found.rows
    assert len(set(found.rows.tolist())) == 100
    np.testing.assert_array_equal(found.points, X[found.rows])
    assert found.counts.sum() == pytest.approx(1)
    assert with_missing_groups(full, found).rows is found.rows


@pytest.mark.parametrize("seed", range(8))
def test_free_weights_keep_the_tolerance_up_to_infinite_bandwidth(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    X = np.concatenate([rng.normal(rng.normal(scale=3, size=d), rng.uniform(0.1, 1.5), size=(150, d)) for _ in range(3)])
    small = compress(X, size=int(rng.integers(5, 40)), tol=0.05, weights="free", rng=seed)
    assert small.resolution is not None
    assert abs(1 - small.mean.weights.sum()) <= 0.05
    assert small.profile().limit == pytest.approx(abs(1 - small.mean.weights.sum()))
    for h in small.resolution * np.geomspace(1, 1e4, 25):
        full = KernelMean.from_samples(X, Gaussian(h))
        assert full.distance(KernelMean(small.mean.atoms, small.mean.weights, Gaussian(h))) <= 0.05 * full.norm() * (1 + 1e-9)


@pytest.mark.parametrize("options", [{}, {"kernel": Gaussian(0.5)}, {"size": 10}])
def test_a_tolerance_of_one_or_more_raises_an_error(options):
    for tol in (1, 1.5):
        with pytest.raises(ValueError, match=f"tol .*got {tol}"):
            compress(np.random.default_rng(0).normal(size=(50, 2)), tol=tol, **options)


@pytest.mark.slow
def test_profiles_end_where_no_bump_overlaps_another(monkeypatch):
    """Nearly as many random rows as there are rows lose half at no scale; heavy tails have a grid of many scales."""
    scales, profile = [], ExactScales.profile

    def counted(self, small, bandwidths, *rest):
        scales.extend(bandwidths)
        return profile(self, small, bandwidths, *rest)

    monkeypatch.setattr(ExactScales, "profile", counted)
    X = np.random.default_rng(0).standard_cauchy(size=(250, 5))
    small = compress(X, kernel=Matern(), size=249, tol=0.001, rng=0)
    assert small.certificate.interval[1] <= 0.001
    assert len(scales) < 1000
