"""A model whose digest was made anew, but whose header is hostile, is refused with the file and the field."""

import json

import numpy as np
import pytest

from archive_cases import header_of, members, reseal, store
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, compress
from reduset._archive import archive
from reduset.cli.entry import run
from reduset.model import Model
from reduset.stream import StreamCompressor
from reduset.svm import CompressedSVC, compress_svm

ROWS = np.random.default_rng(0).normal(size=(60, 2))


@pytest.fixture
def saved(tmp_path):
    full = KernelMean.from_samples(ROWS, Gaussian(1.0))
    path = tmp_path / "small.npz"
    Model.of(full, compress(full, size=5, rng=0), about={"notes": ["one"], "mine": {"a": [1]}}).save(path)
    return path


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


def with_certificate(path, **changes):
    reseal(path, certificate=header_of(path)["certificate"] | changes)


INFINITE = float("inf")


@pytest.mark.fast_cases(15)
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"n_samples": INFINITE}, "n_samples must be a whole number"),
        ({"n_samples": float("nan")}, "n_samples"),
        ({"n_samples": -3}, "n_samples must be between 1 and"),
        ({"n_samples": 2**70}, "n_samples"),
        ({"n_samples": True}, "n_samples"),
        ({"n_samples": None}, "n_samples"),
        ({"total": 1e308}, "total must be .* 1e.140"),
        ({"total": -1.0}, "total"),
        ({"total": "x"}, "total"),
        ({"columns": 3}, "columns must be 2 names"),
        ({"columns": [1, 2]}, "columns"),
        ({"columns": ["a"]}, "columns"),
        ({"columns": "ab"}, "columns"),
        ({"about": ["selection"]}, "about must be an object"),
        ({"about": None}, "about"),
        ({"about": {"sources": 5}}, r"about\.sources"),
        ({"about": {"notes": [5]}}, r"about\.notes"),
        ({"about": {"notes": "abc"}}, r"about\.notes"),
        ({"about": {"versions": []}}, r"about\.versions"),
        ({"about": {"versions": {"a": {}}}}, r"about\.versions"),
        ({"about": {"timings": {"a": "b"}}}, r"about\.timings"),
        ({"about": {"transform": 5}}, r"about\.transform"),
        ({"about": {"compensate": "no"}}, r"about\.compensate"),
        ({"about": {"selection": {}}}, r"about\.selection"),
        ({"about": {"portrait_rows": -4}}, r"about\.portrait_rows"),
        ({"certificate": []}, "certificate must be an object"),
        ({"certificate": {}}, r"certificate\.relative_error is missing"),
        ({"kernel": {"name": "gaussian", "bandwidth": -1.0}}, "bandwidth"),
        ({"kernel": {"name": "gaussian", "bandwidth": INFINITE}}, "bandwidth"),
        ({"kernel": {"name": "gaussian", "bandwidth": 1.0, "flavour": 2}}, "flavour"),
    ],
    ids=str,
)
def test_a_field_of_another_type_or_beyond_its_range_is_named(saved, changes, field):
    reseal(saved, **changes)
    with pytest.raises(ValueError, match=rf"small\.npz .*{field}"):
        Model.load(saved)
    assert run(["info", str(saved)]) == 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"relative_error": -5.0}, r"relative_error must not be negative"),
        ({"relative_error": "x"}, "relative_error"),
        ({"relative_error": None}, "relative_error"),
        ({"interval": [0.1]}, "interval"),
        ({"interval": [-1, 0.1]}, "interval"),
        ({"interval": 5}, "interval"),
        ({"confidence": 3}, "confidence must be between 0 and 1"),
        ({"method": "guess"}, "method must be one of"),
        ({"method": ["exact"]}, "method must be one of"),
        ({"norm": -1.0}, "norm"),
        ({"bound": "wide"}, "bound"),
        ({"incoherence": {}}, "incoherence"),
        ({"negative_mass": 2.0}, "negative_mass"),
        ({"flavour": 1}, "flavour"),
    ],
    ids=str,
)
def test_a_field_of_the_certificate_is_named(saved, changes, field):
    with_certificate(saved, **changes)
    with pytest.raises(ValueError, match=rf"small\.npz describes no model: certificate\..*{field}"):
        Model.load(saved)


