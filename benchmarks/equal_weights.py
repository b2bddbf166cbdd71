"""Rows with equal weights: thinning with swaps among all rows, against thinning of goodpoints and coreax, error beside time."""

from __future__ import annotations

import numpy as np

import peer_data
from harness import table
from peers import evaluator
from reduset import Gaussian, KernelMean, bandwidth
from reduset.select import Thinning
from remote import Worker, pins
from selector_speed import LIMIT, Contestant, in_turns, ours

TITLE = "Equal weights, against kernel thinning of peers"

SETS = ("raetsch_banana", "raetsch_ringnorm", "raetsch_waveform", "pendigits", "usps", "svmguide1", "cyto_itn15", "big_flights")
CASES = ((1024, 32), (4096, 64), (4096, 256))  # rows, atoms: what halving ends at
SHARES = (1.0, 0.25)  # of the median distance
OURS = {"Thinning()": Thinning(), "Thinning(swaps=True)": Thinning(swaps=True)}
PEERS = ("goodpoints-thin", "coreax-thinning")


def measured(mean: KernelMean, size: int, worker: Worker) -> tuple[dict[str, float], dict[str, float]]:
    """Relative errors and seconds of each, whose runs take turns."""

    def ask(peer: str) -> Contestant:
        def run() -> tuple[np.ndarray, float]:
            atoms, _, took = worker.run(peer, size, mean.kernel.width, LIMIT)
            return atoms, took

        return run

    contestants: dict[str, Contestant] = {name: lambda each=each: ours(each, mean, size) for name, each in OURS.items()}
    contestants |= {peer: ask(peer) for peer in PEERS}
    atoms, times, _ = in_turns(contestants)
    relative = evaluator(mean)
    return {who: float(np.sqrt(relative(atoms[who], np.full(size, 1 / size), size))) for who in times}, times


def run() -> str:
    rows, lower, quicker, ratios = [], 0, 0, []
    worker = Worker.peers()
    try:
        for name in SETS:
            cloud = peer_data.load(name)
            for n, size in CASES:
                if len(cloud) < n:
                    continue
                X = cloud[np.random.default_rng(0).choice(len(cloud), n, replace=False)]
                worker.load(X)
                for share in SHARES:
                    mean = KernelMean.from_samples(X, Gaussian(share * float(bandwidth.median(X))))
                    errors, times = measured(mean, size, worker)
                    mine, theirs = "Thinning(swaps=True)", "goodpoints-thin"
                    lower += errors[mine] < min(errors[peer] for peer in PEERS if peer in errors)
                    quicker += times[mine] <= times[theirs]
                    ratios.append((errors[mine] / errors[theirs], times[mine] / times[theirs]))
                    shown = (
                        f"{errors[who]:.4f}, {1e3 * times[who]:.0f} ms" if who in errors else "failed" for who in (*OURS, *PEERS)
                    )
                    rows.append([f"{name}, {n:,}×{X.shape[1]} to {size}", f"{share:g}", *shown])
    finally:
        worker.stop()
    error, time = np.median(ratios, axis=0)
    return (
        table(["rows", "of the median distance", *OURS, *PEERS], rows)
        + "\n\nRelative error of equal weights, and the time. With swaps ours is lower than both peers in "
        f"{lower} of {len(rows)} cases, at {error:.2f} of goodpoints' error in {time:.2f} of its time (medians), and quicker in "
        f"{quicker}. Goodpoints computes the kernel matrix and thins by it (`thin_K`, each row once at most); coreax is compiled "
        "before. Peers: " + ", ".join(f"{package} {version}" for package, version in pins().items()) + "."
    )
