"""`compress` with any selector, with the protocol of `peer_worker`.

A method is `reduset-` and the name of a selector, such as `reduset-kcenter`; `reduset-auto+refine` also moves the atoms. The time
is that of the whole call of `compress`, certificate included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from peer_worker import Cloud, serve

from reduset import Gaussian, compress


def find(name: str) -> Callable[[Cloud, int, float], tuple[np.ndarray, np.ndarray]]:
    select, _, refine = name.removeprefix("reduset-").partition("+")
    options = {refine: True} if refine else {}

    def run(cloud: Cloud, size: int, h: float) -> tuple[np.ndarray, np.ndarray]:
        mean = compress(cloud.X, kernel=Gaussian(h), size=size, select=select, rng=0, **options).mean
        return np.asarray(mean.atoms, np.float64), np.asarray(mean.weights, np.float64)

    return run


if __name__ == "__main__":
    serve(find, ("numpy", "numba"))
