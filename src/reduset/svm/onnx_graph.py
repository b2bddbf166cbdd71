"""A compressed SVM as an ONNX graph of operators that every runtime supports.

    rows − centre → ‖x‖² + ‖c‖² − 2x·c → exp → · W + b → votes → label

The centre is subtracted first, so that squared distances keep their digits in single precision. Outputs have the names of skl2onnx:
"label" and "scores" for a classifier or outlier detector, "variable" for a regressor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _archive
from reduset.svm.expansion import GaussianExpansion
from reduset.svm.one_vs_one import OneVsOne

OPSET, IR = 17, 8  # of 2022, so that older runtimes read the graph


class _Graph:
    """Nodes in the order in which they are added, and their constants."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._numpy = helper, numpy_helper
        self.dtype, self.nodes, self.constants = dtype, [], []  # type: ignore[var-annotated]
        self.real = int(helper.np_dtype_to_tensor_dtype(dtype))

    def constant(self, name: str, value: Any, exact: bool = False) -> str:
        """A constant in the precision of the graph, or unchanged if ``exact`` is True."""
        array = np.asarray(value) if exact else np.asarray(value, self.dtype)
        self.constants.append(self._numpy.from_array(array, name))
        return name

    def add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self._helper.make_node(kind, inputs, [output], **attributes))
        return output


def graph(expansion: GaussianExpansion, kind: str, votes: OneVsOne | None, dtype: Any) -> Any:
    """The ``ModelProto`` of an expansion and a kind of decision."""
    try:
        from onnx import checker, helper
    except ImportError as error:
        raise ImportError(
            f'to_onnx needs the package onnx, which is not installed: pip install "reduset[onnx]" ({error})'
        ) from error
    number = np.dtype(dtype)
    if number not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    built = _Graph(number)
    values = _values(built, expansion)
    if kind == "regressor":
        built.add("Identity", [values], "variable")
        outputs = [helper.make_tensor_value_info("variable", built.real, [None, 1])]
    else:
        label_type = _decide(built, values, votes) if votes is not None else _detect(built, values)
        shape = [None] if votes is None or len(votes.classes) == 2 else [None, _columns(votes)]
        described = (("label", label_type, [None]), ("scores", built.real, shape))
        outputs = [helper.make_tensor_value_info(*output) for output in described]
    rows = helper.make_tensor_value_info("X", built.real, [None, expansion.dimension])
    model = helper.make_model(
        helper.make_graph(built.nodes, "compressed_svm", [rows], outputs, built.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR,
        producer_name="reduset",
    )
    checker.check_model(model)
    return model


def write(model: Any, path: _archive.Path_) -> None:
    """Write a model atomically."""
    _archive.write_whole(path, lambda stream: stream.write(model.SerializeToString()))


def _values(made: _Graph, expansion: GaussianExpansion) -> str:
    """(N, p) values of the functions."""
    centre = expansion.centres.mean(axis=0).astype(made.dtype).astype(np.float64)  # rounded as in the graph
    centres = expansion.centres - centre
    rates = 0.5 / expansion.widths**2
    # −‖x − c‖²/2h² = x·(c/h²) − ‖x‖²/2h² − ‖c‖²/2h²
    made.add("Sub", ["X", made.constant("centre", centre)], "centred")
    made.add("MatMul", ["centred", made.constant("places", (2.0 * rates * centres.T))], "products")
    made.add("Mul", ["centred", "centred"], "squares")
    made.add("ReduceSum", ["squares", made.constant("columns", np.array([1], np.int64), exact=True)], "lengths", keepdims=1)
    made.add("Mul", ["lengths", made.constant("steepness", rates[None])], "depths")
    made.add("Sub", ["products", "depths"], "risen")
    made.add("Sub", ["risen", made.constant("lengths_of_places", (rates * (centres**2).sum(axis=1))[None])], "exponents")
    made.add("Min", ["exponents", made.constant("nothing", 0.0)], "clipped")
    made.add("Exp", ["clipped"], "bumps")
    made.add("MatMul", ["bumps", made.constant("weights", expansion.weights)], "sums")
    return made.add("Add", ["sums", made.constant("intercepts", expansion.intercepts[None])], "values")


def _detect(made: _Graph, values: str) -> int:
    """The label ±1 of an outlier detector."""
    from onnx import TensorProto

    _flatten(made, values)
    made.add("Greater", ["scores", made.constant("zero", 0.0)], "inside")
    one, minus = (made.constant(name, np.array(sign, np.int64), exact=True) for name, sign in (("inlier", 1), ("outlier", -1)))
    made.add("Where", ["inside", one, minus], "label")
    return int(TensorProto.INT64)


def _flatten(made: _Graph, values: str) -> None:
    made.add("Squeeze", [values, made.constant("only", np.array([1], np.int64), exact=True)], "scores")


def _columns(votes: OneVsOne) -> int:
    return len(votes.classes) if votes.shape == "ovr" else len(votes.winners[0])


def _decide(made: _Graph, values: str, votes: OneVsOne) -> int:
    """Label and scores of a classifier; returns the type of the labels."""
    from onnx import TensorProto

    text = votes.classes.dtype.kind in "OUS"
    labels = np.array([str(label) for label in votes.classes], dtype=object) if text else votes.classes.astype(np.int64)
    if not text and (labels != votes.classes).any():
        raise ValueError(f"classes must be whole numbers or text for ONNX, got {votes.classes.dtype}; refit with such labels")
    zero = made.constant("zero", 0.0)
    if len(votes.classes) == 2:
        _flatten(made, values)
        made.add("GreaterOrEqual", ["scores", zero], "second")
        made.add("Cast", ["second"], "winner", to=int(TensorProto.INT64))
    else:
        first, second = votes.winners
        # as in scikit-learn, a value of exactly 0 is a vote for the first class in the scores, and for the second in the labels
        made.add("Less", [values, zero], "lost")
        scored = _count(made, "lost", first, second, "scored", flipped=True)
        if votes.shape == "ovo":
            made.add("Identity", [values], "scores")
        else:
            made.add("MatMul", [values, made.constant("sides", first - second)], "sureness")
            made.add("Abs", ["sureness"], "sure")
            made.add("Add", ["sure", made.constant("one", 1.0)], "surer")
            made.add("Mul", ["surer", made.constant("three", 3.0)], "surest")
            made.add("Div", ["sureness", "surest"], "tie_break")
            made.add("Add", [scored, "tie_break"], "scores")
        if votes.break_ties:
            elected = "scores"
        else:
            made.add("Greater", [values, zero], "won")
            elected = _count(made, "won", first, second, "elected", flipped=False)
        made.add("ArgMax", [elected], "winner", axis=1, keepdims=0)
    made.add("Gather", [made.constant("classes", labels, exact=True), "winner"], "label", axis=0)
    return int(TensorProto.STRING if text else TensorProto.INT64)


def _count(made: _Graph, asked: str, first: Any, second: Any, name: str, flipped: bool) -> str:
    """(N, k) votes: if the condition holds, a pair votes for its first class, or for the second if ``flipped`` is True."""
    when, otherwise = (second, first) if flipped else (first, second)
    made.add("Cast", [asked], f"{name}_numbers", to=made.real)
    made.add("MatMul", [f"{name}_numbers", made.constant(f"{name}_moves", when - otherwise)], f"{name}_moved")
    return made.add("Add", [f"{name}_moved", made.constant(f"{name}_base", otherwise.sum(axis=0)[None])], name)
