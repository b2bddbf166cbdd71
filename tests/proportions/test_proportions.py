"""Class proportions: what is recovered, against which oracles, and what is refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

import reference_mean as reference
from cases import KERNELS
from reduset import Gaussian, KernelMean, Laplacian, Student, get_threads, set_threads
from reduset.proportions import ClassProportions, Proportions
from reduset.proportions.bandwidth_search import mixtures, search, split
from reduset.proportions.class_means import LabelledPoints
from reduset.proportions.kernel_blocks import product_values
from reduset.proportions.simplex_fit import SimplexFit

CENTRES = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])
SCALES = np.array([1.0, 0.7, 1.3])


def draw(counts, seed=0):
    """Rows of three classes, so many of each, and their labels."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(3), counts)
    return CENTRES[codes] + rng.normal(size=(len(codes), 2)) * SCALES[codes, None], codes


def fitted(X, y, **options):
    usual = {"kernel": Gaussian(0.8), "size": 30, "ridge": 1e-3, "random_state": 0, "method": "matching"}
    return ClassProportions(**usual | options).fit(X, y)


WAYS = {
    "whitened": {},
    "kernel": {"norm": "kernel"},
    "all": {"norm": "kernel", "size": "all"},
    "l2": {"norm": "kernel", "kernel": Gaussian(0.8, space="l2")},
    "all l2": {"norm": "kernel", "size": "all", "kernel": Gaussian(0.8, space="l2")},
    "whitened l2": {"kernel": Laplacian(1.0, space="l2")},
    "function": {"kernel": lambda A, B: np.exp(-np.square(A[:, None] - B[None]).sum(axis=2))},
}
WAY = pytest.mark.parametrize("way", WAYS)
LIKELY = {f"{way}, likely": {"method": "likelihood"} | options for way, options in WAYS.items()}


# -- what is recovered -----------------------------------------------------------------------------------------------------


@WAY
def test_a_mixture_of_the_training_rows_themselves_is_recovered_exactly(way):
    X, y = draw([40, 40, 40])
    model = fitted(X, y, **WAYS[way])
    rows = np.concatenate([np.tile(np.flatnonzero(y == code), times) for code, times in enumerate((5, 0, 3))])
    np.testing.assert_allclose(model.predict_proportions(X[rows]), [5 / 8, 0, 3 / 8], atol=1e-6)
    assert model.estimate(X[rows]).residual < 1e-3 * model.estimate(X[:40] + 50.0).residual


@pytest.mark.parametrize("way", WAYS | LIKELY)
def test_a_fresh_sample_is_estimated_to_within_its_noise(way):
    model = fitted(*draw([300, 300, 300]), **(WAYS | LIKELY)[way])
    found = model.estimate(draw([600, 100, 300], seed=1)[0])
    np.testing.assert_allclose(found.values, [0.6, 0.1, 0.3], atol=0.06)
    assert found.values.sum() == pytest.approx(1)
    assert ((found.interval[:, 0] <= found.values) & (found.values <= found.interval[:, 1])).all()
    np.testing.assert_allclose(model.predict_proportions(draw([600, 100, 300], seed=1)[0]), found.values, atol=1e-12)


def test_a_sample_of_one_row_has_an_answer():
    model = fitted(*draw([50, 50, 50]))
    found = model.estimate([[2.5, 0.0]])
    assert found.values.argmax() == 1
    assert np.isfinite(found.interval).all()


# -- the quadratic program ---------------------------------------------------------------------------------------------------


def some_means(seed, k):
    """Products of k means with each other and with another one."""
    rng = np.random.default_rng(seed)
    F, f = rng.normal(size=(k, 12)) + 3, rng.normal(size=12) + 3
    return F @ F.T, F @ f, F, f


