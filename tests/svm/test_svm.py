"""Compressed SVMs: what they keep of the original, what they state, and that they can be stored."""

import copy
from functools import cache

import numpy as np
import pytest
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from archive_cases import reseal
from reduset import NotReachedWarning
from reduset.svm import CompressedOneClassSVM, CompressedSVC, CompressedSVR, compress_svm
from reduset.svm.machines import read
from svm_cases import CLASSIFIERS, MACHINES, data, fitted, queries, rows_of, values_of

EVERY = pytest.mark.parametrize("name", MACHINES)
METHODS = ["mixture", "zhang", "kl", "refine", "kcenter"]


def compressed_now(name, **options):
    return compress_svm(fitted(name), **{"fraction": 0.3, "X": rows_of(name), "rng": 0, "polish": 5} | options)


compressed_once = cache(compressed_now)


def shrunk(name, **options):
    """A copy for each test of what is compressed once for all."""
    return copy.deepcopy(compressed_once(name, **options))


def clone_with_pairs(model):
    """The same machine, with decision values of pairs."""
    pairs = copy.copy(model)
    pairs.decision_function_shape, pairs.break_ties = "ovo", False
    return pairs


@EVERY
def test_functions_are_read_as_scikit_learn_evaluates_them(name):
    model, Q = fitted(name), queries(name)
    machine = read(model)
    values = machine.full(Q)
    if name in CLASSIFIERS and len(model.classes_) > 2:
        np.testing.assert_allclose(values, clone_with_pairs(model).decision_function(Q), atol=1e-9)
    else:
        np.testing.assert_allclose(values[:, 0], values_of(model, Q), atol=1e-9)


@EVERY
def test_all_support_vectors_kept_change_nothing(name):
    model, Q = fitted(name), queries(name)
    small = compress_svm(model, fraction=1.0, X=Q)
    np.testing.assert_allclose(values_of(small, Q), values_of(model, Q), atol=1e-9)
    if name in CLASSIFIERS:
        np.testing.assert_array_equal(small.predict(Q), model.predict(Q))
    assert small.loss_.largest < 1e-9
    assert small.loss_.relative < 1e-9
    assert small.loss_.bound == 0.0
    assert small.method_ == "all support vectors"


@pytest.mark.covering_cases
@EVERY
@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_most_of_the_decision(name, method):
    small = shrunk(name, method=method)
    assert small.n_components_ <= 0.3 * len(fitted(name).support_)
    assert small.method_ == method
    assert small.loss_.relative < 0.7
    assert np.isfinite(values_of(small, queries(name))).all()


@EVERY
def test_the_loss_is_what_happened(name):
    model, X, small = fitted(name), rows_of(name), shrunk(name)
    if len(getattr(model, "classes_", ())) <= 2:
        change = np.abs(values_of(model, X) - values_of(small, X))
        assert small.loss_.largest == pytest.approx(change.max())
        assert small.loss_.mean == pytest.approx(change.mean())
    if not is_regressor(model):
        assert small.loss_.label_changes == (model.predict(X) != small.predict(X)).sum()
    assert (small.loss_.rows, small.loss_.measured_on) == (len(X), "X")


@EVERY
def test_results_are_estimators_of_the_same_kind(name):
    model, small = fitted(name), shrunk(name)
    for kind in (is_classifier, is_regressor, is_outlier_detector):
        assert kind(small) == kind(model)
    assert small.n_features_in_ == model.n_features_in_
    X, y = data(MACHINES[name][1])
    if not is_outlier_detector(model):
        assert abs(small.score(X, y) - model.score(X, y)) < 0.3


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_decision_values_have_the_shape_of_the_originals(name):
    Q = queries(name)
    assert shrunk(name).decision_function(Q).shape == fitted(name).decision_function(Q).shape
    assert set(shrunk(name).predict(Q)) <= set(fitted(name).classes_)


def test_ties_of_votes_go_where_scikit_learn_sends_them():
    X, y = data("blobs")
    Q = np.random.default_rng(0).uniform(-15, 15, size=(4000, 2))
    far = 1e3 * np.ones((3, 2))  # where only intercepts are left
    for ties in (False, True):
        model = SVC(gamma=0.05, break_ties=ties).fit(X, y)
        small = compress_svm(model, fraction=1.0)
        np.testing.assert_array_equal(small.predict(np.concatenate([Q, far])), model.predict(np.concatenate([Q, far])))


def test_the_score_of_an_outlier_detector_is_decision_plus_offset():
    model, small = fitted("OneClassSVM"), shrunk("OneClassSVM")
    Q = queries("OneClassSVM")
    np.testing.assert_allclose(small.score_samples(Q), small.decision_function(Q) + model.offset_)
    np.testing.assert_array_equal(small.predict(Q), np.where(small.decision_function(Q) > 0, 1, -1))


@pytest.mark.parametrize("name", ["SVC of two classes", "SVC of five named classes", "SVR"])
def test_auto_loses_no_more_than_any_method_it_tries(name):
    best = shrunk(name, method="auto")
    for method in ("mixture", "refine", "kcenter"):
        assert best.loss_.relative <= shrunk(name, method=method).loss_.relative * (1 + 1e-12)
    assert best.method_ in ("mixture", "refine", "kcenter")


