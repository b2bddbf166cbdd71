"""How much faster are densities on few atoms than scikit-learn's tree, and what does a search for the bandwidth cost?

250,000 rows and 10,000 queries, against `KernelDensity(rtol=1e-3)`. Goals: queries 200 times as fast; a search over 50 bandwidths
by held-out likelihood takes less than twice the time of one fit."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import KernelDensity

from benchmarks._lib import medians, seconds, table, verdict
from reduset import Gaussian, KernelMean, bandwidth
from reduset.density import SparseKernelDensity

TITLE = "Densities"
SOURCES = ("density", "compression", "mean.py", "_engine/sums.py")


class Sizes(NamedTuple):
    """What is measured."""

    rows: int
    queries: int
    tree_queries: int  # the tree is timed on these, and scaled
    atoms: tuple[int, ...]
    searches: dict[str, dict[str, Any]]
    repeats: int


FULL = Sizes(250_000, 10_000, 300, (200, 500, 1000), {"size=500": {"size": 500}, "tol=0.03": {"tol": 0.03}}, 3)
QUICK = Sizes(4_000, 500, 100, (50,), {"size=50": {"size": 50}}, 1)
DIMENSION, RTOL = 5, 1e-3
FASTER, SEARCH = 200.0, 2.0
RULES = {"scott": "Scott's bandwidth", "median": "the median bandwidth"}


def cloud(rows: int, rng: np.random.Generator) -> np.ndarray:
    fixed = np.random.default_rng(0)
    centres, scales = 4 * fixed.normal(size=(12, DIMENSION)), fixed.uniform(0.3, 1.5, size=(12, DIMENSION))
    which = rng.integers(12, size=rows)
    return centres[which] + scales[which] * rng.normal(size=(rows, DIMENSION))


def against_tree(X: np.ndarray, Q: np.ndarray, rule: str, sizes: Sizes) -> tuple[list[list[str]], str]:
    """Rows of the summary, and the table."""
    h = float(getattr(bandwidth, rule)(X))
    tree = KernelDensity(bandwidth=h, rtol=RTOL)
    built = seconds(lambda: tree.fit(X))
    asked = seconds(lambda: tree.score_samples(Q[: sizes.tree_queries])) * len(Q) / sizes.tree_queries
    truth = KernelMean.from_samples(X, Gaussian(h, normalized=True))(Q, "double")
    densities = {f"{size} atoms": SparseKernelDensity(bandwidth=h, size=size, random_state=0) for size in sizes.atoms}
    densities["all points"] = SparseKernelDensity(bandwidth=h, size=len(X))
    rows, faster, altogether, errors = [], [], [], []
    for name, density in densities.items():
        density.fit(X).score_samples(Q[:10])  # compiles
        took = medians(sizes.repeats, fit=partial(density.fit, X), ask=partial(density.score_samples, Q))
        away = np.linalg.norm(np.exp(density.score_samples(Q)) - truth) / np.linalg.norm(truth)
        ratio, both = asked / took["ask"], (asked + built) / (took["ask"] + took["fit"])
        row = [name, f"{density.certificate_.relative_error:.2g}", f"{away:.2g}", f"{took['fit']:.2f} s", f"{took['ask']:.3f} s"]
        goal = ["", ""]
        if density.compression_ is not None:
            goal = [f"{FASTER:.0f}×", verdict(ratio, FASTER)]
            faster.append(ratio)
            altogether.append(both)
            errors.append(density.certificate_.relative_error)
        rows.append([*row, f"{ratio:,.0f}×", *goal, f"{both:,.0f}×"])
    head = [f"bandwidth {rule}, {h:.2f}", "certified L2 error", "difference at the queries", "fit", "queries", "queries faster by"]
    tree_row = ["KernelDensity", "", f"rtol {RTOL:g}", f"{built:.2f} s", f"{asked:.0f} s", "", "", "", ""]
    return [
        [
            f"Queries faster, {RULES[rule]}", f"{min(faster):,.0f} to {max(faster):,.0f}×", f"{FASTER:.0f}×",
            verdict(min(faster), FASTER),
        ],
        [
            f"Fit and queries faster; certified error, {RULES[rule]}",
            f"{min(altogether):,.0f} to {max(altogether):,.0f}×; {min(errors):.2g} to {max(errors):.2g}", "", "",
        ],
    ], table([*head, "goal", "met", "fit and queries by"], [*rows, tree_row])  # fmt: skip


def searches(X: np.ndarray, sizes: Sizes) -> tuple[list[list[str]], str]:
    rows, ratios = [], []
    for name, options in sizes.searches.items():
        plain = SparseKernelDensity(bandwidth=bandwidth.scott(X), random_state=0, **options)
        search = SparseKernelDensity(bandwidth="likelihood", random_state=0, **options)
        took = medians(sizes.repeats, plain=partial(plain.fit, X), search=partial(search.fit, X))
        ratios.append(took["search"] / took["plain"])
        chosen = f"{took['search']:.2f} s, h = {search.bandwidth_:.3g}"
        rows.append([name, f"{took['plain']:.2f} s", chosen, f"{ratios[-1]:.2f}×", f"{SEARCH:g}×", verdict(-ratios[-1], -SEARCH)])
    figure = f"{min(ratios):.2f} to {max(ratios):.2f}×"
    return [["Search for the bandwidth, over one fit", figure, f"< {SEARCH:g}×", verdict(-max(ratios), -SEARCH)]], table(
        ["fit", "alone", "with search", "ratio", "goal: below", "met"], rows
    )


def measure(quick: bool) -> dict[str, Any]:
    sizes = QUICK if quick else FULL
    rng = np.random.default_rng(1)
    X, Q = cloud(sizes.rows, rng), cloud(sizes.queries, rng)
    parts = [against_tree(X, Q, rule, sizes) for rule in RULES]
    more, searched = searches(X, sizes)
    return {
        "summary": [row for rows, _ in parts for row in rows] + more,
        "details": f"{sizes.rows:,} × {DIMENSION}, {sizes.queries:,} queries, against KernelDensity(rtol={RTOL:g}), whose queries "
        f"are timed on {sizes.tree_queries} and scaled.\n\n"
        + "\n\n".join(text for _, text in parts)
        + "\n\nThe difference at the queries is the root mean square difference over the root mean square of the density. A search "
        f"over 50 bandwidths by held-out likelihood, against one fit:\n\n{searched}",
    }
