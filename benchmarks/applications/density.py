"""Densities on few atoms against scikit-learn's tree, and what a search for the bandwidth costs."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.neighbors import KernelDensity

from benchmarks._lib import medians, seconds, table, verdict
from reduset import Gaussian, KernelMean, bandwidth
from reduset.density import SparseKernelDensity

TITLE = "Densities"

ROWS, DIMENSION, QUERIES = 250_000, 5, 10_000
SIZES = (200, 500, 1000)
TREE_QUERIES = 300  # the tree is timed on so many, and scaled
RTOL = 1e-3
FASTER, SEARCH = 200.0, 2.0


def cloud(rows: int, rng: np.random.Generator) -> np.ndarray:
    fixed = np.random.default_rng(0)
    centres, scales = 4 * fixed.normal(size=(12, DIMENSION)), fixed.uniform(0.3, 1.5, size=(12, DIMENSION))
    which = rng.integers(12, size=rows)
    return centres[which] + scales[which] * rng.normal(size=(rows, DIMENSION))


def run() -> str:
    rng = np.random.default_rng(1)
    X, Q = cloud(ROWS, rng), cloud(QUERIES, rng)
    searched = table(["fit", "alone", "with search", "ratio", "below", "met"], searches(X, bandwidth.scott(X)))
    return (
        f"{ROWS:,}×{DIMENSION}, {QUERIES:,} queries, against KernelDensity(rtol={RTOL:g}), whose queries are timed on "
        f"{TREE_QUERIES} and scaled.\n\n{against_tree(X, Q, 'scott')}\n\n{against_tree(X, Q, 'median')}\n\n"
        "The difference at the queries is the root of the mean square over that of the density. A search of 50 bandwidths by "
        f"held-out likelihood, against one fit:\n\n{searched}"
    )


def against_tree(X: np.ndarray, Q: np.ndarray, rule: str) -> str:
    h = float(getattr(bandwidth, rule)(X))
    tree = KernelDensity(bandwidth=h, rtol=RTOL)
    built = seconds(lambda: tree.fit(X))
    asked = seconds(lambda: tree.score_samples(Q[:TREE_QUERIES])) * QUERIES / TREE_QUERIES
    truth = KernelMean.from_samples(X, Gaussian(h, normalized=True))(Q, "double")
    contestants = {f"{size} atoms": SparseKernelDensity(bandwidth=h, size=size, random_state=0) for size in SIZES}
    contestants["all points"] = SparseKernelDensity(bandwidth=h, size=len(X))
    rows = []
    for name, density in contestants.items():
        density.fit(X).score_samples(Q[:10])  # compiles
        took = medians(3, fit=partial(density.fit, X), ask=partial(density.score_samples, Q))
        away = np.linalg.norm(np.exp(density.score_samples(Q)) - truth) / np.linalg.norm(truth)
        ratio, both = asked / took["ask"], (asked + built) / (took["ask"] + took["fit"])
        errors = [f"{density.certificate_.relative_error:.2g}", f"{away:.2g}"]
        times = [f"{took['fit']:.2f} s", f"{took['ask']:.3f} s"]
        goal = [f"{FASTER:.0f}×", verdict(ratio, FASTER)] if density.compression_ is not None else ["", ""]
        rows.append([name, *errors, *times, f"{ratio:,.0f}×", *goal, f"{both:,.0f}×"])
    head = [f"bandwidth {rule}, {h:.2f}", "certified L2 error", "difference at the queries", "fit", "queries", "queries faster by"]
    tree_row = ["KernelDensity", "", f"{RTOL:g} asked for", f"{built:.2f} s", f"{asked:.0f} s", "", "", "", ""]
    return table([*head, "goal", "met", "fit and queries by"], [*rows, tree_row])


def searches(X: np.ndarray, h: float) -> list[list[str]]:
    rows = []
    for name, options in (("size=500", {"size": 500}), ("tol=0.03", {"tol": 0.03})):
        plain = SparseKernelDensity(bandwidth=h, random_state=0, **options)
        search = SparseKernelDensity(bandwidth="likelihood", random_state=0, **options)
        took = medians(3, plain=partial(plain.fit, X), search=partial(search.fit, X))
        ratio = took["search"] / took["plain"]
        chosen = f"{took['search']:.2f} s, h = {search.bandwidth_:.3g}"
        rows.append([name, f"{took['plain']:.2f} s", chosen, f"{ratio:.2f}×", f"{SEARCH:g}×", verdict(SEARCH, ratio)])
    return rows
