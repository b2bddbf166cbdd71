"""Bags in Dask or in files: results equal those in memory, and this process holds at most one bag."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed

from dask_cases import cluster, parts, points
from reduset import NotReachedWarning, cohort
from reduset.cohort import CohortMap
from reduset.data.dask_engine import DaskEngine
from reduset.io import open_files

BAGS = [points(900 + 10 * k, 2, seed=k) + 0.4 * (k % 3) for k in range(6)]
BAGS[3] = np.tile(BAGS[3], (6, 1))  # more rows than are loaded at once


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The fifth bag as a file."""
    path = tmp_path_factory.mktemp("bags") / "bag.parquet"
    pd.DataFrame(BAGS[4], columns=["0", "1"]).assign(w=1.0).to_parquet(path)
    pd.DataFrame(BAGS[4], columns=["0", "1"]).to_parquet(path.with_name("plain.parquet"))
    return path.with_name("plain.parquet")


def bags_outside_memory(path):
    """The same bags, each given in another way."""
    frame = pd.DataFrame(BAGS[2], columns=["0", "1"])
    given = [delayed(BAGS[0]), da.from_array(BAGS[1], chunks=(300, 2)), dd.from_pandas(frame, npartitions=2)]
    return {f"bag {k}": bag for k, bag in enumerate([*given, delayed(BAGS[3]), path, BAGS[5]])}


@pytest.mark.parametrize(
    "options", [{}, {"tol": 0.1}, {"size": 30, "atoms": "own"}, {"distance": "kl", "size": 30}, {"size": 30, "progress": print}]
)
def test_the_numbers_are_those_of_bags_in_memory(options, path):
    local, remote = (CohortMap(layout="mds", random_state=0, **options) for _ in range(2))
    local.fit(BAGS)
    remote.fit(bags_outside_memory(path))
    for name in ("embedding_", "distances_", "errors_"):
        np.testing.assert_array_equal(getattr(remote, name), getattr(local, name))
    assert remote.kernel_ == local.kernel_
    assert remote.names_ == [f"bag {k}" for k in range(6)]
    assert remote.feature_names_in_.tolist() == ["0", "1"]
    assert [each.certificate for each in remote.compressions_] == [each.certificate for each in local.compressions_]
    near = points(500, 2, seed=9)
    for given, expected in zip(remote.distances_to_fitted([delayed(near)]), local.distances_to_fitted([near]), strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(remote.transform([delayed(near)]), local.transform([near]), rtol=1e-6, atol=1e-9)


def test_a_three_dimensional_dask_array_and_a_generator_are_bags(path):
    equal = np.stack([bag[:500] for bag in BAGS])
    expected = CohortMap(layout="mds", size=20, random_state=0).fit(equal).distances_
    for given in (da.from_array(equal, chunks=(2, 300, 2)), (delayed(bag[:500]) for bag in BAGS)):
        found = CohortMap(layout="mds", size=20, random_state=0).fit(given)
        np.testing.assert_array_equal(found.distances_, expected)


def test_a_later_bag_with_a_large_error_is_named(path):
    remote = CohortMap(layout="mds", size=30, random_state=0).fit(bags_outside_memory(path))
    with pytest.warns(NotReachedWarning, match=r"1 of the later bags \('far'\) have errors up to") as caught:
        remote.distances_to_fitted({"near": delayed(BAGS[0]), "far": delayed(BAGS[0] + 50)})
    assert caught[0].filename == __file__


def arrays_in(value):
    """All arrays in the result of a task."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, list | tuple):
        return [array for each in value for array in arrays_in(each)]
    return arrays_in(list(vars(value).values())) if hasattr(value, "__dict__") else []


def test_points_stay_on_the_cluster(monkeypatch):
    seen, results = [], []
    computed = DaskEngine.each

    def recorded(*arguments):
        for result in computed(*arguments):
            results.append(result)
            yield result

    monkeypatch.setattr(DaskEngine, "each", recorded)
    monkeypatch.setattr(cohort.shared_atoms, "POOL_ROWS", 600)
    local = CohortMap(layout="mds", size=20, random_state=0).fit(BAGS)
    with cluster(2):
        remote = CohortMap(layout="mds", size=20, random_state=0, progress=lambda *args: seen.append(args))
        remote.fit([delayed(BAGS.__getitem__)(k) for k in range(6)])
    np.testing.assert_array_equal(remote.distances_, local.distances_)
    assert ("weighing bags", 6, 6) in seen
    assert max(len(array) for array in arrays_in(results)) == 100  # the rows of a bag that are pooled


@pytest.mark.parametrize(
    ("bags", "options", "error", "words"),
    [
        (lambda: [delayed(BAGS[0])], {}, ValueError, "at least 2"),
        (lambda: parts(BAGS[0]), {}, TypeError, "one Dask collection; give a list"),
        (lambda: delayed(BAGS[0]), {}, TypeError, "one Dask collection; give a list"),
        (lambda: [delayed(BAGS[0]), delayed(BAGS[1][:, :1])], {}, ValueError, r"bags\[1\] must have 2 columns like bags\[0\]"),
        (lambda: [delayed(BAGS[0]), delayed(BAGS[1][:1])], {}, ValueError, r"bags\[1\] must hold at least 2 points"),
        (lambda: {"a": delayed(BAGS[0]), "b": delayed(BAGS[1] * np.nan)}, {}, ValueError, r"bags\['b'\] must be finite"),
        (lambda: [delayed(bag) for bag in BAGS], {"atoms": "all"}, ValueError, "atoms='all' needs .* use atoms='shared'"),
    ],
)
def test_bags_that_cannot_be_compared_raise(bags, options, error, words):
    with pytest.raises(error, match=words):
        CohortMap(layout="mds", random_state=0, **options).fit(bags())


def test_a_long_dask_table_and_files_with_weights_raise(path):
    table = dd.from_pandas(pd.DataFrame(BAGS[0]).assign(who=0), npartitions=2)
    with pytest.raises(TypeError, match="sample= needs the table in memory"):
        CohortMap().fit(table, sample="who")
    with pytest.raises(ValueError, match=r"bags\[1\] has weights"):
        CohortMap().fit([BAGS[0], open_files(path.with_name("bag.parquet"), weight_column="w")])
