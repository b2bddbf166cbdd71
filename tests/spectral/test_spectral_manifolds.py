"""Diffusion maps, Laplacian eigenmaps and normalised cuts on atoms: the dense ones where nothing is reduced or rows repeat."""

import numpy as np
import pytest
from sklearn.datasets import make_moons, make_swiss_roll
from sklearn.utils.estimator_checks import check_estimator

import reference_spectral as dense
from cases import KERNELS, cloud
from reduset import FunctionKernel, Gaussian
from reduset.spectral import DisconnectedWarning, ReducedDiffusionMap, ReducedLaplacianEigenmap, ReducedSpectralClustering
from reduset.spectral.graph import random_walk
from reduset.spectral.reduction import reduce_rows

MAPS = [ReducedDiffusionMap, ReducedLaplacianEigenmap]


def correlations(one, other):
    return [abs(np.corrcoef(one[:, k], other[:, k])[0, 1]) for k in range(one.shape[1])]


# -- against dense matrices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("time", [0.0, 1.0, 2.5])
def test_with_every_row_an_atom_the_diffusion_map_is_the_dense_one(alpha, time):
    X = cloud(70)
    values, f = dense.generalised(dense.gaussian(X, X, 0.8), alpha, 4)
    assert values[0] == pytest.approx(1.0)
    ours = ReducedDiffusionMap(3, alpha=alpha, time=time, kernel=Gaussian(0.8), reduce=None).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, values[1:], rtol=1e-9)
    wanted = f[:, 1:] * values[1:] ** time
    np.testing.assert_allclose(dense.up_to_sign(ours.transform(X), wanted), wanted, atol=1e-8)
    np.testing.assert_allclose(ours.stationary_ @ ours.eigenvectors_**2, 1.0)


def test_distances_after_some_time_are_those_of_the_walks_chances():
    X = cloud(40)
    K = dense.gaussian(X, X, 1.0)
    P = K / K.sum(axis=1, keepdims=True)
    after = np.linalg.matrix_power(P, 3)
    stationary = K.sum(axis=1) / K.sum()
    at = ReducedDiffusionMap(20, alpha=0.0, time=3.0, kernel=Gaussian(1.0), reduce=None).fit_transform(X)
    wanted = ((after[3] - after[17]) ** 2 / stationary).sum()
    assert ((at[3] - at[17]) ** 2).sum() == pytest.approx(wanted, rel=1e-9)


def test_with_every_row_an_atom_the_eigenmap_solves_the_generalised_problem():
    X = cloud(70)
    K = dense.gaussian(X, X, 0.8)
    ours = ReducedLaplacianEigenmap(3, kernel=Gaussian(0.8), reduce=None).fit(X)
    at, degrees = ours.transform(X), K.sum(axis=1)
    np.testing.assert_allclose((np.diag(degrees) - K) @ at, degrees[:, None] * at * ours.eigenvalues_, atol=1e-8)
    assert np.all(np.diff(ours.eigenvalues_) > 0)


@pytest.mark.parametrize("Map", MAPS)
def test_whole_weights_are_rows_repeated(Map):
    X, counts = cloud(50), np.random.default_rng(2).integers(0, 4, 50)
    weighted = Map(3, kernel=Gaussian(0.8), reduce=None).fit(X, sample_weight=counts)
    plain = Map(3, kernel=Gaussian(0.8), reduce=None).fit(np.repeat(X, counts, axis=0))
    merged = Map(3, kernel=Gaussian(0.8), ell=1e6).fit(np.repeat(X, counts, axis=0))  # only equal rows are merged
    for other in (plain, merged):
        np.testing.assert_allclose(weighted.eigenvalues_, other.eigenvalues_, rtol=1e-9)
        np.testing.assert_allclose(dense.up_to_sign(weighted.transform(X), other.transform(X)), other.transform(X), atol=1e-8)
    assert len(merged.atoms_) == np.count_nonzero(counts)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_gives_a_walk_whose_functions_are_their_own_extension(kernel):
    X = cloud(60)
    ours = ReducedDiffusionMap(2, time=0.0, kernel=KERNELS[kernel], reduce=None).fit(X)
    np.testing.assert_allclose(ours.transform(X), ours.eigenvectors_, atol=1e-7)


