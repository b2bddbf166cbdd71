"""The command on a stream: files of any number and size, options, and checkpoints that outlive kills, Ctrl-C and mistakes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_processes import ENVIRONMENT, hear_signals, in_this_process, left, on_a_terminal, rest_of
from reduset import Gaussian, Model, io
from reduset.cli.entry import run
from reduset.stream import StreamCompressor

N, LONG = 70_000, 1_200_000  # rows: a little more than a batch, and some that take a while
ARRAYS = (
    "mean.atoms",
    "mean.weights",
    "path.sizes",
    "path.relative_errors",
    "step_weights",
    "portrait.marginals",
    "portrait.joint",
)


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    a, b, c = (rng.normal(size=(n, 3)) + rng.choice([-4.0, 0.0, 4.0], size=(n, 1))).T
    a[rng.uniform(size=n) < 0.001] = np.nan
    return pa.table({"a": a, "b": b, "c": c, "mass": rng.uniform(1, 3, n)})


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The same rows as one file and as a folder of five."""
    folder = tmp_path_factory.mktemp("rows")
    whole = table(N)
    pq.write_table(whole, folder / "rows.parquet", row_group_size=9000)
    (folder / "parts").mkdir()
    for part in range(5):
        pq.write_table(whole.slice(part * N // 5, N // 5), folder / "parts" / f"part-{part * 5}.parquet")
    return folder


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    path = tmp_path_factory.mktemp("long") / "long.parquet"
    pq.write_table(table(LONG), path, row_group_size=100_000)
    return path


def words(data, out, *more, size=30):
    return ["compress", str(data), "--stream", "--size", str(size), "--missing", "drop", "-o", str(out), *map(str, more)]


def facts(model):
    """All that a model holds but when and how fast it was made."""
    arrays = []
    for name in ARRAYS:
        found = model
        for part in name.split("."):
            found = getattr(found, part)
        arrays.append(found.tobytes())
    return arrays, model.certificate, model.mean.kernel.to_dict(), model.n_samples, model.total, model.about["notes"]


def test_a_stream_of_files_is_what_the_library_makes_of_their_rows(rows, tmp_path, capsys):
    out = tmp_path / "small.npz"
    assert run([*words(rows / "rows.parquet", out, "--weight-column", "mass", "--transform", "asinh:2", "--json")]) == 0
    told, model = json.loads(capsys.readouterr().out), Model.load(out)
    read = io.read(rows / "rows.parquet", weight_column="mass", transform="asinh:2", missing="drop")
    kernel = Gaussian("median", scales="robust")
    compressor = StreamCompressor(kernel, size=30, random_state=0).partial_fit(read.values, sample_weight=read.weights)
    small = compressor.result()
    np.testing.assert_array_equal(model.mean.atoms, small.mean.atoms)
    np.testing.assert_array_equal(model.mean.weights, small.mean.weights)
    assert model.certificate == small.certificate
    assert told["n"] == model.n_samples == len(read)
    assert model.about["transform"] == "asinh:2"
    assert model.about["portrait_rows"] == compressor.sample().size
    assert [note for note in told["notes"] if "left out" in note] == [f"{read.dropped} rows with missing values left out"]
    assert (
        "the bandwidth is the median distance of the first rows, at most 65,536 of them; a stream has no search for a resolution"
        in str(told["notes"])
    )
    assert "the scales of columns are those of the first rows, at most 65,536 of them" in told["notes"]
    assert told["scales"] == dict(zip(model.columns, model.mean.kernel.scales.tolist(), strict=True))
    assert told["resolution"] is None
    assert any("marginal densities are estimated from" in note for note in model.about["notes"])


@pytest.mark.slow
def test_a_folder_and_its_files_are_the_same_stream(rows, tmp_path):
    parts = [str(rows / "parts" / f"part-{part * 5}.parquet") for part in range(5)]
    results = []
    for number, data in enumerate(([str(rows / "rows.parquet")], [str(rows / "parts")], parts)):
        out = tmp_path / f"{number}.npz"
        assert run(["compress", *data, *words("", out, "-q")[2:]]) == 0
        results.append(facts(Model.load(out)))
    assert results[0] == results[1] == results[2]


@pytest.mark.slow
def test_the_model_of_a_stream_is_told_of_reported_and_used(rows, tmp_path, capsys):
    out, page = tmp_path / "small.npz", tmp_path / "small.html"
    assert run(words(rows / "parts", out, "--report", page, "-q")) == 0
    assert page.stat().st_size > 1000
    assert capsys.readouterr().out == ""
    assert run(["info", str(out)]) == 0
    told = capsys.readouterr().out
    assert f"{Model.load(out).n_samples:,} rows × 4 columns -> 30 weighted atoms" in told
    assert "marginal densities are estimated from" in told
    assert run(["report", str(out), "-o", str(tmp_path / "again.html")]) == 0
    assert run(["evaluate", str(out), str(rows / "parts"), "--missing", "drop", "-o", str(tmp_path / "scores.parquet")]) == 0
    assert pq.read_metadata(tmp_path / "scores.parquet").num_rows == Model.load(out).n_samples


def test_a_stream_becomes_no_table(rows, tmp_path, capsys):
    assert run(words(rows / "parts", tmp_path / "small.parquet")) == 2
    assert "use reduset sketch … -o" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_columns_are_those_asked_for_and_simplex_weights_are_proportions(rows, tmp_path):
    out = tmp_path / "small.npz"
    assert run(words(rows / "parts", out, "--columns", "c,a", "--weight-column", "mass", "--weights", "simplex", "-q")) == 0
    model = Model.load(out)
    assert model.columns == ("c", "a")
    assert (model.mean.weights >= 0).all()
    assert model.mean.weights.sum() == pytest.approx(1.0)


def test_kernels_whitening_and_seeds_reach_the_compressor(rows, tmp_path):
    out = tmp_path / "small.npz"
    how = [
        "--kernel",
        "laplacian",
        "--bandwidth",
        "1.5",
        "--whiten",
        "--seed",
        "3",
        "--weights",
        "sum_to_one",
        "--threads",
        "1",
        "-q",
    ]
    assert run(words(rows / "rows.parquet", out, *how)) == 0
    model = Model.load(out)
    first = next(io.batches(rows / "rows.parquet", missing="drop"))
    assert model.mean.kernel.to_dict()["name"] == "laplacian"
    assert model.mean.kernel.bandwidth == 1.5
    np.testing.assert_allclose(model.mean.kernel.covariance, np.cov(first.values.T), rtol=1e-9)
    assert model.mean.weights.sum() == pytest.approx(1.0)
    assert any("whitened by the covariance of the first 65,536 rows" in note for note in model.about["notes"])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--tol", "0.01"], "--tol needs all rows at once, and --stream reads each once; give --size, or omit --stream"),
        (["--plateau", "1e-8"], "--plateau needs all rows at once"),
        (["--max-size", "9"], "--max-size needs all rows at once"),
        (["--select", "kmeans"], "--select needs all rows at once, and --stream reads each once; omit it, or omit"),
        (["--refine"], "--refine needs all rows at once"),
        (["--group-column", "mass"], "--group-column needs all rows at once"),
        (["--checkpoint-every", "-1"], "--checkpoint-every"),
        (["--checkpoint", "OUT"], "cannot be the checkpoint and the output"),
        (["--checkpoint", "DATA"], "is an input, and would be overwritten"),
        (["--checkpoint", "nowhere/here"], "there is no folder nowhere"),
    ],
    ids=str,
)
def test_options_that_do_not_go_with_a_stream_are_refused_with_the_way_out(more, message, rows, tmp_path, capsys):
    data, out = rows / "rows.parquet", tmp_path / "small.npz"
    more = [{"OUT": str(out), "DATA": str(data)}.get(word, word) for word in more]
    assert run(words(data, out, *more)) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told.splitlines()) == 1
    assert left(tmp_path) == []


