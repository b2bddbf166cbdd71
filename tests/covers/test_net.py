"""Nets: the rows that are kept for a radius, by the definition, from every kind of rows; pairs, components, updates and files."""

import numpy as np
import pytest

from reduset import cover
from reduset._engine import HostRows, near_rows
from reduset.covers import Cover


def defining(rows, metric):
    exact = rows.astype(float)
    return exact / np.sqrt((exact * exact).sum(axis=1))[:, None] if metric == "cosine" else exact


def gaps_of(rows, metric):
    """(n, n) distances by the definition."""
    exact = defining(rows, metric)
    squares = np.zeros((len(rows), len(rows)))
    for column in exact.T:
        squares += np.square(column[:, None] - column)
    return squares / 2 if metric == "cosine" else np.sqrt(squares)


def net(gaps, radius, order):
    kept = []
    for row in order:
        if not kept or gaps[row, kept].min() > radius:
            kept.append(int(row))
    return kept


def drawn(seed, kind="bell"):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 700)), int(rng.choice([1, 2, 7, 8, 31, 32, 33, 90]))
    rows = rng.normal(size=(n, d)) + 0.3
    if kind == "lattice":
        rows = np.round(rows * 2) + 0.25
    if kind == "copies":
        rows = rows[rng.integers(0, n // 4 + 1, n)]
    if kind == "far":
        rows += 1000.0
    return rows.astype(rng.choice([np.float16, np.float32, np.float64])), rng


@pytest.mark.parametrize("kind", ["bell", "lattice", "copies", "far"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("by_products", [False, True])
def test_a_net_is_that_of_the_definition(kind, metric, by_products):
    for seed in range(6):
        rows, rng = drawn(seed, kind)
        gaps = gaps_of(rows, metric)
        radius = float(np.quantile(gaps, rng.choice([0.0, 0.002, 0.05, 0.6])))
        squared = 2 * radius if metric == "cosine" else radius**2
        search = near_rows(HostRows(rows), metric == "cosine", squared)
        search._by_products = by_products
        order = rng.permutation(len(rows))
        squares = gaps * 2 if metric == "cosine" else gaps**2
        certain = (
            np.abs(squares - squared) > 1e-12 * squares.max()
        )  # the last digit of a distance depends on the order of its terms
        if certain.all() or radius == 0:
            assert search.net(order).tolist() == net(squares, squared, order)
        one, other, found = search.pairs(np.arange(len(rows)), np.arange(len(rows)))
        near = np.argwhere((squares <= squared) & certain & ~np.eye(len(rows), dtype=bool))
        assert {tuple(pair) for pair in near} <= set(zip(one.tolist(), other.tolist(), strict=True))
        np.testing.assert_allclose(found, squares[one, other], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("keep", ["first", "last", "medoid", "scores"])
def test_the_row_of_the_highest_priority_is_kept(keep):
    rng = np.random.default_rng(3)
    rows = np.repeat(rng.normal(size=(60, 5)), 4, axis=0) + 0.05 * rng.normal(size=(240, 5))
    gaps = gaps_of(rows, "euclidean")
    scores = rng.integers(0, 9, 240)
    counts = (gaps <= 0.2).sum(axis=1)
    order = {
        "first": np.arange(240),
        "last": np.arange(240)[::-1],
        "medoid": np.argsort(-counts, kind="stable"),
        "scores": np.argsort(-scores, kind="stable"),
    }[keep]
    found = cover(rows, radius=0.2, keep=scores if keep == "scores" else keep)
    assert found.indices.tolist() == net(gaps, 0.2, order)
    assert found.method == "net"
    np.testing.assert_allclose(found.assignment_distances, gaps[:, found.indices].min(axis=1), atol=1e-12)
    assert found.radius == found.assignment_distances.max() <= 0.2 == found.spacing
    kept = gaps[np.ix_(found.indices, found.indices)] + np.eye(found.size)
    assert kept.min() > 0.2


def test_copies_of_one_row_and_a_radius_above_the_diameter_keep_one_row():
    assert cover(np.ones((3000, 3)), radius=0.0).indices.tolist() == [0]
    rows = np.random.default_rng(0).normal(size=(3000, 40))
    assert cover(rows, radius=1e3).size == 1
    assert [cover(rows, radius=radius).size for radius in (1e17, 1e30, 1e200)] == [1, 1, 1]
    assert cover(rows[:, :3] * 1e14, radius=1e40, keep="medoid").size == 1
    assert cover(rows, radius=0.0).size == 3000
    assert cover(rows, radius=1e3, keep="last").indices.tolist() == [2999]


def test_where_few_rows_are_kept_they_are_farthest_first():
    rows = np.random.default_rng(0).normal(size=(20_000, 2))
    found = cover(rows, radius=2.0)
    assert found.method == "farthest-first"
    assert found.indices.tolist() == cover(rows, found.size).indices.tolist()
    assert cover(rows, radius=2.0, keep="first").method == "net"


def test_a_net_goes_on_from_rows_or_points():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 6))
    gaps = gaps_of(rows, "euclidean")
    start = [5, 6, 390]
    found = cover(rows, radius=1.2, keep="first", start=start)
    rest = [row for row in range(400) if row not in start and gaps[row, start].min() > 1.2]
    assert found.indices.tolist() == net(gaps, 1.2, rest)
    points = cover(rows, radius=1.2, keep="first", start=rows[start])
    assert set(points.start.tolist()) == {-1}
    assert points.indices.tolist() == found.indices.tolist()
    assert points.radius == found.radius


def test_pairs_and_components_are_those_of_the_definition():
    rng = np.random.default_rng(2)
    line = np.cumsum(rng.choice([0.5, 3.0], 200, p=[0.8, 0.2]))
    rows = np.stack([line, np.zeros(200)], axis=1)[rng.permutation(200)]
    found = cover(rows, radius=1.0)
    gaps = gaps_of(rows, "euclidean")
    first, second = np.nonzero(np.triu(gaps <= 1.0, 1))
    pairs = found.pairs()
    found_pairs = sorted(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert found_pairs == list(zip(first.tolist(), second.tolist(), strict=True))
    np.testing.assert_allclose(pairs.distances, gaps[pairs.first, pairs.second])
    order = np.argsort(rows[:, 0])
    chains = np.split(order, np.flatnonzero(np.diff(rows[order, 0]) > 1.0) + 1)
    expected = sorted((sorted(chain.tolist()) for chain in chains if len(chain) > 1), key=lambda chain: (-len(chain), chain[0]))
    components = found.components()
    assert [component.rows.tolist() for component in components] == expected
    for component in components:
        assert component.diameter == pytest.approx(np.ptp(rows[component.rows, 0]))
    assert max(component.diameter for component in components) > 1.0


def test_rows_are_added_to_a_saved_cover(tmp_path):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 4)).astype(np.float32)
    gaps = gaps_of(rows, "euclidean")
    found = cover(rows[:200], radius=0.8)
    found.save(tmp_path / "cover.npz")
    again = Cover.load(tmp_path / "cover.npz")
    assert again.indices.tolist() == found.indices.tolist()
    assert str(again) == str(found)
    for one in (found, again):
        more = one.update(rows[200:])
        assert more.indices.tolist() == net(gaps, 0.8, range(300))
        np.testing.assert_array_equal(more.assignment_distances[:200], found.assignment_distances)
        np.testing.assert_allclose(more.assignment_distances[200:], gaps[200:, more.indices].min(axis=1), atol=2e-6)
        np.testing.assert_array_equal(more.points, rows[more.indices])
    with pytest.raises(ValueError, match="data must have the 4 columns of this cover, got 3"):
        found.update(rows[:, :3])
    with pytest.raises(ValueError, match="radius must be a finite distance"):
        found.groups(-1.0)
    with pytest.raises(ValueError, match="data must be given"):
        again.pairs()
    assert len(again.pairs(data=rows[:200]).first) == len(found.pairs().first)
    with pytest.raises(ValueError, match="200 rows"):
        again.pairs(data=rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "best"}, "keep must be one of"),
        ({"keep": np.ones(4)}, "one number for each of the 5 rows"),
        ({"keep": np.array([1, 2, np.nan, 3, 4])}, "keep must not hold NaN, got one in row 2"),
        ({"keep": "first", "size": 2}, "keep must not be given with size"),
    ],
)
def test_wrong_priorities_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        cover(np.ones((5, 2)), radius=1.0, **options)


def test_a_net_of_a_file_is_that_of_memory(tmp_path):
    rows = np.random.default_rng(5).normal(size=(500, 40)).astype(np.float16)
    rows[250:300] = rows[:50]
    np.save(tmp_path / "rows.npy", rows)
    found = cover(tmp_path / "rows.npy", radius=0.5)
    assert found.indices.tolist() == cover(rows, radius=0.5).indices.tolist() == [*range(250), *range(300, 500)]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("by_products", [True, False])
def test_counts_of_near_rows_are_the_definition(metric, by_products):
    rows = np.random.default_rng(4).normal(size=(2500, 6)).astype(np.float32)  # more than a chunk
    gaps = gaps_of(rows, metric)
    radius = float(np.quantile(gaps, 0.3 if by_products else 0.001)) * (1 + 1e-9)  # of no pair
    search = near_rows(HostRows(rows), metric == "cosine", 2 * radius if metric == "cosine" else radius**2)
    search._by_products = by_products
    assert search.counts(2500).tolist() == ((gaps <= radius).sum(axis=1) - 1).tolist()
    inside = gaps[:700, :700] <= radius
    assert search.counts(700).tolist() == (inside.sum(axis=1) - 1).tolist()
