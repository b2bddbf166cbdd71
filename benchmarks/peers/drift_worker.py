"""Run goodpoints' ctt, or alibi-detect's MMDDrift or MMDDriftOnline, in the environment of the drift peers.

`drift_worker.py given.npz found.npz METHOD OPTIONS`, the options as JSON; see `drift_peers.py`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np


def peak() -> float:
    """The peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ctt(X: np.ndarray, Y: np.ndarray, widths: np.ndarray, bins: int, oversampling: int, permutations: int) -> dict[str, Any]:
    """p-values of Compress Then Test for each pair and each of its widths (Gaussians exp(−d² / 2 width²))."""
    from goodpoints.ctt import ctt as test

    p = np.empty(widths.shape)
    for r in range(len(X)):
        for k, width in enumerate(widths[r]):
            found = test(
                np.float64(X[r]),
                np.float64(Y[r]),
                oversampling,
                B=permutations,
                s=bins,
                lam=np.sqrt(2) * width,
                null_seed=r,
                statistic_seed=r,
            )
            p[r, k] = np.mean(found.estimator_values >= found.statistic_values)
    return {"p": p, "version": version("goodpoints")}


def mmd_drift(n: int, columns: int, permutations: int, repeats: int, memory: float) -> dict[str, Any]:
    """Seconds to prepare and to test, and peak memory, for two samples of n rows. Raises if it needs more than ``memory`` GB."""
    from alibi_detect.cd import MMDDrift

    resource.setrlimit(resource.RLIMIT_AS, (int(memory * 2**30),) * 2)
    X, Y = np.random.default_rng(0).normal(size=(2, n, columns)).astype(np.float32)
    MMDDrift(X[:20], backend="pytorch", n_permutations=1, device="cpu").predict(Y[:20])  # late imports are not counted
    idle = peak()
    begun = time.perf_counter()
    detector = MMDDrift(X, backend="pytorch", n_permutations=permutations, device="cpu")
    prepared = time.perf_counter() - begun
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        detector.predict(Y)
        seconds.append(time.perf_counter() - begun)
    return {
        "prepare": prepared,
        "test": float(np.median(seconds)),
        "idle": idle,
        "peak": peak(),
        "permutations": permutations,
        "version": version("alibi-detect"),
    }


def mmd_online(reference: np.ndarray, ert: float, window: int, bootstraps: int, seed: int, **streams: np.ndarray) -> dict[str, Any]:
    """For each kind of stream, the row of each alarm, counted from 1, or −1; and seconds to prepare and per row."""
    import torch
    from alibi_detect.cd import MMDDriftOnline

    torch.manual_seed(seed)
    begun = time.perf_counter()
    detector = MMDDriftOnline(
        reference.astype(np.float32), ert=ert, window_size=window, backend="pytorch", n_bootstraps=bootstraps, device="cpu",
        verbose=False,
    )  # fmt: skip
    found: dict[str, Any] = {"prepare": time.perf_counter() - begun, "version": version("alibi-detect")}
    rows, begun = 0, time.perf_counter()
    for change, several in streams.items():
        found[change] = np.full(len(several), -1)
        for k, stream in enumerate(several):
            detector.reset_state()
            for t, row in enumerate(stream):
                rows += 1
                if detector.predict(row, return_test_stat=False)["data"]["is_drift"]:
                    found[change][k] = t + 1
                    break
    return found | {"row": (time.perf_counter() - begun) / rows}


METHODS = {"ctt": ctt, "mmd_drift": mmd_drift, "mmd_online": mmd_online}


def main(source: str, target: str, method: str, options: str) -> None:
    warnings.simplefilter("ignore")
    with np.load(source) as file:
        arrays = {key: file[key] for key in file.files}
    np.savez(target, **METHODS[method](**arrays, **json.loads(options)))


if __name__ == "__main__":
    main(*sys.argv[1:])
