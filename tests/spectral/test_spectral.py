"""Kernel PCA on atoms: scikit-learn's where nothing is reduced, that of all rows where atoms repeat them."""

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import reference_spectral as dense
from cases import KERNELS, cloud
from reduset import Gaussian, KernelMean, Laplacian, Student, compress
from reduset.select import KCenter, KMeans, Shadow
from reduset.spectral import ReducedKernelPCA, SpectralBounds, extension
from reduset.spectral.components import leading_pairs


def whole(**options):
    return ReducedKernelPCA(reduce=None, **options)


def repeated(X, counts):
    return np.repeat(X, counts, axis=0)


# -- nothing reduced -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "gamma"), [("rbf", 0.7), ("rbf", None), ("cosine", None)])
def test_with_every_row_an_atom_it_is_scikit_learns(kernel, gamma):
    X, Q = cloud(150, 3), cloud(40, 3, seed=1)
    theirs = KernelPCA(2, kernel=kernel, gamma=gamma, fit_inverse_transform=True, alpha=0.3).fit(X)
    ours = whole(n_components=2, kernel=kernel, gamma=gamma, fit_inverse_transform=True, alpha=0.3).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(dense.up_to_sign(ours.eigenvectors_, theirs.eigenvectors_), theirs.eigenvectors_, atol=1e-9)
    for rows in (X, Q):
        coordinates = theirs.transform(rows)
        np.testing.assert_allclose(dense.up_to_sign(ours.transform(rows), coordinates), coordinates, atol=1e-8)
        # signs of coordinates do not show in the way back of a kernel of distances
        back = theirs.inverse_transform(coordinates)
        np.testing.assert_allclose(ours.inverse_transform(ours.transform(rows)), back, atol=1e-8)


def test_by_default_all_components_above_zero_are_kept_as_scikit_learn_does():
    X = cloud(30)
    theirs, ours = KernelPCA(kernel="rbf", gamma=2.0).fit(X), whole(kernel="rbf", gamma=2.0).fit(X)
    assert len(ours.eigenvalues_) == len(theirs.eigenvalues_) == 29
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("centre", [True, False])
def test_every_kernel_gives_the_dense_result(kernel, centre):
    X, Q = cloud(60), cloud(20, seed=3)
    f = KernelMean.from_samples(X, KERNELS[kernel])
    energy = np.exp(f.kernel.log_energy(2))
    K, K_query = energy * f.kernel.product_gram(X, X), energy * f.kernel.product_gram(Q, X)
    values, coordinates = dense.kernel_pca(K, K_query, 3, centre)
    ours = whole(n_components=3, kernel=KERNELS[kernel], centre=centre).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, values, rtol=1e-9)
    np.testing.assert_allclose(dense.up_to_sign(ours.transform(Q), coordinates), coordinates, atol=1e-8 * np.sqrt(energy))


def test_names_of_kernels_are_scikit_learns_and_the_librarys():
    X = cloud(20, 4)
    assert whole(kernel="rbf", gamma=2.0).fit(X).kernel_ == Gaussian(0.5)
    assert whole(kernel="rbf").fit(X).kernel_ == Gaussian(np.sqrt(2.0))
    assert whole(kernel="laplacian", gamma=0.25).fit(X).kernel_ == Laplacian(4.0, metric="cityblock")
    assert whole(kernel="student").fit(X).kernel_ == Student("median").resolve(X)
    assert whole().fit(X).kernel_ == whole(kernel="gaussian").fit(X).kernel_ == Gaussian("median").resolve(X)


