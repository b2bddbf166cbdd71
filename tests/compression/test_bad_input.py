"""Bad input through the public functions: a clear error, or the right answer where one exists."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, NotReachedWarning, Student, bandwidth, compress
from reduset.kernels import FAMILIES
from reduset.select import KCenter
from reduset.weights import KINDS, is_signed

GAUSSIAN = Gaussian(0.8)


def cloud(n=60, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def by_compress(X, **options):
    return compress(X, GAUSSIAN, size=1, rng=0, **options)


def by_samples(X, **options):
    return KernelMean.from_samples(X, GAUSSIAN, **options)


ENTRIES = pytest.mark.parametrize("entry", [by_compress, by_samples])

# -- points ----------------------------------------------------------------------------------------------------------


@ENTRIES
@pytest.mark.parametrize(
    ("X", "kind", "message"),
    [
        (np.where(np.eye(4), np.nan, 1.0), ValueError, "X .*got nan in row 0, column 0"),
        (np.where(np.eye(4), -np.inf, 1.0), ValueError, "X .*got -inf in row 0, column 0"),
        (np.zeros((0, 2)), ValueError, r"X .*got shape \(0, 2\)"),
        (np.zeros((2, 0)), ValueError, r"X .*got shape \(2, 0\)"),
        (np.zeros(5), ValueError, r"got shape \(5,\); use X.reshape\(-1, 1\) for points on a line"),
        (np.zeros((2, 2, 2)), ValueError, r"X .*got shape \(2, 2, 2\)"),
        ([[1.0], [1.0, 2.0]], ValueError, "X must be a rectangular array of numbers"),
        ([["a", "b"]], TypeError, "X .*got dtype"),
        (sparse.eye_array(4, format="csr"), TypeError, "X .*got a sparse matrix"),
        (np.ma.masked_array(np.eye(4)), TypeError, "X must not be a masked array; fill it"),
        (np.eye(4) * 1j, TypeError, "X .*got complex128"),
        (np.array([[1.0, "a"]], dtype=object), TypeError, "X .*got other objects"),
        (None, ValueError, "X must have two dimensions"),
    ],
    ids=lambda value: None if isinstance(value, str | type) else type(value).__name__,
)
def test_points_that_break_a_rule_are_refused(entry, X, kind, message):
    with pytest.raises(kind, match=message):
        entry(X)


@ENTRIES
@pytest.mark.parametrize(
    ("w", "message"),
    [
        (np.zeros(60), "sample_weight must not be all zero; omit it"),
        (np.full(60, np.nan), "sample_weight .*got nan at position 0"),
        (
            np.where(np.arange(60) == 7, -1.0, 1.0),
            "sample_weight .*got -1.0 at position 7",
        ),
        (np.ones(59), r"sample_weight .*got \(59,\)"),
        (np.ones((60, 1)), r"sample_weight .*got \(60, 1\)"),
    ],
)
def test_weights_that_break_a_rule_are_refused(entry, w, message):
    with pytest.raises(ValueError, match=message):
        entry(cloud(), sample_weight=w)


@pytest.mark.parametrize(
    ("atoms", "weights", "message"),
    [
        (cloud(3), [1, np.nan, 1], "weights .*got nan at position 1"),
        (cloud(3), [1, 1], r"weights .*got \(2,\)"),
        ([[np.inf]], [1], "atoms .*got inf in row 0, column 0"),
        (np.zeros((0, 2)), [], r"atoms .*got shape \(0, 2\)"),
    ],
)
def test_a_mean_refuses_what_breaks_a_rule(atoms, weights, message):
    with pytest.raises(ValueError, match=message):
        KernelMean(atoms, weights, GAUSSIAN)


def test_the_zero_function_is_a_mean_but_cannot_be_compressed():
    zero = KernelMean(cloud(3), np.zeros(3), GAUSSIAN)
    assert zero.norm() == zero.mass == 0
    np.testing.assert_array_equal(zero(cloud(5)), np.zeros(5))
    np.testing.assert_array_equal((2 * zero).weights, np.zeros(3))
    with pytest.raises(ValueError, match="the weights' magnitudes must sum to between"):
        compress(zero, size=2)


# -- the right answer where one exists -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [None, *(Gaussian(rule) for rule in bandwidth.RULES), Student("median", space="l2")], ids=repr)
@pytest.mark.parametrize("X", [np.ones((100, 3)), np.zeros((2, 1)), [[5]]], ids=["cloud", "pair", "point"])
def test_a_rule_on_a_constant_cloud_warns_and_gives_one_atom_with_error_zero(kernel, X):
    with pytest.warns(UserWarning, match="coincide"):
        small = compress(X, kernel, size=min(5, len(X)), rng=0)
    assert small.size == 1
    assert small.certificate.relative_error == pytest.approx(0, abs=1e-12)


def test_a_constant_column_changes_neither_centres_nor_weights():
    X = cloud()
    X[:, 1] = 7.0
    with_it, without = (compress(Z, GAUSSIAN, size=20, rng=0) for Z in (X, X[:, [0, 2]]))
    np.testing.assert_array_equal(with_it.indices, without.indices)
    np.testing.assert_allclose(with_it.mean.weights, without.mean.weights, rtol=1e-8)


def test_selection_of_redundant_points_names_what_was_dropped():
    X = np.repeat(3 * cloud(6), 20, axis=0)
    small = compress(X, GAUSSIAN, size=120, rng=0, select="random")
    assert len(small.dropped) == 114
    assert set(small.dropped) | set(small.indices) == set(range(120))
    assert "114 redundant dropped" in small.details()
    assert "114 more atoms omitted as redundant at this bandwidth" in str(small)


def test_points_on_a_line_work_as_a_column():
    x = np.random.default_rng(0).normal(size=50)
    small = compress(x.reshape(-1, 1), GAUSSIAN, size=5, rng=0)
    assert small.mean.atoms.shape == (5, 1)
    with pytest.raises(ValueError, match=r"X.reshape\(-1, 1\)"):
        compress(x, GAUSSIAN, size=5)


def test_every_point_may_be_an_atom():
    small = compress(cloud(), GAUSSIAN, size=60, rng=0)
    assert sorted(small.indices) == list(range(60))


# -- goals and options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"size": 0}, ValueError, "size .*got 0"),
        ({"size": -3}, ValueError, "size .*got -3"),
        ({"size": 61}, ValueError, "size .*got 61"),
        ({"size": 5.0}, TypeError, "size .*got 5.0"),
        ({"size": True}, TypeError, "size .*got True"),
        ({"size": "5"}, TypeError, "size .*got '5'"),
        ({"tol": 0}, ValueError, "tol .*got 0"),
        ({"tol": -0.1}, ValueError, "tol .*got -0.1"),
        ({"tol": np.nan}, ValueError, "tol .*got nan"),
        ({"tol": np.inf}, ValueError, "tol .*got inf"),
        ({"tol": "small"}, TypeError, "tol .*got 'small'"),
        ({"tol": True}, TypeError, "tol .*got True"),
        ({"plateau": 0.0}, ValueError, "plateau .*got 0.0"),
        ({"plateau": None}, ValueError, "Gaussian.* has a bandwidth, so give size or tol"),
        ({}, ValueError, "Gaussian.* has a bandwidth, so give size or tol"),
        ({"size": 5, "tol": 0.1}, ValueError, "Gaussian.* omit one of size=5 and tol=0.1"),
        ({"tol": 0.1, "plateau": 0.1}, ValueError, "give exactly one of .*; got tol and plateau"),
        ({"size": 5, "max_size": 9}, ValueError, "max_size needs tol or plateau, got it with size; omit it"),
        ({"tol": 0.1, "max_size": 0}, ValueError, "max_size .*got 0"),
        ({"tol": 0.1, "max_size": 61}, ValueError, "max_size .*got 61"),
        ({"tol": 0.1, "max_size": 7.5}, TypeError, "max_size .*got 7.5"),
        (
            {"size": 5, "select": "best"},
            ValueError,
            "select .*got 'best'",
        ),
        ({"size": 5, "select": KCenter}, ValueError, r"select must .*'auto'.*KCenter\(\)"),
        ({"size": 5, "select": None}, ValueError, "select must be one of"),
        ({"size": 5, "weights": "best"}, ValueError, "weights .*got 'best'$"),
        ({"size": 5, "weights": np.ones(5)}, ValueError, "weights must be one of"),
        (
            {"size": 5, "progress": "yes"},
            TypeError,
            "progress .*got 'yes'",
        ),
        ({"size": 5, "progress": 1}, TypeError, "progress must be True, False or a function"),
        ({"size": 5, "rng": "seed"}, TypeError, "rng .*got 'seed'"),
        ({"size": 5, "rng": -1}, TypeError, "rng .*got -1"),
        ({"size": 5, "confidence": 0}, ValueError, "confidence .*got 0"),
        ({"size": 5, "confidence": 1.0}, ValueError, "confidence .*got 1.0"),
        ({"size": 5, "confidence": 95}, ValueError, "confidence .*got 95"),
        ({"size": 5, "confidence": np.nan}, ValueError, "confidence .*got nan"),
        ({"size": 5, "confidence": "95%"}, TypeError, "confidence .*got '95%'"),
    ],
    ids=str,
)
def test_options_that_break_a_rule_are_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        compress(cloud(), GAUSSIAN, **options)


@pytest.mark.parametrize("family", [Gaussian, Laplacian, Student])
@pytest.mark.parametrize(
    ("width", "kind", "message"),
    [
        (0, ValueError, "bandwidth .*got 0"),
        (-1.0, ValueError, "bandwidth .*got -1.0"),
        (np.nan, ValueError, "bandwidth .*got nan"),
        (np.inf, ValueError, "bandwidth .*got inf"),
        ("wide", ValueError, "bandwidth .*got 'wide'"),
        ([1.0, 2.0], TypeError, "bandwidth must be a number, got"),
        (True, TypeError, "bandwidth .*got True"),
    ],
)
def test_bandwidths_that_break_a_rule_are_refused(family, width, kind, message):
    with pytest.raises(kind, match=message):
        family(width)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: Gaussian(1.0, space="h1"), ValueError, "space .*got 'h1'"),
        (lambda: Gaussian(1.0, normalized="yes"), TypeError, "normalized .*got 'yes'"),
        (lambda: Gaussian(1.0, covariance=[[1, 2], [2, 1]]), ValueError, "covariance must be positive definite"),
        (lambda: Laplacian(1.0, metric="chebyshev"), ValueError, "metric .*got 'chebyshev'"),
        (lambda: Student(1.0, exponent=0), ValueError, "exponent .*got 0"),
        (lambda: FunctionKernel("sinc"), ValueError, "function .*got 'sinc'"),
        (lambda: FunctionKernel(3), TypeError, "function .*got 3"),
    ],
)
def test_kernels_that_break_a_rule_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize("kernel", ["box", Gaussian, [Gaussian(1.0)]])
def test_what_is_no_kernel_is_refused(kernel):
    offered = r"\(...\), ".join(FAMILIES.values()) + r"\(...\)"
    with pytest.raises(TypeError, match=f"kernel must be a {offered}, a bandwidth or a function"):
        compress(cloud(), kernel, size=5)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, Y: X @ Y.T, r"constant diagonal above 0, k\(x, x\) ranges from .* normalise it"),
        (lambda X, Y: np.zeros((len(X), len(Y))), "constant diagonal above 0"),
        (lambda X, Y: np.ones(3), r"must return shape \(60, 60\) for that many points, got \(3,\); or a number for two"),
        (lambda X, Y: np.full((len(X), len(Y)), np.nan), "must return finite values only"),
    ],
)
def test_functions_that_are_no_kernel_are_refused(function, message):
    with pytest.raises(ValueError, match=message):
        compress(cloud(), function, size=5)


def test_a_covariance_of_another_dimension_is_refused():
    with pytest.raises(ValueError, match=r"covariance .*got \(2, 2\)"):
        compress(cloud(), Gaussian(1.0, covariance=np.eye(2)), size=5)


def test_a_student_outside_l2_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"exponent .*got 0.5"):
        compress(cloud(), Student(1.0, exponent=0.5, space="l2"), size=5)


@pytest.mark.parametrize("option", [{"kernel": GAUSSIAN}, {"sample_weight": np.ones(60)}])
def test_a_mean_has_its_own_kernel_and_weights(option):
    full = KernelMean.from_samples(cloud(), GAUSSIAN)
    with pytest.raises(ValueError, match=f"{next(iter(option))} needs points, and a KernelMean has its own. Use KernelMean"):
        compress(full, size=5, **option)


def test_a_compression_is_no_data_but_its_mean_is():
    small = compress(cloud(), GAUSSIAN, size=20, rng=0)
    with pytest.raises(TypeError, match=r"data is a Compression; compress its mean: compress\(small.mean, ...\)"):
        compress(small, size=5)


@pytest.mark.parametrize("weights", [kind for kind in KINDS if not is_signed(kind)])
@pytest.mark.parametrize("sign", [-1.0, 0.0])
def test_weights_on_a_simplex_need_mass(weights, sign):
    full = KernelMean(cloud(2), [1.0 if sign == 0 else -2.0, -1.0], GAUSSIAN)
    with pytest.raises(ValueError, match=f"weights='{weights}'.*0.*weights='free'"):
        compress(full, size=1, weights=weights)


def test_a_tolerance_out_of_reach_is_told():
    with pytest.warns(NotReachedWarning, match="tol=1e-06.*5.*max_size"):
        small = compress(cloud(), GAUSSIAN, tol=1e-6, max_size=5, rng=0)
    assert not small.reached
    assert small.size == 5
    assert "NOT REACHED" in str(small)


@pytest.mark.parametrize("size", [0, 21, True, 2.0, None])
def test_at_refuses_sizes_it_has_not(size):
    small = compress(cloud(), GAUSSIAN, size=20, rng=0)
    with pytest.raises((TypeError, ValueError), match="size must be"):
        small.at(size)


def test_reweigh_wants_the_mean_that_was_compressed():
    small = compress(cloud(), GAUSSIAN, size=20, rng=0)
    with pytest.raises(TypeError, match=r"full .*got ndarray"):
        small.reweigh(cloud())
    for other in (cloud(61), cloud(60, 2)):
        with pytest.raises(ValueError, match="full must be the mean that was compressed, of 60 atoms in 3 dimensions; got"):
            small.reweigh(KernelMean.from_samples(other, GAUSSIAN))
    with pytest.raises(ValueError, match="weights must be one of"):
        small.reweigh(KernelMean.from_samples(cloud(), GAUSSIAN), weights="best")


# -- every container gives the same result ---------------------------------------------------------------------------


def strided(X):
    out = np.zeros((2 * len(X), 2 * X.shape[1]))
    out[::2, ::2] = X
    return out[::2, ::2]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


CONTAINERS = {
    "list": lambda X: X.tolist(),
    "tuples": lambda X: tuple(map(tuple, X.tolist())),
    "fortran": np.asfortranarray,
    "reversed": lambda X: X[::-1].copy()[::-1],
    "strided": strided,
    "read-only": read_only,
    "object": lambda X: X.astype(object),
    "big-endian": lambda X: X.astype(">f8"),
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": lambda X: pa.table({f"c{k}": column for k, column in enumerate(X.T)}),
}


def test_the_containers_hold_the_same_numbers():
    for make in CONTAINERS.values():
        np.testing.assert_array_equal(np.asarray(make(cloud()), float), cloud())


@pytest.mark.covering_cases
@pytest.mark.fast_cases(34)
@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("kernel", [None, Gaussian("scott"), Laplacian(0.8), FunctionKernel("rbf", gamma=0.5)], ids=repr)
def test_every_container_gives_the_result_of_the_plain_array(name, kernel):
    X = cloud()
    plain, other = (compress(Z, kernel, size=15, rng=0, select=KCenter("mean")) for Z in (X, CONTAINERS[name](X)))
    np.testing.assert_array_equal(other.indices, plain.indices)
    np.testing.assert_array_equal(other.mean.atoms, plain.mean.atoms)
    np.testing.assert_allclose(other.mean.weights, plain.mean.weights, rtol=1e-8)
    assert other.certificate.relative_error == pytest.approx(plain.certificate.relative_error, rel=1e-8)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float16, np.float32])
@pytest.mark.parametrize("kernel", [None, Laplacian(4.0, metric="cityblock"), Gaussian("iqr", space="l2")], ids=repr)
def test_whole_numbers_of_any_type_give_the_same_result(dtype, kernel):
    X = np.random.default_rng(0).integers(0, 100, size=(60, 3))
    plain, other = (compress(Z, kernel, size=15, rng=0, select=KCenter("mean")) for Z in (X.astype(float), X.astype(dtype)))
    np.testing.assert_array_equal(other.indices, plain.indices)
    np.testing.assert_allclose(other.mean.weights, plain.mean.weights, rtol=1e-6)
    assert other.certificate.relative_error == pytest.approx(plain.certificate.relative_error, rel=1e-6)


@pytest.mark.parametrize(("dtype", "digits"), [(np.float16, 2e-3), (np.float32, 1e-6)])
def test_short_floats_agree_within_their_precision(dtype, digits):
    X, Q = cloud(), cloud(5, seed=1)
    f, g = KernelMean.from_samples(X, GAUSSIAN), KernelMean.from_samples(X.astype(dtype), GAUSSIAN)
    np.testing.assert_allclose(g(Q), f(Q), rtol=10 * digits)
    small = compress(X.astype(dtype), GAUSSIAN, size=15, rng=0, select=KCenter("mean"))
    widened = compress(X.astype(dtype).astype(float), GAUSSIAN, size=15, rng=0, select=KCenter("mean"))
    np.testing.assert_array_equal(small.indices, widened.indices)
    np.testing.assert_allclose(small.mean.weights, widened.mean.weights, rtol=1e-6)


@pytest.mark.parametrize("make", [list, np.float32, np.int64, pd.Series, pl.Series, np.asfortranarray])
def test_sample_weights_of_any_type_give_the_same_result(make):
    w = np.random.default_rng(0).integers(0, 5, size=60).astype(float)
    plain, other = (compress(cloud(), GAUSSIAN, size=15, rng=0, sample_weight=v) for v in (w, make(w)))
    np.testing.assert_array_equal(other.indices, plain.indices)
    np.testing.assert_array_equal(other.mean.weights, plain.mean.weights)
