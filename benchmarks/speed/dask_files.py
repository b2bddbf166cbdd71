"""How much slower is compression of Parquet files on Dask than of the same rows in memory, and is the result equal?

Two workers of one thread are compared with one process of two threads that has the rows in memory (`compress`) or reads them once
(`StreamCompressor`). Goals: the result equals the one in memory up to rounding, for several partitions; a killed worker changes no
bit; the time is at most twice the time in memory.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks._lib import seconds, table, verdict
from benchmarks.speed.stream import mixture
from reduset import Compression, Gaussian, compress, io
from reduset.stream import StreamCompressor

TITLE = "Files on Dask, in memory and as a stream"

SOURCES = ("data", "stream", "compression")


class Sizes(NamedTuple):
    """What is written and compressed."""

    files: int
    rows: int  # of a file
    n_subset: int  # files for the comparison of partitions and for the killed worker
    warm: tuple[int, int]  # files and rows of each for a first run that compiles
    size: int
    turns: int


FULL = Sizes(20, 500_000, 8, (8, 20_000), 500, 2)
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
        columns = pyarrow.table({name: X[:, j] for j, name in enumerate(COLUMNS)})
        pyarrow.parquet.write_table(columns, paths[-1], row_group_size=GROUP)
    return paths


@contextmanager
def cluster() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as made,
        Client(made) as client,
    ):
        yield client


def read(paths: list[Path]) -> Any:
    import pyarrow
    import pyarrow.parquet

    return pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in paths]).to_pandas()


def on_dask(partitions: list[list[Path]], size: int, **options: Any) -> Compression:
    """Each list of files is a partition."""
    import dask.dataframe as dd

    frame = dd.from_map(read, partitions, meta=read(partitions[0]).iloc[:0], enforce_metadata=False)
    return compress(frame, KERNEL, size=size, rng=0, **options)


def in_memory(paths: list[Path], size: int) -> Compression:
    return compress(read(paths), KERNEL, size=size, rng=0)


def as_stream(paths: list[Path], size: int) -> Compression:
    stream = StreamCompressor(KERNEL, size, 0)
    for batch in io.batches(paths):
        stream.partial_fit(batch.values)
    return stream.result()


def timed(function: Any, *arguments: Any) -> tuple[float, Compression]:
    results: list[Compression] = []
    return seconds(lambda: results.append(function(*arguments))), results[0]


def error(small: Compression) -> str:
    low, high = small.certificate.interval
    return f"{small.certificate.relative_error:.2e} ({low:.2e} to {high:.2e})"


def distance(one: Compression, other: Compression) -> float:
    """The distance of two compressions of the same rows, relative to the norm of the mean."""
    return one.mean.distance(other.mean) / one.certificate.norm


def groups(paths: list[Path], *counts: int) -> list[list[Path]]:
    """The files in partitions of these numbers of files."""
    ends = np.cumsum(counts)
    return [paths[end - count : end] for end, count in zip(ends, counts, strict=True)]


def equal_bits(one: Compression, other: Compression) -> bool:
    first, second = (
        (small.mean.atoms.tobytes(), small.mean.weights.tobytes(), small.path.relative_errors.tobytes()) for small in (one, other)
    )
    return first == second and one.certificate == other.certificate


def with_killed_worker(client: Any, partitions: list[list[Path]], size: int) -> Compression:
    """A run in which one of the workers is killed (SIGKILL) in a pass, half a second after the third report of progress."""
    pid, reports = next(iter(client.run(os.getpid).values())), []

    def watch(stage: str, done: int, total: int) -> None:
        reports.append(stage)
        if len(reports) == 3:
            threading.Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()

    small = on_dask(partitions, size, progress=watch)
    if len(reports) < 3:
        raise AssertionError("no worker was killed")
    return small


def measure(quick: bool) -> dict[str, Any]:
    sizes = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write(folder / "all", sizes.files, sizes.rows, 0)
        warm = write(folder / "warm", *sizes.warm, 1)
        for function in (in_memory, as_stream):
            function(warm, sizes.size)
        alone = [[path] for path in paths]
        begun = time.perf_counter()
        with cluster() as client:
            started = time.perf_counter() - begun
            warming, _ = timed(on_dask, [[path] for path in warm], sizes.size)  # workers import, and load compiled code
            turns = [
                [timed(in_memory, paths, sizes.size), timed(as_stream, paths, sizes.size), timed(on_dask, alone, sizes.size)]
                for _ in range(sizes.turns)
            ]
            some, count = paths[: sizes.n_subset], sizes.n_subset
            cuts = {
                f"{count} of {sizes.rows:,} rows": alone[:count],
                f"2 of {count // 2 * sizes.rows:,} or more": groups(some, count // 2, count - count // 2),
                "uneven": groups(some, 1, count - 1),
            }
            whole = in_memory(some, sizes.size)
            results = {label: on_dask(cut, sizes.size) for label, cut in cuts.items()}
            killed = with_killed_worker(client, alone[:count], sizes.size)
    taken = [float(np.median([turn[k][0] for turn in turns])) for k in range(3)]
    memory, streamed, dasked = (turns[-1][k][1] for k in range(3))
    n, ratio, apart = sizes.files * sizes.rows, taken[2] / taken[0], distance(memory, dasked)
    worst, unchanged = max(distance(whole, small) for small in results.values()), equal_bits(next(iter(results.values())), killed)
    labels = [
        "in memory, 2 threads: `compress(frame)`",
        "read once, 2 threads: `StreamCompressor`",
        "2 workers: `compress(dask_frame)`",
    ]
    rows = [
        [label, f"{time_:.1f} s", f"{n / time_ / 1e6:.2f} M", error(small)]
        for label, time_, small in zip(labels, taken, (memory, streamed, dasked), strict=True)
    ]
    cut_rows = [[label, error(small), f"{distance(whole, small):.1e}"] for label, small in results.items()]
    return {
        "summary": [
            ["Time on Dask over time in memory", f"{ratio:.2f}×", "≤ 2×", verdict(-ratio, -2.0)],
            ["Distance of the results on Dask and in memory, of the norm", f"{apart:.1e}", "≤ 1e-6", verdict(1e-6, apart)],
            ["The same for other partitions, largest", f"{worst:.1e}", "≤ 1e-6", verdict(1e-6, worst)],
            ["A killed worker: the same result, bit for bit", "yes" if unchanged else "no", "yes", "yes" if unchanged else "NO"],
        ],
        "details": f"{n:,} rows of {len(COLUMNS)} numbers in {sizes.files} Parquet files ({n * len(COLUMNS) * 8 / 1e6:.0f} MB as "
        f"float64), {sizes.size} atoms, Gaussian of fixed bandwidth; medians of {sizes.turns} turns with reading:\n\n"
        + table(["", "time", "rows a second", "certified error, 95 % interval"], rows)
        + f"\n\nStarting the cluster took {started:.1f} s more, and the first task of the workers {warming:.1f} s.\n\n"
        f"Other partitions ({sizes.n_subset} of the files), and the distance from the result in memory:\n\n"
        + table(["partitions", "certified error, 95 % interval", "distance"], cut_rows),
    }
