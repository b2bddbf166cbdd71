"""The error bound of the estimated kernel against the measured error (Sutherland et al. 2016, Theory).

Two densities on [0, 1], each 40 % uniform and 60 % normal with standard deviation 0.2, around 0.3 and 0.7. Their bounds,
derivatives and distances are computed on a grid of 20,001 points. σ is the true distance, so the true kernel value is e^(−½). Goal:
the error exceeds the bound in at most 5 % of the repetitions.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, truncnorm

from benchmarks._lib import table, verdict
from reduset.features import DensityFeatures
from reduset.features.homogeneous_distances import kappa

TITLE = "The error bound of the estimated kernel (Sutherland et al. 2016, Theory)"
SOURCES = ("features/error_bound.py", "features/density_features.py", "features/projection.py",
           "features/embedding.py", "features/homogeneous_distances.py")  # fmt: skip

SD, BACKGROUND, MEANS = 0.2, 0.4, (0.3, 0.7)
SIZES = ((1000, 0.08), (10_000, 0.04), (100_000, 0.03))  # points and bandwidth
COMPONENTS, NODES, REPETITIONS = 4000, 200, 20
MOST_ABOVE = 0.05
TERMS = ("density", "quadrature", "truncation", "frequencies", "random_features")


def density(x: np.ndarray, mean: float) -> np.ndarray:
    inside = norm.cdf(1, mean, SD) - norm.cdf(0, mean, SD)
    return BACKGROUND + (1 - BACKGROUND) * norm.pdf(x, mean, SD) / inside


def sample(n: int, mean: float, rng: np.random.Generator) -> np.ndarray:
    normal = truncnorm.rvs(-mean / SD, (1 - mean) / SD, mean, SD, size=n, random_state=rng)
    return np.where(rng.uniform(size=n) < BACKGROUND, rng.uniform(size=n), normal)[:, None]


def measure(quick: bool) -> dict:
    x = np.linspace(0, 1, 20_001)
    p, q = (density(x, mean) for mean in MEANS)
    slope = np.gradient(p, x)
    constants = {
        "lower": float(p.min()),
        "upper": float(p.max()),
        "gradient": float(np.abs(slope).max()),
        "curvature": float(np.abs(np.gradient(slope, x)).max()),
    }
    rows, cube = [], [np.array([[0.0], [1.0]])] * 2
    for distance in ("js",) if quick else ("js", "hellinger", "chi2", "tv"):
        width = float(np.sqrt(np.trapezoid(kappa(p, q, distance), x)))
        for n, bandwidth in SIZES[: 1 if quick else None]:
            rng, errors = np.random.default_rng(0), []
            features = DensityFeatures(distance, n_components=COMPONENTS, n_nodes=NODES, bandwidth=bandwidth, kernel_width=width)
            features.set_params(margin=0.0)
            for seed in range(2 if quick else REPETITIONS):
                features.set_params(random_state=seed).fit(cube)
                z = features.transform([sample(n, mean, rng) for mean in MEANS])
                errors.append(float(abs(z[0] @ z[1] - np.exp(-0.5))))
            bound = features.error_bound(n, **constants)
            found = {"distance": distance, "n": n, "bandwidth": bandwidth, "total": bound.total, "errors": errors}
            rows.append(found | {term: getattr(bound, term) for term in TERMS})
    return {"constants": constants, "rows": rows}


def summary(figures: dict) -> list[list[str]]:
    rows = figures["rows"]
    above = sum(error > row["total"] for row in rows for error in row["errors"])
    count = sum(len(row["errors"]) for row in rows)
    ratios = [row["total"] / max(row["errors"]) for row in rows]
    return [
        ["errors above the bound", f"{above} of {count}", f"≤ {MOST_ABOVE:.0%}", verdict(MOST_ABOVE, above / count)],
        ["bound over the largest error", f"{min(ratios):.0f}× to {max(ratios):.0f}×", "", ""],
    ]


def details(figures: dict) -> str:
    rows = []
    for row in figures["rows"]:
        over = sum(error > row["total"] for error in row["errors"])
        largest = max(row["errors"])
        cells = (row["distance"], f"{row['n']:,}", row["bandwidth"], *(f"{row[term]:.2g}" for term in TERMS), f"{row['total']:.2f}")
        rows.append((*cells, f"{largest:.3f}", f"{row['total'] / largest:.0f}×", f"{over} of {len(row['errors'])}"))
    head = ("distance", "n", "bandwidth", *(term.replace("_", " ") for term in TERMS), "bound", "largest error", "ratio", "above")
    constants = ", ".join(f"{name} {value:.2f}" for name, value in figures["constants"].items())
    return (
        f"One column, D = {COMPONENTS:,}, M = 5, 10 cosines, {NODES} nodes, confidence 0.95; {constants}. A bound of 1 or more has "
        "no information. The paper prints no figures of its bound. The density term is the largest: by the triangle inequality it "
        "adds the distances of both estimates from their densities, which the error of a distance rarely reaches.\n\n"
        + table(head, rows)
    )
