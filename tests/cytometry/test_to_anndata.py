"""A cohort study as AnnData: samples by atoms, and cells; what scanpy needs of both, and that files keep them."""

import anndata
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from reduset import _archive
from reduset.anndata import project, write_annotated
from reduset.cytometry import CohortStudy, cells_to_anndata, to_anndata
from reduset.cytometry.annotated import are_measured, column_of_entries, keyed
from reduset.io import FileError
from study_cases import CELLS, MARKERS, SAMPLES, plain_study, sample_table, study_in_memory, study_of_files, write_lab


def same(first, second):
    """Whether facts of uns are equal, through all their levels."""
    if isinstance(first, dict):
        return set(first) == set(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, np.ndarray):
        return first.shape == second.shape and bool(np.all((first == second) | ((first != first) & (second != second))))
    return first == second


def assert_kept(adata, path):
    """Equal after writing and reading, by our way and by that of anndata."""
    write_annotated(path, adata)
    back = anndata.read_h5ad(path)
    np.testing.assert_array_equal(back.X, adata.X)
    for frame in ("obs", "var"):
        pd.testing.assert_frame_equal(getattr(back, frame), getattr(adata, frame), check_index_type=False)
    for part in ("obsm", "obsp", "layers"):
        assert set(getattr(back, part)) == set(getattr(adata, part))
        for key, value in getattr(adata, part).items():
            np.testing.assert_array_equal(getattr(back, part)[key], value)
    assert same(adata.uns, back.uns)
    again = path.with_name("again.h5ad")
    adata.write_h5ad(again)
    assert again.stat().st_size > 0


def assert_scanpy_can_plot(frame):
    """Texts are categories, numbers and flags plain, names unique texts."""
    assert all(isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind in "biuf" for _, column in frame.items())
    assert frame.index.is_unique
    assert all(isinstance(name, str) for name in frame.index)


def test_shares_of_atoms_sum_to_one_and_by_population_to_its_shares():
    study = study_in_memory()
    adata = to_anndata(study)
    np.testing.assert_allclose(np.asarray(adata.X).sum(axis=1), 1)
    np.testing.assert_allclose(adata.X * adata.obs["n_cells"].to_numpy()[:, None], adata.layers["counts"])
    for k, name in enumerate(study.populations_.names):
        own = (adata.var["population"] == name).to_numpy()
        np.testing.assert_array_equal(adata.layers["counts"][:, own].sum(axis=1), study.populations_.counts[:, k])
        np.testing.assert_allclose(adata.X[:, own].sum(axis=1), adata.obsm["population_share"].iloc[:, k])
    np.testing.assert_allclose(adata.var["mass"], np.asarray(adata.X).mean(axis=0))
    assert adata.var["n_cells"].sum() == SAMPLES * CELLS


def test_samples_are_rows_with_their_table_and_atoms_columns_with_their_places():
    study = study_in_memory()
    adata = to_anndata(study)
    assert adata.shape == (SAMPLES, 60)
    assert tuple(adata.obs_names) == study.samples_.names
    assert adata.obs["condition"].tolist() == ["healthy"] * 6 + ["ill"] * 6
    assert adata.obs["n_cells"].tolist() == [CELLS] * SAMPLES
    for marker, column in zip(("CD3", "HLA_DR", "Ki67"), study.populations_.atoms.T, strict=True):
        np.testing.assert_array_equal(adata.var[marker], column)
    np.testing.assert_array_equal(adata.var["log2_fold_change_ill"], study.witness_.fold_changes[0])
    np.testing.assert_array_equal(adata.var["p"], study.clusters_.p_values)
    np.testing.assert_array_equal(adata.obsm["X_map"], study.map_.embedding_)
    np.testing.assert_array_equal(adata.obsp["distances"], study.map_.distances_)
    np.testing.assert_array_equal(adata.obsp["errors"], study.map_.errors_)


def test_numbers_stay_numbers_and_what_is_missing_stays_missing():
    obs = to_anndata(study_in_memory()).obs
    table = sample_table(obs.index)
    assert obs["age"].dtype == np.int64
    np.testing.assert_array_equal(obs["weight_kg"], np.array(table["weight/kg"], float))
    assert obs["treated"].dtype == bool
    assert obs["site"].isna().tolist() == [each is None for each in table["site"]]
    assert obs["ward"].isna().all()
    assert obs["n_cells (2)"].tolist() == ["many"] * SAMPLES  # that of the table; n_cells is ours


