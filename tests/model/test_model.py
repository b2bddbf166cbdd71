"""Portraits and models: densities against their definition, a file that tells all, and a random subsample's error as a law."""

import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from archive_cases import header_of, members, store
from reduset import Gaussian, KernelMean, Laplacian, compress
from reduset._archive.fields import Numbers
from reduset.model import Model
from reduset.model.marginals import MarginalDensities
from reduset.model.model import MODEL


def rows(n=3000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ np.diag(np.arange(1, d + 1)) + rng.choice([-3.0, 3.0], size=(n, 1))


def made(n=3000, d=3, size=40, kernel=None, **options):
    full = KernelMean.from_samples(rows(n, d), kernel or Gaussian(1.0))
    return full, compress(full, size=size, select="kcenter", rng=0, **options)


def test_densities_are_sums_of_bumps():
    rng = np.random.default_rng(1)
    mean = KernelMean(rows(500), rng.uniform(-0.2, 1, 500), Gaussian(0.7))
    portrait = MarginalDensities.of(mean)
    for k in range(3):
        bumps = norm.pdf(portrait.grids[k][:, None], mean.atoms[:, k], portrait.widths[k])
        np.testing.assert_allclose(portrait.marginals[k], bumps @ mean.weights, rtol=1e-4, atol=1e-6 * bumps.max())
    for (k, j), joint in zip(portrait.pairs, portrait.joint, strict=True):
        first, second = (norm.pdf(portrait.pair_grids[i][:, None], mean.atoms[:, i], portrait.pair_widths[i]) for i in (k, j))
        wanted = (first * mean.weights) @ second.T
        np.testing.assert_allclose(joint, wanted, atol=1e-5 * np.abs(wanted).max())


def test_marginals_of_a_gaussian_kernel_mean_are_those_of_its_density():
    mean = KernelMean.from_samples(rows(200, 2), Gaussian(0.8, normalized=True))
    portrait = MarginalDensities.of(mean)
    assert (portrait.widths == 0.8).all()
    far = np.linspace(-40, 40, 4001)
    column = [mean(np.column_stack([np.full(len(far), place), far])).sum() * (far[1] - far[0]) for place in portrait.grids[0][::20]]
    np.testing.assert_allclose(portrait.marginals[0][::20], column, rtol=1e-4, atol=1e-7)


def test_many_points_are_shared_out_among_bins_without_a_trace():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.integers(1, 13, 60_000), rng.exponential(3.0, 60_000)])  # whole numbers, and a heavy tail
    mean = KernelMean(X, rng.uniform(-0.1, 1.0, 60_000) / 60_000, Gaussian(0.4))
    portrait = MarginalDensities.of(mean)
    for k in range(2):
        places, which = np.unique(X[:, k], return_inverse=True)
        bumps = np.exp(-0.5 * np.square((portrait.grids[k][:, None] - places) / portrait.widths[k]))
        bumps /= np.sqrt(2 * np.pi) * portrait.widths[k]
        wanted = bumps @ np.bincount(which, mean.weights)
        np.testing.assert_allclose(portrait.marginals[k], wanted, atol=1e-4 * portrait.marginals[k].max())


def test_the_bulk_is_in_the_picture_and_a_far_row_is_not():
    X = rows(20_000, 2)
    X[0] = 1e6
    portrait = MarginalDensities.of(KernelMean.from_samples(X, Gaussian(0.5)))
    assert portrait.grids.max() < 30
    mass = np.trapezoid(portrait.marginals, portrait.grids, axis=1)
    assert ((mass > 0.995) & (mass < 1.0)).all()


@pytest.mark.parametrize("kernel", [Gaussian(0.01), Laplacian(0.5), Gaussian(1.0, covariance=np.diag([1.0, 4.0, 9.0]))], ids=repr)
def test_bumps_are_as_wide_as_the_kernels_or_a_step_of_the_grid(kernel):
    portrait = MarginalDensities.of(KernelMean.from_samples(rows(), kernel))
    steps = portrait.grids[:, 1] - portrait.grids[:, 0]
    scale = np.array([1.0, 2.0, 3.0]) if kernel.covariance is not None else np.ones(3)
    np.testing.assert_allclose(portrait.widths, np.maximum(kernel.width * scale, steps))


def test_many_columns_are_cut_and_one_has_no_pairs():
    wide = MarginalDensities.of(KernelMean.from_samples(rows(300, 50), Gaussian(1.0)))
    assert wide.marginals.shape == (40, 160)
    assert wide.joint.shape == (15, 40, 40)
    narrow = MarginalDensities.of(KernelMean.from_samples(rows(300, 1), Gaussian(1.0)))
    assert narrow.joint.shape == (0, 40, 40)
    assert narrow.pairs.shape == (0, 2)


