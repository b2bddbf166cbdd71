"""Files into tables: every format by its own reader, block by block, into one array that was allocated once.

The number of rows is known beforehand of all formats but CSV, TSV and Arrow streams.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reduset._types import PointsLike
from reduset.io.arrow import FrameReader
from reduset.io.choice import choose
from reduset.io.encoded import encoded, encoding_of
from reduset.io.guard import READ, Work
from reduset.io.identifiers import without_identifiers
from reduset.io.paths import path_text
from reduset.io.plans import FilePlan, ReadPlan, plan_of
from reduset.io.reader import ReadOptions, options_of, unique_names
from reduset.io.registry import open_file
from reduset.io.table import FileError, Table, listed


def _gathered(plan: ReadPlan, work: Work = READ) -> Table:
    """One table of all files, which has room beside what is done with it."""
    builder, looked_at = plan.builder(plan.rows, work), 0
    omitted = [np.empty(0, np.int64)]
    for file in plan.files:
        before, end = builder.rows, 0
        for chunk in plan.chunks(file):
            builder.add(file.path, chunk)
            if len(chunk) < chunk.end - end:
                omitted.append(np.setdiff1d(np.arange(end, chunk.end), chunk.numbers - 1, assume_unique=True) + looked_at)
            end = chunk.end
        if builder.rows == before and end:
            raise FileError(f"{file.path}: no rows are left, for each lacks a value; choose fewer columns")
        looked_at += end
    return replace(plan.table(builder, plan.files, looked_at), omitted=np.concatenate(omitted))


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
    encode: Any = None,
    identifiers: str = "keep",
) -> Table:
    """Read one file, or several with the same columns, as one table.

    Parameters
    ----------
    paths : a path or a list of them, of any format that is known by its suffix; or a folder of such files, all of one format,
        which are read in the order of their names.
    columns : names; None takes all that hold numbers, except those of weights and groups.
    weight_column : the column of weights.
    group_column : the column of labels.
    transform : None, "auto", "asinh:150", "logicle", "log", or a dict of columns to these. "auto" transforms fluorescence channels
        of FCS files by a logicle scale that is estimated from all files together, mass channels by asinh:5, and nothing else. None
        (or "none") leaves all values as they are in the file.
    compensate : whether to take out spillover by the matrix that an FCS file carries.
    missing : "refuse" names the first row with a missing value, "drop" leaves such rows out and counts them.
    key : which array of an .npz or .h5ad file ("X", "obsm/X_pca", "obs"); "events" for an FCS file's numbers as stored.
    encode : columns of categories and dates to make numbers of: "auto" for all that were chosen (dates as days since 1970-01-01,
        ordered categories by their places 0, 1, …, others of up to 50 categories as columns of 0 and 1, `city=Paris`);
        "city=onehot,grade=ordinal:low:mid:high,when=days" for some, in that order of categories if one is given; a dict of the
        same; or the ``encoding`` of a table, by which a category that it has not is refused. With "auto", text columns with more
        than 50 categories are omitted.
    identifiers : "keep" or "omit"
        Columns of whole numbers that rise or fall from row to row; both add a note. Columns that are named are always read.

    Raises
    ------
    FileError : in one line, for whatever is wrong with a file.
    """
    options = ReadOptions(columns, weight_column, group_column, transform, compensate, missing, key, encode, identifiers)
    return _gathered(plan_of(paths, options))


def read_for(work: Work, paths: Any, **same: Any) -> Table:
    """As `read`, refused before any row is read where there is no room for the table and for what is done with it."""
    return _gathered(plan_of(paths, options_of(**same)), work)


def read_bags(paths: Any, *, group_column: str | None = None, **same: Any) -> dict[str, Table]:
    """Read bags by name: one a file, called by the file's name without suffix, or one a label of ``group_column``.

    All files must have the same columns. Other arguments are those of ``read``.
    """
    if group_column is not None:
        return _by_label(read(paths, group_column=group_column, **same))
    options = options_of(**same)
    plan = plan_of(paths, options)
    stems = stems_of([file.path for file in plan.files])
    return dict(zip(stems, (_gathered(ReadPlan([file], plan.options)) for file in plan.files), strict=True))


def _by_label(table: Table) -> dict[str, Table]:
    labels, first, codes = np.unique(np.asarray(table.groups), return_index=True, return_inverse=True)
    bags = {}
    for code in np.argsort(first):  # in the order in which they appear
        rows = codes == code
        weights = None if table.weights is None else table.weights[rows]
        bags[str(labels[code])] = replace(table, values=table.values[rows], weights=weights, groups=None, omitted=None)
    return bags


def stems_of(paths: list[str]) -> list[str]:
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
    source = open_file(path_text(path), ReadOptions())
    if len(source.kinds) < 2:
        raise FileError(f"{source.path}: must have two columns, a sample and its group in each row, got {listed(source.kinds)}")
    names, labels = (source.texts(column) for column in list(source.kinds)[:2])
    return dict(zip(names, labels, strict=True))


def as_table(
    frame: PointsLike,
    *,
    columns: Any = None,
    weight_column: str | None = None,
    group_column: str | None = None,
    transform: Any = None,
    missing: str = "refuse",
    encode: Any = None,
    identifiers: str = "keep",
) -> Table:
    """A table from a pandas or polars frame (a lazy one too), or an Arrow table; arguments as in ``read``."""
    options = ReadOptions(columns, weight_column, group_column, transform, missing=missing, encode=encode, identifiers=identifiers)
    wanted = None
    if options.columns is not None:
        wanted = [*options.columns, *(name for name in (weight_column, group_column) if name is not None)]
    plain = FrameReader(frame, wanted)
    encoders, options = encoding_of([lambda: plain], options)
    source = encoded(lambda: plain, encoders)
    choice = choose(source, options)
    if options.columns is None:
        choice = without_identifiers(source, choice, identifiers == "omit")
    file = FilePlan.of(source, choice, options.transform)
    return replace(_gathered(ReadPlan([file], options)), sources=())
