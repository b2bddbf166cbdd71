"""Some rows of files with all their columns as stored: no transform, no choice of columns. O(n), one block at a time.

Cells of CSV and TSV are taken as text, so that no digit and no leading zero is lost; columns of Parquet, Arrow and ORC with their
types. Other files yield numbers and text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reduset._types import Indices
from reduset.io.arrow import ArrowReader, pyarrow
from reduset.io.delimited import MISSING, DelimitedReader
from reduset.io.reader import FLAG, NUMBER, NUMERIC, ROWS, FileReader, ReadOptions
from reduset.io.registry import files_of, open_file

WHOLE = re.compile(r"0|-?[1-9]\d*")
LONG = re.compile(r"[-+]?\d{16,}")  # integers that may lose digits in floating point
PADDED = re.compile(r"[-+]?0\d")  # a leading zero belongs to a name
TRUE, FALSE = ("true", "1"), ("false", "0")


def pick_rows(paths: Any, rows: Indices, key: str | None = None, as_text: bool = False) -> tuple[Any, list[str]]:
    """An Arrow table of the rows with these ascending numbers, from 0 over all files, and notes.

    It has the columns that all files have, and for .h5ad files also the columns of obs. With ``as_text``, text files without other
    files give text. Otherwise their cells become numbers if they lose nothing.
    """
    arrow = pyarrow()
    sources = [open_file(path, ReadOptions(key=key, compensate=False)) for path in files_of(paths)]
    plain = as_text and all(isinstance(source, DelimitedReader) for source in sources)
    parts, notes = [], []
    before = 0
    for source in sources:
        try:
            part, count = _stored(source, rows - before, plain)
        except (arrow.ArrowException, NotImplementedError):  # types that Arrow cannot handle
            part, count = _converted(source, rows - before)
            notes.append(f"{source.path}: its columns could not be taken as they are, and are written as numbers and text")
        before += count
        parts.append(part)
    shared = [name for name in parts[0].column_names if all(name in part.column_names for part in parts)]
    columns = {name: _joined([part.column(name) for part in parts]) for name in shared}
    return arrow.table(
        {name: _writable(column) if as_text else column for name, column in columns.items()}
    ).unify_dictionaries(), notes


def is_text(table: Any) -> bool:
    """Whether all columns hold text."""
    return all(pyarrow().types.is_string(field.type) for field in table.schema)


def _stored(source: FileReader, rows: Indices, plain: bool) -> tuple[Any, int]:
    """The rows of a file by their numbers in it, and the number of all its rows."""
    arrow = pyarrow()
    if isinstance(source, DelimitedReader):
        texts, count = _chosen(source.text_batches(), rows)
        return arrow.table(
            {name: _typed(texts.column(name), source.kinds[name], source.decimal, plain) for name in texts.column_names}
        ), count
    if isinstance(source, ArrowReader):
        table, count = _chosen((batch for _, batch in source._batches(list(source.kinds), ROWS, 0)), rows)
        return table.replace_schema_metadata(None), count
    return _converted(source, rows)


def _chosen(batches: Iterable[Any], rows: Indices) -> tuple[Any, int]:
    """A table of the rows of record batches with these numbers, and the number of all rows."""
    arrow = pyarrow()
    parts, first = [], 0
    for batch in batches:
        parts.append(batch.take(arrow.array(rows[(rows >= first) & (rows < first + batch.num_rows)] - first)))
        first += batch.num_rows
    return arrow.Table.from_batches(parts), first


def _typed(column: Any, kind: str, decimal: str, plain: bool) -> Any:
    """Text as numbers or flags if nothing is lost; as stored if ``plain``, except for decimal commas."""
    arrow, compute = pyarrow(), pyarrow(".compute")
    if kind == NUMBER and decimal == ",":
        column = compute.replace_substring(column, ",", ".")
    if plain:
        return column
    cells = compute.utf8_trim_whitespace(column)
    cells = compute.if_else(compute.is_in(cells, arrow.array(MISSING)), arrow.scalar(None, arrow.string()), cells)
    present = [cell for cell in cells.to_pylist() if cell is not None]
    if kind == FLAG and {cell.lower() for cell in present} <= {*TRUE, *FALSE}:
        return arrow.array([None if cell is None else cell.lower() in TRUE for cell in cells.to_pylist()], arrow.bool_())
    if kind != NUMBER or any(map(PADDED.match, present)):
        return column
    types = [arrow.float64()]
    if present and all(map(WHOLE.fullmatch, present)):
        types = [arrow.int64(), arrow.uint64()]
    elif any(map(LONG.fullmatch, present)):
        types = []
    for numeric in types:
        try:
            return cells.cast(numeric)
        except arrow.ArrowInvalid:  # out of range
            continue
    return column


def _joined(columns: list[Any]) -> Any:
    """A column of several files; as text if their types have nothing in common."""
    arrow = pyarrow()
    tables = [arrow.table({"it": column}) for column in columns]
    try:
        return arrow.concat_tables(tables, promote_options="permissive").column("it")
    except (arrow.ArrowException, TypeError):
        return arrow.chunked_array([_as_text(column) for column in columns])


def _writable(column: Any) -> Any:
    """A column that CSV can hold: categories by their names, and other types without a text form by Python's."""
    arrow, writer = pyarrow(), pyarrow(".csv")
    if arrow.types.is_dictionary(column.type):
        column = arrow.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    try:
        writer.write_csv(arrow.table({"it": column.slice(0, 1)}), io.BytesIO())
    except (arrow.ArrowException, NotImplementedError):
        return _as_text(column)
    return column


def _as_text(column: Any) -> Any:
    return pyarrow().array([None if cell is None else str(cell) for cell in column.to_pylist()], pyarrow().string())


def _converted(source: FileReader, rows: Indices) -> tuple[Any, int]:
    """An Arrow table of numbers and, for all other columns, text ("" for missing values); and the number of all rows."""
    kinds = {**source.kinds, **source.aside}
    numeric = [name for name, kind in kinds.items() if kind in NUMERIC]
    others = [name for name, kind in kinds.items() if kind not in NUMERIC]
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in kinds}
    count = 0
    for block in source.blocks(numeric, others, ROWS):
        here = rows[(rows >= block.first) & (rows < block.end)] - block.first
        count = block.end
        for name, values in zip(numeric, block.columns, strict=True):
            parts[name].append(np.asarray(values)[here])
        for name, labels in zip(others, block.labels, strict=True):
            texts = np.array([*map(str, labels.categories), ""], object)  # the last one has code -1
            parts[name].append(texts[labels.codes[here]])
    arrow = pyarrow()
    return arrow.table({name: arrow.array(np.concatenate(arrays)) for name, arrays in parts.items() if arrays}), count
