"""A dense cluster inside a population, which rises from 0.5 to 1.25 % of the cells, in 8 pairs of samples of 6,000 real cells.

The cluster (`cohort_real_data.dense_cohort`) is normal with 3, 10 or 25 % of the standard deviation of each of 6 markers, and its
proportion varies by 15 % between samples. A method finds it if a group of cells that it reports is planted for at least half. The
peer counts cells in 100 clusters of k-means and tests them by paired t-tests of logarithms of proportions (Benjamini and Hochberg).
Goals: found in at least 80 % of the cohorts; and with labels exchanged at random within pairs, in cohorts without a change, any
finding in at most 5 % of the repetitions, up to sampling variation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom, false_discovery_control, ttest_1samp
from sklearn.cluster import KMeans

from benchmarks._lib import data_folder, table, verdict
from benchmarks._lib.cohort_real_data import PlantedCohort, dense_cohort
from reduset.cytometry import Populations, compare, design_of, find_populations
from reduset.cytometry.clusters import compare_clusters

TITLE = "A study's power: a dense cluster inside a population, in 8 pairs"
SOURCES = ("cytometry", "sketching")

SPREADS = (0.03, 0.10, 0.25)
FULL = {"cohorts": 20, "unchanged": 15, "flips": 20, "cells": 6000}
QUICK = {"cohorts": 1, "unchanged": 1, "flips": 2, "cells": 1500}
RATE, K_MEANS = 0.05, 100
METHODS = ("clusters", "populations", "k-means")


def cohort_of(seed: int, spread: float, cells: int, shares: tuple[float, float] = (0.005, 0.0125)) -> PlantedCohort:
    return dense_cohort(data_folder(), np.random.default_rng([seed, round(100 * spread)]), spread, cells=cells, shares=shares)


def k_means_of(cohort: PlantedCohort, seed: int) -> np.ndarray:
    """The cluster of each cell."""
    cells = np.concatenate(cohort.bags)
    return KMeans(min(K_MEANS, len(cells) // 50), n_init=1, random_state=seed).fit_predict(cells / cells.std(axis=0))


def by_k_means(cohort: PlantedCohort, labels: np.ndarray, of_cell: np.ndarray) -> list[np.ndarray]:
    """The cells of each cluster that differs."""
    k, n = int(of_cell.max()) + 1, len(cohort.bags)
    sample = np.repeat(np.arange(n), [len(bag) for bag in cohort.bags])
    logs = np.log(np.bincount(sample * k + of_cell, minlength=n * k).reshape(n, k) + 0.5)
    change = (logs[1::2] - logs[::2]) * np.where(labels[1::2] == "B", 1, -1)[:, None]
    p = ttest_1samp(change, 0.0).pvalue
    return [of_cell == each for each in np.flatnonzero(false_discovery_control(np.nan_to_num(p, nan=1.0)) <= RATE)]


def reported(cohort: PlantedCohort, labels: np.ndarray, found: Populations, of_cell: np.ndarray, seed: int) -> dict[str, Any]:
    """For each method the masks of the groups of cells that differ."""
    design = design_of(labels, block=cohort.patients)
    clusters = compare_clusters(found, design, RATE, 0.95, "auto", np.random.default_rng(seed))
    of_population = found.assignments()
    different = np.flatnonzero(compare(found.counts, found.sizes, design, rng=seed).found)
    return {
        "clusters": [member[found.sketch.assignments] for member in clusters.members],
        "populations": [of_population == k for k in different],
        "k-means": by_k_means(cohort, labels, of_cell),
    }


def measure(quick: bool) -> dict[str, Any]:
    size = QUICK if quick else FULL
    power = {}
    for spread in SPREADS:
        hits, false, effects = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0), []
        for seed in range(size["cohorts"]):
            cohort = cohort_of(seed, spread, size["cells"])
            planted = np.concatenate(cohort.planted)
            found = find_populations(cohort.bags, scales=np.concatenate(cohort.bags).std(axis=0), rng=seed)
            masks = reported(cohort, cohort.labels, found, k_means_of(cohort, seed), seed)
            for method in METHODS:
                purity = [planted[mask].mean() for mask in masks[method]]
                hits[method] += any(share >= 0.5 for share in purity)
                false[method] += any(share < 0.02 for share in purity)
            effects += [planted[mask].sum() / planted.sum() for mask in masks["clusters"] if planted[mask].mean() >= 0.5]
        recall = float(np.median(effects)) if effects else 0.0
        power[f"{spread:.0%}"] = {"found": hits, "false": false, "recall": recall, "of": size["cohorts"]}
    wrong, repetitions = dict.fromkeys(METHODS, 0), 0
    for seed in range(size["unchanged"]):
        cohort = cohort_of(1000 + seed, SPREADS[seed % 3], size["cells"], (0.008, 0.008))
        found = find_populations(cohort.bags, scales=np.concatenate(cohort.bags).std(axis=0), rng=seed)
        of_cell = k_means_of(cohort, seed)
        for flip in range(size["flips"]):
            swaps = np.repeat(np.random.default_rng([seed, flip]).random(len(cohort.labels) // 2) < 0.5, 2)
            labels = np.where(swaps, np.where(cohort.labels == "A", "B", "A"), cohort.labels)
            for method, masks in reported(cohort, labels, found, of_cell, flip).items():
                wrong[method] += bool(masks)
            repetitions += 1
    return {"power": power, "level": {"wrong": wrong, "of": repetitions}}


def summary(figures: dict[str, Any]) -> list[list[str]]:
    rows = []
    for spread, each in figures["power"].items():
        share = each["found"]["clusters"] / each["of"]
        others = ", ".join(f"{method} {each['found'][method] / each['of']:.0%}" for method in METHODS[1:])
        rows.append([f"spread {spread}: cohorts in which it is found ({others})", f"{share:.0%}", "≥ 80%", verdict(share, 0.8)])
    wrong, of = figures["level"]["wrong"]["clusters"], figures["level"]["of"]
    limit = int(binom.ppf(0.99, of, RATE))
    rows.append([f"any finding without a change, of {of}", f"{wrong}", f"≤ {limit} (5%)", verdict(limit, wrong)])
    return rows


def details(figures: dict[str, Any]) -> str:
    head = ["spread", *(f"found by {method}" for method in METHODS), *(f"wrong by {method}" for method in METHODS), "recall"]
    rows = [
        [spread, *(f"{each['found'][m]}" for m in METHODS), *(f"{each['false'][m]}" for m in METHODS), f"{each['recall']:.0%}"]
        for spread, each in figures["power"].items()
    ]
    level = figures["level"]
    wrong = [[method, f"{count} of {level['of']}"] for method, count in level["wrong"].items()]
    of = next(iter(figures["power"].values()))["of"]
    return (
        f"Cohorts, of {of} each, in which a reported group of cells is planted for at least half (found), or for less than 2 % "
        "(wrong). Recall: median proportion of the planted cells in a cluster that was found.\n\n"
        f"{table(head, rows)}\n\nAny finding with labels exchanged within pairs, without a change.\n\n"
        f"{table(['method', 'repetitions'], wrong)}"
    )
