"""Bad requests: one clear line that names what is wrong, code 2, no traceback, and nothing written."""

from __future__ import annotations

import errno
import os
import re
import zipfile

import numpy as np
import pytest

import cli_files
from reduset import io
from reduset.cli import demo, targets
from reduset.cli.entry import run
from reduset.io import guard


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = cli_files.write_all(tmp_path_factory.mktemp("files"))
    (folder / "empty.csv").write_bytes(b"")
    lines = (folder / "rows.csv").read_text().splitlines()
    broken = [*lines[:40], "oops," + lines[40].split(",", 1)[1], *lines[41:]]
    (folder / "text.csv").write_text("\n".join(broken) + "\n")
    for name in ("rows.parquet", "rows.fcs"):
        content = (folder / name).read_bytes()
        (folder / f"cut.{name.split('.')[1]}").write_bytes(content[: len(content) // 2])
    with (
        zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as bomb,
        bomb.open("X.npy", "w") as member,
    ):
        np.lib.format.write_array_header_1_0(member, {"descr": "<f8", "fortran_order": False, "shape": (1 << 19, 4)})
        for _ in range(4):
            member.write(bytes(1 << 22))
    np.save(folder / "holes.npy", np.where(np.arange(30).reshape(10, 3) == 17, np.nan, 1.0))
    (folder / "other.csv").write_text("p,q\n1,2\n3,4\n")
    (folder / "one.csv").write_text("p,q\n1,2\n")
    (folder / "damaged.npz").write_bytes((folder / "rows.npz").read_bytes().replace(b"PK\x01\x02", b"PK\x00\x00"))
    (folder / "model.npz").write_bytes(b"PK\x05\x06" + bytes(18))
    return folder


CASES = {
    "a file that is not there": (["compress", "{files}/nothing.csv"], r"nothing\.csv"),
    "a folder of several formats": (["compress", "{files}"], r"is a folder of several formats.*name the files to read"),
    "an empty file": (["compress", "{files}/empty.csv"], r"empty\.csv.*empty"),
    "text among numbers": (["compress", "{files}/text.csv", "-c", "x,y"], r"text\.csv.*'?x'?.*oops"),
    "no such column": (["compress", "{files}/rows.csv", "-c", "x,Z3"], r"Z3.*did you mean"),
    "mixed schemas": (["compress", "{files}/rows.csv", "{files}/other.csv"], r"other\.csv"),
    "a truncated Parquet file": (["compress", "{files}/cut.parquet"], r"cut\.parquet"),
    "a truncated FCS file": (["compress", "{files}/cut.fcs"], r"cut\.fcs"),
    "a zip bomb": (["compress", "{files}/bomb.npz"], r"bomb\.npz"),
    "a missing value": (["compress", "{files}/holes.npy"], r"holes\.npy.*(row|missing)"),
    "a format nobody knows": (["compress", "{files}/rows.xyz"], r"rows\.xyz"),
    "size, tol and bandwidth": (
        ["compress", "{files}/rows.csv", "-c", "x,y", "--size", "5", "--tol", "0.1", "--bandwidth", "1"],
        "two of --size, --tol and --bandwidth determine the third; omit one of them, got 5, 0.1 and 1",
    ),
    "size, tol and plateau": (
        ["compress", "{files}/rows.csv", "-c", "x,y", "--size", "5", "--tol", "0.1", "--plateau", "1e-8"],
        "--size and --tol determine the resolution, and --plateau is not used",
    ),
    "scales nobody knows": (
        ["compress", "{files}/rows.csv", "-c", "x,y", "--scales", "iqr"],
        "--scales must be robust, standard, none",
    ),
    "scales of 0": (["compress", "{files}/rows.csv", "-c", "x,y", "--scales", "1,0"], "scales\\[1\\] must be above 0"),
    "scales of other columns": (["compress", "{files}/rows.csv", "-c", "x,y", "--scales", "1,1,1"], "scales must be 2 numbers"),
    "scales and whitening": (
        ["compress", "{files}/rows.csv", "-c", "x,y", "--scales", "robust", "--whiten"],
        "--whiten and --scales both",
    ),
    "scales and whitening of a cohort": (
        ["cohort", "{files}/bags", "--scales", "none", "--whiten", "--json"],
        "--whiten and --scales both",
    ),
    "more atoms than rows": (["compress", "{files}/rows.csv", "-c", "x", "--size", "5000"], "size must be"),
    "a kernel nobody knows": (["compress", "{files}/rows.csv", "-c", "x", "--kernel", "box"], "--kernel must be one of"),
    "a rule nobody knows": (["compress", "{files}/rows.csv", "-c", "x", "--bandwidth", "medan"], "bandwidth must be"),
    "a transform nobody knows": (["compress", "{files}/rows.csv", "-c", "x", "--transform", "sqrt"], "transform"),
    "two transforms for all": (
        ["compress", "{files}/rows.csv", "--transform", "log", "--transform", "asinh:5"],
        "--transform must be one",
    ),
    "whitening what repeats": (["compress", "{files}/rows.csv", "-c", "x,x2", "--whiten"], "x2"),
    "fewer atoms than groups": (
        ["compress", "{files}/rows.csv", "-c", "x", "--group-column", "kind", "--size", "1"],
        "size must be at least the number of groups",
    ),
    "a label among the columns": (
        ["compress", "{files}/rows.csv", "-c", "x,kind", "--group-column", "kind"],
        "--group-column kind is a label",
    ),
    "no threads": (["compress", "{files}/rows.csv", "-c", "x", "--threads", "0"], "thread"),
}


def lines_of(text):
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("case", CASES)
def test_a_bad_request_is_one_line_and_nothing_is_written(case, files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(guard, "LARGE_MEMBER", 1 << 22)  # a bomb of gigabytes would take long to make
    words, message = CASES[case]
    words = [word.format(files=files) for word in words]
    code = run([*words, "-o", str(tmp_path / "small.npz"), "--report", str(tmp_path / "small.html")])
    told = capsys.readouterr()
    assert code == 2
    assert told.out == ""
    assert len(lines_of(told.err)) == 1, told.err
    assert told.err.startswith("reduset: error: ")
    assert re.search(message, told.err), told.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["info", "{files}/rows.npz"], "header|not a readable"),
        (["info", "{files}/model.npz"], "not a readable"),
        (["info", "{files}/rows.csv"], "not a readable"),
        (["info", "{files}/nothing.npz"], "no such file"),
        (["report", "{files}/rows.csv"], "not a readable|must end"),
        (["evaluate", "{files}/rows.csv", "{files}/rows.csv", "-o", "{out}/s.csv"], "not a readable"),
        (["segment", "{files}/rows.csv", "-o", "{out}/s.png"], "rows.csv"),
        (["segment", "{files}/picture.png", "-o", "{out}/s.gif"], "must end in"),
        (["cohort", "{files}/bags/a.csv", "{files}/bags/b.csv"], "no output is set"),
        (["distance", "{files}/nothing.csv", "{files}/rows.csv"], "nothing.csv"),
        (["distance", "{files}/damaged.npz", "{files}/rows.csv"], r"damaged\.npz.*damaged"),
        (["compress", "{files}/one.csv", "--whiten", "-o", "{out}/small.npz"], "--whiten needs at least two rows"),
        (["compress", "{files}/rows.csv", "-o", "{out}/small.txt"], "must end in"),
        (["sketch", "{files}/bags/../rows.csv", "-o", "{files}/rows.csv"], "would be overwritten"),
        (["compress", "{files}/bags/../rows.npz", "-o", "{files}/rows.npz"], "would be overwritten"),
        (["segment", "{files}/picture.png", "-o", "{files}/picture.png"], "would be overwritten"),
        (["cohort", "{files}/bags/a.csv", "{files}/bags/b.csv", "-o", "{files}/bags/b.csv"], "would be overwritten"),
        (["compress", "{files}/rows.csv", "-o", "{out}/no/small.npz"], "there is no folder"),
    ],
)
def test_other_commands_refuse_in_one_line_too(words, message, files, tmp_path, capsys):
    assert run([word.format(files=files, out=tmp_path) for word in words]) == 2
    told = capsys.readouterr()
    assert len(lines_of(told.err)) == 1, told.err
    assert re.search(message, told.err), told.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compres"], r"compres.*\(see reduset --help\)"),
        (["compress"], r"Missing.*\(see reduset compress --help\)"),
        (["compress", "a.csv", "-o", "b.npz", "--size", "many"], "--size.*integer"),
        (["compress", "a.csv", "-o", "b.npz", "--sise", "5"], "--sise"),
    ],
)
def test_words_that_make_no_command_are_explained(words, message, capsys):
    assert run(words) == 2
    told = capsys.readouterr().err
    assert len(lines_of(told)) == 1, told
    assert re.search(message, told), told


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everywhere")
def test_a_file_without_permission_is_named(files, tmp_path, capsys):
    closed = tmp_path / "closed.csv"
    closed.write_text("x\n1\n")
    closed.chmod(0)
    assert run(["compress", str(closed), "-o", str(tmp_path / "small.npz")]) == 2
    assert "closed.csv" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_a_full_disk_leaves_nothing(suffix, files, tmp_path, capsys, monkeypatch):
    def full(stream):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    out = tmp_path / f"small{suffix}"
    command = "compress" if suffix == ".npz" else "sketch"
    assert run([command, str(files / "rows.csv"), "-c", "x,y", "--size", "5", "-o", str(out)]) == 2
    told = capsys.readouterr()
    assert len(lines_of(told.err)) == 1
    assert "No space left" in told.err or "no space left" in told.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("command", ["compress", "cohort", "segment"])