# -- reduced ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["roll", "moons"])
@pytest.mark.parametrize("Map", MAPS)
def test_reduced_twentyfold_the_first_three_coordinates_are_those_of_all_rows(data, Map):
    X, h = (
        (make_swiss_roll(2000, random_state=0)[0], 3.0)
        if data == "roll"
        else (make_moons(2000, noise=0.05, random_state=0)[0], 0.25)
    )
    whole = Map(3, kernel=Gaussian(h), reduce=None).fit_transform(X)
    few = Map(3, kernel=Gaussian(h), reduce="kmeans", size=100, random_state=0).fit_transform(X)
    assert min(correlations(whole, few)) > 0.99


# -- apart, far, few -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("Map", MAPS)
def test_a_graph_in_parts_is_told_and_each_part_is_one_place(Map):
    X = np.concatenate([cloud(30), cloud(20) + 100.0, cloud(10) - 100.0])
    with pytest.warns(DisconnectedWarning, match="3 disconnected parts, of 30, 20, 10 rows: the first 2"):
        ours = Map(2, kernel=Gaussian(1.5), ell=2.0).fit(X)
    at = ours.transform(X)
    for part in (slice(0, 30), slice(30, 50), slice(50, 60)):
        np.testing.assert_allclose(at[part], np.broadcast_to(at[part][0], at[part].shape), atol=1e-6)
    assert len(np.unique(at.round(3), axis=0)) == 3
    assert sorted(np.bincount(ours.parts_, ours.weights_)) == [10, 20, 30]


@pytest.mark.parametrize("Map", MAPS)
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "cityblock", "function"])
def test_far_from_all_atoms_a_row_is_where_its_nearest_atom_leads(Map, kernel):
    X = cloud(40)
    ours = Map(2, kernel=KERNELS[kernel], reduce=None).fit(X)
    far = ours.transform([[1e4, 1e4], [-1e9, -1e9]])
    assert np.isfinite(far).all()
    if kernel == "gaussian":
        nearest = np.argmin(((X - 1e4) ** 2).sum(axis=1))
        power = getattr(ours, "time", 0.0)
        lam = ours.eigenvalues_ if Map is ReducedDiffusionMap else 1 - ours.eigenvalues_
        np.testing.assert_allclose(far[0], ours.eigenvectors_[nearest] * lam ** (power - 1), rtol=1e-9)


@pytest.mark.parametrize("Map", MAPS)
@pytest.mark.parametrize("X", [np.ones((20, 2)), np.ones((1, 2))])
def test_data_without_spread_have_an_answer(Map, X):
    with pytest.warns(UserWarning, match="only 0 of the 1 components"):
        at = Map(1, kernel=Gaussian(1.0)).fit_transform(X)
    np.testing.assert_array_equal(at, 0.0)


