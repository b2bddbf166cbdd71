"""Tables 1 and 2 of Kingravi, Vela & Gray 2013: the data, and how training time and storage grow with rows n and atoms m.

Table 2 gives O(mn + m³) time to all methods, and O(mr) storage to shadows against O(nr) to the Nyström methods. Measured are the
exponents of the processor seconds to fit, and the numbers that a fitted model stores to transform. Goal: exponents of at most 1 in
n and 3 in m, and storage of shadows that hardly grows with n.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks._lib import table, verdict
from benchmarks.applications.spectral_data import large
from benchmarks.papers import _kingravi2013 as paper
from benchmarks.papers._kingravi2013 import NYSTROEM, SHADOW, WEIGHTED

TITLE = "Reduced kernel PCA (2013): data, training cost and storage, Tables 1 and 2"
TIMED = True
SOURCES = (*paper.SOURCES, "spectral/nystroem.py", "_engine/shadows.py", "_engine/sums.py")
METHODS = SHADOW, NYSTROEM, WEIGHTED
RANK, SIGMA = 5, 120.0
ROWS, ELL = (12_500, 25_000, 50_000, 100_000), 2.0
ELLS, FEWER_ROWS = (2.0, 2.5, 3.0, 3.5, 4.0), 20_000
REPEATS = 3


def measure(quick: bool = False) -> dict:
    warnings.simplefilter("ignore", UserWarning)
    paper.compile_all()
    (X, _), by = large(), paper.gauge(SIGMA)
    rows, ells, fewer = ((1000, 2000), (2.0, 3.0), 2000) if quick else (ROWS, ELLS, FEWER_ROWS)
    return {
        "rank": RANK,
        "by_rows": [case(X[:n], ELL, by.shadows(X[: rows[-1]], ELL)) for n in rows],
        "by_atoms": [case(X[:fewer], ell, by.shadows(X[:fewer], ell)) for ell in ells],
        "table_1": {name: list(paper.rows_of(name)[0].shape) for name in paper.TABLE_1} if not quick else {},
    }


def case(X: np.ndarray, ell: float, m: int) -> dict:
    """Least processor seconds to fit, and stored numbers, of the shadows of this ℓ and of the Nyström methods with m atoms."""
    by = paper.gauge(SIGMA)
    out: dict[str, Any] = {"rows": len(X), "shadows": by.shadows(X, ell), "atoms": m, "seconds": {}, "stored": {}}
    for method in METHODS:
        spent = []
        for seed in range(REPEATS):
            model = paper.methods(RANK, by, ell, m, seed)[method]
            begun = time.process_time()
            model.fit(X)
            spent.append(time.process_time() - begun)
        out["seconds"][method] = min(spent)
        points, coefficients = model._reduced.atoms, model._functions.coefficients
        out["stored"][method] = {"points": points.size, "coefficients": coefficients.size}
    return out


# -- details ---------------------------------------------------------------------------------------------------------


def exponent(sizes: list[float], seconds: list[float]) -> float:
    """The slope of log seconds over log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def exponents(figures: dict) -> dict[str, tuple[float, float]]:
    """Of the seconds to fit in n and in m, for each method."""
    sides = ((figures["by_rows"], "rows"), (figures["by_atoms"], "atoms"))
    return {
        method: tuple(exponent([case[key] for case in cases], [case["seconds"][method] for case in cases]) for cases, key in sides)
        for method in METHODS
    }


def stored_growth(figures: dict, method: str) -> float:
    """The coefficients stored for the most rows over those for the fewest."""
    last, first = (figures["by_rows"][at]["stored"][method]["coefficients"] for at in (-1, 0))
    return last / first


