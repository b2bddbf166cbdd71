"""What users of scikit-learn count on: its attributes and precisions, functions of two rows, refusals that name a way out."""

import numpy as np
import pytest
from sklearn import decomposition, manifold
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from cases import cloud
from reduset import FunctionKernel, Gaussian
from reduset.spectral import (
    Nystroem,
    ReducedDiffusionMap,
    ReducedKernelPCA,
    ReducedLaplacianEigenmap,
    ReducedSpectralClustering,
    WeightedNystroem,
)
from reduset.spectral.components import leading_pairs

MAPS = [
    ReducedKernelPCA(2, kernel="rbf", random_state=0),
    ReducedLaplacianEigenmap(2, kernel="rbf", random_state=0),
    ReducedDiffusionMap(2, kernel="rbf", random_state=0),
    Nystroem("rbf", n_components=20, random_state=0),
    WeightedNystroem(2, kernel="rbf", size=20, random_state=0),
]


def of_rows(x, y):
    return np.exp(-0.5 * np.sum((x - y) ** 2))


def of_rows_at(x, y, rate):
    return np.exp(-rate * np.sum((x - y) ** 2))


# -- precision and attributes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MAPS, ids=lambda model: type(model).__name__)
def test_single_precision_gives_single_precision_back(model):
    X = cloud(200)
    single = model.fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert single.transform(X).dtype == single.fit_transform(X).dtype == np.float64
    assert model.fit_transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(
        np.abs(model.transform(X.astype(np.float32))), np.abs(model.fit(X).transform(X)), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("model", MAPS, ids=lambda model: type(model).__name__)
def test_features_are_named_and_counted(model):
    fitted = model.fit(cloud(100))
    names = fitted.get_feature_names_out()
    assert fitted.n_features_in_ == 2
    assert len(names) == fitted.transform(cloud(3)).shape[1]
    assert names[0] == f"{type(model).__name__.lower()}0"
    assert not hasattr(fitted, "affinity_matrix_")  # no matrix of all pairs is made


@pytest.mark.parametrize(
    "model", [ReducedLaplacianEigenmap(2, kernel=Gaussian(1.0)), ReducedDiffusionMap(2, kernel=Gaussian(1.0), time=2.0)]
)
def test_the_embedding_is_that_of_the_rows(model):
    X = cloud(300)
    weights = np.random.default_rng(0).integers(1, 4, 300)
    found = model.fit_transform(X, sample_weight=weights)
    np.testing.assert_array_equal(found, model.embedding_)
    np.testing.assert_array_equal(model.embedding_, model.transform(X))


@pytest.mark.parametrize(
    ("kernel", "gamma", "wanted"), [("rbf", None, 0.5), ("rbf", 2.0, 2.0), ("laplacian", 0.3, 0.3), (Gaussian(1.0), None, None)]
)
def test_the_rate_of_a_named_kernel_is_known(kernel, gamma, wanted):
    X = cloud(60)
    for model in (ReducedKernelPCA(2), ReducedLaplacianEigenmap(2), ReducedSpectralClustering(2), Nystroem(n_components=5)):
        assert model.set_params(kernel=kernel, gamma=gamma, random_state=0).fit(X).gamma_ == wanted


# -- functions of two rows -------------------------------------------------------------------------------------------


def test_a_function_of_two_rows_is_the_kernel_that_its_matrix_is():
    X, Q = cloud(40), cloud(7, seed=3)
    kernel = FunctionKernel(of_rows).resolve(X)
    np.testing.assert_allclose(kernel.matrix(Q, X), rbf_kernel(Q, X, gamma=0.5), rtol=1e-12)
    one, other = (ReducedKernelPCA(2, kernel=each, reduce=None).fit(X) for each in (of_rows, "rbf"))
    theirs = decomposition.KernelPCA(2, kernel=of_rows).fit(X)
    np.testing.assert_allclose(one.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize(
    "function",
    [of_rows, lambda x, y: float(np.exp(-np.abs(x - y).sum())), lambda x, y: 0.5 + 0.5 * (x @ y) / np.sqrt((x @ x) * (y @ y))],
)
@pytest.mark.parametrize("n", [1, 2, 30])
def test_functions_of_rows_are_told_from_those_of_matrices(function, n):
    X = cloud(n) + 5.0
    found = FunctionKernel(function).resolve(X).matrix(X, X[:1])
    np.testing.assert_allclose(found[:, 0], [function(x, X[0]) for x in X], rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_functions_of_matrices_are_called_with_matrices(n):
    X, asked = cloud(n), []

    def whole(A, B):
        asked.append(np.ndim(A))
        return rbf_kernel(A, B)

    FunctionKernel(whole).resolve(X).matrix(X, X[:1])
    assert set(asked) == {2}


def test_an_error_of_the_function_is_its_own():
    def broken(A, B):
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        FunctionKernel(broken).resolve(cloud(5))


# -- parameters of kernels -------------------------------------------------------------------------------------------


def bump(X, Y, rate=0.5, power=1.0):
    return rbf_kernel(X, Y, gamma=rate) ** power


@pytest.mark.parametrize("model", [ReducedKernelPCA(2), ReducedLaplacianEigenmap(2), Nystroem(n_components=20)])
def test_a_function_and_a_name_take_parameters_as_a_mapping(model):
    X = cloud(60)
    given = {"rate": 0.3, "power": 2.0}

    def found(**options):
        return np.abs(model.set_params(**{"kernel_params": None, "random_state": 0, **options}).fit(X).transform(X))

    wanted = found(kernel=Gaussian((2 * 0.6) ** -0.5))
    for kernel, parameters in ((bump, given), ("gaussian", {"bandwidth": (2 * 0.6) ** -0.5}), ("rbf", {"gamma": 0.6})):
        np.testing.assert_allclose(found(kernel=kernel, kernel_params=parameters), wanted, atol=1e-5)
    assert model.gamma_ == 0.6
    assert given == {"rate": 0.3, "power": 2.0}


def test_parameters_of_a_function_are_scikit_learns():
    X, Q = cloud(60), cloud(9, seed=2)
    theirs = decomposition.KernelPCA(2, kernel=of_rows_at, kernel_params={"rate": 0.2}).fit(X)
    ours = ReducedKernelPCA(2, kernel=of_rows_at, kernel_params={"rate": 0.2}, reduce=None).fit(X)
    np.testing.assert_allclose(np.abs(ours.transform(Q)), np.abs(theirs.transform(Q)), atol=1e-8)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"kernel": "rbf", "kernel_params": [1]},
            TypeError,
            r"kernel_params .*got \[1\]",
        ),
        ({"kernel": "rbf", "kernel_params": {"degree": 2}}, ValueError, "kernel='rbf'.*'degree'"),
        (
            {"kernel": "cosine", "kernel_params": {"gamma": 2}},
            ValueError,
            "kernel='cosine'.*'gamma'",
        ),
        (
            {"kernel": "student", "kernel_params": {"gamma": 2}},
            ValueError,
            "kernel='student'.*'gamma'",
        ),
        (
            {"kernel": "rbf", "gamma": 1.0, "kernel_params": {"gamma": 2}},
            ValueError,
            "gamma=1.0.*kernel_params=.*",
        ),
        ({"kernel": "rbf", "kernel_params": {"gamma": -2}}, ValueError, "gamma must be"),
        (
            {"kernel": Gaussian(1.0), "kernel_params": {"bandwidth": 2}},
            ValueError,
            "kernel_params needs a kernel that is a function",
        ),
        ({"kernel": None, "kernel_params": {"bandwidth": 2}}, ValueError, "kernel_params needs a kernel that is a function"),
    ],
)
def test_parameters_that_a_kernel_does_not_have_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        ReducedKernelPCA(2, **options).fit(cloud(20))


