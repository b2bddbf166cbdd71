"""Tables of the results of `sketching`: the goals and whether they are met, then every method on every data set.

A cell is a data set and a size; seeds are averaged. Goals are for sketches without weights, as most tools use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks._lib import pins, table
from benchmarks.peers import sketching_picture
from benchmarks.peers.sketching_metrics import COLUMNS

OURS, EXACT, RANDOM = "reduset", "hopper", "uniform"
AGREEMENT = {
    "k-means": "ari_same_plain",
    "Leiden": "ari_leiden",
}  # with clusters of all rows, for Leiden where these are the labels
MIN_DIFFERENCE = 0.005  # of an adjusted Rand index
LARGE, LARGE_SHAPE = ("simulated", 5_000), (1_000_000, 50)
RARE_AT = 2_000

Cell = tuple[str, int]


class Results:
    """Rows by cell and method; of rows with the same key the last one counts."""

    def __init__(self, rows: Iterable[dict[str, str]]) -> None:
        last = {(row["data"], int(row["size"]), row["method"], int(row["seed"])): row for row in rows}
        self._rows: dict[Cell, dict[str, list[dict[str, str]]]] = {}
        self.shapes: dict[str, tuple[int, int]] = {}
        for (name, size, method, _), row in last.items():
            self._rows.setdefault((name, size), {}).setdefault(method, []).append(row)
            self.shapes[name] = (int(row["n"]), int(row["d"]))
        self.cells = sorted(self._rows, key=lambda cell: (list(self.shapes).index(cell[0]), cell[1]))
        self.methods = list(dict.fromkeys(method for found in self._rows.values() for method in found))

    @property
    def peers(self) -> list[str]:
        return [method for method in self.methods if method != OURS]

    def values(self, cell: Cell, method: str, column: str) -> np.ndarray:
        """The values of the seeds that have one."""
        assert column in COLUMNS, column
        rows = self._rows.get(cell, {}).get(method, [])
        return np.array([float(row[column]) for row in rows if row["status"] == "ok" and row[column]])

    def mean(self, cell: Cell, method: str, column: str) -> float:
        found = self.values(cell, method, column)
        return float(found.mean()) if len(found) else np.nan

    def error_of_mean(self, cell: Cell, method: str, column: str) -> float:
        found = self.values(cell, method, column)
        return float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0

    def status(self, cell: Cell, method: str) -> str:
        """Why there is no value."""
        statuses = [row["status"] for row in self._rows.get(cell, {}).get(method, []) if row["status"] != "ok"]
        return next((status.split(":")[0] for status in statuses), "")

    def best_peer(self, cell: Cell, column: str, most: bool = False) -> tuple[float, str]:
        """The lowest mean of a peer in the cell (the highest with ``most``), and its name."""
        found = [(self.mean(cell, method, column), method) for method in self.peers]
        found = [pair for pair in found if not np.isnan(pair[0])]
        return (max(found) if most else min(found)) if found else (np.nan, "")

    def shared(self, column: str) -> list[Cell]:
        """Cells in which we and a peer have a value."""
        fine = (c for c in self.cells if not np.isnan(self.mean(c, OURS, column)))
        return [cell for cell in fine if self.best_peer(cell, column)[1]]


def rows_of(results: Results) -> list[list[str]]:
    """The main goals."""
    large = _large(results)
    n, d = results.shapes.get(LARGE[0], LARGE_SHAPE)
    together = f"{n:,} × {d} to {LARGE[1]:,}: seconds; geosketch's time / ours; memory / rows"
    met = [row[3] for row in large if row[3]]
    return [
        *_proportions(results)[:2],
        *_rare(results)[:1],
        *_cover(results)[:1],
        *_clusters(results)[:1],
        [together, *("; ".join(row[k] for row in large) for k in (1, 2)), "NO" if "NO" in met else "yes" if met else ""],
    ]


def text(results: Results, machine: str, picture: Path) -> str:
    """The details; the picture is drawn as well."""
    sketching_picture.draw(results, picture)
    versions = ", ".join(f"{name} {version}" for name, version in pins("sketch").items())
    parts = [HOW.format(versions=versions, machine=machine), f"![measures against size]({picture.name})"]
    parts += ["### Goals", goals(results), "### Cells in which another method is better", losses(results)]
    for name, (n, d) in results.shapes.items():
        parts += [f"### {name}: {n:,} × {d}", _methods(results, name) + _all_rows(results, name)]
    return "\n\n".join(parts)


HOW = """\
Every method gets the same rows (cytometry standardised, principal components as they are), selects the same number of them, and
runs in a new process. `sketching_data.py`, `sketching_methods.py` and `sketching_metrics.py` define data, methods and measures.
*Plain* measures give the rows of a sketch equal weights. *Weighted* ones use our weights; for peers, which have none, the number of
rows nearest to each. This separates the effect of weights from that of the selection. The tables have MMD and KL weighted for ours
and plain for peers; the file has both. Labels of cytometry are clusters of all rows. Memory is resident memory in addition to the
rows.

