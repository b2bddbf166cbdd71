"""How often the 95 % interval of the certificate covers the exact error, and how wide it is, on real data.

Six data sets, five kernels, 20 and 200 atoms. The data are small enough for the exact error, which the certificate does not use
here. Goal: at least 95 % of all intervals cover the exact error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._lib import data_folder, table, verdict
from reduset import Gaussian, KernelMean, Laplacian, Student
from reduset.certificate import rule
from reduset.certificate.rule import ExactProbe
from reduset.select import KCenter
from reduset.weights import span_of

TITLE = "The certificate's interval against the exact error, on real data"
SOURCES = (
    *("certificate/rule.py", "certificate/by_frequencies.py", "certificate/frequencies.py"),
    *("certificate/probe.py", "certificate/comparison.py", "kernels/spectra.py"),
)

REPETITIONS, GOAL = 100, 0.95
QUICK_REPETITIONS, QUICK_SETS, QUICK_KERNELS = 10, ("banana", "flights (whole numbers)"), 2
KERNELS = (Gaussian("median"), Gaussian("scott"), Gaussian("jaakkola"), Laplacian("median"), Student("scott"))


def clouds() -> dict[str, np.ndarray]:
    def load(name: str) -> dict:
        return dict(np.load(data_folder() / f"{name}.npz", allow_pickle=False))

    photo = load("images_std")["coffee"][::16, ::16].astype(float)
    rows, columns = np.mgrid[: photo.shape[0], : photo.shape[1]]
    pixels = np.concatenate([photo.reshape(-1, 3), 4.0 * rows.reshape(-1, 1), 4.0 * columns.reshape(-1, 1)], axis=1)
    return {
        "banana": load("raetsch_banana")["X"][:1500],
        "cytometry": load("cyto_itn15")["X"][0][:2000].astype(float),
        "flights (whole numbers)": load("big_flights")["X"][:1500, :5].astype(float),
        "pendigits": load("pendigits")["X_train"][:1500].astype(float),
        "usps": load("usps")["X_train"][:1000].astype(float),
        "photograph": pixels,
    }


def cell(X: np.ndarray, kernel, size: int, repetitions: int) -> tuple[float, float, float, str]:
    """(relative error, proportion of intervals that cover it, mean half-width relative to it, method)."""
    mean = KernelMean.from_samples(X, kernel)
    atoms = KCenter(first=0).select(mean, size).atoms
    found = span_of(mean.kernel, atoms, mean.kernel.product_sums(mean.atoms, mean.weights, atoms))
    weights = found.weights("free", mean.mass, found.size)
    exact = ExactProbe(mean, None).measure(found.atoms, weights, found.kappa)
    measured = [
        rule.probe_for(mean, 0.95, np.random.default_rng(seed)).measure(found.atoms, weights, found.kappa)
        for seed in range(repetitions)
    ]
    covered = np.mean([m.low <= exact.high and exact.low <= m.high for m in measured])  # the exact sum is rounded, too
    width = np.mean([(np.sqrt(m.high) - np.sqrt(m.low)) / 2 for m in measured]) / np.sqrt(exact.square)
    error = np.sqrt(exact.square / (found.energy(found.size) + exact.square))
    return float(error), float(covered), float(width), measured[0].method


def measure(quick: bool) -> dict[str, Any]:
    exact = rule.EXACT_UP_TO
    rule.EXACT_UP_TO = 0  # these data are small enough for exact sums, which are the truth here
    repetitions = QUICK_REPETITIONS if quick else REPETITIONS
    rows, proportions, widths = [], [], []
    try:
        for name, X in clouds().items():
            for kernel in KERNELS[: QUICK_KERNELS if quick else None]:
                for size in () if quick and name not in QUICK_SETS else (20, 200):
                    error, covered, width, method = cell(X, kernel, size, repetitions)
                    proportions.append(covered)
                    widths.append(width)
                    shape = f"{name} {len(X):,}×{X.shape[1]}"
                    rows.append([shape, repr(kernel), size, f"{error:.1e}", f"{covered:.0%}", f"±{width:.1%}", method])
    finally:
        rule.EXACT_UP_TO = exact
    head = ["data", "kernel", "size", "true error", "covered", "half-width, of the error", "by"]
    mean, count = float(np.mean(proportions)), repetitions * len(rows)
    details = (
        f"In all {len(rows)} cells together {mean:.1%} of {count:,} intervals cover the exact error. The lowest coverage of a cell "
        f"is {min(proportions):.0%}. The exact error has an interval, too, for the rounding of its sums; it is wide for errors "
        "below "
        "1e-7.\n\n" + table(head, rows)
    )
    summary = [
        [f"coverage of {count:,} intervals", f"{mean:.1%}", f"≥ {GOAL:.0%}", verdict(mean, GOAL)],
        ["lowest coverage of a cell", f"{min(proportions):.0%}", "", ""],
        ["half-width, of the error", f"{min(widths):.1%} to {max(widths):.1%}", "", ""],
    ]
    return {"summary": summary, "details": details}
