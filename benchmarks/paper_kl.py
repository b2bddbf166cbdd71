"""Table VI of the 2017 paper: the Kullback–Leibler divergence of the compressed density from the full one, and the other way.

D(p‖q) = E_p[log p/q] by Monte Carlo. q/p has mean 1 under p, and its deviation from that is all but proportional to log p/q where
the densities are close; taken as a control variate it removes nearly all of the noise there.
"""

from __future__ import annotations

import warnings

import numpy as np

from harness import table
from paper_data import SETS, p_text, signed_rank, split
from reduset import Gaussian, KernelMean, bandwidth, compress

TITLE = "Paper, Table VI: divergence of valid densities, ε = 10⁻⁷"

PLATEAU = 1e-7
NOTHING = 1e-12  # below, a divergence is rounding: every point was taken
SPLITS, SPLITS_OF_LARGE, DRAWS = 5, 3, 10_000
PAPER = {  # D(f‖f_m) of RAND and SKM, D(f_m‖f) of RAND and SKM
    "banana": (0.092597, 0.001805, 0.129183, 0.001613),
    "image": (0.451205, 0.041305, 0.212585, 0.061584),
    "ringnorm": (0.003983, 0.031736, 0.009253, 0.02853),
    "breast-cancer": (0.358253, 0.002546, 0.345895, 4.56e-5),
    "heart": (0.001918, 6.35e-16, 0.005228, 2.91e-16),
    "thyroid": (0.177317, 0.000594, 0.034616, 0.000289),
    "diabetes": (0.031366, 0.005474, 0.014635, 0.000102),
    "german": (0.008711, 0.003855, 0.008742, 0.00203),
    "twonorm": (0.000131, 0.000243, 4.59e-5, 0.000372),
    "waveform": (0.011473, 0.000177, 0.015064, 0.000404),
    "iris": (0.043924, 0.000395, 0.022519, 0.000104),
}
ONE_WAY, OTHER_WAY = "D(f‖f_m)", "D(f_m‖f)"
RAND_ALIKE = "RAND, SKM's size"
WAYS = ("RAND", "SKM", RAND_ALIKE, "RAND, simplex", "SKM, simplex")  # in the order of the columns


def divergence(p: KernelMean, q: KernelMean, seed: int) -> tuple[float, float]:
    """(D(p‖q), its standard error)."""
    x = p.sample(DRAWS, rng=seed)
    gap = p.log_density(x) - q.log_density(x)
    with np.errstate(over="ignore"):
        ratio = np.expm1(-gap)
    spread = float(np.var(ratio))
    useful = np.isfinite(spread) and spread > 1e-24
    terms = gap - np.cov(gap, ratio)[0, 1] / spread * ratio if useful else gap
    return float(terms.mean()), float(terms.std() / np.sqrt(DRAWS))


def one_split(name: str, seed: int, to_other_class: bool) -> dict[str, tuple]:
    """For each way: (size / n, D(f‖f_m), its error, D(f_m‖f), its error)."""
    X, y = split(name, seed)
    h = bandwidth.jaakkola(X, y=y) if to_other_class else bandwidth.jaakkola(X)
    full = KernelMean.from_samples(X, Gaussian(h, normalized=True))
    skm = compress(full, plateau=PLATEAU, weights="simplex_projection", rng=seed)
    rand = compress(full, plateau=PLATEAU, select="random", weights="simplex_projection", rng=seed)
    alike = compress(full, size=skm.size, select="random", weights="simplex_projection", rng=seed)
    results = (rand, skm, alike, alike.reweigh(full, weights="simplex"), skm.reweigh(full, weights="simplex"))
    return {
        way: (small.size / len(X), *divergence(full, small.mean, seed), *divergence(small.mean, full, seed))
        for way, small in zip(WAYS, results, strict=True)
    }


def measured(to_other_class: bool) -> dict[str, dict[str, np.ndarray]]:
    """For each set and way the medians over splits, the range of SKM's sizes, and those of D(f‖f_m)."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a plateau that is not reached before the last point is a result here
        for name, n in SETS.items():
            splits = [one_split(name, seed, to_other_class) for seed in range(SPLITS if n < 1000 else SPLITS_OF_LARGE)]
            sizes = [s["SKM"][0] for s in splits]
            found[name] = {way: np.median([s[way] for s in splits], axis=0) for way in WAYS}
            found[name]["range"] = np.array([min(sizes), max(sizes)])
            for way in ("RAND", "SKM"):
                found[name][f"{way}, range"] = np.array([pick(s[way][1] for s in splits) for pick in (min, max)])
    return found


def gain(found: dict[str, dict[str, np.ndarray]], way: str) -> float:
    """How many times smaller D(f‖f_m) is with the best weights on the simplex, on the same atoms."""
    best = {RAND_ALIKE: "RAND, simplex", "SKM": "SKM, simplex"}[way]
    return float(np.median([found[n][way][1] / found[n][best][1] for n in SETS if found[n][way][1] > NOTHING]))


def beyond(found: dict[str, dict[str, np.ndarray]], column: int, way: str) -> str:
    """On how many sets the paper's D(f‖f_m) is within the range of our splits, and on which it is not."""
    outside = []
    for name in SETS:
        low, high = found[name][f"{way}, range"]
        if not low - NOTHING <= PAPER[name][column] <= high + NOTHING:
            outside.append(f"{name} ({PAPER[name][column]:.2g}, ours {low:.2g} to {high:.2g})")
    within = f"{len(SETS) - len(outside)} of {len(SETS)}"
    return f"is within the range of our splits on {within} sets" + (f", not on {', '.join(outside)}" if outside else "")


