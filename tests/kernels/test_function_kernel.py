"""Kernels given as functions: the same as the built-in ones where they are the same, refused where they cannot be."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import reference
from reduset import FunctionKernel, Gaussian, compress
from reduset.kernels import ANY_FAMILY


def by_hand(X, Y):
    return np.exp(-(reference.distances(X, Y) ** 2) / (2 * 0.7**2))


SAME_AS_GAUSSIAN = {
    "gaussian process": lambda: FunctionKernel(RBF(length_scale=0.7)),
    "name": lambda: FunctionKernel("rbf", gamma=1 / (2 * 0.7**2)),
    "pairwise": lambda: FunctionKernel(rbf_kernel, gamma=1 / (2 * 0.7**2)),
    "plain": lambda: FunctionKernel(by_hand),
    "scaled": lambda: FunctionKernel(ConstantKernel(3.0) * RBF(length_scale=0.7)),
}


@pytest.mark.parametrize("kind", SAME_AS_GAUSSIAN)
def test_a_function_that_is_the_gaussian_does_as_the_gaussian(kind):
    rng = np.random.default_rng(0)
    X, Q, w = rng.normal(size=(2000, 3)), rng.normal(size=(1100, 3)), rng.normal(size=2000)
    gaussian, kernel = Gaussian(0.7), SAME_AS_GAUSSIAN[kind]().resolve(X)
    scale = 3.0 if kind == "scaled" else 1.0
    assert kernel.log_peak(3) == pytest.approx(math.log(scale), abs=1e-12)
    assert kernel.log_energy(3) == pytest.approx(math.log(scale), abs=1e-12)
    assert np.allclose(kernel.value_sums(X, w, Q), gaussian.value_sums(X, w, Q, "double"), rtol=1e-9, atol=1e-11)
    assert np.allclose(kernel.product_sums(X, w, Q), gaussian.product_sums(X, w, Q), rtol=1e-9, atol=1e-11)
    assert np.allclose(kernel.product_gram(X[:50], Q[:40]), gaussian.product_gram(X[:50], Q[:40]), rtol=1e-10, atol=1e-14)


def test_distances_of_a_function_kernel_are_those_of_feature_space():
    kernel = FunctionKernel(Matern(nu=1.5)).resolve(np.zeros((2, 2)))
    X = np.random.default_rng(0).normal(size=(30, 2))
    K = kernel.product_gram(X, X[:1])[:, 0]
    assert np.allclose(kernel.product_at(np.sqrt(2 - 2 * K), 2), K, atol=1e-12)


@pytest.mark.parametrize(
    "kernel", [FunctionKernel(DotProduct()), FunctionKernel("linear"), FunctionKernel(lambda X, Y: X @ Y.T + 1)]
)
def test_a_diagonal_that_is_not_constant_is_refused(kernel):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"must have a constant diagonal above 0, k\(x, x\) ranges from .* to .*; normalise it"):
        kernel.resolve(X)


@pytest.mark.parametrize("sign", [0.0, -1.0])
def test_a_diagonal_that_is_not_positive_is_refused(sign):
    with pytest.raises(ValueError, match="must have a constant diagonal above 0"):
        FunctionKernel(lambda X, Y: np.full((len(X), len(Y)), sign)).resolve(np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, Y: np.ones(len(X)), r"must return shape \(3, 3\) for that many points, got \(3,\)"),
        (lambda X, Y: np.full((len(X), len(Y)), np.nan), "must return finite values only"),
    ],
)
def test_a_function_that_returns_no_kernel_matrix_is_refused(function, message):
    with pytest.raises(ValueError, match=message):
        FunctionKernel(function).resolve(np.zeros((3, 1)))


def test_what_is_neither_a_function_nor_a_name_is_refused():
    with pytest.raises(TypeError, match="function must be callable"):
        FunctionKernel(3.0)
    with pytest.raises(ValueError, match=r"function .*got 'gauss'"):
        FunctionKernel("gauss")


def test_what_a_function_cannot_do_it_refuses_with_a_way_out():
    kernel = FunctionKernel("rbf", gamma=1.0).resolve(np.zeros((1, 2)))
    X, w = np.zeros((1, 2)), np.ones(1)
    for use in (
        lambda: kernel.gradient_sums(X, w, X),
        lambda: kernel.log_sums(X, w, X),
        lambda: kernel.noise(1, 2, np.random.default_rng(0)),
        lambda: kernel.density_log_peak(2),
    ):
        with pytest.raises(TypeError, match=f"use {ANY_FAMILY}"):
            use()


def test_an_unresolved_function_kernel_says_what_it_needs():
    with pytest.raises(ValueError, match=r"needs data: use KernelMean.from_samples or kernel.resolve\(X\)"):
        FunctionKernel("rbf").log_peak(2)


def test_only_a_named_function_can_be_written_down():
    kernel = FunctionKernel("rbf", gamma=2.0).resolve(np.zeros((1, 2)))
    assert kernel.to_dict() == {"name": "function", "function": "rbf", "parameters": {"gamma": 2.0}}
    with pytest.raises(TypeError, match="cannot be saved, since loading would have to execute it"):
        FunctionKernel(rbf_kernel).to_dict()


def test_function_kernels_are_equal_exactly_if_function_and_parameters_are():
    kernels = [
        lambda: FunctionKernel("rbf", gamma=1.0),
        lambda: FunctionKernel("rbf", gamma=2.0),
        lambda: FunctionKernel("laplacian", gamma=1.0),
        lambda: FunctionKernel(rbf_kernel),
        lambda: FunctionKernel(laplacian_kernel),
        lambda: FunctionKernel(RBF(1.0)),
        lambda: FunctionKernel(RBF(2.0)),
    ]
    for i, one in enumerate(kernels):
        for j, other in enumerate(kernels):
            assert (one() == other()) == (i == j)
    assert FunctionKernel("rbf") != Gaussian(1.0)


@pytest.mark.parametrize("make", [lambda: FunctionKernel("rbf", gamma=1.0), lambda: FunctionKernel(RBF(1.0))])
def test_equal_function_kernels_have_equal_hashes(make):
    assert hash(make()) == hash(make())


def test_a_function_kernel_shows_what_it_was_given():
    assert repr(FunctionKernel("rbf", gamma=0.5)) == "FunctionKernel('rbf', gamma=0.5)"
    assert repr(FunctionKernel(rbf_kernel, gamma=0.5)) == "FunctionKernel(rbf_kernel, gamma=0.5)"
    assert repr(FunctionKernel(RBF(2.0))) == "FunctionKernel(RBF(length_scale=2))"


def test_kernels_that_need_writable_arrays_can_be_compressed():
    rows = np.random.default_rng(0).dirichlet(np.ones(4), 60)
    small = compress(rows, FunctionKernel("chi2", gamma=2.0), size=20)
    assert small.certificate.relative_error < 0.1
