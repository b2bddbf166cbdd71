"""A cover as a Parquet file: a row of the table for each row of the data, and the other fields as metadata.

The columns are `row`, `assignment` (the row of the nearest centre), `distance` and `kept`. Centres also have `position` (in
``start`` followed by ``indices``), `selected` (their distance when they were selected) and `point` (their coordinates).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reduset.io import FileError, check_room, need, one_line, write_file

KEY, VERSION = b"reduset.Cover", 1
SINGLE_FIELDS = ("radius", "spacing", "metric", "method")
COLUMNS = ("row", "assignment", "distance", "kept", "position", "selected", "point")
T = TypeVar("T")


def write_rows_of_cover(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Write the fields of a cover, atomically."""
    arrow, parquet = need("writing Parquet", "pyarrow", "tables"), need("writing Parquet", "pyarrow.parquet", "tables")
    centres, points = np.concatenate([values["start"], values["indices"]]), np.ascontiguousarray(values["points"])
    if len(np.unique(centres)) < len(centres) or (centres < 0).any():
        raise ValueError("a cover is saved as Parquet only if its centres are different rows of the data; save it as .npz")
    points = points if points.dtype == np.float64 else points.astype(np.float32)
    n, m, d = len(values["assignments"]), len(centres), points.shape[1]
    own, position, selected = np.zeros(n, bool), np.full(n, -1), np.full(n, np.nan)
    own[centres], position[centres], selected[values["indices"]] = True, np.arange(m), values["distances"]
    offsets = np.concatenate([[0], np.cumsum(own)]) * d
    flat = points[np.argsort(centres)].reshape(-1)
    lists = arrow.LargeListArray.from_arrays(arrow.array(offsets), arrow.array(flat), mask=arrow.array(~own))
    assignments = values["assignments"]
    nearest = arrow.array(centres[assignments], mask=assignments < 0)
    columns = [
        arrow.array(np.arange(n)),
        nearest,
        arrow.array(values["assignment_distances"]),
        arrow.array(own),
        arrow.array(position, mask=~own),
        arrow.array(selected, mask=~own),
        lists,
    ]
    metadata = {name: values[name] for name in SINGLE_FIELDS} | {"version": VERSION, "start": len(values["start"])}
    table = arrow.table(columns, names=list(COLUMNS), metadata={KEY: json.dumps(metadata).encode()})
    write_file(os.fspath(path), lambda stream: parquet.write_table(table, stream))


def read_rows_of_cover(path: str | os.PathLike[str], build: Callable[[dict[str, Any], dict[str, NDArray[Any]]], T]) -> T:
    """The object made from the fields of a file by ``build(single fields, arrays)``, which checks them."""
    parquet, path = need("reading Parquet", "pyarrow.parquet", "tables"), os.fspath(path)
    try:
        with parquet.ParquetFile(path) as file:
            metadata = json.loads((file.schema_arrow.metadata or {}).get(KEY, b"null"))
            if not isinstance(metadata, dict) or metadata.get("version") != VERSION:
                raise ValueError(f"it has no entry {KEY.decode()!r} of version {VERSION}, which Cover.save writes")
            check_room(path, 8.0 * len(COLUMNS) * file.metadata.num_rows, "its rows")
            table = file.read(columns=list(COLUMNS))
        return build({name: metadata[name] for name in SINGLE_FIELDS}, _arrays(table, metadata["start"]))
    except FileError:
        raise
    except Exception as error:  # a damaged file can raise anything in the libraries that read it
        raise FileError(f"{path}: describes no cover ({one_line(error)})") from error


def _arrays(table: Any, start: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a cover from the columns of the table."""
    column = {name: table.column(name).combine_chunks() for name in COLUMNS}
    n = len(table)
    own = np.asarray(column["kept"].to_numpy(zero_copy_only=False), bool)
    centres = np.flatnonzero(own)
    position = np.asarray(column["position"].drop_null().to_numpy(zero_copy_only=False))
    if isinstance(start, bool) or not isinstance(start, int) or not 0 <= start <= len(centres):
        raise ValueError(f"start must be a number of centres, got {start!r}")
    if not np.array_equal(np.sort(position), np.arange(len(centres))):
        raise ValueError("position must number the kept rows")
    order = np.argsort(position)
    place = np.full(n + 1, -1)
    place[centres] = position
    nearest = np.asarray(column["assignment"].fill_null(n).to_numpy(zero_copy_only=False))
    if ((nearest < 0) | (nearest > n)).any() or not np.array_equal(column["row"].to_numpy(), np.arange(n)):
        raise ValueError("row and assignment must be row numbers")
    points = np.asarray(column["point"].drop_null().flatten().to_numpy(zero_copy_only=False)).reshape(len(centres), -1)
    selected = np.asarray(column["selected"].to_numpy(zero_copy_only=False), np.float64)[centres][order]
    return {
        "indices": centres[order][start:].astype(np.float64),
        "start": centres[order][:start].astype(np.float64),
        "distances": selected[start:],
        "assignments": place[nearest].astype(np.float64),
        "assignment_distances": np.asarray(column["distance"].to_numpy(zero_copy_only=False), np.float64),
        "points": points[order],
    }
