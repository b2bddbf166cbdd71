"""The peers' own tests, as they lie in their installed packages, with the class under test replaced by ours.

A suite is one entry of `SUITES`: a module of tests, what is replaced in it by which stand-in, and why some tests do not pass. Each
runs in a process of its own (`peer_plugin`). Nothing of the peers is copied.

A test *does not apply* where it asks for what ours refuses by name (`REFUSED`, by what the failure says), *differs* where a reason
is given for it by its name, and fails where neither holds.
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

import reduset
from benchmarks._lib import table

TITLE = "The peers' own tests, with ours in their place"
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Suite:
    """Tests of a peer's class.

    ``replaces`` leads from a dotted name of the peer to ``module:name`` of the stand-in, ``differs`` and ``refuses`` from a pattern
    of tests to why they do not pass, or do not apply where the failure does not say so itself.
    """

    peer: str
    ours: str
    tests: str
    replaces: dict[str, str]
    differs: dict[str, str] = field(default_factory=dict)
    refuses: dict[str, str] = field(default_factory=dict)


# what a failure says, and what it means: asked for and refused, each with a way out in its own words
REFUSED = {
    "kernel='linear' is not offered": "linear kernel: no constant diagonal",
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

PAIRS = REFUSED["'precomputed'"]

SUITES = (
    Suite(
        "KernelPCA",
        "ReducedKernelPCA",
        "sklearn.decomposition.tests.test_kernel_pca",
        {"sklearn.decomposition.KernelPCA": "peer_standins:KernelPCA"},
        refuses={
            "test_kernel_pca_linear_kernel*": "linear kernel: no constant diagonal",
            "test_gridsearch_pipeline_precomputed": PAIRS,
        },
    ),
    Suite(
        "SpectralEmbedding",
        "ReducedLaplacianEigenmap",
        "sklearn.manifold.tests.test_spectral_embedding",
        {"sklearn.manifold.SpectralEmbedding": "peer_standins:SpectralEmbedding"},
        refuses={
            "test_spectral_embedding_callable_affinity*": "a function of all rows that returns the matrix of their pairs",
            "test_spectral_embedding_preserves_dtype*": "`affinity_matrix_`: no matrix of all pairs is made",
            "test_error_pyamg_not_available": "eigen_solver `amg`, `lobpcg`",
        },
    ),
    Suite(
        "SpectralClustering",
        "ReducedSpectralClustering",
        "sklearn.cluster.tests.test_spectral",
        {"sklearn.cluster.SpectralClustering": "peer_standins:SpectralClustering"},
        refuses={"test_affinities*": "a graph of nearest neighbours"},
    ),
    Suite(
        "MeanShift",
        "SparseMeanShift",
        "sklearn.cluster.tests.test_mean_shift",
        {"sklearn.cluster.MeanShift": "peer_standins:MeanShift"},
        differs={
            "test_mean_shift[[]float*-False-4--1[]]": "another kernel: far rows belong to the mode that they climb to",
            "test_cluster_intensity_tie*": "another kernel: of clusters as high as each other, others come first",
            "test_max_iter*": "another kernel and another rule for its bandwidth",
            "test_mean_shift_zero_bandwidth*": "another rule for the bandwidth, never 0",
        },
        refuses={"test_meanshift_all_orphans": "`seeds`"},
    ),
    Suite(
        "KernelDensity",
        "SparseKernelDensity",
        "sklearn.neighbors.tests.test_kde",
        {"sklearn.neighbors.KernelDensity": "peer_standins:KernelDensity"},
        differs={
            "test_kernel_density[[]s*": "the rule for the bandwidth has the scale of the data, theirs leaves it out",
            "test_bandwidth[[]s*": "the rule for the bandwidth has the scale of the data, theirs leaves it out",
        },
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
        differs={"test_kde_2d_weighted*": "rounding: 6e-14 where 5e-14 is asked for"},
    ),
)


@dataclass(frozen=True)
class Outcome:
    """How one test ended: "passed", "differs", "does not apply" or "failed", and why."""

    test: str
    kind: str
    why: str = ""


def outcomes(suite: Suite) -> list[Outcome]:
    """Run a suite."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "seen.json"
        asked = json.dumps({"replaces": suite.replaces, "out": str(out)})
        path = os.pathsep.join(
            [str(HERE), str(Path(reduset.__file__).resolve().parents[1])]
        )  # this one, wherever it was imported from
        command = [sys.executable, "-m", "pytest", "-q", "-p", "peer_plugin", "-p", "no:cacheprovider", "--rootdir", folder]
        command += ["-W", "ignore", "--pyargs", suite.tests]
        done = subprocess.run(
            command, env=os.environ | {"PEER_SUITE": asked, "PYTHONPATH": path}, capture_output=True, text=True, cwd=folder
        )
        if not out.exists():
            raise SystemExit(f"{suite.tests} did not run:\n{done.stdout}{done.stderr}")
        seen = json.loads(out.read_text(encoding="utf-8"))
    ran = {node.partition("::")[2]: each for node, each in seen.items() if each["outcome"] != "skipped"}  # by the suite itself
    return [_judged(suite, test, each["outcome"], each["said"]) for test, each in ran.items()]


