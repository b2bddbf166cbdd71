"""Table V of the 2017 paper: how many atoms each way of choosing them needs for ‖f − f_m‖²/‖f‖² ≤ 10⁻³.

The paper leaves open what is counted, on how many points, and with which bandwidth. The first two follow from its own figures (see
`paper_data`, and `draws_needed` below); the bandwidth is found by trial in `paper_bandwidth`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness import table
from paper_data import SETS, neighbour_distance, p_text, signed_rank, smallest, split
from reduset import Gaussian, KernelMean, compress
from reduset.select import Herding

TITLE = "Paper, Table V: atoms needed for a squared relative error of 10⁻³"

ACCURACY = 1e-3
SPLITS = 5
RANK = 4  # the rank of the neighbour whose median distance is the bandwidth
RIVALS = ("RAND", "L2", "KMEANS", "HERD")
PAPER = {  # SKM, RAND, L2, KMEANS, HERD
    "banana": (0.6443, 0.8905, 1, 0.9068, 1),
    "image": (0.7367, 0.7933, 1, 0.8540, 1),
    "ringnorm": (0.6603, 0.6779, 1, 0.6787, 0.8325),
    "breast-cancer": (0.6768, 0.6062, 1, 0.5905, 1),
    "heart": (0.7455, 0.8386, 1, 0.8384, 1),
    "thyroid": (0.7257, 0.9410, 1, 0.9383, 1),
    "diabetes": (0.6405, 0.7885, 1, 0.7859, 1),
    "german": (0.5648, 0.5900, 1, 0.5889, 0.8),
    "twonorm": (0.6202, 0.5962, 0.9863, 0.6002, 0.7725),
    "waveform": (0.6557, 0.6876, 1, 0.6843, 1),
    "iris": (0.7667, 0.8536, 1, 0.8782, 1),
}
REPEATED = ("image", "breast-cancer", "iris")  # sets in which rows occur more than once

Rule = Callable[[np.ndarray, np.ndarray], float]  # from points and labels to a bandwidth


def fourth_neighbour(X: np.ndarray, y: np.ndarray) -> float:
    return neighbour_distance(X, RANK)


def atoms_needed(mean: KernelMean, select, seed: int) -> float:
    """The share of n that is needed with the best weights."""
    small = smallest(mean, select, seed, ACCURACY)
    return 1.0 if small is None else small.size / mean.size


def draws_needed(mean: KernelMean, seed: int) -> tuple[float, float]:
    """L2 as draws with replacement, which is what the paper counts (its cost is "≤ k³": repeated draws are one atom), and as atoms.

    Sampling without replacement is sampling with it, repetitions left out. So the draws behind the first m atoms are m waiting
    times, each geometric in the chance of a row that was not drawn before.
    """
    small = smallest(mean, "columnnorm", seed, ACCURACY)
    if small is None:
        return 1.0, 1.0
    chances = np.square(mean.kernel.product_gram(mean.atoms, mean.atoms)).sum(axis=0)
    drawn = np.cumsum((chances / chances.sum())[small.indices])
    fresh = 1 - np.concatenate([[0.0], drawn[:-1]])
    draws = np.random.default_rng(seed).geometric(np.clip(fresh, 1e-12, 1.0)).sum()
    return min(float(draws), mean.size) / mean.size, small.size / mean.size


def centres_needed(mean: KernelMean, seed: int, resolution: int) -> float:
    """KMEANS, whose centres do not nest: the size is found by halving, to one part in ``resolution`` of n."""
    low, high = 0, mean.size
    while high - low > max(1, mean.size // resolution):
        middle = (low + high) // 2
        error = compress(mean, size=middle, select="kmeans", rng=seed).certificate.relative_error
        low, high = (low, middle) if error**2 <= ACCURACY else (middle, high)
    return high / mean.size


def steps_needed(mean: KernelMean, seed: int) -> float:
    """HERD with the weights of its own line search."""
    path = compress(mean, size=mean.size, select=Herding(line_search=True), weights="own", rng=seed).path
    enough = np.flatnonzero(path.relative_errors**2 <= ACCURACY)
    return float(path.sizes[enough[0]]) / mean.size if len(enough) else 1.0


def needed(mean: KernelMean, seed: int, resolution: int = 128) -> dict[str, float]:
    """The share of n that each method needs."""
    draws, columns = draws_needed(mean, seed)
    return {
        "SKM": atoms_needed(mean, "kcenter", seed),
        "RAND": atoms_needed(mean, "random", seed),
        "L2": draws,
        "KMEANS": centres_needed(mean, seed, resolution),
        "HERD": steps_needed(mean, seed),
        "L2, atoms": columns,
        "HERD, best weights": atoms_needed(mean, Herding(line_search=True), seed),
    }


def share_by_recursion(mean: KernelMean, seed: int) -> float:
    """RAND as the paper computes it, by updating an explicit inverse (Section V-B), which a repeated row breaks."""
    order = np.random.default_rng(seed).permutation(mean.size)
    K = mean.kernel.product_gram(mean.atoms, mean.atoms)[np.ix_(order, order)]
    kappa = K.mean(axis=1)
    inverse = np.zeros((mean.size, mean.size))
    with np.errstate(all="ignore"):
        for m in range(mean.size):
            column = inverse[:m, :m] @ K[:m, m]
            q = np.append(-column, 1.0)
            inverse[: m + 1, : m + 1] += np.outer(q, q) / (K[m, m] - K[:m, m] @ column)
            explained = kappa[: m + 1] @ inverse[: m + 1, : m + 1] @ kappa[: m + 1]
            if 1 - explained / kappa.mean() <= ACCURACY:
                return (m + 1) / mean.size
    return 1.0


def splits_of(name: str, splits: int) -> int:
    """Half as many of a large set."""
    return splits if SETS[name] < 1000 else (splits + 1) // 2


def over_splits(name: str, rule: Rule, measure: Callable, splits: int) -> list:
    """What ``measure`` finds on some splits of a set, with the bandwidth of each by the rule."""
    found = []
    for seed in range(splits_of(name, splits)):
        X, y = split(name, seed)
        found.append(measure(KernelMean.from_samples(X, Gaussian(rule(X, y))), seed))
    return found


def averages(found: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    return {name: {c: float(np.mean([f[c] for f in shares])) for c in shares[0]} for name, shares in found.items()}


def off(average: dict[str, dict[str, float]], method: str, names=tuple(SETS)) -> float:
    """The mean difference from the paper's column."""
    j = ("SKM", *RIVALS).index(method)
    return float(np.mean([abs(average[name][method] - PAPER[name][j]) for name in names]))


