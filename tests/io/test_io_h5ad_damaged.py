"""HDF5 can crash on a damaged file or wait for ever: a process of its own finds out, and the file is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from file_kinds import write_any
from fuzz_mutations import mutated_bytes
from io_cases import write_h5ad
from reduset import io
from reduset.io import h5ad_check, h5ad_probe

pytestmark = pytest.mark.slow

READ = """
import sys
from reduset import io
from reduset.io import h5ad_check
h5ad_check.SECONDS = 3.0
try:
    io.read(sys.argv[1], key=sys.argv[2], group_column=sys.argv[3] or None)
except io.FileError as error:
    print(error)
"""


@pytest.fixture
def file(tmp_path):
    h5ad_check._fault.cache_clear()
    return write_any(tmp_path / "t.h5ad")


@pytest.fixture
def probe(tmp_path, monkeypatch):
    """A probe of one's own."""

    def put(code):
        path = tmp_path / "probe.py"
        path.write_text(f"import os, sys, time\n{code}")
        monkeypatch.setattr(h5ad_check, "PROBE", path)
        return path

    return put


@pytest.mark.parametrize(("seed", "number", "group"), [(7, 576, ""), (9, 693, "site")], ids=["wait", "crash"])
def test_files_that_hung_or_crashed_the_library_are_refused(file, seed, number, group):
    """As the fuzzer made them; with HDF5 2.0 the first had no end in an attribute of obs, the second ended the process."""
    file.write_bytes(mutated_bytes(file.read_bytes(), np.random.default_rng([seed, number])))
    words = [sys.executable, "-c", READ, str(file), "X", group]
    ended = subprocess.run(words, capture_output=True, text=True, check=True, timeout=100)
    assert "t.h5ad: " in ended.stdout


def test_a_file_written_anew_is_read_anew(file):
    """A reader that stayed open would give the rows of before."""
    before, other = io.read(file), write_any(file.with_name("other.h5ad"), seed=1)
    file.write_bytes(other.read_bytes())
    after = io.read(file)
    assert (after.values == io.read(other).values).all()
    assert (after.values != before.values).any()


def test_a_refused_file_is_not_held_open(file):
    with pytest.raises(io.FileError) as caught:
        io.read(file, key="obsm/X_umap")
    with h5py.File(file, "a") as again:  # though the error is kept
        again["obsm/X_umap"] = again["obsm/X_pca"][:]
    assert caught.value
    assert io.read(file, key="obsm/X_umap").values.shape == (40, 2)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('open', flush=True)\nsys.exit(1)", r"t\.h5ad: is damaged, for HDF5 finds no end in it within 10 s; .* h5clear"),
        ("print('open', flush=True)\nos._exit(139)", r"t\.h5ad: is damaged, for HDF5 crashes on it; take another copy"),
    ],
)
def test_what_happens_to_the_process_is_told(file, probe, code, message):
    probe(code)
    for _ in range(2):
        with pytest.raises(io.FileError, match=message):
            io.read(file)


@pytest.mark.parametrize("code", ["raise ImportError", "print('open')\nprint('done')\nos._exit(5)"])
def test_a_process_that_could_not_look_condemns_nobody(file, probe, code):
    probe(code)
    assert len(io.read(file)) == 40


def test_the_process_ends_itself(file, monkeypatch):
    asked = {"file": str(file), "key": "X", "columns": [], "seconds": 0.3, "modules": sys.path}
    code = f"import sys, time\nsys.path[:0] = [{str(Path(h5ad_probe.__file__).parent)!r}]\nimport h5ad_probe\n"
    code += "h5ad_probe.jobs = lambda *_: time.sleep(60)\nh5ad_probe.main()"
    ended = subprocess.run([sys.executable, "-c", code], input=json.dumps(asked), capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout.split()) == (1, ["open"])


