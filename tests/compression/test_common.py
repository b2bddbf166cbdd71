"""The laws that every selector, weighting and kernel obeys."""

import gc
import itertools
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_mean as reference
from cases import DRAWN, KERNELS, SELECTORS, WAYS, WEIGHTINGS, Given, cloud, every_third, kernels_of, known, run, squeeze
from laws import EVERY, KERNEL, assert_identical, assert_same, rounding_of, with_selections
from reduset import FunctionKernel, Gaussian, KernelMean, compress, get_threads, set_threads
from reduset.select import KCenter, Random

# -- the certificate is true -----------------------------------------------------------------------------------------


@EVERY
def test_the_error_is_the_distance_of_the_two_means_and_within_the_bounds(select, weights, kernel):
    X = cloud()
    small, full = known(select, weights, kernel), KernelMean.from_samples(X, KERNELS[kernel])
    distance = full.distance(small.mean)
    assert small.certificate.relative_error == pytest.approx(distance / full.norm(), rel=1e-5)
    assert small.certificate.norm == pytest.approx(full.norm(), rel=1e-6)
    low, high = small.certificate.interval
    assert low <= small.certificate.relative_error <= high
    assert distance <= small.certificate.bound * (1 + 1e-9)
    assert small.certificate.bound <= small.certificate.theorem_bound * (1 + 1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "gaussian l2", "oblique", "scaled", "laplacian", "cityblock", "student l2"])
def test_the_error_is_that_of_the_dense_oracle(kernel):
    X = cloud(30)
    small, full = run(X, kernel=kernel, size=6), KernelMean.from_samples(X, KERNELS[kernel])
    assert small.certificate.relative_error == pytest.approx(reference.relative_error(full, small.mean), rel=1e-5)


@pytest.mark.covering_cases
@KERNEL
@pytest.mark.parametrize("groups", [False, True])
def test_every_nested_result_is_within_its_bounds(kernel, groups):
    X = cloud()
    selector = KCenter("mean", groups=np.arange(120) % 3 if groups else None)
    small, full = compress(X, KERNELS[kernel], size=15, select=selector, rng=0), KernelMean.from_samples(X, KERNELS[kernel])
    for size in range(1, 16):
        certificate = small.at(size).certificate
        assert full.distance(small.at(size).mean) <= certificate.bound * (1 + 1e-9)
        energy = np.exp(KERNELS[kernel].resolve(X).log_energy(2))
        least = -energy if kernel == "function" else 0.0  # a function may have negative inner products
        assert least * (1 + 1e-12) <= certificate.incoherence <= energy * (1 + 1e-12)


@pytest.mark.parametrize("size", [1, 2])
def test_bounds_hold_for_a_kernel_of_negative_values(size):
    X = cloud() - 1.0  # on all sides of the origin, so that some pairs point away from each other
    small, fresh = (compress(X, FunctionKernel("cosine"), size=m, select="kcenter", rng=0) for m in (2, size))
    full = KernelMean.from_samples(X, FunctionKernel("cosine"))
    for nested in (small.at(size), fresh):
        assert full.distance(nested.mean) <= nested.certificate.bound + 1e-7
        theorem, nu = nested.certificate.theorem_bound, nested.certificate.incoherence
        assert (theorem is None) == (nu < 0)  # Theorem 1 squares ν, and does not hold for a negative one
        assert theorem is None or full.distance(nested.mean) <= theorem + 1e-7


@pytest.mark.filterwarnings("ignore:Shadow. ell=2.5 keeps every one")
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 40),
    d=st.integers(1, 3),
    coarse=st.booleans(),
    share=st.floats(0, 1),
    pair=st.sampled_from(
        [(select, kernel) for select in WAYS for kernel in kernels_of(select) if kernel not in ("oblique", "scaled")]
    ),
    weights=st.sampled_from(WEIGHTINGS),
)
def test_any_small_cloud_has_finite_weights_and_a_true_certificate(seed, n, d, coarse, share, pair, weights):
    rng = np.random.default_rng(seed)
    select, kernel = pair
    X = rng.integers(0, 3, size=(n, d)).astype(float) if coarse else rng.normal(size=(n, d))
    small = run(X, select, weights, kernel, 1 + int(share * (n - 1)))
    full = KernelMean.from_samples(X, KERNELS[kernel])
    assert np.isfinite(small.mean.weights).all()
    assert len(np.unique(small.mean.atoms, axis=0)) == small.size
    # large weights of both signs, where atoms nearly coincide, cancel in the oracle
    distance, rounding = full.distance(small.mean), 1e-7 * full.norm() * (1 + np.abs(small.mean.weights).sum())
    stated = small.certificate.relative_error * full.norm()
    low, high = (end * full.norm() for end in small.certificate.interval)
    if small.certificate.method == "exact":  # up to the rounding that it states
        assert low * (1 - 1e-5) - rounding <= distance <= high * (1 + 1e-5) + rounding
    else:  # below the rounding of exact sums it is an estimate
        assert stated <= 2 * distance + rounding
        assert distance <= 2 * stated + rounding
    assert distance <= small.certificate.bound * (1 + 1e-9) + rounding


