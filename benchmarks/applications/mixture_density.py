"""A kernel density of many rows at a small bandwidth: on few components with covariances of their own, and on few atoms.

Both minimise the L2 error. What each says of its error is checked by another way: with x₁, x₂, … drawn from a density q,

    ‖f − g‖² / ‖f‖² ≈ Σₖ (f − g)²(xₖ)/q(xₖ) / Σₖ f²(xₖ)/q(xₖ),        q = ½f + ½(wider bumps on some rows)
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.applications.density import cloud
from benchmarks._lib import data_folder, table, verdict
from reduset import Gaussian, KernelMean, Mixture, bandwidth, compress, simplify

TITLE = "Mixtures for densities"

ROWS, DIMENSION = 250_000, 5
SIZE, OTHER_SIZES = 200, (50, 800)
DRAWS, ANCHORS, WIDER = 20_000, 2_000, 1.5
SHARE = 1 / 3


def standardised(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))


def flights() -> np.ndarray:
    """The five columns that have distances, spread evenly over the units that they were rounded to."""
    with np.load(data_folder() / "big_flights.npz") as file:
        X = file["X"][:ROWS, :DIMENSION].astype(np.float64)
    return standardised(X + np.random.default_rng(0).uniform(-0.5, 0.5, X.shape))


def cytometry() -> np.ndarray:
    """Two channels of scatter, as they come, and the logarithms of CD8, CD4 and CD3, of all 15 patients."""
    with np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False) as file:
        X = file["X"].reshape(-1, file["X"].shape[-1])[:, [0, 1, 2, 4, 5]].astype(np.float64)
    X[:, 2:] = np.log10(X[:, 2:])
    return standardised(X)


DATA: dict[str, Callable[[], np.ndarray]] = {
    "12 clusters": lambda: cloud(ROWS, np.random.default_rng(1)),
    "flights": flights,
    "cytometry": cytometry,
}


class Check:
    """The relative L2 error of any g, from draws that all of them share."""

    def __init__(self, full: KernelMean, rng: np.random.Generator) -> None:
        h = full.kernel.width
        rows = rng.choice(full.size, DRAWS)
        anchors = full.atoms[rng.choice(full.size, ANCHORS, replace=False)]
        wide = Mixture(np.full(ANCHORS, 1 / ANCHORS), anchors, np.full(ANCHORS, (WIDER * h) ** 2))
        half = DRAWS // 2
        near = full.atoms[rows[:half]] + h * rng.normal(size=(half, full.dimension))
        self._places = np.concatenate([near, wide.sample(DRAWS - half, rng)])
        self._f = full(self._places, "double")
        self._q = (self._f + wide(self._places)) / 2

    def error(self, g: Mixture | KernelMean) -> tuple[float, float]:
        """And its standard error."""
        lost, all_of_it = ((self._f - g(self._places)) ** 2 / self._q, self._f**2 / self._q)
        square = lost.sum() / all_of_it.sum()
        spread = np.linalg.norm(lost - square * all_of_it) / all_of_it.sum()
        return float(np.sqrt(square)), float(spread / (2 * np.sqrt(square)))


def compared(full: KernelMean, check: Check, size: int) -> tuple[list[str], list[str], float, float]:
    """Cells of the atoms, of the components, and the ratio of the errors that they state, and of the checked ones."""
    begun = time.perf_counter()
    atoms = compress(full, size=size, select="auto", refine=True, weights="free", rng=0)
    halfway = time.perf_counter()
    found = simplify(full, size=size, rng=0)
    took = (halfway - begun, time.perf_counter() - halfway)
    cells, checked = [], []
    for stated, interval, g, seconds in (
        (atoms.certificate.relative_error, atoms.certificate.interval, atoms.mean, took[0]),
        (found.error, found.interval, found.mixture, took[1]),
    ):
        value, spread = check.error(g)
        checked.append(value)
        cells.append([f"{stated:.4f} ({interval[0]:.4f} to {interval[1]:.4f})", f"{value:.4f} ± {spread:.4f}", f"{seconds:.1f} s"])
    return cells[0], cells[1], found.error / atoms.certificate.relative_error, checked[1] / checked[0]


def run() -> str:
    small = KernelMean.from_samples(cloud(3000, np.random.default_rng(2)), Gaussian(1.0, normalized=True, space="l2"))
    compress(small, size=20, refine=True, rng=0)  # what is compiled is not timed
    simplify(small, size=20, rng=0)
    rows = []
    for name, load in DATA.items():
        X = load()
        full = KernelMean.from_samples(X, Gaussian(bandwidth.scott(X), normalized=True, space="l2"))
        check = Check(full, np.random.default_rng(3))
        for size in (SIZE, *(OTHER_SIZES if name == "12 clusters" else ())):
            atoms, components, stated, checked = compared(full, check, size)
            goal = [f"{SHARE:.2f}", verdict(-max(stated, checked), -SHARE)] if size == SIZE else ["", ""]
            rows.append([name, f"{len(X):,}×{X.shape[1]}", f"{full.kernel.width:.3f}", size, *atoms, *components,
                         f"{stated:.3f}", f"{checked:.3f}", *goal])  # fmt: skip
    sides = [[f"{who}: error stated (95 %)", "checked", "time"] for who in ("atoms", "components")]
    head = ["data", "rows", "bandwidth", "size", *sides[0], *sides[1], "ratio stated", "ratio checked", "goal", "met"]
    return (
        "Densities f with Scott's bandwidth. L2 errors relative to ‖f‖ of the best atoms of that bandwidth, `compress(full, size, "
        'select="auto", refine=True, '
        'weights="free")`, and of as many components with full covariances of their own, `simplify(full, size)`, a valid density. '
        f"Errors are checked by importance sampling at {DRAWS:,} places, apart from either's own estimate (± a standard error). "
        f"Flights: the first {ROWS:,} rows, five columns, spread evenly by half a unit to either side of their whole numbers, "
        "standardised. Cytometry: all 150,000 cells there are, of 15 blood samples; two channels of scatter and the logarithms of "
        "CD8, CD4 and CD3, standardised. One timing of each.\n\n" + table(head, rows)
    )
