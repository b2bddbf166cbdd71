"""Dask against one process on the same Parquet files: time, errors, other partitions, and a worker that is killed."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from harness import table, verdict
from reduset import Compression, Gaussian, io
from reduset.stream import StreamCompressor
from stream import mixture

TITLE = "Dask and one process on the same files"

FILES, ROWS_A_FILE, GROUP = 40, 500_000, 100_000  # GROUP: rows of a row group
SOME_FILES = 10  # for other partitions, and for the worker that is killed
WARM_FILES, WARM_ROWS = 8, 20_000
COLUMNS = ["a", "b", "c", "d", "e"]
KERNEL, SIZE = Gaussian(1.5), 500
TURNS = 2


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


def by_dask(paths: list[list[Path]], **options: Any) -> Compression:
    """Each list of files is a partition."""
    import dask.dataframe as dd

    from reduset.distributed import compress

    frame = dd.from_map(read, paths, meta=read(paths[0]).iloc[:0], enforce_metadata=False)
    return compress(frame, KERNEL, size=SIZE, rng=0, **options)


def read(paths: list[Path]) -> Any:
    import pyarrow
    import pyarrow.parquet

    return pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in paths]).to_pandas()


def by_stream(paths: list[Path]) -> Compression:
    stream = StreamCompressor(KERNEL, SIZE, 0)
    for batch in io.batches(paths):
        stream.partial_fit(batch.values)
    return stream.result()


def timed(function: Any, *arguments: Any, **options: Any) -> tuple[float, Compression]:
    begun = time.perf_counter()
    result = function(*arguments, **options)
    return time.perf_counter() - begun, result


def error(small: Compression) -> str:
    low, high = small.certificate.interval
    return f"{small.certificate.relative_error:.2e} ({low:.2e} to {high:.2e})"


def overlap(one: Compression, other: Compression) -> bool:
    (a, b), (c, d) = one.certificate.interval, other.certificate.interval
    return a <= d and c <= b


def within(one: Compression, other: Compression) -> tuple[float, float]:
    """How far apart two compressions of the same rows are, and how far their certificates let them be; relative to the mean's "
    "norm."""
    norm = one.certificate.norm
    return one.mean.distance(other.mean) / norm, one.certificate.interval[1] + other.certificate.interval[1]


def alone(paths: list[Path]) -> list[list[Path]]:
    return [[path] for path in paths]


def groups(paths: list[Path], *counts: int) -> list[list[Path]]:
    """The files in partitions of so many."""
    ends = np.cumsum(counts)
    return [paths[b - c : b] for b, c in zip(ends, counts, strict=True)]


def same(one: Compression, other: Compression) -> bool:
    """To the last bit."""
    arrays = (
        (small.mean.atoms.tobytes(), small.mean.weights.tobytes(), small.path.relative_errors.tobytes()) for small in (one, other)
    )
    first, second = arrays
    return first == second and one.certificate == other.certificate


def killing(client: Any, paths: list[Path]) -> tuple[Compression, bool]:
    """With one of the workers killed (SIGKILL) when a third of the second pass is done."""
    pid, done_before = next(iter(client.run(os.getpid).values())), []

    def watch(stage: str, done: int, total: int) -> None:
        if stage == "certifying" and 3 * done >= total and not done_before:
            done_before.append(done)
            os.kill(pid, signal.SIGKILL)

    return by_dask(alone(paths), progress=watch), bool(done_before)


def run() -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write(folder / "all", FILES, ROWS_A_FILE, 0)
        warm = write(folder / "warm", WARM_FILES, WARM_ROWS, 1)
        by_stream(warm)
        begun = time.perf_counter()
        with cluster() as client:
            started = time.perf_counter() - begun
            warming, _ = timed(by_dask, alone(warm))  # workers import, and load what was compiled
            turns = [(timed(by_stream, paths), timed(by_dask, alone(paths))) for _ in range(TURNS)]
            some = paths[:SOME_FILES]
            files, short = len(some), len(some) // 2
            uneven = (1, 2, files - short - 3, short)
            results = {
                f"{files} of {ROWS_A_FILE:,} rows": by_dask(alone(some)),
                f"{4 * files} of {ROWS_A_FILE // 4:,}": quarters(some),
                f"2 of {short * ROWS_A_FILE:,}": by_dask(groups(some, short, files - short)),
                "uneven: " + ", ".join(f"{count * ROWS_A_FILE:,}" for count in uneven): by_dask(groups(some, *uneven)),
                "one process, no partitions": by_stream(some),
            }
            killed, was_killed = killing(client, some)
    streamed, dasked = (float(np.median([turn[k][0] for turn in turns])) for k in (0, 1))
    one, other = turns[-1][0][1], turns[-1][1][1]
    n = FILES * ROWS_A_FILE
    first = next(iter(results.values()))
    ratio = dasked / streamed
    distance, allowed = within(one, other)
    rows = [
        [
            "one process, 2 threads: `io.batches`, `StreamCompressor`",
            "1",
            f"{streamed:.1f} s",
            f"{n / streamed / 1e6:.2f} M",
            error(one),
        ],
        ["Dask, 2 workers of 1 thread: `distributed.compress`", "2", f"{dasked:.1f} s", f"{n / dasked / 1e6:.2f} M", error(other)],
    ]
    agree = []
    for label, small in results.items():
        apart, most = within(first, small)
        agree.append(
            [label, error(small), "yes" if overlap(first, small) else "NO", f"{apart:.2e}", f"{most:.2e}", verdict(most, apart)]
        )
    return (
        f"{n:,} rows of {len(COLUMNS)} numbers in {FILES} Parquet files ({n * len(COLUMNS) * 8 / 1e6:.0f} MB as float64), "
        f"{SIZE} atoms, "
        f"Gaussian of fixed bandwidth; medians of {TURNS} turns, all compiled before:\n\n"
        + table(["", "passes", "time", "rows a second", "certified error, 95 % interval"], rows)
        + f"\n\nDask takes {ratio:.2f} times as long; goal at most 1 (not slower): {verdict(-ratio, -1.0)}. Starting the "
        + "cluster took "
        + f"{started:.1f} s more, and the workers' first task {warming:.1f} s. The two results are {distance:.2e} of the mean's "
        + "norm apart; "
        + f"their certificates allow {allowed:.2e}: {verdict(allowed, distance)}.\n\n"
        + f"Other partitions of the same rows ({SOME_FILES} of the files). How far each result is from the first, and how far "
        + "the ends of both "
        + "intervals allow:\n\n"
        + table(["partitions", "certified error, 95 % interval", "intervals overlap", "apart", "allowed", "within"], agree)
        + f"\n\nA worker killed (SIGKILL) when a third of the second pass was done: {'killed' if was_killed else 'NOT killed'}; "
        + "the result is "
        + f"that of the unbroken run, bit for bit: {'yes' if same(first, killed) else 'NO'}."
    )


def quarters(paths: list[Path]) -> Compression:
    """Four partitions of each file, by rows."""
    from dask.dataframe import from_map

    from reduset.distributed import compress

    each = [(path, k) for path in paths for k in range(4)]
    frame = from_map(quarter, each, meta=read(paths[:1]).iloc[:0], enforce_metadata=False)
    return compress(frame, KERNEL, size=SIZE, rng=0)


def quarter(which: tuple[Path, int]) -> Any:
    path, k = which
    frame = read([path])
    return frame.iloc[k * len(frame) // 4 : (k + 1) * len(frame) // 4]