def number(value: float, error: float) -> str:
    return "0" if abs(value) < NOTHING else f"{value:.2g} ± {error:.0g}"


def distance_from_paper(found: dict[str, dict[str, np.ndarray]], column: int, way: str, k: int) -> float:
    """The mean difference of decimal logarithms, anything below 10⁻⁷ counting as 10⁻⁷."""
    ours = [max(found[name][way][k], 1e-7) for name in SETS]
    theirs = [max(PAPER[name][column], 1e-7) for name in SETS]
    return float(np.mean(np.abs(np.log10(np.divide(ours, theirs)))))


def one_direction(found: dict[str, dict[str, np.ndarray]], k: int, title: str) -> str:
    """A table of one direction, whose value stands at ``k`` and whose error at ``k + 1``."""
    column = k - 1
    rows = []
    for name in SETS:
        cells = [number(found[name][way][k], found[name][way][k + 1]) for way in WAYS]
        paper = [f"{value:.2g}" for value in PAPER[name][column : column + 2]]
        low, high = found[name]["range"]
        sizes = [f"{found[name]['SKM'][0]:.2f} ({low:.2f}–{high:.2f})", f"{found[name]['RAND'][0]:.2f}"]
        rows.append([name, *sizes, *paper, *cells])

    def p(first: str, second: str) -> str:
        return p_text(signed_rank([found[n][first][k] for n in SETS], [found[n][second][k] for n in SETS]))

    theirs = p_text(signed_rank([PAPER[n][column] for n in SETS], [PAPER[n][column + 1] for n in SETS]))
    rows.append(["p", "", "", "", theirs, "", p("RAND", "SKM"), p(RAND_ALIKE, "SKM"), "", p("RAND, simplex", "SKM, simplex")])
    head = [title, "SKM size/n", "RAND size/n", "paper RAND", "paper SKM", *WAYS]
    return table(head, rows)


def run() -> str:
    found = {True: measured(True), False: measured(False)}
    off = {
        labels: [distance_from_paper(found[labels], *which) for which in ((1, "SKM", 1), (0, "RAND", 1), (0, RAND_ALIKE, 1))]
        for labels in found
    }
    ours = found[True]
    everything = sum(abs(found[False][name]["SKM"][1]) < NOTHING for name in SETS)
    text = (
        f"Medians of {SPLITS} training splits ({SPLITS_OF_LARGE} of image), ± the Monte-Carlo error of {DRAWS:,} draws; sizes with "
        "their range over the splits. Jaakkola's heuristic is taken to the nearest point of another class, as in its source: our "
        f"D(f‖f_m) is then off the paper's by a factor of {10 ** off[True][0]:.1f} for SKM and {10 ** off[True][1]:.1f} for RAND "
        f"(geometric means). To the nearest point of all the factors would be {10 ** off[False][0]:.0f} and "
        f"{10 ** off[False][1]:.0f}, because SKM then takes every distinct point of {everything} of the "
        f"{len(SETS)} sets. RAND stops "
        "by its own ε here: in the paper's row of heart SKM has 10⁻¹⁶, so it took every point, but RAND 10⁻³, so it did not; with "
        f"RAND at SKM's size the factor would be {10 ** off[True][2]:.0f}. A single negligible atom ends the search, so the size, "
        "and with it the divergence, depends on the split. That explains a part of the difference from the paper, whose splits are "
        f"not known: its RAND {beyond(ours, 0, 'RAND')}, its SKM {beyond(ours, 1, 'SKM')}. The rest is not explained. On the same "
        f"atoms the quadratic program, weights='simplex', divides D(f‖f_m) by {gain(ours, RAND_ALIKE):.2g} for random atoms and by "
        f"{gain(ours, 'SKM'):.2g} for k-centres (medians over the sets): it is the best in the norm, not in the divergence."
    )
    return "\n\n".join([text, one_direction(ours, 1, ONE_WAY), one_direction(ours, 3, OTHER_WAY)])
