"""What `peers.csv` says, in words and tables: who has the lowest error, at what price, and where we lose.

A cell is a data set, a bandwidth rule and a size. Errors are relative and squared; those below `ROUNDING` cannot be told from it
and are raised to it, so that they tie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

import peer_picture
from harness import table
from remote import pins

ROUNDING = 1e-14
TIMES, AT_ONCE = 2.0, 2.0  # slower than the best peer by at most this factor, or done within this many seconds
OURS = "reduset-"
TARGETS = ("reduset-auto+refine", "reduset-auto")

Cell = tuple[str, str, int]


@dataclass(frozen=True)
class Result:
    """One method in one cell."""

    method: str
    weights: str
    status: str
    error: float
    seconds: float

    @property
    def ours(self) -> bool:
        return self.method.startswith(OURS)

    @property
    def label(self) -> str:
        return self.method if self.ours else f"{self.method}, {self.weights} weights"


def cells_of(rows: Iterable[dict[str, str]]) -> dict[Cell, list[Result]]:
    """Results by cell; of rows with the same key the last one counts."""
    found: dict[Cell, dict[tuple[str, str], Result]] = {}
    for row in rows:
        fine = row["status"] == "ok"
        error = max(float(row["error"]), ROUNDING) if fine else np.inf
        result = Result(row["method"], row["weights"], row["status"], error, float(row["seconds"]) if fine else np.inf)
        found.setdefault((row["data"], row["bandwidth"], int(row["size"])), {})[row["method"], row["weights"]] = result
    return {cell: list(results.values()) for cell, results in found.items()}


@dataclass(frozen=True)
class Duel:
    """One of our methods in a cell against the peer with the lowest error there, and against all of ours."""

    cell: Cell
    mine: Result
    peer: Result
    best: Result

    @property
    def wins(self) -> bool:
        return self.mine.error <= self.peer.error < np.inf

    @property
    def in_time(self) -> bool:
        return self.mine.seconds <= TIMES * self.peer.seconds or self.mine.seconds < AT_ONCE

    @property
    def factor(self) -> float:
        return self.peer.error / self.mine.error


def duels(cells: dict[Cell, list[Result]], target: str) -> list[Duel]:
    found = []
    for cell, results in cells.items():
        mine = next((r for r in results if r.method == target), None)
        peers = [r for r in results if not r.ours and r.status == "ok"]
        if mine is not None and peers:
            # the quicker one of two that tie: nothing may be gained from the slower
            order = sorted(results, key=lambda r: (r.error, r.seconds))
            found.append(Duel(cell, mine, min(peers, key=lambda r: (r.error, r.seconds)), order[0]))
    return found


def text(rows: list[dict[str, str]], recorded_on: str, picture: Path) -> str:
    """The section of RESULTS.md; the picture is drawn on the way."""
    cells = cells_of(rows)
    peer_picture.draw(cells, picture)
    versions = ", ".join(f"{name} {version}" for name, version in pins().items())
    return "\n\n".join(
        [
            HOW.format(rounding=ROUNDING, versions=versions, machine=recorded_on),
            f"![error against time in some cells]({picture.name})",
            "### Who has the lowest error, and in what time",
            _shares(cells),
            "### Every method",
            _methods(cells),
            "### Cells that auto with refined atoms loses",
            _losses(cells),
        ]
    )


HOW = """\
Relative squared error ‖f − f_m‖²/‖f‖² at equal size m, Gaussian kernel, the same bandwidth for all, from one evaluator: every
pair of points, and where that is all rounding the same random frequencies for every method. Errors below {rounding:g} are
rounding and tie. Columns are standardised (constant ones dropped), images of digits in [0, 1]; at most 100,000 rows; sizes below
half of the rows.

Time is that of a warm run of one method: for ours the whole of `compress` with its certificate, for peers the choice of atoms
and, with optimal weights (K⁻¹κ, computed by us for all: by Cholesky, and where that drops atoms as redundant also by eigenvalues,
the better of the two), those too. Nobody's time holds the bandwidth rule, reading or copying. A run may take 60 s. Methods whose
cost is n² are not run above 10,000 rows; coreax has map-reduce (for herding) and Compress++ (for thinning) in their place.
goodpoints halves, so it is given a random subset of as many rows as its halving takes to end at m: between a half and all of
them. Its Compress++ is put together from the library's own two steps, with a number of bins that makes any m possible.

