"""Balanced atoms: the error beside that of `auto`, the covering radius beside that of farthest-first atoms, and rare groups.

Real cells (fluorescence as log, columns standardised), digits, flights and a banana; 300 to 3,000 atoms, free weights, bandwidths
of a half to an eighth of the median distance. Errors are those of the certificates, radii those of all rows to their nearest atom.

Rare groups: ten of 0.1 % each are planted among the cells, normal with a tenth of the spread of the columns, their centres three to
five spreads from the middle in random directions; a group is kept where an atom is within three of its deviations of its centre.
"""

from __future__ import annotations

import numpy as np

from harness import data_folder, table, verdict
from reduset import Gaussian, compress
from reduset.bandwidth import median

TITLE = "Balanced atoms: cover and error at once"

SIZES, PARTS = (300, 1000, 3000), (2, 4, 8)
GOAL = 1.3
GROUPS, SHARE, TIGHT = 10, 0.001, 0.1


def cells(columns: int) -> np.ndarray:
    with np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False) as file:
        X = file["X"].reshape(-1, 8)[:, :7].astype(np.float64)
    X[:, 2:] = np.log(X[:, 2:])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[np.random.default_rng(0).choice(len(X), 100_000, replace=False)][:, 7 - columns :]


def digits() -> np.ndarray:
    with np.load(data_folder() / "mnist_digits0to4.npz", allow_pickle=False) as file:
        X = file["X_train"] / 255.0
    X -= X.mean(axis=0)
    return X @ np.linalg.eigh(X.T @ X)[1][:, :-31:-1]


def flights() -> np.ndarray:
    with np.load(data_folder() / "big_flights.npz", allow_pickle=False) as file:
        X = file["X"][:100_000, :5].astype(np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def banana() -> np.ndarray:
    with np.load(data_folder() / "raetsch_banana.npz", allow_pickle=False) as file:
        return file["X"].astype(np.float64)


SETS = {
    "cells, 100,000×6": lambda: cells(6),
    "cells, 100,000×2": lambda: cells(2),
    "digits, 30,596×30": digits,
    "flights, 100,000×5": flights,
    "banana, 5,300×2": banana,
}


def measured(name: str, X: np.ndarray) -> list[list[object]]:
    rows = []
    for size in (size for size in SIZES if 5 * size <= len(X)):
        for part in PARTS:
            kernel = Gaussian(median(X) / part)
            auto, ours, cover = (compress(X, kernel, size=size, select=each, rng=0) for each in ("auto", "balanced", "kcenter"))
            least, reach = auto.certificate.relative_error, cover.certificate.radius
            found = ours.certificate.relative_error / least, ours.certificate.radius / reach, auto.certificate.radius / reach
            rows.append([name, size, f"1/{part}", least, *found])
    return rows


def rare() -> list[list[object]]:
    X = cells(6)
    rng = np.random.default_rng(1)
    towards = rng.normal(size=(GROUPS, 6))
    centres = towards / np.linalg.norm(towards, axis=1, keepdims=True) * rng.uniform(3, 5, size=(GROUPS, 1)) * np.sqrt(6)
    each = round(SHARE * len(X))
    planted = np.concatenate([centre + TIGHT * rng.normal(size=(each, 6)) for centre in centres])
    X = np.concatenate([X, planted])
    rows = []
    for size in (100, *SIZES):
        found = []
        for select in ("kcenter", "balanced", "auto"):
            atoms = compress(X, Gaussian(median(X) / 4), size=size, select=select, rng=0).mean.atoms
            found.append(sum(np.linalg.norm(atoms - centre, axis=1).min() < 3 * TIGHT * np.sqrt(6) for centre in centres))
        rows.append([f"{size:,}", *(f"{count} of {GROUPS}" for count in found)])
    return rows


def run() -> str:
    rows = [row for name, make in SETS.items() for row in measured(name, make())]
    errors, radii = (np.array([row[k] for row in rows], dtype=float) for k in (4, 5))
    told = [(a, f"{b:,}", c, f"{d:.2g}", f"{e:.2f}", f"{f:.2f}", f"{g:.2f}") for a, b, c, d, e, f, g in rows]
    head = [
        "data",
        "atoms",
        "bandwidth, of the median",
        "error of `auto`",
        "ours, over that",
        "radius, over k-centre's",
        "`auto`'s",
    ]
    of_cells = errors[[row[0].startswith("cells, 100,000×6") and row[1] == 1000 for row in rows]].max()
    return "\n\n".join(
        [
            table(head, told),
            f"Error at most {GOAL} times that of `auto`: {np.mean(errors <= GOAL):.0%} of {len(rows)} cells, median "
            f"{np.median(errors):.2f}, largest {errors.max():.2f}; of 1,000 atoms for the real cells in six columns {of_cells:.2f} "
            f"(at most {GOAL}: {verdict(-of_cells, -GOAL)}). Radius at most {GOAL} times that of k-centre: "
            f"{np.mean(radii <= GOAL):.0%}, largest {radii.max():.2f}.",
            "Rare groups of 0.1 % that are kept:",
            table(["atoms", "k-centre", "balanced", "`auto`"], rare()),
        ]
    )
