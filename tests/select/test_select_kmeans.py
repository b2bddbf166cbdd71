"""k-means centres: a fixed point of Lloyd's algorithm in the kernel's coordinates, about as good as scikit-learn's."""

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.cluster import KMeans as SklearnKMeans

import reference
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, compress
from reduset.select import KMeans, kmeans

COVARIANCE = [[4.0, 0.5], [0.5, 0.2]]
KERNELS = [
    Gaussian(0.7),
    Gaussian(0.7, covariance=COVARIANCE),
    Laplacian(0.8, metric="cityblock", space="l2"),
    FunctionKernel("rbf", gamma=1.0),
]
KERNEL = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def blobs(n=300, d=2, seed=0, count=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 4 * rng.normal(size=(count, d))[rng.integers(0, count, n)]


def coordinates(kernel, X):
    return X if isinstance(kernel, FunctionKernel) else reference.whitened(kernel, X)


def inertia(X, centres, w=None):
    return float(np.average(reference.distances(X, centres).min(axis=1) ** 2, weights=w))


@pytest.fixture
def until_it_rests(monkeypatch):
    monkeypatch.setattr(kmeans, "LAST_SWEEPS", 500)


@pytest.fixture
def small_batches(monkeypatch):
    """Some hundred rows are many."""
    monkeypatch.setattr(kmeans, "SEED_ROWS", 64)
    monkeypatch.setattr(kmeans, "FIRST_ROWS", 128)


# -- Lloyd's algorithm -----------------------------------------------------------------------------------------------


@pytest.mark.fast_cases(9)
@KERNEL
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_where_it_rests_each_centre_is_the_mean_of_the_points_nearest_to_it(until_it_rests, kernel, weighted, seed):
    X = blobs(seed=seed)
    w = np.random.default_rng(seed).uniform(size=300) if weighted else np.ones(300)
    f = KernelMean.from_samples(X, kernel, w)
    chosen = KMeans().select(f, 12, rng=seed)
    owner, _ = reference.nearest(coordinates(kernel, X), coordinates(kernel, chosen.atoms))
    assert len(np.unique(owner)) == len(chosen.atoms) == 12
    for k, centre in enumerate(chosen.atoms):
        np.testing.assert_allclose(centre, np.average(X[owner == k], axis=0, weights=w[owner == k]), atol=1e-9)
    np.testing.assert_allclose(chosen.weights, np.bincount(owner, w / w.sum(), 12), rtol=1e-9)


@KERNEL
def test_a_selection_of_centres_has_no_rows(kernel):
    chosen = KMeans().select(KernelMean.from_samples(blobs(), kernel), 7, rng=0)
    assert chosen.indices is None
    assert chosen.atoms.shape == (7, 2)
    assert chosen.weights.sum() == pytest.approx(1)
    assert chosen.weights.min() > 0


def test_signed_weights_pull_by_their_size_and_are_added_up_with_their_sign(until_it_rests):
    X = blobs()
    w = np.random.default_rng(0).normal(size=300)
    chosen = KMeans().select(KernelMean(X, w, Gaussian(0.7)), 9, rng=0)
    owner, _ = reference.nearest(X, chosen.atoms)
    for k, centre in enumerate(chosen.atoms):
        np.testing.assert_allclose(centre, np.average(X[owner == k], axis=0, weights=np.abs(w[owner == k])), atol=1e-9)
    np.testing.assert_allclose(chosen.weights, np.bincount(owner, w, 9), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=repr)
@pytest.mark.parametrize(("n", "d", "size"), [(400, 2, 10), (1000, 3, 25), (500, 8, 12)])
def test_centres_are_about_as_good_as_those_of_scikit_learn(kernel, n, d, size):
    if d != 2 and kernel.covariance is not None:
        kernel = Gaussian(0.7, covariance=np.linspace(0.2, 3, d))
    X = blobs(n, d)
    Z = reference.whitened(kernel, X)
    ours, theirs = [], []
    for seed in range(5):
        chosen = KMeans().select(KernelMean.from_samples(X, kernel), size, rng=seed)
        ours.append(inertia(Z, reference.whitened(kernel, chosen.atoms)))
        theirs.append(inertia(Z, SklearnKMeans(size, n_init=1, random_state=seed).fit(Z).cluster_centers_))
    assert np.mean(ours) <= 1.3 * min(theirs)


def test_as_many_centres_as_points_are_the_points():
    X = blobs(30)
    chosen = KMeans().select(KernelMean.from_samples(X, Gaussian(0.7)), 30, rng=0)
    np.testing.assert_allclose(chosen.atoms[np.lexsort(chosen.atoms.T)], X[np.lexsort(X.T)], atol=1e-12)
    np.testing.assert_allclose(chosen.weights, 1 / 30)


@KERNEL
def test_fewer_distinct_points_than_centres_are_all_the_centres(kernel):
    X = np.repeat(blobs(6), 20, axis=0)
    chosen = KMeans().select(KernelMean.from_samples(X, kernel), 50, rng=0)
    assert len(chosen.atoms) == 6
    np.testing.assert_allclose(chosen.atoms[np.lexsort(chosen.atoms.T)], np.unique(X, axis=0)[np.lexsort(np.unique(X, axis=0).T)])
    np.testing.assert_allclose(chosen.weights, 1 / 6)


def test_the_place_of_the_origin_does_not_matter():
    X = np.rint(blobs() * 1024) / 1024  # a whole shift is exact
    one, other = (KMeans().select(KernelMean.from_samples(Y, Gaussian(0.7)), 12, rng=0).atoms for Y in (X, X + 2.0**20))
    np.testing.assert_allclose(other - 2.0**20, one, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_short_numbers_are_averaged_in_double(dtype):
    X = (100 * blobs()).astype(dtype)
    short, wide = (KMeans().select(KernelMean.from_samples(Y, Gaussian(70.0)), 12, rng=0).atoms for Y in (X, X.astype(float)))
    assert short.dtype == np.float64
    np.testing.assert_allclose(short, wide, rtol=1e-9)


# -- batches ---------------------------------------------------------------------------------------------------------


def test_batches_grow_within_each_other_up_to_a_limit(small_batches):
    X = blobs(2000)
    traversal = KMeans(rows=512).begin(KernelMean.from_samples(X, Gaussian(0.7)), np.random.default_rng(0))
    batches = [points for points, _ in traversal._batches(6)]
    assert [len(points) for points in batches] == [64, 128, 256, 512]
    for smaller, larger in itertools.pairwise(batches):
        np.testing.assert_array_equal(larger[: len(smaller)], smaller)


@pytest.mark.parametrize("n", [65, 100, 128, 129, 300, 2000])
def test_batches_lose_little(small_batches, n):
    ours, theirs = [], []
    for seed in range(12):
        X = blobs(n, seed=seed % 3)
        ours.append(inertia(X, KMeans(rows=512).select(KernelMean.from_samples(X, Gaussian(0.7)), 6, rng=seed).atoms))
        theirs.append(inertia(X, SklearnKMeans(6, n_init=1, random_state=seed).fit(X).cluster_centers_))
    assert np.mean(ours) <= 1.5 * np.mean(theirs)


def test_masses_are_counted_over_all_rows(small_batches):
    f = KernelMean.from_samples(blobs(2000), Gaussian(0.7))
    chosen = KMeans(rows=512).select(f, 6, rng=0)
    owner, _ = reference.nearest(f.atoms, chosen.atoms)
    np.testing.assert_allclose(chosen.weights, np.bincount(owner, minlength=6) / 2000)


def test_few_rows_of_most_of_the_weight_are_not_missed(small_batches):
    X, w = blobs(2000), np.ones(2000)
    X[:5], w[:5] = 50.0, 2000.0
    chosen = KMeans(rows=512).select(KernelMean.from_samples(X, Gaussian(0.7), w), 6, rng=0)
    assert np.abs(chosen.atoms - 50).max(axis=1).min() < 1e-6


def test_rare_places_are_seeded_where_there_are_few_of_them(small_batches):
    """Five places, two of them so rare that the first rows looked at hardly hold them."""
    X = np.repeat(10.0 * np.arange(5), [1000, 995, 995, 5, 5]).reshape(-1, 1)
    chosen = KMeans(rows=512).select(KernelMean.from_samples(X, Gaussian(0.7)), 5, rng=0)
    np.testing.assert_allclose(np.sort(chosen.atoms[:, 0]), 10.0 * np.arange(5))


def test_seeds_are_drawn_by_weight_and_squared_distance():
    X, w = np.array([[0.0], [1.0], [3.0], [3.5]]), np.array([1.0, 2.0, 1.0, 3.0])
    rng = np.random.default_rng(0)
    traversal = KMeans().begin(KernelMean.from_samples(X, Gaussian(0.7), w), rng)
    pairs = [tuple(traversal._seed(2, X, w)[:, 0].tolist()) for _ in range(3000)]
    D = (X - X.T) ** 2
    chances = {(i, j): w[i] / w.sum() * w[j] * D[i, j] / (w @ D[i]) for i, j in itertools.permutations(range(4), 2)}
    counts = [pairs.count((X[i, 0], X[j, 0])) for i, j in chances]
    expected = 3000 * np.array(list(chances.values()))
    common = expected > 8
    assert sum(counts) == 3000
    observed, expected = np.array(counts)[common], expected[common]
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 0.005


def test_rows_of_no_weight_pull_no_centre():
    X, w = blobs(), (np.arange(300) % 2).astype(float)
    far = np.where(w[:, None] > 0, X, 1e3)
    chosen = KMeans().select(KernelMean.from_samples(far, Gaussian(0.7), w), 12, rng=0)
    assert np.abs(chosen.atoms).max() < 100
    plain = KMeans().select(KernelMean.from_samples(X[w > 0], Gaussian(0.7)), 12, rng=0)
    np.testing.assert_allclose(chosen.atoms, plain.atoms, atol=1e-12)


@pytest.mark.parametrize(("n", "size", "d"), [(100, 5, 2), (10**6, 5, 2), (10**6, 5, 1000), (10**6, 10**5, 2)])
def test_as_many_rows_are_looked_at_as_are_quickly_swept_and_enough_for_every_cluster(n, size, d):
    rows = kmeans.largest_batch(n, size, d, kmeans.ROWS)
    assert rows == n or rows >= 16 * size
    assert rows <= max(16 * size, kmeans.ROWS)
    assert rows * d <= max(16 * size * d, kmeans.MAX_ENTRIES)
    assert kmeans.largest_batch(n, size, d, None) == n


def test_all_rows_are_all_rows_with_their_weights(small_batches):
    X, w = blobs(2000), np.random.default_rng(0).uniform(size=2000)
    traversal = KMeans(rows=None).begin(KernelMean.from_samples(X, Gaussian(0.7), w), np.random.default_rng(0))
    points, weights = traversal._batches(6)[-1]
    np.testing.assert_array_equal(points, X)
    np.testing.assert_allclose(weights, w / w.sum())


@pytest.mark.parametrize("rows", [0, -3])
def test_at_least_one_row_is_looked_at(rows):
    with pytest.raises(ValueError, match=r"rows must be at least 1.*None uses all rows"):
        KMeans(rows=rows)


def test_all_rows_bring_the_centres_closer_to_the_best(small_batches):
    X = blobs(2000)
    f = KernelMean.from_samples(X, Gaussian(0.7))
    few, every = (np.mean([inertia(X, KMeans(rows=rows).select(f, 40, rng=seed).atoms) for seed in range(6)]) for rows in (1, None))
    assert every < few


# -- centres and bandwidths ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [1e-140, 1e-20, 1e-3])
@pytest.mark.parametrize("covariance", [None, COVARIANCE], ids=["round", "oblique"])
def test_a_centre_that_would_see_no_point_is_put_on_one(bandwidth, covariance):
    X = blobs(200)
    f = KernelMean.from_samples(X, Gaussian(bandwidth, covariance=covariance))
    chosen = KMeans().select(f, 12, rng=0)
    assert {tuple(atom) for atom in chosen.atoms.tolist()} <= {tuple(x) for x in X.tolist()}
    assert chosen.weights.sum() == pytest.approx(1)
    small = compress(f, size=12, select="kmeans", rng=0)
    np.testing.assert_allclose(small.mean.weights, 1 / 200, rtol=1e-6)
    assert small.certificate.relative_error == pytest.approx(np.sqrt(1 - 12 / 200), rel=1e-6)


def test_a_centre_that_sees_its_points_stays_between_them():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    f = KernelMean.from_samples(X, Gaussian(0.5))
    np.testing.assert_allclose(np.sort(KMeans().select(f, 2, rng=0).atoms[:, 0]), [0.5, 10.5])


# -- as a compression ------------------------------------------------------------------------------------------------


def test_centres_beat_rows_at_a_small_size():
    X = blobs(1000)
    error = {
        name: compress(X, Gaussian("scott"), size=12, select=name, rng=0).certificate.relative_error
        for name in ("kmeans", "random")
    }
    assert error["kmeans"] < 0.8 * error["random"]


def test_a_tolerance_is_met_by_centres():
    small = compress(blobs(1000), Gaussian("median"), tol=0.02, select="kmeans", rng=0)
    assert small.reached
    assert small.indices is None
    assert len(small.dropped) == 0
    assert small.certificate.interval[1] <= 0.02