Peers: {versions}. Measurement on: {machine}."""


def _shares(cells: dict[Cell, list[Result]]) -> str:
    rules = sorted({rule for _, rule, _ in cells})
    rows = []
    for target in TARGETS:
        for rule in [*rules, None]:
            met = [duel for duel in duels(cells, target) if rule in (duel.cell[1], None)]
            if not met:
                continue
            fine = [duel for duel in met if duel.mine.status == "ok"]
            rows.append(
                [
                    target,
                    rule or "all",
                    len(met),
                    _share(duel.wins for duel in met),
                    _share(duel.in_time for duel in met),
                    _share(duel.wins and duel.in_time for duel in met),
                    _share(duel.mine.error <= duel.best.error < np.inf for duel in met),
                    f"{np.median([duel.factor for duel in fine]):.3g}" if fine else "",
                    f"{np.median([d.peer.error for d in fine]) / np.median([d.mine.error for d in fine]):.3g}" if fine else "",
                ]
            )
    head = ["ours", "bandwidth", "cells", "lowest error", "in time", "both", "lowest of all, our other selectors too"]
    head += ["best peer's error over ours, median", "the same, of the medians"]
    if not rows:
        return "Not measured yet."
    return (
        table(head, rows) + "\n\n'Lowest error' is against every peer, ties included. 'In time': at most "
        f"{TIMES:g} times the time of the peer with the lowest error in the cell, or below {AT_ONCE:g} s."
    )


def _share(values: Iterable[bool]) -> str:
    found = list(values)
    return f"{sum(found)} ({np.mean(found):.0%})"


def _methods(cells: dict[Cell, list[Result]]) -> str:
    ranks: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    times: dict[str, list[float]] = {}
    without: dict[str, list[str]] = {}
    for results in cells.values():
        fine = [r for r in results if r.status == "ok"]
        for r in results:
            if r.status != "ok":
                without.setdefault(r.label, []).append(r.status.split(" at a ")[0].split(":")[0])
        errors = [r.error for r in fine]
        for r, rank in zip(fine, rankdata(errors), strict=True):
            ranks.setdefault(r.label, []).append(float(rank))
            ratios.setdefault(r.label, []).append(r.error / min(errors))
            times.setdefault(r.label, []).append(r.seconds)
    mean_ratio = {label: float(np.exp(np.mean(np.log(values)))) for label, values in ratios.items()}
    rows = [
        [
            label,
            len(ranks[label]),
            _counts(without.get(label, [])),
            f"{np.median(ranks[label]):g}",
            f"{mean_ratio[label]:.3g}",
            f"{np.median(times[label]):.3g} s",
        ]
        for label in sorted(mean_ratio, key=lambda label: mean_ratio[label])
    ]
    rows += [[label, 0, _counts(statuses), "", "", ""] for label, statuses in without.items() if label not in mean_ratio]
    head = ["method", "cells", "without a result", "median rank", "error over the least in the cell, geometric mean", "median time"]
    return (
        table(head, rows) + "\n\nRanks, ratios and times are over the cells in which a method ran, which are not the same for all."
    )


def _counts(statuses: Sequence[str]) -> str:
    return ", ".join(f"{statuses.count(status)} {status}" for status in sorted(set(statuses)))


def _losses(cells: dict[Cell, list[Result]]) -> str:
    met = duels(cells, TARGETS[0])
    lost = sorted((duel for duel in met if not duel.wins), key=lambda duel: duel.factor)
    if not lost:
        return "None." if met else "Not measured yet."
    rows = [
        [
            *duel.cell,
            f"{duel.mine.error:.3g} in {duel.mine.seconds:.3g} s" if duel.mine.status == "ok" else duel.mine.status,
            duel.peer.label,
            f"{duel.peer.error:.3g} in {duel.peer.seconds:.3g} s",
            f"{1 / duel.factor:.3g}" if duel.mine.status == "ok" else "",
        ]
        for duel in lost
    ]
    return table(["data", "bandwidth", "size", "ours", "winner", "its error", "factor"], rows)