def summary(figures: dict) -> list[list[str]]:
    found = exponents(figures)
    in_n, in_m = (", ".join(f"{each[at]:.2f}" for each in found.values()) for at in (0, 1))
    growth = [f"{stored_growth(figures, method):.1f}×" for method in (SHADOW, NYSTROEM)]
    rows = figures["by_rows"][-1]["rows"] / figures["by_rows"][0]["rows"]
    return [
        [f"exponent in n: {', '.join(METHODS)}", in_n, "≤ 1", verdict(1.0, max(each[0] for each in found.values()))],
        ["exponent in m", in_m, "≤ 3", verdict(3.0, max(each[1] for each in found.values()))],
        [f"growth of storage for {rows:g} times the rows: {SHADOW}, {NYSTROEM}", ", ".join(growth), "", ""],
    ]


def details(figures: dict) -> str:
    by_rows, by_atoms, rank = figures["by_rows"], figures["by_atoms"], figures["rank"]
    first, last = by_rows[0], by_rows[-1]
    rows = []
    for method, (in_n, in_m) in exponents(figures).items():
        stored = last["stored"][method]
        rows.append(
            (
                method,
                f"{in_n:.2f}",
                f"{in_m:.2f}",
                "O(mn + m³)",
                f"{stored['coefficients']:,}",
                f"{stored_growth(figures, method):.1f}×",
                f"O({'m' if method == SHADOW else 'n'}r)",
                f"{stored['points']:,}",
            )
        )
    head = (
        "method",
        "exponent in n",
        "exponent in m",
        "paper, time",
        "coefficients stored",
        "growth with n",
        "paper, space",
        "points stored",
    )
    seconds = [
        (
            f"{each['rows']:,}",
            f"{each['shadows']:,}",
            f"{each['atoms']:,}",
            *(f"{each['seconds'][method]:.2f}" for method in METHODS),
        )
        for each in (*by_rows, *by_atoms)
    ]
    return "\n\n".join(
        [
            data_table(figures["table_1"]),
            f"Table 2: rows of pendigits with noise (16 columns), rank r = {rank}, kernel exp(−r²/σ²) with σ = {SIGMA:g}. The "
            f"exponent in n is from {first['rows']:,} to {last['rows']:,} rows at ℓ = {ELL:g}, with {first['shadows']:,} to "
            f"{last['shadows']:,} shadows and {last['atoms']:,} Nyström atoms. The exponent in m is from {by_atoms[0]['atoms']:,} "
            f"to {by_atoms[-1]['atoms']:,} atoms at {by_atoms[0]['rows']:,} rows. Stored numbers are those at {last['rows']:,} "
            f"rows, and their growth is that for {last['rows'] / first['rows']:g} times the rows.\n\n" + table(head, rows),
            CAUSES,
            "Seconds to fit:\n\n" + table(("rows", "shadows", "Nyström atoms", *METHODS), seconds),
        ]
    )


CAUSES = (
    "The exponents in m are below 3, because from 500 atoms on an iterative solver finds the five components at O(m²) each, and "
    "the selection skips pairs that are far apart. The number of shadows grows a little with n, which adds to their exponent and "
    "storage. The paper counts coefficients only. Each method also stores the points with which it evaluates the kernel: the m "
    "atoms for shadows, all n rows for the Nyström methods."
)


def data_table(shapes: dict[str, list[int]]) -> str:
    if not shapes:
        return "Table 1 is checked in a full run."
    rows = []
    for name, shape in shapes.items():
        setting = paper.TABLE_1[name]
        rows.append(
            (
                name,
                f"{setting.rows:,}",
                "×".join(f"{each:,}" for each in shape),
                setting.components,
                f"{setting.sigma:g}",
                ORIGIN[name],
            )
        )
    head = ("data", "rows in the paper", "rows × columns here", "k", "σ", "source here")
    return "Table 1, the data:\n\n" + table(head, rows)


ORIGIN = {
    "german": "LIBSVM german.numer, all rows",
    "pendigits": "3,500 random rows of training and test set",
    "usps": "training and test set, pixels in [0, 1]; the paper's scale is not stated",
    "yale": "110 photographs of ten people, moved and lit at random to 5,768 rows; the paper's photographs are not available",
}
