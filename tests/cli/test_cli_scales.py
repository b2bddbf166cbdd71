"""Units of columns and the resolution, from the shell."""

import json

import numpy as np
import pytest
from PIL import Image
from support.cli_processes import in_this_process

from reduset import Gaussian, KernelMean, Model, bandwidth, compress, io
from reduset.model import column_differences


@pytest.fixture
def people(tmp_path):
    """Incomes and ages, which differ in their units by thousands; a table of 3,000 rows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(10, 0.6, 3000), rng.normal(45, 12, 3000)])
    io.write_rows(tmp_path / "people.parquet", ["income", "age"], X)
    return X


def told(tmp_path, *words, data="people.parquet", code=0):
    return json.loads(in_this_process("compress", data, *words, "--json", folder=tmp_path, code=code).stdout)


def test_by_default_columns_count_alike_and_the_resolution_is_told(people, tmp_path):
    facts = told(tmp_path, "--size", 100, "-o", "small.npz")
    scales = bandwidth.column_scales(people)
    assert facts["scales"] == dict(zip(["income", "age"], scales.tolist(), strict=True))
    assert facts["kernel"]["bandwidth"] == facts["resolution"]
    same = compress(people, Gaussian(scales="robust"), size=100, rng=0)
    assert facts["resolution"] == same.resolution
    assert facts["interval"][1] <= 0.05
    assert facts["resolution"] < 0.5 * Gaussian("median").resolve(people / scales).width
    assert Model.load(tmp_path / "small.npz").mean.kernel == same.mean.kernel


@pytest.mark.slow
def test_size_and_tol_give_the_resolution(people, tmp_path):
    found = {tol: told(tmp_path, "--size", 60, "--tol", tol, "-o", "small.npz") for tol in (0.02, 0.1)}
    for tol, facts in found.items():
        assert facts["interval"][1] <= tol
    assert found[0.1]["resolution"] < found[0.02]["resolution"]


@pytest.mark.slow
def test_a_bandwidth_is_in_the_units_of_the_columns_and_has_no_search(people, tmp_path):
    for more, scales in (([], "robust"), (["--scales", "standard"], "standard"), (["--scales", "none"], None)):
        facts = told(tmp_path, "--size", 20, "--bandwidth", 0.5, *more, "-o", "small.npz")
        assert facts["resolution"] is None
        kernel = Gaussian(0.5, scales=scales).resolve(people)
        assert facts["kernel"] == kernel.to_dict()
    facts = told(tmp_path, "--size", 20, "--bandwidth", "median", "--scales", "20000,12", "-o", "small.npz")
    assert facts["scales"] == {"income": 20000.0, "age": 12.0}
    assert told(tmp_path, "--size", 20, "--whiten", "-o", "small.npz")["scales"] is None


@pytest.mark.slow
def test_what_was_divided_by_what_is_said_in_a_line(people, tmp_path):
    words = ["compress", "people.parquet", "--size", 50, "-o", "small.npz"]
    income, age = bandwidth.column_scales(people)
    line = f"scales      income / {float(f'{income:.3g}'):,g}, age / {age:.3g}"
    assert line in in_this_process(*words, folder=tmp_path).stdout
    assert line in in_this_process("info", "small.npz", folder=tmp_path).stdout
    assert "  scales  " not in in_this_process(*words, "--scales", "none", folder=tmp_path).stdout
    io.write_rows(tmp_path / "wide.csv", [f"x{k}" for k in range(9)], np.random.default_rng(0).normal(size=(200, 9)))
    text = in_this_process("compress", "wide.csv", "--size", 20, "-o", "small.npz", folder=tmp_path).stdout
    (scales,) = [line for line in text.splitlines() if line.startswith("  scales  ")]
    assert scales.endswith(", …")


def test_pictures_have_one_unit_and_segments_too(tmp_path):
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (20, 20, 3), dtype=np.uint8)).save(tmp_path / "picture.png")
    assert told(tmp_path, "--size", 30, "-o", "small.npz", data="picture.png")["scales"] is None
    assert told(tmp_path, "--size", 30, "--scales", "robust", "-o", "small.npz", data="picture.png")["scales"] is not None
    in_this_process("segment", "picture.png", "-o", "segments.png", folder=tmp_path)


def test_groups_have_the_resolution_of_all_rows_and_say_so(tmp_path):
    rng = np.random.default_rng(0)
    io.write_rows(tmp_path / "rows.csv", ["a", "b"], rng.normal(size=(300, 2)), labels={"kind": ["p", "q"] * 150})
    facts = told(tmp_path, "--size", 20, "--group-column", "kind", "-o", "few.npz", data="rows.csv")
    assert facts["resolution"] is None
    assert (
        "the bandwidth is the resolution of all rows together; the error at this bandwidth differs between groups" in facts["notes"]
    )


@pytest.mark.slow
def test_columns_that_look_otherwise_are_named(tmp_path):
    rng = np.random.default_rng(0)
    peaks = rng.integers(0, 12, 1200) + rng.normal(0, 0.03, 1200)
    X = np.column_stack([rng.normal(size=1200), peaks, rng.normal(size=1200)])
    io.write_rows(tmp_path / "rows.parquet", ["plain", "comb", "other"], X)
    facts = told(tmp_path, "--size", 40, "-o", "small.npz", data="rows.parquet")
    assert facts["marginals"]["comb"] > 0.05
    (note,) = [text for text in facts["notes"] if "marginal densities" in text]
    far = sorted((name for name, off in facts["marginals"].items() if off > 0.05), key=lambda name: -facts["marginals"][name])
    assert [part.split(" ")[0] for part in note.split("spread: ")[1].split(";")[0].split(", ")] == far
    model = Model.load(tmp_path / "small.npz")
    assert note in model.about["notes"]
    full = KernelMean.from_samples(X, model.mean.kernel)
    np.testing.assert_allclose(list(facts["marginals"].values()), column_differences(full, model.mean))
    notes = told(tmp_path, "--size", 800, "-o", "all.npz", data="rows.parquet")["notes"]
    assert not [text for text in notes if "marginal densities" in text]


@pytest.mark.slow
def test_odd_columns_are_taken(tmp_path):
    """Constant, two-valued, rare, whole, and heavy in the tails; and more columns than rows."""
    rng = np.random.default_rng(0)
    n = 800
    X = np.column_stack(
        [np.full(n, 7.0), rng.random(n) < 0.5, rng.random(n) < 0.02, rng.integers(0, 90, n), rng.standard_cauchy(n), np.arange(n)]
    )
    names = ["constant", "half", "rare", "years", "cauchy", "id"]
    io.write_rows(tmp_path / "rows.parquet", names, X.astype(float))
    facts = told(tmp_path, "--size", 300, "-o", "few.npz", data="rows.parquet")
    assert facts["scales"]["constant"] == facts["scales"]["half"] == 1.0
    assert facts["scales"]["rare"] == pytest.approx(X[:, 2].std(), rel=1e-6)
    assert facts["marginals"]["constant"] < 1e-6
    few = Model.load(tmp_path / "few.npz").mean
    assert few.weights @ few.atoms[:, 2] == pytest.approx(X[:, 2].mean(), abs=0.005)
    io.write_rows(tmp_path / "wide.parquet", [f"x{k}" for k in range(30)], rng.normal(size=(12, 30)) * np.geomspace(1e-6, 1e6, 30))
    assert told(tmp_path, "--size", 12, "-o", "wide.npz", data="wide.parquet")["relative_error"] < 1e-3


@pytest.mark.slow
def test_models_of_other_units_are_compared_as_the_message_says(people, tmp_path):
    io.write_rows(tmp_path / "later.parquet", ["income", "age"], people * [1.3, 1.0])
    for name in ("people", "later"):
        told(tmp_path, "--size", 40, "-o", f"{name}.npz", data=f"{name}.parquet")
    refused = in_this_process("distance", "people.npz", "later.npz", folder=tmp_path, code=2).stderr
    assert "must have the same kernel" in refused
    options = refused.split("compress those with ")[1].split()
    told(tmp_path, "--size", 40, *options, "-o", "later.npz", data="later.parquet")
    apart = json.loads(in_this_process("distance", "people.npz", "later.npz", "--json", folder=tmp_path).stdout)
    rows = json.loads(in_this_process("distance", "people.npz", "later.parquet", "--json", folder=tmp_path).stdout)
    assert abs(apart["distance"] - rows["distance"]) <= apart["uncertainty"]
    message = "--scales needs two files of rows, since a model has its own units"
    words = ["distance", "people.npz", "later.parquet", "--scales", "none"]
    assert message in in_this_process(*words, folder=tmp_path, code=2).stderr
    both = ["distance", "people.parquet", "later.parquet", "--json"]
    kernels = [json.loads(in_this_process(*both, *more, folder=tmp_path).stdout)["kernel"] for more in ([], ["--scales", "none"])]
    assert kernels[0]["scales"] == bandwidth.column_scales(people).tolist()
    assert "scales" not in kernels[1]
