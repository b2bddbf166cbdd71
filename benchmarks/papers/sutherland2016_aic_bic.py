"""The number of components of a mixture by EM with AIC and BIC (Sutherland et al. 2016, Figure 4, its caption and Section 4.2).

For every test bag, mixtures of 1 to 10 Gaussians with full covariances are fitted by EM, and the count with the lowest criterion is
the prediction. Goal: the paper's root mean square errors, and the comparison with ridge regression on `DensityFeatures`, which
`features_components` and `papers/sutherland2016_figure4` measure on the same mixtures. Cost: 10 EM fits a bag.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from component_bags import POINTS, TEST, draw, root_mean_square
from harness import table

TITLE = "The number of components of mixtures by AIC and BIC (Sutherland et al. 2016)"

MOST = 10
SEED = 0
PAPER = {200: {"aic": 2.7, "bic": 3.8, "constant": 2.8}, 800: {"aic": 2.3, "bic": 2.7, "constant": 2.8}}


def selected(bag: np.ndarray, restarts: int) -> tuple[int, int]:
    """The number of components by AIC and by BIC."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [GaussianMixture(k, n_init=restarts, random_state=0).fit(bag) for k in range(1, MOST + 1)]
    return 1 + int(np.argmin([fit.aic(bag) for fit in fits])), 1 + int(np.argmin([fit.bic(bag) for fit in fits]))


def measure(quick: bool) -> dict:
    out = {}
    for points in POINTS:
        for restarts in (1,) if quick else (1, 5):
            # the test bags of `features_components`; five restarts on a quarter of them
            count = 20 if quick else TEST if restarts == 1 else TEST // 4
            bags, y = draw(16_000 + TEST, points, SEED) if not quick else draw(count, points, SEED)
            bags, y = bags[-TEST:][:count], y[-TEST:][:count]
            begun = time.perf_counter()
            guesses = np.array([selected(bag, restarts) for bag in bags])
            spent = time.perf_counter() - begun
            figures = {name: root_mean_square(guesses[:, k] - y) for k, name in enumerate(("aic", "bic"))}
            means = {f"mean {name}": float(guesses[:, k].mean()) for k, name in enumerate(("aic", "bic"))}
            out[f"{points}/{restarts}"] = {
                "bags": count,
                **figures,
                **means,
                "constant": root_mean_square(5.5 - y),
                "mean truth": float(y.mean()),
                "ms a bag": 1e3 * spent / count,
            }
    return out


def report(figures: dict) -> str:
    rows = []
    for key, found in figures.items():
        points, restarts = (int(part) for part in key.split("/"))
        for name in ("aic", "bic", "constant"):
            mean = f"{found[f'mean {name}']:.2f}" if name != "constant" else "5.50"
            spent = f"{found['ms a bag']:.0f}" if name != "constant" else ""
            rows.append((points, restarts, f"{found['bags']:,}", name, f"{found[name]:.2f}", PAPER[points][name], mean, spent))
    head = ("points", "starts of EM", "test bags", "criterion", "RMSE", "paper's", "mean prediction", "ms a bag")
    return (
        f"Mixtures of 1 to {MOST} Gaussians with full covariances, EM of scikit-learn, the count with the lowest criterion. The "
        "test bags are those of `features_components`. The paper does not state how it fits, how often it restarts EM, or the "
        "largest count that it tries. The true counts have mean 5.5, and a constant of 5.5 an expected RMSE of 2.87, which the "
        "paper rounds to 2.8. Ridge regression on features reaches 1.45 to 1.55 on the same bags (`features_components`).\n\n"
        + table(head, rows)
    )
