"""Small files of every format, written by hand or by other libraries than those that read them."""

from __future__ import annotations

import struct

import h5py
import numpy as np


def write_fcs(
    path, events, names, *, kind="F", order="<", bits=None, ranges=None, version="FCS3.0", extra=None, total=None, tail=b""
):
    """An FCS file from the standard: HEADER, TEXT, DATA. ``extra`` are further keywords, or others in place of those made here."""
    events = np.asarray(events)
    bits = [{"F": 32, "D": 64, "I": 16}[kind]] * len(names) if bits is None else bits
    ranges = [1 << min(width, 40) for width in bits] if ranges is None else ranges
    cells = []
    for row in events.tolist():
        for value, width in zip(row, bits, strict=True):
            if kind == "I":
                cells.append(int(value).to_bytes(width // 8, "little" if order == "<" else "big"))
            else:
                cells.append(struct.pack(order + {"F": "f", "D": "d"}[kind], value))
    data = b"".join(cells)
    text = {
        "$BYTEORD": "1,2,3,4" if order == "<" else "4,3,2,1",
        "$DATATYPE": kind,
        "$MODE": "L",
        "$NEXTDATA": "0",
        "$PAR": str(len(names)),
        "$TOT": str(len(events) if total is None else total),
    }
    for n, (name, width, top) in enumerate(zip(names, bits, ranges, strict=True), 1):
        text |= {f"$P{n}N": name, f"$P{n}B": str(width), f"$P{n}R": str(top), f"$P{n}E": "0,0"}
    text |= extra or {}

    def segment(start):
        places = {"$BEGINDATA": f"{start:08d}", "$ENDDATA": f"{start + len(data) - 1:08d}"} if version != "FCS2.0" else {}
        return ("|" + "|".join(f"{key}|{value}" for key, value in (places | text).items()) + "|").encode()

    start = 58 + len(segment(0))
    header = f"{version}    {58:8d}{start - 1:8d}{start:8d}{start + len(data) - 1:8d}{0:8d}{0:8d}".encode()
    path.write_bytes(header + segment(start) + data + tail)
    return path


def write_h5ad(path, X, genes, obs, obsm=None, categories=None, sparse=None):
    """An AnnData file by hand: X dense, or sparse by "csr" or "csc"; obs of plain columns and categories."""
    with h5py.File(path, "w") as file:
        if sparse is None:
            file["X"] = X
        else:
            group = file.create_group("X")
            group.attrs["encoding-type"] = f"{sparse}_matrix"
            group.attrs["shape"] = np.array(X.shape)
            table = X if sparse == "csr" else X.T
            rows, columns = np.nonzero(table)
            group["data"], group["indices"] = table[rows, columns], columns.astype(np.int32)
            group["indptr"] = np.append(0, np.cumsum(np.bincount(rows, minlength=len(table)))).astype(np.int32)
        for name, index in (("obs", [f"cell{k}" for k in range(len(X))]), ("var", genes)):
            group = file.create_group(name)
            group.attrs["_index"] = "names"
            group["names"] = np.array(index, dtype=h5py.string_dtype())
        for name, column in obs.items():
            file["obs"][name] = column
        for name, (codes, labels) in (categories or {}).items():
            group = file["obs"].create_group(name)
            group.attrs["encoding-type"] = "categorical"
            group["codes"] = np.array(codes, np.int8)
            group["categories"] = np.array(labels, dtype=h5py.string_dtype())
        for name, array in (obsm or {}).items():
            file[f"obsm/{name}"] = array
    return path
