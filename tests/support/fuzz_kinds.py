"""Every kind of file that is read: how a valid one is made, how it is made wrong, and what is done with it."""

from dataclasses import asdict
from itertools import islice

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.svm import SVC

from file_kinds import SUFFIXES, write_any
from fuzz_mutations import mutated_bytes, mutated_gzip, mutated_model, mutated_zip
from lab_files import PANEL, write_ods_sheet
from reduset import ComponentMean, FunctionKernel, Gaussian, KernelMean, Laplacian, compress, cover, io
from reduset.cli.messages import as_json
from reduset.cytometry.lab_tables import lab_table
from reduset.drift import DriftMonitor, DriftTest
from reduset.mixture import Mixture
from reduset.model import Model
from reduset.stream import StreamCompressor
from reduset.svm import CompressedSVC, compress_svm

ROWS = np.random.default_rng(0).normal(size=(40, 2))
KEYS = {"h5ad": [None, "X", "obsm/X_pca", "obs"], "fcs": [None, "events", "2"], "npz": [None, "X", "w"]}
LABELS = {"h5ad": "site", "npz": "w", **dict.fromkeys(("csv", "tsv", "csv.gz", "parquet", "feather", "arrows", "orc"), "t")}


def read_table(path, rng):
    """As a user would read it: whole, or in batches, with labels and without."""
    if rng is None:
        io.read(path)
        return
    suffix = path.name.split(".", 1)[1]
    options = {"missing": str(rng.choice(["refuse", "drop"]))}
    if suffix in KEYS:
        options["key"] = KEYS[suffix][int(rng.integers(len(KEYS[suffix])))]
    if rng.random() < 0.3 and suffix in LABELS:
        options["group_column"] = LABELS[suffix]
    if rng.random() < 0.5:
        str(io.read(path, **options))
    elif "group_column" in options:
        io.read_bags(path, **options)
    else:
        for batch in islice(io.batches(path, rows=11, **options), 20):
            str(batch)


def _mean(path):
    rng = np.random.default_rng(0)
    kernel = [Gaussian(0.7), Laplacian(0.5, normalized=True), FunctionKernel("rbf", gamma=0.5)][int(path.stem[-1]) % 3]
    KernelMean(rng.normal(size=(5, 2)), rng.random(5), kernel.resolve(ROWS)).save(path)


def _use_mean(path, _):
    mean = KernelMean.load(path)
    repr(mean)
    mean(ROWS[:, : mean.dimension] if mean.dimension <= 2 else np.zeros((1, mean.dimension)))


def _model(path):
    full = KernelMean.from_samples(ROWS, Gaussian(1.0))
    Model.of(full, compress(full, size=5, rng=0), about={"notes": ["one"], "sources": ["a.csv"], "command": "reduset"}).save(path)


def _component_model(path):
    full = KernelMean.from_samples(ROWS, Gaussian(1.0))
    Model.of(full, compress(full, size=3, pieces="components", rng=0), about={"notes": ["one"]}).save(path)


def _use_component_model(path, rng):
    repr(ComponentMean.load(path))
    _use_model(path, rng)


def _component_mean(path):
    compress(ROWS, Gaussian(0.7), size=3, pieces="components", rng=0).mean.save(path)


def _use_component_mean(path, _):
    mean = ComponentMean.load(path)
    repr(mean)
    mean.norm()
    mean(np.zeros((1, mean.dimension)))


def _use_model(path, rng):
    model = Model.load(path)
    str(model)
    as_json({"about": model.about, "n": model.n_samples, "certificate": asdict(model.certificate)})
    model.mean(np.zeros((1, model.mean.dimension)))
    model.subsample_errors(model.step_sizes)
    if rng is None or rng.random() < 0.2:
        from reduset.report import write_compression

        write_compression(path.with_suffix(".html"), model)


def _mixture(path):
    rng = np.random.default_rng(0)
    Mixture(rng.random(4), rng.normal(size=(4, 2)), np.tile(np.eye(2), (4, 1, 1))).save(path)


