"""Every way in which a file can be wrong: one line that names the file, what was seen and the way out; nothing partial is left."""

import builtins
import contextlib
import errno
import os
import pickle
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from PIL import Image

from reduset import io
from reduset.io import guard
from reduset.io.registry import formats

SUFFIXES = sorted(suffix for each in formats() for suffix in each.suffixes)

ROOT = Path(__file__).resolve().parents[2]


def table(count=2000):
    return pd.DataFrame({"alpha": np.arange(count) * 1.0, "beta": np.arange(count) % 7, "word": ["w"] * count})


def refused(path, message, **options):
    """Reading must be refused in one line, which begins with the file."""
    with pytest.raises(io.FileError, match=message) as caught:
        io.read(path, **options)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.fixture(params=["csv", "tsv", "parquet", "feather", "orc"])
def file(request, tmp_path):
    path = tmp_path / f"table.{request.param}"
    if request.param in ("csv", "tsv"):
        table().to_csv(path, index=False, sep="\t" if request.param == "tsv" else ",")
    elif request.param == "parquet":
        pq.write_table(pa.Table.from_pandas(table()), path)
    elif request.param == "orc":
        pa.orc.write_table(pa.Table.from_pandas(table()), str(path))
    else:
        pa.feather.write_feather(table(), str(path))
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_an_empty_and_a_foreign_file_of_every_suffix(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    refused(path, "no such file")
    path.write_bytes(b"")
    refused(path, r"is empty \(0 bytes\)")
    path.write_bytes(b"\x01\x02\x03\x00 nothing that is known" * 40)
    refused(path, "holds binary data|begins with|cannot be read")


def test_the_nearest_name_of_a_missing_file_is_suggested(file):
    refused(file.with_name("tabel" + file.suffix), f"no such file .did you mean '{file.name}'")
    refused(file.parent / "nowhere" / file.name, "no such file; there is no folder")


def test_a_folder_without_files_of_data_and_a_folder_in_place_of_a_file(tmp_path):
    (tmp_path / ".hidden.csv").write_text("a\n1\n")
    (tmp_path / "_metadata.parquet").write_bytes(b"")
    (tmp_path / "notes.md").write_text("none")
    refused(tmp_path, r"is a folder without files of data")
    with pytest.raises(io.FileError, match="is a folder; name the files in it"):
        io.read_labels(tmp_path)
    with pytest.raises(io.FileError, match="is a folder"):
        io.read_image(tmp_path)


def test_no_files_at_all():
    with pytest.raises(io.FileError, match="no files were named"):
        io.read([])
    with pytest.raises(TypeError, match=r"a file .*got 3"):
        io.read(3)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    refused(tmp_path / "pipe.csv", "is no regular file")


def test_a_file_without_permission(file, monkeypatch):
    if os.geteuid() == 0:  # may read everything

        def denied(path, *args, **kwargs):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        monkeypatch.setattr(builtins, "open", denied)
    else:
        file.chmod(0)
    refused(file, r"may not be read \(permission denied\)")


def test_a_column_that_is_not_there(file):
    refused(file, "no column 'aplha' .did you mean 'alpha'..; it has alpha, beta, word", columns=["aplha"])
    refused(file, "no column 'zzz'; it has alpha", columns=["zzz"])
    refused(file, "no column 'Beta' for weight_column .did you mean 'beta'", weight_column="Beta")
    refused(file, "no column 'wrd' for group_column .did you mean 'word'", group_column="wrd")


def test_a_column_of_text(file):
    refused(file, "column 'word' must hold numbers, got 'w' in row 1; encode it", columns=["alpha", "word"])
    refused(file, "column 'word' must hold numbers, got 'w' in row 1", weight_column="word")


def test_options_that_make_no_sense(file):
    for options, error, message in [
        ({"columns": []}, ValueError, "columns must not be empty"),
        ({"columns": ["alpha", "alpha"]}, ValueError, "got 'alpha' twice"),
        ({"columns": [0]}, TypeError, "columns must be names, got 0"),
        ({"missing": "ignore"}, ValueError, "missing must be one of 'drop', 'refuse'; got 'ignore'"),
        ({"compensate": "yes"}, TypeError, "compensate must be True or False"),
        ({"key": 0}, TypeError, "key must be the name of an array"),
        ({"key": "X"}, io.FileError, "key='X' is for files of several arrays"),
        ({"weight_column": 1}, TypeError, "weight_column must be a column's name, got 1"),
    ]:
        with pytest.raises(error, match=message):
            io.read(file, **options)
    with pytest.raises(TypeError, match="unexpected argument 'column'"):
        io.batches(file, column="alpha")
    with pytest.raises(ValueError, match="rows must be at least 1"):
        io.batches(file, rows=0)


def test_files_with_other_columns(file):
    other = file.with_name("other.csv")
    for columns, message in [
        ({"beta": "gamma"}, r"other\.csv: has no column 'beta', unlike .*table"),
        ({}, None),
    ]:
        table().rename(columns=columns).to_csv(other, index=False)
        if message is None:
            assert len(io.read([file, other])) == 4000
        else:
            with pytest.raises(io.FileError, match=message):
                io.read([file, other])
    table().assign(more=1.0).to_csv(other, index=False)
    with pytest.raises(io.FileError, match=r"other\.csv: has the column 'more', unlike .*table"):
        io.read_bags([file, other])
    table().assign(beta="word").to_csv(other, index=False)
    with pytest.raises(io.FileError, match=r"other\.csv: holds text in column 'beta', unlike .*table"):
        io.read([file, other])


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9, 0.999])
def test_binary_files_that_were_cut_short(tmp_path, share):
    paths = [tmp_path / f"t.{suffix}" for suffix in ("parquet", "feather", "npy", "npz", "orc", "png")]
    pq.write_table(pa.Table.from_pandas(table()), paths[0])
    pa.feather.write_feather(table(), str(paths[1]))
    np.save(paths[2], np.random.default_rng(0).random((2000, 3)))
    np.savez(paths[3], X=np.random.default_rng(0).random((2000, 3)))
    pa.orc.write_table(pa.Table.from_pandas(table()), str(paths[4]))
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)).save(paths[5])
    for path in paths if share < 0.99 else paths[:-1]:  # a picture ends with a mark that nothing depends on
        data = path.read_bytes()
        path.write_bytes(data[: int(share * len(data))])
        refused(path, "damaged or cut short|cut short or damaged|cut short")


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".orc", ".npy", ".npz", ".csv"])
def test_scrambled_files_are_refused_or_read_but_never_crash(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    if suffix == ".npy":
        np.save(path, np.random.default_rng(0).random((50, 3)))
    elif suffix == ".npz":
        np.savez_compressed(path, X=np.random.default_rng(0).random((50, 3)))
    elif suffix == ".orc":
        pa.orc.write_table(pa.table(dict(zip("ab", np.random.default_rng(0).random((2, 50)), strict=True))), str(path))
    else:
        io.write_rows(path, ["a", "b"], np.random.default_rng(0).random((50, 2)), np.ones(50))
    whole, rng = np.frombuffer(path.read_bytes(), np.uint8), np.random.default_rng(1)
    for _ in range(60):
        data = whole.copy()
        data[rng.integers(0, len(data), 3)] = rng.integers(0, 256, 3)
        path.write_bytes(data.tobytes())
        with contextlib.suppress(io.FileError):
            assert np.isfinite(io.read(path).values).all()


def test_a_suffix_that_lies(file):
    for suffix in {".csv", ".parquet", ".orc", ".npy", ".fcs", ".h5ad", ".png"} - {file.suffix}:
        if file.suffix in (".csv", ".tsv") and suffix == ".csv":
            continue
        path = file.with_name(f"lie{suffix}")
        path.write_bytes(file.read_bytes())
        refused(path, f"ends in {suffix}, but (holds|begins with)|cannot be read as (an image|ORC)")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.xlsx", "save the sheet as CSV"),
        ("t.pkl", "pickles can run code and are never opened"),
        ("t.zip", "unpack it"),
        ("t.odd", "its format is not known by .odd"),
    ],
)
def test_formats_that_are_not_read_say_what_to_do(tmp_path, name, message):
    (tmp_path / name).write_bytes(b"something")
    refused(tmp_path / name, message)