def test_the_iterative_solver_finds_what_the_dense_one_does():
    X = make_swiss_roll(600, random_state=0)[0]
    both = [ReducedDiffusionMap(3, kernel=Gaussian(3.0), reduce=None, eigen_solver=s).fit_transform(X) for s in ("dense", "arpack")]
    np.testing.assert_allclose(both[0], both[1], atol=1e-8)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (ReducedDiffusionMap(0), ValueError, "n_components .*got 0"),
        (ReducedDiffusionMap(50), ValueError, "n_components .*got 50"),
        (ReducedDiffusionMap(time=-1.0), ValueError, "time .*got -1.0"),
        (ReducedDiffusionMap(alpha="all"), TypeError, "alpha .*got 'all'"),
        (ReducedLaplacianEigenmap(kernel=FunctionKernel("cosine"), reduce=None), ValueError, "the kernel must not be negative"),
        (ReducedSpectralClustering(0), ValueError, "n_clusters .*got 0"),
        (ReducedSpectralClustering(51), ValueError, "n_clusters .*got 51"),
        (
            ReducedSpectralClustering(9, kernel=Gaussian(9.0)),
            ValueError,
            "n_clusters must be at most the number of atoms, . for 50",
        ),
        (ReducedSpectralClustering(2, n_components=50), ValueError, "n_components must be between 1 and 49"),
        (ReducedSpectralClustering(2, n_init=0), ValueError, "n_init must be at least 1"),
    ],
)
def test_bad_parameters_are_named(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(cloud(50) - 1.0)


# -- clusters --------------------------------------------------------------------------------------------------------


def conductance(K, labels):
    """The normalised cut: over clusters, the share of their degree that leaves them."""
    return sum(K[labels == c][:, labels != c].sum() / K[labels == c].sum() for c in np.unique(labels))


def test_moons_are_told_apart_also_where_they_were_not_seen():
    X, y = make_moons(1500, noise=0.05, random_state=0)
    cut = ReducedSpectralClustering(2, kernel=Gaussian(0.1), random_state=0).fit(X[:1000])
    assert len(cut.atoms_) < 700
    same = cut.predict(X[1000:]) == y[1000:]
    assert max(same.mean(), 1 - same.mean()) > 0.995
    np.testing.assert_array_equal(cut.labels_, cut.predict(X[:1000]))


def test_the_cut_of_two_is_the_best_that_the_eigenfunction_allows():
    X = cloud(80)
    K = dense.gaussian(X, X, 0.7)
    ours = ReducedSpectralClustering(2, kernel=Gaussian(0.7), reduce=None, random_state=0).fit(X)
    f = ReducedLaplacianEigenmap(1, kernel=Gaussian(0.7), reduce=None).fit_transform(X)[:, 0]
    best = min(conductance(K, (f > t).astype(int)) for t in np.sort(f)[:-1])
    assert conductance(K, ours.labels_) < 1.25 * best


def test_parts_that_nothing_connects_are_the_clusters():
    X = np.concatenate([cloud(30), cloud(20) + 100.0, cloud(10) - 100.0])
    cut = ReducedSpectralClustering(3, kernel=Gaussian(1.5), ell=2.0, random_state=0).fit(X)
    for part in (slice(0, 30), slice(30, 50), slice(50, 60)):
        assert len(set(cut.labels_[part])) == 1
    assert len(set(cut.labels_)) == 3
    assert cut.parts_.max() == 2


def test_whole_weights_give_the_clusters_of_rows_repeated():
    X = cloud(60)
    counts = np.random.default_rng(2).integers(1, 4, 60)
    one = ReducedSpectralClustering(2, kernel=Gaussian(0.7), reduce=None, random_state=0).fit(X, sample_weight=counts)
    other = ReducedSpectralClustering(2, kernel=Gaussian(0.7), ell=1e6, random_state=0).fit(np.repeat(X, counts, axis=0))
    same = one.predict(X) == other.predict(X)
    assert same.all() or not same.any()


def test_a_walk_keeps_its_stationary_shares():
    X = cloud(50)
    few = reduce_rows(X, Gaussian(0.8), "shadow", ell=2.0, rng=np.random.default_rng(0))
    steps = random_walk(few, 3, 0.5)
    chances = dense.gaussian(few.atoms, few.atoms, 0.8) * steps.attraction
    chances /= chances.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(steps.stationary @ chances, steps.stationary, rtol=1e-10)
    np.testing.assert_allclose(chances @ steps.functions, steps.functions * steps.eigenvalues, atol=1e-10)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("reduce", ["shadow", None])
@pytest.mark.parametrize("model", [*(Map(2) for Map in MAPS), ReducedSpectralClustering(2)], ids=str)
@pytest.mark.filterwarnings(
    "ignore:Shadow",
    "ignore:all points coincide",
    "ignore:only .* components",
    "ignore:the graph falls",
    "ignore:Number of distinct",
)
def test_scikit_learns_own_checks_pass(model, reduce):
    check_estimator(model.set_params(reduce=reduce, random_state=0), on_skip=None)
