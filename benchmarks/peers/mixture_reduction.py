"""How well, and how fast, is a Gaussian mixture of 200 components in four dimensions reduced to 20?

Peers: Runnalls' merging (2007), written in NumPy and compiled (`runnalls.py`), and the reducer of Stone Soup (in its environment,
`stonesoup_worker.py`). The error is the integrated squared error ∫(f − g)² (ISE) relative to ∫f². Goals of `simplify`: a lower
error than both peers on 95 % of the mixtures, at most the time of Runnalls in NumPy and 1.5 times that of Runnalls compiled, and an
error of at most 0.1836, which an earlier version reached in four times the time.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks._lib import medians, table, verdict
from benchmarks._lib.remote import exchange, is_installed, omitted
from benchmarks.peers import runnalls
from reduset import Mixture, simplify

TITLE = "Mixture reduction"
SOURCES = ("simplification", "mixture")

DIMENSION, COMPONENTS, SIZE = 4, 200, 20
COUNTS = {2.0: 100, 1.0: 25, 4.0: 25}  # standard deviation of the means (the first with the goals): number of mixtures
QUICK_COUNTS = {2.0: 3}
PLAIN, COMPILED, PEER, DEFAULT = "Runnalls", "Runnalls, compiled", "Stone Soup", "default"
OURS = {"polish=False": {"polish": False}, "polish=10": {"polish": 10}, DEFAULT: {}}
LOWER = 0.95
GOALS = {PLAIN: 1.0, COMPILED: 1.5}  # largest ratios of times
ERROR = 0.1836
PARTS = ("weights", "means", "covariances")

Values = dict[str, np.ndarray]  # of each method, one per mixture


def measure(quick: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    for _ in range(3):
        runnalls.check(*arrays(draw(2.0, rng, 40)), 8)
    counts = QUICK_COUNTS if quick else COUNTS
    found = {spread: compared(spread, count, not quick or is_installed("stonesoup")) for spread, count in counts.items()}
    errors, seconds, _ = next(iter(found.values()))
    return {"summary": rows_of(errors, seconds), "details": text_of(found) + omitted("stonesoup") * quick}


def draw(spread: float, rng: np.random.Generator, components: int = COMPONENTS) -> Mixture:
    B = rng.normal(size=(components, DIMENSION, DIMENSION))
    covariances = 0.5 / DIMENSION * B @ B.transpose(0, 2, 1) + 0.1 * np.eye(DIMENSION)
    return Mixture(rng.dirichlet(np.ones(components)), spread * rng.normal(size=(components, DIMENSION)), covariances)


def arrays(f: Mixture) -> tuple[np.ndarray, ...]:
    return tuple(np.array(getattr(f, name)) for name in PARTS)


def by_stonesoup(mixtures: list[Mixture]) -> tuple[list[Mixture], np.ndarray, str]:
    """Its mixtures, the seconds of each, and a remark."""
    given = dict(zip(PARTS, map(np.stack, zip(*map(arrays, mixtures), strict=True)), strict=True))
    found = exchange("stonesoup", "stonesoup_worker.py", given, str(SIZE))
    reduced = [Mixture(*parts) for parts in zip(*(found[name] for name in PARTS), strict=True)]
    exact = int(np.sum(found["left"] == SIZE))
    remark = (
        f"Stone Soup {found['version']}: a threshold that leaves {SIZE} components exists for {exact} of {len(reduced)} mixtures"
    )
    return reduced, found["seconds"], f"{remark}; otherwise it leaves up to {found['left'].max()} and drops the lightest."


def squared_error(f: Mixture, g: Mixture) -> float:
    return (f.distance(g) / f.norm()) ** 2


def compared(spread: float, count: int, with_stonesoup: bool) -> tuple[Values, Values, str]:
    """Errors and seconds of each method, and the remark on Stone Soup."""
    rng = np.random.default_rng(5)
    mixtures = [draw(spread, rng) for _ in range(count)]
    errors: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    remark = ""
    if with_stonesoup:
        reduced, took, remark = by_stonesoup(mixtures)
        errors[PEER] = [squared_error(f, g) for f, g in zip(mixtures, reduced, strict=True)]
        seconds[PEER] = list(took)
    for number, f in enumerate(mixtures):
        given = arrays(f)
        calls = {PLAIN: partial(runnalls.merged, *given, SIZE), COMPILED: partial(runnalls.merged_compiled, *given, SIZE)}
        found = {name: Mixture(*call()) for name, call in calls.items()}
        for name, options in OURS.items():
            calls[name] = partial(simplify, f, size=SIZE, rng=number, **options)
            found[name] = calls[name]().mixture
        for name, took in medians(3, **calls).items():
            errors.setdefault(name, []).append(squared_error(f, found[name]))
            seconds.setdefault(name, []).append(took)
    return {k: np.array(v) for k, v in errors.items()}, {k: np.array(v) for k, v in seconds.items()}, remark


def time_ratio(seconds: Values, name: str, peer: str) -> float:
    """The median time of a method relative to that of a peer."""
    return float(np.median(seconds[name]) / np.median(seconds[peer]))


def lower(errors: Values, name: str) -> dict[str, float]:
    """The proportion of mixtures with a lower error than each peer."""
    return {peer: float(np.mean(errors[name] < errors[peer])) for peer in (PLAIN, PEER) if peer in errors}


def rows_of(errors: Values, seconds: Values) -> list[list[str]]:
    """The default, on mixtures of the first spread."""
    error, times = float(errors[DEFAULT].mean()), {peer: time_ratio(seconds, DEFAULT, peer) for peer in GOALS}
    return [
        ["ISE / ∫f² of `simplify`", f"{error:.4f}", f"≤ {ERROR}", verdict(-error, -ERROR)],
        ["ISE relative to Runnalls' merging, mean", f"{np.mean(errors[DEFAULT] / errors[PLAIN]):.3f}", "", ""],
        *(
            [f"mixtures with a lower ISE than {peer}", f"{part:.0%}", f"≥ {LOWER:.0%}", verdict(part, LOWER)]
            for peer, part in lower(errors, DEFAULT).items()
        ),
        *(
            [f"time relative to {peer}", f"{times[peer]:.2f}", f"≤ {most:g}", verdict(-times[peer], -most)]
            for peer, most in GOALS.items()
        ),
    ]


def text_of(found: dict[float, tuple[Values, Values, str]]) -> str:
    head = ["method", "ISE / ∫f²", "time", "ISE relative to Runnalls", "lower than Runnalls", "lower than Stone Soup",
            f"≥ {LOWER:.0%}", *(f"time relative to {peer}: at most {most:g}" for peer, most in GOALS.items())]  # fmt: skip
    parts = [
        f"Mixtures of {COMPONENTS} components in {DIMENSION} dimensions, reduced to {SIZE}. Weights are from a flat Dirichlet "
        f"distribution, covariances are ½BBᵀ/{DIMENSION} + 0.1·I with standard normal entries of B. Runnalls' greedy merging is "
        "written in NumPy, one component against all others at once, and compiled; both agree with a plain double loop. Stone Soup "
        f"merges by a Mahalanobis threshold. A search finds the threshold that leaves {SIZE} components for each mixture; only the "
        "last call is timed, once, without pruning. Means of the ISE, medians of the times, mean of the ratios of ISE."
    ]
    for spread, (errors, seconds, remark) in found.items():
        rows = table(head, lines_of(errors, seconds))
        parts.append("\n\n".join(filter(None, [f"Means from N(0, {spread:g}²I), {len(errors[PLAIN])} mixtures:", rows, remark])))
    return "\n\n".join(parts)


def lines_of(errors: Values, seconds: Values) -> list[list[str]]:
    lines = []
    for name, own in errors.items():
        cells = [f"`simplify`, {name}" if name in OURS else name, f"{own.mean():.4f}", f"{1e3 * np.median(seconds[name]):.1f} ms"]
        if name in OURS:
            part = lower(errors, name)
            cells.append(f"{np.mean(own / errors[PLAIN]):.3f}")
            cells += [f"{part[peer]:.0%}" if peer in part else "" for peer in (PLAIN, PEER)]
            cells.append(verdict(min(part.values()), LOWER))
            cells += [
                f"{ratio:.2f} {verdict(-ratio, -GOALS[peer])}" for peer in GOALS for ratio in [time_ratio(seconds, name, peer)]
            ]
        lines.append([*cells, *[""] * (9 - len(cells))])
    return lines
