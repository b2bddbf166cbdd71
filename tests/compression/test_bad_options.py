"""Options of the selectors and of moved atoms that break a rule, and data that leave a selector no choice."""

import numpy as np
import pytest

from cases import DRAWN, SELECTORS, WAYS, WITH_OWN_WEIGHTS, kernels_of, squeeze
from reduset import FunctionKernel, Gaussian, KernelMean, Laplacian, Student, compress, weigh
from reduset.density import SparseKernelDensity
from reduset.select import BY_NAME, Auto, Greedy, Herding, KCenter, KMeans, Shadow, as_selector
from reduset.weights import KINDS

GAUSSIAN = Gaussian(0.8)
KERNELS = {
    "gaussian": GAUSSIAN,
    "gaussian l2": Gaussian(0.8, space="l2", normalized=True),
    "laplacian": Laplacian(0.8),
    "cityblock l2": Laplacian(0.8, metric="cityblock", space="l2"),
    "student l2": Student(0.8, exponent=2.0, space="l2"),
    "function": FunctionKernel("rbf", gamma=0.5),
}
WAY = pytest.mark.parametrize("select", WAYS)


def cloud(n=60, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def kernels_for(select):
    functions = not isinstance(select, str) or "function" in kernels_of(select)
    return [kernel for name, kernel in KERNELS.items() if name != "function" or functions]


# -- refused, with a way out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refine", "kind", "message"),
    [
        (1.5, TypeError, "refine .*got 1.5"),
        ("yes", TypeError, "refine .*got 'yes'"),
        (None, TypeError, "refine .*got None"),
        ([5], TypeError, r"refine .*got \[5\]"),
        (0, ValueError, "refine .*got 0"),
        (-3, ValueError, "refine .*got -3"),
        (np.int64(0), ValueError, "refine .*got 0"),
    ],
)
def test_what_is_no_number_of_steps_is_refused(refine, kind, message):
    with pytest.raises(kind, match=message):
        compress(cloud(), GAUSSIAN, size=5, refine=refine)


@pytest.mark.parametrize("refine", [True, 3])
@pytest.mark.parametrize("kernel", [FunctionKernel("rbf", gamma=0.5), lambda X, Y: np.exp(-((X[:, None] - Y) ** 2).sum(axis=2))])
def test_atoms_of_a_function_cannot_be_moved(refine, kernel):
    with pytest.raises(
        TypeError, match=r"refine needs a kernel with a gradient, FunctionKernel.* has none; use Gaussian, Laplacian, Matern or"
    ):
        compress(cloud(), kernel, size=5, refine=refine)
    assert compress(cloud(), kernel, size=5, refine=False, rng=0).size == 5


@pytest.mark.parametrize("refine", [True, 3, np.True_])
def test_own_weights_do_not_move(refine):
    with pytest.raises(ValueError, match=r"weights='own'.*weights='free'"):
        compress(cloud(), GAUSSIAN, size=5, select="thinning", weights="own", refine=refine)


@pytest.mark.parametrize("refine", [False, np.False_])
def test_atoms_that_are_not_to_be_moved_stay(refine):
    small = compress(cloud(), GAUSSIAN, size=5, select="kcenter", refine=refine, rng=0)
    np.testing.assert_array_equal(small.mean.atoms, cloud()[small.indices])


@pytest.mark.parametrize(
    ("ell", "kind", "message"),
    [
        (0, ValueError, "ell .*got 0"),
        (-4.0, ValueError, "ell .*got -4.0"),
        (np.inf, ValueError, "ell .*got inf"),
        (np.nan, ValueError, "ell .*got nan"),
        ("4", TypeError, "ell .*got '4'"),
        (True, TypeError, "ell .*got True"),
        (None, TypeError, "ell .*got None"),
    ],
)
def test_what_is_no_share_of_the_bandwidth_is_refused(ell, kind, message):
    with pytest.raises(kind, match=message):
        Shadow(ell=ell)


@pytest.mark.parametrize("line_search", [1, 0, None, "yes", 0.5])
def test_what_is_no_yes_or_no_is_refused(line_search):
    with pytest.raises(TypeError, match=f"line_search .*got {line_search!r}"):
        Herding(line_search=line_search)


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_every_selector_has_its_name(name):
    assert as_selector(name) == BY_NAME[name]()
    assert type(as_selector(name)).__name__.lower() == name
    assert str(as_selector(name)) == type(as_selector(name)).__name__


