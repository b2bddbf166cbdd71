"""Components turned towards all rows: the best that their span has, never above the truth, and Nyström's with all of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

import reference_spectral as dense
from cases import KERNELS, cloud
from reduset import Gaussian, compress, set_threads
from reduset.select import KCenter
from reduset.spectral import Nystroem, ReducedKernelPCA, components, extension, kernel_pca


def reduced_to(count, size, **options):
    return ReducedKernelPCA(count, **{"kernel": Gaussian(1.0), "reduce": KCenter("mean"), "size": size, **options})


def whole(count, **options):
    return ReducedKernelPCA(count, **{"kernel": Gaussian(1.0), "reduce": None, **options})


def test_with_all_functions_of_the_atoms_it_is_nystrom_followed_by_pca():
    X, Q = cloud(300, 3), cloud(40, 3, seed=4)
    ours = reduced_to(4, 25).fit(X)
    features = Nystroem(Gaussian(1.0), n_components=25, reduce=KCenter("mean")).fit(X)
    pca = PCA(4, svd_solver="full").fit(features.transform(X))
    np.testing.assert_allclose(ours.eigenvalues_, pca.explained_variance_ * 299, rtol=1e-8)
    wanted = pca.transform(features.transform(Q))
    np.testing.assert_allclose(dense.up_to_sign(ours.transform(Q), wanted), wanted, atol=1e-7)


def test_without_centring_it_is_nystrom_followed_by_a_singular_value_decomposition():
    X = cloud(300, 3)
    ours = reduced_to(4, 25, centre=False).fit(X)
    F = Nystroem(Gaussian(1.0), n_components=25, reduce=KCenter("mean")).fit(X).transform(X)
    np.testing.assert_allclose(ours.eigenvalues_, np.linalg.svd(F)[1][:4] ** 2, rtol=1e-8)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kernel=st.sampled_from(["gaussian", "gaussian l2", "laplacian", "student", "function"]),
    centre=st.booleans(),
    spare=st.integers(0, 10),
    size=st.integers(4, 20),
)
def test_eigenvalues_are_those_of_the_coordinates_and_never_above_the_rows_own(seed, kernel, centre, spare, size):
    X, weights = cloud(60, seed=seed), np.random.default_rng(seed).integers(0, 3, 60)
    options = {"kernel": KERNELS[kernel], "centre": centre}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_pca, "EXTRA_FUNCTIONS", spare)
        ours = reduced_to(3, size, **options).fit(X, sample_weight=weights)
    at = ours.transform(X)
    if centre:
        np.testing.assert_allclose(weights @ at, 0.0, atol=1e-8 * np.abs(at).max() * weights.sum())
    products = at.T @ (weights[:, None] * at)
    np.testing.assert_allclose(products, np.diag(ours.eigenvalues_), atol=1e-7 * ours.eigenvalues_[0])
    true = whole(3, **options).fit(X, sample_weight=weights).eigenvalues_
    assert np.all(ours.eigenvalues_ <= true * (1 + 1e-9) + 1e-9 * true[0])


def test_it_holds_more_of_the_rows_than_the_atoms_own_components_do():
    X = cloud(500, 3)
    for centre in (True, False):
        alone, turned = (reduced_to(3, 20, centre=centre, refine=refine).fit(X).transform(X) for refine in (False, True))
        held = [np.sum((at - at.mean(axis=0) * centre) ** 2) for at in (alone, turned)]
        assert held[1] > held[0]


def test_the_error_of_coordinates_falls_several_times():
    X, Q = cloud(1000, 3), cloud(200, 3, seed=9)
    wanted = whole(3).fit(X).transform(Q)
    gaps = []
    for refine in (False, True):
        found = ReducedKernelPCA(3, kernel=Gaussian(1.0), ell=2.0, refine=refine).fit(X)
        assert len(found.atoms_) < 700
        gaps.append(np.linalg.norm(dense.up_to_sign(found.transform(Q), wanted) - wanted))
    assert gaps[1] < gaps[0] / 4


def test_where_every_row_is_an_atom_nothing_is_turned():
    X = cloud(50)
    one, other = (whole(3, refine=refine).fit(X) for refine in (False, True))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


def test_the_weights_of_atoms_matter_little_once_the_rows_were_looked_at():
    X = cloud(400, 2)
    small = compress(X, Gaussian(1.0), size=40, weights="simplex", rng=0)
    by_share, by_nearest = (ReducedKernelPCA(3, reduce=small, weights=weights).fit(X) for weights in ("auto", "nearest"))
    np.testing.assert_allclose(by_share.eigenvalues_, by_nearest.eigenvalues_, rtol=1e-3)


def test_the_way_back_starts_from_the_coordinates_of_the_atoms():
    X = cloud(200)
    ours = reduced_to(4, 30, fit_inverse_transform=True, alpha=0.1).fit(X)
    np.testing.assert_allclose(ours.transform(ours.atoms_), ours._functions.coordinates, atol=1e-9)
    assert np.abs(ours.inverse_transform(ours.transform(X)) - X).mean() < 0.5


def test_zero_weights_are_rows_left_out():
    X, weights = cloud(120), np.repeat([1.0, 0.0], 60)
    one, other = reduced_to(3, 15).fit(X, sample_weight=weights), reduced_to(3, 15).fit(X[:60])
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(one.transform(X), other.transform(X), atol=1e-9)


def test_a_rough_span_of_many_atoms_serves_as_well_as_their_exact_components():
    X = cloud(3000, 3)
    options = {"kernel": Gaussian(1.0), "ell": 4.0}
    rough, exact = (ReducedKernelPCA(3, eigen_solver=solver, **options).fit(X) for solver in ("auto", "dense"))
    assert len(rough.atoms_) > 1100  # beyond, the solver iterates
    true = whole(3).fit(X).eigenvalues_
    assert np.all(rough.eigenvalues_ <= true)
    np.testing.assert_allclose(rough.eigenvalues_, exact.eigenvalues_, rtol=1e-4)
    assert np.all(true - rough.eigenvalues_ <= rough.bounds_.eigenvalues * 3000)


@pytest.mark.covering_cases
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("d", [3, 20])
def test_where_functions_are_many_for_the_atoms_a_span_by_more_products_serves_as_well(d, centre):
    X = np.random.default_rng(1).normal(size=(2000, d)) / np.sqrt(d)
    options = {"kernel": Gaussian(1.0), "reduce": "random", "size": 600, "centre": centre, "random_state": 0}
    rough, exact = (ReducedKernelPCA(5, eigen_solver=solver, **options).fit(X) for solver in ("auto", "dense"))
    assert 600 // components.PAIR_FRACTION < 5 + kernel_pca.EXTRA_FUNCTIONS <= 600 // kernel_pca.BLOCK_FRACTION
    true = whole(5, centre=centre).fit(X).eigenvalues_
    assert np.all(rough.eigenvalues_ <= true * (1 + 1e-9))
    assert np.all(true - rough.eigenvalues_ <= 1.2 * (true - exact.eigenvalues_) + 1e-6 * true)


@pytest.mark.covering_cases
@pytest.mark.parametrize("d", [3, 60])
@pytest.mark.parametrize("centre", [True, False])
def test_atoms_that_are_rows_are_looked_at_once_and_others_with_the_rest(d, centre, monkeypatch):
    X = np.random.default_rng(0).normal(size=(2500, d)) / np.sqrt(d)
    options = {"kernel": Gaussian(0.6), "reduce": "random", "size": 1200, "centre": centre, "random_state": 0}
    once = ReducedKernelPCA(3, **options).fit(X)
    monkeypatch.setattr(type(once._reduced), "rows_in", lambda self, X: None)
    twice = ReducedKernelPCA(3, **options).fit(X)
    np.testing.assert_allclose(once.eigenvalues_, twice.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(once.transform(X), twice.transform(X), atol=1e-9)
    np.testing.assert_allclose(once.transform(once.atoms_), once._functions.coordinates, atol=1e-9)


def test_rows_of_other_data_are_not_taken_for_the_atoms():
    X = cloud(300)
    small = compress(X, Gaussian(1.0), size=40, weights="simplex", rng=0, select="kcenter")
    found = ReducedKernelPCA(3, reduce=small).fit(X)
    if found.indices_ is not None:
        np.testing.assert_array_equal(found._reduced.rows_in(X), small.indices)
    assert ReducedKernelPCA(3, reduce=small).fit(X[::-1])._reduced.rows_in(X[::-1]) is None


# -- single precision ------------------------------------------------------------------------------------------------


def wide_rows(n, d=128, rank=128):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) / np.sqrt(rank * d) * np.linspace(3.0, 0.1, d)


def in_double(model, X, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(extension, "has_single_products", lambda profile, dimension: False)
        return model.fit(X), model.transform(X)


@pytest.mark.parametrize("centre", [True, False])
def test_single_precision_changes_less_than_the_atoms_do(centre, monkeypatch):
    X = wide_rows(2500)
    options = {"kernel": Gaussian(3.0), "reduce": "random", "size": 1200, "centre": centre, "random_state": 0}
    found = ReducedKernelPCA(3, **options).fit(X)
    assert extension.tolerates_single(found.kernel_, found._functions.coefficients, 128)
    exact, coordinates = in_double(ReducedKernelPCA(3, **options), X, monkeypatch)
    assert not np.array_equal(found.eigenvalues_, exact.eigenvalues_)
    np.testing.assert_allclose(found.eigenvalues_, exact.eigenvalues_, rtol=2e-6)
    np.testing.assert_allclose(found.transform(X), coordinates, atol=1e-5 * np.abs(coordinates).max())
    np.testing.assert_allclose(found.transform(found.atoms_), found._functions.coordinates, atol=1e-5)
    true = whole(3, kernel=Gaussian(3.0), centre=centre).fit(X).eigenvalues_
    assert np.all(found.eigenvalues_ <= true * (1 + 1e-6))


def test_functions_that_would_magnify_its_roundings_are_looked_at_in_double(monkeypatch):
    X = wide_rows(2500, rank=2)  # a plane in 128 columns: eigenvalues fall fast, and coefficients grow
    options = {"kernel": Gaussian(3.0), "reduce": "random", "size": 1200, "random_state": 0}
    found = ReducedKernelPCA(3, **options).fit(X)
    exact, _ = in_double(ReducedKernelPCA(3, **options), X, monkeypatch)
    np.testing.assert_array_equal(found.eigenvalues_, exact.eigenvalues_)
    np.testing.assert_array_equal(found.eigenvectors_, exact.eigenvectors_)


def test_where_every_row_is_an_atom_coordinates_are_of_double_precision(monkeypatch):
    X = wide_rows(300)
    found = whole(3, kernel=Gaussian(3.0)).fit(X).transform(X)
    np.testing.assert_array_equal(found, in_double(whole(3, kernel=Gaussian(3.0)), X, monkeypatch)[1])


def test_threads_change_no_bit_of_it():
    X, found = wide_rows(2500), []
    for count in (1, 3):
        set_threads(count)
        try:
            model = ReducedKernelPCA(3, kernel=Gaussian(3.0), reduce="random", size=1200, random_state=0).fit(X)
            found.append((model.eigenvalues_, model.transform(X)))
        finally:
            set_threads(None)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
