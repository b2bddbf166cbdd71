"""Files into tables: every format by its own reader, block by block, into one array that was allocated once.

The number of rows is known beforehand of all formats but CSV, TSV and Arrow streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reduset._validate import flag, one_of, whole
from reduset.io.arrays import NpySource, NpzSource
from reduset.io.arrow import FeatherSource, FrameSource, ParquetSource
from reduset.io.choice import Choice, asked, choose, choose_alike
from reduset.io.delimited import DelimitedSource
from reduset.io.fcs import FcsSource
from reduset.io.formats import format_of, named
from reduset.io.gathering import Gathering, parts, scales_of
from reduset.io.guard import check_room
from reduset.io.h5ad import H5adSource
from reduset.io.images import ImageSource
from reduset.io.source import Labels, Source, unique_names
from reduset.io.table import FileError, Table, listed

ROWS = 65536
BLOCK = 1 << 19  # bytes of a block of rows, about


def _block_rows(choice: Choice) -> int:
    return max(1024, min(ROWS, BLOCK // (8 * len(choice.titles))))


@dataclass(frozen=True)
class _Options:
    columns: list[str] | None
    weight: str | None
    group: str | None
    transform: Any
    compensate: bool
    missing: str
    key: str | None


def _options(columns: Any, weight: Any, group: Any, transform: Any, compensate: Any, missing: Any, key: Any) -> _Options:
    one_of(missing, "missing", ("refuse", "drop"))
    if key is not None and not isinstance(key, str):
        raise TypeError(f"key must be the name of an array in the file, got {key!r}")
    return _Options(asked(columns), weight, group, transform, flag(compensate, "compensate"), missing, key)


def open_source(path: str, key: str | None = None, compensate: bool = True) -> Source:
    """A file, opened by the reader of its format."""
    kind, packed = format_of(path)
    if kind == "npz":
        return NpzSource(path, key)
    if kind == "h5ad":
        return H5adSource(path, key)
    if kind == "fcs":
        return FcsSource(path, key, compensate)
    if key is not None:
        raise FileError(f"{path}: key={key!r} is for files of several arrays (.npz, .h5ad); leave it out")
    if kind in ("csv", "tsv"):
        return DelimitedSource(path, "\t" if kind == "tsv" else None, packed)
    readers: dict[str, Callable[[str], Source]] = {
        "parquet": ParquetSource,
        "arrow": FeatherSource,
        "npy": NpySource,
        "image": ImageSource,
    }
    return readers[kind](path)


def _notes(plans: list[tuple[Source, Choice]], transform: Any, dropped: int) -> tuple[str, ...]:
    notes = []
    for source, choice in plans:
        prefix = f"{source.path}: " if len(plans) > 1 else ""
        notes += [prefix + note for note in [*source.notes, *choice.notes, *scales_of(transform, source, choice)[1]]]
    if dropped:
        notes.append(f"{dropped:,} row{'s' if dropped > 1 else ''} with missing values left out")
    return tuple(notes)


def _gathered(plans: list[tuple[Source, Choice]], options: _Options) -> Table:
    """One table from opened files."""
    single = all(choice.single for _, choice in plans)
    first, choice = plans[0][0].path, plans[0][1]
    counts = [source.rows for source, _ in plans]
    rows = None if None in counts else sum(count for count in counts if count is not None)
    if rows is not None:
        check_room(first, float(rows) * len(choice.titles) * (4 if single else 8))
    gathering, dropped = Gathering(rows, choice, single), 0
    for source, mine in plans:
        before = gathering.rows
        for part in parts(source, mine, options.transform, options.missing, single, _block_rows(mine)):
            gathering.add(source.path, part)
            dropped += part.dropped
        if gathering.rows == before and dropped:
            raise FileError(f"{source.path}: no rows are left, for each lacks a value; choose fewer columns")
    values, weights, groups = gathering.finish(first)
    sources = tuple(source.path for source, _ in plans)
    return Table(
        values,
        choice.titles,
        weights,
        groups,
        sources,
        _notes(plans, options.transform, dropped),
        dropped,
        _scales(plans[0], options),
    )


def _plans(paths: Any, options: _Options) -> list[tuple[Source, Choice]]:
    """The files, opened, with what is read of each: the same columns of all."""
    names = [named(path) for path in ([paths] if not isinstance(paths, Sequence) or isinstance(paths, str) else paths)]
    if not names:
        raise FileError("no files were named")
    plans: list[tuple[Source, Choice]] = []
    for name in names:
        source = open_source(name, options.key, options.compensate)
        if not plans:
            plans.append((source, choose(source, options.columns, options.weight, options.group)))
        else:
            plans.append((source, choose_alike(source, plans[0][1], names[0], options.columns)))
            if _scales(plans[-1], options) != _scales(plans[0], options):  # scatter and time of FCS files are left alone
                raise FileError(f"{name}: transform takes other columns than in {names[0]}; say it for each column by name")
    return plans


def _scales(plan: tuple[Source, Choice], options: _Options) -> dict[str, str]:
    """The transform of each column that has one."""
    return {title: one.name for title, one in scales_of(options.transform, *plan)[0].items()}


def read(
    paths: Any,
    *,
    columns: Any = None,
    weight_column: str | None = None,
    group_column: str | None = None,
    transform: Any = None,
    compensate: bool = True,
    missing: str = "refuse",
    key: str | None = None,
) -> Table:
    """Read one file, or several with the same columns, as one table.

    Parameters
    ----------
    paths : a path or a list of them: CSV, TSV (also .gz), Parquet, Arrow, Feather, NPY, NPZ, FCS, h5ad or an image.
    columns : names; None takes all that hold numbers, except those of weights and groups.
    weight_column : the column of weights.
    group_column : the column of labels.
    transform : None, "asinh:150", "logicle", "log", or a dict of columns to these.
    compensate : whether to take out spillover by the matrix that an FCS file carries.
    missing : "refuse" names the first row with a missing value, "drop" leaves such rows out and counts them.
    key : which array of an .npz or .h5ad file ("X", "obsm/X_pca", "obs"); "events" for an FCS file's numbers as stored.

    Raises
    ------
    FileError : in one line, for whatever is wrong with a file.
    """
    options = _options(columns, weight_column, group_column, transform, compensate, missing, key)
    return _gathered(_plans(paths, options), options)


def read_bags(paths: Any, *, group_column: str | None = None, **same: Any) -> dict[str, Table]:
    """Read bags by name: one a file, called by the file's name without suffix, or one a label of ``group_column``.

    All files must have the same columns. Other arguments are those of ``read``.
    """
    if group_column is not None:
        return _by_label(read(paths, group_column=group_column, **same))
    options = _options(*_arguments(same))
    plans = _plans(paths, options)
    return dict(zip(_stems([source.path for source, _ in plans]), (_gathered([plan], options) for plan in plans), strict=True))


def _arguments(same: dict[str, Any]) -> tuple[Any, ...]:
    known = {
        "columns": None,
        "weight_column": None,
        "group_column": None,
        "transform": None,
        "compensate": True,
        "missing": "refuse",
        "key": None,
    }
    for name in same:
        if name not in known:
            raise TypeError(f"unexpected argument {name!r}; there are {', '.join(known)}")
    return tuple((known | same).values())


def _by_label(table: Table) -> dict[str, Table]:
    labels, first, codes = np.unique(np.asarray(table.groups), return_index=True, return_inverse=True)
    bags = {}
    for code in np.argsort(first):  # in the order in which they appear
        rows = codes == code
        weights = None if table.weights is None else table.weights[rows]
        bags[str(labels[code])] = replace(table, values=table.values[rows], weights=weights, groups=None)
    return bags


def _stems(paths: list[str]) -> list[str]:
    """Names of files without suffixes that are formats; with their folders where two are the same."""
    stems = [Path(Path(path).name.removesuffix(".gz")).stem or Path(path).name for path in paths]
    if len(set(stems)) < len(stems):
        folders = [Path(path).parent.name for path in paths]
        stems = [
            f"{folder}/{stem}" if folder and stems.count(stem) > 1 else stem for folder, stem in zip(folders, stems, strict=True)
        ]
    return unique_names(stems)[0]


def read_labels(path: Any) -> dict[str, str]:
    """The second column of a file by the first: which group each sample belongs to, say. Further columns are not read."""
    source = open_source(named(path))
    if len(source.kinds) < 2:
        raise FileError(f"{source.path}: must have two columns, a sample and its group in each row, got {listed(source.kinds)}")
    first, second = ([_text_of(found) for _, found in source.blocks([], name, ROWS)] for name in list(source.kinds)[:2])
    return {name: label for names, labels in zip(first, second, strict=True) for name, label in zip(names, labels, strict=True)}


def _text_of(found: Labels | None) -> list[str]:
    return [] if found is None else [str(found.categories[code]) if code >= 0 else "" for code in found.codes]


def batches(path: Any, *, rows: int = ROWS, **same: Any) -> Iterator[Table]:
    """Read a file ``rows`` rows at a time, so that memory does not grow with the file. Other arguments are those of ``read``."""
    whole(rows, "rows", 1)
    options = _options(*_arguments(same))
    [(source, choice)] = _plans([path], options)
    return _batches(source, choice, options, rows)


def _batches(source: Source, choice: Choice, options: _Options, rows: int) -> Iterator[Table]:
    pending, dropped = Gathering(rows, choice, choice.single), 0

    def table() -> Table:
        values, weights, groups = pending.finish(source.path)
        notes = _notes([(source, choice)], options.transform, dropped)
        return Table(values, choice.titles, weights, groups, (source.path,), notes, dropped, _scales((source, choice), options))

    for part in parts(source, choice, options.transform, options.missing, choice.single, min(rows, _block_rows(choice))):
        start = 0
        while start < len(part.values):
            if pending.rows == rows:
                yield table()
                pending, dropped = Gathering(rows, choice, choice.single), 0
            stop = min(len(part.values), start + rows - pending.rows)
            pending.add(source.path, part.rows(slice(start, stop)))
            start = stop
        dropped += part.dropped  # so that the last table counts what was left out after its rows
    yield table()


def as_table(
    frame: Any,
    *,
    columns: Any = None,
    weight_column: str | None = None,
    group_column: str | None = None,
    transform: Any = None,
    missing: str = "refuse",
) -> Table:
    """A table from a pandas or polars frame (a lazy one too), or an Arrow table; arguments as in ``read``."""
    options = _options(columns, weight_column, group_column, transform, False, missing, None)
    wanted = (
        None
        if options.columns is None
        else [*options.columns, *(name for name in (weight_column, group_column) if name is not None)]
    )
    source = FrameSource(frame, wanted)
    table = _gathered([(source, choose(source, options.columns, options.weight, options.group))], options)
    return replace(table, sources=())
