"""Run the GaussianMixtureReducer of Stone Soup on the mixtures of an .npz file: `stonesoup_worker.py given.npz found.npz SIZE`.

It merges components within a Mahalanobis threshold of the heaviest one, and has no option for their number. So bisection finds the
threshold that leaves the requested number, for each mixture, and only the last call is timed. If there is none, the closest one
that leaves more is used, and the reducer drops the lightest components.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import version

import numpy as np
from stonesoup.mixturereducer.gaussianmixture import GaussianMixtureReducer
from stonesoup.types.state import WeightedGaussianState

BISECTIONS = 25


def states(weights, means, covariances):
    """New objects for each call, because the reducer changes weights in place."""
    return [
        WeightedGaussianState(mean[:, None], covar, weight=float(weight))
        for weight, mean, covar in zip(weights, means, covariances, strict=True)
    ]


def reducer(threshold: float, size: int) -> GaussianMixtureReducer:
    return GaussianMixtureReducer(merge_threshold=threshold, pruning=False, max_number_components=size)


def threshold_for(mixture, size: int, guess: float) -> tuple[float, int]:
    """A threshold that leaves ``size`` components, or as few more as possible, and the number that it leaves."""
    left: dict[float, int] = {}

    def count(threshold: float) -> int:
        left[threshold] = len(reducer(threshold, len(mixture[0])).reduce(states(*mixture)))
        return left[threshold]

    low = high = guess
    while count(low) < size:
        low /= 1.3
    while count(high) > size:
        high *= 1.3
    for _ in range(BISECTIONS):
        if size in left.values():
            break
        middle = np.sqrt(low * high)
        low, high = (middle, high) if count(middle) > size else (low, middle)
    best = min(left, key=lambda threshold: (left[threshold] < size, left[threshold]))
    return best, left[best]


def main(source: str, target: str, size: int) -> None:
    with np.load(source) as file:
        mixtures = list(zip(file["weights"], file["means"], file["covariances"], strict=True))
    reducer(1.0, size).reduce(states(*mixtures[0]))
    guess, found, seconds, left = 4.0, [], [], []
    for mixture in mixtures:
        guess, count = threshold_for(mixture, size, guess)
        left.append(count)
        given = states(*mixture)
        begun = time.perf_counter()
        few = reducer(guess, size).reduce(given)
        seconds.append(time.perf_counter() - begun)
        found.append(few)
    np.savez(
        target,
        weights=[[float(state.weight) for state in few] for few in found],
        means=[[np.ravel(state.mean) for state in few] for few in found],
        covariances=[[state.covar for state in few] for few in found],
        seconds=seconds,
        left=left,
        version=version("stonesoup"),
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
