"""`--encode`: categories and dates in files that go through the commands, and models that keep how they were encoded."""

import json

import numpy as np
import pandas as pd
import pytest

from cli_processes import in_this_process
from reduset import Model


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    rows = {
        "age": rng.normal(0.0, 1.0, 300),
        "city": np.array(["Paris", "Rome", "Oslo"])[rng.integers(0, 3, 300)],
        "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 5, 300), unit="D"),
    }
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    pd.DataFrame(rows)[lambda rows: rows["city"] == "Rome"].to_parquet(tmp_path / "rome.parquet")
    pd.DataFrame(rows).replace({"city": {"Rome": "Bonn"}}).to_csv(tmp_path / "bonn.csv", index=False)
    return tmp_path


TITLES = ["age", "city=Oslo", "city=Paris", "city=Rome", "when"]


@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_a_model_keeps_how_its_columns_were_encoded(more, folder):
    made = in_this_process("compress", "rows.csv", "--encode", "auto", "-m", 20, "-o", "m.npz", "--json", *more, folder=folder)
    told = json.loads(made.stdout)
    assert told["columns"] == TITLES
    assert "when as days since 1970-01-01" in told["notes"]
    assert Model.load(folder / "m.npz").about["encode"] == {"city": {"onehot": ["Oslo", "Paris", "Rome"]}, "when": "days"}
    in_this_process("evaluate", "m.npz", "rome.parquet", "-o", "values.csv", folder=folder)
    assert np.isfinite(pd.read_csv(folder / "values.csv")["value"]).all()
    apart = json.loads(in_this_process("distance", "m.npz", "rome.parquet", "--json", folder=folder).stdout)["distance"]
    same = json.loads(in_this_process("distance", "m.npz", "rows.csv", "--json", folder=folder).stdout)["distance"]
    assert same < 0.1 < apart
    for words in (["evaluate", "m.npz", "bonn.csv", "-o", "values.csv"], ["distance", "m.npz", "bonn.csv"]):
        refused = in_this_process(*words, folder=folder, code=2)
        assert "column 'city' must hold categories that its encoding has (Oslo, Paris, Rome), got 'Bonn'" in refused.stderr


@pytest.mark.parametrize("asked", [["--encode", "city=onehot", "--encode", "when=days"], ["--encode", "auto"]])
def test_a_sketch_has_the_columns_of_the_file(asked, folder):
    in_this_process("sketch", "rows.csv", *asked, "-m", 20, "-o", "few.csv", folder=folder)
    few, rows = pd.read_csv(folder / "few.csv"), pd.read_csv(folder / "rows.csv")
    assert list(few) == ["age", "city", "when", "weight"]
    assert few["weight"].sum() == pytest.approx(300)
    assert len(few.merge(rows, on=["age", "city", "when"])) == 20


def test_models_of_other_encodings_are_not_compared(folder):
    for name, asked in (("a", "city=ordinal:Oslo:Paris:Rome"), ("b", "city=ordinal:Rome:Paris:Oslo")):
        in_this_process(
            "compress", "rows.csv", "-c", "age,city", "--encode", asked, "-b", 1, "-m", 5, "-o", f"{name}.npz", folder=folder
        )
    refused = in_this_process("distance", "a.npz", "b.npz", folder=folder, code=2)
    assert "must have the same --encode" in refused.stderr
