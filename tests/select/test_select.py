"""Selectors: k-centre by its definition, its options and its groups; random by its probabilities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cdist

from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student
from reduset.select import KCenter, Random, Selection, Selector, as_selector

GAUSSIAN = Gaussian(0.7)


def mean_of(n=200, d=3, seed=0, kernel=GAUSSIAN, sample_weight=None):
    return KernelMean.from_samples(np.random.default_rng(seed).normal(size=(n, d)), kernel, sample_weight)


def farthest_first(D, first, size):
    """The definition: each next row has the largest distance to the chosen, the lowest row first."""
    chosen = [first]
    while len(chosen) < size:
        chosen.append(int(np.argmax(D[:, chosen].min(axis=1))))
    return chosen


def in_groups(D, labels, firsts, size):
    """The definition with groups: each point's distance is to the atoms of its own group."""
    chosen = list(firsts)
    while len(chosen) < size:
        gap = np.array([min(D[i, j] for j in chosen if labels[j] == labels[i]) for i in range(len(D))])
        chosen.append(int(np.argmax(gap)))
    return chosen


# -- k-centre --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "metric"),
    [
        (GAUSSIAN, "euclidean"),
        (Gaussian(0.7, space="l2", normalized=True), "euclidean"),
        (Laplacian(0.7), "euclidean"),
        (Laplacian(0.7, metric="cityblock"), "cityblock"),
        (Laplacian(0.7, metric="cityblock", space="l2"), "cityblock"),
        (Student(0.7, exponent=3, space="l2"), "euclidean"),
    ],
    ids=repr,
)
def test_kcenter_is_farthest_first(kernel, metric):
    f = mean_of(kernel=kernel)
    chosen = KCenter(first=7).select(f, 30)
    assert chosen.indices.tolist() == farthest_first(cdist(f.atoms, f.atoms, metric), 7, 30)
    np.testing.assert_array_equal(chosen.atoms, f.atoms[chosen.indices])


def test_a_covariance_changes_what_is_far():
    covariance = np.array([[4.0, 0.5, 0], [0.5, 0.1, 0], [0, 0, 1.0]])
    f = mean_of(kernel=Gaussian(0.7, covariance=covariance))
    D = cdist(f.atoms, f.atoms, "mahalanobis", VI=np.linalg.inv(covariance))
    assert KCenter(first=7).select(f, 30).indices.tolist() == farthest_first(D, 7, 30)


@pytest.mark.parametrize("exponent", [-200, -22, 30, 38, 100, 149])
@pytest.mark.parametrize("family", [Gaussian, Laplacian])
def test_the_scale_of_the_data_does_not_matter(exponent, family):
    """Squares of the smallest leave the range of float64, those of the others that of float32."""
    unit, scale = mean_of(kernel=family(0.7)), 10.0**exponent
    scaled = KernelMean(unit.atoms * scale, unit.weights, family(0.7 * scale))
    one, other = (KCenter(first=7).select(f, 40) for f in (unit, scaled))
    np.testing.assert_array_equal(other.indices, one.indices)
    np.testing.assert_allclose(other.radii, one.radii, rtol=1e-4)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60), d=st.integers(1, 4), grid=st.booleans())
def test_radii_are_the_covering_radii_of_every_prefix(seed, n, d, grid):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(n, d)).astype(float) if grid else rng.normal(size=(n, d))
    f = KernelMean.from_samples(X, GAUSSIAN)
    chosen = KCenter("random").select(f, n, rng=0)
    D = cdist(X, X)
    true = np.array([D[:, chosen.indices[: j + 1]].min(axis=1).max() for j in range(len(chosen.indices))])
    scaled = true * np.sqrt(0.5) / 0.7  # the coordinates of the kernel, exp(−r²) with r = distance / √2h
    assert np.all(chosen.radii >= scaled * (1 - 1e-12))
    np.testing.assert_allclose(chosen.radii, scaled, rtol=1e-4, atol=1e-5)
    assert len(np.unique(X[chosen.indices], axis=0)) == len(chosen.indices) == len(np.unique(X, axis=0))


def test_first_is_the_row_given():
    for row in (0, 5, np.int64(199)):
        assert KCenter(first=row).select(mean_of(), 3).indices[0] == row


def test_first_mean_is_the_row_nearest_the_weighted_mean():
    w = np.random.default_rng(1).uniform(0, 1, size=200) ** 4
    f = mean_of(sample_weight=w)
    centre = np.average(f.atoms, axis=0, weights=w)
    nearest = np.argmin(np.where(w > 0, ((f.atoms - centre) ** 2).sum(axis=1), np.inf))
    for seed in range(3):
        assert KCenter(first="mean").select(f, 1, rng=seed).indices[0] == nearest


def test_first_mean_ignores_rows_of_no_weight():
    X = np.array([[0.0], [1.0], [5.0], [6.0]])
    f = KernelMean(X, [0.0, 0.0, 1.0, 3.0], GAUSSIAN)
    assert KCenter(first="mean").select(f, 1).indices[0] == 3