def test_changed_names_are_recorded():
    renamed = to_anndata(study_in_memory()).uns["reduset"]["renamed"]
    assert dict(zip(renamed["obs"]["key"], renamed["obs"]["name"], strict=True)) == {
        "weight_kg": "weight/kg",
        "n_cells (2)": "n_cells",
    }
    assert renamed["var"]["name"].tolist() == ["HLA/DR"]


def test_facts_tell_populations_differences_batches_and_how_it_was_made():
    study = study_in_memory()
    uns = to_anndata(study).uns
    assert uns["populations"]["names"].tolist() == list(study.populations_.names)
    assert uns["populations"]["markers"].tolist() == list(MARKERS)
    np.testing.assert_array_equal(uns["populations"]["medians"], study.populations_.medians)
    np.testing.assert_array_equal(uns["differences"]["effects"], study.differences_.effects)
    assert uns["differences"]["whole"]["p_value"] == study.whole_.p_value
    assert uns["differences"]["levels"].tolist() == ["healthy", "ill"]
    assert uns["batches"]["name"] == "run"
    assert uns["reduset"]["params"]["n_atoms"] == 60
    assert uns["reduset"]["left_out"]["name"].tolist() == ["p99"]
    assert uns["reduset"]["version"]


def test_both_have_what_scanpy_plots():
    for adata in (to_anndata(study_in_memory()), cells_to_anndata(study_in_memory()), to_anndata(plain_study())):
        assert_scanpy_can_plot(adata.obs)
        assert_scanpy_can_plot(adata.var)
    assert to_anndata(plain_study()).obsm["X_map"].shape == (2, 2)  # of two samples, which lie on a line


@pytest.mark.parametrize(
    "made",
    [
        lambda: to_anndata(study_in_memory()),
        lambda: to_anndata(plain_study()),
        lambda: cells_to_anndata(study_in_memory()),
        lambda: cells_to_anndata(study_in_memory(), every_cell=True),
    ],
)
def test_files_keep_everything(tmp_path, made):
    assert_kept(made(), tmp_path / "study.h5ad")


def test_a_study_of_files_tells_their_events_and_cleaning(tmp_path):
    study = study_of_files(write_lab(tmp_path / "lab"))
    adata, cells = to_anndata(study), cells_to_anndata(study, every_cell=True)
    assert adata.obsm["cleaning"]["events"].tolist() == [CELLS] * SAMPLES
    assert cells.obs["source"].cat.categories.tolist() == list(study.samples_.sources)
    np.testing.assert_array_equal(cells.obs["event"], np.concatenate(study.samples_.events))
    assert cells.var["scale"].tolist() == ["asinh:150"] * 3
    assert_kept(adata, tmp_path / "study.h5ad")
    assert_kept(cells, tmp_path / "cells.h5ad")


def test_sketched_cells_are_those_of_every_cell():
    study = study_in_memory()
    every, few = cells_to_anndata(study, every_cell=True), cells_to_anndata(study)
    np.testing.assert_array_equal(every[every.obs["sketch"]].X, few.X)
    pd.testing.assert_frame_equal(every.obs[every.obs["sketch"]], few.obs)
    np.testing.assert_array_equal(every.X, np.concatenate(study.samples_.cells).astype(np.float32))
    assert few.obs["sketch_weight"].sum() == every.obs["sketch_weight"].sum() == every.n_obs == SAMPLES * CELLS


def test_cells_belong_to_samples_populations_and_to_those_that_stand_for_them():
    study = study_in_memory()
    cells = cells_to_anndata(study, every_cell=True)
    counts = pd.crosstab(cells.obs["sample"], cells.obs["population"], dropna=False).to_numpy()
    np.testing.assert_array_equal(counts, study.populations_.counts)
    standing = cells.obs["sketch_assignment"].value_counts()
    chosen = cells.obs[cells.obs["sketch"]]
    np.testing.assert_array_equal(standing[chosen.index], chosen["sketch_weight"])
    assert cells.var["marker_class"].tolist() == ["type", "type", "state"]
    assert cells.X.dtype == np.float32


def test_labels_of_the_sketch_are_carried_to_every_cell():
    cells = cells_to_anndata(study_in_memory(), every_cell=True)
    small = cells[cells.obs["sketch"]].copy()
    small.obs["kind"] = pd.Categorical(np.where(small[:, "CD3"].X.ravel() > 3.5, "T", "other"))
    project(cells, "kind", small=small)
    assert ((cells.obs["kind"] == "T").to_numpy() == (cells[:, "CD3"].X.ravel() > 3.5)).mean() > 0.99