def _use_mixture(path, _):
    mixture = Mixture.load(path)
    repr(mixture)
    mixture(np.zeros((1, mixture.dimension)))


def _svm(path):
    compress_svm(SVC(gamma=1.0).fit(ROWS, ROWS[:, 0] > 0), size=3, rng=0).save(path)


def _use_svm(path, _):
    machine = CompressedSVC.load(path)
    str(machine)
    machine.predict(np.zeros((2, machine.expansion_.centres.shape[1])))


def _checkpoint(path):
    stream = StreamCompressor(Gaussian(1.0), 5, 0, buffer=16)
    stream.partial_fit(ROWS)
    stream.checkpoint(path, {"rows": 40})


def _use_checkpoint(path, _):
    stream = StreamCompressor.resume(path)
    stream.partial_fit(np.zeros((3, stream.n_features_in_)) if stream.n_features_in_ < 100 else [[0.0]])
    str(stream.result())


def _drift_test(path):
    whole = int(path.stem[-1]) % 2
    rows = np.random.default_rng(0).normal(size=(600, 2))
    DriftTest(size=8, keep_rows=bool(whole), random_state=0).fit(rows[:50] if whole else rows).save(path, {"notes": ["one"]})


def _use_drift_test(path, _):
    test = DriftTest.load(path)
    found = test.test(np.arange(3.0 * test.n_features_in_).reshape(3, -1))
    str(found)


def _drift_monitor(path):
    rows = np.random.default_rng(0).normal(size=(300, 2))
    monitor = DriftMonitor(DriftTest(size=8, random_state=0).fit(rows), ert=100, windows=[4, 8], random_state=0)
    monitor.update(rows[:5])
    monitor.checkpoint(path)


def _use_drift_monitor(path, _):
    monitor = DriftMonitor.resume(path)
    str(monitor.update(np.zeros((3, len(monitor.reference_.names)))))


def _embedding(path):
    rows = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    if path.suffix == ".npy":
        np.save(path, rows)
    else:
        pq.write_table(pa.table({"id": np.arange(40), "embedding": list(rows)}), path, row_group_size=25)


def _use_embedding(path, rng):
    metric = "cosine" if rng is not None and rng.random() < 0.5 else "euclidean"
    str(cover(str(path), 3, metric=metric, column=None if path.suffix == ".npy" else "embedding"))


def _sheet(path):
    rows = [line.split(",") for line in PANEL.splitlines()]
    if path.suffix == ".ods":
        write_ods_sheet(path, rows)
        return
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def _use_sheet(path, _):
    table = lab_table(str(path), "the panel")
    str(table.columns)


MUTATIONS = {"csv.gz": mutated_gzip, "npz": mutated_zip}
KINDS = {  # by name: the file's suffix, what makes it, what makes it wrong, what is done with it
    **{each: (each, write_any, MUTATIONS.get(each, mutated_bytes), read_table) for each in SUFFIXES},
    "mean": ("npz", _mean, mutated_model, _use_mean),
    "model": ("npz", _model, mutated_model, _use_model),
    "component model": ("npz", _component_model, mutated_model, _use_component_model),
    "component mean": ("npz", _component_mean, mutated_model, _use_component_mean),
    "mixture": ("npz", _mixture, mutated_model, _use_mixture),
    "svm": ("npz", _svm, mutated_model, _use_svm),
    "checkpoint": ("npz", _checkpoint, mutated_model, _use_checkpoint),
    "drift test": ("npz", _drift_test, mutated_model, _use_drift_test),
    "drift monitor": ("npz", _drift_monitor, mutated_model, _use_drift_monitor),
    "cover of npy": ("npy", _embedding, mutated_bytes, _use_embedding),
    "cover of parquet": ("parquet", _embedding, mutated_bytes, _use_embedding),
    "xlsx": ("xlsx", _sheet, mutated_zip, _use_sheet),
    "ods": ("ods", _sheet, mutated_zip, _use_sheet),
}