@pytest.mark.parametrize("name", ["KMeans", "k-means", "kernel thinning", "", "shadows"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=f"select .*got '{name}'"):
        compress(cloud(), GAUSSIAN, size=5, select=name)


@pytest.mark.parametrize(
    "asked", [{"select": "balanced"}, {"select": "stratified"}, {"weights": "counts"}, {"pieces": "rows"}], ids=str
)
def test_sketch_is_recommended_for_real_rows(asked):
    (name, value), *_ = asked.items()
    words = rf"^{name} must be one of '.*; got '{value}'; use sketch\(data, size\) for real rows with weights$"
    with pytest.raises(ValueError, match=words):
        compress(cloud(), GAUSSIAN, size=5, **asked)
    with pytest.raises(ValueError, match=words):
        SparseKernelDensity(size=5, **asked).fit(cloud())
    if name == "weights":
        small = compress(cloud(), GAUSSIAN, size=5)
        with pytest.raises(ValueError, match=words):
            small.reweigh(KernelMean.from_samples(cloud(), GAUSSIAN), **asked)
        with pytest.raises(ValueError, match=words):
            weigh(cloud(), np.arange(5), GAUSSIAN, **asked)


@pytest.mark.parametrize("kind", [Greedy, KMeans, Auto])
def test_a_class_is_no_selector(kind):
    with pytest.raises(ValueError, match=r"select .*got <class"):
        compress(cloud(), GAUSSIAN, size=5, select=kind)


def test_another_class_is_no_selector_either():
    with pytest.raises(ValueError, match=r"select .*got <class 'int'>$"):
        compress(cloud(), GAUSSIAN, size=5, select=int)


@pytest.mark.parametrize("name", [name for name in sorted(BY_NAME) if name != "shadow"])
def test_only_shadows_end_by_themselves(name):
    with pytest.raises(ValueError, match=r"Gaussian.* has a bandwidth, so give size or tol"):
        compress(cloud(), GAUSSIAN, select=name)
    assert not as_selector(name).ending
    assert as_selector("shadow").ending


def test_shadows_take_one_goal_at_most():
    with pytest.raises(ValueError, match=r"give exactly one of .*; got size and tol"):
        compress(cloud(), GAUSSIAN, select="shadow", size=5, tol=0.1)
    with pytest.raises(ValueError, match=r"max_size .*got 0"):
        compress(cloud(), GAUSSIAN, select="shadow", max_size=0)


@pytest.mark.parametrize("select", SELECTORS)
def test_selectors_check_their_arguments(select):
    full = KernelMean.from_samples(cloud(), GAUSSIAN)
    with pytest.raises(TypeError, match=r"mean .*got ndarray"):
        SELECTORS[select].select(cloud(), 3)
    for size in (0, 61):
        with pytest.raises(ValueError, match=f"size .*got {size}"):
            SELECTORS[select].select(full, size)
    with pytest.raises(TypeError, match=r"size .*got 3\.0"):
        SELECTORS[select].select(full, 3.0)
    with pytest.raises(TypeError, match=r"rng .*got 'seed'"):
        SELECTORS[select].select(full, 3, rng="seed")


@pytest.mark.parametrize("select", ["shadow", "herding", "auto"])
def test_selectors_are_frozen(select):
    option = {"shadow": "ell", "herding": "line_search", "auto": "budget"}[select]
    with pytest.raises(AttributeError):
        setattr(SELECTORS[select], option, 2.0)


@pytest.mark.parametrize("select", SELECTORS)
def test_selections_tell_their_progress(select):
    seen = []
    chosen = SELECTORS[select].select(
        KernelMean.from_samples(cloud(200), GAUSSIAN), 30, rng=0, progress=lambda *each: seen.append(each)
    )
    assert len(chosen.atoms) == 30
    assert seen
    assert all(0 <= done <= total for done, total in seen)
    if select != "auto":  # which begins anew with every selector that it tries
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)


# -- the right answer where one exists -------------------------------------------------------------------------------


@pytest.mark.fast_cases(8)
@WAY
def test_one_point_is_its_own_compression(select):
    for kernel in kernels_for(select):
        for goal in ({"size": 1}, {"tol": 0.1}, {"plateau": 1e-3}):
            small = squeeze([[1.0, 2.0, 3.0]], kernel, select, rng=0, **goal)
            np.testing.assert_array_equal(small.mean.atoms, [[1.0, 2.0, 3.0]])
            np.testing.assert_allclose(small.mean.weights, [1.0], rtol=1e-14)
            assert small.certificate.relative_error == pytest.approx(0, abs=1e-12)
            assert small.reached