def test_a_stream_needs_a_size_and_a_checkpoint_needs_a_stream(rows, tmp_path, capsys):
    data, out = str(rows / "rows.parquet"), str(tmp_path / "small.npz")
    assert run(["compress", data, "--stream", "-o", out]) == 2
    assert "--stream needs --size" in capsys.readouterr().err
    for more in (["--checkpoint", str(tmp_path / "kept")], ["--checkpoint-every", "5"]):
        assert run(["compress", data, "--size", "9", "-o", out, *more]) == 2
        assert f"{more[0]} needs --stream" in capsys.readouterr().err


def test_what_is_written_into_a_folder_that_is_read_would_be_data_the_next_time(rows, capsys):
    for more in ([], ["--checkpoint", str(rows / "parts" / "kept")]):
        out = rows / ("small.npz" if more else "parts/small.npz")
        assert run(words(rows / "parts", out, *more)) == 2
        assert "would be read as data next time; write elsewhere" in capsys.readouterr().err


def started(arguments, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "reduset", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_signals,
    )


def stamp(path):
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def killed(arguments, kept, folder, patience, number=signal.SIGKILL):
    """Run the command until it has written its checkpoint anew and so many seconds more; its code and what it said."""
    before = stamp(kept)
    process = started(arguments, folder)
    while process.poll() is None and stamp(kept) in (before, None):
        time.sleep(0.002)
    time.sleep(patience)
    process.send_signal(number)
    _, told = process.communicate(timeout=120)
    return process.returncode, told.decode()