def test_first_mean_counts_negative_weights_by_their_size():
    X = np.array([[0.0], [1.0], [2.0]])
    assert KCenter(first="mean").select(KernelMean(X, [1.0, -1.0, 1.0], GAUSSIAN), 1).indices[0] == 1


def test_first_random_depends_on_the_seed_alone():
    f = mean_of()
    firsts = [KCenter().select(f, 1, rng=seed).indices[0] for seed in range(40)]
    assert firsts == [KCenter().select(f, 1, rng=seed).indices[0] for seed in range(40)]
    assert len(set(firsts)) > 20


def test_first_random_follows_the_weights():
    f = KernelMean(np.arange(4.0).reshape(-1, 1), [1.0, 0.0, -2.0, 3.0], GAUSSIAN)
    rng = np.random.default_rng(0)
    counts = np.bincount([KCenter().select(f, 1, rng=rng).indices[0] for _ in range(600)], minlength=4)
    assert counts[1] == 0
    assert stats.chisquare(counts[[0, 2, 3]], [100, 200, 300]).pvalue > 0.01


@pytest.mark.parametrize("first", [-1, 200, 1.0, True, None, "last", [3]])
def test_other_firsts_are_refused(first):
    with pytest.raises((TypeError, ValueError), match="first must be"):
        KCenter(first=first).select(mean_of(), 3)


def test_a_first_row_of_no_weight_is_refused():
    f = KernelMean(np.arange(4.0).reshape(-1, 1), [1.0, 0.0, 2.0, 3.0], GAUSSIAN)
    with pytest.raises(ValueError, match="first must be a row of non-zero weight, row 1 has weight 0"):
        KCenter(first=1).select(f, 2)


def test_rows_of_no_weight_are_never_chosen():
    w = np.arange(200) % 2
    f = mean_of(sample_weight=w)
    for selector in (KCenter("mean"), KCenter(), Random(), KCenter(groups=np.arange(200) % 3)):
        chosen = selector.select(f, 150, rng=0).indices
        assert len(chosen) == 100
        assert np.all(w[chosen] == 1)


@pytest.mark.parametrize("selector", [KCenter("mean"), KCenter(), Random(), KCenter("mean", groups=np.arange(200) % 3)])
def test_selections_are_nested(selector):
    f = mean_of()
    longest = selector.select(f, 120, rng=0).indices
    for size in (1, 2, 9, 40, 119):
        np.testing.assert_array_equal(selector.select(f, size, rng=0).indices, longest[:size])
    assert len(set(longest.tolist())) == 120


def test_a_function_kernel_chooses_as_the_radial_kernel_it_writes_out():
    gamma = 1 / (2 * 0.7**2)
    radial, written = mean_of(), mean_of(kernel=FunctionKernel("rbf", gamma=gamma))
    expected = KCenter(first=7).select(radial, 40)
    chosen = KCenter(first=7).select(written, 40)
    np.testing.assert_array_equal(chosen.indices, expected.indices)
    # distances of the feature space, 2 − 2k, against those of the coordinates
    np.testing.assert_allclose(chosen.radii, np.sqrt(2 - 2 * np.exp(-np.square(expected.radii))), rtol=1e-4)
    groups = np.arange(200) % 3
    np.testing.assert_array_equal(
        KCenter(first=7, groups=groups).select(written, 40).indices, KCenter(first=7, groups=groups).select(radial, 40).indices
    )


def test_a_function_kernel_of_negative_values_is_farthest_first_in_feature_space():
    f = mean_of(kernel=FunctionKernel("cosine"))
    K = np.clip(f.kernel.product_gram(f.atoms, f.atoms), -1, 1)
    assert KCenter(first=7).select(f, 20).indices.tolist() == farthest_first(2 - 2 * K, 7, 20)


# -- groups ----------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 60), count=st.integers(1, 4), share=st.floats(0, 1))
def test_groups_solve_the_discriminative_problem(seed, n, count, share):
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, 2)), rng.integers(0, count, size=n)
    f = KernelMean.from_samples(X, GAUSSIAN)
    present = len(np.unique(labels))
    size = present + int(share * (n - present))
    chosen = KCenter(first=0, groups=labels).select(f, size)
    firsts = chosen.indices[:present].tolist()
    assert firsts[0] == 0
    assert sorted(labels[firsts]) == sorted(np.unique(labels))
    assert chosen.indices.tolist() == in_groups(cdist(X, X), labels, firsts, size)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(6, 60))
def test_the_radii_of_groups_cover_each_point_by_its_own_group(seed, n):
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, 2)), np.arange(n) % 3
    chosen = KCenter("mean", groups=labels).select(KernelMean.from_samples(X, GAUSSIAN), n)
    D = cdist(X, X) * np.sqrt(0.5) / 0.7
    for j in range(3, n):
        rows = chosen.indices[: j + 1]
        gap = [D[i, [k for k in rows if labels[k] == labels[i]]].min() for i in range(n)]
        assert chosen.radii[j] >= max(gap) * (1 - 1e-12)
        assert chosen.radii[j] == pytest.approx(max(gap), rel=1e-4, abs=1e-5)


