"""Files into tables: every format by its own reader, block by block, into one array that was allocated once.

The number of rows is known beforehand of all formats but CSV, TSV and Arrow streams.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reduset.io.arrow import FrameSource
from reduset.io.choice import choose
from reduset.io.formats import named
from reduset.io.gathering import Gathering, parts
from reduset.io.guard import check_room
from reduset.io.plans import ROWS, Options, Plan, notes_of, open_source, options_of, plans_of, total_rows
from reduset.io.source import Labels, unique_names
from reduset.io.table import FileError, Table, listed


def _gathered(plans: list[Plan], options: Options) -> Table:
    """One table of all files."""
    single = all(plan.choice.single for plan in plans)
    first, choice, rows = plans[0].path, plans[0].choice, total_rows(plans)
    if rows is not None:
        check_room(first, float(rows) * len(choice.titles) * (4 if single else 8))
    gathering, dropped = Gathering(rows, choice, single), 0
    for plan in plans:
        before, end = gathering.rows, 0
        for part in parts(plan.open(), plan.choice, options.transform, options.missing, single, plan.block_rows):
            gathering.add(plan.path, part)
            end = part.end
        if gathering.rows == before and end:
            raise FileError(f"{plan.path}: no rows are left, for each lacks a value; choose fewer columns")
        dropped += end - (gathering.rows - before)
    values, weights, groups = gathering.finish(first)
    sources = tuple(plan.path for plan in plans)
    return Table(values, choice.titles, weights, groups, sources, notes_of(plans, dropped), dropped, plans[0].scales)


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
    paths : a path or a list of them: CSV, TSV (also .gz), Parquet, Arrow, Feather, NPY, NPZ, FCS, h5ad or an image; or a folder of
        such files, all of one format, which are read in the order of their names.
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
    options = options_of(
        columns=columns,
        weight_column=weight_column,
        group_column=group_column,
        transform=transform,
        compensate=compensate,
        missing=missing,
        key=key,
    )
    return _gathered(plans_of(paths, options), options)


def read_bags(paths: Any, *, group_column: str | None = None, **same: Any) -> dict[str, Table]:
    """Read bags by name: one a file, called by the file's name without suffix, or one a label of ``group_column``.

    All files must have the same columns. Other arguments are those of ``read``.
    """
    if group_column is not None:
        return _by_label(read(paths, group_column=group_column, **same))
    options = options_of(**same)
    plans = plans_of(paths, options)
    return dict(zip(_stems([plan.path for plan in plans]), (_gathered([plan], options) for plan in plans), strict=True))


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
    options = options_of(
        columns=columns, weight_column=weight_column, group_column=group_column, transform=transform, missing=missing
    )
    wanted = (
        None
        if options.columns is None
        else [*options.columns, *(name for name in (weight_column, group_column) if name is not None)]
    )
    source = FrameSource(frame, wanted)
    plan = Plan.of(source, choose(source, options.columns, options.weight, options.group), options)
    table = _gathered([plan], options)
    return replace(table, sources=())
