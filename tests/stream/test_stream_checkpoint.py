"""Checkpoints: going on from one is as if nothing had happened, and a file that is not one is refused and kept."""

import os
import zipfile
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archive_cases import parts, store
from cases import COVARIANCE
from reduset import Gaussian, KernelMean, Laplacian, Student
from reduset.stream import StreamCompressor
from stream_cases import assert_identical, mixture, ordered, streamed


@cache
def unbroken():
    X = ordered(mixture(2000, 3), "sorted")
    return X, streamed(X, buffer=250).result()


@settings(max_examples=8, deadline=None)
@given(cut=st.integers(1, 2000), again=st.integers(1, 2000))
def test_a_stream_that_is_resumed_ends_as_if_unbroken(cut, again, tmp_path_factory):
    path = tmp_path_factory.mktemp("streams") / "state.npz"
    X, expected = unbroken()
    first, second = sorted((cut, again))
    streamed(X[:first], buffer=250).checkpoint(path)
    StreamCompressor.resume(path).partial_fit(X[first:second]).checkpoint(path)
    resumed = StreamCompressor.resume(path).partial_fit(X[second:])
    assert resumed.n_samples_seen_ == 2000
    assert_identical(resumed.result(), expected)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": Gaussian("median")},
        {"kernel": Gaussian(1.0, covariance=COVARIANCE, normalized=True, space="l2")},
        {"kernel": Laplacian(1.0, metric="cityblock")},
        {"kernel": Student(1.0, exponent=2.5)},
        {"half_life": 700.0, "weights": "simplex", "confidence": 0.8},
        {"select": "kcenter"},
    ],
)
def test_everything_that_a_stream_was_begun_with_comes_back(options, tmp_path):
    X, w = mixture(2600, 2), np.linspace(1, 2, 2600)
    streamed(X[:1300], sample_weight=w[:1300], **options).checkpoint(tmp_path / "state.npz", {"files": ["a", "b"]})
    resumed = StreamCompressor.resume(tmp_path / "state.npz")
    assert resumed.about_ == {"files": ["a", "b"]}
    unbroken = streamed(X[:1300], sample_weight=w[:1300], **options).partial_fit(X[1300:], sample_weight=w[1300:])
    assert_identical(resumed.partial_fit(X[1300:], sample_weight=w[1300:]).result(), unbroken.result())
    given = {name: value for name, value in resumed.get_params(deep=False).items() if name != "random_state"}
    assert given == {name: value for name, value in unbroken.get_params(deep=False).items() if name != "random_state"}


def test_a_stream_that_has_only_gathered_can_be_written(tmp_path):
    X = mixture(700, 2)
    streamed(X[:100]).checkpoint(tmp_path / "state.npz")
    assert_identical(StreamCompressor.resume(tmp_path / "state.npz").partial_fit(X[100:]).result(), streamed(X).result())


def test_a_merged_stream_and_a_sibling_can_be_written(tmp_path):
    X = mixture(3000, 2)
    merged = streamed(X[:1500]).merge(streamed(X[1500:], seed=1))
    merged.checkpoint(tmp_path / "merged.npz")
    assert_identical(StreamCompressor.resume(tmp_path / "merged.npz").result(), merged.result())
    sibling = merged.sibling()
    sibling.checkpoint(tmp_path / "sibling.npz")
    more = mixture(900, 2, 5)
    assert_identical(
        StreamCompressor.resume(tmp_path / "sibling.npz").partial_fit(more).result(), sibling.partial_fit(more).result()
    )


def test_the_size_of_a_checkpoint_does_not_grow_with_the_stream(tmp_path):
    X = mixture(40_000, 2)
    sizes = []
    for rows in (10_000, 40_000):
        streamed(X[:rows], 5000).checkpoint(tmp_path / "state.npz")
        sizes.append(os.path.getsize(tmp_path / "state.npz"))
    assert sizes[1] <= 1.1 * sizes[0]


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "state.npz"
    streamed(mixture(1200, 2)).checkpoint(path)
    return path


def assert_refused(path, words):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=words) as caught:
        StreamCompressor.resume(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused_and_kept(share, written):
    data = written.read_bytes()
    written.write_bytes(data[: int(share * len(data))])
    assert_refused(written, "is not a readable reduset.StreamCompressor file")


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_a_file_with_a_changed_byte_is_refused_and_kept(place, written):
    data = bytearray(written.read_bytes())
    data[int(place * len(data))] ^= 0x55
    written.write_bytes(bytes(data))
    assert_refused(written, "state.npz")


def test_foreign_files_are_refused_and_kept(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a checkpoint")
    assert_refused(text, "is not a readable")
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, X=np.ones(3))
    assert_refused(arrays, "it has no header")
    mean = tmp_path / "mean.npz"
    KernelMean.from_samples(mixture(20, 2), Gaussian(1.0)).save(mean)
    assert_refused(mean, "it holds 'reduset.KernelMean', not 'reduset.StreamCompressor'")
    with pytest.raises(FileNotFoundError, match="no such file"):
        StreamCompressor.resume(tmp_path / "nothing.npz")


def test_a_checkpoint_is_no_mean(written):
    with pytest.raises(ValueError, match=r"it holds 'reduset\.StreamCompressor'"):
        KernelMean.load(written)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda header, arrays: header.pop("settings"), "settings is missing"),
        (lambda header, arrays: header["settings"].update(size=-1), r"settings\.size must be between 1"),
        (lambda header, arrays: header["settings"].update(kernel={"name": "nothing"}), "kernel"),
        (lambda header, arrays: header.update(mass="much"), "mass"),
        (lambda header, arrays: header.update(dimension=3), "columns|shape"),
        (lambda header, arrays: header["ending"].update(weights="own"), "weights"),
        (lambda header, arrays: arrays.update(kappa=arrays["kappa"][:-1]), "kappa"),
        (lambda header, arrays: arrays.update(waves=arrays["waves"][:, :2]), "waves"),
        (lambda header, arrays: arrays.update(reach=arrays["reach"][None]), "reach"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused_and_kept(change, words, written):
    header, arrays = parts(written)
    change(header, arrays)
    store(written, header, arrays)
    assert_refused(written, words)


def test_nothing_in_a_file_is_ever_unpickled(written, tmp_path):
    evil = tmp_path / "evil.npz"
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(evil, "w") as target:
        for member in source.infolist():
            data = source.read(member)
            if member.filename == "origin.npy":
                np.save(tmp_path / "objects.npy", np.array([object], dtype=object), allow_pickle=True)
                data = (tmp_path / "objects.npy").read_bytes()
            target.writestr(member.filename, data)
    assert_refused(evil, "not a plain array of numbers")


def test_a_write_that_fails_leaves_the_checkpoint_before(written, monkeypatch):
    before = written.read_bytes()
    stream = StreamCompressor.resume(written).partial_fit(mixture(100, 2))

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        stream.checkpoint(written)
    assert written.read_bytes() == before
    assert [each.name for each in written.parent.iterdir()] == ["state.npz"]


def test_a_checkpoint_is_on_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    events = []
    flush, move = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append("flushed"), flush(handle)))
    monkeypatch.setattr(os, "replace", lambda *paths: (events.append("moved"), move(*paths)))
    streamed(mixture(700, 2)).checkpoint(tmp_path / "state.npz")
    assert events == ["flushed", "moved", "flushed"]  # the file, and then the folder