def test_a_file_is_looked_at_once_while_it_stays_what_it_is(file, monkeypatch):
    started = []
    monkeypatch.setattr(
        h5ad_check.subprocess,
        "run",
        lambda *words, **_: started.append(words) or subprocess.CompletedProcess(words, 0, "open done"),
    )
    for _ in range(3):
        io.read(file)
    assert len(started) == 1
    io.read(file, group_column="site")
    assert len(started) == 2  # of which more is read
    write_any(file, count=42)
    io.read(file)
    assert len(started) == 3


@pytest.mark.parametrize("executable", [None, "", "/usr/bin/uwsgi", "frozen", "missing", "trusted"])
def test_where_no_python_can_be_started_files_are_read_unchecked(file, probe, monkeypatch, executable):
    mark = file.with_name("mark")
    probe(f"open({str(mark)!r}, 'w').close()")
    if executable == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    elif executable == "missing":
        monkeypatch.setattr(sys, "executable", str(file.with_name("python")))
    elif executable == "trusted":
        monkeypatch.setenv("REDUSET_CHECK_HDF5", "0")
    else:
        monkeypatch.setattr(sys, "executable", executable)
    assert len(io.read(file)) == 40
    assert not mark.exists()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_ends_the_process(file, tmp_path):
    slow = tmp_path / "slow.py"
    slow.write_text(f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(f'{{os.getpid()}} ')\ntime.sleep(100)")
    code = "import pathlib, sys\nfrom reduset import io\nfrom reduset.io import h5ad_check\n"
    code += f"h5ad_check.PROBE = pathlib.Path({str(slow)!r})\nio.read({str(file)!r})"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stderr=subprocess.PIPE, text=True) as reader:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith(" "):
            assert reader.poll() is None
            time.sleep(0.02)
        reader.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in reader.communicate(timeout=30)[1]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("sparse", [None, "csr", "csc"])
@pytest.mark.parametrize(("key", "columns"), [("X", ["kind"]), ("obsm/X_pca", []), ("obs", None), ("layers/raw", ["depth", "old"])])
def test_the_process_looks_at_what_is_read(tmp_path, monkeypatch, sparse, key, columns):
    """It lets errors pass, also its own: here none may occur, and large arrays are looked at on both ends."""
    values = np.random.default_rng(0).random((30, 4))
    obs, kinds = {"depth": np.arange(30.0), "old": np.arange(30) % 2}, {"kind": (np.arange(30) % 3, ["T", "B", "NK"])}
    path = write_h5ad(tmp_path / "t.h5ad", values, list("abcd"), obs, {"X_pca": values}, kinds, sparse)
    seen = set()
    monkeypatch.setattr(h5py.Dataset, "__getitem__", _noted(seen, h5py.Dataset.__getitem__))
    monkeypatch.setattr(h5ad_probe, "END", 64)
    for part in (1 << 25, 8):
        monkeypatch.setattr(h5ad_probe, "PART", part)
        with h5py.File(path, "a") as file:
            if "layers" not in file:
                file.create_dataset("layers/raw", data=values, chunks=(7, 2))
                file["obs/__categories/old"] = np.array(["u", "v"], dtype=h5py.string_dtype())
            for act, where, amount in h5ad_probe.jobs(key, columns):
                if where in file:
                    act(file[where], amount)
    expected = {
        "X": {"/X" if sparse is None else "/X/indptr", "/var/names", "/obs/kind/codes", "/obs/kind/categories"},
        "obsm/X_pca": {"/obsm/X_pca"},
        "obs": {"/obs/depth", "/obs/kind/codes"},
        "layers/raw": {"/layers/raw", "/obs/depth", "/obs/old", "/obs/__categories/old"},
    }[key]
    assert expected <= seen
    assert "/obs/names" not in seen  # which nobody needs


def _noted(seen, get):
    def noted(item, *which, **options):
        seen.add(item.name)
        return get(item, *which, **options)

    return noted
