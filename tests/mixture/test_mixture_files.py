"""The file of a mixture: what goes in comes out, and nothing else ever does."""

import os

import numpy as np
import pytest

from archive_cases import as_member, header_of, mean_of, members, reseal, rewrite, store
from reduset import Gaussian, KernelMean, Mixture
from reduset._archive import archive
from reference_mixture import SHAPES, mixture_of

NAMES = ("weights", "means", "covariances")


def some(shape="full", shared=False):
    return mixture_of(np.random.default_rng(0), 5, 2, shape, shared, signed=True)


def same(f, g):
    return all(np.array_equal(getattr(f, name), getattr(g, name)) for name in NAMES)


def outcome(path):
    """The loaded mixture, or the refusal."""
    try:
        return Mixture.load(path)
    except ValueError as error:
        return error


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "mixture.npz"
    some().save(path)
    return path


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("shared", [False, True])
def test_a_mixture_comes_back_as_it_went(shape, shared, tmp_path):
    f = some(shape, shared)
    f.save(tmp_path / "mixture.model")
    g = Mixture.load(str(tmp_path / "mixture.model"))
    assert same(f, g)
    assert g.shape == shape
    assert not g.means.flags.writeable
    assert os.listdir(tmp_path) == ["mixture.model"]


def test_one_covariance_for_all_comes_back_for_each(tmp_path):
    f = Mixture.from_mean(mean_of(Gaussian(0.5, covariance=np.array([[2.0, 0.6], [0.6, 0.5]]))))
    f.save(tmp_path / "mixture.npz")
    assert same(f, Mixture.load(tmp_path / "mixture.npz"))


def test_the_file_is_an_ordinary_npz_with_a_json_header(saved):
    assert set(members(saved)) == {"header", *NAMES}
    header = header_of(saved)
    assert (header["kind"], header["version"]) == ("reduset.Mixture", 1)


def test_a_failing_write_leaves_the_old_file_and_no_other(saved, monkeypatch):
    old = saved.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(archive, "_fill", fail)
    with pytest.raises(OSError, match="no space left"):
        (some() * 2).save(saved)
    assert os.listdir(saved.parent) == [saved.name]
    assert saved.read_bytes() == old


def test_a_missing_file_and_a_folder_are_file_not_found(tmp_path):
    for path in (tmp_path / "nothing.npz", tmp_path):
        with pytest.raises(FileNotFoundError, match="no such file"):
            Mixture.load(path)


def test_a_file_cut_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    for end in range(0, len(whole), 37):
        saved.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"is not a readable reduset.Mixture file"):
            Mixture.load(saved)


@pytest.mark.parametrize("seed", range(3))
def test_random_damage_is_refused_or_has_no_effect(seed, saved):
    rng = np.random.default_rng(seed)
    whole, original = np.frombuffer(saved.read_bytes(), np.uint8), Mixture.load(saved)
    refused = 0
    for _ in range(60):
        damaged = whole.copy()
        a = int(rng.integers(0, len(whole)))
        damaged[a : a + 9] = rng.integers(0, 256, size=len(damaged[a : a + 9]))
        saved.write_bytes(damaged.tobytes())
        found = outcome(saved)
        assert isinstance(found, ValueError) or same(found, original)
        refused += isinstance(found, ValueError) and "mixture.npz" in str(found)
    assert refused > 30


def test_a_file_of_another_kind_is_named(tmp_path, saved):
    mean_of(Gaussian(0.3)).save(tmp_path / "mean.npz")
    with pytest.raises(ValueError, match=r"it holds 'reduset.KernelMean', not 'reduset.Mixture'"):
        Mixture.load(tmp_path / "mean.npz")
    with pytest.raises(ValueError, match=r"it holds 'reduset.Mixture', not 'reduset.KernelMean'"):
        KernelMean.load(saved)


def test_a_newer_version_asks_for_an_upgrade(saved):
    reseal(saved, version=2)
    with pytest.raises(ValueError, match="its version is 2, this library reads up to 1; upgrade reduset"):
        Mixture.load(saved)


@pytest.mark.parametrize("name", NAMES)
def test_an_edited_or_missing_array_is_refused(name, saved):
    content = members(saved)
    array = content[name].copy()
    array.flat[1] += 1e-9
    rewrite(saved, **{name: array})
    with pytest.raises(ValueError, match="its digest does not match"):
        Mixture.load(saved)
    rewrite(saved, without=[name])
    with pytest.raises(ValueError, match="belong"):
        Mixture.load(saved)


def test_an_edited_header_is_refused(saved):
    rewrite(saved, header=as_member(header_of(saved) | {"comment": "hello"}))
    with pytest.raises(ValueError, match="its digest does not match"):
        Mixture.load(saved)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("means", np.full((5, 2), np.nan)),
        ("means", np.zeros(5)),
        ("means", np.zeros((4, 2))),
        ("weights", np.zeros(5)),
        ("weights", np.full(5, np.inf)),
        ("covariances", np.zeros(5)),
        ("covariances", np.tile([[1.0, 2.0], [2.0, 1.0]], (5, 1, 1))),
        ("covariances", np.ones((5, 3))),
    ],
)
def test_resealed_arrays_are_checked_like_any_input(name, array, saved):
    content = members(saved) | {name: array}
    content.pop("header")
    header = header_of(saved)
    store(saved, header, content)
    with pytest.raises(ValueError, match=r"mixture.npz describes no mixture: (means|weights|covariances) must"):
        Mixture.load(saved)