def test_the_sup_bound_holds_at_every_point_looked_at():
    X = cloud()
    small, full = known(), KernelMean.from_samples(X, KERNELS["gaussian"])
    Q = np.concatenate([X, cloud(500, seed=1)])
    assert np.abs(full(Q) - small.mean(Q)).max() <= small.certificate.sup_bound


# -- weights of the data ---------------------------------------------------------------------------------------------


# herding that must go on meets the repetitions, and the order of equally heavy shadows is rounding; in one case the steps of the
# descent increase the difference between a weighted and a repeated sum, which is rounding, to 5e-4 in three coordinates
@pytest.mark.covering_cases
@with_selections(
    among=WAYS,
    without=[*DRAWN[1:], "herding", "plain herding", "shadow"],
    without_cases=[("moved kmeans", "free", "scaled")],
)
def test_a_whole_weight_is_repetition(select, weights, kernel):
    X, w = cloud(60), np.random.default_rng(1).integers(1, 4, size=60)
    if select == "random":  # the draw differs, so the rows are given
        rows = Random().select(KernelMean.from_samples(X), 10, rng=0).indices
        fixed = compress(X, KERNELS[kernel], size=10, select=Given(rows), weights=weights, sample_weight=w, rng=0)
        places = np.concatenate([[0], np.cumsum(w)[:-1]])[rows]
        repeated = compress(np.repeat(X, w, axis=0), KERNELS[kernel], size=10, select=Given(places), weights=weights, rng=0)
    else:
        fixed = run(X, select, weights, kernel, 10, sample_weight=w)
        repeated = run(np.repeat(X, w, axis=0), select, weights, kernel, 10)
    assert_same(fixed, repeated, atoms=rounding_of(select))


@pytest.mark.covering_cases
@with_selections(among=WAYS, without=DRAWN[1:])
def test_a_zero_weight_is_removal(select, weights, kernel):
    X, w = cloud(60), np.random.default_rng(1).integers(0, 3, size=60).astype(float)
    w[::7] = 0
    if select == "random":
        rows = np.flatnonzero(w)[:10]
        kept = compress(X, KERNELS[kernel], size=10, select=Given(rows), weights=weights, sample_weight=w, rng=0)
        removed = compress(
            X[w > 0], KERNELS[kernel], size=10, select=Given(np.arange(10)), weights=weights, sample_weight=w[w > 0], rng=0
        )
    else:
        kept = run(X, select, weights, kernel, 10, sample_weight=w)
        removed = run(X[w > 0], select, weights, kernel, 10, sample_weight=w[w > 0])
    assert_same(kept, removed, atoms=rounding_of(select))


@pytest.mark.covering_cases
@with_selections(among=SELECTORS)
def test_rows_of_no_weight_are_never_chosen(select, weights, kernel):
    X, w = cloud(60), np.random.default_rng(1).integers(0, 3, size=60).astype(float)
    for size in (5, int(np.count_nonzero(w))):
        chosen = SELECTORS[select].select(KernelMean.from_samples(X, KERNELS[kernel], w), size, rng=0)
        assert len(chosen.atoms) <= size
        if chosen.indices is not None:
            assert len(np.unique(chosen.indices)) == len(chosen.indices)
            assert np.all(w[chosen.indices] > 0)


@pytest.mark.covering_cases
@EVERY
def test_only_the_ratios_of_sample_weights_matter(select, weights, kernel):
    X, w = cloud(60), np.random.default_rng(1).uniform(0, 3, size=60)
    assert_same(run(X, select, weights, kernel, sample_weight=w), run(X, select, weights, kernel, sample_weight=8 * w))


