"""A model of components: a kind of file of its own, checked like any other, and used like any other."""

import numpy as np
import pytest

from archive_cases import header_of, members, reseal, store
from reduset import ComponentMean, Gaussian, KernelMean, Mixture, compress
from reduset.model import Model, column_differences

RNG = np.random.default_rng(0)
ROWS = np.concatenate([RNG.normal(0, [1.0, 0.4, 2.0], size=(200, 3)), RNG.normal([4, 1, 0], 0.6, size=(200, 3))])
KERNELS = {
    "plain": Gaussian(0.5),
    "in units": Gaussian(0.5, scales="robust"),
    "oblique": Gaussian(0.5, covariance=np.cov(ROWS.T)),
}
KERNEL = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def made(kernel=None, size=6):
    full = KernelMean.from_samples(ROWS, kernel or Gaussian(0.5))
    return full, Model.of(full, compress(full, size=size, pieces="components", rng=0), about={"notes": ["one"]})


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "small.npz"
    made()[1].save(path)
    return path


@KERNEL
def test_a_file_holds_all_of_it(kernel, tmp_path):
    _, model = made(kernel)
    model.save(tmp_path / "small.npz")
    again = Model.load(tmp_path / "small.npz")
    assert again.mean.kernel == model.mean.kernel
    for name in ("weights", "means", "covariances"):
        np.testing.assert_array_equal(getattr(again.mean, name), getattr(model.mean, name))
    assert str(again) == str(model)
    assert "400 rows × 3 columns -> 6 weighted components" in str(again)
    assert "components  fitted, weights simplex" in str(again)
    assert again.certificate == model.certificate
    np.testing.assert_array_equal(again.profiles.sizes, model.profiles.sizes)


def test_its_steps_are_the_nested_compressions():
    full = KernelMean.from_samples(ROWS, Gaussian(0.5))
    small = compress(full, size=6, pieces="components", rng=0)
    model = Model.of(full, small)
    for step, size in enumerate(model.step_sizes):
        few, nested = model.at(step), small.at(int(size)).mean
        assert isinstance(few, ComponentMean)
        np.testing.assert_allclose(few(ROWS[:40]), nested(ROWS[:40]), rtol=1e-9)


def test_no_reader_takes_components_for_atoms(saved):
    with pytest.raises(
        ValueError, match=r"it holds 'reduset\.Model\.components', not 'reduset\.KernelMean'; use reduset\.Model\.load"
    ):
        KernelMean.load(saved)
    model = Model.load(saved)
    for reader in (ComponentMean, Mixture):
        np.testing.assert_allclose(reader.load(saved)(ROWS[:9]), model.mean(ROWS[:9]), rtol=1e-12)


def test_a_mixture_has_no_kernel_to_be_a_mean_of(tmp_path):
    Mixture([1.0], [[0.0]], [1.0]).save(tmp_path / "mixture.npz")
    with pytest.raises(ValueError, match=r"it holds 'reduset\.Mixture', not 'reduset\.ComponentMean'; use reduset\.Mixture\.load"):
        ComponentMean.load(tmp_path / "mixture.npz")


def test_norms_are_those_of_the_density():
    full, model = made()
    as_density = KernelMean.from_samples(ROWS, model.mean.kernel)
    assert not full.kernel.normalized
    assert model.mean.kernel.normalized
    np.testing.assert_allclose(model.certificate.norm, as_density.norm(), rtol=1e-6)
    np.testing.assert_allclose(model.certificate.relative_error, model.mean.distance(as_density) / as_density.norm(), rtol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Gaussian(0.5, scales="robust")], ids=["plain", "in units"])
def test_pictures_are_marginals_of_the_mixture(kernel):
    _, model = made(kernel)
    portrait = model.portrait
    for k, found in enumerate(portrait.marginals_of(model.mean)):
        np.testing.assert_allclose(found, model.mean.marginal([k])(portrait.grids[k][:, None]), rtol=1e-9, atol=1e-15)
    first, second = portrait.pairs[1]
    places = np.stack(np.meshgrid(portrait.pair_grids[first], portrait.pair_grids[second], indexing="ij"), axis=-1)
    wanted = model.mean.marginal([first, second])(places.reshape(-1, 2)).reshape(places.shape[:2])
    np.testing.assert_allclose(portrait.joint_of(model.mean)[1], wanted, rtol=1e-9, atol=1e-15)


