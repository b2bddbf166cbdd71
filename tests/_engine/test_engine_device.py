"""Which device computes, what is refused, and how errors of a GPU are told; all that needs no GPU."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import reduset
from reduset import Gaussian, KernelMean
from reduset._engine import LabelSums, device, random_rows
from reduset._engine.cuda import guard
from reduset._validate import rows as _rows


class CUDARuntimeError(RuntimeError):
    def __init__(self, status, words="cudaError"):
        super().__init__(words)
        self.status = status


class OutOfMemoryError(MemoryError):
    pass


def library(count=0, error=None):
    """As much of CuPy as says whether there is a card."""

    def cards():
        if error is not None:
            raise error
        return count

    freed = []
    pool = SimpleNamespace(free_all_blocks=lambda: freed.append(True))
    runtime = SimpleNamespace(getDeviceCount=cards, CUDARuntimeError=CUDARuntimeError)
    cuda = SimpleNamespace(runtime=runtime, memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError))
    return SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: pool, freed=freed, ndarray=type("ndarray", (), {}))


@pytest.fixture
def cupy(monkeypatch):
    def put(module):
        monkeypatch.setitem(sys.modules, "cupy", module)
        device.has_gpu.cache_clear()
        return module

    yield put
    reduset.set_device(None)
    device.has_gpu.cache_clear()


class OnDevice:
    """What says that it lies on a GPU."""

    shape = (10_000, 3)

    def __dlpack_device__(self):
        return (2, 0)

    def __len__(self):
        return 10_000


def test_nothing_is_sent_unless_it_is_said(cupy):
    cupy(library(1))
    assert reduset.get_device() == "cpu"
    assert not device.uses_gpu(np.zeros((10**6, 3)), np.zeros((10**4, 3)))
    assert device.uses_gpu(OnDevice(), np.zeros((1, 3)))
    assert device.uses_gpu(np.zeros((1, 3)), OnDevice())


def test_what_is_worth_it_is_sent_by_what_is_set(cupy):
    cupy(library(1))
    X = np.broadcast_to(0.0, (10**6, 3))
    for name, least in device.LEAST_PAIRS.items():
        reduset.set_device(name)
        assert reduset.get_device() == name
        assert device.uses_gpu(X, np.broadcast_to(0.0, (least // 10**6 + 1, 3)))
        assert not device.uses_gpu(X[: least // 100], np.zeros((10, 3)))
        assert not device.uses_gpu(X, np.broadcast_to(0.0, (10**4, 3)), supported=False)
    reduset.set_device("cpu")
    assert not device.uses_gpu(X, X)
    reduset.set_device(None)
    assert reduset.get_device() == "cpu"


def test_the_environment_says_so_too(cupy, monkeypatch):
    cupy(library(1))
    monkeypatch.setenv("REDUSET_DEVICE", "auto")
    assert reduset.get_device() == "auto"
    monkeypatch.setenv("REDUSET_DEVICE", "tpu")
    with pytest.raises(ValueError, match=r"REDUSET_DEVICE .*got 'tpu'"):
        reduset.get_device()


@pytest.mark.parametrize("wrong", ["gpu", 0, "CUDA", ["cuda"]])
def test_other_devices_are_refused(wrong):
    with pytest.raises(ValueError, match=r"device must .*'cpu'.*'cuda'.*'auto'"):
        reduset.set_device(wrong)


def test_no_library_no_card_and_an_old_driver_are_told_in_one_sentence(cupy):
    cupy(None)
    with pytest.raises(ImportError, match=r"^device 'cuda' needs cupy, not installed: pip install 'reduset\[gpu\]'; or use 'cpu'$"):
        reduset.set_device("cuda")
    cupy(library(0))
    with pytest.raises(guard.DeviceError, match="there is no GPU that CUDA can use; use 'cpu', or 'auto' where"):
        reduset.set_device("cuda")
    cupy(library(error=CUDARuntimeError(35, "driver version is insufficient")))
    with pytest.raises(guard.DeviceError, match="the driver of the GPU is too old for this CuPy"):
        reduset.set_device("cuda")
    cupy(library(error=CUDARuntimeError(100, "no CUDA-capable device")))
    with pytest.raises(guard.DeviceError, match="there is no GPU that CUDA can use"):
        reduset.set_device("cuda")
    assert reduset.get_device() == "cpu"
    reduset.set_device("auto")  # which may be said anywhere
    assert not device.uses_gpu(np.broadcast_to(0.0, (10**6, 3)), np.broadcast_to(0.0, (10**4, 3)))


def test_a_device_that_vanishes_and_memory_that_is_spent_are_told(cupy):
    module = cupy(library(1))
    with (
        pytest.raises(guard.DeviceError, match=r"the GPU stopped responding .*; input data are unchanged"),
        guard.cuda_errors(),
    ):
        raise CUDARuntimeError(719, "unspecified launch failure")
    with pytest.raises(MemoryError, match=r"the GPU has no memory left for a block of work .* copy X to"), guard.cuda_errors():
        raise OutOfMemoryError("8 bytes")
    assert module.freed


def test_work_goes_on_in_smaller_blocks_where_there_is_no_room(cupy):
    module = cupy(library(1))
    tried = []

    def work(rows):
        tried.append(rows)
        if rows > 20_000:
            raise OutOfMemoryError
        return rows

    assert guard.with_fitting_blocks(work, 100_000) == tried[-1] <= 20_000
    assert tried[1:] == [rows // 8192 * 8192 for rows in tried[1:]]
    assert len(module.freed) == len(tried) - 1

    def hopeless(rows):
        raise OutOfMemoryError

    with pytest.raises(OutOfMemoryError):
        guard.with_fitting_blocks(hopeless, 100_000)


def test_weights_of_rows_lie_where_the_rows_do():
    class OnCard(OnDevice):
        shape = (5,)

    X = np.arange(15.0).reshape(5, 3)
    with pytest.raises(ValueError, match=r"sample_weight .*got one on a GPU"):
        KernelMean.from_samples(X, Gaussian(1.0), OnCard())
    with pytest.raises(ValueError, match=r"sample_weight must be on the GPU.*got an array in main memory"):
        _rows.weights(np.ones(5), OnDevice(), 5)


def test_sums_by_label_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    labels, values = rng.integers(0, 7, 1000), rng.normal(size=1000)
    expected = [values[labels == k].sum() for k in range(9)]
    np.testing.assert_allclose(LabelSums(labels, 9).of(values), expected, atol=1e-12)


@pytest.mark.parametrize(("count", "most"), [(100, 30), (100, 100), (100_000, 20)])
def test_the_first_of_a_random_order_come_once_and_again(count, most):
    found = random_rows(count, most, np.random.default_rng(3))
    assert len(np.unique(found)) == most
    assert 0 <= found.min() <= found.max() < count
    np.testing.assert_array_equal(found, random_rows(count, most, np.random.default_rng(3)))


@pytest.mark.parametrize("weights", [-np.ones(5000), np.where(np.arange(5000) < 10, 0.0, -1.0)], ids=["negative", "none above 0"])
def test_logarithms_of_sums_that_are_negative_are_none(weights):
    X = np.random.default_rng(5).normal(size=(5000, 2))
    with np.errstate(invalid="ignore"):
        assert np.isnan(KernelMean(X, weights, Gaussian(1.0)).log_density(X[:1000])).all()


def test_logarithms_in_single_precision_are_right_to_1e_5_and_in_double_in_the_tails():
    rng = np.random.default_rng(4)
    mean = KernelMean.from_samples(rng.normal(size=(5000, 3)), Gaussian(0.3))
    Q = np.concatenate([rng.normal(size=(3000, 3)), rng.normal(size=(50, 3)) * 50])
    exact = mean.log_density(Q, "double")
    np.testing.assert_allclose(mean.log_density(Q), exact, atol=1e-5)
    np.testing.assert_array_equal(mean.log_density(Q)[-50:][exact[-50:] < -100], exact[-50:][exact[-50:] < -100])
    assert not np.array_equal(mean.log_density(Q), exact)