# -- invariance ------------------------------------------------------------------------------------------------------


@KERNEL
@pytest.mark.parametrize("weights", ["free", "simplex"])
def test_the_order_of_the_rows_does_not_matter(kernel, weights):
    X = cloud()
    order = np.random.default_rng(3).permutation(len(X))
    one, other = run(X, weights=weights, kernel=kernel), run(X[order], weights=weights, kernel=kernel)
    np.testing.assert_array_equal(order[other.indices], one.indices)
    assert_same(one, other)


@pytest.mark.covering_cases
@EVERY
def test_a_shift_of_the_data_does_not_matter(select, weights, kernel):
    X = cloud()
    shift = np.array([1000.0, -300.0])
    one, other = known(select, weights, kernel), run(X + shift, select, weights, kernel)
    np.testing.assert_array_equal(one.indices, other.indices)
    rounding = max(1e-6, 10 * rounding_of(select))
    np.testing.assert_allclose(other.mean.atoms - shift, one.mean.atoms, rtol=0, atol=max(1e-9, rounding_of(select)))
    np.testing.assert_allclose(other.mean.weights, one.mean.weights, rtol=rounding, atol=rounding)
    assert other.certificate.relative_error == pytest.approx(one.certificate.relative_error, rel=rounding)


@pytest.mark.parametrize("select", WAYS)
def test_a_common_scale_of_data_and_bandwidth_does_not_matter(select):
    X, scale = cloud(), 2.0**20
    one, other = (squeeze(s * X, Gaussian(0.5 * s), select, size=15, rng=0) for s in (1.0, scale))
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_allclose(other.mean.atoms / scale, one.mean.atoms, rtol=0, atol=max(1e-9, rounding_of(select)))
    np.testing.assert_allclose(other.mean.weights, one.mean.weights, rtol=max(1e-7, rounding_of(select)))


@pytest.mark.covering_cases
@EVERY
def test_the_same_seed_gives_the_same_result(select, weights, kernel):
    one, other = (run(cloud(), select, weights, kernel, rng=5) for _ in range(2))
    assert_identical(one, other)


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize(
    ("select", "kernel"),
    [(select, kernel) for select in ("kcenter", "random") for kernel in ("gaussian", "cityblock", "student l2", "function")]
    + [(select, every_third(select)[0]) for select in WAYS[2:] if select != "auto"]
    + [("auto", "laplacian"), ("cholesky", "function")],
)
def test_the_number_of_threads_does_not_matter(select, kernel):
    n = 1500 if kernel == "function" else 6000 if select in ("kcenter", "random", "kmeans") else 3000
    X = cloud(n, 2 if kernel in ("oblique", "scaled") else 4)
    results = []
    before = get_threads()
    try:
        for count in (1, 2, 5):
            set_threads(count)
            results.append(run(X, select, "free", kernel, 40, rng=5))
    finally:
        set_threads(None)
    assert get_threads() == before
    for other in results[1:]:
        assert_identical(results[0], other)


# -- what goes in and what stays -------------------------------------------------------------------------------------


@pytest.mark.covering_cases
@EVERY
def test_inputs_are_never_changed(select, weights, kernel):
    X, w = cloud(), np.random.default_rng(0).uniform(size=120)
    old_X, old_w, state = X.copy(), w.copy(), repr(KERNELS[kernel])
    small = run(X, select, weights, kernel, sample_weight=w)
    small.at(4), small.reweigh(KernelMean.from_samples(X, KERNELS[kernel], w), weights="free")
    np.testing.assert_array_equal(X, old_X)
    np.testing.assert_array_equal(w, old_w)
    assert X.flags.writeable
    assert w.flags.writeable
    assert repr(KERNELS[kernel]) == state


class Traced(np.ndarray):
    """An array that can be watched."""