def _judged(suite: Suite, test: str, outcome: str, said: str) -> Outcome:
    if outcome == "passed":
        return Outcome(test, "passed")
    for pattern, why in suite.refuses.items():
        if fnmatch(test, pattern):
            return Outcome(test, "does not apply", why)
    for part, why in REFUSED.items():
        if part in said:
            return Outcome(test, "does not apply", why)
    for pattern, why in suite.differs.items():
        if fnmatch(test, pattern):
            return Outcome(test, "differs", why)
    return Outcome(test, "failed", said.partition("\n")[0])


def common_checks() -> list[tuple[str, Counter[str], list[str]]]:
    """scikit-learn's checks of every estimator, for each of ours that claims to be one."""
    from sklearn.utils.estimator_checks import check_estimator

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

    models = [ReducedKernelPCA(), ReducedLaplacianEigenmap(), ReducedDiffusionMap(), ReducedSpectralClustering(2), Nystroem()]
    models += [WeightedNystroem(), SparseKernelDensity(), SparseMeanShift(), StreamCompressor(size=5)]
    found = []
    for model in models:
        results = check_estimator(model.set_params(random_state=0), on_fail=None, on_skip=None)
        failed = [each["check_name"] for each in results if each["status"] == "failed"]
        found.append((type(model).__name__, Counter(each["status"] for each in results), failed))
    return found


def run() -> str:
    warnings.simplefilter("ignore")
    rows, told = [], []
    for suite in SUITES:
        found = outcomes(suite)
        count = Counter(each.kind for each in found)
        numbers = [count[kind] for kind in ("passed", "differs", "does not apply", "failed")]
        rows.append((f"`{suite.peer}`", f"`{suite.ours}`", len(found), *numbers))
        whys = Counter((each.kind, each.why) for each in found if each.kind in ("differs", "does not apply"))
        told += [f"- `{suite.peer}`, {kind}: {number} × {why}" for (kind, why), number in sorted(whys.items())]
        told += [f"- `{suite.peer}`, FAILED without a reason: `{each.test}`: {each.why}" for each in found if each.kind == "failed"]
    checks = [
        (f"`{name}`", sum(count.values()), count["passed"], count["skipped"], count["failed"], ", ".join(failed))
        for name, count, failed in common_checks()
    ]
    total = [sum(int(row[k]) for row in rows) for k in range(2, 7)]
    head = ("theirs", "ours", "tests", "passed", "differ, and why", "do not apply", "failed without a reason")
    return (
        "The tests inside the wheels of scikit-learn and SciPy, with the class under test replaced by ours under its signature, "
        "every row an atom. A test does not apply where it asks for what ours refuses by name.\n\n"
        + table(head, [*rows, ("all", "", *total)])
        + "\n\n"
        + "\n".join(told)
        + "\n\nscikit-learn's common checks of an estimator:\n\n"
        + table(("ours", "checks", "passed", "skipped", "failed", "which"), checks)
    )


if __name__ == "__main__":
    print(run())
