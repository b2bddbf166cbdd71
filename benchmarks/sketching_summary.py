"""What `sketching.csv` says, in words and tables: the goals and whether they are met, then every method on every data set.

A cell is a data set and a size; seeds are averaged. Ours is `reduset`; its proportions are by its own weights, and those of peers
as they are used, plain, unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import sketching_picture
from harness import table
from sketching_metrics import COLUMNS
from sketching_remote import pins

OURS, EXACT = "reduset", "hopper"
NOISE = 0.005  # of an adjusted Rand index; less than this is no difference
RAND = {
    "k-means": ("ari_kmeans_weighted", "ari_kmeans_plain"),
    "k-means, against k-means of all rows": ("ari_same_weighted", "ari_same_plain"),
    "Leiden": ("ari_leiden", "ari_leiden"),
}  # ours, and peers'
LARGE = ("simulated", 5_000)
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
        """Of the seeds that have one."""
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
        """Why there is nothing."""
        statuses = [row["status"] for row in self._rows.get(cell, {}).get(method, []) if row["status"] != "ok"]
        return next((status.split(":")[0] for status in statuses), "")

    def best_peer(self, cell: Cell, column: str, most: bool = False) -> tuple[float, str]:
        """The lowest mean of a peer in the cell (the highest with ``most``), and whose it is."""
        found = [(self.mean(cell, method, column), method) for method in self.peers]
        found = [pair for pair in found if not np.isnan(pair[0])]
        return (max(found) if most else min(found)) if found else (np.nan, "")

    def shared(self, column: str) -> list[Cell]:
        """Cells in which ours and a peer have a value."""
        fine = (c for c in self.cells if not np.isnan(self.mean(c, OURS, column)))
        return [cell for cell in fine if self.best_peer(cell, column)[1]]


def text(rows: list[dict[str, str]], recorded_on: str, picture: Path) -> str:
    """The section of RESULTS.md; the picture is drawn on the way."""
    results = Results(rows)
    sketching_picture.draw(results, picture)
    versions = ", ".join(f"{name} {version}" for name, version in pins().items())
    parts = [HOW.format(versions=versions, machine=recorded_on), f"![measures against size]({picture.name})"]
    parts += ["### Goals", goals(results), "### Where ours is not best", losses(results)]
    for name, (n, d) in results.shapes.items():
        parts += [f"### {name}: {n:,} × {d}", _methods(results, name) + _all_rows(results, name)]
    return "\n\n".join(parts)


HOW = """\
Every method is given the same rows (cytometry standardised, principal components as they are) and asked for as many of them; each
runs in a fresh process. What the data, the methods and the measures are is at the top of `sketching_data.py`,
`sketching_methods.py` and `sketching_metrics.py`. 'Plain' proportions count the rows of a sketch, as it is used without weights;
'weighted' ones take our own weights, and for peers, which have none, as many as there are rows nearest to each: what weights do is
seen apart from what the choice of rows does. MMD and KL are weighted for ours and plain for peers in the tables, and both ways in
the file. Labels of cytometry are clusters of all rows. Memory is resident memory above that of the rows.

Peers: {versions}. Measurement on: {machine}."""


def goals(results: Results) -> str:
    rows = [*_proportions(results), *_rare(results), *_cover(results), *_clusters(results), *_large(results)]
    return table(["what", "found", "goal", "met"], rows)


def _line(what: str, found: str, goal: str, met: bool | None) -> list[str]:
    return [what, found, goal, "" if met is None else "yes" if met else "NO"]


def _nothing(what: str, goal: str) -> list[str]:
    return _line(what, "not measured yet", goal, None)


def _proportions(results: Results) -> list[list[str]]:
    cells = results.shared("mae_weighted")
    if not cells:
        return [_nothing("error of proportions, ours over the best peer's", "≤ 0.2")]
    mine = np.array([results.mean(cell, OURS, "mae_weighted") for cell in cells])
    plain = np.array([results.best_peer(cell, "mae_plain")[0] for cell in cells])
    weighed = np.array([results.best_peer(cell, "mae_weighted")[0] for cell in cells])
    own = np.array([results.mean(cell, OURS, "mae_plain") for cell in cells])
    ratio, lowest, of = float(np.median(mine / plain)), float(np.mean(mine <= plain)), f"{len(cells)} cells"
    least = "lowest error of proportions of all"
    counts = "; peers weighed by counts of nearest rows"
    return [
        _line(f"error of proportions, ours over the best peer's, median of {of}", f"{ratio:.3g}", "≤ 0.2", ratio <= 0.2),
        _line(f"{least}, share of {of}", f"{lowest:.0%}", "≥ 90 %", lowest >= 0.9),
        _line(f"the ratio{counts}", f"{np.median(mine / weighed):.3g}", "", None),
        _line(f"{least}{counts}", f"{np.mean(mine <= weighed):.0%}", "", None),
        _line("the ratio; ours without its weights too", f"{np.median(own / plain):.3g}", "", None),
    ]


def _rare(results: Results) -> list[list[str]]:
    found = []
    for cell in (c for c in results.cells if c[0].startswith("rare") and c[1] == RARE_AT):
        n, d = results.shapes[cell[0]]
        mine, (peer, whose) = results.mean(cell, OURS, "recall_01"), results.best_peer(cell, "recall_01", most=True)
        what = f"types of 0.1 % in {RARE_AT:,} of {n:,} × {d}, recall"
        if not np.isnan(mine):
            rows = f"{mine:.0%}; best peer {peer:.0%} ({whose})"
            met = mine >= 0.95 and not mine < peer
            found.append(_line(what, rows, "≥ 95 %, not below the best peer", met))
    return found or [_nothing(f"types of 0.1 % in {RARE_AT:,} rows, recall", "≥ 95 %, not below the best peer")]


def _cover(results: Results) -> list[list[str]]:
    found = []
    for column, name in (("hausdorff_max", "largest distance to the sketch"), ("hausdorff", "partial Hausdorff distance")):
        ratios = {cell: results.mean(cell, OURS, column) / results.mean(cell, EXACT, column) for cell in results.cells}
        ratios = {cell: ratio for cell, ratio in ratios.items() if not np.isnan(ratio)}
        what = f"{name} over that of exact farthest-first, highest of the cells"
        if not ratios:
            found.append(_nothing(what, "≤ 1.3"))
            continue
        (at, size), most = max(ratios.items(), key=lambda item: item[1])
        words = f"{most:.3g} ({at}, {size:,}); median {np.median(list(ratios.values())):.3g}"
        found.append(_line(what, words, "≤ 1.3", most <= 1.3))
    return found


def _below(results: Results, cell: Cell, mine: str, theirs: str, noise: bool) -> bool:
    """Whether a peer's Rand index (column ``theirs``) is above ours (``mine``); with ``noise``, by more than seeds explain."""
    own, spread = results.mean(cell, OURS, mine), results.error_of_mean(cell, OURS, mine)
    for method in results.peers:
        allowed = max(NOISE, float(np.hypot(spread, results.error_of_mean(cell, method, theirs)))) if noise else 0.0
        if results.mean(cell, method, theirs) - own > allowed:
            return True
    return False