class Trap:
    """Would leave a file behind if it were ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_nothing_is_ever_unpickled(tmp_path, suffix):
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    (np.save if suffix == ".npy" else np.savez)(tmp_path / f"t{suffix}", trap)
    refused(tmp_path / f"t{suffix}", "holds Python objects, which are never unpickled")
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    refused(tmp_path / "p.npy", "begins with")
    assert not (tmp_path / "sprung").exists()


def test_an_image_is_not_opened_as_a_program(tmp_path):
    (tmp_path / "t.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    refused(tmp_path / "t.png", "cannot be read as an image")


def bomb(path, size):
    """An archive whose member says that it unpacks to that many bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("X.npy", "w") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (size // 8, 1)})
        stream.write(bytes(1 << 20))
    data = path.read_bytes()
    told = zipfile.ZipFile(path).getinfo("X.npy").file_size.to_bytes(4, "little")
    path.write_bytes(data.replace(told, size.to_bytes(4, "little")))


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    bomb(tmp_path / "t.npz", 4_000_000_000)
    assert zipfile.ZipFile(tmp_path / "t.npz").getinfo("X.npy").file_size == 4_000_000_000
    refused(tmp_path / "t.npz", r"has 1,\d\d\d bytes and would unpack to 4,000,000,000; no data do, so it is not opened")


def test_what_unpacks_beyond_memory_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "memory", lambda: 1e6)
    np.savez(tmp_path / "t.npz", X=np.zeros((500_000, 1)))
    refused(tmp_path / "t.npz", "its array 'X' would take 0.0 GiB, this machine has")
    np.save(tmp_path / "t.npy", np.zeros((500_000, 1)))
    refused(tmp_path / "t.npy", "the columns read would take")
    pd.DataFrame({"a": np.zeros(500_000)}).to_csv(tmp_path / "t.csv.gz", index=False)
    refused(tmp_path / "t.csv.gz", "the columns read would take .*; choose fewer columns, or read it in batches")
    assert sum(len(part) for part in io.batches(tmp_path / "t.csv.gz", rows=1000)) == 500_000


