"""Frames and tables of `reduset.io`: identifiers, units of columns, weights, and the notes that report each step."""

import warnings

import numpy as np
import pandas as pd
import pytest

from lab_files import lab_events, write_sample
from reduset import Gaussian, io, sketch
from reduset.cli.entry import run

RNG = np.random.default_rng(0)
N = 1200
PEOPLE = pd.DataFrame(
    {
        "customer_id": np.arange(N),
        "income": np.exp(RNG.normal(10, 0.6, N)).round(2),
        "age": RNG.integers(18, 95, N),
        "city": RNG.choice(["Berlin", "Oslo", "Paris"], N),
    }
)
OMITTED = "customer_id looks like an identifier and is not used; identifiers='keep' uses it"
DIVIDED = "columns are divided by their interquartile ranges; scales=None uses them as they are"


def test_identifiers_are_kept_if_asked_for():
    plain = sketch(PEOPLE, 60, rng=0)
    assert OMITTED in plain.notes
    assert "customer_id" not in plain.kept.names
    kept = sketch(PEOPLE, 60, identifiers="keep", rng=0)
    assert kept.kept.names[0] == "customer_id"
    assert not any("not used" in note for note in kept.notes)
    with pytest.raises(ValueError, match=r"identifiers .*got 'drop'"):
        sketch(PEOPLE, 60, identifiers="drop")
    with pytest.raises(ValueError, match="identifiers must be one of"):
        sketch(PEOPLE[["age"]].to_numpy(), 60, identifiers=True)


def test_the_command_names_its_own_option(tmp_path, capsys):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    assert run(["sketch", str(tmp_path / "people.csv"), "-m", "60", "-o", str(tmp_path / "few.csv")]) == 0
    text = capsys.readouterr().out
    assert "customer_id looks like an identifier and is not used; name it in --columns to use it" in text
    assert "identifiers=" not in text


def test_one_note_reports_the_scales_of_a_frame():
    small = sketch(PEOPLE, 60, rng=0)
    assert small.notes.count(DIVIDED) == 1
    assert f"note        {DIVIDED}" in str(small)
    for options in ({"scales": None}, {"scales": "robust"}, {"scales": "standard"}, {"kernel": Gaussian(scales="robust")}):
        assert DIVIDED not in sketch(PEOPLE, 60, rng=0, **options).notes, options
    assert sketch(RNG.normal(size=(300, 2)), 30, rng=0).notes == ()


def rows_of_command(tmp_path, path, *words):
    assert run(["sketch", str(path), *words, "-m", "60", "-o", str(tmp_path / "few.parquet"), "-q"]) == 0
    return io.read(tmp_path / "few.parquet", columns=["row"]).values[:, 0].tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_are_scaled_as_by_the_command(suffix, tmp_path):
    path = tmp_path / f"people.{suffix}"
    frame = PEOPLE.assign(row=RNG.permutation(N))
    (frame.to_csv if suffix == "csv" else frame.to_parquet)(path, index=False)
    table = io.read(path, columns=["income", "age"])
    small = sketch(table, 60, rng=0)
    assert small.mean.kernel.scales is not None
    assert DIVIDED in small.notes
    rows = rows_of_command(tmp_path, path, "-c", "income,age")
    assert rows == frame["row"].to_numpy()[small.indices].tolist()
    assert rows == frame["row"].to_numpy()[sketch(frame[["income", "age"]], 60, rng=0).indices].tolist()
    plain = sketch(table, 60, scales=None, rng=0)
    assert plain.mean.kernel.scales is None
    assert rows_of_command(tmp_path, path, "-c", "income,age", "--scales", "none") == frame["row"][plain.indices].tolist()


@pytest.mark.parametrize(("transform", "scaled"), [(None, False), ("auto", False), ("asinh:150", False), ("none", True)])
def test_channels_on_a_scale_have_one_unit(transform, scaled, tmp_path, capsys):
    path = write_sample(tmp_path / "events.fcs", lab_events(700))
    small = sketch(io.read(path, transform=transform), 60, rng=0)
    assert (small.mean.kernel.scales is not None) is scaled
    assert (DIVIDED in small.notes) is scaled
    words = ["--transform", transform] if transform not in (None, "auto") else []
    assert run(["sketch", str(path), "-m", "60", *words, "-o", str(tmp_path / "few.csv")]) == 0
    assert ("  scales      " in capsys.readouterr().out) is scaled
    few = pd.read_csv(tmp_path / "few.csv")
    np.testing.assert_allclose(few["FITC-A"], lab_events(700)[small.indices, few.columns.get_loc("FITC-A")], rtol=1e-6)


def test_representations_and_pixels_have_one_unit(tmp_path):
    anndata = pytest.importorskip("anndata")
    places = RNG.normal(size=(200, 3)) * [100.0, 10.0, 1.0]
    cells = anndata.AnnData(X=np.abs(RNG.normal(size=(200, 4))), obsm={"X_pca": places})
    cells.write_h5ad(tmp_path / "cells.h5ad")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = sketch(io.read(tmp_path / "cells.h5ad", key="obsm/X_pca"), 30, rng=0)
    assert small.mean.kernel.scales is None
    assert not io.read(tmp_path / "cells.h5ad").in_one_unit
    io.write_image(tmp_path / "picture.png", RNG.integers(0, 255, (12, 12, 3)).astype(np.uint8))
    assert sketch(io.read(tmp_path / "picture.png"), 30, rng=0).mean.kernel.scales is None


def test_weights_of_a_table_count(tmp_path):
    PEOPLE.assign(w=np.where(PEOPLE["age"] > 50, 3.0, 1.0)).to_csv(tmp_path / "people.csv", index=False)
    table = io.read(tmp_path / "people.csv", columns=["income", "age"], weight_column="w")
    small = sketch(table, 100, rng=0)
    mean = np.average(table.values, axis=0, weights=table.weights)
    np.testing.assert_allclose(small.weights @ table.values[small.indices], mean, rtol=1e-9)


def test_the_warning_of_units_names_the_option_of_sketch():
    X = PEOPLE[["income", "age"]].to_numpy()
    with pytest.warns(UserWarning, match="0.*scales='robust'.*columns.*scales=None") as caught:
        sketch(X, 60, rng=0)
    assert "Gaussian" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({"scales": None}, {"scales": "robust"}, {"kernel": Gaussian()}):
            sketch(X, 60, rng=0, **options)


def test_an_index_of_a_frame_is_no_note():
    frame = PEOPLE[["income", "age"]]
    for shuffled in (frame.sort_values("age"), frame.sample(frac=1, random_state=0), frame.set_index(PEOPLE["city"])):
        assert sketch(shuffled, 60, rng=0).notes == (DIVIDED,)


@pytest.mark.parametrize("tol", [1, 1.0, 2])
def test_a_tolerance_is_below_one(tol):
    with pytest.raises(ValueError, match=f"tol .*got {tol!r}"):
        sketch(RNG.normal(size=(50, 2)), 5, tol=tol)


def test_columns_of_one_name_are_refused_by_name():
    frame = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="two columns are named 'a'; rename one of them"):
        sketch(frame, 10)
