"""A compressed SVM as an ONNX graph of operators that every runtime supports.

    rows − centre → ‖x‖² + ‖c‖² − 2x·c → exp → · W + b → votes → label

The centre is subtracted first, so that squared distances keep their digits in single precision. Outputs have the names of skl2onnx:
"label" and "scores" for a classifier or outlier detector, "variable" for a regressor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reduset import _archive
from reduset._types import Array
from reduset.svm.expansion import GaussianExpansion
from reduset.svm.machines import OneVsOne

OPSET, IR = 17, 8  # of 2022, so that older runtimes read the graph
INT64, STRING = 7, 8  # types of ONNX

# −‖x − c‖²/2h² = x·(c/h²) − ‖x‖²/2h² − ‖c‖²/2h²
VALUES = """
centred = Sub (X, centre)
products = MatMul (centred, directions)
squares = Mul (centred, centred)
lengths = ReduceSum <keepdims = 1> (squares, columns)
scaled_lengths = Mul (lengths, rates)
differences = Sub (products, scaled_lengths)
exponents = Sub (differences, lengths_of_centres)
clipped = Min (exponents, zero)
bumps = Exp (clipped)
sums = MatMul (bumps, weights)
values = Add (sums, intercepts)
"""
REGRESSION = "variable = Identity (values)"
OUTLIERS = """
scores = Squeeze (values, columns)
inside = Greater (scores, zero)
label = Where (inside, inlier, outlier)
"""
TWO_CLASSES = f"""
scores = Squeeze (values, columns)
second = GreaterOrEqual (scores, zero)
winner = Cast <to = {INT64}> (second)
"""
OVO_SCORES = "scores = Identity (values)"
# As in scikit-learn, a value of exactly 0 is a vote for the first class in the scores, and for the second in the labels.
OVR_SCORES = """
lost = Less (values, zero)
losses = Cast <to = {real}> (lost)
changed_by_losses = MatMul (losses, second_minus_first)
scored = Add (changed_by_losses, all_first)
confidence = MatMul (values, first_minus_second)
size = Abs (confidence)
size_plus_one = Add (size, one)
divisor = Mul (size_plus_one, three)
tie_break = Div (confidence, divisor)
scores = Add (scored, tie_break)
"""
ELECTION = """
won = Greater (values, zero)
victories = Cast <to = {real}> (won)
changed_by_victories = MatMul (victories, first_minus_second)
elected = Add (changed_by_victories, all_second)
"""


def graph(expansion: GaussianExpansion, kind: str, votes: OneVsOne | None, dtype: Any) -> Any:
    """The ``ModelProto`` of an expansion and a kind of decision."""
    try:
        from onnx import checker, helper, numpy_helper, parser
    except ImportError as error:
        raise ImportError(
            f'to_onnx needs the package onnx, which is not installed: pip install "reduset[onnx]" ({error})'
        ) from error
    number = np.dtype(dtype)
    if number not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    real = int(helper.np_dtype_to_tensor_dtype(number))
    constants = _constants(expansion, number)
    if kind == "regressor":
        text, outputs = REGRESSION, [("variable", real, [None, 1])]
    elif votes is None:
        text, outputs = OUTLIERS, [("label", INT64, [None]), ("scores", real, [None])]
        constants |= {"inlier": np.array(1, np.int64), "outlier": np.array(-1, np.int64)}
    else:
        text, decision, columns = _election(votes)
        constants |= decision
        label_type = STRING if decision["classes"].dtype.kind == "O" else INT64
        outputs = [("label", label_type, [None]), ("scores", real, [None, columns] if columns else [None])]
    nodes = [parser.parse_node(line) for line in (VALUES + text).format(real=real).splitlines() if line]
    used = {name for node in nodes for name in node.input}
    arrays = {name: array.astype(number) if array.dtype.kind == "f" else array for name, array in constants.items() if name in used}
    body = helper.make_graph(
        nodes,
        "compressed_svm",
        [helper.make_tensor_value_info("X", real, [None, expansion.dimension])],
        [helper.make_tensor_value_info(*output) for output in outputs],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(body, opset_imports=[opset], ir_version=IR, producer_name="reduset")
    checker.check_model(model)
    return model


def write(model: Any, path: _archive.Path_) -> None:
    """Write a model atomically."""
    _archive.write_whole(path, lambda stream: stream.write(model.SerializeToString()))


def _constants(expansion: GaussianExpansion, number: np.dtype[Any]) -> dict[str, Array]:
    """The constants of ``VALUES``, and numbers."""
    centre = expansion.centres.mean(axis=0).astype(number).astype(np.float64)  # rounded as in the graph
    centres, rates = expansion.centres - centre, 0.5 / expansion.widths**2
    return {
        "centre": centre,
        "directions": 2.0 * rates * centres.T,
        "columns": np.array([1], np.int64),
        "rates": rates[None],
        "lengths_of_centres": (rates * (centres**2).sum(axis=1))[None],
        "weights": expansion.weights,
        "intercepts": expansion.intercepts[None],
        "zero": np.array(0.0),
        "one": np.array(1.0),
        "three": np.array(3.0),
    }


def _election(votes: OneVsOne) -> tuple[str, dict[str, Any], int]:
    """Label and scores of a classifier: the operators, their constants, and the columns of the scores, 0 for a vector."""
    is_text = votes.classes.dtype.kind in "OUS"
    labels = np.array([str(label) for label in votes.classes], dtype=object) if is_text else votes.classes.astype(np.int64)
    if not is_text and (labels != votes.classes).any():
        raise ValueError(f"classes must be whole numbers or text for ONNX, got {votes.classes.dtype}; refit with such labels")
    gather = "\nlabel = Gather <axis = 0> (classes, winner)"
    if len(labels) == 2:
        return TWO_CLASSES + gather, {"classes": labels}, 0
    first, second = votes.winners
    elected, election = ("scores", "") if votes.break_ties else ("elected", ELECTION)
    winner = f"\nwinner = ArgMax <axis = 1, keepdims = 0> ({elected})"
    constants = {
        "classes": labels,
        "first_minus_second": first - second,
        "second_minus_first": second - first,
        "all_first": first.sum(axis=0)[None],
        "all_second": second.sum(axis=0)[None],
    }
    scores, columns = (OVR_SCORES, len(labels)) if votes.shape == "ovr" else (OVO_SCORES, len(first))
    return scores + election + winner + gather, constants, columns