def test_a_header_that_promises_more_than_the_file_holds(tmp_path):
    with open(tmp_path / "t.npy", "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)})
    refused(tmp_path / "t.npy", "cut short or damaged: its array should have 24,000,000,000,000 bytes, and has 0")


def test_a_picture_of_too_many_pixels(tmp_path, monkeypatch):
    Image.fromarray(np.zeros((40, 50), np.uint8)).save(tmp_path / "t.png")
    monkeypatch.setattr("reduset.io.images.MAX_PIXELS", 1999)
    refused(tmp_path / "t.png", "has 50 × 40 pixels, more than 1,999")


def test_arrays_of_other_shapes(tmp_path):
    np.save(tmp_path / "t.npy", np.zeros((2, 2, 2)))
    refused(tmp_path / "t.npy", r"must have two dimensions \(rows, columns\), got shape \(2, 2, 2\)")
    np.savez(tmp_path / "t.npz", A=np.zeros((2, 2)), B=np.zeros((3, 2)))
    refused(tmp_path / "t.npz", "holds A, B; choose one with key=")
    refused(tmp_path / "t.npz", "has no array 'C'", key="C")
    np.save(tmp_path / "t.npy", np.zeros((0, 2)))
    refused(tmp_path / "t.npy", "has no rows to read")
    np.save(tmp_path / "t.npy", np.zeros((2, 2), complex))
    refused(tmp_path / "t.npy", r"holds no column of numbers to read; it has x0 \(complex128\)")


def test_every_row_lacks_a_value(file):
    holes = table().assign(alpha=np.nan)
    holes.to_csv(file.with_name("h.csv"), index=False)
    refused(file.with_name("h.csv"), "no rows are left, for each lacks a value", missing="drop")


def test_frames_are_refused_in_the_same_words():
    with pytest.raises(io.FileError, match=r"pandas DataFrame: no column 'aplha' .did you mean 'alpha'"):
        io.as_table(table(), columns=["aplha"])
    with pytest.raises(io.FileError, match=r"column 'word' .*got 'w' in row 1"):
        io.as_table(table(), columns=["word"])
    with pytest.raises(TypeError, match=r"frame .*got list"):
        io.as_table([[1.0]])


def forget(monkeypatch, module):
    """Let a library be missing."""
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize("module", ["pyarrow", "h5py", "PIL", "narwhals"])
def test_a_library_that_is_missing_is_named_with_its_extra(monkeypatch, module):
    forget(monkeypatch, module)
    with pytest.raises(io.FileError, match=r"this needs \w+, which is not installed: pip install 'reduset\[some\]'"):
        guard.need("this", module, "some")


@pytest.mark.parametrize("known", [each for each in formats() if each.needs[1]], ids=lambda known: known.title)
def test_a_file_whose_library_is_missing_is_refused_with_the_extra_of_its_format(tmp_path, monkeypatch, known):
    library, extra = known.needs
    (tmp_path / f"t{known.suffixes[0]}").write_bytes((known.magic or (b"a,b\n",))[0] + bytes(16 if known.magic else 0))
    forget(monkeypatch, library)
    refused(tmp_path / f"t{known.suffixes[0]}", rf"needs \w+, which is not installed: pip install 'reduset\[{extra}\]'")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(need.startswith({"PIL": "pillow"}.get(library, library)) for need in extras[extra])


SUFFIXES_WRITTEN = [".parquet", ".feather", ".csv", ".tsv", ".csv.gz"]


@pytest.mark.parametrize("suffix", SUFFIXES_WRITTEN)
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_full_disk_leaves_nothing_behind_and_the_old_file_in_place(tmp_path, monkeypatch, suffix, moment):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, moment, full)
    with pytest.raises(io.FileError, match=r"cannot be written \(no space left on device\); nothing was left behind") as caught:
        io.write_rows(path, ["a"], np.ones((3, 1)), np.ones(3))
    assert str(caught.value).startswith(str(path))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.fixture(scope="module")
