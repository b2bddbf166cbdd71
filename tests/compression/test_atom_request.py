"""One request for atoms in every estimator that compresses, and the ε rule of the 2017 paper against a slow k-centre in each."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import reference_select as reference
from reduset import Gaussian, KernelMean, compress
from reduset._messages import NotReachedWarning
from reduset.cohort import CohortMap
from reduset.compression import AtomRequest, at_most_one
from reduset.density import SparseKernelDensity
from reduset.modes import SparseMeanShift, segment
from reduset.proportions import ClassProportions
from reduset.select import KCenter

H = 0.8
PAPER = {"select": KCenter(first=0), "plateau": 1e-8, "max_size": "sqrt"}
EARLY = {"select": KCenter(first=0), "plateau": 1e-2, "max_size": 60}  # an ε that is reached before the most atoms are
L2 = Gaussian(H, normalized=True, space="l2")


def points(n=400, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def density(X, **options):
    return SparseKernelDensity(bandwidth=H, random_state=0, **options).fit(X).compression_.with_all_selected().mean.atoms


def shift(X, **options):
    return SparseMeanShift(bandwidth=H, random_state=0, **options).fit(X).compression_.with_all_selected().mean.atoms


def proportions(X, **options):
    y = np.arange(len(X)) % 2
    return ClassProportions(Gaussian(H), norm="kernel", method="matching", random_state=0, **options).fit(X, y).atoms_


def own_of_a_cohort(X, **options):
    bags = [X, X[:100]]
    found = CohortMap(kernel=Gaussian(H), atoms="own", layout="mds", n_components=1, random_state=0, **options).fit(bags)
    return found.compressions_[0].mean.atoms


def shared_in_a_cohort(X, **options):
    bags = [X[: len(X) // 2], X[len(X) // 2 :]]  # as many rows each: their pooled mean is that of X
    found = CohortMap(kernel=Gaussian(H), layout="mds", n_components=1, random_state=0, **options).fit(bags)
    return found.compressions_[0].mean.atoms


def divergences_of_a_cohort(X, **options):
    bags = [X[: len(X) // 2], X[len(X) // 2 :]]
    kernel = Gaussian(H, normalized=True, space="l2")
    cohort = CohortMap("kl", "mds", 1, kernel, draws=50, random_state=0, **options).fit(bags)
    assert cohort.pieces_ == "atoms"
    return cohort.compressions_[0].with_all_selected().mean.atoms


def directly(X, **options):
    return compress(X, Gaussian(H), rng=0, **options).mean.atoms


USES = {
    directly: Gaussian(H),
    density: L2,
    shift: L2,
    proportions: Gaussian(H),
    own_of_a_cohort: Gaussian(H),
    shared_in_a_cohort: Gaussian(H),
    divergences_of_a_cohort: L2,
}


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
@pytest.mark.parametrize("options", [PAPER, EARLY], ids=["paper", "early"])
def test_the_atoms_are_those_of_a_slow_k_centre_with_the_rule(use, options):
    X = points()
    most = 19 if options is PAPER else 60  # the largest integer below √400
    options = options | ({"max_size": 19} if use is directly and options is PAPER else {})
    rows = reference.kcenter_with_plateau(USES[use], X, 0, options["plateau"], most)
    assert (len(rows) == most) == (options["plateau"] == 1e-8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        atoms = use(X, **options)
    np.testing.assert_array_equal(atoms, X[rows])
    short = [each for each in caught if issubclass(each.category, NotReachedWarning)]
    assert bool(short) == (len(rows) == most)
    assert all("plateau=1e-08 was not reached" in str(each.message) for each in short)


def test_the_most_atoms_may_depend_on_each_bag():
    bags = [points(900, 1), points(400, 2)]
    cohort = CohortMap(
        kernel=Gaussian(0.3), atoms="own", select="kcenter", plateau=1e-12, max_size=lambda n: int(3 * n**0.5), layout="mds",
        n_components=1, random_state=0,
    )  # fmt: skip
    with pytest.warns(NotReachedWarning, match="plateau=1e-12.*2.*2"):
        cohort.fit(bags)
    assert [each.size for each in cohort.compressions_] == [90, 60]


@pytest.mark.parametrize(
    ("n", "given", "most"),
    [(400, "sqrt", 19), (401, "sqrt", 20), (2, "sqrt", 1), (1, "sqrt", 1), (10, 50, 10), (100, 7, 7), (100, lambda n: n // 3, 33),
     (7000, None, 5000), (30, None, 30)],
)  # fmt: skip
def test_the_most_atoms(n, given, most):
    assert AtomRequest(tol=0.1, max_size=given).most(n) == most


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"size": 3, "plateau": 0.1}, ValueError, "give at most one of size, tol and plateau, got size=3 and plateau=0.1"),
        ({"size": 0}, ValueError, "size must be"),
        ({"plateau": -1.0}, ValueError, "plateau must be above 0"),
        ({"tol": "much"}, TypeError, "tol must be"),
        ({"max_size": "half"}, ValueError, "max_size must be"),
        ({"max_size": 2.5}, TypeError, "max_size must be"),
        ({"select": "farthest"}, ValueError, "select"),
        ({"weights": "best"}, ValueError, "weights must be one of"),
    ],
)
def test_requests_that_break_a_rule_are_refused(options, kind, message):
    with pytest.raises(kind, match=message):
        AtomRequest(**options)


def test_a_function_must_return_a_number_of_atoms():
    with pytest.raises(ValueError, match=r"max_size\(50\) must be"):
        AtomRequest(tol=0.1, max_size=lambda n: 0).most(50)


def test_goals_that_exclude_each_other_are_named():
    at_most_one(size=None, tol=0.1, radius=None)
    with pytest.raises(ValueError, match=r"at most one of size, tol and radius, got tol=0\.1 and radius=2\.0"):
        at_most_one(size=None, tol=0.1, radius=2.0)


def test_a_request_takes_the_parameters_that_an_estimator_has():
    estimator = ClassProportions(size=7, select="random", max_size="sqrt")
    request = AtomRequest.of(estimator, weights="simplex")
    assert (request.size, request.select, request.max_size, request.weights) == (7, "random", "sqrt", "simplex")
    assert (request.goal, request.has_goal, request.or_else(tol=0.5)) == ("size=7", True, request)
    assert AtomRequest().or_else(tol=0.5).goal == "tol=0.5"
    assert pickle.loads(pickle.dumps(request)) == request


def test_as_many_atoms_as_points_are_no_compression():
    full = KernelMean.from_samples(points(30), Gaussian(H))
    rng = np.random.default_rng(0)
    assert AtomRequest(size=30).compress_below(full, rng) is None
    assert AtomRequest(size=30, select="kcenter").compress(full, rng).certificate.relative_error < 1e-6
    assert AtomRequest(size=29, select="kcenter").compress_below(full, rng).size <= 29


@pytest.mark.parametrize("estimator", [SparseKernelDensity, SparseMeanShift, ClassProportions, CohortMap])
def test_the_parameters_are_those_of_the_constructor(estimator):
    given = {"select": "kcenter", "plateau": 1e-8, "max_size": "sqrt"}
    made = clone(estimator(**given))
    assert {name: made.get_params()[name] for name in given} == given


@pytest.mark.parametrize("weights", ["free", "sum_to_one"])
def test_mean_shift_needs_weights_that_are_not_negative(weights):
    with pytest.raises(ValueError, match="weights must be a rule for non-negative weights"):
        SparseMeanShift(weights=weights).fit(points())


def test_mean_shift_takes_the_papers_projection():
    X = points()
    found = SparseMeanShift(bandwidth=H, size=40, select="kcenter", weights="simplex_projection", random_state=0).fit(X)
    assert found.compression_.weighting == "simplex_projection"
    assert found.mean_.weights.min() >= 0


def test_a_mixture_has_no_plateau():
    with pytest.raises(ValueError, match="plateau=1e-08 needs via='atoms'"):
        SparseMeanShift(via="mixture", plateau=1e-8).fit(points())
    with pytest.raises(ValueError, match="plateau=1e-08 goes with atoms"):
        CohortMap("kl", pieces="components", plateau=1e-8).fit([points(50), points(60)])


def test_a_picture_is_segmented_in_the_papers_setting():
    image = np.zeros((30, 40), np.uint8)
    image[:, 20:] = 200
    with pytest.warns(NotReachedWarning, match="plateau=1e-08"):
        found = segment(image, bandwidth=0.1, select="kcenter", plateau=1e-8, max_size="sqrt", random_state=0)
    assert found.labels.shape == image.shape
    assert found.labels[0, 0] != found.labels[0, -1]