def test_a_disk_that_is_full_for_the_report_leaves_nothing_of_the_rest(command, files, tmp_path, capsys, monkeypatch):
    words = {
        "compress": [str(files / "rows.csv"), "-c", "x,y", "--size", "5", "-o", str(tmp_path / "small.npz")],
        "cohort": [*(str(files / "bags" / f"{name}.csv") for name in "ab"), "--size", "9", "-o", str(tmp_path / "d.csv")],
        "segment": [str(files / "picture.png"), "-b", "0.2", "-o", str(tmp_path / "out.png")],
    }[command]
    sync, calls = os.fsync, []

    def full(stream):
        calls.append(stream)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(stream)

    monkeypatch.setattr(os, "fsync", full)
    assert run([command, *words, "--report", str(tmp_path / "page.html")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert lines_of(told.err) == [f"reduset: error: {tmp_path / 'page.html'}: No space left on device"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("option", "name", "extra"), [("--report", "page.html", "report"), ("-o", "rows.csv", "tables")])
def test_a_library_that_is_missing_is_named_before_any_work(option, name, extra, files, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(targets, "find_spec", lambda library: None)
    words = ["sketch"] if option == "-o" else ["compress", "-o", str(tmp_path / "small.npz")]
    assert run([*words, str(files / "nothing.csv"), option, str(tmp_path / name)]) == 2
    assert f"pip install 'reduset[{extra}]'" in capsys.readouterr().err


def test_a_fault_of_the_program_is_not_hidden(monkeypatch, files, tmp_path):
    def broken(*args, **options):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(io, "read_for", broken)
    with pytest.raises(ZeroDivisionError):
        run(["compress", str(files / "rows.csv"), "-o", str(tmp_path / "small.npz")])


def test_the_demo_says_at_once_all_that_it_lacks(tmp_path, monkeypatch, capsys):
    found = demo.find_spec
    monkeypatch.setattr(demo, "find_spec", lambda name: None if name in ("pyarrow", "plotly") else found(name))
    assert run(["demo", "--folder", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "reduset: error: the demo needs pyarrow, plotly, not installed: pip install 'reduset[demo]'\n"
    assert not (tmp_path / "out").exists()