@pytest.mark.parametrize("seed", range(20))
def test_the_solution_is_the_best_of_a_grid_on_the_simplex(seed):
    G, b, F, f = some_means(seed, 3)
    steps = 200
    grid = np.array([(i, j, steps - i - j) for i, j in itertools.product(range(steps + 1), repeat=2) if i + j <= steps]) / steps
    pi = SimplexFit(G).solve(b[None])[0]
    least = np.square(f - grid @ F).sum(axis=1).min()
    assert np.square(f - pi @ F).sum() <= least + 1e-9
    assert pi.min() >= 0
    assert pi.sum() == pytest.approx(1)


@pytest.mark.parametrize("k", [2, 4, 7])
@pytest.mark.parametrize("seed", range(5))
def test_the_solution_is_that_of_a_general_solver(k, seed):
    G, b, F, f = some_means(100 + seed, k)
    pi = SimplexFit(G).solve(b[None])[0]
    other = minimize(
        lambda p: np.square(f - p @ F).sum(),
        np.full(k, 1 / k),
        jac=lambda p: 2 * F @ (p @ F - f),
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(k)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(pi, other.x, atol=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_inside_the_simplex_both_solvers_are_the_papers_linear_system(seed):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(4, 12))
    f = rng.dirichlet(np.full(4, 5.0)) @ F + 0.05 * rng.normal(size=12)
    last = F[-1]
    D = (F[:-1] - last) @ (F[:-1] - last).T
    e = (F[:-1] - last) @ (f - last)
    minus = np.linalg.solve(D, e)
    paper = np.append(minus, 1 - minus.sum())
    fit, b = SimplexFit(F @ F.T), (F @ f)[None]
    np.testing.assert_allclose(fit.unbounded(b)[0], paper, atol=1e-10)
    if (paper >= 0).all():
        for solver in ("simplex", "projection"):
            np.testing.assert_allclose(fit.solve(b, solver)[0], paper, atol=1e-10)
    else:
        both = [np.square(f - fit.solve(b, solver)[0] @ F).sum() for solver in ("simplex", "projection")]
        assert both[0] <= both[1] + 1e-12


def test_what_all_means_have_in_common_costs_no_digits():
    F, f = np.random.default_rng(0).normal(size=(3, 5)), np.full(5, 0.1)
    far = 1e4
    near, shifted = (SimplexFit((F + s) @ (F + s).T).solve(((F + s) @ (f + s))[None])[0] for s in (0.0, far))
    np.testing.assert_allclose(near, shifted, atol=1e-5)


# -- oracles -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", ["rkhs", "l2"])
def test_uncompressed_it_is_the_definition_by_double_loops(space):
    X, y = draw([12, 15, 9])
    w = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
    Q = draw([5, 2, 6], seed=1)[0]
    kernel = Gaussian(0.9, space=space)
    model = ClassProportions(kernel, size="all", norm="kernel", method="matching").fit(X, y, sample_weight=w)
    means = [KernelMean.from_samples(X[y == code], kernel, w[y == code]) for code in range(3)]
    sample = KernelMean.from_samples(Q, kernel)
    unit = reference.inner(KernelMean(Q[:1], np.ones(1), kernel), KernelMean(Q[:1], np.ones(1), kernel))
    G = np.array([[reference.inner(f, g) for g in means] for f in means]) / unit
    b = np.array([reference.inner(f, sample) for f in means]) / unit
    pi = SimplexFit(G).solve(b[None])[0]
    found = model.estimate(Q)
    np.testing.assert_allclose(found.values, pi, atol=1e-8)
    mixture = sum((f * p for f, p in zip(means, pi, strict=True)), start=sample * -1)
    assert found.residual == pytest.approx(np.sqrt(reference.inner(mixture, mixture) / unit), abs=1e-7)


@pytest.mark.parametrize("space", ["rkhs", "l2"])
def test_with_every_row_an_atom_compression_changes_nothing(space):
    X, y = draw([30, 30, 30])
    Q = draw([20, 10, 30], seed=1)[0]
    options = {"kernel": Gaussian(0.7, space=space), "norm": "kernel"}
    small = fitted(X, y, select="kcenter", **options | {"size": 90}).estimate(Q)
    full = fitted(X, y, **options | {"size": "all"}).estimate(Q)
    np.testing.assert_allclose(small.values, full.values, atol=1e-4)
    np.testing.assert_allclose(small.interval, full.interval, atol=1e-3)
    assert small.expected == pytest.approx(full.expected, rel=0.02)
    assert small.residual <= full.residual * (1 + 1e-9)  # the sample has a part that the atoms do not see


def test_a_large_ridge_is_the_norm_of_the_space():
    X, y = draw([60, 60, 60])
    Q = draw([30, 60, 20], seed=1)[0]
    plain, ridged = fitted(X, y, norm="kernel"), fitted(X, y, ridge=1e6)
    np.testing.assert_allclose(plain.predict_proportions(Q), ridged.predict_proportions(Q), atol=1e-4)


def test_few_atoms_are_nearly_as_good_as_all():
    X, y = draw([400, 400, 400])
    few, all_ = (fitted(X, y, norm="kernel", size=size) for size in (40, "all"))
    for seed in range(1, 6):
        Q = draw([100 * seed, 200, 100], seed=seed)[0]
        np.testing.assert_allclose(few.predict_proportions(Q), all_.predict_proportions(Q), atol=0.01)


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "function"])
def test_one_pass_for_many_bandwidths_gives_what_each_gives_alone(kernel):
    rng = np.random.default_rng(0)
    X, Z, W = rng.normal(size=(70, 2)), rng.normal(size=(9, 2)), rng.normal(size=(9, 4))
    kernels = [replace(KERNELS[kernel], bandwidth=h) for h in (0.9, 0.2, 3.0)]
    together = product_values(kernels, X, Z, [W] * 3)
    for one, values in zip(kernels, together, strict=True):
        np.testing.assert_allclose(values, one.product_gram(X, Z) @ W, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(8.0), Laplacian(8.0), Student(8.0)])