# -- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("alpha", [0.2, 3.0])
def test_whole_weights_are_rows_repeated(centre, alpha):
    X, counts = cloud(40), np.random.default_rng(5).integers(0, 4, 40)
    options = {"n_components": 3, "kernel": Gaussian(0.8), "centre": centre, "fit_inverse_transform": True, "alpha": alpha}
    weighted = whole(**options).fit(X, sample_weight=counts)
    plain = whole(**options).fit(repeated(X, counts))
    np.testing.assert_allclose(weighted.eigenvalues_, plain.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(weighted.transform(X), plain.transform(X), atol=1e-9)
    np.testing.assert_allclose(
        weighted.inverse_transform(weighted.transform(X)), plain.inverse_transform(plain.transform(X)), atol=1e-8
    )
    assert np.allclose(weighted.weights_ @ weighted.eigenvectors_**2, 1.0)
    np.testing.assert_array_equal(weighted.indices_, np.flatnonzero(counts))


@pytest.mark.parametrize("reduce", ["shadow", KCenter("mean"), KMeans(), "herding"])
def test_the_reduced_problem_is_that_of_the_rows_moved_to_their_atoms(reduce):
    X, Q = cloud(120), cloud(15, seed=2)
    size = None if reduce == "shadow" else 30
    ours = ReducedKernelPCA(4, kernel=Gaussian(1.0), reduce=reduce, size=size, ell=2.0, refine=False, random_state=0).fit(X)
    counts = ours.weights_
    assert counts.sum() == pytest.approx(120)
    plain = whole(n_components=4, kernel=Gaussian(1.0)).fit(ours.atoms_, sample_weight=counts)
    np.testing.assert_allclose(ours.eigenvalues_, plain.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(ours.transform(Q), plain.transform(Q), atol=1e-9)
    assert len(ours.atoms_) < 60


def test_the_order_of_rows_and_a_shift_of_all_change_nothing():
    X = cloud(80)
    one = whole(n_components=3, kernel=Gaussian(1.0)).fit(X)
    other = whole(n_components=3, kernel=Gaussian(1.0)).fit(X[::-1] + 7.0)
    np.testing.assert_allclose(one.transform(X), other.transform(X + 7.0), atol=1e-9)


# -- ways to reduce --------------------------------------------------------------------------------------------------


def test_a_shadow_keeps_the_paper_s_counts_and_any_selector_without_weights_the_mass_of_the_nearest():
    X = cloud(150)
    f = KernelMean.from_samples(X, Gaussian(1.0))
    chosen = Shadow(3.0).select(f, 150)
    ours = ReducedKernelPCA(2, kernel=Gaussian(1.0), ell=3.0).fit(X)
    np.testing.assert_array_equal(ours.indices_, chosen.indices)
    np.testing.assert_allclose(ours.weights_, 150 * chosen.weights, rtol=1e-12)
    near = ReducedKernelPCA(2, kernel=Gaussian(1.0), reduce=KCenter(first=0), size=20).fit(X)
    owner = np.argmin(((X[:, None] - near.atoms_[None]) ** 2).sum(axis=2), axis=1)
    np.testing.assert_allclose(near.weights_, np.bincount(owner, minlength=20))


@pytest.mark.parametrize("kernel", ["gaussian", "function", "cityblock"])
def test_nearest_masses_serve_every_selector_and_kernel(kernel):
    X = cloud(100)
    ours = ReducedKernelPCA(2, kernel=KERNELS[kernel], reduce="random", size=25, weights="nearest", random_state=3).fit(X)
    nearness = KernelMean.from_samples(X, KERNELS[kernel]).kernel.product_gram(X, ours.atoms_)
    if kernel != "cityblock":  # of which the product in L2 is no function of the distance alone
        np.testing.assert_allclose(ours.weights_, np.bincount(nearness.argmax(axis=1), minlength=25))
    assert ours.weights_.sum() == pytest.approx(100)
    assert ours.bounds_.mmd > 0


def test_a_random_subsample_weighs_all_its_rows_alike_and_promises_only_what_the_rows_show():
    ours = ReducedKernelPCA(2, kernel=Gaussian(1.0), reduce="random", size=20, random_state=0).fit(cloud(100))
    np.testing.assert_allclose(ours.weights_, 5.0)
    assert ours.bounds_.mmd is ours.bounds_.hilbert_schmidt is None
    assert ours.bounds_.eigenvalues > 0
    alone = ReducedKernelPCA(2, kernel=Gaussian(1.0), reduce="random", size=20, refine=False, random_state=0).fit(cloud(100))
    assert alone.bounds_ == SpectralBounds(None, None, None, None)


def test_a_compression_brings_its_atoms_weights_and_kernel():
    X = cloud(200)
    small = compress(X, Gaussian(1.0), size=25, weights="simplex", rng=0)
    ours = ReducedKernelPCA(2, reduce=small).fit(X)
    assert ours.kernel_ == Gaussian(1.0)
    present = small.mean.weights > 0
    np.testing.assert_allclose(ours.weights_, 200 * small.mean.weights[present])
    np.testing.assert_array_equal(ours.atoms_, small.mean.atoms[present])
    assert ReducedKernelPCA(2, reduce=small, weights="nearest").fit(X).bounds_.mmd > 0
    again = ReducedKernelPCA(2, reduce=small.mean).fit(X)
    np.testing.assert_array_equal(again.transform(X), ours.transform(X))


def test_a_shadow_of_limited_size_widens_and_gives_all_mass_to_the_nearest_atoms():
    X = cloud(150)
    ours = ReducedKernelPCA(2, kernel=Gaussian(1.0), size=10).fit(X)
    assert 8 <= len(ours.atoms_) <= 10
    assert ours.weights_.sum() == pytest.approx(150)
    assert ours.bounds_.mmd > ReducedKernelPCA(2, kernel=Gaussian(1.0)).fit(X).bounds_.mmd


@pytest.mark.covering_cases
@pytest.mark.parametrize("size", [1, 2, 3, 7, 40, 99])
@pytest.mark.parametrize("spread", [0.0, 30.0, 1e6])
def test_a_shadow_of_limited_size_covers_far_groups_too(size, spread):
    X = cloud(120)
    X[:6] += spread
    ours = ReducedKernelPCA(1, kernel=Gaussian(1.0), ell=20.0, size=size, centre=False).fit(X)
    assert min(size, 2) * 0.5 <= len(ours.atoms_) <= size
    if size > 1:  # the six are a part of the data, not what falls off its end
        radius = np.sqrt(((X[:, None] - ours.atoms_[None]) ** 2).sum(axis=2)).min(axis=1)
        assert radius[:6].max() < 8.0


def test_a_shadow_of_a_kernel_that_sees_opposites_still_keeps_to_its_size():
    X = np.concatenate([cloud(40), -cloud(40)])
    assert len(ReducedKernelPCA(1, kernel="cosine", size=3, ell=30.0).fit(X).atoms_) <= 3


# -- far, few, constant ----------------------------------------------------------------------------------------------


def test_far_from_all_atoms_coordinates_are_finite_and_the_same():
    pca = ReducedKernelPCA(3, kernel=Gaussian(1.0)).fit(cloud(80))
    far = pca.transform([[1e3, 0.0], [0.0, -1e8], [1e140, 1e140]])
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far, np.broadcast_to(far[0], far.shape), atol=1e-12)
    np.testing.assert_allclose(ReducedKernelPCA(3, kernel=Gaussian(1.0), centre=False).fit(cloud(80)).transform([[1e9, 0.0]]), 0.0)


def test_more_components_than_rows_are_refused():
    with pytest.raises(ValueError, match=r"n_components .*got 21"):
        ReducedKernelPCA(21, kernel=Gaussian(1.0)).fit(cloud(20))


def test_components_without_an_eigenvalue_are_told_and_have_coordinates_of_zero():
    X = repeated(np.array([[0.0], [5.0], [9.0]]), 30)
    for count in (3, 5):  # of three atoms, centring takes one
        with pytest.warns(UserWarning, match=f"only 2 of the {count} components .* 3 atoms"):
            pca = ReducedKernelPCA(count, kernel=Gaussian(1.0)).fit(X)
        np.testing.assert_array_equal(pca.transform(X)[:, 2:], 0.0)
        assert np.abs(pca.transform(X)[:, :2]).max() > 0.3
    assert ReducedKernelPCA(kernel=Gaussian(1.0)).fit(X).transform(X).shape == (90, 2)


@pytest.mark.parametrize("X", [np.ones((20, 2)), np.ones((1, 3))])
def test_data_without_spread_have_no_components_but_an_answer(X):
    with pytest.warns(UserWarning, match="only 0 of the 1 components"):
        pca = ReducedKernelPCA(1, kernel=Gaussian(1.0)).fit(X)
    np.testing.assert_array_equal(pca.transform(X), 0.0)
    assert ReducedKernelPCA(1, kernel=Gaussian(1.0), centre=False).fit(X).eigenvalues_ == pytest.approx([len(X)])


def test_a_constant_column_changes_nothing():
    X = cloud(60)
    one = ReducedKernelPCA(2, kernel=Gaussian(1.0)).fit(X)
    other = ReducedKernelPCA(2, kernel=Gaussian(1.0)).fit(np.column_stack([X, np.full(60, 4.0)]))
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components .*got 0"),
        ({"n_components": 2.0}, TypeError, "n_components must be a whole number"),
        ({"kernel": "linear"}, ValueError, "kernel='linear'"),
        ({"kernel": "precomputed"}, ValueError, "kernel='precomputed'"),
        ({"kernel": "round"}, ValueError, "kernel .*got 'round'"),
        ({"kernel": Gaussian(1.0), "gamma": 0.1}, ValueError, "gamma.*kernel='rbf'.*'laplacian'"),
        ({"kernel": "rbf", "gamma": -1.0}, ValueError, "gamma must be above 0"),
        ({"reduce": "kcenter"}, ValueError, "reduce='kcenter' needs size"),
        ({"reduce": "nothing"}, ValueError, "reduce .*got 'nothing'"),
        ({"reduce": None, "size": 5}, ValueError, "size=5 .*reduce=None"),
        ({"ell": 0.0}, ValueError, "ell must be above 0"),
        ({"weights": "heavy"}, ValueError, "weights must be one of 'auto', 'nearest'"),
        ({"refine": "yes"}, TypeError, "refine must be True or False"),
        ({"centre": 1}, TypeError, "centre must be True or False"),
        ({"fit_inverse_transform": True, "alpha": 0.0}, ValueError, "alpha must be above 0"),
        ({"eigen_solver": "lobpcg"}, ValueError, "eigen_solver must .*'arpack'.*'auto'.*'dense'.*'randomized'"),
        ({"random_state": "luck"}, TypeError, "random_state must be None, a seed"),
    ],
)
def test_bad_parameters_are_named(options, error, message):
    with pytest.raises(error, match=message):
        ReducedKernelPCA(**{"n_components": 2, **options}).fit(cloud(50))


