"""Proportions of populations from the weights of atoms and of sketched rows, against random rows of the same number.

Populations are the clusters of a mixture fitted to the rows; a row or an atom belongs to the most likely one. The error is
Σ|proportion by weights − proportion of the rows|, at most 200 %. Goal: a sketch has a smaller error than random rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from benchmarks._lib import data_folder, table, verdict
from reduset import compress, sketch

TITLE = "Proportions of populations from few atoms and rows"
SOURCES = ("sketching", "select/auto.py", "select/kmeans.py", "compression/resolution.py", "weights")

KINDS = ("free", "simplex")  # weights of compress
SKETCH = "sketch"
POPULATIONS, SIZES, SEEDS = 12, (500, 2000), 3
QUICK_EVERY, QUICK_SIZES, QUICK_SEEDS = 20, (200,), 1  # every 20th row


def _sets() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(POPULATIONS, 4))
    label = rng.choice(POPULATIONS, 60_000, p=rng.dirichlet(np.full(POPULATIONS, 0.5)))
    found = {"twelve clusters, 60,000×4": centres[label] + rng.normal(size=(60_000, 4))}
    cells = np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False)["X"].reshape(-1, 8)[:, :7].astype(np.float64)
    cells[:, 2:] = np.log(np.maximum(cells[:, 2:], 1.0))  # two channels of scatter, and five of fluorescence
    found["cytometry, 150,000×7, standardised"] = (cells - cells.mean(axis=0)) / cells.std(axis=0)
    return found


def measure(quick: bool) -> dict[str, Any]:
    sizes, seeds = (QUICK_SIZES, QUICK_SEEDS) if quick else (SIZES, SEEDS)
    rows, summary = [], []
    for name, X in _sets().items():
        X = X[:: QUICK_EVERY if quick else 1]
        model = GaussianMixture(POPULATIONS, random_state=0).fit(X[:: max(1, len(X) // 20_000)])
        truth = np.bincount(model.predict(X), minlength=POPULATIONS) / len(X)
        for size in sizes:
            off, norms = {}, {}
            for kind in (*KINDS, SKETCH):
                found = []
                for seed in range(seeds):
                    small = sketch(X, size, rng=seed) if kind == SKETCH else compress(X, size=size, weights=kind, rng=seed)
                    proportions = np.bincount(model.predict(small.mean.atoms), small.mean.weights, POPULATIONS)
                    found.append((np.abs(proportions - truth).sum(), small.certificate.relative_error))
                off[kind], norms[kind] = np.median(found, axis=0)
            random = []
            for seed in range(seeds):
                some = np.random.default_rng(seed).choice(len(X), size, replace=False)
                random.append(np.abs(np.bincount(model.predict(X[some]), minlength=POPULATIONS) / size - truth).sum())
            off["random"] = np.median(random)
            shown = {kind: f"{100 * error:.2g} %" for kind, error in off.items()}
            errors = [f"{shown[kind]} ({100 * norms[kind]:.2g} %)" for kind in (*KINDS, SKETCH)]
            rows.append([name, f"{size:,}", *errors, shown["random"]])
            summary.append([f"{name.split(',')[0]}, {size:,}: free, simplex, sketch", ", ".join(shown[k] for k in (*KINDS, SKETCH)),
                            f"sketch below {shown['random']} (random)", verdict(off["random"], off[SKETCH])])  # fmt: skip
    head = ["rows", "atoms", *(f"{kind}: error (in the norm)" for kind in (*KINDS, SKETCH)), "random rows: error"]
    text = f"\n\nErrors in the norm at the resolution of each; medians of {seeds} seeds."
    return {"summary": summary, "details": table(head, rows) + text}
