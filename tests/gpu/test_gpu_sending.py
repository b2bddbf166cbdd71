"""Arrays of the processor that are sent to a GPU: the same answers, here, however the rows are streamed."""

import numpy as np
import pytest

import reduset
from reduset import Gaussian, KernelMean, Laplacian, compress
from reduset._engine import Frame, cluster_sums, device, fourier_sums, nearest
from reduset._engine.cuda import fourier, sums
from reduset._engine.cuda import nearest as near

pytestmark = pytest.mark.gpu


@pytest.fixture
def sent(monkeypatch):
    """All work is sent, a thousand rows at a time or so."""
    monkeypatch.setitem(device.LEAST_PAIRS, "cuda", 1)
    for module in (sums, fourier, near):
        monkeypatch.setattr(module, "ENTRIES", 1 << 15)
    reduset.set_device("cuda")
    yield
    reduset.set_device(None)


def cloud(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) + 5


def answers(d=3):
    X, Q = cloud(50_000, d), cloud(200, d, 1)
    w = np.random.default_rng(2).random(len(X))
    mean, frame = KernelMean(X, w, Gaussian(1.0)), Frame(np.full(d, 5.0), 1.0)
    values = [mean(Q, "double"), mean(Q), mean.log_density(Q, "double"), fourier_sums(X, w, Q - 5, frame, 6)]
    return [*values, mean.gradient(Q), nearest(X, Q, frame)[1], *cluster_sums(X, w, Q, frame)]


def test_streamed_rows_give_the_answers_of_the_processor(sent):
    there = answers()
    reduset.set_device("cpu")
    for one, two in zip(there, answers(), strict=True):
        assert isinstance(one, np.ndarray)
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-7)


def test_compress_of_rows_that_are_sent(sent):
    X = cloud(20_000, 3)
    there = compress(X, size=50, tol=0.2, rng=0)
    reduset.set_device("cpu")
    here = compress(X, size=50, tol=0.2, rng=0)
    np.testing.assert_allclose(there.mean.atoms, here.mean.atoms, rtol=1e-9)
    assert there.certificate.relative_error == pytest.approx(here.certificate.relative_error, rel=1e-6)
    assert there.certificate.bound == pytest.approx(here.certificate.bound, rel=1e-6)  # all blocks of rows are in it
    assert there.certificate.radius == pytest.approx(here.certificate.radius, rel=1e-6)


def test_what_no_kernel_does_stays_here(sent):
    X = cloud(3000, 70)
    mean = KernelMean.from_samples(X, Laplacian(50.0, metric="cityblock"))
    found = mean(X[:50])
    reduset.set_device("cpu")
    np.testing.assert_array_equal(found, mean(X[:50]))


def test_whole_numbers_and_rows_in_another_order_are_sent(sent):
    X = np.asfortranarray(np.round(cloud(20_000, 3) * 10).astype(np.int32))
    mean = KernelMean.from_samples(X, Gaussian(5.0))
    found = mean(X[:100], "double")
    reduset.set_device("cpu")
    np.testing.assert_allclose(found, mean(X[:100], "double"), rtol=1e-11)


def test_auto_sends_what_is_worth_it(monkeypatch):
    reduset.set_device("auto")
    try:
        monkeypatch.setitem(device.LEAST_PAIRS, "auto", 10**6)
        assert device.uses_gpu(np.zeros((2000, 3)), np.zeros((1000, 3)))
        assert not device.uses_gpu(np.zeros((2000, 3)), np.zeros((10, 3)))
    finally:
        reduset.set_device(None)