def _clusters(results: Results) -> list[list[str]]:
    found = []
    for name, (mine, theirs) in RAND.items():
        cells = results.shared(theirs)
        what = f"adjusted Rand index by {name} not below any peer's"
        if not cells:
            found.append(_nothing(what, "≥ 80 %"))
            continue
        strictly, within = (
            float(np.mean([not _below(results, cell, mine, theirs, noise) for cell in cells])) for noise in (False, True)
        )
        found.append(_line(f"{what}, share of {len(cells)} cells", f"{strictly:.0%}", "≥ 80 %", strictly >= 0.8))
        found.append(_line(f"the same but for a standard error or {NOISE:g}", f"{within:.0%}", "≥ 80 %", within >= 0.8))
        if mine != theirs:
            for words, one in (("ours without its weights too", theirs), ("peers weighed by counts of nearest rows too", mine)):
                share = np.mean([not _below(results, cell, one, one, True) for cell in cells])
                found.append(_line(f"the same; {words}", f"{share:.0%}", "", None))
    return found


def _large(results: Results) -> list[list[str]]:
    n, d = results.shapes.get(LARGE[0], (1_000_000, 50))
    what = f"{n:,} × {d} to {LARGE[1]:,}"
    times = results.values(LARGE, OURS, "seconds")
    if not len(times):
        return [_nothing(what, "≤ 10 s, 5 times as fast as geosketch, memory ≤ 1.5 of the rows")]
    seconds, bytes_ = float(np.median(times)), 4 * n * d
    found = [_line(f"{what}, seconds", f"{seconds:.3g}", "≤ 10", seconds <= 10)]
    theirs, status = results.values(LARGE, "geosketch", "seconds"), results.status(LARGE, "geosketch")
    if len(theirs):
        ratio = float(np.median(theirs)) / seconds
        found.append(_line(f"{what}, geosketch's time over ours", f"{ratio:.3g}", "≥ 5", ratio >= 5))
    elif status.startswith("over ") and status.endswith(" s"):  # all that is known is that it takes longer than the limit
        ratio = float(status.split()[1]) / seconds
        found.append(_line(f"{what}, geosketch's time over ours", f"> {ratio:.3g}", "≥ 5", ratio >= 5 or None))
    peak = float(results.values(LARGE, OURS, "peak").max()) / bytes_
    traced = results.values(LARGE, OURS, "traced")
    words = f"{peak:.3g}" + (f" (allocated by numpy: {traced.max() / bytes_:.3g})" if len(traced) else "")
    return [*found, _line(f"{what}, memory above the rows over that of the rows", words, "≤ 1.5", peak <= 1.5)]


def losses(results: Results) -> str:
    """Cells in which a peer is ahead, by what, and by how much."""
    rows = []
    for cell in results.cells:
        mine, (peer, whose) = results.mean(cell, OURS, "mae_weighted"), results.best_peer(cell, "mae_plain")
        if mine > peer:
            rows.append([cell[0], f"{cell[1]:,}", "error of proportions", f"{mine:.3g}", f"{peer:.3g}", whose])
        for name, (own, theirs) in RAND.items():
            peer, whose = results.best_peer(cell, theirs, most=True)
            if whose and _below(results, cell, own, theirs, noise=True):
                words = f"{results.mean(cell, OURS, own):.3f}"
                rows.append([cell[0], f"{cell[1]:,}", f"Rand index, {name}", words, f"{peer:.3f}", whose])
    if not rows:
        return "Nowhere, by these measures." if results.shared("mae_weighted") else "Not measured yet."
    return table(["data", "size", "measure", "ours", "best peer", "whose"], rows)


def _methods(results: Results, name: str) -> str:
    head = ["size", "method", "error of proportions, plain", "weighted", "partial Hausdorff", "largest"]
    head += ["Rand, k-means, plain", "weighted", "against k-means of all rows, plain", "weighted", "Leiden"]
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
    """What k-means makes of all rows, which the sketches' Rand index is to be read beside."""
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
