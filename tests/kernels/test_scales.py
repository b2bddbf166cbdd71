"""Units of columns: a kernel with scales is the plain one on divided columns, whoever uses it."""

import numpy as np
import pytest
from dask import array as dask_array

from archive_cases import reseal
from reduset import Gaussian, KernelMean, Laplacian, Matern, Mixture, Model, Student, bandwidth, compress
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.cohort import CohortMap
from reduset.density import SparseKernelDensity
from reduset.density.likelihood import search_bandwidth
from reduset.kernels.lookup import kernel_from
from reduset.mixture import conditioning
from reduset.modes.mean_shift import mean_shift
from reduset.stream import StreamCompressor

FAMILIES = {
    "gaussian": lambda h, **rest: Gaussian(h, **rest),
    "gaussian l2": lambda h, **rest: Gaussian(h, space="l2", normalized=True, **rest),
    "laplacian": lambda h, **rest: Laplacian(h, **rest),
    "cityblock": lambda h, **rest: Laplacian(h, metric="cityblock", space="l2", **rest),
    "matern": lambda h, **rest: Matern(h, space="l2", **rest),
    "student": lambda h, **rest: Student(h, exponent=2.5, **rest),
}
SCALES = np.array([20_000.0, 0.02, 3.0])


def table(n=400, seed=0):
    """Columns in units that are powers of ten apart."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.lognormal(10, 0.5, n), rng.normal(0, 0.02, n), rng.integers(0, 9, n)])


# -- what scales are of a column ----------------------------------------------------------------------------------------------


def test_robust_scales_are_interquartile_ranges():
    X = table()
    expected = np.quantile(X, 0.75, axis=0, method="averaged_inverted_cdf") - np.quantile(
        X, 0.25, axis=0, method="averaged_inverted_cdf"
    )
    np.testing.assert_allclose(bandwidth.column_scales(X), expected, rtol=1e-12)
    np.testing.assert_allclose(bandwidth.column_scales(X, rule="standard"), X.std(axis=0), rtol=1e-9)


def test_where_the_middle_half_is_one_value_the_standard_deviation_is_taken_and_then_1():
    rng = np.random.default_rng(0)
    rare, half, constant = rng.random(5000) < 0.01, rng.random(5000) < 0.5, np.full(5000, 1e9 + 0.1)
    found = bandwidth.column_scales(np.column_stack([rare, half, constant]).astype(float))
    assert found[0] == pytest.approx(rare.std(), rel=1e-9)  # so that 0 and 1 are 1 / 0.1 = 10 units apart
    assert found[1:].tolist() == [1.0, 1.0]
    assert bandwidth.column_scales(np.column_stack([rare, half]), rule="standard")[1] == pytest.approx(0.5, rel=1e-2)


def test_a_few_rows_far_out_do_not_change_robust_scales():
    X = table(1000)
    far = X.copy()
    far[:5, 0] = 1e12
    np.testing.assert_allclose(bandwidth.column_scales(far), bandwidth.column_scales(X), rtol=0.05)
    assert bandwidth.column_scales(far, rule="standard")[0] > 1e5 * bandwidth.column_scales(X, rule="standard")[0]


@pytest.mark.parametrize("rule", ["robust", "standard"])
def test_an_integer_weight_is_repetition_and_none_is_absence(rule):
    X, weights = table(200), np.random.default_rng(1).integers(0, 4, 200)
    once = bandwidth.column_scales(X, weights, rule)
    np.testing.assert_allclose(once, bandwidth.column_scales(np.repeat(X, weights, axis=0), rule=rule), rtol=1e-9)
    np.testing.assert_allclose(once, bandwidth.column_scales(X, weights * 1e9, rule), rtol=1e-9)
    np.testing.assert_allclose(once, bandwidth.column_scales(X[weights > 0], weights[weights > 0], rule), rtol=1e-9)


@pytest.mark.parametrize("X", [[[3.0, 4.0]], [[3.0, 4.0]] * 5, np.ones((3, 50))], ids=["one row", "one place", "wide"])
def test_rows_without_spread_have_units_of_1(X):
    assert bandwidth.column_scales(X).tolist() == [1.0] * np.shape(X)[1]
    with pytest.warns(UserWarning, match="all points coincide"):
        mean = KernelMean.from_samples(X, Gaussian(scales="robust"))
    assert mean.kernel.width == 1.0
    assert compress(KernelMean.from_samples(X, Gaussian(1.0, scales="robust")), size=1).certificate.relative_error < 1e-7


def test_more_columns_than_rows_have_scales():
    X = np.random.default_rng(0).normal(size=(8, 30)) * np.geomspace(1e-6, 1e6, 30)
    small = compress(KernelMean.from_samples(X, Gaussian(scales="robust")), size=8, rng=0)
    assert small.certificate.relative_error < 1e-6


# -- the same as the plain kernel on divided columns ----------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kernel_with_scales_is_the_plain_one_on_divided_columns(family):
    X, Q = table(), table(30, seed=1)
    make = FAMILIES[family]
    scaled = KernelMean.from_samples(X, make(0.7, scales=SCALES))
    plain = KernelMean.from_samples(X / SCALES, make(0.7))
    volume = np.prod(SCALES)
    height = 1 / volume if plain.kernel.normalized else 1.0
    norm = height * np.sqrt(volume) if plain.kernel.space == "l2" else np.sqrt(height)
    np.testing.assert_allclose(scaled(Q, "double"), height * plain(Q / SCALES, "double"), rtol=1e-9)
    np.testing.assert_allclose(scaled.gradient(Q) * SCALES, height * plain.gradient(Q / SCALES), rtol=1e-7, atol=1e-12 * height)
    np.testing.assert_allclose(scaled.norm(), norm * plain.norm(), rtol=1e-9)
    np.testing.assert_allclose(scaled.log_density(Q), plain.log_density(Q / SCALES) - np.log(volume), rtol=1e-9)
    draws = [mean.sample(50, rng=0) for mean in (scaled, plain)]
    np.testing.assert_allclose(draws[0] / SCALES, draws[1], rtol=1e-9)


@pytest.mark.covering_cases
@pytest.mark.parametrize("select", ["kcenter", "kmeans", "thinning", "cholesky", "shadow", "greedy"])
@pytest.mark.parametrize("family", FAMILIES)
def test_compressions_are_those_of_divided_columns(select, family):
    X, make = table(), FAMILIES[family]
    scaled, plain = (
        compress(KernelMean.from_samples(points, kernel), size=12, select=select, rng=0)
        for points, kernel in ((X, make(0.7, scales=SCALES)), (X / SCALES, make(0.7)))
    )
    np.testing.assert_allclose(scaled.mean.atoms / SCALES, plain.mean.atoms, rtol=1e-6, atol=1e-9)
    assert scaled.certificate.relative_error == pytest.approx(plain.certificate.relative_error, rel=1e-5)


def test_waves_measure_what_is_exact():
    X = table(3000)
    full = KernelMean.from_samples(X, Gaussian(0.7, scales="robust"))
    small = compress(full, size=15, select="random", weights="sum_to_one", rng=0)
    probe = FrequencyProbe(full, 0.95, np.random.default_rng(0))
    measured = probe.measure(small.mean.atoms, small.mean.weights, None)
    exact = full.distance(small.mean) ** 2 / np.exp(full.kernel.log_energy(3))
    assert measured.low <= exact <= measured.high


def test_moved_atoms_are_those_of_divided_columns():
    X = table(300)
    found = [
        compress(KernelMean.from_samples(points, kernel), size=6, refine=10, rng=0).certificate.relative_error
        for points, kernel in ((X, Gaussian(0.7, scales=SCALES)), (X / SCALES, Gaussian(0.7)))
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-3)


@pytest.mark.parametrize("rule", sorted(bandwidth.RULES))
def test_every_bandwidth_rule_looks_at_divided_columns(rule):
    X = table(2500)[:, : 1 if rule == "isj" else None]  # so many that the median looks at some pairs
    found = Gaussian(rule, scales="robust").resolve(X)
    np.testing.assert_allclose(found.scales, bandwidth.column_scales(X), rtol=1e-12)
    assert found.width == pytest.approx(bandwidth.RULES[rule](X / found.scales), rel=1e-9)


def test_an_open_bandwidth_is_the_median_distance():
    X = table()
    assert Gaussian().resolve(X) == Gaussian("median").resolve(X)
    assert Gaussian(scales="robust").resolve(X) == Gaussian("median", scales="robust").resolve(X)
    assert Laplacian() == Laplacian(None)
    for read in (lambda kernel: kernel.width, lambda kernel: kernel.log_peak(2) + kernel.density_log_peak(2)):
        with pytest.raises(ValueError, match=r"bandwidth is not set; it needs data: use KernelMean.from_samples"):
            read(Gaussian())
    with pytest.raises(ValueError, match=r"scales are still the rule 'robust'; they need data"):
        Gaussian(1.0, scales="robust").noise(3, 2, np.random.default_rng(0))


@pytest.mark.parametrize("powers", [6, 12, 24])
def test_units_may_be_many_powers_of_ten_apart(powers):
    X = np.random.default_rng(0).normal(size=(300, 2))
    units = np.array([10.0**-powers, 10.0**powers])
    found = [
        compress(KernelMean.from_samples(points, kernel), size=9, select=select, rng=0).certificate.relative_error
        for select in ("kcenter", "kmeans")
        for points, kernel in ((X * units, Gaussian(0.7, scales=units)), (X, Gaussian(0.7)))
    ]
    np.testing.assert_allclose(found[::2], found[1::2], rtol=1e-6)


# -- who uses it ----------------------------------------------------------------------------------------------------------------


def test_a_mixture_has_the_scales_as_diagonal_covariances():
    mean = KernelMean.from_samples(table(40), Gaussian(0.5, scales=SCALES, normalized=True))
    mixture = Mixture.from_mean(mean)
    assert mixture.covariances.shape == (40, 3)
    back = mixture.to_mean()
    Q = table(9, seed=2)
    np.testing.assert_allclose(back(Q, "double"), mean(Q, "double"), rtol=1e-9)
    np.testing.assert_allclose(mixture.to_mean(mean.kernel).weights, mean.weights, rtol=1e-12)
    with pytest.raises(ValueError, match="must have the covariance that the components have"):
        mixture.to_mean(Gaussian(0.5, scales=SCALES * 2))


def test_slices_of_a_density_keep_the_scales_of_their_columns():
    X = table(60)
    mean = KernelMean.from_samples(X, Gaussian(0.5, scales=SCALES))
    plain = KernelMean.from_samples(X / SCALES, Gaussian(0.5))
    left = conditioning.marginal(mean, [2, 0])
    assert left.kernel == Gaussian(0.5, normalized=True, scales=SCALES[[2, 0]])
    np.testing.assert_allclose(
        left.log_density(X[:5, [2, 0]]),
        conditioning.marginal(plain, [2, 0]).log_density((X / SCALES)[:5, [2, 0]]) - np.log(SCALES[[2, 0]]).sum(),
        rtol=1e-9,
    )
    given = conditioning.conditional(mean, [1], [0.01])
    there = conditioning.conditional(plain, [1], [0.01 / SCALES[1]])
    np.testing.assert_allclose(given.weights, there.weights, rtol=1e-9)
    assert given.kernel.scales.tolist() == SCALES[[0, 2]].tolist()


def test_a_stream_takes_scales_from_its_first_rows_and_keeps_them(tmp_path):
    X = table(3000)
    stream = StreamCompressor(Gaussian(0.7, scales="robust"), 20, random_state=0, buffer=500)
    stream.partial_fit(X[:2000])
    np.testing.assert_allclose(stream.kernel_.scales, bandwidth.column_scales(X[:500]), rtol=1e-12)
    stream.checkpoint(tmp_path / "half.npz")
    again = StreamCompressor.resume(tmp_path / "half.npz")
    small = [each.partial_fit(X[2000:]).result() for each in (stream, again)]
    assert small[0].mean.kernel == small[1].mean.kernel == stream.kernel_
    np.testing.assert_array_equal(small[0].mean.weights, small[1].mean.weights)
    assert small[0].certificate.relative_error < 0.2


def test_partitions_share_scales():
    X = table(1200)
    small = compress(dask_array.from_array(X, chunks=(300, 3)), Gaussian(scales="robust"), size=20, rng=0)
    ranges = bandwidth.column_scales(X)
    np.testing.assert_allclose(small.mean.kernel.scales, ranges, rtol=0.2)
    assert small.certificate.relative_error < 0.1


def test_a_cohort_has_one_unit_a_column():
    bags = {name: table(200, seed) for seed, name in enumerate("abc")}
    found = CohortMap(kernel=Gaussian(scales="robust"), random_state=0).fit(bags)
    pooled = bandwidth.column_scales(np.concatenate(list(bags.values())))
    np.testing.assert_allclose(found.kernel_.scales, pooled, rtol=1e-9)


def test_estimators_take_scales_through_their_kernel():
    X = table(500)
    density = SparseKernelDensity(kernel=Gaussian("scott", scales="standard"), random_state=0).fit(X)
    np.testing.assert_allclose(density.mean_.kernel.scales, X.std(axis=0), rtol=1e-9)
    with pytest.raises(ValueError, match=r"whiten=True .*kernel that has scales"):
        SparseKernelDensity(kernel=Gaussian("scott", scales="standard"), whiten=True).fit(X)
    divided = X / X.std(axis=0)
    scores = [
        search_bandwidth(points, kernel, rng=0) for points, kernel in ((X, Gaussian(scales="standard")), (divided, Gaussian()))
    ]
    np.testing.assert_allclose(scores[0].bandwidths, scores[1].bandwidths, rtol=1e-9)
    np.testing.assert_allclose(scores[0].scores + np.log(X.std(axis=0)).sum(), scores[1].scores, rtol=1e-6)


# -- as it is said, saved and refused ---------------------------------------------------------------------------------------------


def test_scales_are_printed_in_a_few_figures():
    assert repr(Gaussian(0.5, scales=[31_000.4, 16.25])) == "Gaussian(0.5, scales=[3.1e+04, 16.2])"
    assert repr(Gaussian(scales="robust")) == "Gaussian(scales='robust')"
    assert repr(Matern("median", scales=np.ones(9), smoothness=2.5)) == "Matern('median', scales=[1, 1, 1, 1, …], smoothness=2.5)"


def test_kernels_of_other_scales_are_others():
    one = Gaussian(0.5, scales=[1.0, 2.0])
    assert one == Gaussian(0.5, scales=(1, 2))
    assert hash(one) == hash(Gaussian(0.5, scales=(1, 2)))
    assert one not in (Gaussian(0.5), Gaussian(0.5, scales=[1.0, 3.0]), Gaussian(0.5, scales="robust"))
    with pytest.raises(ValueError, match="read-only"):
        one.scales[0] = 5.0


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kernel_is_read_as_it_was_written(family):
    for scales in ([0.1, 1e5], "robust", None):
        kernel = FAMILIES[family](0.3, scales=scales)
        assert kernel_from(kernel.to_dict()) == kernel


def test_files_keep_scales(tmp_path):
    full = KernelMean.from_samples(table(), Gaussian(scales="robust"))
    small = compress(full, size=10, rng=0)
    small.mean.save(tmp_path / "mean.npz")
    assert KernelMean.load(tmp_path / "mean.npz").kernel == full.kernel
    Model.of(full, small).save(tmp_path / "model.npz")
    model = Model.load(tmp_path / "model.npz")
    assert model.mean.kernel == full.kernel
    np.testing.assert_allclose(model.portrait.widths, full.kernel.width * full.kernel.scales, rtol=1e-9)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"scales": [1.0, 0.0]}, r"scales\[1\] must be above 0"),
        ({"scales": [1.0, float("nan")]}, r"scales\[1\] must be finite"),
        ({"scales": [1.0, "2"]}, r"scales\[1\] must be a number"),
        ({"scales": [[1.0, 2.0]]}, r"got shape \(1, 2\)"),
        ({"scales": {"a": 1}}, "scales must"),
        ({"scales": [1.0] * 3}, "scales .*got 3"),
        ({"scales": "robust"}, "bandwidth and scales .*got .*robust"),
        ({"bandwidth": None}, r"bandwidth and scales .*got Gaussian\(\)"),
        ({"scales": [1.0, 1.0], "covariance": [1.0, 1.0]}, "covariance and scales"),
        ({"scale": [1.0, 1.0]}, "does not know"),
    ],
)
def test_a_file_that_says_otherwise_is_refused(tmp_path, told, message):
    path = tmp_path / "x.npz"
    KernelMean(np.eye(2), np.ones(2), Gaussian(0.5)).save(path)
    reseal(path, kernel=Gaussian(0.5).to_dict() | told)
    with pytest.raises(ValueError, match=message):
        KernelMean.load(path)


@pytest.mark.parametrize(
    ("scales", "error", "message"),
    [
        ([1.0, 0.0], ValueError, r"scales\[1\] .*got 0.0"),
        ([1.0, -2.0], ValueError, r"scales\[1\] .*got -2.0"),
        ([float("nan"), 1.0], ValueError, r"scales\[0\] .*got nan"),
        ([1.0, float("inf")], ValueError, r"scales\[1\] .*got inf"),
        ([1.0, 1e-200], ValueError, "scales .*got 1e-200 to 1"),
        ([], ValueError, r"a number for each column, 'robust' or 'standard', got shape \(0,\)"),
        (2.0, ValueError, r"got shape \(\)"),
        ([[1.0, 2.0], [3.0]], TypeError, r"scales\[0\] .*got \[1.0, 2.0\]"),
        ([[1.0, 2.0]], ValueError, r"got shape \(1, 2\)"),
        ("iqr", ValueError, "scales .*got 'iqr'"),
        (["a", "b"], TypeError, "scales"),
        ([1.0, None], TypeError, r"scales\[1\] .*got None"),
    ],
)
def test_scales_that_are_none_are_refused(scales, error, message):
    with pytest.raises(error, match=message):
        Gaussian(1.0, scales=scales)


def test_scales_of_other_columns_and_beside_a_covariance_are_refused():
    with pytest.raises(ValueError, match=r"scales .*got 2"):
        KernelMean.from_samples(table(), Gaussian(scales=[1.0, 2.0]))
    with pytest.raises(ValueError, match=r"covariance .*got a covariance of 2 by 2 and scales='robust'"):
        Gaussian(covariance=np.eye(2), scales="robust")
    with pytest.raises(ValueError, match=r"widen it, or use a rule"):
        KernelMean.from_samples(np.array([[0.0, 0.0], [1.0, 1e10]]), Gaussian(1e-200, scales=[1.0, 1e-140]))


def test_mean_shift_by_scales_finds_the_groups_of_divided_columns():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, 0.3, size=(80, 2)) for centre in (-2, 2)])
    units = np.array([1e4, 0.01])
    ends = [
        mean_shift(KernelMean.from_samples(points, kernel), points).ends
        for points, kernel in ((X * units, Gaussian(0.6, scales=units)), (X, Gaussian(0.6)))
    ]
    np.testing.assert_allclose(ends[0] / units, ends[1], rtol=1e-3, atol=1e-3)