def on_a_full_disk(tmp_path_factory):
    """What a process said that may write no large files, and the folders it wrote to, by suffix: one process, whose start costs."""
    code = (
        "import numpy as np, resource, sys\nfrom reduset import io\nimport pyarrow, pyarrow.csv, pyarrow.parquet\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n        io.write_rows(path, ['a'], np.random.default_rng(0).random((100_000, 1)), np.ones(100_000))\n"
        "    except io.FileError as error:\n        print(error)\n"
    )
    folders = {suffix: tmp_path_factory.mktemp("full") for suffix in SUFFIXES_WRITTEN}
    paths = [str(folder / f"t{suffix}") for suffix, folder in folders.items()]
    return subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True), folders


@pytest.mark.parametrize("suffix", SUFFIXES_WRITTEN)
def test_a_disk_that_fills_while_writing(on_a_full_disk, suffix):
    out, folders = on_a_full_disk
    path = folders[suffix] / f"t{suffix}"
    assert f"{path}: cannot be written (file too large); nothing was left behind" in out.stdout
    assert out.stderr == ""
    assert os.listdir(folders[suffix]) == []


def test_places_that_cannot_be_written(tmp_path):
    rows = (["a"], np.ones((2, 1)), np.ones(2))
    for path, message in [
        (tmp_path, "rows cannot be written as a file without suffix"),
        (tmp_path / "t.xlsx", r"rows cannot be written as \.xlsx; use \.parquet"),
        (tmp_path / "t.parquet.gz", "rows cannot be written"),
        (tmp_path / "none" / "t.csv", "cannot be written, for there is no folder"),
    ]:
        with pytest.raises(io.FileError, match=message):
            io.write_rows(path, *rows)
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(io.FileError, match="is a folder"):
        io.write_rows(tmp_path / "f.csv", *rows)
    with pytest.raises(ValueError, match="values must be a 2-D array of numbers with 2 columns"):
        io.write_rows(tmp_path / "t.csv", ["a", "b"], *rows[1:])
    assert sorted(os.listdir(tmp_path)) == ["f.csv"]
