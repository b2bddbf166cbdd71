"""Do our estimators pass the tests of scikit-learn and SciPy for the classes that they replace?

The tests are those inside the installed packages, with the class under test replaced by ours under its signature
(`peer_standins.py`, `suite_scipy.py`); `peer_plugin.py` runs each suite in a new process. A test does not apply if it requires what
ours rejects by name (`REJECTED`). It differs if a reason is listed for it. Goal: no other failure, and none of scikit-learn's
common checks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from sklearn.utils.estimator_checks import check_estimator

import reduset
from benchmarks._lib import table, verdict
from reduset.density import SparseKernelDensity
from reduset.modes import SparseMeanShift
from reduset.spectral import (
    Nystroem,
    ReducedDiffusionMap,
    ReducedKernelPCA,
    ReducedLaplacianEigenmap,
    ReducedSpectralClustering,
    WeightedNystroem,
)
from reduset.stream import StreamCompressor

TITLE = "The peers' own tests, with ours in their place"
SOURCES = ("spectral", "modes", "density", "mean.py", "stream/estimator.py")

HERE = Path(__file__).resolve().parent
PASSED, DIFFERS, REJECTS, FAILED = "passed", "differs", "does not apply", "failed"


@dataclass(frozen=True)
class Suite:
    """Tests of a peer's class.

    ``replaces`` maps a dotted name of the peer to ``module:name`` of the stand-in. ``differs`` and ``rejects`` map patterns of
    tests to the reason why they do not pass, or do not apply if the failure does not state it.
    """

    peer: str
    ours: str
    tests: str
    replaces: dict[str, str]
    differs: dict[str, str] = field(default_factory=dict)
    rejects: dict[str, str] = field(default_factory=dict)


# part of a failure's message: what ours rejects
REJECTED = {
    "kernel='linear' is not supported": "linear kernel: no constant diagonal",
    "kernel='poly": "polynomial kernel: no constant diagonal",
    "kernel='sigmoid' is not offered": "sigmoid kernel: not positive definite",
    "'precomputed'": "a matrix of all pairs in place of points",
    "'precomputed_nearest_neighbors'": "a matrix of all pairs in place of points",
    "'nearest_neighbors'": "a graph of nearest neighbours",
    "must have a constant diagonal": "kernel without a constant diagonal",
    "'chi2'": "kernel without a constant diagonal",
    "Sparse data was passed": "sparse rows, or a sparse matrix of pairs",
    "NotOffered: eigen_solver": "eigen_solver `amg`, `lobpcg`",
    "NotOffered: seeds": "`seeds`",
    "NotOffered: metric_params": "`metric_params`",
    "kernel must be one of": "kernels of finite range",
    "metric must be": "metrics other than Euclidean",
}

PAIRS = REJECTED["'precomputed'"]
OTHER_RULE = "the rule for the bandwidth includes the scale of the data, theirs does not"

SUITES = (
    Suite(
        "KernelPCA",
        "ReducedKernelPCA",
        "sklearn.decomposition.tests.test_kernel_pca",
        {"sklearn.decomposition.KernelPCA": "peer_standins:KernelPCA"},
        rejects={
            "test_kernel_pca_linear_kernel*": "linear kernel: no constant diagonal",
            "test_gridsearch_pipeline_precomputed": PAIRS,
        },
    ),
    Suite(
        "SpectralEmbedding",
        "ReducedLaplacianEigenmap",
        "sklearn.manifold.tests.test_spectral_embedding",
        {"sklearn.manifold.SpectralEmbedding": "peer_standins:SpectralEmbedding"},
        rejects={
            "test_spectral_embedding_callable_affinity*": "a function of all rows that returns the matrix of their pairs",
            "test_spectral_embedding_preserves_dtype*": "`affinity_matrix_`: no matrix of all pairs is computed",
            "test_error_pyamg_not_available": "eigen_solver `amg`, `lobpcg`",
        },
    ),
    Suite(
        "SpectralClustering",
        "ReducedSpectralClustering",
        "sklearn.cluster.tests.test_spectral",
        {"sklearn.cluster.SpectralClustering": "peer_standins:SpectralClustering"},
        rejects={"test_affinities*": "a graph of nearest neighbours"},
    ),
    Suite(
        "MeanShift",
        "SparseMeanShift",
        "sklearn.cluster.tests.test_mean_shift",
        {"sklearn.cluster.MeanShift": "peer_standins:MeanShift"},
        differs={
            "test_mean_shift[[]float*-False-4--1[]]": "another kernel: distant rows belong to the mode that they converge to",
            "test_cluster_intensity_tie*": "another kernel: another order of clusters of equal height",
            "test_max_iter*": "another kernel and another rule for its bandwidth",
            "test_mean_shift_zero_bandwidth*": "another rule for the bandwidth, never 0",
        },
        rejects={"test_meanshift_all_orphans": "`seeds`"},
    ),
    Suite(
        "KernelDensity",
        "SparseKernelDensity",
        "sklearn.neighbors.tests.test_kde",
        {"sklearn.neighbors.KernelDensity": "peer_standins:KernelDensity"},
        differs={"test_kernel_density[[]s*": OTHER_RULE, "test_bandwidth[[]s*": OTHER_RULE},
    ),
    Suite(
        "Nystroem",
        "Nystroem",
        "sklearn.tests.test_kernel_approximation",
        {"sklearn.kernel_approximation.Nystroem": "peer_standins:Nystroem"},
    ),
    Suite(
        "gaussian_kde",
        "KernelMean",
        "scipy.stats.tests.test_kdeoth",
        {"scipy.stats.gaussian_kde": "suite_scipy:gaussian_kde"},
        differs={"test_kde_2d_weighted*": "rounding: 6e-14, the test requires 5e-14"},
    ),
)
ESTIMATORS = (
    ReducedKernelPCA(),
    ReducedLaplacianEigenmap(),
    ReducedDiffusionMap(),
    ReducedSpectralClustering(2),
    Nystroem(),
    WeightedNystroem(),
    SparseKernelDensity(),
    SparseMeanShift(),
    StreamCompressor(size=5),
)
QUICK_SUITES, QUICK_ESTIMATORS = SUITES[5:6], ESTIMATORS[4:5]


@dataclass(frozen=True)
class Outcome:
    """The result of one test, and the reason."""

    test: str
    kind: str
    why: str = ""


def measure(quick: bool) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    found = {suite.peer: (suite, outcomes(suite)) for suite in (QUICK_SUITES if quick else SUITES)}
    checks = common_checks(QUICK_ESTIMATORS if quick else ESTIMATORS)
    return {"summary": rows_of(found, checks), "details": text_of(found, checks)}


def outcomes(suite: Suite) -> list[Outcome]:
    """Run a suite."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "seen.json"
        asked = json.dumps({"replaces": suite.replaces, "out": str(out)})
        path = os.pathsep.join([str(HERE), str(Path(reduset.__file__).resolve().parents[1])])  # the imported version of the library
        command = [sys.executable, "-m", "pytest", "-q", "-p", "peer_plugin", "-p", "no:cacheprovider", "--rootdir", folder]
        command += ["-W", "ignore", "--pyargs", suite.tests]
        done = subprocess.run(
            command, env=os.environ | {"PEER_SUITE": asked, "PYTHONPATH": path}, capture_output=True, text=True, cwd=folder
        )
        if not out.exists():
            raise SystemExit(f"{suite.tests} did not run:\n{done.stdout}{done.stderr}")
        seen = json.loads(out.read_text(encoding="utf-8"))
    ran = {node.partition("::")[2]: each for node, each in seen.items() if each["outcome"] != "skipped"}  # by the suite itself
    return [_judged(suite, test, each["outcome"], each["message"]) for test, each in ran.items()]


