"""Tables of the results of `peers`: which method has the lowest error, in what time, and where peers have a lower one.

A cell is a data set, a bandwidth rule and a size. Errors are relative and squared. Those below `ROUNDING` are set to it, so that
they tie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from benchmarks._lib import pins, table
from benchmarks.peers import peer_picture
from benchmarks.peers.result_table import OURS

ROUNDING = 1e-14
MAX_RATIO, MAX_SECONDS = 2.0, 2.0  # "in time": relative to the best peer, or in seconds
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
    """One of our methods in a cell, the peer with the lowest error there, and the method with the lowest error of all."""

    cell: Cell
    mine: Result
    peer: Result
    best: Result

    @property
    def wins(self) -> bool:
        return self.mine.error <= self.peer.error < np.inf

    @property
    def in_time(self) -> bool:
        return self.mine.seconds <= MAX_RATIO * self.peer.seconds or self.mine.seconds < MAX_SECONDS

    @property
    def factor(self) -> float:
        return self.peer.error / self.mine.error


def duels(cells: dict[Cell, list[Result]], target: str) -> list[Duel]:
    found = []
    for cell, results in cells.items():
        mine = next((r for r in results if r.method == target), None)
        peers = [r for r in results if not r.ours and r.status == "ok"]
        if mine is not None and peers:
            # the quicker of two methods that tie
            order = sorted(results, key=lambda r: (r.error, r.seconds))
            found.append(Duel(cell, mine, min(peers, key=lambda r: (r.error, r.seconds)), order[0]))
    return found


def rows_of(cells: dict[Cell, list[Result]]) -> list[list[str]]:
    found = duels(cells, TARGETS[0])
    if not found:
        return [["cells measured, without peers", str(len(cells)), "", ""]]

    def wins(what: str, of: Iterable[bool]) -> list[str]:
        values = list(of)
        return [what, f"{sum(values)} of {len(values)} ({np.mean(values):.0%})", "", ""]

    return [
        wins("error not above the best peer, `auto` with refined atoms", (duel.wins for duel in found)),
        *(
            wins(f"the same, bandwidth `{rule}`", (duel.wins for duel in found if duel.cell[1] == rule))
            for rule in sorted({rule for _, rule, _ in cells})
        ),
        wins("error not above the best peer, and in time", (duel.wins and duel.in_time for duel in found)),
        ["squared error of the best peer relative to ours, median", f"{np.median([duel.factor for duel in found]):.3g}", "", ""],
        wins("error not above the best peer, `auto`", (duel.wins for duel in duels(cells, TARGETS[1]))),
    ]


def text(cells: dict[Cell, list[Result]], machine: str, picture: Path, limit: float) -> str:
    """The details; the picture is drawn as well."""
    peer_picture.draw(cells, picture)
    versions = ", ".join(f"{name} {version}" for name, version in pins("peers").items())
    return "\n\n".join(
        [
            HOW.format(rounding=ROUNDING, versions=versions, machine=machine, limit=limit),
            f"![error and time in some cells]({picture.name})",
            "### Lowest error, and in what time",
            _counts_of_wins(cells),
            "### Every method",
            _methods(cells),
            "### Cells in which a peer has a lower error than `auto` with refined atoms",
            _losses(cells),
        ]
    )


HOW = """\
The relative squared error ‖f − f_m‖²/‖f‖² at equal size m, with a Gaussian kernel and the same bandwidth for all. One evaluator
computes all errors: from every pair of points, and near rounding from random frequencies, the same for every method. Errors below
{rounding:g} are rounding and tie. Columns are standardised (constant columns are dropped), images of digits are in [0, 1]. At most
100,000 rows; sizes below half of the rows.

Times are of one run after compilation. Ours is the whole of `compress`, certificate included. That of a peer is the selection of
atoms and, for optimal weights, the computation of these (K⁻¹κ, computed by us for all). No time includes the bandwidth rule,
reading or copying. A run may take {limit:g} s. Methods with n² operations run up to 10,000 rows; beyond, coreax offers map-reduce
(herding) and Compress++ (thinning). goodpoints halves, so it gets a random subset that halves to m, at least half of the rows. Its
Compress++ is composed of the library's two steps, with a number of bins that allows any m.

Versions of the peers: {versions}. Measured on: {machine}."""


def _counts_of_wins(cells: dict[Cell, list[Result]]) -> str:
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
                    _count(duel.wins for duel in met),
                    _count(duel.in_time for duel in met),
                    _count(duel.wins and duel.in_time for duel in met),
                    _count(duel.mine.error <= duel.best.error < np.inf for duel in met),
                    f"{np.median([duel.factor for duel in fine]):.3g}" if fine else "",
                    f"{np.median([d.peer.error for d in fine]) / np.median([d.mine.error for d in fine]):.3g}" if fine else "",
                ]
            )
    head = [
        "ours",
        "bandwidth",
        "cells",
        "not above the best peer",
        "in time",
        "both",
        "lowest of all, our other selectors included",
    ]
    head += ["best peer's error / ours, median", "ratio of medians"]
    if not rows:
        return "Not measured yet."
    return (
        table(head, rows)
        + f"\n\n*In time*: at most {MAX_RATIO:g} times the time of the peer with the lowest error in the cell, or below "
        f"{MAX_SECONDS:g} s."
    )


def _count(values: Iterable[bool]) -> str:
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
    head = ["method", "cells", "without a result", "median rank", "error / lowest in the cell, geometric mean", "median time"]
    return table(head, rows) + "\n\nRanks, ratios and times are over the cells in which a method ran; these differ between methods."


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
    return table(["data", "bandwidth", "size", "ours", "peer", "its error", "ours / its"], rows)
