"""Means of components: normal laws as a kernel sees them."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, Mixture
from reduset.certificate.frequencies import FrequencyLadders
from reduset.mixture import ComponentMean, ComponentPieces, kappa_of, own_sums_of, sums_of
from reduset.mixture.component_mean import pieces_of

KERNELS = {
    "rkhs": Gaussian(0.7, normalized=True),
    "l2": Gaussian(0.7, normalized=True, space="l2"),
    "covariance": Gaussian(0.7, covariance=[[1.0, 0.3], [0.3, 0.5]], normalized=True, space="l2"),
    "scales": Gaussian(0.7, scales=[1.0, 3.0], normalized=True),
}
kernels = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def laws(m=4, seed=0):
    rng = np.random.default_rng(seed)
    roots = 0.6 * rng.normal(size=(m, 2, 2))
    return ComponentPieces(rng.normal(size=(m, 2)), roots @ roots.transpose(0, 2, 1)), rng.dirichlet(np.ones(m))


def as_many_atoms(pieces, weights, kernel, order=64):
    """The same laws by quadrature: atoms at the nodes of Gauss and Hermite, in the directions of each law."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(order)
    shares = shares / shares.sum()
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    products = np.outer(shares, shares).ravel()
    atoms = [place + grid @ np.linalg.cholesky(spread).T for place, spread in zip(pieces.places, pieces.spreads, strict=True)]
    return KernelMean(np.concatenate(atoms), np.concatenate([weight * products for weight in weights]), kernel)


