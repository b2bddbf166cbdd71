"""A model file made to do harm is refused, and nothing in it is ever executed."""

import pickle

import numpy as np
import pytest

from archive_cases import mean_of, npy, replace_member
from reduset import Gaussian, KernelMean
from reduset._archive import archive


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "mean.npz"
    mean_of(Gaussian(0.3)).save(path)
    return path


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("name", ["header", "atoms", "weights"])
def test_a_pickle_inside_is_never_executed(name, saved, tmp_path):
    trap = np.empty(5, dtype=object)
    trap[:] = [Trap(tmp_path / "sprung")] * 5
    for content in (npy(trap, allow_pickle=True), pickle.dumps(Trap(tmp_path / "sprung"))):
        replace_member(saved, name, content)
        with pytest.raises(ValueError, match=r"is not a readable reduset.KernelMean file"):
            KernelMean.load(saved)
    assert not (tmp_path / "sprung").exists()


def test_the_trap_would_have_sprung(tmp_path):
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung"))).close()
    assert (tmp_path / "sprung").exists()


def test_a_whole_file_that_is_a_pickle_is_never_executed(tmp_path):
    (tmp_path / "mean.npz").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(ValueError, match="is not a readable"):
        KernelMean.load(tmp_path / "mean.npz")
    assert not (tmp_path / "sprung").exists()


def npy_promising(text, version=b"\x01\x00"):
    """An array file whose header is the given text, with next to no data."""
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + text.encode() + bytes(80)


@pytest.mark.parametrize("version", [b"\x01\x00", b"\x02\x00"])
@pytest.mark.parametrize("shape", ["(10**9,)", "(1000000000000, 2)", "(-1, 2)", "(99999999999999999999, 999999999)", "(1.5,)"])
def test_an_array_that_promises_more_than_the_file_holds_is_refused(shape, version, saved):
    for name in ("header", "atoms", "weights"):
        content = npy_promising(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n", version)
        replace_member(saved, name, content)
        with pytest.raises(ValueError, match=r"is not a readable reduset.KernelMean file"):
            KernelMean.load(saved)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "__import__('os').system('true')",
        "{'descr': '|O', 'fortran_order': False, 'shape': (5, 2), }",
        "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (5, 2), }",
        "{'descr': '<c16', 'fortran_order': False, 'shape': (5,), }",
        "{'descr': 'nonsense', 'fortran_order': False, 'shape': (5,), }",
        "{'descr': '<f8', 'shape': (5,)}",
        "(" * 5000,
        "'''",
        "  x\n y",
        "\x00",
    ],
)
def test_an_array_with_a_senseless_header_is_refused(text, saved):
    for name in ("header", "atoms", "weights"):
        replace_member(saved, name, npy_promising(text))
        with pytest.raises(ValueError, match=r"is not a readable reduset.KernelMean file"):
            KernelMean.load(saved)


@pytest.mark.parametrize("version", [b"\x03\x00", b"\x09\x00"])
def test_an_array_of_an_unknown_format_is_refused(version, saved):
    replace_member(saved, "atoms", npy_promising("{}", version))
    with pytest.raises(ValueError, match="its member 'atoms' is written in version"):
        KernelMean.load(saved)


def test_an_enormous_header_is_refused_unread(saved, monkeypatch):
    monkeypatch.setattr(archive, "MAX_HEADER_BYTES", 100)
    with pytest.raises(ValueError, match="its header is too large"):
        KernelMean.load(saved)
