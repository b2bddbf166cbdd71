"""Cruz Cortés & Scott 2017, Table VI: the Kullback–Leibler divergence of the compressed density from the full one, and the reverse.

D(p‖q) = E_p[log p/q] by Monte Carlo, with q/p as a control variate: its mean under p is 1, and it is nearly proportional to log p/q
where the densities are close. Compared: k-centre (SKM) and random atoms (RAND), at the paper's ε of 10⁻⁷. Goal: SKM below RAND with
p < 0.05, as in the paper.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict
from benchmarks.papers._cruz2017 import SETS, p_text, signed_rank, split
from reduset import Gaussian, KernelMean, bandwidth, compress

TITLE = "Cruz Cortés & Scott 2017, Table VI: divergence of valid densities, ε = 10⁻⁷"
SOURCES = ("compression/prefixes.py", "compression/searches.py", "select/kcenter.py", "select/random.py", "weights")

PLATEAU = 1e-7
NOTHING = 1e-12  # below, a divergence is rounding: every point was taken
SPLITS, SPLITS_OF_LARGE, DRAWS = 5, 3, 10_000
QUICK_SETS = ("iris", "thyroid")
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

Found = dict[str, dict[str, np.ndarray]]


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


def measured(names: Iterable[str], splits_of: Callable[[str], int], to_other_class: bool) -> Found:
    """For each set and way the medians over splits, the range of SKM's sizes, and those of D(f‖f_m)."""
    found: Found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a plateau that is not reached before the last point is a result here
        for name in names:
            splits = [one_split(name, seed, to_other_class) for seed in range(splits_of(name))]
            sizes = [s["SKM"][0] for s in splits]
            found[name] = {way: np.median([s[way] for s in splits], axis=0) for way in WAYS}
            found[name]["range"] = np.array([min(sizes), max(sizes)])
            for way in ("RAND", "SKM"):
                found[name][f"{way}, range"] = np.array([pick(s[way][1] for s in splits) for pick in (min, max)])
    return found


def gain(found: Found, way: str) -> float:
    """The ratio of D(f‖f_m) to that with the best weights on the simplex, on the same atoms."""
    best = {RAND_ALIKE: "RAND, simplex", "SKM": "SKM, simplex"}[way]
    return float(np.median([each[way][1] / each[best][1] for each in found.values() if each[way][1] > NOTHING]))


def outside(found: Found, column: int, way: str) -> list[str]:
    """The sets on which the paper's D(f‖f_m) is outside the range of our splits."""
    out = []
    for name, each in found.items():
        low, high = each[f"{way}, range"]
        if not low - NOTHING <= PAPER[name][column] <= high + NOTHING:
            out.append(f"{name} ({PAPER[name][column]:.2g}, ours {low:.2g} to {high:.2g})")
    return out


def beyond(found: Found, column: int, way: str) -> str:
    out = outside(found, column, way)
    within = f"{len(found) - len(out)} of {len(found)}"
    return f"is within the range of our splits on {within} sets" + (f", not on {', '.join(out)}" if out else "")


def number(value: float, error: float) -> str:
    return "0" if abs(value) < NOTHING else f"{value:.2g} ± {error:.0g}"


def factor_to_paper(found: Found, column: int, way: str) -> float:
    """The geometric mean of the factor between D(f‖f_m) and the paper's; values below 10⁻⁷ count as 10⁻⁷."""
    ours = [max(each[way][1], 1e-7) for each in found.values()]
    theirs = [max(PAPER[name][column], 1e-7) for name in found]
    return float(np.exp(np.mean(np.abs(np.log(np.divide(ours, theirs))))))


def p_of(found: Found, first: str, second: str, k: int) -> float:
    """Wilcoxon's p between two ways over the sets."""
    return signed_rank([each[first][k] for each in found.values()], [each[second][k] for each in found.values()])


