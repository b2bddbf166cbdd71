"""A model keeps how fine it sees: the profile of some sizes and the resolution, in its file, and nothing where there is none."""

import json

import numpy as np
import pytest

from archive_cases import members, parts, reseal, store
from reduset import FunctionKernel, Gaussian, KernelMean, compress
from reduset.cli.entry import run
from reduset.model import Model
from reduset.model.model import PROFILE_STEP as EVERY
from reduset.stream import StreamCompressor

ROWS = np.random.default_rng(0).normal(size=(600, 2)) + np.where(np.arange(600) % 3, -2.0, 2.0)[:, None]
FIELDS = ("bandwidths", "relative_errors", "intervals", "random_rows", "noise")


def resolved(size=30, tol=0.05, **options):
    small = compress(ROWS, size=size, tol=tol, rng=0, **options)
    return small, Model.of(KernelMean.from_samples(ROWS, small.mean.kernel), small)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "small.npz"
    resolved()[1].save(path)
    return path


def changed(path, **arrays):
    """The file with other arrays, its digest made anew."""
    header, content = parts(path)
    store(path, header, content | arrays)


def without_profiles(path):
    """The file of the same model, of which no profiles, no resolution and no histograms are known."""
    header, content = parts(path)
    empty = {
        "scales": np.empty(0),
        "profile_sizes": np.empty(0),
        "profile_errors": np.empty((0, 5, 0)),
        "bars": np.empty((0, 3, 0)),
    }
    store(path, header | {"resolved": None}, content | empty)


@pytest.mark.parametrize("n", [600, 6000])  # exact, and by waves
def test_profiles_are_those_of_the_nested_sizes_and_survive_the_file(n, tmp_path):
    X = np.random.default_rng(1).normal(size=(n, 2))
    full = KernelMean.from_samples(X, Gaussian(0.5))
    small = compress(full, size=40, select="kcenter", rng=0)
    model = Model.of(full, small)
    model.save(tmp_path / "small.npz")
    back = Model.load(tmp_path / "small.npz")
    assert back.profiles.sizes.tolist() == model.step_sizes[::-1][::EVERY][::-1].tolist()
    assert back.profiles.sizes[-1] == small.size
    for size, kept in zip(back.profiles.sizes, back.profiles.profiles, strict=True):
        wanted = small.at(int(size)).profile()
        assert kept.confidence == wanted.confidence
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(kept, name), getattr(wanted, name))
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(back.profile(), name), getattr(small.profile(), name))


def test_the_profile_of_a_step_is_that_of_the_nearest_size_known():
    _, model = resolved()
    for step, size in enumerate(model.step_sizes):
        which = np.abs(np.log(model.profiles.sizes / size)).argmin()
        np.testing.assert_array_equal(model.profile(step).relative_errors, model.profiles.profiles[which].relative_errors)
        if size in model.profiles.sizes:
            assert model.profiles.sizes[which] == size