def test_in_many_dimensions_it_does_too(kernel):
    rng = np.random.default_rng(0)
    X, Z, W = rng.normal(size=(300, 60)), rng.normal(size=(40, 60)), rng.normal(size=(40, 2))
    X[:3] = Z[:3]
    kernels = [replace(kernel, bandwidth=h) for h in (8.0, 2.0, 0.001)]
    for one, values in zip(kernels, product_values(kernels, X, Z, [W] * 3), strict=True):
        np.testing.assert_allclose(values, one.product_gram(X, Z) @ W, rtol=1e-8, atol=1e-10)


# -- laws --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["likelihood", "matching"])
@pytest.mark.parametrize("labels", [["b", "c", "a"], [7, -3, 100], [1.0, 2.0, 0.0], [True, False, True]])
def test_labels_are_names_only(labels, method):
    X, y = draw([50, 50, 50])
    if len(set(labels)) == 2:  # two classes
        X, y = X[y < 2], y[y < 2]
    named = np.array(labels)[y]
    Q = draw([30, 20, 10], seed=1)[0]
    model = fitted(X, named, method=method)
    assert list(model.classes_) == sorted(set(np.array(labels)[np.unique(y)]))
    plain = fitted(X, y, method=method).predict_proportions(Q)
    where = [list(model.classes_).index(labels[code]) for code in np.unique(y)]
    np.testing.assert_allclose(model.predict_proportions(Q)[where], plain, atol=1e-6 if method == "matching" else 1e-4)


def test_the_order_of_rows_does_not_matter():
    X, y = draw([40, 40, 40])
    Q = draw([30, 20, 10], seed=1)[0]
    order = np.random.default_rng(0).permutation(len(X))
    one = fitted(X, y, size="all", norm="kernel").predict_proportions(Q)
    other = fitted(X[order], y[order], size="all", norm="kernel").predict_proportions(Q[::-1])
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_a_whole_weight_is_a_repetition_and_no_weight_an_absence():
    X, y = draw([30, 30, 30])
    w = np.random.default_rng(0).integers(0, 3, size=len(X)).astype(float)
    Q = draw([30, 20, 10], seed=1)[0]
    weighed = fitted(X, y, size="all", norm="kernel").fit(X, y, sample_weight=w)
    repeated = fitted(np.repeat(X, w.astype(int), axis=0), np.repeat(y, w.astype(int)), size="all", norm="kernel")
    np.testing.assert_allclose(weighed.predict_proportions(Q), repeated.predict_proportions(Q), atol=1e-9)


