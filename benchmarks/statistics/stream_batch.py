"""The error of a stream compared with a batch of the same size, and of sixteen merged streams compared with one pass.

Ten data sets at two bandwidths, shuffled, sorted by a column, and sorted by clusters. Goals: the ratio of the errors to the batch
at most 1.5 in the median and 3 at worst; the ratio of merged streams to one pass at most 1.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans

from benchmarks._lib import data_folder, table, verdict
from reduset import Compression, Gaussian, KernelMean, compress
from reduset.certificate.by_frequencies import FrequencyProbe
from reduset.certificate.probe import Probe
from reduset.certificate.rule import ExactProbe, probe_for
from reduset.stream import StreamCompressor

TITLE = "Streams against batches"
SOURCES = ("stream", "certificate/rule.py", "weights/span.py")

RULES = ("median", "scott")
ORDERS = ("shuffled", "sorted", "clustered")
SMALL = 20_000  # rows
OPTIONS = {True: (100, 1024), False: (300, 16384)}  # below SMALL or not: size and buffer, which holds a part of the rows
CLUSTERS = 20
SHARDS = 16
MERGED = ("banana", "pendigits", "cytometry", "flights", "mixture")
ROUNDING = 1e-6  # relative, of an error that is exact
TINY = 1e-6  # errors below are close to rounding
QUICK_SETS, QUICK_ROWS = ("banana",), 3000
MEDIAN_RATIO, WORST_RATIO, MERGED_RATIO = 1.5, 3.0, 1.3


def stored(name: str) -> np.ndarray:
    """All rows of a stored data set, training and test together."""
    with np.load(data_folder() / f"{name}.npz", allow_pickle=False) as data:
        parts = [data[key] for key in ("X", "X_train", "X_test") if key in data.files]
    return np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts]).astype(np.float64)


def flights() -> np.ndarray:
    X = stored("big_flights")[:, :5]
    return X[np.random.default_rng(1).permutation(len(X))[:300_000]]


def mixture() -> np.ndarray:
    rng = np.random.default_rng(2)
    centres = rng.normal(0.0, 4.0, size=(20, 5))
    return centres[rng.integers(20, size=200_000)] + rng.normal(size=(200_000, 5))


def swiss_roll() -> np.ndarray:
    rng = np.random.default_rng(3)
    t = rng.uniform(1.5 * np.pi, 4.5 * np.pi, size=100_000)
    return np.stack([t * np.cos(t), t * np.sin(t), rng.uniform(0, 21, size=len(t))], axis=1)


SETS: dict[str, Callable[[], np.ndarray]] = {
    "banana": lambda: stored("raetsch_banana"),
    "svmguide1": lambda: stored("svmguide1"),
    "pendigits": lambda: stored("pendigits"),
    "usps": lambda: stored("usps"),
    "image": lambda: stored("raetsch_image"),
    "waveform": lambda: stored("raetsch_waveform"),
    "cytometry": lambda: stored("cyto_itn15"),
    "flights": flights,
    "mixture": mixture,
    "Swiss roll": swiss_roll,
}


@dataclass(frozen=True)
class Case:
    """A data set with one bandwidth, its batch compression, and a probe on all rows."""

    name: str
    rule: str
    X: np.ndarray
    kernel: Gaussian
    size: int
    buffer: int
    batch: Compression
    probe: Probe

    def measured(self, small: Compression) -> tuple[float, float]:
        """The ends of the interval of another compression's relative error, by the probe; they are one where it is exact."""
        full = KernelMean.from_samples(self.X, self.kernel)
        atoms, weights = np.asarray(small.mean.atoms), small.mean.weights
        found = self.probe.measure(atoms, weights, self.kernel.product_sums(full.atoms, full.weights, atoms))
        return tuple(np.sqrt([found.low, found.high]) / small.certificate.norm)

    def streamed(self, rows: np.ndarray) -> StreamCompressor:
        return StreamCompressor(self.kernel, self.size, 0, buffer=self.buffer).fit(rows)


def cases(name: str, most: int | None = None) -> Iterator[Case]:
    X = standardised(name, most)
    size, buffer = OPTIONS[len(X) < SMALL]
    for rule in RULES:
        kernel = Gaussian(rule).resolve(X)
        full = KernelMean.from_samples(X, kernel)
        sure = probe_for(full, 0.95, np.random.default_rng(3))
        if len(X) < SMALL and not isinstance(sure, ExactProbe):
            sure = ExactProbe(full, FrequencyProbe(full, 0.95, np.random.default_rng(3)))
        yield Case(name, rule, X, kernel, size, buffer, compress(full, size=size, rng=0), sure)


def standardised(name: str, most: int | None = None) -> np.ndarray:
    X = SETS[name]()[:most]
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def ordered(X: np.ndarray, kind: str) -> np.ndarray:
    """The rows in one of the orders."""
    if kind == "shuffled":
        return X[np.random.default_rng(2).permutation(len(X))]
    by = X[:, 0] if kind == "sorted" else MiniBatchKMeans(CLUSTERS, random_state=0, n_init=1).fit_predict(X)
    return X[np.argsort(by, kind="stable")]


def against_batch(case: Case) -> tuple[list[str], list[float], list[bool]]:
    """A row of the table, the ratios of errors, and whether the intervals agree with those of the probe."""
    least = case.batch.certificate.relative_error
    cells, ratios, held = [], [], []
    for kind in ORDERS:
        small = case.streamed(ordered(case.X, kind)).result()
        found, measured = small.certificate, case.measured(small)
        low, high = found.interval
        ratios.append(found.relative_error / least)
        held.append(low <= (1 + ROUNDING) * measured[1] and measured[0] <= (1 + ROUNDING) * high)
        outside = f"; {low:.3e} to {high:.3e} is not {measured[0]:.3e} to {measured[1]:.3e}"
        cells.append(f"{found.relative_error:.2e} ({ratios[-1]:.2f}{'' if held[-1] else outside})")
    n, d = case.X.shape
    return [case.name, f"{n:,}×{d}", case.rule, str(case.size), f"{least:.2e}", *cells], ratios, held