def test_a_resolution_is_kept_and_told_as_the_result_tells_it(saved, capsys):
    small, model = resolved()
    back = Model.load(saved)
    assert back.resolved == small.resolved
    assert back.resolution == small.resolution == small.mean.kernel.bandwidth
    line = next(line for line in str(small).splitlines() if line.startswith("  resolution"))
    assert model.size == small.selected == 30
    assert line.replace(f"{small.size} random", "30 random").split() in [each.split() for each in str(back).splitlines()]
    assert "= median distance / " in line
    assert run(["info", str(saved)]) == 0
    assert "resolution" in capsys.readouterr().out
    assert run(["info", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["resolution"]["bandwidth"] == small.resolution


def test_a_model_without_profiles_prints_none(saved, tmp_path, capsys):
    without_profiles(saved)
    back = Model.load(saved)
    assert back.resolved is None
    assert back.resolution is None
    assert len(back.profiles.sizes) == 0
    with pytest.raises(ValueError, match="this model has the error at one scale only"):
        back.profile()
    assert "resolution" not in str(back)
    assert run(["info", str(saved)]) == 0
    assert run(["report", str(saved), "-o", str(tmp_path / "old.html")]) == 0
    assert "fine-title" not in (tmp_path / "old.html").read_text(encoding="utf-8")
    assert KernelMean.load(saved).size == back.size
    back.save(saved)
    assert len(Model.load(saved).profiles.sizes) == 0


@pytest.mark.parametrize("kind", ["function", "stream"])
def test_a_result_without_a_profile_is_kept_without(kind, tmp_path):
    if kind == "function":
        full = KernelMean.from_samples(ROWS, FunctionKernel("rbf", gamma=0.5))
        small = compress(full, size=10, rng=0)
        model = Model.of(full, small)
    else:  # of a bandwidth too small for angles
        stream = StreamCompressor(Gaussian(1e-12), 10, 0).partial_fit(ROWS)
        small = stream.result()
        model = Model.of_stream(stream.sample(), small)
    assert not small.has_profile
    assert small.near_median is None
    model.save(tmp_path / "small.npz")
    back = Model.load(tmp_path / "small.npz")
    assert len(back.profiles.sizes) == 0
    assert back.resolved is None
    assert str(back) == str(model)


GOOD = {"bandwidth": 0.5, "tol": 0.05, "median": 2.0, "random_rows": None, "alone": False, "by_noise": False}


@pytest.mark.parametrize(
    ("told", "field"),
    [
        (5, "resolved must be an object, got 5"),
        ({}, r"resolved\.bandwidth is missing"),
        ({"bandwidth": 0.5}, r"resolved\.tol is missing"),
        (GOOD | {"flavour": 1}, r"resolved\.flavour is not known"),
        (GOOD | {"bandwidth": -1.0}, r"resolved\.bandwidth"),
        (GOOD | {"bandwidth": None}, r"resolved\.bandwidth"),
        (GOOD | {"tol": "x"}, r"resolved\.tol"),
        (GOOD | {"tol": 0}, r"resolved\.tol"),
        (GOOD | {"median": float("inf")}, r"resolved\.median"),
        (GOOD | {"random_rows": float("nan")}, r"resolved\.random_rows"),
        (GOOD | {"random_rows": [1]}, r"resolved\.random_rows"),
        (GOOD | {"by_noise": 3}, r"resolved\.by_noise|by_noise"),
    ],
    ids=str,
)
def test_a_hostile_resolution_is_named(saved, told, field):
    reseal(saved, resolved=told)
    with pytest.raises(ValueError, match=rf"small\.npz describes no model: .*{field}"):
        Model.load(saved)
    assert run(["info", str(saved)]) == 2


def test_random_rows_that_are_within_at_no_scale_are_kept_as_none(saved):
    reseal(saved, resolved=GOOD)
    assert "random rows: above 5 % at every bandwidth)" in str(Model.load(saved))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (
            lambda kept: {"profile_errors": kept["profile_errors"][:, :4]},
            r"profile_errors must have the shape \(profiles = .*, 5, scales = ",
        ),
        (lambda kept: {"profile_errors": kept["profile_errors"][:, :, :-1]}, "profile_errors must have the shape"),
        (lambda kept: {"profile_errors": kept["profile_errors"][0]}, "profile_errors must have the shape"),
        (
            lambda kept: {"profile_errors": -kept["profile_errors"]},
            "profile_errors must hold numbers that are at least 0, got -",
        ),
        (lambda kept: {"scales": kept["scales"][::-1]}, "scales must be positive numbers in decreasing order"),
        (lambda kept: {"scales": kept["scales"] * np.nan}, "scales must hold finite numbers, got nan"),
        (lambda kept: {"scales": kept["scales"] - kept["scales"][0]}, "scales must hold numbers that are above 0"),
        (lambda kept: {"scales": np.array(1.0)}, r"scales must have the shape \(scales\), got \(\)"),
        (
            lambda kept: {"scales": np.empty(0), "profile_errors": kept["profile_errors"][:, :, :0]},
            "profiles must have sizes and scales",
        ),
        (lambda kept: {"profile_sizes": kept["profile_sizes"] + 0.5}, "profile_sizes must hold whole numbers"),
        (lambda kept: {"profile_sizes": kept["profile_sizes"] + 1}, "profile_sizes must go up to the 30 atoms"),
        (lambda kept: {"profile_sizes": kept["profile_sizes"][::-1]}, "profile_sizes must go up to"),
        (
            lambda kept: {"profile_sizes": np.append(0, kept["profile_sizes"][1:])},
            "profile_sizes must hold numbers that are between 1",
        ),
    ],
)
def test_hostile_profiles_are_named(saved, change, field):
    changed(saved, **change(members(saved)))
    with pytest.raises(ValueError, match=rf"small\.npz describes no model: {field}"):
        Model.load(saved)


def test_numbers_beyond_floating_point_are_read_and_reported(saved, tmp_path):
    kept = members(saved)["profile_errors"].copy()
    kept[:, 2] = np.inf
    kept[0], kept[1, 1] = np.nan, 0.0
    changed(saved, profile_errors=kept)
    assert np.isinf(Model.load(saved).profile().intervals[:, 1]).all()
    assert run(["report", str(saved), "-o", str(tmp_path / "small.html")]) == 0