@pytest.mark.covering_cases
@EVERY
def test_a_result_keeps_no_reference_to_the_data(select, weights, kernel):
    gc.freeze()  # what was there before cannot have met the data, and looking through it takes long
    X = cloud().view(Traced)
    full = KernelMean.from_samples(X, KERNELS[kernel])
    watched = [weakref.ref(X), weakref.ref(full)]
    small = squeeze(full, select=select, size=10, weights=weights, rng=0)
    nested = small.at(4)
    del X, full
    gc.collect()
    assert [ref() for ref in watched] == [None, None]
    assert nested.selected == 4
    held = sum(array.nbytes for array in arrays_within(small))
    assert held < 120 * 10 * 8  # nothing of the size of the data by the atoms


def arrays_within(thing, seen=None):
    """Every array that an object reaches through its attributes and containers."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing if thing.base is None else np.asarray(thing.base)
        return
    inside = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list | tuple) else ()
    for child in itertools.chain(inside, vars(thing).values() if hasattr(thing, "__dict__") and not callable(thing) else ()):
        yield from arrays_within(child, seen)


def test_results_are_read_only():
    small = known()
    for array in (small.mean.atoms, small.mean.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        small.indices = None


# -- signed means, groups, compressions of compressions --------------------------------------------------------------


@pytest.mark.covering_cases
@pytest.mark.parametrize(
    ("select", "kernel"),
    [(select, kernel) for select in (KCenter("mean"), KCenter("mean", groups=np.arange(120) % 2), Random()) for kernel in KERNELS]
    + [(select, kernel) for select in WAYS[2:] for kernel in kernels_of(select)[2::3]],
)
def test_signed_means_compress_like_any_other(select, kernel):
    """A discriminative mean: one class counts up, the other down, and the mass is nothing."""
    X = cloud()
    full = KernelMean(X, np.where(np.arange(120) % 2, -1 / 60, 1 / 60), KERNELS[kernel])
    for weights in ("free", "sum_to_one"):
        way = squeeze if isinstance(select, str) else compress
        small = way(full, size=25, select=select, weights=weights, rng=0)
        distance = full.distance(small.mean)
        assert small.certificate.relative_error == pytest.approx(distance / full.norm(), rel=1e-5)
        assert distance <= small.certificate.bound * (1 + 1e-9)
        if weights == "sum_to_one":
            assert small.mean.mass == pytest.approx(0, abs=1e-9)


def test_the_sign_of_a_mean_passes_through():
    full = KernelMean(cloud(), np.random.default_rng(0).normal(size=120), KERNELS["gaussian"])
    up, down = (compress(f, size=20, select=KCenter("mean"), rng=0) for f in (full, -full))
    np.testing.assert_allclose(down.mean.weights, -up.mean.weights, rtol=1e-9)
    assert down.certificate.relative_error == pytest.approx(up.certificate.relative_error, rel=1e-9)


@KERNEL
def test_groups_cover_each_class(kernel):
    labels = np.where(np.arange(120) < 3, "rare", np.where(np.arange(120) < 60, "a", "b"))
    small = compress(cloud(), KERNELS[kernel], size=3, select=KCenter("mean", groups=labels), rng=0)
    assert sorted(labels[small.indices]) == ["a", "b", "rare"]


@pytest.mark.covering_cases
@pytest.mark.filterwarnings("ignore:Shadow. ell=2.5 keeps every one")  # shadows of shadows: no atom covers another
@EVERY
def test_a_compression_can_be_compressed(select, weights, kernel):
    X = cloud()
    full = KernelMean.from_samples(X, KERNELS[kernel])
    once = squeeze(full, select=select, size=60, rng=0)
    twice = squeeze(once.mean, select=select, size=12, weights=weights, rng=0)
    assert twice.n_samples == once.size
    lost = once.certificate.relative_error * full.norm() + twice.certificate.relative_error * once.mean.norm()
    assert full.distance(twice.mean) <= lost * (1 + 1e-6)
    assert twice.certificate.relative_error == pytest.approx(once.mean.distance(twice.mean) / once.mean.norm(), rel=1e-4)


def test_compressing_to_the_same_size_changes_nothing():
    once = known()
    again = compress(once.mean, size=15, select=KCenter(first=0), rng=0)
    order = np.argsort(again.indices)
    np.testing.assert_allclose(again.mean.weights[order], once.mean.weights, rtol=1e-6)


def test_the_result_speaks():
    text = known("kcenter", "simplex", "oblique").details()
    for word in ("120 points to 15 atoms in 2-D", "Gaussian(0.5", "error", "(exact)", "bound", "KCenter, weights simplex", "time"):
        assert word in text