def test_a_compression_of_other_data_another_kernel_or_signed_weights_is_refused():
    X = cloud(100)
    free = compress(X, Gaussian(1.5), size=40, weights="free", select="random", rng=0)
    assert free.mean.weights.min() < 0
    with pytest.raises(ValueError, match=r"must not be negative here, .*; use weights='nearest'"):
        ReducedKernelPCA(2, reduce=free).fit(X)
    with pytest.raises(ValueError, match="must be a Compression of points of 3 columns like X, got 2"):
        ReducedKernelPCA(2, reduce=free).fit(cloud(10, 3))
    with pytest.raises(ValueError, match=r"kernel=Gaussian\(1\) .* Gaussian\(1.5\)"):
        ReducedKernelPCA(2, reduce=free, kernel=Gaussian(1.0)).fit(X)


def test_a_kernel_that_is_not_positive_definite_is_refused():
    def signed(X, Y):
        return np.where((X[:, None] == Y[None]).all(axis=2), 1.0, -1.0)

    with pytest.raises(ValueError, match="the kernel must be positive definite"):
        whole(kernel=signed, centre=False).fit(np.arange(6.0).reshape(-1, 1))


def test_the_way_back_must_be_asked_for_and_takes_coordinates():
    pca = ReducedKernelPCA(2, kernel=Gaussian(1.0))
    with pytest.raises(ValueError, match="not fitted yet"):
        pca.inverse_transform(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="use fit_inverse_transform=True"):
        pca.fit(cloud(50)).inverse_transform(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="X must have 2 columns"):
        pca.set_params(fit_inverse_transform=True).fit(cloud(50)).inverse_transform(np.zeros((1, 3)))


