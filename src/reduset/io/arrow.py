"""Parquet, Arrow and Feather, and frames in memory: columns by pyarrow, only those that were chosen, batch by batch."""

from __future__ import annotations

import json
import os
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from reduset.io.guard import need
from reduset.io.reader import FLAG, NUMBER, SINGLE, TEXT, Block, CodedLabels, FileReader, Format, Numbers, ReadOptions, encode
from reduset.io.table import FileError, refusing

PYARROW = ("pyarrow", "tables")  # with the extra that brings it
ROWS = 65536
A_DAY = {"d": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def pyarrow(part: str = "") -> Any:
    """pyarrow, or a part of it such as ".parquet"."""
    return need("this", f"pyarrow{part}", "tables")


def opened(path: str, mapped: bool = False) -> Any:
    """A file for pyarrow, mapped into memory where that is asked for; by its bytes, for a name may be no UTF-8."""
    arrow = pyarrow()
    return (arrow.memory_map if mapped else arrow.OSFile)(path if os.name == "nt" else os.fsencode(path))


def kind_of(kind: Any) -> str:
    """What a column of an Arrow type holds."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        return kind_of(kind.value_type)
    if types.is_float32(kind) or types.is_float16(kind):
        return SINGLE
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return NUMBER
    if types.is_boolean(kind):
        return FLAG
    return TEXT if types.is_string(kind) or types.is_large_string(kind) or "string" in str(kind) else str(kind)


def numbers(array: Any) -> Numbers:
    """A column as numbers, NaN where one is missing; not copied where nothing is."""
    arrow = pyarrow()
    types = arrow.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if types.is_date(array.type) or types.is_timestamp(array.type):
        return _days(array)
    if types.is_boolean(array.type) or types.is_decimal(array.type) or types.is_null(array.type):
        array = array.cast(arrow.float64())
    if array.null_count:
        single = types.is_float16(array.type) or types.is_float32(array.type)
        array = array.cast(arrow.float32() if single else arrow.float64(), safe=False).fill_null(float("nan"))
    return _plain(array)


def _days(array: Any) -> Numbers:
    """Dates or moments as days since 1970-01-01, by the clock of Greenwich where they have a zone."""
    arrow = pyarrow()
    date32 = arrow.types.is_date32(array.type)
    unit = "d" if date32 else "ms" if arrow.types.is_date64(array.type) else array.type.unit
    counts = array.cast(arrow.int32() if date32 else arrow.int64()).cast(arrow.float64(), safe=False).fill_null(float("nan"))
    return _plain(counts) / A_DAY[unit]


def _plain(array: Any) -> Numbers:
    """Numbers of which none is missing, not copied. Arrow's own way to NumPy imports pandas, which takes up to a second."""
    return np.from_dlpack(array)


def labels(array: Any) -> CodedLabels:
    """A column as labels."""
    types = pyarrow().types
    if types.is_floating(array.type):
        return encode(numbers(array))
    if not types.is_dictionary(array.type):
        try:
            array = array.dictionary_encode()
        except pyarrow().ArrowNotImplementedError:  # lists, structs, periods
            array = pyarrow().array([None if item is None else str(item) for item in array.to_pylist()]).dictionary_encode()
    categories = [None if item is None else item if type(item) is int else str(item) for item in array.dictionary.to_pylist()]
    codes = _plain(array.indices.cast(pyarrow().int64()).fill_null(-1))  # those of polars have no sign
    codes = codes if codes.flags.writeable else codes.copy()
    if None in categories:
        codes[codes == categories.index(None)] = -1
        categories = ["" if item is None else item for item in categories]
    return CodedLabels(codes, categories)


def block_of_batch(first: int, batch: Any, names: Sequence[str], coded: Sequence[str]) -> Block:
    """A block of a record batch that follows so many rows."""
    place = batch.schema.get_field_index
    found = [labels(batch.column(place(name))) for name in coded]
    return Block(first, [numbers(batch.column(place(name))) for name in names], found)


def _index_columns(schema: Any) -> list[str]:
    """The columns that hold the index of a pandas frame, as pandas tells of them: numbers of rows mostly, and no measurements."""
    try:
        told = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    except (ValueError, RecursionError):  # what pandas tells is no part of the table
        return []
    named = told.get("index_columns", []) if isinstance(told, dict) else []
    return [name for name in named if isinstance(name, str) and name in schema.names] if isinstance(named, list) else []


def _check_names(path: str, names: Iterable[str]) -> None:
    """Raise an error if two columns have the same name."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise FileError(f"{path}: two columns are named {twice!r}; rename one of them")


class ArrowReader(FileReader):
    """Whatever gives record batches of chosen columns."""

    may_number_rows = True

    def __init__(self, path: str, schema: Any, rows: int | None) -> None:
        _check_names(path, schema.names)
        if rows is not None and rows < 0:
            raise FileError(f"{path}: says it has {rows:,} rows; it is damaged")
        super().__init__(path, {field.name: kind_of(field.type) for field in schema}, rows)
        self.unasked = dict.fromkeys(_index_columns(schema), "the index of a frame")
        dictionaries = (field for field in schema if pyarrow().types.is_dictionary(field.type))
        self.ordered = frozenset(field.name for field in dictionaries if field.type.ordered)

    @abstractmethod
    def _batches(self, names: list[str], rows: int, start: int) -> Iterable[tuple[int, Any]]:
        """Record batches of these columns, about ``rows`` rows each, with the rows before each; those before ``start`` may lack."""

    def _integers(self, name: str) -> Iterator[Numbers]:
        for _, batch in self._batches([name], ROWS, 0):  # of columns with missing values, which blocks have as floats
            column = batch.column(batch.schema.get_field_index(name))
            if not pyarrow().types.is_integer(column.type):
                return
            yield _plain(column.drop_null())

    def _blocks(self, names: Sequence[str], labels: Sequence[str], rows: int, start: int) -> Iterator[Block]:
        wanted = list(dict.fromkeys([*names, *labels]))
        for first, batch in self._batches(wanted, rows, start):
            if first + batch.num_rows > start:
                yield block_of_batch(first, batch, names, labels)


def counted(batches: Iterable[Any], first: int = 0) -> Iterator[tuple[int, Any]]:
    """Each with the number of rows before it."""
    for batch in batches:
        yield first, batch
        first += batch.num_rows


def slices(batch: Any, rows: int) -> Iterator[Any]:
    """A large batch in pieces of so many rows, not copied."""
    return (batch.slice(at, rows) for at in range(0, batch.num_rows, rows))


class ParquetReader(ArrowReader):
    """Parquet; the pages of columns that were not chosen are never read."""

    def __init__(self, path: str, _: ReadOptions) -> None:
        with pyarrow(".parquet").ParquetFile(opened(path)) as file:
            super().__init__(path, file.schema_arrow, file.metadata.num_rows)

    def _batches(self, names: list[str], rows: int, start: int) -> Iterator[tuple[int, Any]]:
        # through a small buffer, and by one thread: else whole groups of rows lie in memory, which may be all rows
        with pyarrow(".parquet").ParquetFile(opened(self.path), pre_buffer=False, buffer_size=1 << 16) as file:
            first = 0
            for group in range(file.metadata.num_row_groups):  # one by one, so that batches end with them and they can be skipped
                count = file.metadata.row_group(group).num_rows
                if count < 0:
                    raise FileError(f"{self.path}: says it has {count:,} rows in group {group}; it is damaged")
                if first + count > start:
                    found = file.iter_batches(batch_size=rows, row_groups=[group], columns=names, use_threads=False)
                    yield from counted(found, first)
                first += count


class FeatherReader(ArrowReader):
    """Arrow's own files: Feather (the same with another suffix), and streams."""

    def __init__(self, path: str, _: ReadOptions) -> None:
        with open(path, "rb") as stream:
            self._streamed = not stream.read(6).startswith(b"ARROW1")
        with self._open(path, None) as reader:
            rows = None if self._streamed or not hasattr(reader, "count_rows") else reader.count_rows()
            super().__init__(path, reader.schema, rows)

    def _open(self, path: str, fields: list[int] | None) -> Any:
        ipc = pyarrow(".ipc")
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        if self._streamed:
            return ipc.open_stream(opened(path), options=options)
        return ipc.open_file(opened(path, mapped=True), options=options)  # of what is not packed, only the rows at hand are read

    def _batches(self, names: list[str], rows: int, start: int) -> Iterator[tuple[int, Any]]:
        places = list(self.kinds)
        # where all are wanted none is named: pyarrow copies what is chosen by name, and else leaves it in the file until it is used
        whole = self._whole_batches([places.index(name) for name in names] if len(names) < len(places) else None)
        return counted(piece for batch in whole for piece in slices(_sound(batch), rows))

    def _whole_batches(self, fields: list[int] | None) -> Iterator[Any]:
        with self._open(self.path, fields) as reader:
            if self._streamed:
                yield from reader
                return
            count = reader.num_record_batches
        for number in range(count):
            with self._open(self.path, fields) as reader:  # anew, so that what was read before does not stay in memory
                batch = reader.get_batch(number)
            yield batch


def _sound(batch: Any) -> Any:
    """A record batch whose texts and codes lie within it: Arrow believes what a file says, and would read beyond its end."""
    batch.validate(full=True)
    return batch


class FrameReader(ArrowReader):
    """A frame in memory: pandas, polars (lazy too) and Arrow objects, through narwhals."""

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
            seen = nw.from_native(frame)
        except (TypeError, AttributeError, arrow.ArrowInvalid) as error:  # a single column, say
            raise TypeError(
                f"frame must be a pandas, polars or Arrow table, got {type(frame).__name__}; files go to read"
            ) from error
        known = seen.collect_schema().names()
        if wanted is not None and set(wanted) <= set(known):
            seen = seen.select([column for column in known if column in wanted])
        if isinstance(seen, nw.LazyFrame):
            seen = seen.collect()
        with refusing(name, self.title):
            self._table = self._converted(name, seen.rename({each: str(each) for each in known if not isinstance(each, str)}))
            super().__init__(name, self._table.schema, self._table.num_rows)
        self.unnoted = frozenset(self.unasked)  # an index is no column in memory

    @staticmethod
    def _converted(name: str, frame: Any) -> Any:
        """The frame as an Arrow table; an error names a column of several types."""
        try:
            return frame.to_arrow()
        except pyarrow().ArrowException as error:
            found = re.search(r"Conversion failed for column (.*) with type (\w+)", str(error))
            if found is None:
                raise
            raise FileError(
                f"{name}: column {found[1]!r} must hold values of one type, got {found[2]} ({str(error.args[0])[:80]}); "
                "convert it, or leave it out"
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
        write=_write_feather,
        written=(".feather", ".arrow"),
    ),
)
