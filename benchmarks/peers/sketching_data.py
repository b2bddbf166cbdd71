"""Data of the comparison of sketches: cytometry, single cells, and simulated cells with rare types, each with labels.

- `cyto_itn15`: fifteen real blood samples, 150,000 events in all; without the time, log of fluorescence, scatter as stored.
- `fcs_*`: three real FCS files with at least 10,000 events, asinh(x / 5) of fluorescence, scatter as stored.
- `pbmc68k`: the 700 cells that come with scanpy, 50 principal components, labelled by its authors (`bulk_labels`).
- `simulated`: a million cells of 20 types in 50 components. Proportions fall geometrically from 30 % to 0.05 %. A type has a
  centre, three factors (one uniform, two of Student's t with 5 degrees of freedom) along its own directions, and normal noise in
  every component. Centres are drawn in five lineages, with a spread that falls as 1/j over the components j, and are
  scaled until the centre of the median type is `TOUCHING` standard deviations from the nearest other one, along the line that
  joins them.
- `rare_50` and `rare_10`: 200,000 of the same in 50 and in 10 components, with planted types of 1, 0.5 and 0.1 % of the rows, each
  `APART` such standard deviations from the nearest other type, so that about one row in 700 is nearer to the other type.

Columns of cytometry are standardised, components are not. The files have no gates, so the labels of cytometry are clusters of all
rows: Leiden on the graph of 15 nearest neighbours, at its default resolution. Prepared data are kept in build/sketching.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks._lib import ROOT, data_folder, python_of
from benchmarks.peers.sketching_remote import call
from reduset import io

KEPT = ROOT / "build" / "sketching"
TYPES, LINEAGES, FACTORS = 20, 5, 3
MOST, LEAST = 0.3, 0.0005  # proportions of the types
TOUCHING, APART = 4.0, 6.0
PLANTED = {0.01: 2, 0.005: 3, 0.001: 10}  # proportion: number of types
FCS_FILES = {  # the file and its columns, two of scatter first
    "fcs_gvhd": ("0877408774.B08", ["FSC-H", "SSC-H", "FL1-H", "FL2-H", "FL3-H", "FL4-H"]),
    "fcs_cytek": ("Cytek_xP5.fcs", ["FSC", "SSC", "FL1", "FL2", "FL3", "FL4 red", "FL5 red"]),
    "fcs_sample001": ("sample001.fcs", ["FSC", "SSC", "FL1", "FL2", "FL3"]),
}


@dataclass(frozen=True)
class Labelled:
    """Rows, the type of each from 0 on, and the planted proportion of each type (0 for other types)."""

    X: np.ndarray
    labels: np.ndarray
    planted: np.ndarray


def load(name: str) -> Labelled:
    """Data by name, prepared at the first call and then read from a file."""
    path = KEPT / f"{name}.npz"
    if not path.exists():
        found = MAKERS[name]()
        KEPT.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")  # a stopped run leaves no incomplete file
        np.savez(part, X=found.X, labels=found.labels, planted=found.planted)
        part.rename(path)
    with np.load(path) as file:
        return Labelled(file["X"], file["labels"], file["planted"])


def _clustered(X: np.ndarray) -> Labelled:
    X = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        np.save(rows, X)
        found = np.unique(call("leiden", rows, 1800.0, 14.0, size=len(X), seed=0)["indices"], return_inverse=True)[1]
    return Labelled(X, found, np.zeros(found.max() + 1))


def cytometry() -> Labelled:
    with np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False) as file:
        X, names = file["X"].reshape(-1, file["X"].shape[-1]).astype(np.float64), list(file["channels"])
    scatter = X[:, [names.index("FSC"), names.index("SSC")]]
    colours = X[:, [k for k, name in enumerate(names) if name not in ("FSC", "SSC", "Time")]]  # at least 1
    return _clustered(np.column_stack([scatter, np.log(colours)]))


def fcs(name: str) -> Labelled:
    file, columns = FCS_FILES[name]
    values = io.read(data_folder() / "fcs" / file, columns=columns).values.astype(np.float64)
    return _clustered(np.column_stack([values[:, :2], np.arcsinh(values[:, 2:] / 5)]))


def pbmc() -> Labelled:
    import h5py

    code = "import importlib.util as u; print(u.find_spec('scanpy').submodule_search_locations[0])"
    folder = subprocess.run([python_of("sketch"), "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    with h5py.File(Path(folder) / "datasets" / "10x_pbmc68k_reduced.h5ad") as file:  # an old layout: tables of records
        X = np.ascontiguousarray(file["obsm"]["X_pca"], dtype=np.float32)
        labels = np.unique(file["obs"]["bulk_labels"], return_inverse=True)[1]
    return Labelled(X, labels, np.zeros(labels.max() + 1))


@dataclass(frozen=True)
class Types:
    """The types of the simulation: centres (k, d), directions of the factors (k, d, 3), standard deviations of the noise (d,)."""

    centres: np.ndarray
    directions: np.ndarray
    noise: np.ndarray

    def distances(self, of: int) -> np.ndarray:
        """Distances of one centre to all, in pooled standard deviations along the joining lines; infinite to itself."""
        lines = self.centres - self.centres[of]
        lengths = np.linalg.norm(lines, axis=1)
        units = lines / np.where(lengths > 0, lengths, 1)[:, None]
        own = np.square(units @ self.directions[of]).sum(axis=1)
        theirs = np.square(np.einsum("kd,kdf->kf", units, self.directions)).sum(axis=1)
        deviation = np.sqrt(np.square(units * self.noise).sum(axis=1) + (own + theirs) / 2)
        return np.where(np.arange(len(lines)) == of, np.inf, lengths / np.where(lengths > 0, deviation, 1))


def types_in(d: int, rng: np.random.Generator, planted: int = 0) -> Types:
    """Twenty types that touch, and planted types that do not."""
    falling = 1 / np.arange(1, d + 1)
    noise = 0.7 + 0.3 * falling
    lineages = rng.normal(size=(LINEAGES, d)) * falling
    centres = lineages[np.arange(TYPES) % LINEAGES] + 0.5 * rng.normal(size=(TYPES, d)) * falling
    directions = 2 * _directions(TYPES, d, rng)
    scale = 1.0
    for _ in range(3):  # distances scale with the centres: the first step is exact up to rounding
        nearest = np.median([Types(scale * centres, directions, noise).distances(k).min() for k in range(TYPES)])
        scale *= TOUCHING / nearest
    found = Types(scale * centres, directions, noise)
    for _ in range(planted):
        base, towards = rng.integers(5), rng.normal(size=d) * np.sqrt(falling)
        towards /= np.linalg.norm(towards)
        own = np.concatenate([found.directions, _directions(1, d, rng)])
        for step in np.arange(1, 10_000) * 0.1:
            moved = Types(np.vstack([found.centres, found.centres[base] + step * towards]), own, noise)
            if moved.distances(len(own) - 1).min() >= APART:
                break
        found = moved
    return found


def _directions(types: int, d: int, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.normal(size=(types, d, FACTORS)) * np.sqrt(1 / np.arange(1, d + 1))[:, None]
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def simulated(n: int, d: int, plant: dict[float, int] | None = None, seed: int = 0) -> Labelled:
    """n cells in d components, in random order."""
    plant, rng = plant or {}, np.random.default_rng(seed)
    shares = np.array([share for share, types in plant.items() for _ in range(types)])
    types = types_in(d, rng, len(shares))
    rare = np.repeat(TYPES + np.arange(len(shares)), np.rint(n * shares).astype(int))
    common = np.geomspace(MOST, LEAST, TYPES)
    labels = np.concatenate([rng.choice(TYPES, n - len(rare), p=common / common.sum()), rare])
    rng.shuffle(labels)
    X = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 100_000):
        of = labels[start : start + 100_000]
        factors = rng.standard_t(5, size=(len(of), FACTORS)) / np.sqrt(5 / 3)  # of variance 1
        factors[:, 0] = rng.uniform(-np.sqrt(3), np.sqrt(3), len(of))
        along = np.einsum("ndf,nf->nd", types.directions[of], factors)
        X[start : start + len(of)] = types.centres[of] + along + types.noise * rng.normal(size=(len(of), d))
    return Labelled(X, labels.astype(np.int64), np.concatenate([np.zeros(TYPES), shares]))


MAKERS: dict[str, Callable[[], Labelled]] = {
    "pbmc68k": pbmc,
    **{name: partial(fcs, name) for name in FCS_FILES},
    "cyto_itn15": cytometry,
    "rare_10": partial(simulated, 200_000, 10, PLANTED, 1),
    "rare_50": partial(simulated, 200_000, 50, PLANTED, 1),
    "simulated": partial(simulated, 1_000_000, 50),
}
NAMES = tuple(MAKERS)