@KERNEL
def test_laws_without_a_spread_are_pictured_as_atoms(kernel):
    full, model = made(kernel)
    few = KernelMean(ROWS[:5], np.full(5, 0.2), model.mean.kernel)
    bump = model.mean.kernel.width**2 * (np.eye(3) if (unit := model.mean.kernel.unit_covariance) is None else unit)
    laws = ComponentMean(np.full(5, 0.2), ROWS[:5], np.tile(bump, (5, 1, 1)), model.mean.kernel)
    for name in ("marginals_of", "joint_of"):
        wanted = getattr(model.portrait, name)(few)
        np.testing.assert_allclose(getattr(model.portrait, name)(laws), wanted, atol=1e-5 * wanted.max())
    np.testing.assert_allclose(column_differences(full, laws), column_differences(full, few), rtol=1e-2)


def test_columns_taken_alone_are_near_and_a_moved_one_is_far():
    full, model = made(size=12)
    off = column_differences(full, model.mean)
    moved = ComponentMean(model.mean.weights, model.mean.means + np.array([0, 0.5, 0]), model.mean.covariances, model.mean.kernel)
    assert (off < 0.2).all()
    assert column_differences(full, moved)[1] > 0.3
    np.testing.assert_allclose(column_differences(full, moved)[[0, 2]], off[[0, 2]])


def rewritten(path, **arrays):
    header, content = header_of(path), members(path) | arrays
    content.pop("header")
    store(path, header, content)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kernel": {"name": "gaussian", "bandwidth": "median"}}, "bandwidth and scales of kernel must be numbers"),
        ({"kernel": {"name": "gaussian", "bandwidth": None}}, "bandwidth"),
        ({"kernel": {"name": "gaussian", "bandwidth": 50.0}}, "covariances must be at least the covariance of"),
        ({"kernel": {"name": "laplacian", "bandwidth": 1.0}}, "kernel must be a Gaussian"),
        ({"kernel": None}, "kernel"),
        ({"columns": ["a"]}, "columns must be 3 names"),
        ({"n_samples": -3}, "n_samples"),
    ],
    ids=str,
)
def test_a_hostile_field_is_named(saved, changes, field):
    reseal(saved, **changes)
    with pytest.raises(ValueError, match=rf"small\.npz .*{field}"):
        Model.load(saved)


@pytest.mark.parametrize(
    ("arrays", "field"),
    [
        ({"covariances": np.ones((6, 3))}, "covariances of a mean of components must be full"),
        ({"covariances": -np.tile(np.eye(3), (6, 1, 1))}, "covariances"),
        ({"covariances": np.full((6, 3, 3), np.nan)}, "covariances"),
        ({"covariances": 1e-6 * np.tile(np.eye(3), (6, 1, 1))}, "covariances must be at least the covariance of"),
        ({"covariances": np.tile(np.eye(3), (2, 1, 1))}, "covariances"),
        ({"means": np.ones(6)}, "means"),
        ({"step_weights": np.ones((2, 2))}, "step_weights must have the shape"),
    ],
    ids=lambda each: str(each)[:40] if isinstance(each, str) else None,
)
def test_hostile_arrays_are_named(saved, arrays, field):
    rewritten(saved, **arrays)
    with pytest.raises(ValueError, match=rf"small\.npz describes no .*{field}"):
        Model.load(saved)


def test_the_laws_are_weighed_anew_for_another_kernel():
    full = KernelMean.from_samples(ROWS, Gaussian(0.5))
    small = compress(full, size=6, pieces="components", rng=0)
    other = small.reweigh(full, Gaussian(1.0))
    dense = KernelMean.from_samples(ROWS, other.mean.kernel)
    assert other.mean.kernel.width == 1.0
    np.testing.assert_allclose(other.certificate.relative_error, other.mean.distance(dense) / dense.norm(), rtol=1e-6)
    with pytest.raises(ValueError, match="weights must be one of"):
        small.reweigh(full, weights="counts")