# -- parts that are merged ------------------------------------------------------------------------------------------------


def in_a_tree(streams: list[StreamCompressor]) -> StreamCompressor:
    while len(streams) > 1:
        streams = [a.merge(b) for a, b in zip(streams[::2], streams[1::2], strict=True)]
    return streams[0]


def one_after_the_other(streams: list[StreamCompressor]) -> StreamCompressor:
    first, *others = streams
    for other in others:
        first.merge(other)
    return first


def siblings(case: Case, parts: list[np.ndarray]) -> list[StreamCompressor]:
    """Streams with the sites of a stream that had a sample of all parts, together the rows of its buffer."""
    some = case.buffer // SHARDS
    parent = case.streamed(
        np.concatenate([part[np.random.default_rng(k).permutation(len(part))[:some]] for k, part in enumerate(parts)])
    )
    return [parent.sibling().partial_fit(part) for part in parts]


def merged(case: Case, kind: str) -> tuple[list[str], list[float]]:
    rows = ordered(case.X, kind)
    least = case.streamed(rows).result().certificate.relative_error
    parts = np.array_split(rows, SHARDS)
    streams = [case.streamed(part) for part in parts]
    ways = [
        in_a_tree([copy(stream) for stream in streams]),
        one_after_the_other([copy(stream) for stream in streams]),
        in_a_tree(siblings(case, parts)),
    ]
    errors = [way.result().certificate.relative_error for way in ways]
    ratios = [error / least for error in errors]
    cells = [f"{error:.2e} ({ratio:.2f})" for error, ratio in zip(errors, ratios, strict=True)]
    return [case.name, case.rule, kind, f"{least:.2e}", *cells], ratios


def measure(quick: bool) -> dict[str, Any]:
    rows: list[list[str]] = []
    together: list[list[str]] = []
    ratios: list[float] = []
    held: list[bool] = []
    tinies: list[bool] = []
    independent: list[float] = []
    of_siblings: list[float] = []
    for name in QUICK_SETS if quick else SETS:
        for case in cases(name, QUICK_ROWS if quick else None):
            row, some, inside = against_batch(case)
            rows.append(row)
            ratios += some
            tinies += [case.batch.certificate.relative_error < TINY] * len(some)
            held += inside
            if name in MERGED:
                for kind in ("shuffled", "sorted"):
                    row, of_parts = merged(case, kind)
                    together.append(row)
                    independent += of_parts[:2]
                    of_siblings.append(of_parts[2])
    above = [ratio for ratio, tiny in zip(ratios, tinies, strict=True) if not tiny]
    median, worst = float(np.median(ratios)), max(ratios)
    every = independent + of_siblings
    summary = [
        ["error / batch, median", f"{median:.2f}", f"≤ {MEDIAN_RATIO}", verdict(-median, -MEDIAN_RATIO)],
        ["error / batch, worst", f"{worst:.2f}", f"≤ {WORST_RATIO:g}", verdict(-worst, -WORST_RATIO)],
        ["intervals that agree with all rows", f"{sum(held)} of {len(held)}", "", ""],
        [f"error of {SHARDS} merged streams / one pass, worst", f"{max(every):.2f}", f"≤ {MERGED_RATIO}",
         verdict(-max(every), -MERGED_RATIO)],
        ["within the goal", f"{sum(ratio <= MERGED_RATIO for ratio in every)} of {len(every)}", "", ""],
    ]  # fmt: skip
    details = (
        f"Columns standardised, Gaussian; size {OPTIONS[True][0]} and a buffer of {OPTIONS[True][1]:,} rows below {SMALL:,} rows, "
        f"{OPTIONS[False][0]} and {OPTIONS[False][1]:,} above. The certified error of `compress(X, kernel, size=…, rng=0)` and of "
        "a "
        "stream of the same rows: shuffled, sorted by the first column, and sorted by clusters. In brackets its ratio to the error "
        "of the batch, and both intervals where the certificate of the stream and a probe on all rows (exact for few rows) "
        "disagree:\n\n"
        + table(["data", "shape", "bandwidth", "size", "batch", *ORDERS], rows)
        + f"\n\nRatio of errors: median {median:.2f}, goal at most {MEDIAN_RATIO}: {verdict(-median, -MEDIAN_RATIO)}; "
        + f"worst {worst:.2f}, goal at most {WORST_RATIO:.0f}: {verdict(-worst, -WORST_RATIO)}. "
        + f"Where the batch's error is above {TINY:g}: worst {max(above):.2f}. "
        + f"The stream's 95 % interval and that of the probe on all rows agree in {sum(held)} of {len(held)}.\n\n"
        + f"{SHARDS} parts, each with its own stream, are merged and compared with one pass over the same rows. The parts are of "
        + "shuffled rows and of rows sorted by the first column. Siblings share the sites of a stream of some rows of all "
        "parts:\n\n"
        + table(
            ["data", "bandwidth", "rows", "one pass", "merged in a tree", "one after the other", "siblings"],
            together,
        )
        + f"\n\nRatio to one pass: median {np.median(every):.2f}, worst of independent streams {max(independent):.2f}, of siblings "
        + f"{max(of_siblings):.2f}; goal at most {MERGED_RATIO}: {verdict(-max(every), -MERGED_RATIO)} "
        + f"({sum(ratio <= MERGED_RATIO for ratio in every)} of {len(every)} are within)."
    )
    return {"summary": summary, "details": details}