@pytest.mark.covering_cases
@pytest.mark.parametrize("select", [*WAYS, KCenter(), KCenter(groups=np.arange(100) // 100)])
@pytest.mark.parametrize("weights", KINDS)
def test_a_constant_cloud_compresses_to_one_atom_with_error_zero(select, weights):
    for kernel in kernels_for(select):
        small = squeeze(np.full((100, 3), 0.1), kernel, select, size=5, rng=0, weights=weights)
        np.testing.assert_array_equal(small.mean.atoms, [[0.1, 0.1, 0.1]])
        np.testing.assert_allclose(small.mean.weights, [1.0], rtol=1e-12)
        assert small.certificate.relative_error == pytest.approx(0, abs=1e-12)
        assert small.certificate.bound is None or small.certificate.bound == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("select", WITH_OWN_WEIGHTS)
def test_a_constant_cloud_has_error_zero_with_own_weights(select):
    for kernel in kernels_for(select):
        small = squeeze(np.full((100, 3), 0.1), kernel, select, size=5, rng=0, weights="own")
        assert small.mean.mass == pytest.approx(1)
        assert small.certificate.relative_error == pytest.approx(0, abs=1e-7)


@WAY
@pytest.mark.parametrize("goal", [{"tol": 0.01}, {"plateau": 1e-3}])
def test_a_constant_cloud_reaches_any_goal_with_one_atom(select, goal):
    small = squeeze(np.ones((100, 3)), GAUSSIAN, select, rng=0, **goal)
    assert (small.size, small.reached) == (1, True)
    assert small.certificate.relative_error == pytest.approx(0, abs=1e-12)


@pytest.mark.fast_cases(15)
@WAY
def test_fewer_distinct_points_than_size_give_that_many_atoms_and_no_error(select):
    X = np.repeat(3 * cloud(6), 20, axis=0)
    for kernel in kernels_for(select):
        small = squeeze(X, kernel, select, size=120, rng=0)
        assert small.size == len(np.unique(small.mean.atoms, axis=0)) == 6
        np.testing.assert_allclose(small.mean.weights, 1 / 6, rtol=1e-8)
        assert small.certificate.relative_error == pytest.approx(0, abs=1e-7)


@pytest.mark.covering_cases
@WAY
@pytest.mark.parametrize("width", [1e100, 1e300])
@pytest.mark.parametrize("covariance", [None, np.diag([1.0, 2.0, 3.0])], ids=["round", "oblique"])
def test_a_bandwidth_beyond_the_data_leaves_one_atom(select, width, covariance):
    small = squeeze(cloud(), Gaussian(width, covariance=covariance), select, size=12, rng=0)
    assert small.size == 1
    assert small.certificate.relative_error == pytest.approx(0, abs=1e-7)


@pytest.mark.covering_cases
@pytest.mark.filterwarnings("ignore:Shadow. ell")
@pytest.mark.parametrize("select", [name for name in WAYS if "kmeans" not in name])  # whose centres see no point then
@pytest.mark.parametrize("width", [1e-140, 1e-100, 1e-40, 1e-20])
@pytest.mark.parametrize("covariance", [None, np.diag([1.0, 2.0, 3.0])], ids=["round", "oblique"])
def test_a_bandwidth_below_every_distance_keeps_each_point_to_itself(select, width, covariance):
    small = squeeze(cloud(), Gaussian(width, covariance=covariance), select, size=12, rng=0)
    np.testing.assert_allclose(small.mean.weights, 1 / 60, rtol=1e-9)
    assert small.certificate.relative_error == pytest.approx(np.sqrt(1 - 12 / 60), rel=1e-6)


@WAY
def test_a_constant_column_does_no_harm(select):
    X = cloud(120)
    X[:, 1] = 7.0
    with_it, without = (squeeze(Z, GAUSSIAN, select, size=20, rng=0) for Z in (X, X[:, [0, 2]]))
    assert with_it.certificate.relative_error == pytest.approx(without.certificate.relative_error, rel=1e-4)
    np.testing.assert_allclose(with_it.mean.atoms[:, 1], 7.0, rtol=1e-12)


@pytest.mark.parametrize("select", DRAWN)
def test_weights_of_any_size_are_drawn_by(select):
    """One row outweighs all others by far, and is an atom."""
    w = np.full(60, 1e-12)
    w[17] = 1.0
    small = squeeze(cloud(), GAUSSIAN, select, size=10, rng=0, sample_weight=w)
    assert np.abs(small.mean.atoms - cloud()[17]).sum(axis=1).min() < 1e-6
    assert small.certificate.relative_error < 1e-6
