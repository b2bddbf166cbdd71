"""Runs in the environment of Stone Soup: its GaussianMixtureReducer on the mixtures of an .npz file.

It merges what lies within a Mahalanobis threshold of the heaviest component, and knows no number of components to aim at. So the
threshold that leaves as many as asked for is looked for by bisection, for each mixture anew, and only the last call is timed. Where
none leaves just as many, the closest that leaves more is taken, and the reducer drops the lightest.
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
    """Anew for each call: the reducer changes weights in place."""
    return [
        WeightedGaussianState(mean[:, None], covar, weight=float(weight))
        for weight, mean, covar in zip(weights, means, covariances, strict=True)
    ]


def reducer(threshold: float, size: int) -> GaussianMixtureReducer:
    return GaussianMixtureReducer(merge_threshold=threshold, pruning=False, max_number_components=size)


def threshold_for(mixture, size: int, guess: float) -> tuple[float, int]:
    """A threshold that leaves ``size`` components, or else as few more as was seen; and how many it leaves."""
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
