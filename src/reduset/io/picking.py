"""Some rows of files with all their columns, as they are stored: no transform, no choice of columns. O(n), a block at a time.

Cells of CSV and TSV are taken as text, so that no digit and no leading zero is lost; columns of Parquet, Arrow and ORC with their
types. Other files hold numbers, and text beside them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Indices
from reduset.io.arrow import ArrowReader, pyarrow
from reduset.io.delimited import MISSING, DelimitedReader
from reduset.io.folders import files_of
from reduset.io.paths import write_file
from reduset.io.reader import FLAG, NUMBER, NUMERIC, CodedLabels, FileReader, ReadOptions
from reduset.io.registry import open_file

BLOCK = 65536  # rows
SEPARATORS = {".csv": ",", ".tsv": "\t"}
WHOLE = re.compile(r"0|-?[1-9]\d*")
LONG = re.compile(r"[-+]?\d{16,}")  # whole numbers of which floating point would lose digits
PADDED = re.compile(r"[-+]?0\d")  # zeros before a number: it is a name
TRUE, FALSE = ("true", "1"), ("false", "0")


def pick_rows(paths: Any, rows: Indices, key: str | None = None, as_text: bool = False) -> tuple[Any, list[str]]:
    """An Arrow table of the rows of these numbers, ascending and counted from 0 over all files, and what there is to say of it.

    It has those columns that all files have. Text files give text if ``as_text`` and there are no others; else numbers where
    nothing is lost by it. Of an .h5ad file obs comes too.
    """
    arrow = pyarrow()
    sources = [open_file(path, ReadOptions(key=key, compensate=False)) for path in files_of(paths)]
    plain = as_text and all(isinstance(source, DelimitedReader) for source in sources)
    parts, notes = [], []
    before = 0
    for source in sources:
        try:
            found, count = _stored(source, rows - before, plain)
        except (arrow.ArrowException, NotImplementedError):  # of types for which Arrow has no way
            columns, count = _picked(source, rows - before)
            found = arrow.table({name: arrow.array(column) for name, column in columns.items()})
            notes.append(f"{source.path}: its columns could not be taken as they are, and are written as numbers and text")
        before += count
        parts.append(found)
    shared = [name for name in parts[0].column_names if all(name in part.column_names for part in parts)]
    columns = {name: _joined([part.column(name) for part in parts]) for name in shared}
    return arrow.table({name: _writable(each) if as_text else each for name, each in columns.items()}).unify_dictionaries(), notes


def is_text(table: Any) -> bool:
    """Whether all columns hold text."""
    return all(pyarrow().types.is_string(field.type) for field in table.schema)


def write_text(path: str, table: Any, suffix: str) -> None:
    """Write columns as CSV or TSV, with quotes only where a cell needs them; it appears whole or not at all."""

    def fill(stream: Any) -> None:
        text = io.TextIOWrapper(stream, "utf-8", newline="")
        lines = csv.writer(text, delimiter=SEPARATORS[suffix], lineterminator="\n")
        lines.writerow(table.column_names)
        for batch in table.to_batches():
            lines.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
        text.flush()
        text.detach()

    write_file(path, fill)


def _stored(source: FileReader, rows: Indices, plain: bool) -> tuple[Any, int]:
    """Those of one file, by their numbers in it, and how many rows it has."""
    arrow = pyarrow()
    if isinstance(source, DelimitedReader):
        batches, count = _chosen(source.text_batches(), rows)
        texts = arrow.Table.from_batches(batches)
        decimal = source.decimal
        columns = {name: _typed(texts.column(name), source.kinds[name], decimal, plain) for name in texts.column_names}
        return arrow.table(columns), count
    if isinstance(source, ArrowReader):
        batches, count = _chosen((batch for _, batch in source._batches(list(source.kinds), BLOCK, 0)), rows)
        return arrow.Table.from_batches(batches).replace_schema_metadata(None), count
    found, count = _picked(source, rows)
    return arrow.table({name: arrow.array(column) for name, column in found.items()}), count


def _chosen(batches: Iterator[Any], rows: Indices) -> tuple[list[Any], int]:
    """Of record batches the rows of these numbers, and how many there are."""
    found, first = [], 0
    for batch in batches:
        here = rows[(rows >= first) & (rows < first + batch.num_rows)] - first
        found.append(batch.take(pyarrow().array(here)))
        first += batch.num_rows
    return found, first


def _typed(column: Any, kind: str, decimal: str, plain: bool) -> Any:
    """Text as numbers or flags where it is that, and nothing is lost by it; as it is if ``plain``, but for decimal commas."""
    arrow, compute = pyarrow(), pyarrow(".compute")
    if kind == NUMBER and decimal == ",":
        column = compute.replace_substring(column, ",", ".")
    if plain:
        return column
    cells = compute.utf8_trim_whitespace(column)
    cells = compute.if_else(compute.is_in(cells, arrow.array(MISSING)), arrow.scalar(None, arrow.string()), cells)
    there = [cell for cell in cells.to_pylist() if cell is not None]
    if kind == FLAG and {cell.lower() for cell in there} <= {*TRUE, *FALSE}:
        return arrow.array([None if cell is None else cell.lower() in TRUE for cell in cells.to_pylist()], arrow.bool_())
    if kind != NUMBER or any(map(PADDED.match, there)):
        return column
    whole = bool(there) and all(map(WHOLE.fullmatch, there))
    for kept in (arrow.int64(), arrow.uint64()) if whole else () if any(map(LONG.fullmatch, there)) else (arrow.float64(),):
        try:
            return cells.cast(kept)
        except arrow.ArrowInvalid:  # too large for it
            continue
    return column


def _joined(columns: list[Any]) -> Any:
    """A column of several files; as text where their types have nothing in common."""
    arrow = pyarrow()
    tables = [arrow.table({"it": column}) for column in columns]
    try:
        return arrow.concat_tables(tables, promote_options="permissive").column("it")
    except (arrow.ArrowException, TypeError):
        return arrow.chunked_array([_told(column) for column in columns])


def _writable(column: Any) -> Any:
    """A column that CSV can hold: categories by their names, and what has no text of its own as Python tells it."""
    arrow, writer = pyarrow(), pyarrow(".csv")
    if arrow.types.is_dictionary(column.type):
        column = arrow.chunked_array([each.dictionary_decode() for each in column.chunks], column.type.value_type)
    try:
        writer.write_csv(arrow.table({"it": column.slice(0, 1)}), io.BytesIO())
    except (arrow.ArrowException, NotImplementedError):
        return _told(column)
    return column


def _told(column: Any) -> Any:
    return pyarrow().array([None if cell is None else str(cell) for cell in column.to_pylist()], pyarrow().string())


def _picked(source: FileReader, rows: Indices) -> tuple[dict[str, NDArray[Any]], int]:
    """Numbers as numbers, all else as text, empty where it is missing; and how many rows there are."""
    kinds = {**source.kinds, **source.aside}
    numbers = [name for name, kind in kinds.items() if kind in NUMERIC]
    others = [name for name, kind in kinds.items() if kind not in NUMERIC]
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in kinds}
    count = 0
    for block in source.blocks(numbers, others, BLOCK):
        here = rows[(rows >= block.first) & (rows < block.end)] - block.first
        count = block.end
        for name, values in zip(numbers, block.columns, strict=True):
            columns[name].append(np.asarray(values)[here])
        for name, labels in zip(others, block.labels, strict=True):
            columns[name].append(_texts(labels.rows(here)))
    return {name: np.concatenate(each) for name, each in columns.items() if each}, count


def _texts(labels: CodedLabels) -> NDArray[Any]:
    known: Sequence[str] = [*map(str, labels.categories), ""]  # the last for those that are missing, whose code is −1
    return np.array(known, object)[labels.codes]
