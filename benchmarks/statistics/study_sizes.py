"""Samples of 50 to 1,000,000 cells in one study: level and power with weighted, unweighted and subsampled counts.

Counts are simulated: twelve populations whose log proportions vary between samples with a standard deviation of 0.3, and sixteen
samples, eight a group, with sizes evenly spaced on a logarithmic scale. `compare` weights samples by their precision. It is
compared with equal weights, and with all samples subsampled to 50 cells. Goals: the level of 5 % holds, and the weights of
`compare` find a change at least as often as subsampling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import false_discovery_control
from scipy.stats import t as t_law

from benchmarks._lib import table, verdict
from benchmarks.statistics._repetitions import interval, with_limits
from reduset.cytometry import compare, design_of
from reduset.cytometry.comparing import fit, p_values
from reduset.cytometry.design import relabellings

TITLE = "Samples of 50 to 1,000,000 cells in one study"
SOURCES = ("cytometry",)

REPETITIONS, QUICK_REPETITIONS = 300, 5
RATE = 0.05
SPREAD = 0.3
SHARES = np.array([0.4, 0.2, 0.12, 0.08, 0.06, 0.05, 0.035, 0.02, 0.015, 0.01, 0.005, 0.005])
CHANGED = {"0.5 %, doubled": (10, 2.0), "5 %, doubled": (5, 2.0), "20 %, 1.5-fold": (1, 1.5)}
SIZES = np.round(np.geomspace(50, 1_000_000, 16)).astype(np.int64)
LABELS = np.array(["A"] * 8 + ["B"] * 8)


class Answer(NamedTuple):
    """q-values, effects (log2) and intervals of all populations."""

    q: np.ndarray
    effects: np.ndarray
    low: np.ndarray
    high: np.ndarray


def weighted(counts: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> Answer:
    found = compare(counts, sizes, design_of(LABELS), fdr=RATE, rng=rng)
    return Answer(found.q_values, found.effects[0], found.intervals[0, :, 0], found.intervals[0, :, 1])


def unweighted(counts: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> Answer:
    """Log proportions, with equal weights of all samples."""
    design = design_of(LABELS)
    labelled = relabellings(design, rng)
    fits = fit(np.log((counts + 0.5) / (sizes[:, None] + 1)), None, design, labelled)
    effects, reach = fits.effects[0] / np.log(2), t_law.ppf(0.975, fits.freedom) * fits.errors[0] / np.log(2)
    return Answer(
        false_discovery_control(p_values(fits, labelled, "permutation", RATE, 1)), effects, effects - reach, effects + reach
    )


def subsampled(counts: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> Answer:
    fewest = int(sizes.min())
    some = np.array([rng.multivariate_hypergeometric(row, fewest, method="marginals") for row in counts])
    return weighted(some, np.full(len(sizes), fewest), rng)


NAMES = "weighted, unweighted, subsampled"
METHODS: dict[str, Callable[..., Answer]] = {
    "weighted by precision (compare)": weighted,
    "unweighted": unweighted,
    "subsampled to 50 cells": subsampled,
}


def at_random(rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(SIZES)


def small_in_one(rng: np.random.Generator) -> np.ndarray:
    """The smaller half of the samples is group B."""
    return np.concatenate([rng.permutation(SIZES[8:]), rng.permutation(SIZES[:8])])


ASSIGNMENTS = {"at random": at_random, "small samples are group B": small_in_one}


def drawn(sizes: np.ndarray, changed: tuple[int, float] | None, rng: np.random.Generator) -> np.ndarray:
    """(16, 12) counts."""
    shares = SHARES * np.exp(rng.normal(0, SPREAD, (len(sizes), len(SHARES))))
    if changed is not None:
        shares[LABELS == "B", changed[0]] *= changed[1]
    shares /= shares.sum(axis=1, keepdims=True)
    return np.array([rng.multinomial(size, share) for size, share in zip(sizes, shares, strict=True)])


def repeated(assigned: str, changed: tuple[int, float] | None, seed: int, repetitions: int) -> dict[str, list[Answer]]:
    """All methods on the same counts."""
    found: dict[str, list[Answer]] = {name: [] for name in METHODS}
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, repetition])
        sizes = ASSIGNMENTS[assigned](rng)
        counts = drawn(sizes, changed, rng)
        for name, method in METHODS.items():
            found[name].append(method(counts, sizes, rng))
    return found


def level_lines(assigned: str, seed: int, repetitions: int) -> tuple[list[list[str]], list[float]]:
    """Lines of the table, and the proportion of findings of each method."""
    lines, proportions = [], []
    for name, answers in repeated(assigned, None, seed, repetitions).items():
        any_found = np.array([(answer.q <= RATE).any() for answer in answers])
        bias = [np.mean([answer.effects[at] for answer in answers]) for at, _ in CHANGED.values()]
        held = "yes" if interval(int(any_found.sum()), len(any_found))[0] <= RATE else "NO"
        lines.append([assigned, name, with_limits(any_found, 1), held, *(f"{each:+.2f}" for each in bias)])
        proportions.append(float(any_found.mean()))
    return lines, proportions


def power_lines(assigned: str, title: str, seed: int, repetitions: int) -> tuple[list[list[str]], list[float]]:
    """Lines of the table, and the power of each method."""
    at, factor = CHANGED[title]
    true = np.log2(factor / (1 + SHARES[at] * (factor - 1)))  # all proportions together are 1
    lines, powers = [], []
    for name, answers in repeated(assigned, CHANGED[title], seed, repetitions).items():
        effects = np.array([answer.effects[at] for answer in answers])
        covered = np.mean([answer.low[at] <= true <= answer.high[at] for answer in answers])
        found = np.array([answer.q[at] <= RATE for answer in answers])
        error = np.sqrt(np.mean((effects - true) ** 2))
        line = [title, assigned, name, with_limits(found, 1), f"{effects.mean() - true:+.2f}", f"{error:.2f}", f"{covered:.0%}"]
        lines.append(line)
        powers.append(float(found.mean()))
    return lines, powers


NOTE = """{repetitions} repetitions. *Any finding*: at a false discovery rate of 5 % without a change, with 95 % limits. The level
holds if the lower limit is not above 5 %. *Found*: the population that changes. *Bias* and *error* (root of the mean
square) are of its log2 fold change, given that all proportions add up to 1. *Covered* is the proportion of 95 %
intervals that cover the true one."""


def measure(quick: bool) -> dict[str, Any]:
    repetitions = QUICK_REPETITIONS if quick else REPETITIONS
    levels, powers, summary = [], [], []
    for seed, assigned in enumerate(ASSIGNMENTS):
        lines, proportions = level_lines(assigned, seed, repetitions)
        levels += lines
        shown = ", ".join(f"{each:.1%}" for each in proportions)
        held = "yes" if all(line[3] == "yes" for line in lines) else "NO"
        summary.append([f"false findings, {assigned}: {NAMES}", shown, f"level {RATE:.0%}", held])
    for seed, title in enumerate(CHANGED):
        for assigned in ASSIGNMENTS:
            lines, found = power_lines(assigned, title, 10 + seed, repetitions)
            powers += lines
            if assigned == "at random":
                shown = ", ".join(f"{each:.1%}" for each in found)
                summary.append([f"power, {title}", shown, "weighted ≥ subsampled", verdict(found[0], found[2])])
    head = ["sizes", "samples", "any finding", "level holds"]
    head += [f"mean effect, {100 * SHARES[at]:g} %" for at, _ in CHANGED.values()]
    details = "\n\n".join([
        " ".join(NOTE.format(repetitions=repetitions).splitlines()),
        table(head, levels),
        table(["change", "sizes", "samples", "found", "bias", "error", "covered"], powers),
    ])  # fmt: skip
    return {"summary": summary, "details": details}
