"""compress(pieces="components"): laws with shapes of their own, certified as atoms are."""

from dataclasses import replace

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, NotReachedWarning, compress, set_threads
from reduset.mixture import ComponentMean


def ridges(n, d=2, seed=0):
    """Five clouds, long and oblique."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, d))
    for k in range(5):
        rows = slice(k * n // 5, (k + 1) * n // 5)
        X[rows] = 2 * rng.normal(size=d) + rng.normal(size=X[rows].shape) @ (0.5 * rng.normal(size=(d, d)))
    return X


def lost(full, small):
    return small.distance(full) / full.norm()


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("kernel", [Gaussian(0.4), Gaussian(0.4, space="l2"), Gaussian(0.3, scales="robust")], ids=repr)
@pytest.mark.parametrize("n", [600, 6000], ids=["exact", "by frequencies"])
def test_the_certificate_is_true(n, kernel):
    X = ridges(n)
    small = compress(X, kernel, size=12, pieces="components", rng=0)
    assert isinstance(small.mean, ComponentMean)
    full = KernelMean.from_samples(X, small.mean.kernel)
    low, high = small.certificate.interval
    assert low * 0.97 <= lost(full, small.mean) <= high * 1.03
    assert small.mean.mass == pytest.approx(1)
    assert small.certificate.negative_mass == 0
    assert small.indices is None
    profile = small.profile()
    for k in range(2, len(profile.bandwidths) - 4, 3):  # beyond, the error is that of everything
        kernel = replace(small.mean.kernel, bandwidth=float(profile.bandwidths[k]))
        truth = lost(KernelMean.from_samples(X, kernel), small.mean.with_bandwidth(kernel.bandwidth))
        assert profile.intervals[k, 0] * 0.97 <= truth <= profile.intervals[k, 1] * 1.03


def test_few_components_do_what_takes_many_atoms():
    X = ridges(8000, 3)
    kernel = Gaussian("scott", normalized=True, space="l2")
    components = compress(X, kernel, size=20, pieces="components", rng=0)
    atoms = compress(X, kernel, size=200, weights="simplex", rng=0)
    assert components.certificate.interval[1] < atoms.certificate.interval[0]


def test_the_descent_makes_them_better_than_the_moments_of_groups():
    from reduset.compression.components import fit_moments

    X = ridges(5000, 3)
    full = KernelMean.from_samples(X, Gaussian(0.3, normalized=True))
    start = fit_moments(full, 15, np.random.default_rng(0))
    fitted = compress(full, size=15, pieces="components", rng=0)
    even = ComponentMean.from_pieces(start, np.full(len(start), 1 / len(start)), full.kernel)
    assert lost(full, fitted.mean) < lost(full, even) / 3


def test_spreads_are_covariances_so_that_finer_scales_can_be_looked_at():
    X = np.concatenate([ridges(3000), np.repeat(ridges(20, seed=3), 20, axis=0)])  # with places of many rows
    small = compress(X, Gaussian(0.3), size=30, pieces="components", rng=0)
    assert np.linalg.eigvalsh(small.mean.pieces.spreads).min() > -1e-9
    assert small.mean.with_bandwidth(1e-3).norm() > 0


def test_stand_ins_have_mass_mean_and_covariance_of_the_rows(monkeypatch):
    from reduset.compression import components as component_fit
    from reduset.mixture.pieces import frame_of

    X, w = ridges(20_000, 3), np.random.default_rng(1).uniform(0.5, 2, 20_000)
    full = KernelMean.from_samples(X, Gaussian(0.5), w)
    frame = frame_of(full.kernel, full.atoms)
    z, weights = component_fit.substitutes(full, frame, 2000, np.random.default_rng(0))
    assert 2000 <= len(z) <= 9000
    assert weights.sum() == pytest.approx(1)
    all_rows = frame.apply(X)
    np.testing.assert_allclose(weights @ z, full.weights @ all_rows, atol=1e-9)
    np.testing.assert_allclose(
        np.cov(z.T, aweights=weights, ddof=0), np.cov(all_rows.T, aweights=full.weights, ddof=0), rtol=0.02, atol=0.02
    )
    few, same = component_fit.substitutes(full, frame, 10_000, np.random.default_rng(0))
    np.testing.assert_array_equal(few, all_rows)
    monkeypatch.setattr(component_fit, "ROWS_AT_ONCE", 3000)
    in_parts, _ = component_fit.substitutes(full, frame, 2000, np.random.default_rng(0))
    np.testing.assert_allclose(np.sort(in_parts, axis=0), np.sort(z, axis=0), atol=1e-9)
    assert len(same) == 20_000


@pytest.mark.slow
def test_size_and_tolerance_give_the_resolution():
    X = ridges(6000)
    small = compress(X, size=15, tol=0.05, pieces="components", rng=0)
    assert small.reached
    assert small.resolution == small.mean.kernel.bandwidth
    for width in small.resolution * 2.0 ** np.arange(0, 4, 0.5):
        full = KernelMean.from_samples(X, Gaussian(width, normalized=True))
        assert lost(full, small.mean.with_bandwidth(width)) <= 0.05 * 1.02
    assert small.resolution < compress(X, size=15, tol=0.05, rng=0).resolution / 2
    assert small.resolution < compress(X, size=15, tol=0.02, pieces="components", rng=0).resolution


def test_a_tolerance_gives_about_the_fewest():
    X = ridges(3000)
    small = compress(X, Gaussian(0.5), tol=0.05, pieces="components", rng=0)
    assert small.reached
    assert small.certificate.interval[1] <= 0.05
    fewer = compress(X, Gaussian(0.5), size=max(small.size // 2, 1), pieces="components", rng=0)
    assert fewer.certificate.interval[1] > 0.05
    with pytest.warns(NotReachedWarning, match="tol=0.0001.*3"):
        compress(X, Gaussian(0.3), tol=1e-4, max_size=3, pieces="components", rng=0)


def test_nested_sizes_print_and_times():
    small = compress(ridges(3000), Gaussian(0.5), size=12, pieces="components", rng=0)
    few = small.at(5)
    assert few.size == 5
    assert few.certificate.relative_error > small.certificate.relative_error
    assert small.path.sizes[-1] == 12
    assert small.path.relative_errors[-1] == pytest.approx(small.certificate.relative_error)
    assert "3,000 rows × 2 columns -> 12 weighted components" in str(small)
    assert "12 components" in small.details()
    assert small.timings["fit"] > 0
    again = small.reweigh(KernelMean.from_samples(ridges(3000), Gaussian(0.8)), weights="free")
    assert again.certificate.relative_error < 0.2
    assert again.mean.kernel.bandwidth == 0.8


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    X = ridges(20_000, 3)
    found = []
    for threads in (1, 2):
        set_threads(threads)
        try:
            found.append(compress(X, Gaussian(0.5), size=10, pieces="components", rng=3))
        finally:
            set_threads(None)
    np.testing.assert_array_equal(found[0].mean.covariances, found[1].mean.covariances)
    np.testing.assert_array_equal(found[0].mean.weights, found[1].mean.weights)


def test_rows_of_no_weight_do_not_count():
    X = ridges(2000)
    none = np.concatenate([np.ones(2000), np.zeros(500)])
    with_others = compress(np.concatenate([X, 50 + X[:500]]), Gaussian(0.5), size=8, pieces="components", sample_weight=none, rng=0)
    alone = compress(X, Gaussian(0.5), size=8, pieces="components", rng=0)
    np.testing.assert_allclose(with_others.mean.means.min(axis=0), alone.mean.means.min(axis=0), atol=0.2)
    assert with_others.mean.means.max() < 20
    assert with_others.certificate.relative_error == pytest.approx(alone.certificate.relative_error, rel=0.5)


def test_as_many_components_as_rows_lose_nothing():
    X = ridges(40)
    small = compress(X, Gaussian(0.5), size=40, pieces="components", rng=0)
    assert small.certificate.relative_error < 1e-5


@pytest.mark.parametrize(
    "X",
    [
        np.ones((50, 2)),
        np.column_stack([ridges(400), np.ones(400)]),
        np.random.default_rng(0).integers(0, 2, size=(400, 2)),
        np.random.default_rng(0).integers(0, 50, size=(400, 3)),
        np.random.default_rng(0).normal(size=(20, 30)),
        1e-8 * ridges(400),
        1e9 + ridges(400),
        np.repeat(ridges(3), 100, axis=0),
    ],
    ids=["one row", "constant column", "two values", "integers", "more columns than rows", "small", "far from 0", "duplicates"],
)
def test_data_of_every_kind_have_components(X):
    kernel = Gaussian(1.0) if (X[0] == X).all() else Gaussian("median")
    small = compress(X, kernel, size=5, pieces="components", rng=0)
    assert small.certificate.relative_error < 0.5
    assert np.isfinite(small.mean.covariances).all()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kernel": Laplacian(1.0)}, TypeError, r"pieces='components' .*got Laplacian\(1\)"),
        ({"select": "kmeans"}, ValueError, "select is not supported with pieces='components'"),
        ({"refine": True}, ValueError, "refine is not supported"),
        ({"groups": np.zeros(60)}, ValueError, "groups.*pieces='components'"),
        ({"weights": "own"}, ValueError, "weights='own' needs a selector .*, got Auto"),
        ({"pieces": "shapes"}, ValueError, "pieces .*got 'shapes'$"),
    ],
)
def test_what_does_not_go_together_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        compress(ridges(60), **({"kernel": Gaussian(1.0), "size": 3, "pieces": "components"} | options))


def test_weights_of_both_signs_and_many_columns_are_refused():
    signed = KernelMean(ridges(20), np.linspace(-1, 2, 20), Gaussian(1.0))
    with pytest.raises(ValueError, match=r"weights, got one of -1"):
        compress(signed, size=3, pieces="components")
    with pytest.raises(ValueError, match=r"takes up to 64 columns, .* got 70"):
        compress(np.random.default_rng(0).normal(size=(80, 70)), Gaussian(1.0), size=3, pieces="components")


def test_the_most_components_are_those_allowed(monkeypatch):
    from reduset.compression.plan import COMPONENTS, DEFAULTS, GIVEN

    monkeypatch.setitem(DEFAULTS, (GIVEN, COMPONENTS), replace(DEFAULTS[GIVEN, COMPONENTS], most=2))
    for most, told in (({}, 2), ({"max_size": 4}, 4)):
        with pytest.warns(NotReachedWarning, match=f"was not reached with {told} components"):
            compress(ridges(1000), Gaussian(0.3), tol=1e-4, pieces="components", rng=0, **most)
