"""The model file: what goes in comes out, and nothing else ever does."""

import os
import stat
import zipfile

import numpy as np
import pytest

from archive_cases import as_member, header_of, mean_of, members, npy, reseal, rewrite, same, store
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, _archive
from reduset._archive import archive

COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])
REFUSED = (ValueError, FileNotFoundError)

KERNELS = [
    Gaussian(0.3),
    Gaussian(1 / 3, normalized=True, space="l2"),
    Gaussian(0.3, covariance=COVARIANCE),
    Laplacian(2.0),
    Laplacian(2.0, metric="cityblock", covariance=COVARIANCE),
    Student(1.0),
    Student(1.0, exponent=np.pi, normalized=True),
    FunctionKernel("rbf", gamma=0.5),
    FunctionKernel("laplacian"),
]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "mean.npz"
    mean_of(Gaussian(0.3)).save(path)
    return path


# -- round trips -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_mean_comes_back_as_it_went(kernel, tmp_path):
    f = mean_of(kernel)
    f.save(tmp_path / "mean.npz")
    g = KernelMean.load(tmp_path / "mean.npz")
    assert same(f, g)
    assert type(g.kernel) is type(kernel)
    np.testing.assert_array_equal(f(f.atoms), g(f.atoms))
    assert g.distance(f) <= 1e-7 * f.norm()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_atoms_of_any_type_come_back_with_the_same_values(dtype, tmp_path):
    X = np.arange(12).reshape(6, 2).astype(dtype)
    f = KernelMean.from_samples(X, Gaussian(1.0))
    f.save(tmp_path / "mean.npz")
    g = KernelMean.load(tmp_path / "mean.npz")
    np.testing.assert_array_equal(g.atoms, X)
    np.testing.assert_array_equal(g.weights, f.weights)


def test_paths_may_be_text_and_names_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mean_of(Gaussian(0.3)).save("mean.model")
    assert os.listdir(tmp_path) == ["mean.model"]
    assert same(KernelMean.load("mean.model"), mean_of(Gaussian(0.3)))


def test_the_file_is_an_ordinary_npz_with_a_json_header(saved):
    assert set(members(saved)) == {"header", "atoms", "weights"}
    header = header_of(saved)
    assert header["kind"] == "reduset.KernelMean"
    assert header["version"] == 1
    assert header["holds"] == {}
    assert header["kernel"] == {"name": "gaussian", "bandwidth": 0.3, "normalized": False, "space": "rkhs"}


def test_a_saved_file_follows_the_users_mask(tmp_path):
    before = os.umask(0o027)
    try:
        mean_of(Gaussian(0.3)).save(tmp_path / "mean.npz")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "mean.npz").stat().st_mode) == 0o640


def test_a_function_cannot_be_saved_and_leaves_nothing(tmp_path):
    f = mean_of(lambda X, Y: np.exp(-np.abs(X[:, :1] - Y[:, 0])))
    with pytest.raises(TypeError, match="cannot be saved, since loading would have to execute it; use a named scikit-learn kernel"):
        f.save(tmp_path / "mean.npz")
    assert os.listdir(tmp_path) == []


# -- atomic writing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["_fill", "fsync", "chmod", "replace"])
@pytest.mark.parametrize("failure", [OSError("no space left"), KeyboardInterrupt()])
def test_a_failing_write_leaves_the_old_file_and_no_other(step, failure, saved, monkeypatch):
    old = saved.read_bytes()

    def fail(*args, **kwargs):
        raise failure

    monkeypatch.setattr(archive if step == "_fill" else os, step, fail)
    with pytest.raises(type(failure)):
        mean_of(Gaussian(0.9)).save(saved)
    monkeypatch.undo()
    assert os.listdir(saved.parent) == [saved.name]
    assert saved.read_bytes() == old


def test_a_write_that_stops_half_way_leaves_the_old_file_and_no_other(saved, monkeypatch):
    old = saved.read_bytes()

    def half(stream, *args, **kwargs):
        stream.write(b"PK half of an archive")
        raise OSError("no space left")

    monkeypatch.setattr(archive, "_fill", half)
    with pytest.raises(OSError, match="no space left"):
        mean_of(Gaussian(0.9)).save(saved)
    assert os.listdir(saved.parent) == [saved.name]
    assert saved.read_bytes() == old


def test_saving_replaces_an_old_file(saved):
    g = mean_of(Student(0.9), count=50)
    g.save(saved)
    assert same(KernelMean.load(saved), g)
    assert os.listdir(saved.parent) == [saved.name]


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 251 + ".npz")
    KernelMean.from_samples(np.eye(2), Gaussian(1.0)).save(path)
    assert path.exists()


def test_saving_into_a_missing_folder_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        mean_of(Gaussian(0.3)).save(tmp_path / "nowhere" / "mean.npz")