@pytest.fixture(scope="module")
def unbroken(long, tmp_path_factory):
    """The model of a run that nobody disturbed, the run's code and what it showed on a terminal."""
    folder = tmp_path_factory.mktemp("unbroken")
    shown, process, ours = on_a_terminal(words(long, "whole.npz"), folder)
    process.communicate(timeout=120)
    shown += rest_of(ours).decode(errors="replace")
    os.close(ours)
    return folder / "whole.npz", process.returncode, shown


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_with_the_result_of_an_unbroken_one(unbroken, long, tmp_path):
    kept = tmp_path / "kept"
    often = ["--checkpoint", kept, "--checkpoint-every", 0]
    moments, kills = random.Random(0), 0
    for _ in range(4):
        code, told = killed(words(long, "small.npz", *often), kept, tmp_path, moments.uniform(0, 0.15))
        assert code in (0, -signal.SIGKILL), told
        kills += code != 0
    assert kills >= 2
    assert kept.exists()
    done = in_this_process(*words(long, "small.npz", *often), folder=tmp_path)
    assert "resumed after" in done.stderr
    assert facts(Model.load(tmp_path / "small.npz")) == facts(Model.load(unbroken[0]))
    assert left(tmp_path) == ["small.npz"]  # neither the checkpoint nor what kills left half-written


@pytest.fixture(scope="module")
def interrupted(long, tmp_path_factory):
    """A folder with the checkpoint of a run that was interrupted by Ctrl-C, and what it said."""
    folder = tmp_path_factory.mktemp("interrupted")
    arguments = words(long, "small.npz", "--checkpoint", "kept", "--checkpoint-every", 0)
    code, told = killed(arguments, folder / "kept", folder, 0.05, signal.SIGINT)
    assert code == 130
    return folder, told