def test_the_study_is_not_changed_through_its_tables():
    study = study_in_memory()
    before = study.map_.distances_.copy(), study.populations_.atom_counts.copy(), study.samples_.cells[0].copy()
    adata, cells = to_anndata(study), cells_to_anndata(study, every_cell=True)
    adata.obsp["distances"][:] = adata.layers["counts"][:] = adata.obsm["X_map"][:] = cells.X[:] = 0
    after = study.map_.distances_, study.populations_.atom_counts, study.samples_.cells[0]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    assert study.map_.embedding_.any()


def test_what_is_no_fitted_study_is_refused():
    for make in (to_anndata, cells_to_anndata):
        with pytest.raises(TypeError, match=r"study .*got dict"):
            make({})
        with pytest.raises(NotFittedError):
            make(CohortStudy())
    with pytest.raises(TypeError, match="every_cell must be True or False"):
        cells_to_anndata(study_in_memory(), every_cell=3)


def test_numbers_beyond_single_precision_are_refused():
    study = CohortStudy(n_atoms=20, random_state=0).fit([np.random.default_rng(k).normal(size=(100, 2)) for k in (0, 1)])
    study.samples_.cells[1][5, 0] = 1e300
    with pytest.raises(ValueError, match="must fit in single precision"):
        cells_to_anndata(study, every_cell=True)


def test_files_are_named_and_written_whole(tmp_path):
    adata = to_anndata(plain_study())
    with pytest.raises(FileError, match=r"must end in \.h5ad"):
        write_annotated(tmp_path / "study.csv", adata)
    with pytest.raises(FileError, match="cannot be written"):
        write_annotated(tmp_path / "none" / "study.h5ad", adata)
    with _archive.together():
        write_annotated(tmp_path / "study.h5ad", adata)
        assert not (tmp_path / "study.h5ad").exists()  # it waits for what is written beside it
    assert [path.name for path in tmp_path.iterdir()] == ["study.h5ad"]


@given(st.lists(st.text(max_size=4) | st.sampled_from(["a/b", "a_b", "_index", "", ".", "q"]), unique=True))
def test_keys_of_names_can_be_written_and_are_each_once(names):
    columns, record = keyed(names, names, ["q"])
    keys = list(columns)
    assert len({*keys, "q"}) == len(keys) + 1
    assert not any(key in ("", ".", "_index") or "/" in key or "\x00" in key for key in keys)
    record = record or {"key": [], "name": []}
    told = dict(zip(record["key"], record["name"], strict=True))
    assert [told.get(key, key) for key in keys] == names


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        ([1, 2, 3], np.int64),
        ([1, None, 3], np.float64),
        ([1.5, 2, None], np.float64),
        ([None, None], np.float64),
        ([True, False], bool),
        ([10**30, 1], np.float64),
    ],
)
def test_columns_of_numbers_and_flags_are_numbers_and_flags(entries, kind):
    assert column_of_entries(entries).dtype == kind


@pytest.mark.parametrize("entries", [["a", None], [1, "a"], [True, None], [True, 2], ["1", "2"], [pd.Timestamp("2024-01-02")]])
def test_all_other_columns_are_categories_of_texts(entries):
    column = column_of_entries(entries)
    assert isinstance(column, pd.Categorical)
    assert all(isinstance(each, str) for each in column.categories)
    assert [pd.isna(each) for each in column] == [each is None for each in entries]


@pytest.mark.parametrize(
    ("entries", "measured"),
    [
        (["31", "64", None], True),
        (["0", "-1.5", ".5"], True),
        (["007", "12"], False),
        (["1", "x"], False),
        (["", "1"], False),
        (["-", "1"], False),
        (["1e5", "2"], False),
        ([None, None], False),
        ([1, 2], False),
    ],
)
def test_texts_of_plain_numbers_are_measured(entries, measured):
    assert are_measured(entries) is measured


def test_texts_that_were_taken_as_numbers_are_numbers():
    np.testing.assert_array_equal(column_of_entries(["1", "2.5", None], as_numbers=True), [1, 2.5, np.nan])
    assert column_of_entries(["31", "64"], as_numbers=True).dtype == np.int64
    assert isinstance(column_of_entries(["1", "x"], as_numbers=True), pd.Categorical)