# -- damaged files ---------------------------------------------------------------------------------------------------


def test_a_missing_file_and_a_folder_are_file_not_found(tmp_path):
    for path in (tmp_path / "nothing.npz", tmp_path):
        with pytest.raises(FileNotFoundError, match="no such file"):
            KernelMean.load(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not an archive", b"\x93NUMPY", bytes(1000), b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_is_refused(content, tmp_path):
    (tmp_path / "mean.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"mean\.npz is not a readable reduset.KernelMean file"):
        KernelMean.load(tmp_path / "mean.npz")


def test_a_file_cut_anywhere_is_refused(saved):
    whole = saved.read_bytes()
    for end in range(0, len(whole), 7):
        saved.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"is not a readable reduset.KernelMean file"):
            KernelMean.load(saved)


def outcome(path):
    """The loaded mean, or the refusal."""
    try:
        return KernelMean.load(path)
    except REFUSED as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize("flip", [0x01, 0x08, 0x80, 0xFF])
def test_a_flipped_byte_is_refused_or_has_no_effect(flip, saved):
    """Some bytes carry nothing that is read (times, attributes): those may pass, with the right content."""
    whole, original = saved.read_bytes(), KernelMean.load(saved)
    refused = 0
    for at in range(len(whole)):
        saved.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
        found = outcome(saved)
        if isinstance(found, KernelMean):
            assert same(found, original), f"byte {at}"
        else:
            refused += 1
            assert "mean.npz" in str(found), f"byte {at}"
    assert refused > len(whole) // 2


@pytest.mark.parametrize("seed", range(5))
def test_random_damage_is_refused_or_has_no_effect(seed, saved):
    rng = np.random.default_rng(seed)
    whole, original = np.frombuffer(saved.read_bytes(), np.uint8), KernelMean.load(saved)
    for _ in range(100):
        damaged = whole.copy()
        a, b = np.sort(rng.integers(0, len(whole), size=2))
        damaged[a : b + 1] = rng.integers(0, 256, size=b + 1 - a)
        saved.write_bytes(damaged.tobytes())
        found = outcome(saved)
        assert isinstance(found, REFUSED) or same(found, original)


# -- edited files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": {"name": "gaussian", "bandwidth": 0.4, "normalized": False, "space": "rkhs"}},
        {"comment": "hello"},
        {"version": 0},
        {"digest": "0" * 64},
        {"digest": None},
    ],
)
def test_an_edited_header_is_refused(change, saved):
    rewrite(saved, header=as_member(header_of(saved) | change))
    with pytest.raises(ValueError, match=r"mean\.npz was changed after it was written: its digest does not match; save it again"):
        KernelMean.load(saved)


def test_a_header_without_a_digest_is_refused(saved):
    header = header_of(saved)
    header.pop("digest")
    rewrite(saved, header=as_member(header))
    with pytest.raises(ValueError, match="its digest does not match"):
        KernelMean.load(saved)


@pytest.mark.parametrize("name", ["atoms", "weights"])
def test_an_edited_array_is_refused(name, saved):
    array = members(saved)[name].copy()
    array.flat[1] += 1e-9
    rewrite(saved, **{name: array})
    with pytest.raises(ValueError, match="its digest does not match"):
        KernelMean.load(saved)


def test_arrays_that_change_places_are_refused(saved):
    reordered = members(saved)["atoms"][::-1]
    rewrite(saved, atoms=reordered)
    with pytest.raises(ValueError, match="its digest does not match"):
        KernelMean.load(saved)


def test_a_newer_version_asks_for_an_upgrade(saved):
    reseal(saved, version=2)
    with pytest.raises(ValueError, match="its version is 2, this library reads up to 1; upgrade reduset"):
        KernelMean.load(saved)


@pytest.mark.parametrize("version", ["1", None, 1.5, [1], {}])
def test_a_version_that_is_no_number_is_refused(version, saved):
    reseal(saved, version=version)
    with pytest.raises(ValueError, match="its version is"):
        KernelMean.load(saved)


@pytest.mark.parametrize("kind", ["reduset.Mixture", None, 3, ["reduset.KernelMean"]])
def test_another_kind_is_named(kind, saved):
    reseal(saved, kind=kind)
    with pytest.raises(ValueError, match=r"it holds .*, not 'reduset.KernelMean'"):
        KernelMean.load(saved)


@pytest.mark.parametrize("name", ["header", "atoms", "weights"])
def test_a_missing_member_is_refused(name, saved):
    rewrite(saved, without=[name])
    with pytest.raises(ValueError, match="it has no header" if name == "header" else "belong"):
        KernelMean.load(saved)


def test_an_extra_member_is_refused(saved):
    rewrite(saved, more=np.zeros(3))
    with pytest.raises(ValueError, match=r"more.npy.* where .* belong"):
        KernelMean.load(saved)


