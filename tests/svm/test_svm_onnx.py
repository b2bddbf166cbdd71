"""The ONNX graph says what the compressed SVM says, in onnxruntime."""

import builtins

import numpy as np
import onnxruntime
import pytest
from sklearn.svm import SVC

from reduset.svm import compress_svm
from svm_cases import CLASSIFIERS, MACHINES, data, fitted, queries, rows_of, values_of


def run(model, Q, dtype):
    session = onnxruntime.InferenceSession(model if isinstance(model, str) else model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": Q.astype(dtype)}), strict=True))


@pytest.mark.parametrize(("dtype", "close"), [(np.float32, 5e-7), (np.float64, 1e-13)])
@pytest.mark.parametrize("name", MACHINES)
def test_onnxruntime_gives_the_same(name, dtype, close):
    small = compress_svm(fitted(name), fraction=0.3, X=rows_of(name), rng=0, polish=5)
    Q = queries(name).astype(np.float32)
    out = run(small.to_onnx(dtype=dtype), Q, dtype)
    values = values_of(small, Q)
    close *= np.abs(small.expansion_.weights).sum(axis=0).max()  # what terms that cancel leave of their digits
    if small.kind == "regressor":
        assert set(out) == {"variable"}
        np.testing.assert_allclose(out["variable"], values[:, None], atol=close)
        return
    assert set(out) == {"label", "scores"}
    assert out["scores"].shape == values.shape
    settled = np.abs(small._values(Q)).min(axis=1) > close  # elsewhere rounding may turn a vote
    np.testing.assert_allclose(out["scores"][settled], values[settled], atol=close)
    np.testing.assert_array_equal(out["label"][settled], small.predict(Q)[settled])
    assert settled.mean() > 0.5


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_have_the_type_of_the_classes(name):
    small = compress_svm(fitted(name), size=6, rng=0, polish=False)
    label = run(small.to_onnx(), queries(name), np.float32)["label"]
    assert label.dtype == (object if small.classes_.dtype.kind == "U" else np.int64)


def test_far_from_the_origin_single_precision_is_enough():
    X, y = data("moons")
    small = compress_svm(SVC(gamma=1.0).fit(X + 1000, y), size=10, X=X + 1000, rng=0)
    Q = (X + 1000).astype(np.float32)
    np.testing.assert_allclose(run(small.to_onnx(), Q, np.float32)["scores"], small.decision_function(Q), atol=1e-4)


def test_a_file_is_written_whole(tmp_path):
    small = compress_svm(fitted("SVR"), size=5, rng=0, polish=False)
    assert small.to_onnx(tmp_path / "svm.onnx") is None
    Q = queries("SVR")
    np.testing.assert_allclose(run(str(tmp_path / "svm.onnx"), Q, np.float32)["variable"][:, 0], small.predict(Q), atol=1e-3)
    assert [path.name for path in tmp_path.iterdir()] == ["svm.onnx"]
    with pytest.raises(FileNotFoundError):
        small.to_onnx(tmp_path / "nowhere" / "svm.onnx")


def test_what_onnx_cannot_say_is_refused():
    X, y = data("moons")
    small = compress_svm(SVC().fit(X, np.array([0.5, 1.5])[y] * 2), size=5, rng=0)
    assert run(small.to_onnx(), X, np.float32)["label"].dtype == np.int64  # whole numbers, whatever their type
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        small.to_onnx(dtype=np.int32)


def test_without_onnx_the_message_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "onnx":
            raise ImportError("no onnx")
        return real(name, *rest)

    small = compress_svm(fitted("SVR"), size=5, rng=0, polish=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "reduset\[onnx\]"'):
        small.to_onnx()
