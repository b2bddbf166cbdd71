"""The report of an audit: its figures count all rows, its tables are those of the audit, and no text of the data is run."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from reduset.cli.entry import run
from reduset.covers import audit
from reduset.report import write_audit
from report_cases import HOSTILE, Page, audited, embedded


def table_of(path):
    """The texts of a report, without its figures."""
    return Page(path).text()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    found, frame = audited()
    path = tmp_path_factory.mktemp("audit") / "r.html"
    write_audit(path, found, frame)
    return found, frame, path


def test_bars_count_the_rows_that_are_not_kept_and_end_at_the_radius(made):
    found, _, path = made
    data = embedded(path)
    edges, bars = np.array(data["edges"]), np.array(data["bars"])
    assert bars.sum() == len(found.distances) - len(found.kept)
    assert found.limit in edges
    assert bars[edges[1:] > found.limit].sum() == len(found.uncovered)
    assert edges[-1] >= found.radius


def test_the_radii_of_other_choices_are_drawn(made):
    found, _, path = made
    assert dict(embedded(path)["radii"]) == {
        "these rows": found.radius,
        "random rows": found.random_rows,
        "farthest first": found.farthest_first,
        "lower bound": found.best,
    }


def test_tables_have_the_worst_rows_and_the_closest_pairs_with_their_names(made):
    found, _, path = made
    text = table_of(path)
    worst = int(found.worst(1)[0])
    nearest = int(found.kept[found.assignments[worst]])
    assert all(f"{name} of nearest" in text and f"{name} of other" in text for name in ("id", "caption"))
    assert " ".join([str(worst), f"{found.distances[worst]:.6g}", str(nearest), f"row-{worst}", f"row-{nearest}"]) in " ".join(
        text.split()
    )
    assert HOSTILE in text
    k = int(found.close.distances.argmin())
    assert f"{found.close.distances[k]:.6g}" in text
    assert f"{len(found.close.first)} pairs of kept rows are within {found.limit:.4g} of each other" in text
    assert f"{found.factor:.3g} times the smallest possible radius" in text


@pytest.mark.parametrize("radius", [1e-9, 0.5, 1e9])
def test_any_radius_has_a_report(radius, tmp_path):
    rows = np.random.default_rng(0).normal(size=(200, 3))
    found = audit(rows, np.arange(10), radius)
    write_audit(tmp_path / "r.html", found)
    data = embedded(tmp_path / "r.html")
    assert sum(data["bars"]) == 190
    assert data["edges"][-1] >= found.radius
    assert len(data["bars"]) < 300


def test_only_duplicates_and_all_rows_have_a_report(tmp_path):
    write_audit(tmp_path / "r.html", audit(np.zeros((50, 2)), [3]))
    assert sum(embedded(tmp_path / "r.html")["bars"]) == 49
    write_audit(tmp_path / "r.html", audit(np.eye(5), np.arange(5), 0.0))
    text = table_of(tmp_path / "r.html")
    assert "All rows are kept." in text
    assert "No two kept rows are within 0 of each other." in text
    assert "compare=True" not in text


def test_wrong_input_is_named(tmp_path):
    found, frame = audited()
    with pytest.raises(TypeError, match="audit must be an Audit, got list"):
        write_audit(tmp_path / "r.html", [1, 2])
    with pytest.raises(ValueError, match="one entry for each of the 400 rows, got 7 in 'id'"):
        write_audit(tmp_path / "r.html", found, frame[:7])


@pytest.mark.parametrize("lists", [True, False])
def test_the_command_shows_the_columns_of_the_file_that_are_not_the_rows(lists, tmp_path):
    found, frame = audited()
    rows = np.random.default_rng(0).normal(size=(400, 2))
    columns = {"embedding": list(rows)} if lists else {"x": rows[:, 0], "y": rows[:, 1]}
    parquet.write_table(pa.table(columns | {"id": frame["id"], "score": rows[:, 0]}), tmp_path / "rows.parquet")
    pd.DataFrame({"row": found.kept}).to_csv(tmp_path / "keep.csv", index=False)
    command = ["audit", str(tmp_path / "rows.parquet"), str(tmp_path / "keep.csv"), "--report", str(tmp_path / "r.html"), "-q"]
    assert run(command) == 0
    text = table_of(tmp_path / "r.html")
    assert "id of nearest" in text
    assert ("score of nearest" in text) is lists
    assert "x of nearest" not in text
    assert "embedding of nearest" not in text


def test_arrays_have_no_names(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 2))
    np.save(tmp_path / "rows.npy", rows)
    (tmp_path / "keep.csv").write_text("row\n0\n1\n")
    assert run(["audit", str(tmp_path / "rows.npy"), str(tmp_path / "keep.csv"), "--report", str(tmp_path / "r.html"), "-q"]) == 0
    text = table_of(tmp_path / "r.html")
    assert "nearest kept row" in text
    assert "of nearest" not in text
