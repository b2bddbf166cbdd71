"""The uses take rows on a GPU: what the processor finds, and labels and values where the rows are."""

import numpy as np
import pytest

from reduset import Gaussian
from reduset.cohort import CohortMap
from reduset.density import SparseKernelDensity
from reduset.drift import DriftTest, two_sample
from reduset.modes import SparseMeanShift
from reduset.stream import StreamCompressor

pytestmark = pytest.mark.gpu


def rows(n=30_000):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(n - 8000, 3)), rng.normal(size=(8000, 3)) * 0.3 + 4]).astype(np.float32)
    return X[rng.permutation(n)]


def both(use):
    """What a use finds of rows here and there."""
    import cupy

    X = rows()
    return use(X), use(cupy.asarray(X))


@pytest.mark.parametrize("options", [{"kernel": Gaussian(1.0)}, {"half_life": 9000}], ids=str)
def test_a_stream_of_chunks_there(options):
    def streamed(X):
        stream = StreamCompressor(size=60, random_state=0, buffer=4000, **options)
        for first in range(0, len(X), 7000):
            stream.partial_fit(X[first : first + 7000])
        return stream.result()

    here, there = both(streamed)
    np.testing.assert_allclose(there.mean.atoms, here.mean.atoms, rtol=1e-9, atol=1e-9)
    assert there.certificate.relative_error == pytest.approx(here.certificate.relative_error, rel=1e-6)


def test_drift_against_a_reference_there():
    def tested(X):
        test = DriftTest(random_state=0).fit(X)
        return [test.test(X[:5000]).p_value, test.test(X[:9000] * np.float32(1.03)).p_value]

    here, there = both(tested)
    np.testing.assert_allclose(there, here, rtol=1e-2)
    assert np.argmin(here) == 1


def test_two_samples_there():
    here, there = both(lambda X: two_sample(X[:3000], X[9000:], rng=0).p_value)
    assert there == pytest.approx(here, rel=1e-3)


@pytest.mark.parametrize(
    "options", [{"size": 50}, {}, {"atoms": "own", "size": 40}, {"distance": "kl", "atoms": "shared"}, {"distance": "kl"}], ids=str
)
def test_a_map_of_bags_there(options):
    def mapped(X):
        cohort = CohortMap(layout="mds", random_state=0, **options).fit([X[k * 5000 : (k + 1) * 5000] for k in range(5)])
        return cohort.distances_, cohort.distances_to_fitted([X[25_000:]])[0]

    here, there = both(mapped)
    for one, two in zip(here, there, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"cluster_all": False, "orphan": 2.0}], ids=str)
def test_mean_shift_there(options):
    import cupy

    X = rows()
    here = SparseMeanShift(bandwidth=1.0, random_state=0, **options).fit(X)
    there = SparseMeanShift(bandwidth=1.0, random_state=0, **options).fit(cupy.asarray(X))
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, atol=1e-4)
    assert isinstance(there.labels_, cupy.ndarray)
    assert np.mean(there.labels_.get() == here.labels_) > 0.999
    found = there.predict(cupy.asarray(X[:100]))
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_array_equal(found.get(), here.predict(X[:100]))
    np.testing.assert_array_equal(there.predict(X[:100]), here.predict(X[:100]))


def test_weights_there_of_few_rows_and_of_none():
    import cupy

    X, w = rows()[:3000], np.random.default_rng(1).random(3000)
    here = SparseMeanShift(bandwidth=1.0, random_state=0).fit(X, sample_weight=w)
    there = SparseMeanShift(bandwidth=1.0, random_state=0).fit(cupy.asarray(X), sample_weight=cupy.asarray(w))
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, atol=1e-4)
    stream = StreamCompressor(kernel=Gaussian(1.0), size=20)
    stream.partial_fit(cupy.asarray(X), sample_weight=cupy.zeros(3000))
    assert stream.n_samples_seen_ == 3000


def test_mean_shift_of_tensors_and_what_it_does_not_do_there():
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(rows()).cuda()
    labels = SparseMeanShift(bandwidth=1.0, random_state=0).fit(X).labels_
    assert isinstance(labels, torch.Tensor)
    assert labels.is_cuda
    with pytest.raises(TypeError, match="via='atoms'"):
        SparseMeanShift(via="mixture").fit(X)


@pytest.mark.parametrize("options", [{"size": 80}, {"size": 80, "bandwidth": "likelihood"}, {"tol": 0.1, "max_size": 50}], ids=str)
@pytest.mark.filterwarnings("ignore:tol=")
def test_densities_there(options):
    import cupy

    X = rows()
    here = SparseKernelDensity(random_state=0, **options).fit(X)
    there = SparseKernelDensity(random_state=0, **options).fit(cupy.asarray(X))
    assert there.bandwidth_ == pytest.approx(here.bandwidth_)
    found = there.score_samples(cupy.asarray(X[:1000]))
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(found.get(), here.score_samples(X[:1000]), atol=1e-4)
    assert float(there.score(cupy.asarray(X[:100]))) == pytest.approx(here.score(X[:100]), rel=1e-5)