@pytest.mark.fast_cases(1)
@kernels
def test_it_is_the_mean_of_its_laws(kernel):
    pieces, weights = laws()
    mean, oracle = ComponentMean.from_pieces(pieces, weights, kernel), as_many_atoms(pieces, weights, kernel)
    queries = np.random.default_rng(1).normal(size=(7, 2))
    np.testing.assert_allclose(mean(queries), oracle(queries, "double"), rtol=1e-6)
    np.testing.assert_allclose(mean.log_density(queries), oracle.log_density(queries), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(mean.gradient(queries), oracle.gradient(queries), rtol=1e-4, atol=1e-7)
    few = KernelMean(queries, np.full(7, 1 / 7), kernel)
    assert mean.inner(few) == pytest.approx(oracle.inner(few), rel=1e-6)
    assert mean.distance(few) == pytest.approx(oracle.distance(few), rel=1e-6)
    assert mean.norm() == pytest.approx(oracle.norm(), rel=1e-6)
    other = ComponentMean.from_pieces(*laws(3, 5), kernel)
    assert mean.inner(other) == pytest.approx(oracle.inner(as_many_atoms(*laws(3, 5), kernel)), rel=1e-6)
    assert mean.distance(mean) == 0
    assert mean.mass == pytest.approx(1)


@kernels
def test_laws_without_a_spread_are_atoms(kernel):
    pieces, weights = laws()
    points = ComponentPieces(pieces.places, np.zeros_like(pieces.spreads))
    atoms, full = (
        KernelMean(pieces.places, weights, kernel),
        KernelMean(laws(6, 3)[0].places, np.full(6, 1 / 6), kernel),
    )
    queries = np.random.default_rng(1).normal(size=(5, 2))
    np.testing.assert_allclose(points.gram(kernel), kernel.product_gram(pieces.places, pieces.places), rtol=1e-9)
    np.testing.assert_allclose(
        sums_of(kernel, points, weights, queries), sums_of(kernel, pieces.places, weights, queries), rtol=1e-9
    )
    np.testing.assert_allclose(own_sums_of(kernel, points, weights), own_sums_of(kernel, pieces.places, weights), rtol=1e-9)
    np.testing.assert_allclose(kappa_of(full, points), kappa_of(full, pieces.places), rtol=1e-9)
    ladders = FrequencyLadders.of_kernel(kernel, 2)
    frame = kernel.frame(pieces.places, kernel.product(2))
    there, here = (ladders.waves(each, weights, frame) for each in (points, pieces.places))
    np.testing.assert_allclose(there[:, :8], here[:, :8], atol=1e-9)
    assert ComponentMean.from_pieces(points, weights, kernel).distance(atoms) < 1e-7


@kernels
def test_waves_are_those_of_its_laws(kernel):
    pieces, weights = laws()
    oracle = as_many_atoms(pieces, weights, kernel)
    ladders = FrequencyLadders.of_kernel(kernel, 2)
    frame = kernel.frame(pieces.places, kernel.product(2))
    low = slice(0, 6)  # beyond, nodes are too far apart for the waves
    np.testing.assert_allclose(
        ladders.waves(pieces, weights, frame)[:, low], ladders.waves(oracle.atoms, oracle.weights, frame)[:, low], atol=1e-8
    )


@pytest.mark.fast_cases(2)
@kernels
def test_the_laws_stay_what_they_are_at_another_bandwidth(kernel):
    pieces, weights = laws()
    mean = ComponentMean.from_pieces(pieces, weights, kernel)
    np.testing.assert_allclose(mean.pieces.spreads, pieces.spreads, atol=1e-12)
    wider = mean.with_bandwidth(2.0)
    assert wider.kernel.bandwidth == 2.0
    np.testing.assert_allclose(wider.pieces.spreads, pieces.spreads, atol=1e-11)
    assert isinstance(pieces_of(mean), ComponentPieces)
    np.testing.assert_allclose(wider.norm(), as_many_atoms(pieces, weights, wider.kernel).norm(), rtol=1e-6)


def test_it_adds_and_is_cut_as_mixtures_are():
    kernel = KERNELS["rkhs"]
    a, b = (ComponentMean.from_pieces(*laws(3, seed), kernel) for seed in (0, 1))
    both = 0.5 * a + 0.5 * b
    assert isinstance(both, ComponentMean)
    assert both.norm() ** 2 == pytest.approx(0.25 * (a.norm() ** 2 + b.norm() ** 2 + 2 * a.inner(b)))
    assert (a - b).norm() == pytest.approx(a.distance(b))
    other = a + b.with_bandwidth(1.0)
    assert type(other) is Mixture
    assert a.part([0, 2]).size == 2
    assert a.sample(10, rng=0).shape == (10, 2)
    assert a.marginal([1]).dimension == 1
    assert a.inner(Mixture(b.weights, b.means, b.covariances)) == pytest.approx(
        Mixture(a.weights, a.means, a.covariances).inner(Mixture(b.weights, b.means, b.covariances))
    )


def test_files_keep_the_kernel(tmp_path):
    mean = ComponentMean.from_pieces(*laws(), KERNELS["scales"])
    mean.save(tmp_path / "small.npz")
    again = ComponentMean.load(tmp_path / "small.npz")
    assert again.kernel == mean.kernel
    np.testing.assert_array_equal(again.covariances, mean.covariances)
    assert type(Mixture.load(tmp_path / "small.npz")) is Mixture
    Mixture(mean.weights, mean.means, mean.covariances).save(tmp_path / "plain.npz")
    with pytest.raises(ValueError, match=r"holds 'reduset\.Mixture', not 'reduset\.ComponentMean'; use reduset\.Mixture\.load"):
        ComponentMean.load(tmp_path / "plain.npz")
    with pytest.raises(ValueError, match=r"holds 'reduset\.ComponentMean', not 'reduset\.KernelMean'"):
        KernelMean.load(tmp_path / "small.npz")


def test_what_is_no_mean_of_components_is_refused():
    pieces, weights = laws()
    with pytest.raises(TypeError, match=r"kernel .*got Laplacian\(1\)"):
        ComponentMean(weights, pieces.places, pieces.spreads + np.eye(2), Laplacian(1.0))
    with pytest.raises(ValueError, match=r"covariances of a mean of components must be full, \(m, d, d\)"):
        ComponentMean(weights, pieces.places, np.ones(4), Gaussian(1.0))
    with pytest.raises(TypeError, match="kernel must be a Gaussian for components, got"):
        pieces.gram(Laplacian(1.0))
    for width in (1e-200, 1e200):
        with pytest.raises(ValueError, match="bandwidth must lie between 1e-150 and 1e\\+150 for components"):
            ComponentMean.from_pieces(pieces, weights, Gaussian(width))
    mean = ComponentMean.from_pieces(pieces, weights, Gaussian(1.0))
    assert mean.kernel.normalized
    with pytest.raises(ValueError, match=r"must have the same kernel, .*: use KernelMean\.from_samples"):
        mean.inner(KernelMean.from_samples(pieces.places, Gaussian(1.0)))
    with pytest.raises(ValueError, match="must have the same dimension, got 2 and 3"):
        mean.inner(KernelMean.from_samples(np.ones((2, 3)), mean.kernel))