Versions of the peers: {versions}. Measured on: {machine}."""


def goals(results: Results) -> str:
    rows = [*_proportions(results), *_rare(results), *_cover(results), *_clusters(results), *_large(results)]
    return table(["what", "figure", "goal", "met"], rows)


def _line(what: str, found: str, goal: str, met: bool | None) -> list[str]:
    return [what, found, goal, "" if met is None else "yes" if met else "NO"]


def _nothing(what: str, goal: str) -> list[str]:
    return _line(what, "not measured yet", goal, None)


def _proportions(results: Results) -> list[list[str]]:
    cells = results.shared("mae_plain")
    if not cells:
        return [_nothing("error of proportions at most that of the best peer", "≥ 80%")]
    plain, weighted = (np.array([results.mean(cell, OURS, f"mae_{kind}") for cell in cells]) for kind in ("plain", "weighted"))
    peer = np.array([results.best_peer(cell, "mae_plain")[0] for cell in cells])
    random = np.array([results.mean(cell, RANDOM, "mae_plain") for cell in cells])
    lowest, largest, of = float(np.mean(plain <= peer)), float(np.max(plain / random)), f"{len(cells)} cells"
    return [
        _line(f"error of proportions at most that of the best peer, of {of}", f"{lowest:.0%}", "≥ 80%", lowest >= 0.8),
        _line("error of proportions relative to random rows, largest", f"{largest:.2f}", "≤ 0.75", largest <= 0.75),
        _line("the same, median", f"{np.median(plain / random):.2f}", "", None),
        _line("the same with weights, median", f"{np.median(weighted / random):.2f}", "", None),
    ]


def _rare(results: Results) -> list[list[str]]:
    found = []
    for cell in (c for c in results.cells if c[0].startswith("rare") and c[1] == RARE_AT):
        n, d = results.shapes[cell[0]]
        mine, (peer, whose) = results.mean(cell, OURS, "recall_01"), results.best_peer(cell, "recall_01", most=True)
        what = f"recall of types of 0.1 % by {RARE_AT:,} of {n:,} × {d}"
        if not np.isnan(mine):
            rows = f"{mine:.0%}; best peer {peer:.0%} ({whose})"
            met = mine >= 0.95 and not mine < peer
            found.append(_line(what, rows, "≥ 95%, not below the best peer", met))
    return found or [_nothing(f"recall of types of 0.1 % by {RARE_AT:,} rows", "≥ 95%, not below the best peer")]


def _cover(results: Results) -> list[list[str]]:
    found = []
    for column, name in (("hausdorff_max", "Hausdorff distance"), ("hausdorff", "partial Hausdorff distance")):
        ratios = {cell: results.mean(cell, OURS, column) / results.mean(cell, EXACT, column) for cell in results.cells}
        ratios = {cell: ratio for cell, ratio in ratios.items() if not np.isnan(ratio)}
        what = f"{name} relative to farthest-first, largest"
        if not ratios:
            found.append(_nothing(what, "≤ 1.5"))
            continue
        (at, size), most = max(ratios.items(), key=lambda item: item[1])
        words = f"{most:.3g} ({at}, {size:,}); median {np.median(list(ratios.values())):.3g}"
        found.append(_line(what, words, "≤ 1.5", most <= 1.5))
    return found


def _clusters(results: Results) -> list[list[str]]:
    """Agreement of clusters of the unweighted sketch with those of all rows, compared with that of random rows."""
    found = []
    for name, column in AGREEMENT.items():
        cells = [cell for cell in results.shared(column) if not np.isnan(results.mean(cell, RANDOM, column))]
        what = f"{name} agreement with all rows"
        if not cells:
            found.append(_nothing(f"{what}, above random rows", "≥ 80%"))
            continue
        gains = np.array([results.mean(cell, OURS, column) - results.mean(cell, RANDOM, column) for cell in cells])
        noise = np.array([np.hypot(*(results.error_of_mean(cell, method, column) for method in (OURS, RANDOM))) for cell in cells])
        above, within = float(np.mean(gains > 0)), float(np.mean(gains >= -np.maximum(noise, MIN_DIFFERENCE)))
        goal = "≥ 80%" if name == "k-means" else ""
        found += [
            _line(f"{what}, above random rows, of {len(cells)} cells", f"{above:.0%}", goal, above >= 0.8 if goal else None),
            _line("the same, not below by more than a standard error", f"{within:.0%}", "≥ 90%", within >= 0.9),
            _line("the same, mean difference", f"{gains.mean():+.3f}", "", None),
        ]
    return found


def _large(results: Results) -> list[list[str]]:
    n, d = results.shapes.get(LARGE[0], LARGE_SHAPE)
    what = f"{n:,} × {d} to {LARGE[1]:,}"
    times = results.values(LARGE, OURS, "seconds")
    if not len(times):
        return [_nothing(what, "≤ 8; ≥ 5; ≤ 1.5")]
    seconds, bytes_ = float(np.median(times)), 4 * n * d
    found = [_line(f"{what}, seconds", f"{seconds:.3g}", "≤ 8", seconds <= 8)]
    theirs, status = results.values(LARGE, "geosketch", "seconds"), results.status(LARGE, "geosketch")
    if len(theirs):
        ratio = float(np.median(theirs)) / seconds
        found.append(_line(f"{what}, geosketch's time / ours", f"{ratio:.3g}", "≥ 5", ratio >= 5))
    elif status.startswith("over ") and status.endswith(" s"):  # the ratio is at least that of the limit
        ratio = float(status.split()[1]) / seconds
        found.append(_line(f"{what}, geosketch's time / ours", f"> {ratio:.3g}", "≥ 5", ratio >= 5 or None))
    peak = float(results.values(LARGE, OURS, "peak").max()) / bytes_
    traced = results.values(LARGE, OURS, "traced")
    words = f"{peak:.3g}" + (f" (allocated by NumPy: {traced.max() / bytes_:.3g})" if len(traced) else "")
    return [*found, _line(f"{what}, additional memory / rows", words, "≤ 1.5", peak <= 1.5)]


def losses(results: Results) -> str:
    """Cells in which a peer has a smaller error of proportions, or clusters of random rows agree better with those of all rows."""
    rows = []
    for cell in results.cells:
        mine, (peer, whose) = results.mean(cell, OURS, "mae_plain"), results.best_peer(cell, "mae_plain")
        if mine > peer:
            rows.append([cell[0], f"{cell[1]:,}", "error of proportions", f"{mine:.3g}", f"{peer:.3g}", whose])
        for name, column in AGREEMENT.items():
            mine, theirs = results.mean(cell, OURS, column), results.mean(cell, RANDOM, column)
            if mine < theirs:
                rows.append([cell[0], f"{cell[1]:,}", f"agreement, {name}", f"{mine:.3f}", f"{theirs:.3f}", RANDOM])
    if not rows:
        return "None, by these measures." if results.shared("mae_plain") else "Not measured yet."
    return table(["data", "size", "measure", "ours", "the other", "method"], rows)


def _methods(results: Results, name: str) -> str:
    head = ["size", "method", "error of proportions, plain", "weighted", "partial Hausdorff", "largest"]
    head += ["Rand, k-means, plain", "weighted", "with k-means of all rows, plain", "weighted", "Leiden"]
    head += ["relative MMD, median distance", "its eighth", "KL of marginals"]
    planted = name.startswith("rare")
    head += ["recall of 1 %", "0.5 %", "0.1 %"] if planted else []
    head += ["seconds", "MB"]
    rows = []
    for cell in (cell for cell in results.cells if cell[0] == name):
        for method in results.methods:
            rows.append([f"{cell[1]:,}", method, *_measures(results, cell, method, planted)])
    return table(head, rows)


def _all_rows(results: Results, name: str) -> str:
    """The Rand index of k-means on all rows, for comparison."""
    found = [v for cell in results.cells if cell[0] == name for m in results.methods for v in results.values(cell, m, "ari_all")]
    return f"\n\nk-means on all rows has a Rand index of {found[-1]:.3f}." if found else ""


def _measures(results: Results, cell: Cell, method: str, planted: bool) -> Sequence[str]:
    if not len(results.values(cell, method, "seconds")):
        return [results.status(cell, method) or "not measured", *[""] * (13 + 3 * planted)]
    kind = "weighted" if method == OURS else "plain"
    columns = {"mae_plain": ".2e", "mae_weighted": ".2e", "hausdorff": ".3g", "hausdorff_max": ".3g"}
    columns |= {
        "ari_kmeans_plain": ".3f",
        "ari_kmeans_weighted": ".3f",
        "ari_same_plain": ".3f",
        "ari_same_weighted": ".3f",
        "ari_leiden": ".3f",
    }
    columns |= {f"mmd1_{kind}": ".3g", f"mmd8_{kind}": ".3g", f"kl_{kind}": ".2e"}
    columns |= {"recall_1": ".0%", "recall_05": ".0%", "recall_01": ".0%"} if planted else {}
    found = [(results.mean(cell, method, column), style) for column, style in columns.items()]
    words = ["" if np.isnan(value) else f"{value:{style}}" for value, style in found]
    return [*words, f"{results.mean(cell, method, 'seconds'):.3g}", f"{results.mean(cell, method, 'peak') / 1e6:.0f}"]
