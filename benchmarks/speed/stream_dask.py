"""Is compression on Dask slower than a stream in one process, on the same Parquet files?

Two workers of one thread against one process of two threads. Goals: Dask not slower; results within what both certificates allow,
for any partitions of the rows; a killed worker changes no bit of the result.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._lib import seconds, table, verdict
from benchmarks.speed.stream import mixture
from reduset import Compression, Gaussian, io
from reduset.stream import StreamCompressor

TITLE = "Dask and one process on the same files"

SOURCES = ("stream", "distributed")


class Sizes(NamedTuple):
    """What is written and compressed."""

    files: int
    rows: int  # of a file
    some: int  # files for other partitions, and for the worker that is killed
    warm: tuple[int, int]  # files and rows of each that compile
    size: int
    turns: int


FULL = Sizes(40, 500_000, 10, (8, 20_000), 500, 2)
QUICK = Sizes(5, 10_000, 5, (2, 5_000), 50, 1)
GROUP = 100_000  # rows of a row group
COLUMNS = ["a", "b", "c", "d", "e"]
KERNEL = Gaussian(1.5)


def write(folder: Path, files: int, rows: int, seed: int) -> list[Path]:
    import pyarrow
    import pyarrow.parquet

    folder.mkdir()
    draw, rng, paths = mixture(), np.random.default_rng(seed), []
    for k in range(files):
        X = draw(rng, rows)
        paths.append(folder / f"part-{k:03}.parquet")
        pyarrow.parquet.write_table(
            pyarrow.table({name: X[:, j] for j, name in enumerate(COLUMNS)}), paths[-1], row_group_size=GROUP
        )
    return paths


@contextmanager
def cluster() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as made,
        Client(made) as client,
    ):
        yield client


def by_dask(paths: list[list[Path]], size: int, **options: Any) -> Compression:
    """Each list of files is a partition."""
    import dask.dataframe as dd
    from reduset.distributed import compress

    frame = dd.from_map(read, paths, meta=read(paths[0]).iloc[:0], enforce_metadata=False)
    return compress(frame, KERNEL, size=size, rng=0, **options)


def read(paths: list[Path]) -> Any:
    import pyarrow
    import pyarrow.parquet

    return pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in paths]).to_pandas()


def by_stream(paths: list[Path], size: int) -> Compression:
    stream = StreamCompressor(KERNEL, size, 0)
    for batch in io.batches(paths):
        stream.partial_fit(batch.values)
    return stream.result()


def timed(function: Any, *arguments: Any) -> tuple[float, Compression]:
    found: list[Compression] = []
    return seconds(lambda: found.append(function(*arguments))), found[0]


def error(small: Compression) -> str:
    low, high = small.certificate.interval
    return f"{small.certificate.relative_error:.2e} ({low:.2e} to {high:.2e})"


def overlap(one: Compression, other: Compression) -> bool:
    (a, b), (c, d) = one.certificate.interval, other.certificate.interval
    return a <= d and c <= b


def within(one: Compression, other: Compression) -> tuple[float, float]:
    """The distance of two compressions of the same rows, and the largest that their certificates allow, relative to the norm."""
    norm = one.certificate.norm
    return one.mean.distance(other.mean) / norm, one.certificate.interval[1] + other.certificate.interval[1]


def alone(paths: list[Path]) -> list[list[Path]]:
    return [[path] for path in paths]


def groups(paths: list[Path], *counts: int) -> list[list[Path]]:
    """The files in partitions of these numbers of files."""
    ends = np.cumsum(counts)
    return [paths[b - c : b] for b, c in zip(ends, counts, strict=True)]


def same(one: Compression, other: Compression) -> bool:
    """Whether they are equal to the last bit."""
    arrays = (
        (small.mean.atoms.tobytes(), small.mean.weights.tobytes(), small.path.relative_errors.tobytes()) for small in (one, other)
    )
    first, second = arrays
    return first == second and one.certificate == other.certificate


def killing(client: Any, paths: list[Path], size: int) -> Compression:
    """A run in which one of the workers is killed (SIGKILL) after a third of the second pass."""
    pid, done_before = next(iter(client.run(os.getpid).values())), []

    def watch(stage: str, done: int, total: int) -> None:
        if stage == "certifying" and 3 * done >= total and not done_before:
            done_before.append(done)
            os.kill(pid, signal.SIGKILL)

    found = by_dask(alone(paths), size, progress=watch)
    if not done_before:
        raise AssertionError("no worker was killed")
    return found


def quarters(paths: list[Path], size: int) -> Compression:
    """Four partitions of each file, by rows."""
    from dask.dataframe import from_map
    from reduset.distributed import compress

    each = [(path, k) for path in paths for k in range(4)]
    frame = from_map(quarter, each, meta=read(paths[:1]).iloc[:0], enforce_metadata=False)
    return compress(frame, KERNEL, size=size, rng=0)


def quarter(which: tuple[Path, int]) -> Any:
    path, k = which
    frame = read([path])
    return frame.iloc[k * len(frame) // 4 : (k + 1) * len(frame) // 4]


def other_partitions(some: list[Path], rows: int, size: int) -> dict[str, Compression]:
    files, short = len(some), len(some) // 2
    uneven = (1, 2, files - short - 3, short) if files > 5 else (1, files - 1)
    return {
        f"{files} of {rows:,} rows": by_dask(alone(some), size),
        f"{4 * files} of {rows // 4:,}": quarters(some, size),
        f"2 of {short * rows:,}": by_dask(groups(some, short, files - short), size),
        "uneven: " + ", ".join(f"{count * rows:,}" for count in uneven): by_dask(groups(some, *uneven), size),
        "one process, no partitions": by_stream(some, size),
    }


def measure(quick: bool) -> dict[str, Any]:
    sizes = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write(folder / "all", sizes.files, sizes.rows, 0)
        warm = write(folder / "warm", *sizes.warm, 1)
        by_stream(warm, sizes.size)
        begun = time.perf_counter()
        with cluster() as client:
            started = time.perf_counter() - begun
            warming, _ = timed(by_dask, alone(warm), sizes.size)  # workers import, and load compiled code
            turns = [(timed(by_stream, paths, sizes.size), timed(by_dask, alone(paths), sizes.size)) for _ in range(sizes.turns)]
            results = other_partitions(paths[: sizes.some], sizes.rows, sizes.size)
            killed = killing(client, paths[: sizes.some], sizes.size)
    streamed, dasked = (float(np.median([turn[k][0] for turn in turns])) for k in (0, 1))
    one, other = turns[-1][0][1], turns[-1][1][1]
    n, first = sizes.files * sizes.rows, next(iter(results.values()))
    ratio, spent, (distance, allowed), unchanged = dasked / streamed, other.timings, within(one, other), same(first, killed)
    rows = [
        [name, passes, f"{taken:.1f} s", f"{n / taken / 1e6:.2f} M", error(small)]
        for name, passes, taken, small in (
            ("one process, 2 threads: `io.batches`, `StreamCompressor`", "1", streamed, one),
            ("Dask, 2 workers of 1 thread: `distributed.compress`", "2", dasked, other),
        )
    ]
    agree = []
    for label, small in results.items():
        apart, most = within(first, small)
        agree.append([label, error(small), "yes" if overlap(first, small) else "NO", f"{apart:.2e}", f"{most:.2e}"])
        agree[-1].append(verdict(most, apart))
    good = sum(row[-1] == "yes" for row in agree)
    return {
        "summary": [
            ["Time of Dask over one process", f"{ratio:.2f}×", "≤ 1×", verdict(-ratio, -1.0)],
            ["Distance of the two results, of the norm", f"{distance:.2e}", f"≤ {allowed:.2e}", verdict(allowed, distance)],
            ["Other partitions within the certificates", f"{good} of {len(agree)}", "all", verdict(good, len(agree))],
            ["A killed worker: the same result, bit for bit", "yes" if unchanged else "no", "yes", "yes" if unchanged else "NO"],
        ],
        "details": f"{n:,} rows of {len(COLUMNS)} numbers in {sizes.files} Parquet files ({n * len(COLUMNS) * 8 / 1e6:.0f} MB as "
        f"float64), {sizes.size} atoms, Gaussian of fixed bandwidth; medians of {sizes.turns} turns, all compiled before:\n\n"
        + table(["", "passes", "time", "rows a second", "certified error, 95 % interval"], rows)
        + f"\n\nOn Dask pass one takes {spent['sample']:.1f} s, choosing atoms {spent['choose']:.1f} s, pass two "
        f"{spent['certify']:.1f} s. Starting the cluster took {started:.1f} s more, and the first task of the workers "
        f"{warming:.1f} s. The two results are {distance:.2e} of the norm apart; their certificates allow {allowed:.2e}.\n\n"
        f"Other partitions of the same rows ({sizes.some} of the files): the distance from the first result, and the distance that "
        "the ends of both intervals allow:\n\n"
        + table(["partitions", "certified error, 95 % interval", "intervals overlap", "apart", "allowed", "within"], agree)
        + "\n\nOne worker is killed (SIGKILL) after a third of the second pass. The result is that of the unbroken run, bit for "
        f"bit: {'yes' if unchanged else 'NO'}.",
    }