def _judged(suite: Suite, test: str, outcome: str, message: str) -> Outcome:
    if outcome == PASSED:
        return Outcome(test, PASSED)
    for pattern, why in suite.rejects.items():
        if fnmatch(test, pattern):
            return Outcome(test, REJECTS, why)
    for part, why in REJECTED.items():
        if part in message:
            return Outcome(test, REJECTS, why)
    for pattern, why in suite.differs.items():
        if fnmatch(test, pattern):
            return Outcome(test, DIFFERS, why)
    return Outcome(test, FAILED, message.partition("\n")[0])


def common_checks(estimators: tuple[Any, ...]) -> list[tuple[str, Counter[str], list[str]]]:
    """scikit-learn's checks of every estimator: how many ended how, and which failed."""
    found = []
    for model in estimators:
        results = check_estimator(model.set_params(random_state=0), on_fail=None, on_skip=None)
        failed = [each["check_name"] for each in results if each["status"] == "failed"]
        found.append((type(model).__name__, Counter(each["status"] for each in results), failed))
    return found


def rows_of(found: dict[str, tuple[Suite, list[Outcome]]], checks: list[tuple[str, Counter[str], list[str]]]) -> list[list[str]]:
    counts = Counter(each.kind for _, tests in found.values() for each in tests)
    failed = sum(len(names) for *_, names in checks)
    return [
        ["tests of the peers: failed without a reason", f"{counts[FAILED]} of {counts.total()}", "0", verdict(0, counts[FAILED])],
        ["passed", str(counts[PASSED]), "", ""],
        ["differ for a listed reason", str(counts[DIFFERS]), "", ""],
        ["do not apply: rejected by name", str(counts[REJECTS]), "", ""],
        [
            "common checks of estimators: failed",
            f"{failed} of {sum(count.total() for _, count, _ in checks)}",
            "0",
            verdict(0, failed),
        ],
    ]


def text_of(found: dict[str, tuple[Suite, list[Outcome]]], checks: list[tuple[str, Counter[str], list[str]]]) -> str:
    rows, reasons = [], []
    for peer, (suite, tests) in found.items():
        count = Counter(each.kind for each in tests)
        rows.append([f"`{peer}`", f"`{suite.ours}`", len(tests), *(count[kind] for kind in (PASSED, DIFFERS, REJECTS, FAILED))])
        whys = Counter((each.kind, each.why) for each in tests if each.kind in (DIFFERS, REJECTS))
        reasons += [f"- `{peer}`, {kind}: {number} × {why}" for (kind, why), number in sorted(whys.items())]
        reasons += [f"- `{peer}`, FAILED without a reason: `{each.test}`: {each.why}" for each in tests if each.kind == FAILED]
    total = [sum(row[k] for row in rows) for k in range(2, 7)]
    head = ["theirs", "ours", "tests", "passed", "differ for a reason", "do not apply", "failed without a reason"]
    lines = [
        [f"`{name}`", count.total(), count["passed"], count["skipped"], count["failed"], ", ".join(failed)]
        for name, count, failed in checks
    ]
    return (
        "Tests inside the packages of scikit-learn and SciPy, with the class under test replaced by ours under its signature; "
        "every row is an atom. A test does not apply if it requires what ours rejects by name.\n\n"
        + table(head, [*rows, ["all", "", *total]])
        + "\n\n"
        + "\n".join(reasons)
        + "\n\nscikit-learn's common checks of estimators:\n\n"
        + table(["ours", "checks", "passed", "skipped", "failed", "names"], lines)
    )