def test_the_proportions_of_the_training_rows_do_not_matter():
    """A class is a mean: having three times its rows, three times over, changes nothing."""
    X, y = draw([30, 30, 30])
    more = np.concatenate([np.arange(90), np.repeat(np.flatnonzero(y == 1), 2)])
    Q = draw([30, 20, 10], seed=1)[0]
    one, other = (fitted(X[rows], y[rows], size="all", norm="kernel").predict_proportions(Q) for rows in (np.arange(90), more))
    np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("way", WAYS | LIKELY)
def test_the_same_seed_gives_the_same_answer_whatever_the_threads(way):
    X, y = draw([60, 60, 60])
    Q = draw([30, 20, 10], seed=1)[0]
    before = get_threads()
    try:
        found = []
        for threads in (1, 3):
            set_threads(threads)
            found.append(fitted(X, y, **(WAYS | LIKELY)[way]).estimate(Q))
    finally:
        set_threads(before)
    np.testing.assert_array_equal(found[0].values, found[1].values)
    np.testing.assert_array_equal(found[0].interval, found[1].interval)
    assert found[0].p_value == found[1].p_value


def test_inputs_are_not_changed_and_not_kept_but_as_atoms():
    X, y = draw([40, 40, 40])
    kept, labels = X.copy(), y.copy()
    model = fitted(X, y)
    np.testing.assert_array_equal(X, kept)
    np.testing.assert_array_equal(y, labels)
    assert model.atoms_.shape == (30, 2)
    assert [mean.size for mean in model.means_] == [30, 30, 30]


def test_the_means_are_those_of_the_classes():
    X, y = draw([200, 200, 200])
    model = fitted(X, y, size=60)
    for code, mean in enumerate(model.means_):
        full = KernelMean.from_samples(X[y == code], model.kernel_)
        assert full.distance(mean) < 0.04 * full.norm()


# -- the search --------------------------------------------------------------------------------------------------------------


def test_the_bandwidth_found_is_the_best_of_those_tried():
    X, y = draw([150, 150, 150])
    model = ClassProportions(size=40, random_state=0).fit(X, y)
    tried = model.search_
    s, r = np.unravel_index(np.argmin(tried.errors), tried.errors.shape)
    assert model.kernel_.width == pytest.approx(tried.bandwidths[s])
    assert model.ridge_ == tried.ridges[r]
    assert (np.diff(tried.bandwidths) > 0).all()


@pytest.mark.parametrize("start", [0.05, 50.0])
def test_a_ladder_that_begins_far_off_is_climbed(start):
    X, y = draw([100, 100, 100])
    model = ClassProportions(Gaussian(start), size=40, norm="kernel", bandwidth_search=True, random_state=0).fit(X, y)
    assert len(model.search_.bandwidths) > 9
    alone = ClassProportions(Gaussian(start), size=40, norm="kernel", random_state=0).fit(X, y)
    assert alone.kernel_.width == start
    assert 0.1 < model.kernel_.width < 5


def test_what_is_found_by_the_way_is_what_a_fit_of_its_own_gives():
    """The means of all rows are added up while the bandwidth is searched for."""
    X, y = draw([80, 80, 80])
    data = LabelledPoints(X, y, np.ones(len(X)), 3)
    atoms = X[::8].copy()
    means, _, found = search(data, Gaussian(1.0), atoms, (None,), True, "simplex", np.random.default_rng(0))
    kernel = means.kernel
    fresh = fitted(X, y, kernel=kernel, norm="kernel")
    Q = draw([30, 20, 10], seed=1)[0]
    for code, mean in enumerate(means.means()):
        kappa = kernel.product_sums(X[y == code], np.full(80, 1 / 80), atoms)
        seen = kernel.product_gram(atoms, atoms) @ mean.weights
        np.testing.assert_allclose(seen, kappa, atol=1e-5)
    np.testing.assert_allclose(means.fit.solve(means.values(Q).mean(axis=0)[None])[0], fresh.predict_proportions(Q), atol=0.02)
    assert found.ridges == (None,)