def p_against_skm(average: dict[str, dict[str, float]], method: str) -> float:
    return signed_rank([average[name]["SKM"] for name in SETS], [average[name][method] for name in SETS])


def run() -> str:
    found = {name: over_splits(name, fourth_neighbour, needed, SPLITS) for name in SETS}
    average = averages(found)
    columns = list(average["banana"])
    rows = []
    for name in SETS:
        paper = dict(zip(("SKM", *RIVALS), PAPER[name], strict=True))
        cells = [f"{paper[c]:.3f} → {average[name][c]:.3f}" if c in paper else f"{average[name][c]:.3f}" for c in columns]
        cells[0] += f" ± {np.std([f['SKM'] for f in found[name]]):.3f}"
        rows.append([f"{name} {SETS[name]}", *cells])
    paper = {name: dict(zip(("SKM", *RIVALS), PAPER[name], strict=True)) for name in SETS}
    p = [(p_text(p_against_skm(paper, c)) + " → " if c in RIVALS else "") + p_text(p_against_skm(average, c)) for c in columns[1:]]
    rows.append(["p against SKM", "", *p])
    broken = {n: np.mean(over_splits(n, fourth_neighbour, share_by_recursion, 10)) for n in REPEATED}
    plain = [name for name in SETS if name not in REPEATED]
    text = (
        f"Paper → ours, as shares of n; means over {SPLITS} random training splits ({splits_of('image', SPLITS)} of image), ± the "
        "spread of SKM from split to split. The bandwidth is fitted, not stated: see the next section. L2 counts draws with "
        "replacement, at most n of them, and HERD the steps of its line search; so much follows from the paper's own figures and "
        "costs. The last two columns count atoms with the best weights instead. Ours differ from the paper's by "
        + ", ".join(f"{off(average, c):.3f} ({c})" for c in ("SKM", *RIVALS))
        + f" on average; without the three sets that repeat rows, RAND by {off(average, 'RAND', plain):.3f} and KMEANS by "
        f"{off(average, 'KMEANS', plain):.3f}.\n\n"
        "On those three the paper's RAND and KMEANS are lower than ours, which makes our p smaller than the "
        "paper's. A likely reason "
        "for RAND is its update of an explicit inverse, which divides by rounding at the second copy of a row: "
        "that recursion, run as "
        "printed, stops early, at "
        + ", ".join(f"{share:.3f} ({n}; paper {PAPER[n][1]:.3f}, ours {average[n]['RAND']:.3f})" for n, share in broken.items())
        + ". It does not give the paper's figures, and says nothing of KMEANS; that difference is unexplained."
    )
    return table(["set, n", *columns], rows) + "\n\n" + text
