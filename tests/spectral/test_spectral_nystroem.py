"""Nyström features: scikit-learn's for the same rows, any selector's atoms, and the weighted kind by its definition."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem as Theirs
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import reference_spectral as dense
from cases import Given, cloud
from reduset import Gaussian, compress
from reduset.select import Shadow
from reduset.spectral import Nystroem, ReducedKernelPCA, WeightedNystroem, extension


@pytest.mark.parametrize(("kernel", "gamma"), [("rbf", 1.5), ("rbf", None), ("laplacian", 2.0)])
def test_of_the_same_rows_it_is_scikit_learns(kernel, gamma):
    X = cloud(100, 3)
    theirs = Theirs(kernel, gamma=gamma, n_components=12, random_state=0).fit(X)
    ours = Nystroem(kernel, gamma=gamma, n_components=12, reduce=Given(theirs.component_indices_)).fit(X)
    np.testing.assert_array_equal(ours.components_, theirs.components_)
    np.testing.assert_array_equal(ours.component_indices_, theirs.component_indices_)
    np.testing.assert_allclose(ours.normalization_, theirs.normalization_, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-8)


def test_every_row_an_atom_gives_the_kernel_matrix():
    X = cloud(40)
    features = Nystroem(Gaussian(0.5), reduce=None).fit_transform(X)
    np.testing.assert_allclose(features @ features.T, dense.gaussian(X, X, 0.5), atol=1e-7)


def test_any_selector_and_a_compression_give_the_atoms():
    X = cloud(200)
    K = dense.gaussian(X, X, 1.0)

    def error(model):
        features = model.fit_transform(X)
        return np.linalg.norm(features @ features.T - K) / np.linalg.norm(K)

    uniform = np.mean([error(Nystroem(Gaussian(1.0), n_components=15, random_state=seed)) for seed in range(10)])
    assert error(Nystroem(Gaussian(1.0), n_components=15, reduce="kmeans", random_state=0)) < uniform
    small = compress(X, Gaussian(1.0), size=15, weights="simplex", select="kcenter", rng=0)
    model = Nystroem(None, reduce=small).fit(X)
    assert model.kernel_ == Gaussian(1.0)
    assert {tuple(row) for row in model.components_} <= {tuple(row) for row in small.mean.atoms}


def test_shadows_say_themselves_how_many_there_are_up_to_the_number_asked_for():
    X = cloud(150)
    assert len(Nystroem(Gaussian(1.0), n_components=200, reduce="shadow", ell=2.0).fit(X).components_) < 100
    assert len(Nystroem(Gaussian(1.0), n_components=7, reduce=Shadow(2.0)).fit(X).components_) == 7


def test_more_features_than_rows_are_told():
    with pytest.warns(UserWarning, match="n_components=30.*20"):
        assert Nystroem("rbf", n_components=30).fit_transform(cloud(20)).shape == (20, 20)


def test_weighted_features_are_eigenfunctions_under_the_density_of_the_data():
    X, Q = cloud(80), cloud(10, seed=4)
    counts = np.random.default_rng(1).integers(1, 5, 80)
    rows = np.repeat(X, counts, axis=0)
    ours = WeightedNystroem(3, kernel=Gaussian(1.0), reduce="shadow", size=None, ell=1e6).fit(rows)  # only equal rows are merged
    values, coordinates = dense.kernel_pca(dense.gaussian(rows, rows, 1.0), dense.gaussian(Q, rows, 1.0), 3, centre=False)
    np.testing.assert_allclose(ours.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(dense.up_to_sign(ours.transform(Q), coordinates), coordinates, atol=1e-8)


def test_with_as_many_features_as_atoms_the_weights_cancel():
    X = cloud(120)
    weighted = WeightedNystroem(12, kernel=Gaussian(0.7), reduce="kmeans", size=12, random_state=0).fit(X)
    plain = Nystroem(Gaussian(0.7), n_components=12, reduce="kmeans", random_state=0).fit(X)
    np.testing.assert_allclose(weighted.atoms_, plain.components_)
    one, other = weighted.transform(X), plain.transform(X)
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-7)


# -- eigenvectors extended to all rows ---------------------------------------------------------------------------------


def all_rows(count=3, **options):
    return WeightedNystroem(count, **{"kernel": Gaussian(0.7), "all_rows": True, "random_state": 0, **options})


@pytest.mark.parametrize(("reduce", "size"), [("kmeans", 12), ("random", 30), ("kcenter", 20), ("shadow", None)])
def test_the_form_of_all_rows_is_the_dense_computation(reduce, size):
    X, Q = cloud(90), cloud(11, seed=4)
    ours = all_rows(reduce=reduce, size=size, ell=2.0).fit(X)
    assert len(ours.atoms_) < 90
    values, vectors, wanted = dense.weighted_nystroem_of_all_rows(X, ours.atoms_, ours.weights_, Q, 0.7, 3)
    np.testing.assert_allclose(ours.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(dense.up_to_sign(ours.row_eigenvectors_, vectors), vectors, atol=1e-9)
    np.testing.assert_allclose(dense.up_to_sign(ours.transform(Q), wanted), wanted, atol=1e-9)


def test_the_form_of_all_rows_is_kernel_pca_where_every_row_is_an_atom():
    X, Q = cloud(50), cloud(10, seed=4)
    ours = all_rows(reduce=None, size=None).fit(X)
    values, wanted = dense.kernel_pca(dense.gaussian(X, X, 0.7), dense.gaussian(Q, X, 0.7), 3, centre=False)
    np.testing.assert_allclose(ours.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(dense.up_to_sign(ours.transform(Q), wanted), wanted, atol=1e-9)
    np.testing.assert_allclose(ours.row_eigenvectors_.T @ ours.row_eigenvectors_, np.eye(3), atol=1e-9)


def test_both_forms_share_the_eigenproblem_and_differ_in_what_they_keep():
    X = cloud(100)
    rows, atoms = all_rows(size=10).fit(X), all_rows(size=10, all_rows=False).fit(X)
    np.testing.assert_array_equal(rows.eigenvalues_, atoms.eigenvalues_)
    np.testing.assert_array_equal(rows.eigenvectors_, atoms.eigenvectors_)
    assert atoms.row_eigenvectors_ is None
    # the features of the rows by the atoms are the eigenvectors of the rows but for the length of each column
    by_atoms = atoms.transform(X)
    np.testing.assert_allclose(rows.row_eigenvectors_, by_atoms / np.linalg.norm(by_atoms, axis=0), atol=1e-12)
    assert rows.set_params(all_rows=False).fit(X).row_eigenvectors_ is None
    np.testing.assert_array_equal(rows.transform(X), by_atoms)


def test_repeated_rows_change_no_direction_of_the_form_of_all_rows():
    X, Q = cloud(40), cloud(10, seed=4)
    once, thrice = (all_rows(reduce="shadow", size=None, ell=2.0).fit(np.repeat(X, times, axis=0)) for times in (1, 3))
    np.testing.assert_allclose(thrice.eigenvalues_, 3 * once.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(dense.up_to_sign(thrice.transform(Q), once.transform(Q)), once.transform(Q), atol=1e-9)


def test_the_form_of_all_rows_holds_blocks_of_the_kernel_matrix_only(monkeypatch):
    X = cloud(500, 3)
    before = all_rows(size=40).fit(X).transform(X)
    largest = []
    kept = extension.KernelMaps.at

    def watched(self, points, rows=None):
        largest.append(len(points) * len(self._centres))
        return kept(self, points, rows)

    monkeypatch.setattr(extension.KernelMaps, "at", watched)
    monkeypatch.setattr(extension, "PAIRS_PER_BLOCK", 2000)
    after = all_rows(size=40).fit(X).transform(X)
    assert len(largest) > 100
    assert max(largest) <= 2000
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)


def test_the_form_of_all_rows_keeps_a_copy_of_the_rows():
    X, Q = cloud(60), cloud(10, seed=4)
    given = X.copy()
    ours = all_rows(size=9).fit(given)
    before = ours.transform(Q)
    np.testing.assert_array_equal(given, X)
    given[:] = 0.0
    np.testing.assert_array_equal(ours.transform(Q), before)


def test_components_of_all_rows_without_an_eigenvalue_are_zero():
    X = np.repeat([[0.0], [5.0], [9.0]], 20, axis=0)
    with pytest.warns(UserWarning, match="only 3 of the 5 components"):
        ours = all_rows(5, reduce="shadow", size=None).fit(X)
    np.testing.assert_array_equal(ours.row_eigenvectors_[:, 3:], 0.0)
    np.testing.assert_array_equal(ours.transform(X)[:, 3:], 0.0)


def test_kernel_pca_by_features_is_kernel_pca_where_every_row_is_an_atom():
    X = cloud(60)
    by_features = make_pipeline(Nystroem(Gaussian(0.5), reduce=None), PCA(3)).fit_transform(X)
    ours = ReducedKernelPCA(3, kernel=Gaussian(0.5), reduce=None).fit_transform(X)
    np.testing.assert_allclose(dense.up_to_sign(by_features, ours), ours, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (Nystroem(n_components=0), ValueError, "n_components .*got 0"),
        (Nystroem("linear"), ValueError, "kernel='linear' is not supported"),
        (Nystroem(reduce="luck"), ValueError, "reduce must be None, a Compression, a KernelMean, one of"),
        (WeightedNystroem(51), ValueError, "n_components .*got 51"),
        (WeightedNystroem(size=None), ValueError, "reduce='kmeans' needs size"),
        (WeightedNystroem(all_rows="yes"), TypeError, "all_rows must be True or False"),
    ],
)
def test_bad_parameters_are_named(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(cloud(50))


@pytest.mark.parametrize(
    "model",
    [
        Nystroem(n_components=5, random_state=0),
        WeightedNystroem(2, size=5, random_state=0),
        WeightedNystroem(2, size=5, all_rows=True, random_state=0),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:n_components=")
def test_scikit_learns_own_checks_pass(model):
    check_estimator(model, on_skip=None)