def test_refit_and_polish_lose_less_than_the_groups_alone():
    name = "SVC of two classes"
    alone = shrunk(name, method="mixture", refit=False, polish=False)
    refitted = shrunk(name, method="mixture", polish=False)
    polished = shrunk(name, method="mixture", polish=50)
    assert polished.loss_.relative < refitted.loss_.relative < alone.loss_.relative


def test_the_same_seed_gives_the_same_result_and_no_input_is_changed():
    name = "SVC of five named classes"
    model = fitted(name)
    before = [model.support_vectors_.copy(), model.dual_coef_.copy(), rows_of(name).copy()]
    one, other = compressed_now(name), compressed_now(name)
    np.testing.assert_array_equal(one.expansion_.weights, other.expansion_.weights)
    for array, now in zip(before, (model.support_vectors_, model.dual_coef_, rows_of(name)), strict=True):
        np.testing.assert_array_equal(array, now)


@pytest.mark.parametrize("tol", [0.5, 0.1, 0.02])
def test_a_tolerance_is_met_with_few(tol):
    name = "SVC of two classes"
    small = compress_svm(fitted(name), tol=tol, X=rows_of(name), rng=0, polish=10, method="mixture")
    assert small.loss_.relative <= tol
    if small.n_components_ > 1:
        fewer = compress_svm(fitted(name), size=small.n_components_ - 1, X=rows_of(name), rng=0, polish=10, method="mixture")
        assert fewer.loss_.relative > tol


def test_smaller_tolerances_take_more():
    sizes = [shrunk("SVR", fraction=None, tol=tol, method="refine").n_components_ for tol in (0.5, 0.2, 0.05)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_a_tolerance_that_takes_every_support_vector_is_told():
    with pytest.warns(NotReachedWarning, match="not reached with fewer than all .* raise tol"):
        small = compressed_now("NuSVC of two classes", fraction=None, tol=1e-15, method="kcenter")
    assert small.n_components_ == len(fitted("NuSVC of two classes").support_)
    assert small.loss_.largest == 0.0


def test_without_rows_the_loss_is_that_on_the_support_vectors():
    model = fitted("SVC of two classes")
    small = compress_svm(model, size=10, rng=0, polish=5)
    change = np.abs(model.decision_function(model.support_vectors_) - small.decision_function(model.support_vectors_))
    assert small.loss_.largest == pytest.approx(change.max())
    assert small.loss_.measured_on == "the support vectors"
    assert small.loss_.rows == len(model.support_)


def test_labels_give_scores_before_and_after():
    X, y = data("moons")
    model = fitted("SVC of two classes")
    small = compress_svm(model, size=10, X=X, y=y, rng=0, polish=5)
    assert (small.loss_.score_before, small.loss_.score_after) == (model.score(X, y), small.score(X, y))
    X, y = data("waves")
    small = compress_svm(fitted("SVR"), size=20, X=X, y=y, rng=0, polish=5)
    assert small.loss_.score_after == pytest.approx(small.score(X, y))


@EVERY
def test_one_bump_is_allowed(name):
    small = compress_svm(fitted(name), size=1, X=rows_of(name), rng=0)
    assert small.n_components_ == 1
    assert np.isfinite(values_of(small, queries(name))).all()


def test_a_tiny_fraction_leaves_one():
    assert compress_svm(fitted("SVR"), fraction=1e-6, rng=0).n_components_ == 1


def test_repeated_support_vectors_do_no_harm():
    X = np.repeat(np.random.default_rng(0).normal(size=(15, 2)), 4, axis=0)
    y = np.tile([0, 1, 1, 0], 15)
    model = SVC().fit(X, y)
    small = compress_svm(model, size=20, X=X, rng=0)
    assert np.isfinite(small.decision_function(X)).all()


def test_gamma_is_the_number_that_was_fitted():
    X, y = data("moons")
    scaled = SVC(gamma="scale").fit(X, y)
    given = SVC(gamma=1 / (2 * X.var())).fit(X, y)
    Q = 3 * queries("SVC of two classes")
    one, other = (compress_svm(each, size=10, rng=0, polish=5).decision_function(Q) for each in (scaled, given))
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_trained_on_sparse_rows_is_as_trained_on_dense():
    from scipy.sparse import csr_matrix

    X, y = data("blobs")
    sparse, dense = SVC(gamma=0.1).fit(csr_matrix(X), y), SVC(gamma=0.1).fit(X, y)
    Q = queries("SVC of five named classes")
    one, other = (compress_svm(each, size=12, X=X, rng=0, polish=5).predict(Q) for each in (sparse, dense))
    assert (one == other).mean() > 0.99


def test_a_result_stands_at_the_end_of_a_pipeline_and_can_be_calibrated():
    X, y = data("moons")
    trained = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    small = compress_svm(trained[-1], fraction=0.3, X=trained[:-1].transform(X), rng=0)
    again = make_pipeline(StandardScaler().fit(X), small)
    assert (again.predict(X) == trained.predict(X)).mean() > 0.97
    chances = CalibratedClassifierCV(FrozenEstimator(small)).fit(trained[:-1].transform(X), y).predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)