def rewritten(path, change):
    """The file with another header, its digest made anew, past the checks of writing."""
    content = members(path)
    header = json.loads(content.pop("header").tobytes())
    header.pop("digest")
    change(header)
    complete = header | {"digest": archive._digest(header, content)}
    text = np.frombuffer(json.dumps(complete, sort_keys=True).encode(), np.uint8)
    with open(path, "wb") as stream:
        np.savez(stream, header=text, **content)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda header: header.update(n_samples=10**400), "n_samples is a whole number of"),
        (lambda header: header["kernel"].update(bandwidth=10**400), r"kernel\.bandwidth is a whole number of"),
        (lambda header: header.update(total=10**400), "total is a whole number of"),
        (lambda header: header["certificate"].update(norm=10**400), r"certificate\.norm is a whole number of"),
        (lambda header: header["about"].update(mine=nested(900)), r"about\.mine is nested more than 16 deep"),
        (lambda header: header.update(about={"a": nested(60)}), r"about\.a is nested"),
    ],
)
def test_boundless_numbers_and_deep_nests_are_named(saved, change, field):
    rewritten(saved, change)
    with pytest.raises(ValueError, match=rf"small\.npz is not a readable reduset\.Model file: {field}"):
        Model.load(saved)
    assert run(["info", str(saved)]) == 2


@pytest.mark.parametrize(
    ("name", "array", "field"),
    [
        ("step_sizes", np.array(3.0), "step_sizes must have the shape"),
        ("step_sizes", np.array([np.nan]), "step_sizes must hold finite numbers, got nan"),
        ("step_sizes", np.array([1e300]), "step_sizes must hold numbers that are between 1 and 9.*, got 1e"),
        ("step_sizes", np.array([1.5]), "step_sizes must hold whole numbers"),
        ("path_sizes", np.array(1.0), "path_sizes must have the shape"),
        ("path_errors", np.ones((3, 2)), "path_errors must have the shape"),
        ("path_errors", np.array([0.1, -5.0]), "path_errors must have the shape"),
        ("path_errors", np.full(5, -5.0), "path_errors must hold numbers that are at least 0, got -5"),
        ("path_sizes", np.empty(0), "path_sizes must have the shape"),
        ("grids", np.array(1.0), "grids"),
        ("pairs", np.array([[np.inf, 0.0]]), "pairs"),
        ("pairs", np.array(7.0), "pairs"),
        ("joint", np.ones(3), "joint"),
    ],
    ids=str,
)
def test_arrays_of_other_dimensions_are_named(saved, name, array, field):
    header, content = header_of(saved), members(saved) | {name: array}
    content.pop("header")
    store(saved, header, content)
    with pytest.raises(ValueError, match=rf"small\.npz describes no model: .*{field}"):
        Model.load(saved)


def test_a_model_without_what_the_command_tells_is_shown_and_reported(saved, tmp_path, capsys):
    reseal(saved, about={"selection": "KCenter"})
    assert run(["info", str(saved)]) == 0
    assert "KCenter, weights unknown" in capsys.readouterr().out
    assert run(["report", str(saved), "-o", str(tmp_path / "small.html")]) == 0
    reseal(saved, about={})
    assert run(["info", str(saved)]) == 0
    assert run(["report", str(saved), "-o", str(tmp_path / "small.html")]) == 0


def test_what_could_not_be_read_again_is_not_saved(tmp_path):
    full = KernelMean.from_samples(ROWS, Gaussian(1.0))
    small = compress(full, size=5, rng=0)
    with pytest.raises(ValueError, match=r"about\.notes must be a list"):
        Model.of(full, small, about={"notes": "a sentence"}).save(tmp_path / "small.npz")
    with pytest.raises(ValueError, match=r"about\.deep is nested"):
        Model.of(full, small, about={"deep": nested(40)}).save(tmp_path / "small.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "parameters", [{"n_jobs": 5000}, {"filter_params": True}, {"gamma": [1]}, {"gamma": True}, {"gamma": 1e999}]
)
def test_a_function_kernel_takes_its_own_parameters_alone(tmp_path, parameters):
    path = tmp_path / "mean.npz"
    KernelMean.from_samples(ROWS, FunctionKernel("rbf", gamma=0.5)).save(path)
    reseal(path, kernel={"name": "function", "function": "rbf", "parameters": parameters})
    with pytest.raises(ValueError, match=rf"mean\.npz .*kernel\.parameters\.{next(iter(parameters))}"):
        KernelMean.load(path)


def test_what_changes_no_value_of_a_function_kernel_is_not_saved(tmp_path):
    mean = KernelMean.from_samples(ROWS, FunctionKernel("rbf", gamma=0.5, n_jobs=1))
    mean.save(tmp_path / "mean.npz")
    again = KernelMean.load(tmp_path / "mean.npz")
    np.testing.assert_allclose(again(ROWS), mean(ROWS), rtol=1e-14)
    assert again.kernel == FunctionKernel("rbf", gamma=0.5)


