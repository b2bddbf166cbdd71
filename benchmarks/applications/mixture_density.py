"""How much smaller is the error of components with covariances than that of as many atoms, for kernel densities of many rows?

Both minimise the L2 error at a narrow bandwidth. Goal: a third of the error. Each error is checked independently of its own
estimate by importance sampling with draws x₁, x₂, … from a density q,

    ‖f − g‖² / ‖f‖² ≈ Σₖ (f − g)²(xₖ)/q(xₖ) / Σₖ f²(xₖ)/q(xₖ),        q = ½f + ½(a kernel density of some rows, wider)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._lib import data_folder, table, verdict
from benchmarks.applications.density import DIMENSION, cloud
from reduset import Gaussian, KernelMean, Mixture, bandwidth, compress, simplify

TITLE = "Mixtures for densities"
SOURCES = ("simplification", "mixture", "compression", "select")

ROWS, QUICK_ROWS = 250_000, 3_000
SIZE, OTHER_SIZES, QUICK_SIZE = 200, (50, 800), 20
DRAWS, ANCHORS, WIDER = 20_000, 2_000, 1.5
SHARE = 1 / 3
CLUSTERS = "12 clusters"


def standardised(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))


def flights(rows: int = ROWS) -> np.ndarray:
    """The five numeric columns, with uniform noise of the unit that they were rounded to."""
    with np.load(data_folder() / "big_flights.npz") as file:
        X = file["X"][:rows, :DIMENSION].astype(np.float64)
    return standardised(X + np.random.default_rng(0).uniform(-0.5, 0.5, X.shape))


def cytometry() -> np.ndarray:
    """Two channels of scatter and the logarithms of CD8, CD4 and CD3, of all 15 patients."""
    with np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False) as file:
        X = file["X"].reshape(-1, file["X"].shape[-1])[:, [0, 1, 2, 4, 5]].astype(np.float64)
    X[:, 2:] = np.log10(X[:, 2:])
    return standardised(X)


class Check:
    """The relative L2 error of any g, from draws that all g share."""

    def __init__(self, full: KernelMean, rng: np.random.Generator, draws: int = DRAWS, anchors: int = ANCHORS) -> None:
        h = full.kernel.width
        rows = rng.choice(full.size, draws)
        centres = full.atoms[rng.choice(full.size, anchors, replace=False)]
        wide = Mixture(np.full(anchors, 1 / anchors), centres, np.full(anchors, (WIDER * h) ** 2))
        half = draws // 2
        near = full.atoms[rows[:half]] + h * rng.normal(size=(half, full.dimension))
        self._points = np.concatenate([near, wide.sample(draws - half, rng)])
        self._f = full(self._points, "double")
        self._q = (self._f + wide(self._points)) / 2

    def error(self, g: Mixture | KernelMean) -> tuple[float, float]:
        """The error, and its standard error."""
        errors, norms = ((self._f - g(self._points)) ** 2 / self._q, self._f**2 / self._q)
        square = errors.sum() / norms.sum()
        spread = np.linalg.norm(errors - square * norms) / norms.sum()
        return float(np.sqrt(square)), float(spread / (2 * np.sqrt(square)))


def compared(full: KernelMean, check: Check, size: int) -> tuple[list[str], list[str], float, float]:
    """Cells of the atoms and of the components, the ratio of their stated errors and that of the checked errors."""
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


def measure(quick: bool) -> dict[str, Any]:
    n, size = (QUICK_ROWS, QUICK_SIZE) if quick else (ROWS, SIZE)
    checking = {"draws": 1000, "anchors": 100} if quick else {}
    data: dict[str, Callable[[], np.ndarray]] = {
        CLUSTERS: lambda: cloud(n, np.random.default_rng(1)),
        "flights": lambda: flights(n),
        "cytometry": lambda: cytometry()[:: 50 if quick else 1],
    }
    small = KernelMean.from_samples(cloud(3000, np.random.default_rng(2)), Gaussian(1.0, normalized=True, space="l2"))
    compress(small, size=20, refine=True, rng=0)  # compiles
    simplify(small, size=20, rng=0)
    rows, summary = [], []
    for name, load in data.items():
        X = load()
        full = KernelMean.from_samples(X, Gaussian(bandwidth.scott(X), normalized=True, space="l2"))
        check = Check(full, np.random.default_rng(3), **checking)
        for m in (size, *(OTHER_SIZES if name == CLUSTERS and not quick else ())):
            atoms, components, stated, checked = compared(full, check, m)
            goal = [f"≤ {SHARE:.2f}", verdict(-max(stated, checked), -SHARE)] if m == size else ["", ""]
            data_cells = [name, f"{len(X):,} × {X.shape[1]}", f"{full.kernel.width:.3f}", m]
            rows.append([*data_cells, *atoms, *components, f"{stated:.3f}", f"{checked:.3f}", *goal])
            if m == size:
                figure = f"{stated:.3f}, {checked:.3f}"
                summary.append([f"Error over that of {m} atoms, stated and checked: {name}", figure, *goal])
    sides = [[f"{who}: error stated (95 %)", "checked", "time"] for who in ("atoms", "components")]
    head = ["data", "rows", "bandwidth", "size", *sides[0], *sides[1], "ratio stated", "ratio checked", "goal", "met"]
    return {
        "summary": summary,
        "details": "Densities f with Scott's bandwidth. L2 errors relative to ‖f‖ of the best atoms of that bandwidth, "
        '`compress(full, size, select="auto", refine=True, weights="free")`, and of as many components with full covariances, '
        f"`simplify(full, size)`, a valid density. Errors are checked by importance sampling at {checking.get('draws', DRAWS):,} "
        f"points, independently of both estimates (± standard error). Flights: the first {n:,} rows, five columns, with uniform "
        "noise of their unit, standardised. Cytometry: cells of 15 blood samples; two channels of scatter and the logarithms of "
        "CD8, CD4 and CD3, standardised. One timing of each.\n\n" + table(head, rows),
    }