# -- components of no size -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refine", [True, False])
def test_components_of_no_size_are_left_out_where_that_is_asked_for(refine):
    X = np.repeat(cloud(3), 20, axis=0)  # three places: two components
    kept = ReducedKernelPCA(2, kernel=Gaussian(1.0), refine=refine).fit(X)
    cut = ReducedKernelPCA(5, kernel=Gaussian(1.0), refine=refine, remove_zero_eig=True).fit(X)
    every = ReducedKernelPCA(kernel=Gaussian(1.0), refine=refine).fit(X)
    for found in (cut, every):
        assert found.transform(X).shape == (60, 2)
        np.testing.assert_allclose(found.eigenvalues_, kept.eigenvalues_, rtol=1e-9)
    with pytest.warns(UserWarning, match="only 2 of the 5 components"):
        assert ReducedKernelPCA(5, kernel=Gaussian(1.0), refine=refine).fit_transform(X).shape == (60, 5)


@pytest.mark.parametrize("options", [{"n_components": 2, "remove_zero_eig": True}, {"n_components": None}])
@pytest.mark.parametrize("reduce", ["shadow", None])
def test_of_rows_that_are_alike_there_are_no_coordinates(options, reduce):
    X = np.ones((4, 3))
    with pytest.warns(UserWarning, match="no component has a positive eigenvalue"):
        found = ReducedKernelPCA(kernel=Gaussian(1.0), reduce=reduce, fit_inverse_transform=True, **options).fit(X)
    assert found.transform(cloud(7, 3)).shape == (7, 0)
    assert found.get_feature_names_out().tolist() == []
    assert found.bounds_.projection is None
    with pytest.raises(NotFittedError, match="fit_inverse_transform=True"):
        found.inverse_transform(np.ones((1, 0)))


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["precomputed", "nearest_neighbors", "precomputed_nearest_neighbors"])
@pytest.mark.parametrize("model", [ReducedKernelPCA(2), ReducedLaplacianEigenmap(2), ReducedSpectralClustering(2), Nystroem()])
def test_graphs_that_are_given_are_refused_with_the_way_out(model, kernel):
    with pytest.raises(ValueError, match=f"kernel='{kernel}' is not supported: .* scikit-learn's own class"):
        model.set_params(kernel=kernel).fit(cloud(20))


# -- the randomised solver -------------------------------------------------------------------------------------------


def test_the_randomised_solver_finds_what_the_dense_one_does():
    X = cloud(300, 3)
    found = [ReducedKernelPCA(4, kernel=Gaussian(2.0), reduce=None, eigen_solver=each).fit(X) for each in ("dense", "randomized")]
    np.testing.assert_allclose(found[0].eigenvalues_, found[1].eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(found[0].transform(X)), np.abs(found[1].transform(X)), atol=1e-4)


def test_of_few_atoms_the_randomised_solver_is_the_dense_one():
    matrix = rbf_kernel(cloud(12))
    np.testing.assert_array_equal(leading_pairs(matrix.copy(), 5, "randomized")[0], leading_pairs(matrix.copy(), 5, "dense")[0])


def test_the_embedding_of_all_rows_leads_where_scikit_learns_does():
    X = np.random.default_rng(0).uniform(0, [6, 1], size=(300, 2))
    ours = ReducedLaplacianEigenmap(1, kernel="rbf", gamma=2.0, reduce=None).fit(X).embedding_[:, 0]
    theirs = manifold.SpectralEmbedding(1, affinity="rbf", gamma=2.0, random_state=0).fit(X).embedding_[:, 0]
    assert abs(np.corrcoef(ours, theirs)[0, 1]) > 0.999