def test_rows_held_out_are_of_every_class_and_not_fitted():
    X, y = draw([20, 2, 31])
    fit, held = split(LabelledPoints(X, y, np.ones(len(X)), 3), np.random.default_rng(0))
    assert set(fit.codes) == set(held.codes) == {0, 1, 2}
    together = np.concatenate([fit.points, held.points])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(X, axis=0))


def test_artificial_mixtures_have_the_proportions_they_state():
    X, y = draw([20, 25, 31])
    counts, truth = mixtures(LabelledPoints(X, y, np.ones(len(X)), 3), np.random.default_rng(0))
    np.testing.assert_allclose(np.stack([counts[:, y == code].sum(axis=1) for code in range(3)], axis=1), truth, atol=1e-12)
    assert truth.min() == 0
    assert truth.max() > 0.95


def test_a_searched_bandwidth_beats_a_bad_one():
    X, y = draw([200, 200, 200])
    searched = ClassProportions(size=60, norm="kernel", random_state=0).fit(X, y)
    bad = ClassProportions(Gaussian(0.03), size=60, norm="kernel", random_state=0).fit(X, y)
    errors = {"searched": 0.0, "bad": 0.0}
    for seed in range(1, 9):
        Q = draw([50 * seed, 100, 100], seed=seed)[0]
        truth = np.array([50 * seed, 100, 100]) / (50 * seed + 200)
        errors["searched"] += np.abs(searched.predict_proportions(Q) - truth).sum()
        errors["bad"] += np.abs(bad.predict_proportions(Q) - truth).sum()
    assert errors["searched"] < errors["bad"]


def test_a_tolerance_decides_the_size():
    X, y = draw([200, 200, 200])
    loose, tight = (ClassProportions(Gaussian(1.0), tol=tol, ridge=1e-3, random_state=0).fit(X, y) for tol in (0.2, 0.01))
    assert 3 <= len(loose.atoms_) < len(tight.atoms_)


# -- posteriors --------------------------------------------------------------------------------------------------------------


def test_a_classifiers_posteriors_can_be_matched():
    X, y = draw([150, 150, 150])
    names = np.array(["a", "b", "c"])[y]
    model = ClassProportions(classifier=LogisticRegression(), size=40, random_state=0).fit(X, names)
    assert model.atoms_.shape == (40, 3)
    found = model.estimate(draw([600, 100, 300], seed=1)[0])
    np.testing.assert_allclose(found.values, [0.6, 0.1, 0.3], atol=0.06)
    weighed = ClassProportions(classifier=LogisticRegression(), size=40, random_state=0).fit(X, names, np.ones(len(X)))
    np.testing.assert_allclose(weighed.predict_proportions(X), model.predict_proportions(X), atol=1e-6)


# -- how it says it ----------------------------------------------------------------------------------------------------------


def test_the_result_prints_its_table_and_its_verdict():
    model = fitted(*draw([100, 100, 100]))
    good = model.estimate(draw([60, 20, 20], seed=1)[0], confidence=0.9)
    assert isinstance(good, Proportions)
    assert "Proportions of 3 classes in 100 rows" in str(good)
    assert "intervals at 90%" in str(good)
    assert "NOT" in str(model.estimate(draw([60, 20, 20], seed=1)[0] + 4.0))


def test_progress_is_told():
    stages = set()
    ClassProportions(size=20, progress=lambda stage, done, total: stages.add(stage), random_state=0).fit(*draw([30, 30, 30]))
    assert "weighing" in stages


# -- what is refused ---------------------------------------------------------------------------------------------------------

