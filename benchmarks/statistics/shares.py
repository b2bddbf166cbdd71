"""Proportions of populations from the weights of few atoms and of the rows of a sketch, with the error of each in the norm.

Populations are the clusters of a mixture that was fitted to the rows; a row, or an atom, belongs to the most likely one. The figure
is Σ|proportion by weights − proportion of the rows|, which is 200 % at most.
"""

from __future__ import annotations

import numpy as np
from sklearn.mixture import GaussianMixture

from benchmarks._lib import data_folder, table
from reduset import compress, sketch

TITLE = "Proportions of populations from few atoms and rows"

KINDS = ("free", "simplex")  # weights of compress
SKETCH = "sketch"
POPULATIONS, SIZES, SEEDS = 12, (500, 2000), 3


def _sets() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(POPULATIONS, 4))
    label = rng.choice(POPULATIONS, 60_000, p=rng.dirichlet(np.full(POPULATIONS, 0.5)))
    found = {"twelve clusters, 60,000×4": centres[label] + rng.normal(size=(60_000, 4))}
    cells = np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False)["X"].reshape(-1, 8)[:, :7].astype(np.float64)
    cells[:, 2:] = np.log(np.maximum(cells[:, 2:], 1.0))  # two channels of scatter, and five of fluorescence
    found["cytometry, 150,000×7, standardised"] = (cells - cells.mean(axis=0)) / cells.std(axis=0)
    return found


def run() -> str:
    rows = []
    for name, X in _sets().items():
        model = GaussianMixture(POPULATIONS, random_state=0).fit(X[:: max(1, len(X) // 20_000)])
        truth = np.bincount(model.predict(X), minlength=POPULATIONS) / len(X)
        for size in SIZES:
            cells = [name, f"{size:,}"]
            for kind in (*KINDS, SKETCH):
                off, lost = [], []
                for seed in range(SEEDS):
                    small = sketch(X, size, rng=seed) if kind == SKETCH else compress(X, size=size, weights=kind, rng=seed)
                    shares = np.bincount(model.predict(small.mean.atoms), small.mean.weights, POPULATIONS)
                    off.append(np.abs(shares - truth).sum())
                    lost.append(small.certificate.relative_error)
                cells.append(f"{100 * np.median(off):.2g} % ({100 * np.median(lost):.2g} %)")
            random = []
            for seed in range(SEEDS):
                some = np.random.default_rng(seed).choice(len(X), size, replace=False)
                random.append(np.abs(np.bincount(model.predict(X[some]), minlength=POPULATIONS) / size - truth).sum())
            rows.append([*cells, f"{100 * np.median(random):.2g} %"])
    head = ["rows", "atoms", *(f"{kind}: error (in the norm)" for kind in (*KINDS, SKETCH)), "random rows: error"]
    return table(head, rows) + (f"\n\nErrors in the norm at the resolution of each; medians of {SEEDS} seeds.")
