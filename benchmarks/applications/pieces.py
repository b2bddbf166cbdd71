"""Pieces with shapes: components beside atoms and scikit-learn's GaussianMixture on a million rows, and a tolerance alone.

Times are of one run, one after the other. Errors in L2, relative to the norm of the density of all rows at Scott's bandwidth,
checked by importance sampling apart from what each says of itself (`mixture_density.Check`).
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from benchmarks._lib import data_folder, table, verdict
from benchmarks.applications.mixture_density import Check, standardised
from reduset import Gaussian, KernelMean, Mixture, bandwidth, compress
from reduset.density.likelihood import search_bandwidth

TITLE = "Components on a million rows, and a tolerance without a bandwidth"

ROWS, COLUMNS, SIZE, ATOMS = 1_000_000, 6, 200, 1000
SECONDS, SHARE, FASTER = 15.0, 0.25, 10.0
STEPS = 10  # of scikit-learn's EM: more would only take longer
TOLS = (0.02, 0.05)


def bent_clusters(n: int = ROWS, seed: int = 0) -> np.ndarray:
    """Twelve clusters, oblique and bent, so that no mixture of twelve components is them."""
    rng = np.random.default_rng(seed)
    X, cluster = np.empty((n, COLUMNS)), rng.integers(0, 12, n)
    for k in range(12):
        rows = cluster == k
        turn, centre = rng.normal(size=(COLUMNS, COLUMNS)) * rng.uniform(0.2, 0.8), 3 * rng.normal(size=COLUMNS)
        u = rng.normal(size=(int(rows.sum()), COLUMNS))
        u[:, 1] += 0.5 * u[:, 0] ** 2
        X[rows] = centre + u @ turn
    return standardised(X)


def cytometry(n: int = ROWS) -> np.ndarray:
    """Six channels of 15 blood samples, rows drawn with replacement and a twentieth of a spread of noise."""
    with np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False) as file:
        X = standardised(file["X"].reshape(-1, 8)[:, :COLUMNS].astype(np.float64))
    rng = np.random.default_rng(0)
    return standardised(X[rng.integers(0, len(X), n)] + 0.05 * rng.normal(size=(n, COLUMNS)))


def _timed(call):
    """What a call gives, and its seconds on the clock and of the processors: the second say more on a busy machine."""
    begun, worked = time.perf_counter(), time.process_time()
    found = call()
    return found, (time.perf_counter() - begun, time.process_time() - worked)


def _sklearn(X: np.ndarray, kernel: Gaussian) -> tuple[Mixture, Mixture]:
    """scikit-learn's mixture of the rows, and the same with the bumps of the density added to it."""
    from sklearn.mixture import GaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = GaussianMixture(SIZE, max_iter=STEPS, random_state=0).fit(X)
    plain = Mixture.from_sklearn(fitted)
    return plain, Mixture(plain.weights, plain.means, plain.covariances + kernel.width**2 * np.eye(X.shape[1]))


def _million() -> str:
    rows = []
    warm = bent_clusters(20_000)
    compress(warm, Gaussian("scott", normalized=True, space="l2"), size=20, pieces="components", rng=0)
    compress(warm, Gaussian("scott", normalized=True, space="l2"), size=20, weights="simplex", rng=0)
    for name, X in (("cytometry", cytometry()), ("bent clusters", bent_clusters())):
        full = KernelMean.from_samples(X, Gaussian(bandwidth.scott(X), normalized=True, space="l2"))
        check = Check(full, np.random.default_rng(3))
        ours, took = _timed(lambda full=full: compress(full, size=SIZE, pieces="components", rng=0))
        atoms, atoms_took = _timed(lambda full=full: compress(full, size=ATOMS, weights="simplex", rng=0))
        theirs, theirs_took = (
            _timed(lambda X=X, full=full: _sklearn(X, full.kernel)) if name == "bent clusters" else (None, (np.nan, np.nan))
        )
        error, spread = check.error(ours.mean)
        of_atoms, _ = check.error(atoms.mean)
        of_theirs = min(check.error(each)[0] for each in theirs) if theirs else np.nan
        rows.append(
            [
                f"{name}, {len(X):,}×{X.shape[1]}",
                f"{took[0]:.1f} s ({took[1]:.1f})",
                verdict(-took[0], -SECONDS),
                f"{100 * ours.certificate.relative_error:.2f} %",
                f"{100 * error:.2f} ± {100 * spread:.2f} %",
                f"{atoms_took[0]:.1f} s ({atoms_took[1]:.1f})",
                f"{100 * of_atoms:.1f} %",
                f"{error / of_atoms:.2f}",
                verdict(-error / of_atoms, -SHARE),
                f"{theirs_took[0]:.0f} s ({theirs_took[1]:.0f})",
                f"{100 * of_theirs:.2f} %",
                f"{theirs_took[1] / took[1]:.0f}×",
            ]
        )
    head = [
        "rows",
        f"{SIZE} components",
        f"≤ {SECONDS:g} s",
        "stated",
        "checked",
        f"{ATOMS:,} atoms",
        "checked",
        "ratio",
        f"≤ {SHARE:g}",
    ]
    return table([*head, f"GaussianMixture({SIZE})", "checked", "its processor time / ours"], rows) + (
        f"\n\nIn brackets, seconds of the processors. scikit-learn's mixture is stopped after k-means and {STEPS} "
        "steps of EM, so that its time is a lower bound, and the "
        "better of two errors is told: as it is, and with the density's own bumps added to its covariances."
    )


def _tolerance_alone() -> str:
    """What tol alone comes to, beside bandwidths that others would choose."""
    rows = []
    for n in (5_000, 50_000, 500_000):
        X = bent_clusters(n, 1)[:, :3]
        likely = search_bandwidth(X[:50_000], Gaussian(1.0, normalized=True), rng=0).best
        for tol in TOLS:
            (small, took), median = _timed(lambda X=X, tol=tol: compress(X, tol=tol, rng=0)), bandwidth.median(X)
            kernel = small.mean.kernel
            profile = small.profile([small.resolution])
            rows.append(
                [
                    f"{n:,}×3",
                    f"{tol:.0%}",
                    f"{kernel.width:.3f}",
                    f"1/{median / kernel.width:.3g}",
                    f"{likely:.3f}",
                    f"{small.size:,}" + ("" if small.resolved.by_noise else " (the most allowed)"),
                    f"{profile.noise[0]:.1%}",
                    f"{small.certificate.interval[1]:.1%}",
                    f"{took[0]:.1f} s",
                ]
            )
    head = ["rows", "tol", "bandwidth", "of the median", "by likelihood", "atoms", "noise of the sample", "lost at most", "time"]
    return (
        "`compress(X, tol=…)`, bent clusters in three columns:\n\n"
        + table(head, rows)
        + (
            "\n\nThe bandwidth is where the rows are off their law by the tolerance, or what 1,000 atoms "
            "bear where that is coarser. It follows the number of rows as one by held-out likelihood does (of up to 50,000 rows): "
            "finer detail would be noise by more than is tolerated, coarser detail alone would leave unsaid what the rows know."
        )
    )


def run() -> str:
    return _million() + "\n\n" + _tolerance_alone()