def test_a_number_beyond_floating_point_is_refused_wherever_it_comes_from():
    for kernel in (Gaussian, Laplacian):
        with pytest.raises(ValueError, match="bandwidth must be"):
            KernelMean.from_samples(ROWS, kernel(10**400))


LOSS = {"largest": 0.1, "mean": 0.1, "label_changes": 0, "rows": 5, "measured_on": "X", "relative": 0.1, "bound": 1.0}


@pytest.mark.fast_cases(7)
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"support_vectors": INFINITE}, "support_vectors"),
        ({"support_vectors": -3}, "support_vectors"),
        ({"offset": "x"}, "offset"),
        ({"loss": LOSS | {"rows": 0}}, r"loss\.rows"),
        ({"loss": LOSS | {"label_changes": 9}}, r"loss\.label_changes"),
        ({"loss": LOSS | {"largest": -1.0}}, r"loss\.largest"),
        ({"loss": LOSS | {"bound": "x"}}, r"loss\.bound"),
        ({"loss": LOSS | {"measured_on": 5}}, r"loss\.measured_on"),
        ({"loss": LOSS | {"score_before": 0.5}}, r"loss\.score_before"),
        ({"loss": 5}, "loss must be an object"),
        ({"votes": {"classes": list(range(3000)), "dtype": "<i8", "shape": "ovr", "break_ties": False}}, "classes do not fit"),
        ({"votes": {"classes": [300, 1], "dtype": "|i1", "shape": "ovr", "break_ties": False}}, "300"),
        ({"votes": {"classes": [0, 1], "dtype": "<i8", "shape": "ovr", "break_ties": 7}}, "break_ties"),
    ],
    ids=str,
)
def test_a_field_of_an_svm_is_named(tmp_path, changes, field):
    from sklearn.svm import SVC

    path = tmp_path / "svm.npz"
    compress_svm(SVC(gamma=1.0).fit(ROWS, ROWS[:, 0] > 0), size=3, rng=0).save(path)
    reseal(path, **changes)
    with pytest.raises(ValueError, match=rf"svm\.npz describes no compressed SVM: .*{field}"):
        CompressedSVC.load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"about": [["a", "b"]]},
        {"about": 5},
        {"columns": "ab"},
        {"columns": [1, 2]},
        {"seen": -3},
        {"seen": INFINITE},
        {"dimension": 0},
        {"settings": []},
        {"settings": {}},
        {"ending": None},
        {"drift": []},
        {"mass": None},
        {"flavour": 1},
    ],
    ids=str,
)
def test_a_checkpoint_is_checked_alike(tmp_path, changes):
    path = tmp_path / "kept.npz"
    stream = StreamCompressor(Gaussian(1.0), 5, 0, buffer=20)
    stream.partial_fit(ROWS)
    stream.checkpoint(path)
    reseal(path, **changes)
    with pytest.raises(ValueError, match=r"kept\.npz describes no stream"):
        StreamCompressor.resume(path)


@pytest.mark.parametrize("about", [{}, {"asked": 5, "rows": 0, "dropped": 0}, {"asked": {}, "rows": -1, "dropped": 0}])
def test_a_checkpoint_that_says_nothing_of_its_run_is_refused(tmp_path, capsys, about):
    np.savetxt(tmp_path / "rows.csv", ROWS, delimiter=",", header="a,b", comments="")
    stream = StreamCompressor(Gaussian(1.0), 5, 0)
    stream.partial_fit(ROWS)
    stream.checkpoint(tmp_path / "kept", about | {"command": "reduset compress --stream"})
    words = ["compress", str(tmp_path / "rows.csv"), "--stream", "--size", "5", "--checkpoint", str(tmp_path / "kept")]
    assert run([*words, "-o", str(tmp_path / "small.npz")]) == 2
    assert "kept lacks the options" in capsys.readouterr().err


def test_a_norm_whose_square_is_nothing_leaves_no_comparison(saved, tmp_path):
    with_certificate(saved, norm=5e-324, energy=1e300)
    model = Model.load(saved)
    assert model.subsample_errors(model.step_sizes) is None
    assert run(["report", str(saved), "-o", str(tmp_path / "small.html")]) == 0


@pytest.mark.parametrize("name", ["grids", "widths", "marginals", "pair_grids", "pair_widths", "joint", "step_weights"])
def test_numbers_that_are_none_are_refused_with_the_file_and_the_field(saved, name):
    content = members(saved)
    header = json.loads(content.pop("header").tobytes())
    header.pop("digest")
    content[name] = content[name].astype(np.float64)
    content[name].flat[0] = np.nan
    store(saved, header, content)
    with pytest.raises(ValueError, match=f"{saved.name} describes no model: {name} must hold finite numbers, got nan"):
        Model.load(saved)