X_, Y_ = draw([20, 20, 20])


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (X_, np.zeros(60), {}, "at least two classes, got only one class, 0.0"),
        (X_, Y_[:-1], {}, r"y must have shape \(60,\)"),
        (np.where(np.arange(60)[:, None] == 7, np.nan, X_), Y_, {}, "X .*got nan in row 7"),
        (X_, np.where(np.arange(60) == 3, np.nan, Y_), {}, "no missing labels, got nan in row 3"),
        (X_, Y_ + 0.5, {}, "y .*got a continuous quantity"),
        (X_[:, 0], Y_, {}, "two dimensions"),
        (X_, Y_, {"size": 61}, "size .*got 61"),
        (X_, Y_, {"size": "some"}, "size .*got 'some'"),
        (X_, Y_, {"tol": 0.1}, "give at most one of size, tol and plateau"),
        (X_, Y_, {"size": "all"}, "size='all' needs norm='kernel'"),
        (X_, Y_, {"norm": "l1"}, "norm must be one of 'kernel', 'whitened'"),
        (X_, Y_, {"solver": "guess"}, "solver must be one of 'projection', 'simplex'"),
        (X_, Y_, {"ridge": 0.0}, "ridge .*got 0.0"),
        (X_, Y_, {"select": "best"}, "select must be one of"),
    ],
)
def test_bad_input_is_refused_by_name(X, y, options, message):
    with pytest.raises(ValueError, match=message):
        fitted(X, y, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "gausian"}, "kernel must be a Gaussian"),
        ({"size": 2.5}, "size must be a whole number"),
        ({"bandwidth_search": "yes"}, "bandwidth_search must be True, False or None"),
        ({"kernel": lambda A, B: np.ones((len(A), len(B))), "bandwidth_search": True}, "bandwidth_search needs a Gaussian"),
        ({"classifier": object()}, "classifier must have predict_proba"),
        ({"random_state": "x"}, "random_state must be None, a seed"),
        ({"progress": 3}, "progress must be True"),
    ],
)
def test_options_of_the_wrong_type_are_refused_by_name(options, message):
    with pytest.raises(TypeError, match=message):
        fitted(X_, Y_, **options)


def test_labels_that_cannot_be_sorted_are_refused():
    with pytest.raises(TypeError, match="labels of one type that can be sorted"):
        fitted(X_, np.array([1, "a", None] * 20, dtype=object))


def test_a_class_without_weight_is_refused():
    with pytest.raises(ValueError, match="some weight to every class, class 2 has none"):
        fitted(X_, Y_).fit(X_, Y_, sample_weight=(Y_ < 2).astype(float))


def test_a_class_of_one_row_cannot_be_searched_by_but_is_fitted():
    X, y = X_[:41], Y_[:41]
    with pytest.warns(UserWarning, match="class 2 has a single row, so none can be held out"):
        model = ClassProportions(size=10, random_state=0).fit(X, y)
    assert np.isfinite(model.estimate(X).p_value)
    with pytest.raises(ValueError, match=r"classifier .*got one of class 2"):
        ClassProportions(classifier=LogisticRegression()).fit(X, y)


def test_a_sample_of_the_wrong_kind_is_refused():
    model = fitted(X_, Y_)
    with pytest.raises(ValueError, match="X must have 2 columns"):
        model.predict_proportions(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="X must be finite"):
        model.estimate(np.full((3, 2), np.inf))
    for confidence in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
            model.estimate(X_, confidence=confidence)
    with pytest.raises(NotFittedError):
        ClassProportions().predict_proportions(X_)


EXCEPTIONS = {
    "check_complex_data": "complex input is a TypeError here, with a way out, as everywhere in this package",
    "check_estimators_empty_data_messages": "the message names the shape in the words of this package",
    "check_estimators_nan_inf": "the message names the row and column in the words of this package",
}


@pytest.mark.filterwarnings("ignore:class . has a single row", "ignore::sklearn.exceptions.SkipTestWarning")
def test_it_is_a_scikit_learn_estimator():
    results = check_estimator(ClassProportions(size=5, ridge=1e-3, random_state=0), expected_failed_checks=EXCEPTIONS)
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(EXCEPTIONS)
