"""Bandwidth rules: against SciPy, against plain re-implementations, and the laws they share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist
from scipy.stats import gaussian_kde

import reference
from reduset import Gaussian, bandwidth
from reduset.bandwidth import rules

RULES = sorted(set(bandwidth.RULES) - {"isj"})  # which is for one column: test_isj.py
QUANTILE_RULES = ["iqr", "jaakkola", "median", "neighbour"]
MOMENT_RULES = ["mode_clustering", "scott", "silverman"]
every = pytest.mark.parametrize("rule", RULES)


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(1, 2, d)


def find(rule, X, w=None):
    return bandwidth.RULES[rule](X, w)


# -- each rule against another implementation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_scott_and_silverman_are_scipys_factor_times_the_mean_deviation(rule, d, weighted):
    X = cloud(300, d)
    w = np.random.default_rng(1).uniform(size=300) if weighted else None
    density = gaussian_kde(X.T, bw_method=rule, weights=w)
    deviations = np.sqrt(np.diagonal(np.cov(X.T, aweights=w)) if d > 1 else np.cov(X.T, aweights=w))
    assert find(rule, X, w) == pytest.approx(density.factor * np.mean(deviations), rel=1e-12)
    assert find(rule, X, w) == pytest.approx(np.mean(np.sqrt(np.diagonal(density.covariance))), rel=1e-12)


@pytest.mark.parametrize(("n", "d"), [(50, 1), (400, 2), (200, 7)])
def test_mode_clustering_is_its_formula(n, d):
    X = cloud(n, d)
    expected = X.std(axis=0, ddof=1).mean() * (4 / (d + 4)) ** (1 / (d + 6)) * n ** (-1 / (d + 6))
    assert bandwidth.mode_clustering(X) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 2), (300, 1), (301, 4)])
def test_median_is_the_median_of_all_distances(n, d):
    X = cloud(n, d)
    assert bandwidth.median(X) == pytest.approx(np.median(pdist(X)), rel=1e-12)


def test_median_leaves_out_pairs_that_coincide():
    X = np.repeat(cloud(20, 2), [1, 5] * 10, axis=0)
    distances = pdist(X)
    assert bandwidth.median(X) == pytest.approx(np.median(distances[distances > 0]), rel=1e-12)


@pytest.mark.parametrize(("n", "d"), [(4, 1), (300, 1), (301, 4)])
def test_iqr_is_the_mean_interquartile_range(n, d):
    X = cloud(n, d)
    high, low = np.percentile(X, [75, 25], axis=0, method="averaged_inverted_cdf")
    assert bandwidth.iqr(X) == pytest.approx(np.mean(high - low) / 1.35, rel=1e-12)


def test_jaakkola_is_the_median_distance_to_the_nearest_other():
    X = cloud(300, 3)
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    assert bandwidth.jaakkola(X) == pytest.approx(np.median(D.min(axis=1)), rel=1e-12)


@pytest.mark.parametrize("labels", [lambda rng: rng.integers(0, 3, 300), lambda rng: np.array(["a", "b"])[rng.integers(0, 2, 300)]])
def test_jaakkola_with_labels_looks_at_other_classes(labels):
    X, y = cloud(300, 3), labels(np.random.default_rng(1))
    D = np.where(y[:, None] == y[None], np.inf, cdist(X, X))
    assert bandwidth.jaakkola(X, y=y) == pytest.approx(np.median(D.min(axis=1)), rel=1e-12)


def errors_of_prefixes(X, order, h):
    """Explained energy of the first j atoms with optimal weights, for j in 5, 20, 100."""
    kernel = Gaussian(h)
    kappa = reference.bump(kernel, X[order], X).mean(axis=1)
    out = []
    for j in (5, 20, 100):
        K = reference.bump(kernel, X[order[:j]], X[order[:j]])
        out.append(float(kappa[:j] @ np.linalg.lstsq(K, kappa[:j], rcond=1e-13)[0]))
    return out


@pytest.mark.covering_cases
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("d", [1, 2, 6])
def test_neighbour_takes_the_candidate_whose_errors_drop_earliest(seed, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(240, d))  # outliers come first in the order, so that no candidate always wins
    D = np.sort(cdist(X, X), axis=1)
    candidates = [float(np.median(D[:, N])) for N in (3, 5, 7, 9, 11)]
    first = int(np.argmin(np.square(X - X.mean(axis=0)).sum(axis=1)))
    order = reference.farthest_first(X, first, 100)[0]
    ratios = []
    for h in candidates:
        five, twenty, hundred = errors_of_prefixes(X, order, h)
        ratios.append((twenty - five) / (hundred - five))
        assert rules._drop_ratio(X, np.ones(240), X[order], h) == pytest.approx(ratios[-1], rel=1e-6)
    got = bandwidth.neighbour(X)
    assert got == pytest.approx(candidates[int(np.argmax(ratios))], rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 6, 12, 30])
def test_neighbour_of_few_points_is_a_distance_between_them(n):
    X = cloud(n, 2)
    assert pdist(X).min() <= bandwidth.neighbour(X) <= pdist(X).max()


# -- weights --------------------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@pytest.mark.parametrize("rule", QUANTILE_RULES)
@pytest.mark.parametrize("seed", range(5))
def test_an_integer_weight_is_a_repetition(rule, seed):
    rng = np.random.default_rng(seed)
    X, w = cloud(150, 2, seed), rng.integers(1, 5, 150)
    assert find(rule, X, w) == pytest.approx(find(rule, np.repeat(X, w, axis=0)), rel=1e-9)
    shuffled = rng.permutation(np.repeat(X, w, axis=0))
    assert find(rule, X, w) == pytest.approx(find(rule, shuffled), rel=1e-9)


@pytest.mark.parametrize("rule", QUANTILE_RULES)
@pytest.mark.parametrize("times", [2, 3])
def test_the_same_integer_weight_for_all_is_a_repetition_of_all(rule, times):
    X = cloud(11, 2)
    assert find(rule, X, np.full(11, times)) == pytest.approx(find(rule, np.repeat(X, times, axis=0)), rel=1e-9)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=2, max_size=30, unique_by=lambda p: p[0]))
@settings(max_examples=40, deadline=None)
def test_integer_weights_are_repetitions_on_any_line(pairs):
    X, w = np.array([[x] for x, _ in pairs], float), np.array([k for _, k in pairs])
    assert bandwidth.median(X, w) == pytest.approx(bandwidth.median(np.repeat(X, w, axis=0)), rel=1e-12)
    assert bandwidth.jaakkola(X, w) == pytest.approx(bandwidth.jaakkola(np.repeat(X, w, axis=0)), rel=1e-12)


def test_an_integer_weight_is_a_repetition_with_labels_too():
    rng = np.random.default_rng(0)
    X, w, y = cloud(150, 2), rng.integers(1, 5, 150), rng.integers(0, 2, 150)
    repeated = bandwidth.jaakkola(np.repeat(X, w, axis=0), y=np.repeat(y, w))
    assert bandwidth.jaakkola(X, w, y) == pytest.approx(repeated, rel=1e-12)


@pytest.mark.parametrize("rule", MOMENT_RULES)
def test_weights_act_on_moments_by_share_and_on_the_size_by_its_effective_value(rule):
    X, w = cloud(200, 3), np.random.default_rng(1).integers(1, 5, 200)
    share = w / w.sum()
    effective = 1 / (share @ share)
    variance = share @ (X - share @ X) ** 2 / (1 - share @ share)
    d = 3
    factor = {
        "scott": effective ** (-1 / (d + 4)),
        "silverman": (effective * (d + 2) / 4) ** (-1 / (d + 4)),
        "mode_clustering": (4 / (d + 4)) ** (1 / (d + 6)) * effective ** (-1 / (d + 6)),
    }[rule]
    assert find(rule, X, w) == pytest.approx(np.sqrt(variance).mean() * factor, rel=1e-12)


@every
def test_a_zero_weight_is_a_removal(rule):
    X = cloud(300, 2)
    w = np.random.default_rng(1).integers(0, 4, 300)
    assert find(rule, X, w) == pytest.approx(find(rule, X[w > 0], w[w > 0]), rel=1e-12)
    assert find(rule, X, (w > 0).astype(float)) == pytest.approx(find(rule, X[w > 0]), rel=1e-12)


def test_a_zero_weight_is_a_removal_with_labels_too():
    rng = np.random.default_rng(1)
    X, w, y = cloud(300, 2), rng.integers(0, 4, 300), rng.integers(0, 2, 300)
    assert bandwidth.jaakkola(X, w, y) == pytest.approx(bandwidth.jaakkola(X[w > 0], w[w > 0], y[w > 0]), rel=1e-12)


@pytest.mark.covering_cases
@every
@pytest.mark.parametrize("weight", [0.25, 1.0, 1 / 300])
def test_equal_weights_change_nothing(rule, weight):
    X = cloud(300, 2)
    assert find(rule, X, np.full(300, weight)) == pytest.approx(find(rule, X), rel=1e-9)


@pytest.mark.covering_cases
@every
@pytest.mark.parametrize("scale", [0.5, 1 / 3, 0.37, 7, 1e-6, 1e6, 1e-200, 1e200])
@pytest.mark.parametrize("kind", ["whole", "fractional", "equal", "few"])
def test_the_scale_of_weights_does_not_matter(rule, kind, scale):
    rng = np.random.default_rng(1)
    w = {
        "whole": rng.integers(1, 5, 300),
        "fractional": rng.uniform(0.1, 1, 300),
        "equal": np.full(300, 2),
        "few": np.where(rng.uniform(size=300) < 0.1, rng.integers(1, 3, 300), 0),
    }[kind]
    X = cloud(300, 2)
    for points in (X, np.rint(3 * X)):
        assert find(rule, points, w * scale) == pytest.approx(find(rule, points, w), rel=1e-9)


@pytest.mark.parametrize("scale", [0.5, 1 / 3, 7])
def test_the_scale_of_weights_does_not_matter_with_labels_either(scale):
    rng = np.random.default_rng(1)
    X, w, y = cloud(300, 2), rng.integers(0, 5, 300), rng.integers(0, 2, 300)
    assert bandwidth.jaakkola(X, w * scale, y) == pytest.approx(bandwidth.jaakkola(X, w, y), rel=1e-9)


@every
@pytest.mark.parametrize("n", [2500, 25_000])
def test_the_scale_of_weights_does_not_matter_on_large_samples(rule, n):
    X, w = cloud(n, 2), np.random.default_rng(1).integers(1, 5, n)
    assert find(rule, X, w / w.sum()) == pytest.approx(find(rule, X, w), rel=1e-9)


@pytest.mark.parametrize("rule", QUANTILE_RULES)
def test_repeating_every_point_changes_nothing(rule):
    X = cloud(60, 2)
    assert find(rule, np.repeat(X, 3, axis=0)) == pytest.approx(find(rule, X), rel=1e-9)


@every
def test_weights_matter(rule):
    X = np.concatenate([cloud(150, 2), 10 * cloud(150, 2, 1)])
    near = np.repeat([1.0, 0.01], 150)
    assert find(rule, X, near) < find(rule, X, near[::-1])


# -- laws -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@every
@pytest.mark.parametrize("scale", [2.0**-20, 0.1, 8.0, 1e4, 2.0**40])
def test_scaling_the_points_scales_the_bandwidth(rule, scale):
    X = cloud(200, 3)
    assert find(rule, X * scale) == pytest.approx(find(rule, X) * scale, rel=1e-9)


@every
def test_shifting_the_points_changes_nothing(rule):
    X = np.rint(cloud(200, 3) * 1024) / 1024
    for shift in (1e6, [-1e6, 1e3, 0.0]):
        assert find(rule, X + shift) == pytest.approx(find(rule, X), rel=1e-9)


@every
def test_the_order_of_the_points_does_not_matter(rule):
    X, w = cloud(200, 3), np.random.default_rng(1).uniform(size=200)
    order = np.random.default_rng(2).permutation(200)
    assert find(rule, X[order], w[order]) == pytest.approx(find(rule, X, w), rel=1e-9)


@every
def test_the_columns_order_does_not_matter(rule):
    X = cloud(200, 3)
    assert find(rule, X[:, ::-1]) == pytest.approx(find(rule, X), rel=1e-9)


@every
def test_a_large_sample_gives_the_same_bandwidth_every_time_and_close_to_that_of_all(rule):
    X = cloud(50_000, 2)
    found = find(rule, X)
    assert found == find(rule, X.copy())
    deviation = X.std(axis=0, ddof=1).mean()
    if rule == "median":
        pairs = np.random.default_rng(9).integers(0, 50_000, (200_000, 2))
        assert found == pytest.approx(np.median(np.linalg.norm(X[pairs[:, 0]] - X[pairs[:, 1]], axis=1)), rel=0.03)
    elif rule == "iqr":
        assert found == pytest.approx(np.mean(np.subtract(*np.percentile(X, [75, 25], axis=0))) / 1.35, rel=1e-4)
    elif rule in ("scott", "silverman"):  # the same in two dimensions
        assert found == pytest.approx(deviation * 50_000 ** (-1 / 6), rel=1e-9)
    elif rule == "mode_clustering":
        assert found == pytest.approx(deviation * (4 / 6) ** (1 / 8) * 50_000 ** (-1 / 8), rel=1e-9)
    else:  # some points are asked, but for their neighbours among all
        medians = np.median(cKDTree(X).query(X, k=12)[0], axis=0)
        expected = medians[[1]] if rule == "jaakkola" else medians[list(rules.NEIGHBOURS)]
        assert np.min(np.abs(found / expected - 1)) < 0.05


def test_weights_are_respected_on_a_large_sample():
    X = np.concatenate([cloud(25_000, 1), 10 + 3 * cloud(25_000, 1, 1)])
    w = np.repeat([1.0, 0.0], 25_000)
    for rule in RULES:
        assert find(rule, X, w) == pytest.approx(find(rule, X[:25_000]), rel=1e-12)
    mostly = bandwidth.median(X, np.repeat([1.0, 1e-9], 25_000))
    assert mostly == pytest.approx(bandwidth.median(X[:25_000]), rel=0.05)


@every
@pytest.mark.parametrize("convert", [np.asfortranarray, lambda X: X.tolist(), lambda X: np.repeat(X, 2, axis=0)[::2]])
def test_any_kind_of_array_is_taken(rule, convert):
    X = cloud(120, 2)
    assert find(rule, convert(X)) == pytest.approx(find(rule, X), rel=1e-12)


@every
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, np.float32])
def test_numbers_of_any_type_are_taken_at_their_value(rule, dtype):
    X = np.random.default_rng(0).integers(0, 256, (200, 3)).astype(dtype)
    assert find(rule, X) == pytest.approx(find(rule, X.astype(np.float64)), rel=1e-6)


@every
def test_inputs_are_not_written_to(rule):
    X, w = cloud(100, 2), np.random.default_rng(1).uniform(size=100)
    X.setflags(write=False)
    w.setflags(write=False)
    assert find(rule, X, w) > 0


@every
def test_the_name_of_a_rule_is_taken_as_a_bandwidth(rule):
    X, w = cloud(100, 2), np.random.default_rng(1).uniform(size=100)
    assert Gaussian(rule).resolve(X, w).width == find(rule, X, w)


# -- data without a bandwidth ---------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("X", [np.ones((50, 2)), np.full((2, 1), 0.1), np.ones((1, 3))], ids=["equal", "two alike", "one"])
def test_points_that_coincide_have_no_bandwidth(rule, X):
    with pytest.raises(ValueError, match=r"bandwidth.*as a number"):
        find(rule, X)


@every
def test_one_point_of_weight_has_no_bandwidth(rule):
    with pytest.raises(ValueError, match=r"bandwidth.*as a number"):
        find(rule, cloud(5, 2), [0.0, 0.0, 2.0, 0.0, 0.0])


def test_an_empty_middle_half_has_no_iqr():
    X = np.zeros((100, 1))
    X[:10] = 1.0
    with pytest.raises(ValueError, match="iqr finds no bandwidth above 0: the middle half of every column is a single value"):
        bandwidth.iqr(X)


def test_labels_must_fit():
    X = cloud(10, 2)
    with pytest.raises(ValueError, match=r"y .*got \(9,\)"):
        bandwidth.jaakkola(X, y=np.zeros(9))
    with pytest.raises(ValueError, match="y must hold at least two classes"):
        bandwidth.jaakkola(X, y=np.zeros(10))
    with pytest.raises(ValueError, match="jaakkola finds no bandwidth above 0: most points coincide with one of another class"):
        bandwidth.jaakkola(np.repeat(X, 2, axis=0), y=np.tile([0, 1], 10))


@every
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[1.0], [np.nan]], ValueError, "X .*got nan in row 1, column 0"),
        ([1.0, 2.0], ValueError, "X must have two dimensions"),
        (np.empty((0, 2)), ValueError, "X must hold at least one row"),
        ([["a"], ["b"]], TypeError, "X must hold numbers"),
        ([[1j], [2.0]], TypeError, "X must be real"),
    ],
)
def test_what_is_no_cloud_of_points_is_refused(rule, X, error, message):
    with pytest.raises(error, match=message):
        find(rule, X)


@every
@pytest.mark.parametrize(
    ("w", "message"),
    [
        ([1.0, 2.0], r"sample_weight must have shape \(3,\)"),
        ([1.0, np.nan, 1.0], "sample_weight .*got nan at position 1"),
        ([1.0, -1.0, 1.0], "sample_weight .*got -1.0 at position 1"),
        ([0.0, 0.0, 0.0], "sample_weight must not be all zero"),
    ],
)
def test_what_is_no_weight_is_refused(rule, w, message):
    with pytest.raises(ValueError, match=message):
        find(rule, [[0.0], [1.0], [3.0]], w)


@pytest.mark.fast_cases(10)
@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
@pytest.mark.parametrize("rule", ["jaakkola", "neighbour", "median", "iqr", "scott"])
def test_small_whole_numbers_do_not_wrap_around(rule, dtype):
    X = np.random.default_rng(0).integers(0, 250, size=(20_500, 18))
    assert find(rule, X.astype(dtype)) == pytest.approx(find(rule, X.astype(np.float64)), rel=1e-9)


def test_labels_of_small_whole_numbers_do_not_wrap_around():
    X = np.random.default_rng(0).integers(0, 250, size=(600, 20))
    y = X[:, 0] > 120
    assert bandwidth.jaakkola(X.astype(np.uint8), y=y) == pytest.approx(bandwidth.jaakkola(X.astype(np.float64), y=y), rel=1e-9)