@pytest.mark.slow
def test_ctrl_c_says_how_many_rows_the_checkpoint_holds(interrupted):
    folder, told = interrupted
    held = StreamCompressor.resume(folder / "kept").about_["rows"]
    assert 0 < held < LONG
    assert f"kept holds {held:,} rows; run the same command again to resume" in told
    assert "interrupted; no incomplete files remain" in told
    assert left(folder) == ["kept"]


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--size", "31"], "--size was 30, and is now 31"),
        (["--kernel", "student"], "--kernel was gaussian, and is now student"),
        (["--bandwidth", "2"], "--bandwidth was median, and is now 2.0"),
        (["--seed", "1"], "--seed was 0, and is now 1"),
        (["--columns", "a,b"], "--columns was not given, and is now a,b"),
        (["--weight-column", "mass"], "--weight-column was not given, and is now mass"),
        (["--transform", "a=asinh:5"], "--transform was not given, and is now {'a': 'asinh:5'}"),
        (["--whiten"], "--whiten was False, and is now True"),
        (["--weights", "simplex"], "--weights was free, and is now simplex"),
        (["--missing", "refuse"], "--missing was drop, and is now refuse"),
    ],
    ids=str,
)
def test_a_checkpoint_of_another_request_is_refused_and_kept(change, message, interrupted, long, tmp_path, capsys):
    kept = tmp_path / "kept"
    shutil.copy(interrupted[0] / "kept", kept)
    before = kept.read_bytes()
    assert run(words(long, tmp_path / "small.npz", "--checkpoint", kept, *change)) == 2
    told = capsys.readouterr().err
    assert f"kept is the checkpoint of another run: {message}. Use the same options and files to resume, or remove it" in told
    assert kept.read_bytes() == before
    assert left(tmp_path) == ["kept"]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    ("how", "message"), [("touched", "was written again since"), ("grown", "bytes, and now has"), ("more", "2")]
)
def test_a_checkpoint_of_other_files_is_refused_and_kept(how, message, rows, tmp_path, capsys, monkeypatch):
    data, kept = tmp_path / "rows.parquet", tmp_path / "kept"
    shutil.copy(rows / "rows.parquet", data)
    arguments = words(data, tmp_path / "small.npz", "--checkpoint", kept, "--checkpoint-every", "0")
    with monkeypatch.context() as patch:
        patch.setattr(StreamCompressor, "result", interrupt)
        assert run(arguments) == 130
    before = kept.read_bytes()
    if how == "touched":
        os.utime(data, (1, 1))
    elif how == "grown":
        pq.write_table(table(N + 100), data)
    else:
        arguments.insert(1, str(rows / "rows.parquet"))
    capsys.readouterr()
    assert run(arguments) == 2
    told = capsys.readouterr().err
    assert "is the checkpoint of another run" in told
    assert message in told
    assert kept.read_bytes() == before


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_run_killed_after_its_last_row_reads_none_again(rows, tmp_path, capsys, monkeypatch):
    kept, out = tmp_path / "kept", tmp_path / "small.npz"
    arguments = words(rows / "rows.parquet", out, "--checkpoint", kept, "--json")
    with monkeypatch.context() as patch:
        patch.setattr(StreamCompressor, "result", interrupt)
        assert run(arguments) == 130
    assert f"holds {N:,} rows" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(StreamCompressor, "partial_fit", interrupt)
        assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["resumed"] == N
    assert run(words(rows / "rows.parquet", tmp_path / "whole.npz", "-q")) == 0
    assert facts(Model.load(out)) == facts(Model.load(tmp_path / "whole.npz"))
    assert not kept.exists()


def test_before_the_first_checkpoint_an_interrupt_says_that_there_is_none(rows, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(StreamCompressor, "partial_fit", interrupt)
    assert run(words(rows / "rows.parquet", tmp_path / "small.npz", "--checkpoint", tmp_path / "kept")) == 130
    assert "kept was not written yet; the next run starts again" in capsys.readouterr().err
    assert run(words(rows / "rows.parquet", tmp_path / "small.npz")) == 130
    assert "kept" not in capsys.readouterr().err
    assert left(tmp_path) == []


def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(rows, tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert run(words(rows / "rows.parquet", tmp_path / "small.npz", "--checkpoint", tmp_path / "kept")) == 2
    told = capsys.readouterr().err
    assert "No space left on device" in told
    assert "kept" in told
    assert left(tmp_path) == []


@pytest.mark.parametrize("how", ["empty", "cut", "edited", "foreign", "model", "library"])
def test_a_damaged_or_foreign_checkpoint_is_refused_in_one_line_and_kept(how, interrupted, long, rows, tmp_path, capsys):
    kept = tmp_path / "kept"
    whole = (interrupted[0] / "kept").read_bytes()
    if how == "model":
        assert run(words(rows / "rows.parquet", tmp_path / "model.npz", "-q")) == 0
        os.replace(tmp_path / "model.npz", kept)
    elif how == "library":
        StreamCompressor(size=5, random_state=0).partial_fit(np.random.default_rng(0).normal(size=(100, 3))).checkpoint(kept)
    else:
        middle = len(whole) // 2
        edited = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        kept.write_bytes({"empty": b"", "cut": whole[:middle], "edited": edited, "foreign": b"a,b\n1,2\n"}[how])
    before = kept.read_bytes()
    assert run(words(long, tmp_path / "small.npz", "--checkpoint", kept)) == 2
    told = capsys.readouterr().err
    assert told.startswith("reduset: error: ")
    assert "kept" in told
    assert len(told.splitlines()) == 1
    assert kept.read_bytes() == before
    assert left(tmp_path) == ["kept"]


@pytest.mark.slow
def test_progress_counts_rows(unbroken):
    _, code, shown = unbroken
    assert code == 0
    assert f"{LONG:,}/{LONG:,} " in shown
