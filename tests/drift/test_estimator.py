"""DriftTest at the door: references of every kind, files, columns by name, weights, bad input, the same answer every time."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import reduset
from archive_cases import parts, store
from reduset import Gaussian, KernelMean, Model, compress
from reduset.drift import DriftTest, two_sample
from reduset.drift.reference import StoredReference
from reduset.stream import StreamCompressor
from row_blocks import ListedRows

RNG = np.random.default_rng(1)
X = RNG.normal(size=(9000, 3))
Y = RNG.normal(size=(400, 3))
MOVED = Y + np.array([0.0, 0.5, 0.0])
# size=64: a fourth of the default's atoms show all of this as well, and what a test costs grows with their square and more


def references():
    small = compress(X, size=200, rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    da = pytest.importorskip("dask.array")
    return {
        "rows": X,
        "few rows": X[:900],
        "compression": small,
        "components": compress(X, size=30, pieces="components", rng=0),
        "model": Model.of(full, small, columns=["a", "b", "c"]),
        "stream": StreamCompressor(Gaussian(1.0), 50, 0).partial_fit(X),
        "dask": da.from_array(X, chunks=(2000, 3)),
    }


@pytest.fixture(scope="module")
def fitted():
    return {name: DriftTest(size=64, random_state=0, n_resamples=199).fit(each) for name, each in references().items()}


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("kind", ["rows", "few rows", "compression", "components", "model", "stream", "dask"])
def test_references_of_every_kind_tell_a_change_from_none_before_and_after_they_are_saved(fitted, kind, tmp_path):
    test = fitted[kind]
    test.save(tmp_path / "reference.npz", {"told": 1})
    again = DriftTest.load(tmp_path / "reference.npz")
    assert again.about_ == {"told": 1}
    for new, drifted in ((Y, False), (MOVED, True)):
        found, same = test.test(new), again.test(new)
        assert (found.p_value < 0.01) == drifted
        assert found.p_value == same.p_value
        assert [str(each) for each in found.where()] == [str(each) for each in same.where()]
        assert [str(each) for each in found.columns()] == [str(each) for each in same.columns()]
    assert found.columns()[0].name in ("x2", "b")
    assert found.columns()[0].direction == "higher"


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_in_blocks_give_the_reference_of_an_array(monkeypatch, weighted):
    monkeypatch.setattr("reduset.drift.estimator.WHOLE_ROWS", 100)
    weights = np.random.default_rng(7).integers(0, 3, len(X)) if weighted else None
    tests = [
        DriftTest(size=64, random_state=0, n_resamples=199).fit(some, sample_weight=weights)
        for some in (X, ListedRows(X, 2000, 1, 3999, 3000))
    ]
    array, blocks = (test.reference_ for test in tests)
    assert isinstance(blocks, StoredReference)
    assert blocks.n_samples == array.n_samples
    for name in ("mean", "covariance", "rows", "sample"):
        np.testing.assert_allclose(getattr(blocks, name), getattr(array, name), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(blocks.cells.sums, array.cells.sums, rtol=1e-9, atol=1e-12)
    one, other = (test.test(Y) for test in tests)
    assert one.p_value == other.p_value


def test_no_row_is_kept_where_none_may_be(tmp_path):
    test = DriftTest(size=64, random_state=0, keep_rows=False).fit(X)
    test.save(tmp_path / "reference.npz")
    with np.load(tmp_path / "reference.npz") as kept:
        assert kept["sample"].shape == (0, 3)
        assert "rows" not in kept
        assert not np.isin(kept["atoms"], X).any()
        assert not np.isin(kept["edges"], X).any()
        shares, sums = kept["cell_shares"][:, None], kept["cell_sums"]
        means = sums / np.where(shares > 0, shares, 1.0)
        assert np.abs(means[:, None] - X[None]).max(axis=2).min() > 1e-9
    none = test.test(Y)
    assert none.p_value > 0.01 > test.test(MOVED).p_value
    assert none.detectable_shift is None


def test_a_reference_of_many_rows_takes_little_room(tmp_path):
    test = DriftTest(random_state=0).fit(np.random.default_rng(1).normal(size=(30_000, 10)))
    test.save(tmp_path / "reference.npz")
    assert (tmp_path / "reference.npz").stat().st_size < 5_000_000


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_are_found_by_name(frame):
    names = ["a", "b", "c"]
    test = DriftTest(size=64, random_state=0, n_resamples=99).fit(frame(dict(zip(names, X[:500].T, strict=True))))
    straight = test.test(frame(dict(zip(names, Y.T, strict=True))))
    turned = test.test(frame(dict(zip(names[::-1], Y.T[::-1], strict=True))))
    assert straight.p_value == turned.p_value
    with pytest.raises(ValueError, match="lacks 'c' and has 'd'"):
        test.test(frame(dict(zip(["a", "b", "d"], Y.T, strict=True))))
    with pytest.raises(ValueError, match="3 columns of the reference, got 2"):
        test.test(Y[:, :2])


def test_both_samples_are_treated_alike():
    one, other = two_sample(X[:300], MOVED[:200], rng=0), two_sample(MOVED[:200], X[:300], rng=0)
    assert one.distance == pytest.approx(other.distance, rel=0.15)
    assert one.p_value < 0.02 > other.p_value
    assert one.columns()[0].direction == "higher"
    assert other.columns()[0].direction == "lower"


def test_units_of_columns_do_not_matter_unless_they_are_said_to():
    units = np.array([1.0, 1e6, 1e-3])
    plain, scaled = two_sample(X[:300], MOVED, rng=0), two_sample(X[:300] * units, MOVED * units, rng=0)
    assert plain.p_value == scaled.p_value
    assert plain.distance == pytest.approx(scaled.distance, rel=1e-4)
    unscaled = two_sample(X[:300] * units, Y * units + [0.3, 0.0, 0.0], rng=0, scales=None)
    assert unscaled.distance < unscaled.null_quantile  # the column of millions decides which rows are near
    assert unscaled.p_value < 0.01  # while ranks of single columns have no units


def test_rows_of_weight_zero_are_not_there():
    weights = np.repeat([1.0, 0.0], [300, 100])
    mixed = np.concatenate([Y[:300], Y[300:] + 9.0])
    found = two_sample(X[:500], mixed, sample_weight=(None, weights), rng=0)
    assert found.n_samples == 300
    assert found.p_value == two_sample(X[:500], Y[:300], rng=0).p_value


@pytest.mark.parametrize("reference", [X, X[:800]])
def test_weights_say_how_much_a_row_counts(reference):
    weights = np.where(np.arange(800) < 400, 1.0, 0.05)
    mixed = np.concatenate([Y, MOVED])
    test = DriftTest(size=64, random_state=0).fit(reference)
    assert test.test(mixed).p_value < 0.05
    mostly_old = test.test(mixed, sample_weight=weights)
    assert mostly_old.p_value > test.test(mixed, sample_weight=weights[::-1]).p_value
    assert mostly_old.n_samples == pytest.approx(420**2 / 401)


def test_a_weighted_reference():
    weights = np.where(np.arange(9000) < 4500, 1.0, 0.0)
    shifted = np.concatenate([X[:4500], X[4500:] + 5.0])
    assert DriftTest(size=64, random_state=0).fit(shifted, sample_weight=weights).test(Y).p_value > 0.01
    uneven = np.random.default_rng(0).random(9000) + 0.1
    assert DriftTest(size=64, random_state=0, keep_rows=False).fit(X, sample_weight=uneven).test(Y).p_value > 0.01


def test_the_same_seed_gives_the_same_bits_from_any_number_of_threads():
    before = reduset.get_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            reduset.set_threads(threads)
            for reference in (X, X[:700]):
                result = DriftTest(size=64, random_state=7, n_resamples=199).fit(reference).test(MOVED[:200] * 0.9)
                found.append((result.p_value, result.statistic, result.distance, [str(each) for each in result.where()]))
    finally:
        reduset.set_threads(before)
    assert found[:2] == found[2:4] == found[4:]


@pytest.mark.slow
def test_how_small_a_change_could_have_been_seen_falls_with_more_rows():
    test = DriftTest(size=64, random_state=0, n_resamples=199).fit(X)
    few, many = (test.test(Y[:count]) for count in (50, 400))
    assert few.detectable_share > many.detectable_share > 0
    assert few.detectable_shift > many.detectable_shift > 0
    shift = many.detectable_shift
    rng = np.random.default_rng(5)
    share = [test.test(rng.normal(size=(400, 3)) + shift / np.sqrt(3)).drift for _ in range(40)]
    assert np.mean(share) > 0.6


@pytest.mark.slow
def test_the_detectable_shift_is_of_the_continuous_columns():
    flags = np.random.default_rng(3).integers(0, 2, (len(X), 2))
    test = DriftTest(size=64, random_state=0, n_resamples=199)
    assert test.fit(np.column_stack([X, flags])).test(np.column_stack([Y, flags[: len(Y)]])).detectable_shift > 0.01
    assert test.fit(flags).test(flags[:100]).detectable_shift is None


@pytest.mark.slow
def test_a_distance_has_an_interval_and_what_chance_allows():
    test = DriftTest(size=64, random_state=0).fit(X)
    none, moved = test.test(Y), test.test(MOVED)
    assert none.distance <= none.null_quantile
    assert moved.interval[0] <= moved.bias_corrected <= moved.interval[1]
    assert moved.bias_corrected <= moved.distance
    assert moved.interval[0] > 0
    assert moved.distance > moved.null_quantile
    assert moved.effect_size > none.effect_size >= 0
    assert "Drift detected" in str(moved)
    assert "No drift detected" in str(none)


@pytest.mark.fast_cases(15)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DriftTest().fit(X[:1]), "at least 2 rows"),
        (lambda: DriftTest().fit(X).test(Y[:1]), "at least 2 rows"),
        (lambda: DriftTest().fit(np.full((50, 2), 3.0)).test(np.full((50, 2), 3.0)), "rows must differ"),
        (lambda: DriftTest().fit(np.where(np.eye(9, 2) > 0, np.nan, 1.0)), "finite"),
        (lambda: DriftTest(keep_rows=False).fit(X[:300]), "keep_rows=False.*500"),
        (lambda: two_sample(X, Y, sample_weight=np.ones(9000)), "sample_weight must be a pair"),
        (lambda: DriftTest().fit(StreamCompressor(Gaussian(1.0), 5, 0).partial_fit(X[:1])), "at least 2 rows"),
        (lambda: DriftTest(alpha=0.0).fit(X), "alpha must lie between 0 and 1"),
        (lambda: DriftTest(size=1).fit(X), "size must be between 2 and 100000, got"),
        (lambda: DriftTest(n_resamples=9).fit(X), "n_resamples must be between 99 and 1000000, got"),
        (lambda: DriftTest(scales="iqr").fit(X), "scales must be one of"),
        (lambda: DriftTest().fit(X, sample_weight=np.zeros(9000)), "all zero"),
        (lambda: DriftTest().fit(X).test(Y, sample_weight=-np.ones(400)), "negative"),
        (lambda: DriftTest().fit(compress(X[:500], Gaussian(2.0), size=200, select="kcenter", rng=0)), "negative weights.*simplex"),
        (lambda: DriftTest().fit(compress(X, size=50, rng=0), sample_weight=np.ones(9000)), "sample_weight is for rows only"),
    ],
)
def test_bad_input_is_refused_with_a_way_out(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (3, 3)])
def test_few_rows_have_no_p_value_that_permutations_cannot_give(sizes):
    rng = np.random.default_rng(0)
    fewest = {(2, 2): 1 / 6, (3, 2): 1 / 10, (3, 3): 1 / 20}[sizes]
    for k in range(20):
        found = two_sample(*(rng.normal(size=(count, 2)) for count in sizes), rng=k, n_resamples=999)
        assert found.p_value > fewest * 0.6


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("weights", [np.r_[30_000.0, np.ones(299)], 0.5 ** (np.arange(300) / 5)])
def test_one_heavy_row_is_no_drift(weights):
    test, rng = DriftTest(size=64, random_state=0, n_resamples=199).fit(X), np.random.default_rng(3)
    assert sum(test.test(rng.normal(size=(300, 3)), sample_weight=weights).drift for _ in range(40)) <= 7


@pytest.mark.parametrize("reference", [X, X[:900]])
def test_rows_that_are_copies_are_warned_of(reference):
    test = DriftTest(size=64, random_state=0, n_resamples=99).fit(reference)
    with pytest.warns(UserWarning, match=r"200 of the 400 rows of X are exact duplicates.*drop_duplicates"):
        test.test(np.repeat(Y[:200], 2, axis=0))
    with pytest.warns(UserWarning, match=r"200 of the 400 rows of X are exact duplicates"):
        two_sample(np.repeat(Y[:200], 2, axis=0), X[:300], rng=0, n_resamples=99)


def test_rows_that_are_equal_by_chance_are_not_warned_of():
    rng = np.random.default_rng(4)
    counts = [rng.poisson(1.0, size=(n, 2)).astype(float) for n in (9000, 900, 5000)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DriftTest(size=64, random_state=0, n_resamples=99).fit(counts[0]).test(counts[1])
        DriftTest(size=64, random_state=0, n_resamples=99).fit(compress(X, size=50, rng=0)).test(Y)
        two_sample(counts[1], counts[2], rng=0, n_resamples=99)


def test_columns_of_one_name_are_not_told_apart_by_it():
    old, new = (pd.DataFrame(X[:300], columns=names) for names in (["a", "a", "b"], ["a", "b", "a"]))
    test = DriftTest(size=64, random_state=0).fit(old)
    assert not test.test(old[:150]).drift
    with pytest.raises(ValueError, match=r"unique column names .*'a' twice"):
        test.test(new)


def test_text_is_refused():
    with pytest.raises(TypeError, match="keep_rows must be True or False"):
        DriftTest(keep_rows="no").fit(X)
    with pytest.raises(TypeError, match="numbers"):
        DriftTest().fit(pd.DataFrame({"a": ["x", "y", "z"]}))


def test_a_constant_column_is_no_trouble_until_it_changes():
    old, new = (np.c_[rows, np.full(len(rows), 7.0)] for rows in (X[:600], Y))
    test = DriftTest(size=64, random_state=0).fit(old)
    assert test.test(new).p_value > 0.01
    new[:, 3] = 8.0
    changed = test.test(new)
    assert changed.p_value < 0.01
    assert changed.columns()[0].name == "x4"


@pytest.mark.parametrize("reference", [X, X[:500]])
def test_a_reference_file_that_was_changed_is_refused(reference, tmp_path):
    path = tmp_path / "reference.npz"
    DriftTest(size=64, random_state=0).fit(reference).save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"changed after|not a readable"):
        DriftTest.load(path)
    compress(X[:200], size=20, rng=0).mean.save(path)
    with pytest.raises(ValueError, match=r"holds 'reduset\.KernelMean'"):
        DriftTest.load(path)


@pytest.mark.parametrize(("name", "value"), [("n_resamples", 2**62), ("size", 2**40)])
def test_a_reference_file_with_settings_out_of_range_names_them(tmp_path, name, value):
    path = tmp_path / "reference.npz"
    DriftTest(size=64, random_state=0).fit(X[:500]).save(path)
    header, arrays = parts(path)
    store(path, header | {"settings": header["settings"] | {name: value}}, arrays)
    with pytest.raises(ValueError, match=f"{name} must"):
        DriftTest.load(path)


def test_a_reference_file_sets_at_most_50000_resamples(tmp_path):
    path = tmp_path / "reference.npz"
    kept = DriftTest(size=64, random_state=0, n_resamples=50_000).fit(X[:500])
    kept.save(path)
    assert DriftTest.load(path).n_resamples == 50_000
    kept.set_params(n_resamples=60_000).save(path)
    with pytest.warns(UserWarning, match=r"n_resamples in .*reference\.npz is 60,000, and a file sets at most 50,000"):
        loaded = DriftTest.load(path)
    assert loaded.n_resamples == 50_000
    assert loaded.set_params(n_resamples=99).test(Y[:50]).p_value > 0


def test_the_power_is_estimated_from_few_samples_however_many_resamples(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "reduset.drift.result.null_distribution.joined",
        lambda values, *_: asked.append(len(values)) or (np.ones(len(values)), np.ones_like(values)),
    )
    assert two_sample(X[:60], Y[:60], size=16, n_resamples=4000, rng=0).detectable_share == np.inf
    assert max(asked) == 250


@pytest.mark.parametrize("rows", [500, 9000])
def test_a_reference_in_single_precision_loads_without_a_warning(tmp_path, rows):
    path = tmp_path / "reference.npz"
    kept = DriftTest(size=64, random_state=0).fit(X[:rows].astype(np.float32))
    kept.save(path)
    assert DriftTest.load(path).test(Y).p_value == kept.test(Y).p_value


def test_a_reference_must_be_fitted_first():
    with pytest.raises(ValueError, match="not fitted"):
        DriftTest().test(Y)
