"""Which rows with equal weights have the lowest error, and in what time?

`Thinning(swaps=True)`, which exchanges atoms among all rows, against kernel thinning of goodpoints and coreax. Goals: a lower error
than both peers in every case, and not more time than goodpoints (medians over all cases).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks._lib import pins, table, verdict
from benchmarks._lib.remote import Worker, omitted, peers_worker
from benchmarks.peers import peer_data
from benchmarks.peers.peers import evaluator
from benchmarks.peers.selector_speed import Contestant, by_peer, by_us, in_turns
from reduset import Gaussian, KernelMean, bandwidth
from reduset.select import Thinning

TITLE = "Equal weights, against kernel thinning of peers"
SOURCES = ("select/thinning.py", "_engine/balance.py", "_engine/exchanging.py")

SETS = ("raetsch_banana", "raetsch_ringnorm", "raetsch_waveform", "pendigits", "usps", "svmguide1", "cyto_itn15", "big_flights")
CASES = ((1024, 32), (4096, 64), (4096, 256))  # rows and atoms; goodpoints halves the rows until as many are left
SCALES = (1.0, 0.25)  # bandwidths relative to the median distance
SWAPPED, PLAIN = "Thinning(swaps=True)", "Thinning()"
OURS = {PLAIN: Thinning(), SWAPPED: Thinning(swaps=True)}
GOODPOINTS, COREAX = PEERS = ("goodpoints-thin", "coreax-thinning")

Result = tuple[dict[str, float], dict[str, float]]  # error and seconds of each method


def measure(quick: bool) -> dict[str, Any]:
    found: dict[tuple[str, str], Result] = {}
    with peers_worker(quick) as worker:
        for name in SETS[:1] if quick else SETS:
            rows = peer_data.load(name)
            for n, size in ((n, size) for n, size in (CASES[:1] if quick else CASES) if n <= len(rows)):
                X = rows[np.random.default_rng(0).choice(len(rows), n, replace=False)]
                if worker is not None:
                    worker.load(X)
                for scale in SCALES:
                    mean = KernelMean.from_samples(X, Gaussian(scale * float(bandwidth.median(X))))
                    found[f"{name}, {n:,}×{X.shape[1]} to {size}", f"{scale:g}"] = compared(mean, size, worker)
    return {"summary": rows_of(list(found.values())), "details": text_of(found) + omitted("peers") * quick}


def compared(mean: KernelMean, size: int, worker: Worker | None) -> Result:
    contestants: dict[str, Contestant] = {name: partial(by_us, selector, mean, size) for name, selector in OURS.items()}
    contestants |= {peer: partial(by_peer, worker, peer, mean, size) for peer in PEERS if worker is not None}
    atoms, times, _ = in_turns(contestants)
    relative = evaluator(mean)
    return {who: float(np.sqrt(relative(atoms[who], np.full(size, 1 / size), size))) for who in times}, times


def rows_of(found: list[Result]) -> list[list[str]]:
    errors = [errors for errors, _ in found]
    rows = [["error relative to thinning without swaps, median", f"{_ratio(found, 0, PLAIN):.2f}", "", ""]]
    if GOODPOINTS not in errors[0]:
        return rows
    lower = sum(each[SWAPPED] < min(value for who, value in each.items() if who in PEERS) for each in errors)
    time = _ratio(found, 1, GOODPOINTS)
    return [
        ["error lower than goodpoints and coreax, of all cases", f"{lower} of {len(found)}", "all", verdict(lower, len(found))],
        ["time relative to goodpoints, median", f"{time:.2f}", "≤ 1", verdict(-time, -1)],
        ["error relative to goodpoints, median", f"{_ratio(found, 0, GOODPOINTS):.2f}", "", ""],
        *rows,
    ]


def _ratio(found: list[Result], which: int, other: str) -> float:
    """The median of our error (0) or time (1) relative to another's."""
    return float(np.median([result[which][SWAPPED] / result[which][other] for result in found]))


def text_of(found: dict[tuple[str, str], Result]) -> str:
    methods = [who for who in (*OURS, *PEERS) if any(who in errors for errors, _ in found.values())]
    rows = [
        [*case, *(f"{errors[who]:.4f}, {1e3 * times[who]:.0f} ms" if who in errors else "failed" for who in methods)]
        for case, (errors, times) in found.items()
    ]
    versions = ", ".join(f"{package} {version}" for package, version in pins("peers").items())
    return (
        "Relative error of atoms with equal weights, and the time of their selection. Goodpoints computes the kernel matrix and "
        "thins by it (`thin_K`, each row at most once). coreax is compiled before it is timed.\n\n"
        + table(["rows to atoms", "bandwidth / median distance", *methods], rows)
        + f"\n\nVersions of the peers: {versions}."
    )
