"""Leiden clusters of several sets of rows, in the environment of the sketching peers: `leiden_worker.py given.npz found.npz`.

``rows`` (n, d) are all rows. Every other entry has row numbers, and its clusters are returned under the same name.
"""

from __future__ import annotations

import sys

import numpy as np
import sketching_methods


def main(given: str, target: str) -> None:
    with np.load(given) as file:
        X, sets = file["rows"], {name: file[name] for name in file.files if name != "rows"}
    found = {name: sketching_methods.leiden(X[rows], len(rows), seed)["indices"] for seed, (name, rows) in enumerate(sets.items())}
    np.savez(target, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
