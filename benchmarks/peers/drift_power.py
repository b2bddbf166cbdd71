"""How often are two different samples found to differ?

Peers: the full permutation test of MMD², MMDAgg, MMD-FUSE, Compress Then Test (ctt, in the environment of the drift peers) and
Kolmogorov-Smirnov tests of the columns. Goal on each alternative: `two_sample` within 2 points of the full test at its best
bandwidth, not below MMDAgg and MMD-FUSE, above the other two. All tests get the same pairs of samples.
Results of the peers are kept in `results/drift_rivals.csv`, and measured if missing there.
"""

from __future__ import annotations

import csv
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from benchmarks._lib import table
from benchmarks._lib.remote import is_installed, omitted
from benchmarks.peers import drift_peers
from benchmarks.peers.drift_alternatives import LAWS, NAMES, draw
from benchmarks.peers.drift_rivals import LADDER, RIVALS, p_values
from reduset.drift import two_sample

TITLE = "Drift: power"
SOURCES = ("drift/estimator.py", "drift/comparison.py", "drift/feature_map.py", "drift/null_distribution.py")

CACHE = Path(__file__).parent / "results" / "drift_rivals.csv"
HEAD = ["alternative", "n", "strength", "test", "repetitions", "found"]
LEVEL, CLOSE = 0.05, 0.02
NONE = "none"  # no change: both samples have the distribution of "mean shift"; the power is then the level
CTT_OVERSAMPLING, CTT_PERMUTATIONS = 4, 999
MMD = ("MMDAgg", "MMD-FUSE", "MMD-FUSE, λ of its code")

Key = tuple[str, str]  # alternative and test


@dataclass(frozen=True)
class Plan:
    """Which alternatives, how many pairs of each, and whether results of peers are kept."""

    names: tuple[str, ...]
    repetitions: int
    with_ctt: bool
    cache: Path | None


FULL = Plan((*NAMES, NONE), 200, True, CACHE)


def measure(quick: bool) -> dict[str, Any]:
    plan = Plan(("blobs", NONE), 2, is_installed("drift"), None) if quick else FULL
    peers, ours = by_peers(plan), by_us(plan)
    lines = [line(plan, name, peers, ours) for name in plan.names]
    return {"summary": rows_of(lines), "details": text_of(plan, lines) + omitted("drift") * quick}


def pair(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return draw("mean shift", 10**6 + seed, strength=0.0) if name == NONE else draw(name, seed)


def setting(name: str) -> tuple[int, float]:
    """Rows of each sample, and strength of the change."""
    _, strength, n = LAWS["mean shift" if name == NONE else name]
    return n, 0.0 if name == NONE else strength


def recorded(plan: Plan) -> dict[Key, int]:
    """Number of rejections of each peer on each alternative, where size, strength and repetitions are unchanged."""
    if plan.cache is None or not plan.cache.exists():
        return {}
    with plan.cache.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["alternative"], row["test"]): int(row["found"]) for row in rows
        if row["alternative"] in plan.names and int(row["repetitions"]) == plan.repetitions
        and (int(row["n"]), float(row["strength"])) == setting(row["alternative"])
    }  # fmt: skip


def record(plan: Plan, found: dict[Key, int]) -> None:
    if plan.cache is None:
        return
    with plan.cache.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        writer.writerows([name, *setting(name), test, plan.repetitions, count] for (name, test), count in found.items())


def by_ctt(name: str, repetitions: int) -> dict[str, int]:
    """Rejections of ctt at every bandwidth. Bins of 4, 16 or 64 rows use all rows."""
    n, _ = setting(name)
    X, Y = map(np.stack, zip(*(pair(name, seed) for seed in range(repetitions)), strict=True))
    medians = np.array([np.median(pdist(np.concatenate(both))) for both in zip(X, Y, strict=True)])
    bins = 32 if n == 512 else 16
    found = drift_peers.call(
        "ctt", {"X": X, "Y": Y, "widths": np.outer(medians, LADDER)}, bins=bins, oversampling=CTT_OVERSAMPLING,
        permutations=CTT_PERMUTATIONS,
    )  # fmt: skip
    counts = (found["p"] <= LEVEL).sum(axis=0)
    return {f"ctt, {factor:.3g} medians": int(count) for factor, count in zip(LADDER, counts, strict=True)}


