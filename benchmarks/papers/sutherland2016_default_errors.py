"""The error of distances at the default settings, and its causes (Sutherland et al. 2016, (5) and the rules of thumb of Section 4).

Distances of the vectors A(p) against integration of κ of the same density estimates (`pairwise`). The settings: the default, M = 5
placed frequencies and 10 cosines an axis; no basis (`basis="values"`), where only the error of the frequencies remains; other M; 20
cosines. Goal: the causes of the error of total variation.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from benchmarks._lib import table
from benchmarks.applications.component_bags import draw
from reduset.features import DensityFeatures, pairwise

TITLE = "Errors of distances at the default settings (Sutherland et al. 2016)"
SOURCES = ("features/homogeneous_distances.py", "features/projection.py",
           "features/density_features.py")  # fmt: skip

DISTANCES = ("js", "hellinger", "chi2", "tv")
COUNTS = (1, 2, 3, 5, 8)


def normals(dimension: int, count: int, points: int = 500) -> list[np.ndarray]:
    """Bags of normal points with means in [−1, 1] and standard deviations from 0.5 to 1.5."""
    rng = np.random.default_rng(dimension)
    return [rng.normal(rng.uniform(-1, 1, dimension), rng.uniform(0.5, 1.5, dimension), (points, dimension)) for _ in range(count)]


def off(bags: list[np.ndarray], distance: str, exact: np.ndarray, **options: object) -> float:
    """‖found − d‖/‖d‖ over all pairs of bags."""
    found = pdist(DensityFeatures(distance, output="distance", **options).fit_transform(bags))
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def measure(quick: bool) -> dict:
    count = 4 if quick else 40
    sets = {
        "normal, 1 column": normals(1, count),
        "normal, 2 columns": normals(2, count),
        "normal, 3 columns": normals(3, count),
        "mixtures of the paper, 200 points": draw(count, 200, 0)[0],
        "mixtures of the paper, 800 points": draw(count, 800, 0)[0],
    }
    out = {}
    for name, bags in sets.items():
        out[name] = {}
        for distance in DISTANCES:
            exact = pairwise(bags, distance)[np.triu_indices(len(bags), 1)]
            figures = {"default": off(bags, distance, exact), "values": off(bags, distance, exact, basis="values")}
            if bags[0].shape[1] < 3:
                figures["20 cosines"] = off(bags, distance, exact, n_basis=20)
            if distance == "tv":
                figures |= {f"M = {m}": off(bags, distance, exact, n_frequencies=m) for m in COUNTS}
            out[name][distance] = figures
    return out


NAMES = {"js": "Jensen–Shannon", "hellinger": "Hellinger", "chi2": "χ²", "tv": "total variation"}


def summary(figures: dict) -> list[list[str]]:
    def range_of(distance: str, key: str) -> str:
        values = [100 * each[distance][key] for each in figures.values()]
        return f"{min(values):.1f} to {max(values):.1f} %"

    rows = [[f"relative error of {name}, default", range_of(distance, "default"), "", ""] for distance, name in NAMES.items()]
    return [*rows, ["total variation without a basis", range_of("tv", "values"), "", ""]]


def details(figures: dict) -> str:
    rows, by_count = [], []
    for name, each in figures.items():
        for distance in DISTANCES:
            found = each[distance]
            cells = (found["default"], found["values"], found.get("20 cosines"))
            rows.append((name, distance, *("" if cell is None else f"{cell:.4f}" for cell in cells)))
        by_count.append((name, *(f"{each['tv'][f'M = {m}']:.3f}" for m in COUNTS)))
    return (
        "‖found − d‖/‖d‖ over all pairs of bags. Without a basis only the error of the frequencies remains:\n\n"
        + table(("bags", "distance", "default: M = 5, 10 cosines an axis", "M = 5, no basis", "M = 5, 20 cosines an axis"), rows)
        + "\n\nTotal variation with 10 cosines, by the number M of placed frequencies:\n\n"
        + table(("bags", *(f"M = {m}" for m in COUNTS)), by_count)
        + "\n\nThe basis causes the error of total variation, and the placement of the frequencies has little effect on it. |a − "
        "b| has an edge at a = b, so its measure has a heavy tail, and p(x)^(iλ) with a large λ oscillates faster than ten cosines "
        "do. More frequencies add functions that the basis cannot represent."
    )
