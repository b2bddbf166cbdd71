"""What every spectral estimator must keep to: scales that leave floating point, odd weights, parts, far rows, memory, threads."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.decomposition import KernelPCA

from cases import SELECTORS, GivenPlaces, cloud
from reduset import Gaussian, Laplacian, Student, compress, set_threads
from reduset.spectral import (
    DisconnectedWarning,
    Nystroem,
    ReducedDiffusionMap,
    ReducedKernelPCA,
    ReducedLaplacianEigenmap,
    ReducedSpectralClustering,
    WeightedNystroem,
    reduction,
)
from reduset.spectral.graph import _connected_components

WALKS = [ReducedDiffusionMap(2), ReducedLaplacianEigenmap(2), ReducedSpectralClustering(2)]
PRODUCTS = [ReducedKernelPCA(2), Nystroem(n_components=9), WeightedNystroem(2, size=9), WeightedNystroem(2, size=9, all_rows=True)]
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
    with pytest.raises(ValueError, match=r"size=3 .*got reduce=a Compression;"):
        ReducedKernelPCA(2, reduce=small, size=3).fit(X)


# -- what so few atoms do not have, and what the kernel does not connect ---------------------------------------------


def test_features_that_so_few_atoms_do_not_have_are_told():
    with pytest.warns(UserWarning, match="only 20 of the 30 components .* 20 atoms") as told:
        model = WeightedNystroem(30, size=20, kernel=Gaussian(0.3), random_state=0).fit(cloud(60))
    assert told[0].filename == __file__
    np.testing.assert_array_equal(model.transform(cloud(60))[:, 20:], 0.0)
    with pytest.warns(UserWarning, match="only .* of the 50 components"):
        ReducedSpectralClustering(2, n_components=50, kernel=Gaussian(3.0), random_state=0).fit(cloud(60))


@pytest.mark.parametrize(("wanted", "warns"), [(2, True), (3, False), (5, False)])
def test_a_cut_tells_where_more_parts_fall_apart_than_it_may_have_clusters(wanted, warns):
    X = np.concatenate([cloud(30), cloud(20) + 100.0, cloud(10) - 100.0])
    cut = ReducedSpectralClustering(wanted, kernel=Gaussian(1.5), ell=2.0, random_state=0)
    if not warns:  # warnings are errors here
        labels = cut.fit_predict(X)
        assert not {*labels[:30]} & {*labels[30:50]}
        assert not {*labels[:50]} & {*labels[50:]}
        return
    with pytest.warns(DisconnectedWarning, match=rf"3 disconnected parts, of 30, 20, 10 rows: .*{wanted} clusters"):
        cut.fit(X)
    assert sorted(np.bincount(cut.parts_, cut.weights_)) == [10, 20, 30]
    assert not cut.set_params(n_clusters=1).fit_predict(X).any()  # of one cluster there is nothing to tell


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
    monkeypatch.setattr(reduction, "physical_memory", lambda: 1e5)  # room for 100 atoms
    own = "size" in model.get_params()
    told = r"matrix of 150 atoms takes 0.0 GB, .*; keep at most 100 atoms: set size \(n_components of Nystroem\), lower ell"
    with pytest.raises(MemoryError, match=told):
        fresh(model, reduce=None, kernel=Gaussian(1.0), **({"size": None} if own else {})).fit(cloud(150))
    few = {"reduce": "kmeans", "size": 90} if own else {"reduce": "kmeans", "n_components": 90}
    fresh(model, kernel=Gaussian(1.0), **few).fit(cloud(150))


def test_the_memory_of_this_machine_is_known_or_without_limit():
    assert reduction.physical_memory() > 1e8


def test_parts_are_those_that_a_search_of_the_graph_finds():
    edges = np.random.default_rng(3).random((60, 60)) * (np.random.default_rng(4).random((60, 60)) < 0.012)
    edges = np.maximum(edges, edges.T)
    count, wanted = connected_components(edges > 0.1)
    assert 5 < count < 55
    np.testing.assert_array_equal(_connected_components(edges, 0.1), wanted)


def test_the_number_of_threads_changes_nothing():
    X = cloud(1500, 3)
    for model in ALL:
        answers = []
        for count in (1, 2):
            set_threads(count)
            answers.append(answer(fresh(model, kernel=Gaussian(1.5)).fit(X), X))
        set_threads(None)
        np.testing.assert_array_equal(*answers)


# -- bounds, for every selector and weights --------------------------------------------------------------------------


def features(K):
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def operator(F, shares, centre):
    F = (F - shares @ F if centre else F) * np.sqrt(shares)[:, None]
    return F.T @ F


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("reduce", [None, *(name for name in SELECTORS if name not in ("auto", "plain herding", "swapped"))])
@pytest.mark.filterwarnings("ignore:Shadow", "ignore:only .* components")
def test_bounds_hold_for_weighted_and_equal_rows_at_any_bandwidth(reduce):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        places = 2 * rng.normal(size=(rng.integers(2, 9), 2))
        X = places[rng.integers(0, len(places), 30)] + 10 ** rng.uniform(-8, 0) * rng.normal(size=(30, 2)) * rng.integers(0, 2)
        weights = rng.exponential(size=30) ** 3 * rng.integers(0, 3, 30) * 10 ** rng.uniform(-6, 6)
        kernel = [Gaussian(10 ** rng.uniform(-4, 4)), Gaussian(0.2, space="l2", normalized=True), Laplacian(1.0), Student(0.5)][
            seed % 4
        ]
        centre, refine = bool(seed & 1), bool(seed & 4)
        options = {"size": int(rng.integers(1, 30)) if reduce else None, "weights": ["auto", "nearest"][seed % 2]}
        count = [None, 1, 3, 29][rng.integers(4)]
        pca = ReducedKernelPCA(count, kernel=kernel, reduce=reduce, centre=centre, refine=refine, random_state=seed, **options).fit(
            X, sample_weight=weights
        )
        both = np.concatenate([X, pca.atoms_])
        F, peak = features(pca.kernel_.product_gram(both, both)), np.exp(pca.kernel_.log_energy(2))
        shares, masses = weights / weights.sum(), pca.weights_ / weights.sum()
        A, B = operator(F[:30], shares, centre), operator(F[30:], masses, centre)
        values, vectors = (part[..., ::-1][..., : len(pca.eigenvalues_)] for part in np.linalg.eigh(A))
        directions = np.sqrt(peak) * F[30:].T @ pca._functions.coefficients
        found = pca.eigenvalues_ / weights.sum() / peak
        gaps = {
            "mmd": (np.linalg.norm(shares @ F[:30] - masses @ F[30:]), np.sqrt(peak)),
            "hilbert_schmidt": (np.linalg.norm(A - B), peak),
            "eigenvalues": (np.linalg.norm(values - found[: len(values)]), peak),
            "projection": (np.linalg.norm(vectors @ vectors.T - directions @ directions.T), 1.0),
        }
        for name, (gap, unit) in gaps.items():
            bound = getattr(pca.bounds_, name)
            assert bound is None or gap <= bound / unit * (1 + 1e-9) + 2e-7, (seed, name)
        assert not refine or np.all(found[: len(values)] <= values + 1e-10), seed


# -- the walk on weighted rows, by its definition ---------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "time"), [(0.0, 0.0), (0.5, 2.5), (1.0, 1.0), (-0.5, 1.0), (1.7, 3.0)])
def test_a_map_of_weighted_rows_is_that_of_the_chances_to_step(alpha, time):
    X, Q = cloud(50), cloud(12, seed=1)
    shares = np.random.default_rng(0).exponential(size=50)
    shares /= shares.sum()

    def chances(rows):
        pairs = np.exp(-0.5 * ((rows[:, None] - X[None]) ** 2).sum(axis=2)) * shares / density**alpha
        return pairs / pairs.sum(axis=1, keepdims=True)

    density = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2)) @ shares
    values, f = np.linalg.eig(chances(X))  # as it stands, not symmetric
    order = np.argsort(-values.real)[1:4]
    values, f = values.real[order], f.real[:, order]
    ours = ReducedDiffusionMap(3, alpha=alpha, time=time, kernel=Gaussian(1.0), reduce=None).fit(X, sample_weight=40 * shares)
    np.testing.assert_allclose(ours.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(ours.stationary_ @ chances(X), ours.stationary_, rtol=1e-9)
    f /= np.sqrt(ours.stationary_ @ f**2)
    wanted = chances(Q) @ f * values ** (time - 1)
    at = ours.transform(Q)
    np.testing.assert_allclose(at * np.sign((at * wanted).sum(axis=0)), wanted, atol=1e-8)


# -- as scikit-learn's users know it -----------------------------------------------------------------------------------


def test_the_way_back_of_a_laplacian_is_scikit_learns():
    X = cloud(60, 3)
    theirs = KernelPCA(3, kernel=lambda x, y: np.exp(-0.4 * np.abs(x - y).sum()), fit_inverse_transform=True, alpha=0.1).fit(X)
    ours = ReducedKernelPCA(3, kernel="laplacian", gamma=0.4, reduce=None, fit_inverse_transform=True, alpha=0.1).fit(X)
    back = theirs.inverse_transform(theirs.transform(X))
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), back, atol=1e-8)


@EVERY
def test_frames_copies_and_other_layouts_give_the_same(model):
    pandas = pytest.importorskip("pandas")
    X = cloud(50)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    fitted = fresh(model, kernel=Gaussian(1.0)).fit(X)
    known = fresh(model, kernel=Gaussian(1.0)).fit(frame)
    assert known.feature_names_in_.tolist() == ["a", "b"]
    same = answer(fitted, X)
    for other in (
        answer(known, frame),
        answer(pickle.loads(pickle.dumps(fitted)), X),
        answer(clone(known).fit(np.asfortranarray(X)), X),
    ):
        np.testing.assert_array_equal(other, same)
    np.testing.assert_allclose(answer(clone(known).fit(X.astype(np.float32)), X.astype(np.float32)), same, atol=1e-5)
    if hasattr(model, "transform"):
        table = clone(known).set_output(transform="pandas").fit(frame).transform(frame)
        np.testing.assert_array_equal(table.to_numpy(), same)
        assert table.columns[0] == f"{type(model).__name__.lower()}0"
