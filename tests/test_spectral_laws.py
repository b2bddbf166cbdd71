"""What every spectral estimator must keep to: scales that leave floating point, odd weights, parts, far rows, memory, threads."""

import warnings

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from cases import GivenPlaces, cloud
from reduset import Gaussian, compress
from reduset.spectral import (
    DisconnectedWarning,
    Nystroem,
    ReducedDiffusionMap,
    ReducedKernelPCA,
    ReducedLaplacianEigenmap,
    ReducedSpectralClustering,
    WeightedNystroem,
    room,
)
from reduset.spectral.graph import _connected

WALKS = [ReducedDiffusionMap(2), ReducedLaplacianEigenmap(2), ReducedSpectralClustering(2)]
PRODUCTS = [ReducedKernelPCA(2), Nystroem(n_components=9), WeightedNystroem(2, size=9)]
ALL = [*WALKS, *PRODUCTS]
EVERY = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)


def fresh(model, **options):
    return type(model)(**{**model.get_params(), "random_state": 0, **options})


def answer(model, X):
    return model.predict(X) if isinstance(model, ReducedSpectralClustering) else model.transform(X)


# -- scales ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", WALKS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_walk_knows_no_constant_of_the_kernel_even_one_that_leaves_floating_point(model, scale):
    X = scale * cloud(60, 300)
    density = Gaussian(30.0 * scale, space="l2", normalized=True)
    assert abs(density.log_energy(300)) > 750 or scale == 1e-3
    one = fresh(model, kernel=density, reduce=None).fit(X)
    other = fresh(model, kernel=Gaussian(np.sqrt(2) * 30.0 * scale), reduce=None).fit(X)
    np.testing.assert_allclose(answer(one, X), answer(other, X), atol=1e-9)


