"""`--pieces`: atoms or components, tables that `compress` does not write, and every command on a model of components."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, Model, io
from reduset.cli.entry import run

RNG = np.random.default_rng(0)
ROWS = np.concatenate([RNG.normal(0, [1.0, 0.4], size=(250, 2)), RNG.normal([4, 1], 0.5, size=(150, 2))])
UP = np.array([0.0, 1.5])
AT = ["--bandwidth", "0.5", "--scales", "none"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows, other rows, and models of both: of components and of atoms."""
    folder = tmp_path_factory.mktemp("pieces")
    io.write_rows(folder / "rows.csv", ["x", "y"], ROWS)
    io.write_rows(folder / "moved.csv", ["x", "y"], ROWS + UP)
    for name, source, words in (
        ("laws", "rows", ["--pieces", "components", "--size", "8"]),
        ("moved", "moved", ["--pieces", "components", "--size", "8"]),
        ("atoms", "rows", ["--size", "60"]),
    ):
        assert run(["compress", str(folder / f"{source}.csv"), *words, *AT, "-q", "-o", str(folder / f"{name}.npz")]) == 0
    return folder


def told(capsys, *words):
    assert run([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_components_are_told_and_written_as_a_model(folder, tmp_path, capsys):
    words = ["compress", folder / "rows.csv", "--pieces", "components", "--size", "6", "-o", tmp_path / "c.npz"]
    found = told(capsys, *words, "--report", tmp_path / "c.html")
    model = Model.load(tmp_path / "c.npz")
    assert found["pieces"] == "components"
    assert found["size"] == model.size <= 6
    assert found["resolution"] == pytest.approx(model.resolution)
    assert found["selection"] == "fitted"
    assert "components" in (tmp_path / "c.html").read_text(encoding="utf-8")
    assert run(list(map(str, words))) == 0
    assert "400 rows × 2 columns -> 6 weighted components" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["-o", "x.csv"],
            "x.csv holds rows, and compress writes a model; use reduset sketch … -o x.csv for real rows with weights",
        ),
        (["-o", "x.PARQUET", "--stream", "--size", "5"], "use reduset sketch … -o x.PARQUET|or write a model: -o x.npz"),
        (["-o", "x.feather", "--report", "x.html"], "use reduset sketch … -o x.feather"),
        (["-o", "x.tsv", "--pieces", "components"], "use reduset sketch … -o x.tsv"),
        (["--pieces", "components", "--select", "greedy"], "--select is for atoms"),
        (["--pieces", "components", "--refine"], "--refine is for atoms"),
        (["--pieces", "components", "--group-column", "y"], "--group-column is for atoms"),
        (["--pieces", "components", "--plateau", "1e-6"], "--plateau is for atoms"),
        (["--pieces", "components", "--stream", "--size", "5"], "--pieces components needs all rows at once"),
        (["--pieces", "components", "--kernel", "laplacian", "--bandwidth", "1"], "--pieces components needs a Gaussian kernel"),
        (["--weights", "counts"], "weights must be one of|got 'counts'; use reduset sketch for real rows with weights"),
        (["--select", "balanced"], "select must be one of|got 'balanced'; use reduset sketch for real rows with weights"),
        (
            ["--pieces", "rows"],
            "--pieces must be one of 'atoms', 'components'|got 'rows'; use reduset sketch for real rows with weights",
        ),
        (["--pieces", "blobs"], "--pieces must be one of 'atoms', 'components'; got 'blobs'"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_does_not_go_together_is_one_line_and_nothing_is_written(words, message, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    output = [] if "-o" in words else ["-o", "x.npz"]
    assert run(["compress", str(folder / "rows.csv"), *words, *output]) == 2
    said = capsys.readouterr().err.strip()
    assert all(part in said for part in message.split("|"))
    assert "\n" not in said
    assert not list(tmp_path.iterdir())


def test_distances_are_those_of_the_densities(folder, capsys):
    kernel = Gaussian(0.5, normalized=True)
    full, moved = (KernelMean.from_samples(points, kernel) for points in (ROWS, ROWS + UP))
    wanted = full.distance(moved)
    for a, b in (("laws.npz", "moved.npz"), ("laws.npz", "moved.csv"), ("moved.csv", "laws.npz"), ("atoms.npz", "moved.npz")):
        found = told(capsys, "distance", folder / a, folder / b)
        assert abs(found["distance"] - wanted) <= found["uncertainty"] * (1 + 1e-9)
        assert found["uncertainty"] < 0.2 * wanted
        assert found["distance"] > found["by_chance_95"]
    same = told(capsys, "distance", folder / "atoms.npz", folder / "laws.npz")
    assert same["distance"] <= same["uncertainty"]
    assert same["kernel"]["normalized"] is True


def test_components_at_another_bandwidth_have_no_distance(folder, tmp_path, capsys):
    words = ["--pieces", "components", "--size", "8", "--bandwidth", "0.7", "--scales", "none", "-q"]
    assert run(["compress", str(folder / "rows.csv"), *words, "-o", str(tmp_path / "other.npz")]) == 0
    assert run(["distance", str(folder / "laws.npz"), str(tmp_path / "other.npz")]) == 2
    assert "must have the same kernel" in capsys.readouterr().err


def test_values_information_and_reports(folder, tmp_path, capsys):
    model = Model.load(folder / "laws.npz")
    assert run(["evaluate", str(folder / "laws.npz"), str(folder / "rows.csv"), "-o", str(tmp_path / "v.csv")]) == 0
    assert f"400 rows evaluated by {model.size} components" in capsys.readouterr().out
    found = io.read(tmp_path / "v.csv").values
    np.testing.assert_allclose(found[:, 0], model.mean(ROWS), rtol=1e-9)
    np.testing.assert_allclose(found[:, 1], model.mean.log_density(ROWS), rtol=1e-9)
    assert told(capsys, "info", folder / "laws.npz")["pieces"] == "components"
    assert run(["info", str(folder / "laws.npz")]) == 0
    assert "8 weighted components" in capsys.readouterr().out
    assert run(["report", str(folder / "laws.npz"), "-o", str(tmp_path / "r.html")]) == 0
    assert "Components" in (tmp_path / "r.html").read_text(encoding="utf-8")
