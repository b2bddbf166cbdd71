"""compress: by size, by tolerance, by plateau; and what a result can do afterwards."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, NotReachedWarning, Student, compress
from reduset._messages import quietly
from reduset.certificate.rule import ExactProbe
from reduset.select import KCenter
from reduset.weights import KINDS


def cloud(n, d, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 3 * rng.normal(size=(4, d))[rng.integers(0, 4, n)]


def true_squares(full: KernelMean, small) -> np.ndarray:
    """The true squared relative error of every prefix of all the atoms that the search looked at."""
    span = small._prefixes.span
    free = span.weights("free", 1.0, span.size)
    residual = ExactProbe(full, None).measure(span.atoms, free, span.kappa).square
    return (span.energies_after() + residual) / (span.energy(span.size) + residual)


CASES = [(Gaussian("median"), 2), (Gaussian("scott"), 2), (Gaussian("median"), 5), (Laplacian("median"), 2), (Student("median"), 3)]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("exact_up_to", [600, 500], ids=["exact", "by frequencies"])
def test_tol_is_met_in_truth_by_nearly_the_smallest_prefix(exact_up_to, monkeypatch):
    monkeypatch.setattr("reduset.certificate.rule.EXACT_UP_TO", exact_up_to)
    met, ratios = [], []
    for seed in range(8):
        for kernel, d in CASES:
            for tol in (0.2, 0.03):
                X = cloud(600, d, seed)
                small = compress(X, kernel, tol=tol, rng=seed)
                assert small.reached
                assert (small.certificate.method == "exact") == (exact_up_to >= len(X))
                assert small.certificate.interval[1] <= tol
                squares = true_squares(KernelMean.from_samples(X, kernel), small)
                met.append(squares[small.size - 1] <= tol**2)
                ratios.append(small.size / (np.flatnonzero(squares <= tol**2)[0] + 1))
    assert np.mean(met) >= 0.95
    assert max(ratios) <= 1.25


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "free"])
def test_tol_holds_for_every_kind_of_weights(kind):
    X = cloud(2000, 2, 0)
    small = compress(X, Gaussian("median"), tol=0.05, weights=kind, rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    assert small.mean.distance(full) / full.norm() <= 0.05
    assert small.size < 200


def test_a_tolerance_out_of_reach_is_said_so():
    X = cloud(2000, 5, 0)
    with pytest.warns(NotReachedWarning, match="max_size"):
        small = compress(X, Gaussian("scott"), tol=0.01, max_size=50, rng=0)
    assert not small.reached
    assert small.size == 50
    assert small.certificate.relative_error > 0.01
    assert "NOT REACHED" in str(small)


def test_a_tolerance_can_take_every_distinct_point():
    X = np.repeat(cloud(40, 2, 0), 5, axis=0)
    small = compress(X, Gaussian(0.1), tol=1e-6, rng=0)
    assert small.reached
    assert small.size <= 40


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-7])
def test_plateau_is_the_rule_of_the_paper(epsilon):
    X = cloud(1000, 2, 1)
    small = compress(X, Gaussian("median"), plateau=epsilon, select=KCenter(first=0))
    longer = compress(X, Gaussian("median"), size=small.size + 20, select=KCenter(first=0))
    E = np.array([-longer._prefixes.span.energy(m) for m in range(1, longer.size + 1)])
    steps = np.abs(np.diff(E)) / np.abs(E[0] - E[1:])
    assert small.size == np.flatnonzero(steps <= epsilon)[0] + 2


def test_plateau_out_of_reach_is_said_so():
    with pytest.warns(NotReachedWarning, match="plateau"):
        small = compress(cloud(500, 5, 0), Gaussian(0.2), plateau=1e-12, max_size=20, rng=0)
    assert small.size == 20


@pytest.mark.parametrize("m", [1, 7, 30])
def test_at_is_the_compression_of_that_size(m):
    X = cloud(800, 3, 2)
    small = compress(X, Gaussian("median"), size=60, select=KCenter(first=0))
    fresh = compress(X, Gaussian("median"), size=m, select=KCenter(first=0))
    nested = small.at(m)
    np.testing.assert_array_equal(nested.indices, fresh.indices)
    np.testing.assert_allclose(nested.mean.weights, fresh.mean.weights, rtol=1e-6, atol=1e-9)
    assert nested.certificate.relative_error == pytest.approx(fresh.certificate.relative_error, rel=1e-6)
    assert small.path.relative_errors[m - 1] == pytest.approx(nested.certificate.relative_error, rel=1e-9)


def test_reweigh_keeps_the_atoms_and_finds_the_best_weights():
    X = cloud(1500, 3, 3)
    full = KernelMean.from_samples(X, Gaussian("median"))
    small = compress(full, size=80, select="kcenter", rng=0)
    other = small.reweigh(full, kernel=Gaussian(1.3), rng=0)
    np.testing.assert_array_equal(other.indices, small.indices)
    direct = compress(X, Gaussian(1.3), size=80, select=KCenter(first=int(small.indices[0])), rng=0)
    np.testing.assert_array_equal(direct.indices, small.indices)
    assert other.certificate.relative_error == pytest.approx(direct.certificate.relative_error, rel=1e-6)
    assert other.certificate.bound == pytest.approx(direct.certificate.bound, rel=1e-5)
    assert small.reweigh(full, weights="simplex").weighting == "simplex"
    with pytest.raises(ValueError, match="full must be the mean that was compressed"):
        small.reweigh(KernelMean.from_samples(X[:100], Gaussian(1.0)))


def test_compressing_twice_adds_up():
    X = cloud(3000, 2, 4)
    full = KernelMean.from_samples(X, Gaussian("median"))
    once = compress(full, size=200, rng=0)
    twice = compress(once.mean, size=40, rng=0)
    norm = full.norm()
    total = twice.mean.distance(full) / norm
    assert total <= once.certificate.relative_error + twice.certificate.relative_error * once.mean.norm() / norm + 1e-7


def test_the_result_speaks():
    small = compress(cloud(5000, 2, 5), Gaussian("median"), size=30, rng=0)
    first, *lines = str(small).splitlines()
    assert first == "Compression: 5,000 rows × 2 columns -> 30 weighted atoms (167x)"
    assert [line.split("  ")[1] for line in (lines[0], lines[2])] == ["error", "weights"]
    assert "(95 % CI " in lines[0]
    assert f"at bandwidth {small.mean.kernel.bandwidth:.3g} (Gaussian)" in lines[0]
    assert f"at the median distance, {small.near_median.distance:.3g}" in lines[1]
    text = small.details()
    assert text.startswith("Compression of 5,000 points to 30 atoms in 2-D, Gaussian(")
    for word in ("error", "95% interval", "bound", "incoherence", "atoms", "time"):
        assert word in text
    for word in ("‖", "ν", "incoherence", "bound"):
        assert word not in str(small)


def test_a_loss_that_is_next_to_nothing_is_said_so():
    X = cloud(1000, 1, 0)
    small = compress(X, Gaussian("median"), size=20, rng=0)
    assert small.certificate.relative_error < 1e-5
    assert "error       below 0.001 %" in str(small)
    assert "rows × 1 column ->" in str(small)


def test_redundant_atoms_are_dropped_and_reported():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = compress(X, Gaussian(2.0), size=200, select="kcenter", rng=0)
    assert small.size + len(small.dropped) == 200
    assert len(small.dropped) > 100
    assert np.isfinite(small.mean.weights).all()
    assert small.certificate.relative_error < 1e-6
    assert f"{len(small.dropped)} redundant dropped" in small.details()


def test_float32_data_are_not_doubled():
    X = cloud(5000, 3, 7).astype(np.float32)
    small = compress(X, Gaussian("median"), size=40, rng=0)
    wide = compress(X.astype(np.float64), Gaussian("median"), size=40, rng=0)
    np.testing.assert_array_equal(small.indices, wide.indices)
    np.testing.assert_allclose(small.mean.weights, wide.mean.weights, rtol=1e-4, atol=1e-6)


def test_reweigh_refuses_other_data_of_the_same_shape():
    X = cloud(300, 2, 0)
    small = compress(X, Gaussian(1.0), size=20, select="kcenter", rng=0)
    with pytest.raises(ValueError, match=r"its rows at \.indices are not the atoms"):
        small.reweigh(KernelMean.from_samples(cloud(300, 2, 1), Gaussian(1.0)))


@pytest.mark.parametrize("scale", [1e-170, 1e160])
def test_weights_whose_squares_leave_the_range_are_refused(scale):
    full = KernelMean.from_samples(cloud(300, 2, 0), Gaussian(1.0))
    with pytest.raises(ValueError, match="rescale the mean"):
        compress(full * scale, size=5)
    assert compress(full * 1e-130, size=5, rng=0).certificate.relative_error == pytest.approx(
        compress(full, size=5, rng=0).certificate.relative_error, rel=1e-9
    )


def test_at_keeps_saying_that_a_tolerance_was_not_reached():
    with pytest.warns(NotReachedWarning):
        small = compress(cloud(500, 5, 0), Gaussian(0.2), tol=0.01, max_size=20, rng=0)
    assert not small.at(10).reached


def test_quiet_is_only_the_thread_that_asked_for_it():
    def fall_short():
        return compress(cloud(300, 2, 0), Gaussian(0.3), tol=1e-6, max_size=3, rng=0).reached

    with quietly():
        assert not fall_short()
        with ThreadPoolExecutor(1) as pool, pytest.raises(NotReachedWarning):  # warnings are errors here
            pool.submit(fall_short).result()
    with pytest.warns(NotReachedWarning):
        fall_short()


@pytest.mark.parametrize("n", [400, 9000])  # errors computed exactly, and by frequencies
def test_the_error_at_the_median_distance_is_that_of_the_definition(n):
    X = cloud(n, 2, 3)
    for small in (compress(X, Gaussian(0.4), size=40, rng=0), compress(X, size=40, rng=0)):
        error, median = small.near_median.relative_error, small.near_median.distance
        assert median == KernelMean.from_samples(X, Gaussian("median")).kernel.width
        full = KernelMean.from_samples(X, Gaussian(median))
        exact = full.distance(KernelMean(small.mean.atoms, small.mean.weights, Gaussian(median))) / full.norm()
        assert error == pytest.approx(exact, rel=1e-6 if n < 1000 else 0.3)


def test_a_result_above_the_error_of_random_rows_warns_and_names_a_better_call():
    X = np.random.default_rng(0).normal(size=(4000, 6))
    with pytest.warns(UserWarning, match=r"is above that of 300 random rows, .* use sketch\(data, 300\)"):
        compress(X, size=300, kernel=Gaussian(2.0), select="kmeans", weights="own", rng=0)


@pytest.mark.parametrize(("kernel", "same"), [(0.5, Gaussian(0.5)), ("rbf", Gaussian(2**0.5)), (np.float32(2), Gaussian(2.0))])
def test_numbers_and_names_of_kernels(kernel, same):
    X = cloud(300, 4, 0)
    assert compress(X, kernel, size=20, rng=0).mean.kernel == same


def test_the_name_of_a_family_leaves_the_bandwidth_open():
    X = cloud(300, 2, 0)
    assert compress(X, "laplacian", size=20, rng=0).resolution == compress(X, Laplacian(), size=20, rng=0).resolution


@pytest.mark.parametrize("kernel", ["gausian", True, [1.0]])
def test_other_kernels_raise_an_error_that_lists_the_names(kernel):
    with pytest.raises(TypeError, match=r"kernel must .*Gaussian\(\.\.\.\).*'gaussian'"):
        compress(cloud(30, 2, 0), kernel, size=2)