@pytest.mark.parametrize("model", PRODUCTS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("h", [1e-3, 30.0])
def test_a_kernel_whose_constant_leaves_floating_point_is_refused_where_it_counts(model, h):
    with pytest.raises(ValueError, match=r"k\(x, x\) = exp\(-?\d.* in 300 dimensions, .*; use normalized=False and space='rkhs'"):
        fresh(model, kernel=Gaussian(h, space="l2", normalized=True), reduce="kcenter").set_params(
            **({} if isinstance(model, Nystroem) else {"size": 9})
        ).fit(cloud(60, 300))


def test_a_compression_with_a_size_is_named_in_one_line():
    X = cloud(50)
    small = compress(X, Gaussian(1.0), size=5, weights="simplex", rng=0)
    with pytest.raises(ValueError, match=r"size=3 goes with a selector, which chooses so many atoms; got reduce=a Compression$"):
        ReducedKernelPCA(2, reduce=small, size=3).fit(X)


# -- what so few atoms do not have, and what the kernel does not connect ---------------------------------------------


def test_features_that_so_few_atoms_do_not_have_are_told():
    with pytest.warns(UserWarning, match="only 20 of the 30 components have an eigenvalue above 0 .* 20 atoms") as told:
        model = WeightedNystroem(30, size=20, kernel=Gaussian(0.3), random_state=0).fit(cloud(60))
    assert told[0].filename == __file__
    np.testing.assert_array_equal(model.transform(cloud(60))[:, 20:], 0.0)
    with pytest.warns(UserWarning, match="only .* of the 50 components"):
        ReducedSpectralClustering(2, n_components=50, kernel=Gaussian(3.0), random_state=0).fit(cloud(60))


@pytest.mark.parametrize(("wanted", "warns"), [(1, True), (2, True), (3, False), (5, False)])
def test_a_cut_tells_where_more_parts_fall_apart_than_it_may_have_clusters(wanted, warns):
    X = np.concatenate([cloud(30), cloud(20) + 100.0, cloud(10) - 100.0])
    cut = ReducedSpectralClustering(wanted, kernel=Gaussian(1.5), ell=2.0, random_state=0)
    if not warns:  # warnings are errors here
        labels = cut.fit_predict(X)
        assert not {*labels[:30]} & {*labels[30:50]}
        assert not {*labels[:50]} & {*labels[50:]}
        return
    with pytest.warns(
        DisconnectedWarning, match=rf"3 parts .*, of 30, 20, 10 rows: which of them share one of the {wanted} clusters"
    ):
        cut.fit(X)
    assert sorted(np.bincount(cut.parts_, cut.weights_)) == [10, 20, 30]


# -- components turned towards the rows ------------------------------------------------------------------------------


def test_as_many_atoms_as_rows_are_turned_towards_them_unless_they_are_the_rows():
    X = cloud(40)
    of_others = compress(cloud(300, seed=5), Gaussian(1.0), size=40, weights="own", select="random", rng=0)
    true = ReducedKernelPCA(3, kernel=Gaussian(1.0), reduce=None).fit(X)
    for options in ({"reduce": of_others}, {"reduce": GivenPlaces(1.001 * X), "size": 40, "kernel": Gaussian(1.0)}):
        pca = ReducedKernelPCA(3, **options).fit(X)
        assert len(pca.atoms_) == 40
        assert np.all(pca.eigenvalues_ <= true.eigenvalues_ * (1 + 1e-9))
        at = pca.transform(X)
        np.testing.assert_allclose(at.T @ at, np.diag(pca.eigenvalues_), atol=1e-8)


def test_rows_that_are_all_atoms_are_not_looked_at_again():
    X, weights = cloud(40), np.repeat([2.0, 0.0], 20)
    for options in ({"reduce": None}, {"reduce": "kcenter", "size": 40}):
        one, other = (
            ReducedKernelPCA(3, kernel=Gaussian(1.0), refine=refine, random_state=0, **options).fit(X, sample_weight=weights)
            for refine in (True, False)
        )
        np.testing.assert_array_equal(one.transform(X), other.transform(X))
        assert one.bounds_ == other.bounds_


# -- numbers out of reach --------------------------------------------------------------------------------------------


@EVERY
def test_rows_as_far_as_squares_can_be_taken_have_a_finite_answer_and_farther_ones_are_refused(model):
    model = fresh(model, kernel=Gaussian(1.0)).fit(cloud(40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far = answer(model, np.array([[1e6, 0.0], [-1e30, 1e30], [1e149, -1e149]]))
        assert np.isfinite(answer(model, np.array([[3e38, -3e38]], np.float32))).all()
    assert np.isfinite(far).all()
    with pytest.raises(ValueError, match="X must stay below 1e150 in size"):
        answer(model, np.array([[1e200, 0.0]]))


@pytest.mark.parametrize("alpha", [500.0, -5000.0])
def test_a_power_of_the_density_that_leaves_floating_point_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha must keep powers of the density within floating point, .*; 0 to 1 is usual"):
        ReducedDiffusionMap(2, alpha=alpha, kernel=Gaussian(0.5)).fit(cloud(60))


def test_the_way_back_does_not_depend_on_the_constant_of_the_kernel():
    X = cloud(100)
    back = []
    for normalized in (False, True):
        kernel = Gaussian(0.1, normalized=normalized, space="l2")
        pca = ReducedKernelPCA(20, kernel=kernel, fit_inverse_transform=True, alpha=0.1, reduce=None).fit(X)
        back.append(pca.inverse_transform(pca.transform(X)))
    np.testing.assert_allclose(back[0], back[1], atol=1e-8)


def test_a_bound_on_the_projection_that_rounding_would_break_is_not_given():
    X = cloud(30)
    faint = ReducedKernelPCA(kernel=Gaussian(50.0), reduce=None).fit(X)
    assert 0 < faint.eigenvalues_[-1] < 1e-9
    assert faint.bounds_.projection is None
    clear = ReducedKernelPCA(1, kernel=Gaussian(1.0), reduce=None).fit(X).bounds_.projection
    assert 0 < clear < 1e-5


# -- memory and threads ----------------------------------------------------------------------------------------------


@EVERY
def test_a_matrix_that_the_machine_cannot_hold_is_refused_before_it_is_asked_for(model, monkeypatch):
    monkeypatch.setattr(room, "memory", lambda: 1e5)  # room for 100 atoms
    own = "size" in model.get_params()
    told = r"matrix of 150 atoms takes 0.0 GB, .*; keep at most 100 atoms: set size \(n_components of Nystroem\), lower ell"
    with pytest.raises(MemoryError, match=told):
        fresh(model, reduce=None, kernel=Gaussian(1.0), **({"size": None} if own else {})).fit(cloud(150))
    few = {"reduce": "kmeans", "size": 90} if own else {"reduce": "kmeans", "n_components": 90}
    fresh(model, kernel=Gaussian(1.0), **few).fit(cloud(150))


def test_the_memory_of_this_machine_is_known_or_without_limit():
    assert room.memory() > 1e8


def test_parts_are_those_that_a_search_of_the_graph_finds():
    edges = np.random.default_rng(3).random((60, 60)) * (np.random.default_rng(4).random((60, 60)) < 0.012)
    edges = np.maximum(edges, edges.T)
    count, wanted = connected_components(edges > 0.1)
    assert 5 < count < 55
    np.testing.assert_array_equal(_connected(edges, 0.1), wanted)