def test_a_member_given_twice_is_refused(saved):
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(saved, "a") as file:
        file.writestr("atoms.npy", npy(np.zeros((5, 2))))
    with pytest.raises(ValueError, match=r"mean.npz"):
        KernelMean.load(saved)


def test_compressed_members_are_refused(saved):
    rewrite(saved, compressed=True)
    with pytest.raises(ValueError, match="its members are compressed, which this format never is"):
        KernelMean.load(saved)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"nonsense", b"\xff\xfe", b"[1, 2]", b'"text"', b"null", b"[" * 100_000, b'{"a": NaN}', b"{}"]
)
def test_a_header_that_is_no_json_object_is_refused(text, saved):
    rewrite(saved, header=np.frombuffer(text, np.uint8))
    with pytest.raises(ValueError, match=r"is not a readable reduset.KernelMean file"):
        KernelMean.load(saved)


def test_a_header_of_floats_is_refused(saved):
    rewrite(saved, header=np.ones(4))
    with pytest.raises(ValueError, match="its member 'header' is not a plain array"):
        KernelMean.load(saved)


GAUSSIAN = {"name": "gaussian", "bandwidth": 0.3, "normalized": False, "space": "rkhs"}


@pytest.mark.parametrize(
    "kernel",
    [
        None,
        "gaussian",
        {},
        {"name": "unheard of"},
        {"name": 3},
        {"name": ["gaussian"]},
        GAUSSIAN | {"flavour": "mild"},
        GAUSSIAN | {"bandwidth": -1.0},
        GAUSSIAN | {"bandwidth": "enormous"},
        GAUSSIAN | {"bandwidth": None},
        GAUSSIAN | {"bandwidth": [1.0]},
        GAUSSIAN | {"normalized": "yes"},
        GAUSSIAN | {"space": "l3"},
        GAUSSIAN | {"covariance": [[1.0, 2.0], [2.0, 1.0]]},
        GAUSSIAN | {"covariance": "wide"},
        GAUSSIAN | {"covariance": [[1.0], [1.0, 2.0]]},
        GAUSSIAN | {"covariance": [1.0, 1.0, 1.0]},
        {"name": "function"},
        {"name": "function", "function": "os.system", "parameters": {}},
        {"name": "function", "function": "rbf", "parameters": None},
        {"name": "function", "function": "rbf", "parameters": {"function": "laplacian"}},
        {"name": "function", "function": "rbf", "parameters": {"flavour": 3}},
        {"name": "function", "function": "rbf", "parameters": {"gamma": "x"}},
        {"name": "function", "function": "linear", "parameters": {}},
        {"name": "function", "function": ["rbf"], "parameters": {}},
    ],
    ids=str,
)
def test_a_kernel_that_cannot_be_is_refused(kernel, saved):
    reseal(saved, kernel=kernel)
    with pytest.raises(ValueError):  # noqa: PT011  # whichever rule is broken first
        KernelMean.load(saved)


def test_the_zero_function_is_saved_like_any_mean(saved):
    zero = KernelMean.load(saved) * 0.0
    zero.save(saved)
    again = KernelMean.load(saved)
    assert not again.weights.any()
    np.testing.assert_array_equal(again.atoms, zero.atoms)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("atoms", np.full((5, 2), np.nan)),
        ("atoms", np.zeros(5)),
        ("atoms", np.zeros((0, 2))),
        ("atoms", np.zeros((4, 2))),
        ("weights", np.full(5, np.inf)),
        ("weights", np.ones((5, 1))),
    ],
)
def test_resealed_arrays_are_checked_like_any_input(name, array, saved):
    content = members(saved) | {name: array}
    content.pop("header")
    header = header_of(saved)
    store(saved, header, content)
    with pytest.raises(ValueError, match=r"atoms|weights"):
        KernelMean.load(saved)


def test_files_written_together_inside_others_appear_with_those(tmp_path):
    with _archive.together():
        _archive.write_whole(tmp_path / "a", lambda stream: stream.write(b"a"))
        with _archive.together():
            _archive.write_whole(tmp_path / "b", lambda stream: stream.write(b"b"))
        assert not (tmp_path / "b").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_the_bytes_are_those_of_numpys_own_archive(saved, tmp_path):
    with np.load(saved) as there:
        np.savez(tmp_path / "numpys.npz", **there)
    assert saved.read_bytes() == (tmp_path / "numpys.npz").read_bytes()
    with zipfile.ZipFile(saved) as archive:
        assert archive.namelist() == ["header.npy", "atoms.npy", "weights.npy"]


def test_objects_are_not_written(tmp_path):
    fill = archive._fill
    with (tmp_path / "x").open("wb") as stream, pytest.raises(ValueError, match="Object arrays"):
        fill(stream, {"a": np.array([object()])})