def by_peers(plan: Plan) -> dict[Key, int]:
    """Rejections of each peer on each alternative."""
    found = recorded(plan)
    for name in plan.names:
        missing = [test for test in RIVALS if (name, test) not in found]
        if missing:
            begun = time.perf_counter()
            counts = dict.fromkeys(missing, 0)
            for seed in range(plan.repetitions):
                X, Y = pair(name, seed)
                values = p_values(X, Y, seed) if len(missing) > 1 else {missing[0]: RIVALS[missing[0]](X, Y, seed)}
                for test in missing:
                    counts[test] += int(values[test] <= LEVEL)
            found |= {(name, test): count for test, count in counts.items()}
            record(plan, found)
            print(f"{name}: peers in {time.perf_counter() - begun:.0f} s", flush=True)
        if plan.with_ctt and not any(key == name and test.startswith("ctt") for key, test in found):
            found |= {(name, test): count for test, count in by_ctt(name, plan.repetitions).items()}
            record(plan, found)
    return found


def by_us(plan: Plan) -> dict[str, int]:
    """Rejections of `two_sample`; `DriftTest` gives the same, since it keeps all rows of references of this size."""

    def rejects(name: str, seed: int) -> bool:
        X, Y = pair(name, seed)
        return two_sample(X, Y, scales=None, rng=seed).p_value <= LEVEL  # the columns in the units that the peers get

    return {name: sum(rejects(name, seed) for seed in range(plan.repetitions)) for name in plan.names}


@dataclass(frozen=True)
class Line:
    """The power of each test on an alternative."""

    name: str
    ours: float
    full: tuple[float, str]
    others: dict[str, float]
    ctt: tuple[float, float] | None

    @property
    def meets_goal(self) -> bool:
        aggregated = max(self.others[test] for test in MMD)
        single = max(self.others["KS, Holm"], self.ctt[0] if self.ctt else 0.0)
        return self.ours >= self.full[0] - CLOSE and self.ours >= aggregated and self.ours > single


def line(plan: Plan, name: str, peers: dict[Key, int], ours: dict[str, int]) -> Line:
    power = {test: count / plan.repetitions for (key, test), count in peers.items() if key == name}
    best = max((test for test in power if test.startswith("full")), key=lambda test: power[test])
    ctt = [value for test, value in power.items() if test.startswith("ctt")]
    return Line(
        name,
        ours[name] / plan.repetitions,
        (power[best], best.split(", ")[1].removesuffix(" medians")),
        {test: power[test] for test in (*MMD, "KS, Holm")},
        (power["ctt, 1 medians"], max(ctt)) if ctt else None,
    )


def rows_of(lines: list[Line]) -> list[list[str]]:
    changed = [line for line in lines if line.name != NONE]
    level = next(line.ours for line in lines if line.name == NONE)
    met = sum(line.meets_goal for line in changed)

    def at_least(what: str, least: list[float]) -> list[str]:
        count = sum(line.ours >= value for line, value in zip(changed, least, strict=True))
        return [what, f"{count} of {len(changed)}", "", ""]

    return [
        ["alternatives on which all goals are met", f"{met} of {len(changed)}", "all", "yes" if met == len(changed) else "NO"],
        at_least("power within 2 points of the full test at its best bandwidth", [line.full[0] - CLOSE for line in changed]),
        at_least("power at least that of MMDAgg and MMD-FUSE", [max(line.others[test] for test in MMD) for line in changed]),
        ["rejections without a change", f"{level:.1%}", f"{LEVEL:.0%}", ""],
    ]


def text_of(plan: Plan, lines: list[Line]) -> str:
    rows = []
    for each in lines:
        n, strength = setting(each.name)
        ctt = [f"{value:.1%}" for value in each.ctt] if each.ctt else ["", ""]
        met = "" if each.name == NONE else "yes" if each.meets_goal else "NO"
        rows.append([each.name, n, f"{strength:g}", f"{each.ours:.1%}", f"{each.full[0]:.1%} ({each.full[1]})",
                     *(f"{value:.1%}" for value in each.others.values()), *ctt, met])  # fmt: skip
    head = ["alternative", "n", "strength", "two_sample", "full, best bandwidth (in median distances)", *MMD, "KS, Holm",
            "ctt, median distance", "ctt, best bandwidth", "goals met"]  # fmt: skip
    text = (
        f"Rejections at a level of 5 %, of {plan.repetitions} pairs of samples of n rows each; all tests get the same pairs. "
        f"The standard deviation of a power of one half is {50 / np.sqrt(plan.repetitions):.1f} points. *Full* is the permutation "
        f"test of MMD² with a Gaussian kernel at the best of {len(LADDER)} bandwidths, which is known only afterwards. *ctt* is "
        "that of goodpoints, at the median distance as in its paper, and at the best bandwidth. *Goals*: `two_sample` within 2 "
        "points of the full test, not below MMDAgg and MMD-FUSE with either λ, above ctt at the median distance and "
        f"Kolmogorov-Smirnov. *{NONE}*: both samples have the same distribution.\n\n"
    )
    return text + table(head, rows)