def test_columns_of_a_frame_are_remembered():
    import pandas as pd

    X, y = data("moons")
    frame = pd.DataFrame(X, columns=["east", "north"])
    small = compress_svm(SVC().fit(frame, y), size=10, X=frame, rng=0, polish=5)
    np.testing.assert_array_equal(small.feature_names_in_, ["east", "north"])
    assert len(small.predict(frame)) == len(y)
    with pytest.raises(ValueError, match="feature names"):
        small.predict(frame[["north", "east"]])
    with pytest.raises(ValueError, match="in that order"):
        compress_svm(SVC().fit(frame, y), size=10, X=frame[["north", "east"]])


@EVERY
def test_a_saved_one_is_read_back_the_same(name, tmp_path):
    small = shrunk(name)
    small.save(tmp_path / "svm.npz")
    back = type(small).load(tmp_path / "svm.npz")
    Q = queries(name)
    np.testing.assert_array_equal(back.predict(Q), small.predict(Q))
    np.testing.assert_array_equal(values_of(back, Q), values_of(small, Q))
    assert back.loss_ == small.loss_
    assert (back.method_, back.n_components_, str(back)) == (small.method_, small.n_components_, str(small))
    if name in CLASSIFIERS:
        assert back.classes_.dtype == small.classes_.dtype
    if name == "OneClassSVM":
        assert back.offset_ == small.offset_


@pytest.mark.parametrize(
    "labels", [np.array([False, True]), np.array([-1.0, 1.0]), np.array([3, 7], np.int8), np.array(["a", "b"], object)]
)
def test_classes_of_any_plain_type_are_saved(labels, tmp_path):
    X, y = data("moons")
    small = compress_svm(SVC().fit(X, labels[y]), size=8, rng=0, polish=5)
    small.save(tmp_path / "svm.npz")
    back = CompressedSVC.load(tmp_path / "svm.npz")
    assert back.classes_.dtype == labels.dtype
    np.testing.assert_array_equal(back.predict(X), small.predict(X))


def test_a_file_of_another_kind_is_refused(tmp_path):
    shrunk("SVR").save(tmp_path / "svm.npz")
    with pytest.raises(ValueError, match=r"it holds 'reduset\.CompressedSVR', not 'reduset\.CompressedSVC'"):
        CompressedSVC.load(tmp_path / "svm.npz")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"votes": None}, "classes do not fit"),
        ({"votes": {"classes": [1, 2, 3], "dtype": "<i8", "shape": "ovr", "break_ties": False}}, "classes do not fit"),
        ({"votes": {"classes": [1, 2], "dtype": "<U99999999", "shape": "ovr", "break_ties": False}}, "unknown type"),
        ({"votes": {"classes": [[1], [2]], "dtype": "O", "shape": "ovr", "break_ties": False}}, "classes must be text or a number"),
        ({"votes": {"classes": [1, 2], "dtype": "<i8", "shape": "x", "break_ties": False}}, "shape must be one of"),
        ({"loss": {}}, r"loss\.largest is missing"),
        ({"loss": {"bound": "inf", "nonsense": 1}}, "nonsense"),
        ({"names": 3}, "names .*got 3"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(changes, message, tmp_path):
    path = tmp_path / "svm.npz"
    shrunk("SVC of two classes").save(path)
    reseal(path, **changes)
    with pytest.raises(ValueError, match=message):
        CompressedSVC.load(path)


def test_a_result_says_what_it_is():
    X, y = data("moons")
    text = str(compress_svm(fitted("SVC of two classes"), size=9, X=X, y=y, rng=0, polish=5))
    assert text.startswith("CompressedSVC: ")
    for words in ("→ 9 Gaussians in 2-D, by ", "decision values changed by", "labels changed on", "score", "relative error"):
        assert words in text
    assert "labels" not in str(shrunk("SVR"))
    assert repr(CompressedSVR()) == str(CompressedSVR()) == "CompressedSVR()"
    assert repr(shrunk("OneClassSVM")).startswith("<CompressedOneClassSVM: ")


def test_progress_is_told():
    seen = []
    compress_svm(fitted("SVC of two classes"), size=5, rng=0, polish=3, progress=lambda *told: seen.append(told))
    assert {"fitting", "measuring"} == {stage for stage, _, _ in seen}


def test_compressed_machines_are_not_trained():
    for kind in (CompressedSVC, CompressedSVR, CompressedOneClassSVM):
        with pytest.raises(NotImplementedError, match="pass it to compress_svm"):
            kind().fit(*data("moons"))


def test_regressors_of_nearly_nothing_are_compressed_too():
    X = np.linspace(0, 1, 20)[:, None]
    small = compress_svm(SVR(epsilon=0.01).fit(X, X[:, 0]), size=2, X=X, rng=0)
    assert small.loss_.relative < 0.5
