"""The command as people use it: files in, files out, progress on a terminal, codes that mean something, and Ctrl-C."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import flowio
import llvmlite
import numba
import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

import cli_files
from cli_processes import ENVIRONMENT, in_this_process, left, on_a_terminal, reduset, rest_of
from reduset import KernelMean, Model, io
from reduset.cli import entry
from reduset.cli.entry import interruptible, run
from reduset.report.figures import wide_columns

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("compress", "cohort", "study", "segment", "info", "evaluate", "distance", "report", "demo")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the same 2,000 rows in every format."""
    return cli_files.write_all(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize(("bandwidth", "noted"), [("0.5", False), ("50", True)])
def test_a_bandwidth_that_hides_the_columns_is_noted(bandwidth, noted, files, tmp_path, capsys):
    words = ["compress", str(files / "rows.npy"), "--size", "5", "--select", "kcenter", "--bandwidth", bandwidth]
    for more in ([], ["--json"]):
        assert run([*words, "-o", str(tmp_path / "small.npz"), *more]) == 0
        assert ("Along every column the bandwidth is more than half of the whole range" in capsys.readouterr().out) == noted


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("name", cli_files.TABLES)
def test_every_format_gives_the_same_compression(name, files, tmp_path):
    words = ["compress", files / name, "--size", 20, "-b", "median", "--select", "kcenter", "--json", *cli_files.TABLES[name]]
    told = json.loads(in_this_process(*words, "-o", "small.npz", folder=tmp_path).stdout)
    assert (told["n"], told["size"], len(told["columns"])) == (2000, 20, 3)
    X, _ = cli_files.rows()
    model = Model.load(tmp_path / "small.npz")
    exact = 0 if name.endswith((".npy", ".npz", ".parquet", ".feather", ".orc")) else 1e-4
    np.testing.assert_allclose(np.sort(model.mean.atoms, axis=0), np.sort(X[_rows_of(X, model)], axis=0), atol=exact)
    assert told["relative_error"] == model.certificate.relative_error


def _rows_of(X, model):
    """The rows of the data nearest to the atoms."""
    return [int(np.argmin(((X - atom) ** 2).sum(axis=1))) for atom in model.mean.atoms]


def test_a_file_becomes_a_model_and_the_model_is_used(files, tmp_path):
    words = ["compress", files / "rows.csv", "-c", "x,y,z", "--tol", 0.05, "-o", "small.npz", "--report", "small.html"]
    done = reduset(*words, folder=tmp_path)
    assert "2,000 rows × 3 columns ->" in done.stdout
    assert "error" in done.stdout
    assert done.stderr == ""  # quiet where there is no terminal
    model = Model.load(tmp_path / "small.npz")
    assert model.columns == ("x", "y", "z")
    assert model.certificate.interval[1] <= 0.05
    assert (tmp_path / "small.html").stat().st_size > 1000

    told = in_this_process("info", "small.npz", folder=tmp_path).stdout
    assert f"2,000 rows × 3 columns -> {model.size:,} weighted atoms" in told
    assert "reduset compress" in told
    assert "rows.csv" in told
    facts = json.loads(in_this_process("info", "small.npz", "--json", folder=tmp_path).stdout)
    assert facts["certificate"]["relative_error"] == model.certificate.relative_error

    in_this_process("evaluate", "small.npz", files / "rows.parquet", "-o", "scores.parquet", folder=tmp_path)
    scores = pyarrow.parquet.read_table(tmp_path / "scores.parquet")
    X, _ = cli_files.rows()
    np.testing.assert_allclose(scores["value"], model.mean(X), rtol=1e-5)
    np.testing.assert_allclose(scores["log_density"], model.mean.log_density(X), rtol=1e-4)

    assert json.loads(in_this_process("report", "small.npz", "--json", folder=tmp_path).stdout)["written"] == ["small.html"]
    again = json.loads(in_this_process("distance", "small.npz", files / "rows.csv", "--json", folder=tmp_path).stdout)
    assert again["distance"] <= 1.5 * model.certificate.interval[1] * model.certificate.norm
    assert left(tmp_path) == ["scores.parquet", "small.html", "small.npz"]


def test_rows_with_weights_for_other_programs(files, tmp_path, capsys):
    for suffix, reader in ((".csv", pyarrow.csv.read_csv), (".parquet", pyarrow.parquet.read_table)):
        out = tmp_path / f"rows{suffix}"
        words = ["sketch", str(files / "rows.csv"), "-c", "x,y,z", "--size", "15", "--sample-key", "kind"]
        assert run([*words, "-o", str(out)]) == 0
        table = reader(out)
        assert set(table.column_names) >= {"kind", "x", "y", "z", "weight"}
        weights = np.asarray(table["weight"])
        assert (weights > 0).all()
        assert weights.sum() == pytest.approx(2000)
        assert set(table["kind"].to_pylist()) == {"a", "b"}
    assert "written" in capsys.readouterr().out


def test_weights_transforms_and_whitening_reach_the_library(files, tmp_path, capsys):
    out = str(tmp_path / "small.npz")
    words = ["compress", str(files / "rows.csv"), "--columns", "x,y", "--weight-column", "z2", "--size", "5", "-o", out, "-q"]
    assert run([*words, "--transform", "asinh:2", "--bandwidth", "0.5", "--kernel", "laplacian", "--whiten"]) == 0
    assert capsys.readouterr().out == ""
    model = Model.load(out)
    X, _ = cli_files.rows()
    X = np.arcsinh(X[:, :2] / 2)
    w = X[:, 0] * 0 + cli_files.rows()[0][:, 2] ** 2
    assert type(model.mean.kernel).__name__ == "Laplacian"
    assert model.mean.kernel.bandwidth == 0.5
    np.testing.assert_allclose(model.mean.kernel.covariance, np.cov(X.T, aweights=w), rtol=1e-6)
    assert model.about["transform"] == "asinh:2"


def test_a_cohort_has_distances_a_map_and_a_page(files, tmp_path):
    (tmp_path / "groups.csv").write_text("sample,group\na,ill\nb,well\nc,well\n")
    bags = [files / "bags" / f"{name}.csv" for name in "abc"]
    words = ["--groups", "groups.csv", "--report", "cohort.html", "-o", "distances.csv", "--layout", "mds", "--size", 30]
    done = in_this_process("cohort", *bags, *words, folder=tmp_path)
    assert "3 samples, 900 rows in all" in done.stdout
    table = pyarrow.csv.read_csv(tmp_path / "distances.csv")
    assert table.column_names == ["sample", "a", "b", "c"]
    D = np.column_stack([table[name] for name in "abc"])
    np.testing.assert_allclose(D, D.T)
    assert D[0, 2] > D[0, 1] > 0
    page = (tmp_path / "cohort.html").read_text()
    assert "well" in page


def test_one_long_table_is_a_cohort_too(files, tmp_path, capsys):
    words = [
        "cohort",
        str(files / "rows.csv"),
        "--group-column",
        "kind",
        "--columns",
        "x,y",
        "--layout",
        "mds",
        "--size",
        "20",
        "--json",
    ]
    assert run(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert sorted(told["samples"]) == ["a", "b"]
    assert told["distances"][0][1] > 0


def test_a_picture_is_cut_into_segments(files, tmp_path):
    words = ["segment", files / "picture.png", "-o", "out.png", "--bandwidth", 0.2, "--report", "out.html"]
    done = in_this_process(*words, folder=tmp_path)
    assert "in 2 segments" in done.stdout
    cut = np.asarray(Image.open(tmp_path / "out.png"))
    assert cut.shape == (40, 60, 3)
    assert len(np.unique(cut.reshape(-1, 3), axis=0)) == 2
    assert left(tmp_path) == ["out.html", "out.png"]


def test_the_help_begins_with_the_three_verbs(capsys):
    assert run(["--help"]) == 0
    commands = capsys.readouterr().out.split("Commands:")[1].strip().splitlines()
    assert [line.split()[0] for line in commands[:3]] == ["sketch", "compress", "cover"]


@pytest.mark.slow
def test_the_demo_leaves_its_files(tmp_path):
    done = in_this_process("demo", "--folder", "out", "--crop", folder=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0].split("   ")[0] == "you want"
    assert [re.split(" {3,}", line)[1] for line in lines[1:4]] == ["sketch", "compress", "cover"]
    assert lines[5] == "Sketch: 12,150 rows × 5 columns -> 607 weighted rows (20x)"
    assert re.search(r"largest other change .* of column (across|red|green|blue|down) ", done.stdout)
    assert re.search(r"resolution  0\.0\d+ = median distance / \d.*\d+ random rows", done.stdout)
    assert not [sign for sign in ("‖", "ν", "bound", "NOT REACHED") if sign in done.stdout]
    model = Model.load(tmp_path / "out" / "small.npz")
    assert model.n_samples == 12_150
    assert model.size == 607
    assert model.resolved.tol == 0.05
    assert model.resolution < model.resolved.median / 4  # much finer than the scale of the whole
    assert not wide_columns(model)  # none is one hump whatever the pixels are
    assert left(tmp_path / "out") == [
        "photograph.jpg",
        "pixels.parquet",
        "segments.html",
        "segments.png",
        "small.html",
        "small.npz",
    ]


def test_a_tolerance_that_is_not_reached_has_its_own_code(files, tmp_path):
    words = ["compress", files / "rows.csv", "--tol", 1e-9, "--max-size", 5, "--bandwidth", 0.1, "-o", "small.npz"]
    done = in_this_process(*words, folder=tmp_path, code=3)
    assert "not reached" in done.stderr
    assert Model.load(tmp_path / "small.npz").about["reached"] is False


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    """A file that takes a while to compress."""
    path = tmp_path_factory.mktemp("heavy") / "heavy.npy"
    np.save(path, np.random.default_rng(0).normal(size=(200_000, 6)))
    return path


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal(heavy, tmp_path):
    words = ["compress", heavy, "--size", 6000, "--select", "kcenter", "--bandwidth", 1.0, "-o", "small.npz"]
    shown, process, ours = on_a_terminal(words, tmp_path)
    out, _ = process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 0
    assert "200,000 rows × 6 columns -> 6,000 weighted atoms".encode() in out
    assert re.search(r"\[#+ *\] [\d,]+/6,000 ", shown)


@pytest.fixture
def heard():
    """Signals that are not ignored, as those of tests under nohup or in the background are, by the command too."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def dropped_once(number):
    with interruptible():
        with contextlib.suppress(KeyboardInterrupt):  # as the callback of a weak reference drops it
            signal.raise_signal(number)
        time.sleep(30)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_that_is_dropped_comes_again(number, heard):
    with pytest.raises(KeyboardInterrupt):
        dropped_once(number)
    assert signal.getsignal(number) is signal.default_int_handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def interrupted_twice(tidied):
    with interruptible():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGTERM)
            tidied.append(True)


def test_an_interrupt_on_its_way_out_is_not_struck_by_another(heard):
    tidied = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_twice(tidied)
    assert tidied


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing_half_written(number, heavy, tmp_path):
    words = ["compress", heavy, "--size", 4000, "--bandwidth", 0.3, "-o", "small.npz", "--report", "small.html"]
    _, process, ours = on_a_terminal(words, tmp_path, until=b"selecting")
    process.send_signal(number)
    process.communicate(timeout=120)
    assert b"interrupted; no incomplete files remain" in rest_of(ours)
    os.close(ours)
    assert process.returncode == 130
    assert left(tmp_path) == []


@pytest.mark.parametrize("how", ["cause", "context"])
def test_an_interrupt_that_an_import_made_an_error_of_is_an_interrupt(how, monkeypatch, capsys):
    """Where it strikes while a class is made, Python 3.11 says "RuntimeError: Error calling __set_name__"."""

    def struck(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            if how == "cause":
                raise RuntimeError("Error calling __set_name__ on 'cached_property'") from interrupt
            raise ImportError("cannot import name")  # noqa: B904  # as it is left where nobody says from what

    monkeypatch.setattr("reduset.cli.entry.app", struck)
    assert run(["info", "x.npz"]) == 130
    assert "interrupted" in capsys.readouterr().err


def below(file, calls):
    """What a call returns below a frame of this file."""
    space = {"calls": calls}
    exec(compile("def run():\n    return calls()", file, "exec"), space)
    return space["run"]()


FRAMES = {
    "llvmlite": (str(Path(llvmlite.__file__).parent / "binding" / "ffi.py"), True),
    "import": ("<frozen importlib._bootstrap>", True),
    "numba": (str(Path(numba.__file__).parent / "core" / "dispatcher.py"), False),
    "a script": (str(Path("home", "llvmlite.py")), False),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_interrupts_wait_inside_of_imports_and_of_llvmlite_alone(kind):
    file, waits = FRAMES[kind]
    assert below(file, lambda: entry.must_not_interrupt(sys._getframe())) is waits
    assert below(file, lambda: below("inner.py", lambda: entry.must_not_interrupt(sys._getframe()))) is waits


def test_a_module_that_is_imported_is_not_interrupted(tmp_path, monkeypatch):
    (tmp_path / "imported_once.py").write_text(
        "import sys\nfrom reduset.cli import entry\nwaits = entry.must_not_interrupt(sys._getframe())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("imported_once").waits


@pytest.mark.parametrize("kind", FRAMES)
def test_a_signal_that_waits_is_raised_again_once_the_frame_is_left(kind, monkeypatch):
    """The timer that raises it again is set to a day, and rung here."""
    monkeypatch.setattr(entry, "RETRY", 86_400.0)
    monkeypatch.setattr(entry, "REPEAT", 86_400.0)
    file, waits = FRAMES[kind]
    with entry.interruptible():
        if waits and hasattr(signal, "setitimer"):
            below(file, lambda: signal.raise_signal(signal.SIGTERM))
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGALRM)
        else:
            with pytest.raises(KeyboardInterrupt):
                below(file, lambda: signal.raise_signal(signal.SIGTERM))


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = (
        "import sys; from reduset.cli.entry import run; run(['--help']); "
        "print([m for m in ('numpy', 'numba', 'scipy', 'sklearn', 'pyarrow', 'plotly') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name, capsys):
    assert run([name, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"Example: reduset {name}" in told


def test_help_names_every_choice_and_leaves_room_for_words(capsys, monkeypatch):
    from reduset.select import BY_NAME
    from reduset.weights import KINDS

    monkeypatch.setenv("COLUMNS", "80")
    assert run(["compress", "--help"]) == 0
    text = capsys.readouterr().out
    words = " ".join(text.split())
    assert ", ".join(sorted(BY_NAME)[:-1]) + f" or {sorted(BY_NAME)[-1]}." in words
    for kind in (*KINDS, "own"):
        assert kind in words
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "Labels of groups. Each group has its own" in text  # 44 letters in one line


def test_shells_are_told_what_can_follow(tmp_path):
    environment = ENVIRONMENT | {"_REDUSET_COMPLETE": "complete_bash", "COMP_WORDS": "reduset co", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "reduset"], env=environment, capture_output=True, text=True)
    assert set(done.stdout.split()) == {"compress", "cohort", "cover"}


def commands_of(page):
    """The commands of a page's console blocks, in order."""
    blocks = re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [line[2:].split("  #")[0].strip() for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def small_photograph(name, plain=load_sample_image):
    """Every third pixel each way: the words of the pages are the same, and what they do takes a ninth of the time."""
    return np.ascontiguousarray(plain(name)[::3, ::3])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("README.md", 1), ("docs/command.md", 10)])
def test_the_commands_of_the_pages_run_word_for_word(name, least, tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.load_sample_image", small_photograph)
    commands = [each for each in commands_of(ROOT / name) if each.startswith("reduset ")]
    assert len(commands) >= least
    for each in commands:
        in_this_process(*shlex.split(each)[1:], folder=tmp_path)


def test_the_targets_of_make_that_the_pages_name_are_in_the_makefile():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = re.findall(r"`make (\w+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert named
    assert set(named) <= targets


def test_a_model_is_a_mean_too_and_its_columns_are_looked_for_by_name(files, tmp_path, capsys):
    out = str(tmp_path / "small.npz")
    assert run(["compress", str(files / "rows.csv"), "-c", "z,x", "--size", "5", "-o", out, "-q"]) == 0
    assert KernelMean.load(out).size == 5
    assert Model.load(out).columns == ("z", "x")
    scores = tmp_path / "scores.csv"
    assert run(["evaluate", out, str(files / "rows.parquet"), "-o", str(scores), "-q"]) == 0
    X, _ = cli_files.rows()
    found = io.read(scores)
    np.testing.assert_allclose(found.values[:, 0], Model.load(out).mean(X[:, [2, 0]]), rtol=1e-5)
    capsys.readouterr()


def test_two_models_are_compared_with_what_they_lost(files, tmp_path, capsys):
    for name in "ac":
        words = [
            "compress",
            str(files / "bags" / f"{name}.csv"),
            "--size",
            "25",
            "--bandwidth",
            "1",
            "--scales",
            "2,1",
            "-o",
            str(tmp_path / f"{name}.npz"),
            "-q",
        ]
        assert run(words) == 0
    assert run(["distance", str(tmp_path / "a.npz"), str(tmp_path / "c.npz"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    X, Y = (io.read(files / "bags" / f"{name}.csv").values for name in "ac")
    kernel = Model.load(tmp_path / "a.npz").mean.kernel
    exact = KernelMean.from_samples(X, kernel).distance(KernelMean.from_samples(Y, kernel))
    assert abs(told["distance"] - exact) <= told["uncertainty"]


@pytest.mark.parametrize("how", [["--scales", "none"], [], ["--whiten"], ["--scales", "none", "-c", "x,y"]], ids=str)
def test_columns_that_drown_the_others_are_named(how, tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3)) * [1.0, 2.0, 900.0]
    io.write_rows(tmp_path / "rows.csv", ["x", "y", "FSC"], rows)
    drowned = how == ["--scales", "none"]
    words = ["compress", str(tmp_path / "rows.csv"), "--size", "10", "--bandwidth", "median", *how, "--json", "-o"]
    assert run([*words, str(tmp_path / "small.npz")]) == 0
    notes = " ".join(json.loads(capsys.readouterr().out)["notes"])
    assert ("Along x and y the bandwidth is" in notes) == drowned
    assert ("--scales or --whiten" in notes) == drowned


def test_the_columns_of_a_cohort_count_alike(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for name, shift in (("a", 0.0), ("b", 2.0), ("c", 0.0)):
        io.write_rows(tmp_path / f"{name}.csv", ["x", "FSC"], rng.normal(size=(400, 2)) * [1.0, 900.0] + [shift, 0.0])
    words = ["cohort", *(str(tmp_path / f"{name}.csv") for name in "abc"), "--layout", "mds", "--size", "30", "--json"]
    share = {}
    for how in ("", "--whiten", "--scales none", "--scales 1,900"):
        assert run([*words, *how.split()]) == 0
        told = json.loads(capsys.readouterr().out)
        D = np.array(told["distances"])
        share[how] = D[0, 1] / D[0, 2]
        assert bool(told["notes"]) == (how == "--scales none")
        assert (told["scales"] is None) == (how in ("--whiten", "--scales none"))
    drowned = share.pop("--scales none")  # the shift of x, by FSC
    assert min(share.values()) > 3 * drowned


def test_logicle_takes_its_parts_for_all_columns_and_for_one(files, tmp_path, capsys):
    for transform in ("logicle:T=1000,W=0.5", "x=logicle:T=1000,W=0.5"):
        out = str(tmp_path / "small.npz")
        words = ["compress", str(files / "rows.csv"), "-c", "x,y", "--transform", transform, "--size", "5", "-q", "-o", out]
        assert run(words) == 0, capsys.readouterr().err
        assert Model.load(out).about["transform"] in (transform, {"x": "logicle:T=1000,W=0.5"})


def test_columns_that_an_fcs_file_leaves_alone_are_left_alone_in_other_formats(tmp_path, capsys):
    X = np.random.default_rng(0).lognormal(3, 1, (100, 2)).astype(np.float32)
    with (tmp_path / "cells.fcs").open("wb") as stream:
        flowio.create_fcs(stream, X.ravel().tolist(), ["FSC-A", "CD4"])
    io.write_rows(tmp_path / "cells.parquet", ["FSC-A", "CD4"], X)
    fcs, parquet, out = (str(tmp_path / name) for name in ("cells.fcs", "cells.parquet", "small.npz"))
    assert run(["compress", fcs, "-c", "FSC-A,CD4", "--transform", "asinh:5", "--size", "9", "-q", "-o", out]) == 0
    assert Model.load(out).about["transform"] == {"CD4": "asinh:5"}
    for rows in (fcs, parquet):
        assert run(["evaluate", out, rows, "-q", "-o", f"{rows}.csv"]) == 0
    np.testing.assert_allclose(io.read(f"{fcs}.csv").values, io.read(f"{parquet}.csv").values)
    assert run(["cohort", fcs, parquet, "-c", "FSC-A,CD4", "--transform", "asinh:5", "--json"]) == 2
    assert "transform takes other columns than in" in capsys.readouterr().err


def test_an_interrupt_waits_for_the_end_of_an_import(heard, tmp_path, monkeypatch):
    """A compiled module makes an ImportError of it, after a traceback of its own."""
    text = (
        "import signal, time\n"
        "try:\n    signal.raise_signal(signal.SIGTERM)\n    time.sleep(0.2)\n"
        "except KeyboardInterrupt:\n    raise ImportError('numpy.core.multiarray failed to import') from None\n"
    )
    (tmp_path / "struck_while_imported.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    def command(*_, **__):
        importlib.import_module("struck_while_imported")
        time.sleep(30)

    monkeypatch.setattr("reduset.cli.entry.app", command)
    assert run(["info", "x.npz"]) == 130
    assert "struck_while_imported" in sys.modules