def test_points_come_back_about_where_they_were():
    t = np.random.default_rng(0).uniform(0, np.pi, (500, 1))
    X = np.hstack([np.cos(t), np.sin(t)])
    pca = ReducedKernelPCA(6, kernel=Gaussian(0.5), fit_inverse_transform=True, alpha=1e-3).fit(X)
    assert np.abs(pca.inverse_transform(pca.transform(X)) - X).max() < 0.05


# -- solvers, blocks, the estimator ----------------------------------------------------------------------------------


def test_the_iterative_solver_finds_what_the_dense_one_does():
    X = cloud(700)
    both = [ReducedKernelPCA(5, kernel=Gaussian(0.5), ell=6.0, eigen_solver=solver).fit(X) for solver in ("dense", "arpack")]
    np.testing.assert_allclose(both[0].eigenvalues_, both[1].eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(both[0].transform(X), both[1].transform(X), atol=1e-8)


def test_beyond_five_thousand_atoms_the_solver_iterates(monkeypatch):
    from reduset.spectral import components

    def refuse(matrix, count):
        raise AssertionError("dense")

    monkeypatch.setattr(components, "_dense", refuse)
    monkeypatch.setattr(components, "LARGE", 600)
    spread = np.diag(np.arange(601.0))
    np.testing.assert_allclose(leading_pairs(spread, 60)[0], np.arange(600.0, 540.0, -1))
    for size, count in ((600, 60), (601, 61)):  # fewer atoms; or so many pairs that an iteration takes longer
        with pytest.raises(AssertionError, match="dense"):
            leading_pairs(np.diag(np.arange(float(size))), count)


def test_the_size_of_blocks_changes_nothing(monkeypatch):
    X = cloud(200)
    pca = ReducedKernelPCA(3, kernel=Gaussian(1.0)).fit(X)
    before = pca.transform(X)
    monkeypatch.setattr(extension, "PAIRS_PER_BLOCK", 7 * len(pca.atoms_))
    np.testing.assert_allclose(pca.transform(X), before, rtol=0, atol=1e-13)


def test_fitting_changes_no_input_and_keeps_no_tie_to_it():
    X = cloud(60)
    kept = X.copy()
    pca = whole(n_components=2, kernel=Gaussian(1.0)).fit(X)
    before = pca.transform(kept)
    np.testing.assert_array_equal(X, kept)
    X[:] = 0.0
    np.testing.assert_array_equal(pca.transform(kept), before)


def test_it_stands_in_a_pipeline_and_names_its_columns():
    pipe = make_pipeline(StandardScaler(), ReducedKernelPCA(2, kernel=Gaussian(1.0)))
    assert pipe.fit_transform(cloud(100)).shape == (100, 2)
    assert pipe.get_feature_names_out().tolist() == ["reducedkernelpca0", "reducedkernelpca1"]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("reduce", ["shadow", None, KCenter("mean")])
@pytest.mark.filterwarnings("ignore:Shadow", "ignore:all points coincide", "ignore:only .* components")
def test_scikit_learns_own_checks_pass(reduce):
    size = 5 if isinstance(reduce, KCenter) else None
    check_estimator(ReducedKernelPCA(2, reduce=reduce, size=size, random_state=0), on_skip=None)