def summary_of(found: Found) -> list[list[str]]:
    """Rows of RESULTS.md."""
    p = [p_of(found, "RAND", "SKM", k) for k in (1, 3)]
    factors = [factor_to_paper(found, column, way) for column, way in ((1, "SKM"), (0, "RAND"))]
    within = [len(found) - len(outside(found, column, way)) for column, way in ((1, "SKM"), (0, "RAND"))]
    return [
        ["SKM against RAND, D(f‖f_m) and D(f_m‖f): p (paper 0.019, 0.019)", ", ".join(map(p_text, p)), "< 0.05",
         verdict(0.05, max(p))],
        ["factor to the paper's D(f‖f_m): SKM, RAND", ", ".join(f"{each:.1f}" for each in factors), "", ""],
        ["sets with the paper's within the range of our splits: SKM, RAND", f"{within[0]}, {within[1]} of {len(found)}", "", ""],
    ]  # fmt: skip


def one_direction(found: Found, k: int, title: str) -> str:
    """A table of one direction, with the value at ``k`` and its error at ``k + 1``."""
    column = k - 1
    rows = []
    for name in found:
        cells = [number(found[name][way][k], found[name][way][k + 1]) for way in WAYS]
        paper = [f"{value:.2g}" for value in PAPER[name][column : column + 2]]
        low, high = found[name]["range"]
        sizes = [f"{found[name]['SKM'][0]:.2f} ({low:.2f}–{high:.2f})", f"{found[name]['RAND'][0]:.2f}"]
        rows.append([name, *sizes, *paper, *cells])

    def p(first: str, second: str) -> str:
        return p_text(p_of(found, first, second, k))

    theirs = p_text(signed_rank([PAPER[n][column] for n in found], [PAPER[n][column + 1] for n in found]))
    rows.append(["p", "", "", "", theirs, "", p("RAND", "SKM"), p(RAND_ALIKE, "SKM"), "", p("RAND, simplex", "SKM, simplex")])
    head = [title, "SKM size/n", "RAND size/n", "paper RAND", "paper SKM", *WAYS]
    return table(head, rows)


def measure(quick: bool) -> dict[str, Any]:
    if quick:
        some = measured(QUICK_SETS, lambda _: 1, True)
        return {"summary": summary_of(some), "details": one_direction(some, 1, ONE_WAY)}
    found = {
        labels: measured(SETS, lambda name: SPLITS if SETS[name] < 1000 else SPLITS_OF_LARGE, labels) for labels in (True, False)
    }
    off = {
        labels: [factor_to_paper(each, *which) for which in ((1, "SKM"), (0, "RAND"), (0, RAND_ALIKE))]
        for labels, each in found.items()
    }
    ours = found[True]
    everything = sum(abs(each["SKM"][1]) < NOTHING for each in found[False].values())
    text = (
        f"Medians of {SPLITS} training splits ({SPLITS_OF_LARGE} of image), ± the Monte-Carlo error of {DRAWS:,} draws; sizes with "
        "their range over the splits. Jaakkola's heuristic uses the nearest point of another class, as in its source. Our D(f‖f_m) "
        f"then differs from the paper's by a factor of {off[True][0]:.1f} for SKM and {off[True][1]:.1f} for RAND (geometric "
        "means). "
        f"With the nearest point of any class the factors would be {off[False][0]:.0f} and {off[False][1]:.0f}, because SKM then "
        f"takes every distinct point of {everything} of the {len(SETS)} sets. RAND stops by its own ε here: in the paper's row of "
        "heart SKM has 10⁻¹⁶, so it took every point, but RAND 10⁻³, so it did not. With RAND at SKM's size the factor would be "
        f"{off[True][2]:.0f}. A single negligible atom ends the search, so the size, and with it the divergence, depends on the "
        "split. That explains a part of the difference from the paper, whose splits are not known. Its RAND "
        f"{beyond(ours, 0, 'RAND')}, its SKM {beyond(ours, 1, 'SKM')}. The rest is not explained. On the same atoms the quadratic "
        f"program, weights='simplex', divides D(f‖f_m) by {gain(ours, RAND_ALIKE):.2g} for random atoms and by "
        f"{gain(ours, 'SKM'):.2g} for k-centres (medians over the sets): it minimises the norm, not the divergence."
    )
    parts = [text, one_direction(ours, 1, ONE_WAY), one_direction(ours, 3, OTHER_WAY)]
    return {"summary": summary_of(ours), "details": "\n\n".join(parts)}