@pytest.mark.parametrize("d", [1, 3])
def test_a_file_tells_all(d, tmp_path):
    full, small = made(d=d)
    told = {"command": "reduset compress a.csv", "sources": ["a.csv"], "<script>": "alert(1)"}
    model = Model.of(full, small, columns=[f"c{k}" for k in range(d)], about=told)
    model.save(tmp_path / "small.npz")
    back = Model.load(tmp_path / "small.npz")
    assert back.about == model.about
    assert back.columns == model.columns
    assert back.certificate == small.certificate
    np.testing.assert_array_equal(back.path.relative_errors, small.path.relative_errors)
    for step, size in enumerate(back.step_sizes):
        np.testing.assert_array_equal(back.at(step).weights, small.at(int(size)).mean.weights)
        assert back.error_at(step) == small.path.relative_errors[size - 1]
    for name, value in vars(model.portrait).items():
        np.testing.assert_array_equal(getattr(back.portrait, name), value)
    assert str(back) == str(model)
    assert f"-> {small.size} weighted atoms" in str(back)
    mean = KernelMean.load(tmp_path / "small.npz")
    np.testing.assert_array_equal(mean.atoms, small.mean.atoms)
    assert mean.kernel == small.mean.kernel


@settings(max_examples=12, deadline=None)
@given(size=st.integers(1, 60), weighted=st.booleans(), seed=st.integers(0, 9))
def test_a_random_subsample_loses_what_is_said(size, weighted, seed):
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=300) if weighted else np.full(300, 1 / 300)
    full = KernelMean(rows(300, 2, seed), weights, Gaussian(1.5))
    model = Model.of(full, compress(full, size=10, select="kcenter", rng=0))
    total = weights.sum()
    gaps = np.square(full.atoms[:, None] - full.atoms).sum(axis=2)
    products = np.exp(-gaps / (2 * 1.5**2))
    counts = np.stack([np.bincount(rng.choice(300, size, p=weights / total), minlength=300) for _ in range(300)])
    lost = counts * (total / size) - weights
    squares = ((lost @ products) * lost).sum(axis=1) / (weights @ products @ weights)
    expected = model.subsample_errors(np.array([size]))[0] ** 2
    assert abs(np.mean(squares) - expected) < 5 * np.std(squares) / np.sqrt(300) + 1e-3 * expected


def test_signed_weights_have_no_subsample():
    full = KernelMean(rows(200, 2), np.where(np.arange(200) % 2, 1.0, -0.5), Gaussian(1.0))
    assert Model.of(full, compress(full, size=5, rng=0)).subsample_errors(np.array([5])) is None


@pytest.mark.parametrize("change", ["columns", "step_weights", "pairs", "joint", "certificate", "step_sizes"])
def test_parts_that_do_not_belong_together_are_refused(change, tmp_path):
    full, small = made()
    path = tmp_path / "spoilt.npz"
    Model.of(full, small).save(path)
    header, arrays = header_of(path), members(path)
    arrays.pop("header")
    if change == "columns":
        header["columns"] = ["only one"]
    elif change == "certificate":
        header["certificate"] = {"relative_error": 0.0}
    elif change == "pairs":
        arrays["pairs"] = arrays["pairs"] + 7
    elif change == "step_sizes":
        arrays["step_sizes"] = arrays["step_sizes"] * 1000
    else:
        arrays[change] = arrays[change][:-1]
    store(path, header, arrays)
    with pytest.raises(ValueError, match=r"spoilt\.npz describes no model"):
        Model.load(path)


def test_a_mean_alone_is_no_model_and_names_are_checked(tmp_path):
    full, small = made()
    small.mean.save(tmp_path / "mean.npz")
    with pytest.raises(ValueError, match=r"not a readable reduset\.Model file: it holds 'reduset\.KernelMean'"):
        Model.load(tmp_path / "mean.npz")
    with pytest.raises(ValueError, match=r"columns .*got 2 names"):
        Model.of(full, small, columns=["a", "b"])
    with pytest.raises(ValueError, match="full must be the mean that was compressed, of 3,000 points in 3 columns"):
        Model.of(KernelMean(full.atoms[1:], full.weights[1:], full.kernel), small)


def test_the_file_holds_what_is_listed(tmp_path):
    full, small = made()
    Model.of(full, small).save(tmp_path / "small.npz")
    with zipfile.ZipFile(tmp_path / "small.npz") as file:
        assert {name.removesuffix(".npy") for name in file.namelist()} == {
            "header",
            *(name for name, field in MODEL.fields.items() if isinstance(field, Numbers)),
        }
        header = json.loads(file.read("header.npy").split(b"\n", 1)[1])
    assert header["n_samples"] == 3000
