"""Maps of densities on Gaussian components: nearer to all points than atoms, by size and by tolerance, and for later bags."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Laplacian, Mixture, NotReachedWarning
from reduset.cohort import CohortMap, divergences
from reduset.cohort.comparison import ComparisonOptions, own_pieces
from reduset.compression import AtomRequest


def cohort(n=600, seed=0):
    """Six bags: a wide population and a narrow one, in different proportions."""
    rng = np.random.default_rng(seed)
    bags = []
    for share, shift in ((0.2, 0.0), (0.25, 0.2), (0.3, 0.0), (0.6, 0.3), (0.65, 0.1), (0.7, 0.2)):
        narrow = rng.random(n) < share
        wide = rng.normal(0.0, 1.5, size=(n, 3))
        bags.append(np.where(narrow[:, None], rng.normal(2 + shift, 0.4, size=(n, 3)), wide))
    return bags


def off(found, truth):
    return np.linalg.norm(found - truth) / np.linalg.norm(truth)


KERNEL = Gaussian(0.8, normalized=True)
OPTIONS = {"distance": "kl", "layout": "mds", "kernel": KERNEL, "random_state": 0}


@pytest.mark.slow
def test_divergences_of_few_components_are_nearer_to_those_of_all_points_than_of_as_many_atoms():
    full = CohortMap(atoms="all", draws=4000, **OPTIONS).fit(cohort()).distances_
    found = {pieces: CohortMap(pieces=pieces, size=60, draws=4000, **OPTIONS).fit(cohort()) for pieces in ("atoms", "components")}
    assert off(found["components"].distances_, full) < 0.04
    assert off(found["components"].distances_, full) < off(found["atoms"].distances_, full) / 5


def test_densities_are_on_components_by_default_and_on_atoms_where_a_way_of_these_is_named():
    small = cohort(80)
    usual = CohortMap(**OPTIONS).fit(small)
    assert usual.pieces_ == "components"
    assert all(isinstance(each.mean, Mixture) and each.size == 80 for each in usual.compressions_)
    assert CohortMap(atoms="shared", **OPTIONS).fit(small).pieces_ == "atoms"
    assert CohortMap(**OPTIONS | {"kernel": Laplacian(0.8)}).fit(small).pieces_ == "atoms"
    assert CohortMap(layout="mds").fit(small).pieces_ == "atoms"


def test_a_bag_on_as_many_components_as_points_is_its_density():
    bags = cohort(50)
    found = CohortMap(size=50, draws=300, **OPTIONS).fit(bags)
    Q = np.random.default_rng(1).normal(size=(20, 3))
    for bag, each in zip(bags, found.compressions_, strict=True):
        np.testing.assert_allclose(each.mean.log_density(Q), KernelMean.from_samples(bag, KERNEL).log_density(Q), rtol=1e-9)
        assert each.certificate.relative_error < 1e-12


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Gaussian(0.7, covariance=np.diag([1.0, 0.5, 2.0]), normalized=True)], ids=repr)
def test_components_are_densities_whatever_the_scale_and_shape_of_the_kernel(kernel):
    bag = cohort()[0]
    request = AtomRequest(size=20, weights="simplex", pieces="components")
    found = own_pieces(bag, ComparisonOptions("kl", kernel, "own", request, 2), np.random.default_rng(0))
    assert found.mean.mass == pytest.approx(1)
    assert found.mean.weights.min() >= 0
    assert found.n_samples == len(bag)
    full, few = Mixture.from_mean(KernelMean.from_samples(bag, kernel)), found.mean
    assert full.distance(few * full.mass) / full.norm() == pytest.approx(found.certificate.relative_error, rel=1e-3)


@pytest.mark.slow
def test_a_tolerance_is_kept_by_every_bag_with_no_more_components_than_it_takes():
    coarse, fine = (CohortMap(tol=tol, draws=200, **OPTIONS).fit(cohort(300)) for tol in (0.1, 0.01))
    for found, tol in ((coarse, 0.1), (fine, 0.01)):
        assert max(each.certificate.relative_error for each in found.compressions_) <= tol
    assert all(a.size < b.size for a, b in zip(coarse.compressions_, fine.compressions_, strict=True))


def test_bags_beyond_the_tolerance_are_named_once():
    with pytest.warns(NotReachedWarning, match="tol=0.001.*6.*6.*5") as told:
        CohortMap(tol=0.001, max_size=5, draws=200, **OPTIONS).fit(cohort(200))
    assert len(told) == 1


def test_a_later_bag_lands_by_those_like_it_whoever_it_comes_with():
    fitted = CohortMap(size=30, **OPTIONS).fit(cohort())
    later = [*cohort(seed=1)]
    together, _ = fitted.distances_to_fitted(later)
    assert np.all(together[:3].argmin(axis=1) < 3)
    assert np.all(together[3:].argmin(axis=1) >= 3)
    np.testing.assert_allclose(fitted.distances_to_fitted(later[4:])[0], together[4:], rtol=1e-9)
    assert fitted.transform(later).shape == (6, 2)


def test_a_later_bag_that_components_do_not_show_is_compared_in_full():
    fitted = CohortMap(size=2, draws=500, **OPTIONS | {"kernel": Gaussian(1.5, normalized=True)}).fit([b[:, :1] for b in cohort()])
    lattice = np.arange(200.0)[:, None] * 8.0  # two components cannot show as many heaps
    with pytest.warns(NotReachedWarning, match=r"later bags \(0\) have errors up to"):
        found, _ = fitted.distances_to_fitted([lattice])
    full = KernelMean.from_samples(lattice, fitted.kernel_)
    expected = divergences([full], [each.mean for each in fitted.compressions_], draws=500, rng=1)
    assert np.all(np.abs(found - expected.values) < 0.1 * expected.values)


def test_the_same_seed_gives_the_same_map():
    one, two = (CohortMap(size=10, **OPTIONS).fit(cohort(200)) for _ in range(2))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)


def test_mixtures_and_kernel_means_are_compared_with_each_other():
    means = [KernelMean.from_samples(bag, KERNEL) for bag in cohort(60)[:3]]
    expected = divergences(means, draws=500, rng=0)
    mixed = [Mixture.from_mean(means[0]), means[1], 3.0 * Mixture.from_mean(means[2])]
    found = divergences(mixed, draws=500, rng=0)
    assert np.all(np.abs(found.values - expected.values) <= 5 * np.hypot(found.errors, expected.errors))
    assert np.all(divergences(means[:1], mixed[:1], draws=100, rng=0).values < 1e-20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distance": "mmd", "pieces": "components"}, "pieces='components' .*got 'mmd'"),
        ({"pieces": "components", "atoms": "own"}, "excludes atoms, got atoms='own'"),
        ({"pieces": "crumbs"}, "pieces must be"),
        ({"pieces": "components", "kernel": Laplacian(1.0)}, "pieces='components' are Gaussian, got kernel=Laplacian"),
    ],
)
def test_pieces_that_cannot_be_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CohortMap(**OPTIONS | options).fit(cohort(20))


def test_densities_of_two_dimensions_and_strangers_are_refused():
    flat = Mixture(np.ones(1), np.zeros((1, 2)), np.ones(1))
    with pytest.raises(ValueError, match=r"means\[1\] .*got 3"):
        divergences([flat, Mixture(np.ones(1), np.zeros((1, 3)), np.ones(1))])
    with pytest.raises(TypeError, match=r"means\[0\] .*got ndarray"):
        divergences([np.zeros((3, 2))])
    with pytest.raises(ValueError, match="means must hold at least one density"):
        divergences([])
