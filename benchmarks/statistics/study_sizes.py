"""Samples of very different sizes: 50 to 1,000,000 cells, weighted by what they know, all alike, or all cut down to the smallest.

Counts are simulated: twelve populations whose shares differ between samples by a standard deviation of 0.3 of their logarithm, and
sixteen samples, eight a group, of sizes evenly spread on a logarithmic scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import t as t_law

from benchmarks._lib import table
from reduset.differences import compare, design_of
from reduset.differences.comparing import chances
from reduset.differences.discovery import q_values
from reduset.differences.fitting import fit
from reduset.differences.relabelling import relabellings
from benchmarks.statistics.study_repetitions import interval

TITLE = "Samples of 50 to 1,000,000 cells in one study"

REPETITIONS = 300
RATE = 0.05
SPREAD = 0.3
SHARES = np.array([0.4, 0.2, 0.12, 0.08, 0.06, 0.05, 0.035, 0.02, 0.015, 0.01, 0.005, 0.005])
CHANGED = {"0.5 %, doubled": (10, 2.0), "5 %, doubled": (5, 2.0), "20 %, 1.5-fold": (1, 1.5)}
SIZES = np.round(np.geomspace(50, 1_000_000, 16)).astype(np.int64)
LABELS = np.array(["A"] * 8 + ["B"] * 8)


class Answer(NamedTuple):
    """q-values and effects (log2) of all populations, and which of their intervals hold which values."""

    q: np.ndarray
    effects: np.ndarray
    low: np.ndarray
    high: np.ndarray


def weighted(counts: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> Answer:
    found = compare(counts, sizes, design_of(LABELS), fdr=RATE, rng=rng)
    return Answer(found.q_values, found.effects[0], found.intervals[0, :, 0], found.intervals[0, :, 1])


def all_alike(counts: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> Answer:
    """The logarithm of a share, every sample counting the same."""
    design = design_of(LABELS)
    labelled = relabellings(design, rng)
    fits = fit(np.log((counts + 0.5) / (sizes[:, None] + 1)), None, design, labelled)
    effects, reach = fits.effects[0] / np.log(2), t_law.ppf(0.975, fits.freedom) * fits.errors[0] / np.log(2)
    return Answer(q_values(chances(fits, labelled, "permutation", RATE, 1)), effects, effects - reach, effects + reach)


def cut_down(counts: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> Answer:
    fewest = int(sizes.min())
    some = np.array([rng.multivariate_hypergeometric(row, fewest, method="marginals") for row in counts])
    return weighted(some, np.full(len(sizes), fewest), rng)


METHODS: dict[str, Callable[..., Answer]] = {
    "weighted by what they know (compare)": weighted,
    "all alike": all_alike,
    "all cut down to 50 cells": cut_down,
}


def at_random(rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(SIZES)


def small_in_one(rng: np.random.Generator) -> np.ndarray:
    """Sizes that differ between the groups: the smaller half is B."""
    return np.concatenate([rng.permutation(SIZES[8:]), rng.permutation(SIZES[:8])])


DEALT = {"at random": at_random, "small samples are group B": small_in_one}


def drawn(sizes: np.ndarray, changed: tuple[int, float] | None, rng: np.random.Generator) -> np.ndarray:
    """(16, 12) counts."""
    shares = SHARES * np.exp(rng.normal(0, SPREAD, (len(sizes), len(SHARES))))
    if changed is not None:
        shares[LABELS == "B", changed[0]] *= changed[1]
    shares /= shares.sum(axis=1, keepdims=True)
    return np.array([rng.multinomial(size, share) for size, share in zip(sizes, shares, strict=True)])


def repeated(dealt: str, changed: tuple[int, float] | None, seed: int) -> dict[str, list[Answer]]:
    """All methods on the same counts."""
    found: dict[str, list[Answer]] = {name: [] for name in METHODS}
    for repetition in range(REPETITIONS):
        rng = np.random.default_rng([seed, repetition])
        sizes = DEALT[dealt](rng)
        counts = drawn(sizes, changed, rng)
        for name, method in METHODS.items():
            found[name].append(method(counts, sizes, rng))
    return found


def share_said(hits: list[bool]) -> str:
    low, high = interval(sum(hits), len(hits))
    return f"{np.mean(hits):.1%} ({100 * low:.1f} to {100 * high:.1f})"


def level_lines(dealt: str, seed: int) -> list[list[str]]:
    lines = []
    for name, answers in repeated(dealt, None, seed).items():
        any_found = [bool((answer.q <= RATE).any()) for answer in answers]
        bias = [np.mean([answer.effects[place] for answer in answers]) for place, _ in CHANGED.values()]
        held = interval(sum(any_found), len(any_found))[0] <= RATE
        lines.append([dealt, name, share_said(any_found), "yes" if held else "NO", *(f"{each:+.2f}" for each in bias)])
    return lines


def power_lines(dealt: str, title: str, seed: int) -> list[list[str]]:
    place, factor = CHANGED[title]
    true = np.log2(factor / (1 + SHARES[place] * (factor - 1)))  # all shares together are 1
    lines = []
    for name, answers in repeated(dealt, CHANGED[title], seed).items():
        effects = np.array([answer.effects[place] for answer in answers])
        covered = np.mean([answer.low[place] <= true <= answer.high[place] for answer in answers])
        lines.append([
            title, dealt, name, share_said([bool(answer.q[place] <= RATE) for answer in answers]), f"{effects.mean() - true:+.2f}",
            f"{np.sqrt(np.mean((effects - true) ** 2)):.2f}", f"{covered:.0%}",
        ])  # fmt: skip
    return lines


NOTE = """{repetitions} repetitions. *Anything found* at a false discovery rate of 5 % where no population changes, with 95 %
limits; it is held if the lower limit is not above 5 %. *Found*: the population that changes. *Bias* and *error* (root
of the mean square) are of its log2 fold change, to which it belongs that all shares add up to 1; *covered* is the
share of 95 % intervals that hold the true one."""


def run() -> str:
    levels = [line for seed, dealt in enumerate(DEALT) for line in level_lines(dealt, seed)]
    powers = [line for seed, title in enumerate(CHANGED) for dealt in DEALT for line in power_lines(dealt, title, 10 + seed)]
    head = [
        "sizes",
        "samples count",
        "anything found",
        "held",
        *(f"mean effect, {100 * SHARES[place]:g} %" for place, _ in CHANGED.values()),
    ]
    return "\n\n".join([
        " ".join(NOTE.format(repetitions=REPETITIONS).splitlines()),
        table(head, levels),
        table(["change", "sizes", "samples count", "found", "bias", "error", "covered"], powers),
    ])  # fmt: skip


if __name__ == "__main__":
    print(run())
