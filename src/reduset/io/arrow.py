"""Parquet, Arrow, Feather and ORC files, and frames in memory, by pyarrow: chosen columns only, batch by batch.

Memory holds one batch of the chosen columns; of an ORC file one stripe, which its writer cut (usually 64 MiB).
"""

from __future__ import annotations

import json
import os
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from reduset.io.guard import head_of, need
from reduset.io.reader import FLAG, NUMBER, ROWS, SINGLE, TEXT, Block, CodedLabels, FileReader, Format, Numbers, ReadOptions, encode
from reduset.io.remote import stream_of, url_of
from reduset.io.table import FileError, refusing

PYARROW = ("pyarrow", "tables")  # and its extra
UNITS_PER_DAY = {"d": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def pyarrow(part: str = "") -> Any:
    """pyarrow, or a part of it such as ".parquet"."""
    return need("this", f"pyarrow{part}", "tables")


def opened(path: str, mapped: bool = False) -> Any:
    """A file for pyarrow, optionally mapped into memory. The path is passed as bytes, since it may not be UTF-8."""
    arrow = pyarrow()
    if url_of(path):
        return arrow.PythonFile(stream_of(path), mode="r")
    return (arrow.memory_map if mapped else arrow.OSFile)(path if os.name == "nt" else os.fsencode(path))


def kind_of(kind: Any) -> str:
    """The type of a column of an Arrow type."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if types.is_float32(kind) or types.is_float16(kind):
        return SINGLE
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return NUMBER
    if types.is_boolean(kind):
        return FLAG
    return TEXT if "string" in str(kind) else str(kind)


def numbers(array: Any) -> Numbers:
    """A column as numbers, NaN for missing values. It is not copied if it has none."""
    arrow = pyarrow()
    types = arrow.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_date(array.type) or types.is_timestamp(array.type):
        return _days(array)
    if types.is_boolean(array.type) or types.is_decimal(array.type) or types.is_null(array.type):
        array = array.cast(arrow.float64())
    if array.null_count:
        is_single = types.is_float16(array.type) or types.is_float32(array.type)
        array = array.cast(arrow.float32() if is_single else arrow.float64(), safe=False).fill_null(float("nan"))
    return _plain(array)


def _days(array: Any) -> Numbers:
    """Dates or times as days since 1970-01-01, in UTC if they have a time zone."""
    arrow = pyarrow()
    is_date32 = arrow.types.is_date32(array.type)
    unit = "d" if is_date32 else "ms" if arrow.types.is_date64(array.type) else array.type.unit
    counts = array.cast(arrow.int32() if is_date32 else arrow.int64()).cast(arrow.float64(), safe=False).fill_null(float("nan"))
    return _plain(counts) / UNITS_PER_DAY[unit]


def _plain(array: Any) -> Numbers:
    """Numbers without missing values, not copied. Arrow's own conversion imports pandas, which takes up to a second."""
    return np.from_dlpack(array)


def labels(array: Any) -> CodedLabels:
    """A column as labels."""
    arrow = pyarrow()
    if arrow.types.is_floating(array.type):
        return encode(numbers(array))
    if not arrow.types.is_dictionary(array.type):
        try:
            array = array.dictionary_encode()
        except arrow.ArrowNotImplementedError:  # lists, structs, periods
            array = arrow.array([None if item is None else str(item) for item in array.to_pylist()]).dictionary_encode()
    categories = [None if item is None else item if type(item) is int else str(item) for item in array.dictionary.to_pylist()]
    codes = _plain(array.indices.cast(arrow.int64()).fill_null(-1))  # polars has unsigned codes
    if None in categories:
        codes = np.where(codes == categories.index(None), -1, codes)
        categories = ["" if item is None else item for item in categories]
    return CodedLabels(codes, categories)


def block_of_batch(first: int, batch: Any, names: Sequence[str], label_names: Sequence[str]) -> Block:
    """A block from a record batch that follows ``first`` rows."""
    column = {name: batch.column(batch.schema.get_field_index(name)) for name in (*names, *label_names)}
    return Block(first, [numbers(column[name]) for name in names], [labels(column[name]) for name in label_names])


def _index_columns(schema: Any) -> list[str]:
    """The index columns of a pandas frame by its metadata. They mostly hold row numbers."""
    try:
        metadata = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    except (ValueError, RecursionError):  # damaged metadata of pandas do not matter for the table
        return []
    names = metadata.get("index_columns", []) if isinstance(metadata, dict) else []
    return [name for name in names if isinstance(name, str) and name in schema.names] if isinstance(names, list) else []


def _check_names(path: str, names: Iterable[str]) -> None:
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise FileError(f"{path}: two columns are named {repeated!r}; rename one of them")


class ArrowReader(FileReader):
    """Anything that yields record batches of chosen columns."""

    may_number_rows = True

    def __init__(self, path: str, schema: Any, rows: int | None) -> None:
        _check_names(path, schema.names)
        if rows is not None and rows < 0:
            raise FileError(f"{path}: states {rows:,} rows; it is damaged")
        super().__init__(path, {field.name: kind_of(field.type) for field in schema}, rows)
        self.unasked = dict.fromkeys(_index_columns(schema), "the index of a frame")
        dictionaries = (field for field in schema if pyarrow().types.is_dictionary(field.type))
        self.ordered = frozenset(field.name for field in dictionaries if field.type.ordered)

    @abstractmethod
    def _batches(self, names: list[str], rows: int, start: int) -> Iterable[tuple[int, Any]]:
        """Record batches of about ``rows`` rows with the number of rows before each; those before ``start`` may be skipped."""

    def _integers(self, name: str) -> Iterator[Numbers]:
        for _, batch in self._batches([name], ROWS, 0):  # blocks hold integers with missing values as floats
            column = batch.column(batch.schema.get_field_index(name))
            if not pyarrow().types.is_integer(column.type):
                return
            yield _plain(column.drop_null())

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        for first, batch in self._batches(list(dict.fromkeys([*names, *labels])), rows, start):
            if first + batch.num_rows > start:
                yield block_of_batch(first, batch, names, labels)


def counted(batches: Iterable[Any], first: int = 0) -> Iterator[tuple[int, Any]]:
    """Batches with the number of rows before each."""
    for batch in batches:
        yield first, batch
        first += batch.num_rows


def _slices(batches: Iterable[Any], rows: int) -> Iterator[tuple[int, Any]]:
    """Large batches in slices of ``rows`` rows, not copied, with the number of rows before each."""
    return counted(batch.slice(at, rows) for batch in batches for at in range(0, batch.num_rows, rows))


class ParquetReader(ArrowReader):
    """A Parquet file. Pages of other columns are not read."""

    def __init__(self, path: str, _: ReadOptions) -> None:
        with pyarrow(".parquet").ParquetFile(opened(path)) as file:
            super().__init__(path, file.schema_arrow, file.metadata.num_rows)
            lengths = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
            self.cuts = tuple(accumulate(lengths[:-1]))

    def _batches(self, names: list[str], rows: int, start: int) -> Iterator[tuple[int, Any]]:
        # A small buffer and one thread: otherwise whole row groups, possibly all rows, are in memory.
        with pyarrow(".parquet").ParquetFile(opened(self.path), pre_buffer=False, buffer_size=1 << 16) as file:
            first = 0
            for group in range(file.metadata.num_row_groups):  # one by one, so that batches end with them and they can be skipped
                count = file.metadata.row_group(group).num_rows
                if count < 0:
                    raise FileError(f"{self.path}: states {count:,} rows in group {group}; it is damaged")
                if first + count > start:
                    batches = file.iter_batches(batch_size=rows, row_groups=[group], columns=names, use_threads=False)
                    yield from counted(batches, first)
                first += count


class FeatherReader(ArrowReader):
    """An Arrow file (Feather is the same with another suffix) or stream."""

    def __init__(self, path: str, _: ReadOptions) -> None:
        self._is_stream = not head_of(path).startswith(b"ARROW1")
        with self._open(path, None) as reader:
            rows = None if self._is_stream or not hasattr(reader, "count_rows") else reader.count_rows()
            super().__init__(path, reader.schema, rows)

    def _open(self, path: str, fields: list[int] | None) -> Any:
        ipc = pyarrow(".ipc")
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        if self._is_stream:
            return ipc.open_stream(opened(path), options=options)
        return ipc.open_file(opened(path, mapped=True), options=options)

    def _batches(self, names: list[str], rows: int, start: int) -> Iterator[tuple[int, Any]]:
        columns = list(self.kinds)
        # pyarrow copies columns chosen by name; if all are chosen, it leaves them in the file until they are used
        fields = [columns.index(name) for name in names] if len(names) < len(columns) else None
        return _slices(map(_validated, self._whole_batches(fields)), rows)

    def _whole_batches(self, fields: list[int] | None) -> Iterator[Any]:
        with self._open(self.path, fields) as reader:
            if self._is_stream:
                yield from reader
                return
            count = reader.num_record_batches
        for number in range(count):
            with self._open(self.path, fields) as reader:  # opened anew, so that earlier batches do not stay in memory
                batch = reader.get_batch(number)
            yield batch


def _validated(batch: Any) -> Any:
    """A record batch after a check of its offsets and codes. Arrow itself trusts the file and would read beyond its end."""
    batch.validate(full=True)
    return batch


class OrcReader(ArrowReader):
    """An ORC file."""

    def __init__(self, path: str, _: ReadOptions) -> None:
        file = pyarrow(".orc").ORCFile(opened(path))
        super().__init__(path, file.schema, file.nrows)

    def _batches(self, names: list[str], rows: int, start: int) -> Iterator[tuple[int, Any]]:
        reader = pyarrow(".orc").ORCFile
        # opened anew for each stripe, because a reader keeps earlier stripes in memory
        return _slices(
            (reader(opened(self.path)).read_stripe(number, names) for number in range(reader(opened(self.path)).nstripes)), rows
        )


class FrameReader(ArrowReader):
    """A frame in memory: pandas, polars (also lazy) and Arrow objects, through narwhals."""

    title = "a frame"
    first_row = 0
    drop_rows = "reduset.io.as_table(frame, missing='drop')"

    def __init__(self, frame: Any, wanted: Sequence[str] | None) -> None:
        nw, arrow = (need("reading frames", library, "tables") for library in ("narwhals", "pyarrow"))
        name = f"{type(frame).__module__.split('.')[0]} {type(frame).__name__}"
        try:
            if hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "columns"):
                frame = arrow.table(frame)
            elif isinstance(frame, arrow.RecordBatch):
                frame = arrow.Table.from_batches([frame])
            if not hasattr(frame, "collect"):  # names of a lazy frame are expensive, and unique
                _check_names(name, map(str, frame.column_names if isinstance(frame, arrow.Table) else frame.columns))
            selected = nw.from_native(frame)
        except (TypeError, AttributeError, arrow.ArrowInvalid) as error:  # a single column, for example
            raise TypeError(
                f"frame must be a pandas, polars or Arrow table, got {type(frame).__name__}; use read for files"
            ) from error
        known = selected.collect_schema().names()
        if wanted is not None and set(wanted) <= set(known):
            selected = selected.select([column for column in known if column in wanted])
        if isinstance(selected, nw.LazyFrame):
            selected = selected.collect()
        with refusing(name, self.title):
            self._table = self._converted(
                name, selected.rename({column: str(column) for column in known if not isinstance(column, str)})
            )
            super().__init__(name, self._table.schema, self._table.num_rows)
        self.unnoted = frozenset(self.unasked)  # the index of a frame in memory needs no note

    @staticmethod
    def _converted(name: str, frame: Any) -> Any:
        """The frame as an Arrow table. The error for a column of several types names it."""
        try:
            return frame.to_arrow()
        except pyarrow().ArrowException as error:
            failed = re.search(r"Conversion failed for column (.*) with type (\w+)", str(error))
            if failed is None:
                raise
            raise FileError(
                f"{name}: column {failed[1]!r} must hold values of one type, got {failed[2]} ({str(error.args[0])[:80]}); "
                "convert or drop it"
            ) from error

    def _batches(self, names: list[str], rows: int, start: int) -> Iterable[tuple[int, Any]]:
        return counted(self._table.select(names).to_batches(max_chunksize=rows))


def _write_parquet(stream: Any, table: Any) -> None:
    pyarrow(".parquet").write_table(table, stream, compression="zstd")


def _write_feather(stream: Any, table: Any) -> None:
    with pyarrow(".ipc").new_file(stream, table.schema) as writer:
        writer.write_table(table)


FORMATS = (
    Format(
        "Parquet",
        (".parquet", ".pq"),
        ParquetReader,
        magic=(b"PAR1",),
        needs=PYARROW,
        remote=True,
        nested=True,
        write=_write_parquet,
        written=(".parquet",),
    ),
    Format(
        "Arrow or Feather",
        (".feather", ".arrow", ".ipc", ".arrows"),
        FeatherReader,
        magic=(b"ARROW1", b"\xff\xff\xff\xff"),
        needs=PYARROW,
        remote=True,
        write=_write_feather,
        written=(".feather", ".arrow"),
    ),
    # three letters may also begin a name, so they do not identify the format
    Format("ORC", (".orc",), OrcReader, magic=(b"ORC",), sure=False, needs=PYARROW, remote=True, nested=True),
)