def test_a_single_group_is_no_group():
    f = mean_of()
    for first in (3, "mean", "random"):
        np.testing.assert_array_equal(
            KCenter(first, groups=np.zeros(200)).select(f, 50, rng=0).indices, KCenter(first).select(f, 50, rng=0).indices
        )


@pytest.mark.parametrize("labels", [["a", "b"] * 100, np.arange(200) % 2 == 0, (np.arange(200) % 2).astype(np.uint8)])
def test_labels_may_be_of_any_type(labels):
    chosen = KCenter(first=0, groups=labels).select(mean_of(), 20).indices
    np.testing.assert_array_equal(chosen, KCenter(first=0, groups=np.arange(200) % 2).select(mean_of(), 20).indices)


def test_a_group_of_no_weight_gets_no_atom():
    w = np.where(np.arange(200) % 4 == 3, 0.0, 1.0)
    chosen = KCenter(groups=np.arange(200) % 4).select(mean_of(sample_weight=w), 30, rng=0).indices
    assert set(chosen % 4) == {0, 1, 2}


def test_small_groups_run_out_and_the_others_go_on():
    labels = np.where(np.arange(200) < 2, 0, np.where(np.arange(200) < 10, 1, 2))
    chosen = KCenter(groups=labels).select(mean_of(), 200, rng=0).indices
    assert sorted(chosen) == list(range(200))


@pytest.mark.parametrize("labels", [[0, 1], np.zeros((200, 1)), 3])
def test_groups_of_the_wrong_shape_are_refused(labels):
    with pytest.raises(ValueError, match=r"groups must have shape \(200,\), one label per point; got"):
        KCenter(groups=labels).select(mean_of(), 3)


# -- random ----------------------------------------------------------------------------------------------------------


def test_random_is_without_replacement_and_reproducible():
    f = mean_of()
    chosen = Random().select(f, 200, rng=0)
    assert sorted(chosen.indices) == list(range(200))
    np.testing.assert_array_equal(chosen.indices, Random().select(f, 200, rng=0).indices)
    assert not np.array_equal(chosen.indices, Random().select(f, 200, rng=1).indices)
    assert chosen.radii is None


def test_the_first_random_atom_is_drawn_by_weight():
    w = np.array([0.0, 1.0, 2.0, -3.0, 4.0])
    f = KernelMean(np.arange(5.0).reshape(-1, 1), w, GAUSSIAN)
    rng = np.random.default_rng(0)
    counts = np.bincount([Random().select(f, 1, rng=rng).indices[0] for _ in range(2000)], minlength=5)
    assert counts[0] == 0
    assert stats.chisquare(counts[1:], 2000 * np.abs(w[1:]) / 10).pvalue > 0.01


def test_the_second_random_atom_is_drawn_by_weight_from_the_rest():
    w = np.array([1.0, 2.0, 3.0])
    f = KernelMean(np.arange(3.0).reshape(-1, 1), w, GAUSSIAN)
    rng = np.random.default_rng(0)
    pairs = [tuple(Random().select(f, 2, rng=rng).indices.tolist()) for _ in range(3000)]
    expected = {(i, j): w[i] / 6 * w[j] / (6 - w[i]) for i in range(3) for j in range(3) if i != j}
    counts = [pairs.count(pair) for pair in expected]
    assert stats.chisquare(counts, 3000 * np.array(list(expected.values()))).pvalue > 0.01


# -- the contract ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [("kcenter", KCenter), ("random", Random)])
def test_selectors_have_names(name, kind):
    assert as_selector(name) == kind()
    assert isinstance(as_selector(name), Selector)
    given = kind()
    assert as_selector(given) is given


@pytest.mark.parametrize("selector", [KCenter("mean"), Random(), KCenter(groups=np.arange(200) % 3)])
@pytest.mark.parametrize("kernel", [GAUSSIAN, Laplacian(0.7, metric="cityblock"), FunctionKernel("rbf", gamma=1.0)], ids=repr)
def test_a_selection_holds_rows_of_the_data(selector, kernel):
    f = mean_of(kernel=kernel)
    chosen = selector.select(f, 25, rng=0)
    assert isinstance(chosen, Selection)
    assert chosen.atoms.dtype == np.float64
    assert chosen.indices.dtype == np.int64
    np.testing.assert_array_equal(chosen.atoms, f.atoms[chosen.indices])
    assert not np.shares_memory(chosen.atoms, f.atoms)


@pytest.mark.parametrize("selector", [KCenter("mean"), Random()])
def test_a_selection_tells_its_progress(selector):
    seen = []
    selector.select(mean_of(), 150, rng=0, progress=lambda done, total: seen.append((done, total)))
    done = [k for k, _ in seen]
    assert done == sorted(done)
    assert seen[-1] == (150, 150)


def test_selectors_are_frozen():
    with pytest.raises(AttributeError):
        KCenter().first = 3
