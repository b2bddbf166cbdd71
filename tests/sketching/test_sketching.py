"""Sketches of rows: which rows, weights, assignments, and the measured error."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reduset import Gaussian, KernelMean, Sketch, Student, sketch


def cells(n=6000, seed=0):
    """Three types, one of them of 0.5 %, in four columns, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.7, 0.295, 0.005])
    return 4 * np.eye(4)[y] + 0.5 * rng.normal(size=(n, 4)), np.array(["T", "B", "rare"])[y]


def test_rows_ascend_weights_sum_to_one_and_rows_are_assigned_to_the_nearest():
    X, y = cells()
    small = sketch(X, 150, rng=0)
    assert isinstance(small, Sketch)
    assert small.size == 150
    assert (np.diff(small.indices) > 0).all()
    assert small.weights.sum() == pytest.approx(1.0)
    assert np.array_equal(small.assignments[small.indices], np.arange(150))
    apart = np.linalg.norm(X[:, None] - X[small.indices], axis=2)
    own = apart[np.arange(len(X)), small.assignments]
    assert np.allclose(own, apart.min(axis=1))
    assert own.max() == pytest.approx(small.radius, rel=1e-6)
    assert np.array_equal(small.mean.atoms, X[small.indices])
    assert small.weights[y[small.indices] == "rare"].sum() == pytest.approx(np.mean(y == "rare"), abs=1 / 150)


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize("d", [2, 12, 45])
@pytest.mark.parametrize("scales", [None, "robust"])
def test_no_row_is_farther_than_the_radius_from_its_assigned_row(d, scales):
    X = np.random.default_rng(d).standard_t(3, size=(3000, d)) * np.arange(1, d + 1)
    small = sketch(X, 200, kernel=Gaussian(scales=scales), rng=0)
    covariance = small.mean.kernel.unit_covariance
    units = np.ones(d) if covariance is None else np.sqrt(np.diag(covariance) if np.ndim(covariance) == 2 else covariance)
    own = np.linalg.norm((X - X[small.indices][small.assignments]) / units, axis=1)
    assert own.max() <= small.radius * (1 + 1e-6)
    assert own.max() >= small.radius * (1 - 1e-6)


def test_without_calibration_weights_are_the_masses_of_the_strata():
    X, _ = cells()
    plain = sketch(X, 150, calibrate=False, coverage=0.0, rng=0)
    assert np.allclose(plain.weights, 1 / 150)  # 6,000 rows in 150 strata of 40
    assert plain.exact == ()
    fitted = sketch(X, 150, coverage=0.0, rng=0)
    assert np.array_equal(fitted.indices, plain.indices)
    assert fitted.exact[:2] == ("means", "standard deviations")
    assert not np.allclose(fitted.weights, plain.weights)
    assert (fitted.weights / plain.weights).max() <= 3
    assert np.allclose(fitted.weights @ X[fitted.indices], X.mean(axis=0), rtol=1e-9)


def test_coverage_lowers_the_radius():
    X = np.random.default_rng(0).standard_t(3, size=(20_000, 3))
    few, many = (sketch(X, 400, coverage=share, rng=0) for share in (0.0, 0.5))
    assert many.covering.sum() == 200
    assert many.radius < few.radius / 2
    assert many.weights[many.covering].mean() < many.weights[~many.covering].mean()


def test_integer_weights_are_repetitions():
    """Weighted columns of a sketch drawn by weight, and of one drawn from repeated rows, are the same."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(3000, 2)), rng.integers(0, 4, 3000)
    repeated = np.repeat(X, weights, axis=0)
    small = sketch(X, 300, sample_weight=weights.astype(float), rng=0)
    again = sketch(repeated, 300, rng=0)
    assert (weights[small.indices] > 0).all()
    assert (small.assignments[weights == 0] == -1).all()
    for rows, w in ((X[small.indices], small.weights), (repeated[again.indices], again.weights)):
        assert np.allclose(w @ rows, repeated.mean(axis=0), atol=1e-9)
        assert np.allclose(w @ rows**2, (repeated**2).mean(axis=0), rtol=1e-9)
    before, after = ([each.all_rows for each in found.columns] for found in (small, again))
    assert np.allclose(before, after)


def test_the_certificate_has_both_error_and_radius():
    X, _ = cells(3000)  # few enough for the exact error
    small = sketch(X, 100, rng=0)
    full = KernelMean.from_samples(X, small.mean.kernel)
    assert small.certificate.relative_error == pytest.approx(full.distance(small.mean) / full.norm(), rel=1e-5)
    assert small.certificate.interval[1] <= 0.05
    assert small.resolution == small.mean.kernel.width
    gaps = np.linalg.norm(X[:, None] - X[small.indices], axis=2).min(axis=1)
    assert gaps.max() <= small.certificate.radius * (1 + 1e-6)
    coarser = small.profile.bandwidths >= small.resolution
    assert (small.profile.intervals[coarser, 1] <= 0.05).all()


@pytest.mark.slow
def test_intervals_cover_the_true_error():
    X, _ = cells(9000)  # too many for the exact error: by frequencies
    inside = 0
    for seed in range(10):
        small = sketch(X, 80, rng=seed)
        full = KernelMean.from_samples(X, small.mean.kernel)
        low, high = small.certificate.interval
        inside += low <= full.distance(small.mean) / full.norm() <= high
    assert inside >= 9


def test_a_given_bandwidth_is_used():
    X, _ = cells()
    small = sketch(X, 100, kernel=Gaussian(0.3), rng=0)
    assert small.mean.kernel.width == 0.3
    assert small.resolution is None
    heavy = sketch(X, 100, kernel=Student(1.0, exponent=3.0), rng=0)
    assert 0 < heavy.certificate.relative_error < 1


def test_scales_make_units_irrelevant():
    X, _ = cells()
    stretched = X * np.array([1.0, 1000.0, 1e-3, 1.0])
    plain = sketch(X, 80, kernel=Gaussian(scales="robust"), coverage=0.3, rng=0)
    other = sketch(stretched, 80, kernel=Gaussian(scales="robust"), coverage=0.3, rng=0)
    assert np.array_equal(other.indices[other.covering], plain.indices[plain.covering])
    assert other.radius == pytest.approx(plain.radius, rel=0.3)  # the other rows are drawn at random
    assert other.resolution == pytest.approx(plain.resolution, rel=0.5)
    assert "units of the columns' scales" in str(other)


def test_a_column_that_drowns_the_others_is_warned_of():
    rng = np.random.default_rng(0)
    people = np.column_stack([rng.lognormal(10.3, 0.6, 4000), rng.normal(45, 12, 4000), rng.poisson(3, 4000)])
    people[:8, 1:] = 20, 25  # rare by the narrow columns
    with pytest.warns(UserWarning, match="0.*2.*scales='robust'"):
        sketch(people, 100, rng=0)
    small = sketch(people, 100, kernel=Gaussian(scales="robust"), rng=0)
    covered = sketch(people, 100, kernel=Gaussian(scales="robust"), coverage=0.1, rng=0)
    assert covered.weights[covered.indices < 8].sum() == pytest.approx(8 / 4000, rel=1.0)
    assert small.radius > covered.radius
    sketch(people, 100, kernel=Gaussian(), rng=0)  # one unit is meant: no warning


@pytest.mark.parametrize("rule", ["equal", "proportional", "square root"])
def test_groups_have_rows_and_proportions_of_their_own(rule):
    X, y = cells()
    small = sketch(X, 120, groups=y, quotas=rule, rng=0)
    shares = {name: small.weights[small.groups == name].sum() for name in ("T", "B", "rare")}
    assert all(shares[name] == pytest.approx(np.mean(y == name), abs=1e-12) for name in shares)
    assert np.array_equal(y[small.indices], small.groups)
    assert np.array_equal(y[small.indices][small.assignments], y)  # assignments stay within groups
    counts = {name: int((small.groups == name).sum()) for name in shares}
    assert sum(counts.values()) == 120
    if rule == "equal":
        assert counts["rare"] == min(40, int((y == "rare").sum()))
        assert abs(counts["T"] - counts["B"]) <= 1
    if rule == "proportional":
        assert counts["T"] == pytest.approx(120 * np.mean(y == "T"), abs=1.5)
    if rule == "square root":
        assert counts["T"] / counts["B"] == pytest.approx(np.sqrt(np.mean(y == "T") / np.mean(y == "B")), rel=0.1)


def test_a_group_of_fewer_rows_than_its_quota_is_kept_whole():
    X, y = cells()
    small = sketch(X, 600, groups=y, quotas="equal", rng=0)
    rare = np.flatnonzero(y == "rare")
    assert np.array_equal(small.indices[small.groups == "rare"], rare)
    assert small.size == 600
    assert "rare" in small.message


def test_values_are_carried_to_assigned_rows():
    X, y = cells()
    small = sketch(X, 200, rng=0)
    assert np.mean(small.carried(y[small.indices]) == y) > 0.99
    assert small.carried(X[small.indices]).shape == X.shape
    with pytest.raises(ValueError, match="values must have 200 rows"):
        small.carried(np.zeros(199))


def test_repeated_rows_keep_their_proportion_without_weights():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 3)), [10, 70] * 15, axis=0)
    small = sketch(X, 120, rng=0)
    assert small.size == 120
    places, counts = np.unique(X[small.indices], axis=0, return_counts=True)
    truth = np.array([(place == X).all(axis=1).sum() for place in places]) / len(X)
    assert np.abs(counts / 120 - truth).max() < 2 / 120
    assert np.array_equal(small.assignments[small.indices], np.arange(120))


def test_rows_that_are_nearly_all_one_place():
    X = np.zeros((9000, 3))
    X[-40:] = np.random.default_rng(0).normal(size=(40, 3))
    small = sketch(X, 30, kernel=Gaussian(1.0), coverage=0.5, rng=0)
    assert small.size == 30
    zero = (X[small.indices] == 0).all(axis=1)
    assert zero.sum() == 15
    assert small.weights[zero].sum() == pytest.approx(1 - 40 / 9000, abs=2e-3)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 2**32 - 1), st.booleans())
def test_any_rows_can_be_sketched(n, d, seed, weighted):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, d)).astype(float)
    if len(np.unique(X, axis=0)) < 2:
        X = np.arange(n * d, dtype=float).reshape(n, d)
    if n == 1:
        X = np.concatenate([X, X + 1])
    w = rng.exponential(size=len(X)) if weighted else None
    size = int(rng.integers(1, len(X) + 1))
    small = sketch(X, size, kernel=Gaussian(1.0), sample_weight=w, rng=0)
    assert small.size == size
    assert small.weights.sum() == pytest.approx(1.0)
    assert np.array_equal(np.unique(small.assignments), np.arange(size))
    plain = sketch(X, size, kernel=Gaussian(1.0), sample_weight=w, calibrate=False, rng=0)
    assert np.array_equal(plain.indices, small.indices)
    assert (small.weights <= 3 * plain.weights * (1 + 1e-9)).all()
    assert (small.weights >= plain.weights / 3 * (1 - 1e-9)).all()


def test_the_same_seed_gives_the_same_rows():
    X, _ = cells()
    first, second = (sketch(X, 90, rng=5) for _ in range(2))
    assert np.array_equal(first.indices, second.indices)
    assert np.array_equal(first.assignments, second.assignments)
    assert first.certificate == second.certificate or np.isnan(first.certificate.norm)
    assert not np.array_equal(first.indices, sketch(X, 90, rng=6).indices)


def test_it_prints_radius_weights_error_and_columns():
    X, y = cells()
    small = sketch(X, 150, groups=y, rng=0)
    text = str(small)
    for words in (
        "Sketch: 6,000 rows × 4 columns -> 150 weighted rows (40x)",
        f"radius      {small.radius:.3g}, the largest distance",
        "times the average",
        "columns     weighted means",
        "change",
        f"of the kernel density at bandwidth {small.resolution:.3g}; at most 5 % at all larger bandwidths",
        "groups      3, sketched separately",
    ):
        assert words in text
    seen = []
    sketch(X, 50, rng=0, progress=lambda stage, done, total: seen.append(stage))
    assert {"selecting", "certifying"} <= set(seen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 7000}, "size must be.*6000"),
        ({"size": 0}, "size must be"),
        ({"tol": -1}, "tol must be"),
        ({"coverage": 2}, "coverage must be at most 1"),
        ({"quotas": "fair"}, "quotas must be one of"),
        ({"groups": np.zeros(3)}, "groups must have shape"),
        ({"groups": np.where(np.arange(6000) == 7, np.nan, 1.0)}, "groups .*got missing"),
        ({"groups": np.arange(6000) % 200}, "size must be at least the number of groups, 200"),
        ({"confidence": 1.5}, "confidence"),
    ],
)
def test_invalid_options_raise(options, message):
    X, _ = cells()
    with pytest.raises(ValueError, match=message):
        sketch(X, **({"size": 100, "rng": 0} | options))


def test_missing_numbers_raise():
    with pytest.raises(ValueError, match=r"NaN|finite|missing"):
        sketch(np.array([[1.0, np.nan], [0.0, 1.0], [2.0, 2.0]]), 2)


def people(n=3000):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "income": np.exp(rng.normal(10, 0.6, n)),
            "age": rng.integers(18, 95, n),
            "member": rng.random(n) < 0.3,
            "city": rng.choice(["Berlin", "Oslo", "Paris"], n, p=[0.6, 0.1, 0.3]),
            "name": [f"person {k}" for k in range(n)],
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )


def test_frames_are_encoded_and_scaled_and_identifiers_are_not_used():
    frame = people()
    small = sketch(frame, 150, rng=0)
    cities = ("city=Berlin", "city=Oslo", "city=Paris")
    assert small.kept.names == ("income", "age", "member", *cities, "joined")
    notes = "\n".join(small.notes)
    for words in ("city as 3 columns", "joined as days", "id looks like an identifier", "name"):
        assert words in notes
        assert words in str(small)
    kept = small.to_frame()
    assert list(kept) == [*frame, "weight"]
    for city, proportion in frame["city"].value_counts(normalize=True).items():
        weighted = kept.loc[kept["city"] == city, "weight"].sum() / kept["weight"].sum()
        assert weighted == pytest.approx(proportion, rel=1e-9)
    for column in ("income", "age"):
        assert np.average(kept[column], weights=kept["weight"]) == pytest.approx(frame[column].mean(), rel=1e-9)
    assert small.mean.kernel.scales is not None


def test_encoding_and_scales_can_be_switched_off():
    frame = people()[["income", "age", "city"]]
    numbers = sketch(frame, 100, encode=None, scales="standard", rng=0)
    assert numbers.kept.names == ("income", "age")
    np.testing.assert_allclose(numbers.mean.kernel.scales, frame[["income", "age"]].std(ddof=0), rtol=1e-6)
    plain = sketch(frame[["age"]], 100, scales=None, rng=0)
    assert plain.mean.kernel.scales is None
    with pytest.raises(ValueError, match="scales needs kernel=None"):
        sketch(frame[["age"]], 100, kernel=Gaussian(1.0), scales="robust")


def test_a_missing_entry_of_a_frame_is_named_by_its_column():
    frame = people()
    frame.loc[7, "income"] = np.nan
    with pytest.raises(ValueError, match="income"):
        sketch(frame, 100)


def test_arrays_are_not_scaled():
    X, _ = cells()
    assert sketch(X, 100, rng=0).mean.kernel.scales is None


def test_numbers_as_names_of_columns():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)))
    assert sketch(frame, 20, rng=0).kept.names == ("0", "1", "2")


def test_means_that_no_bounded_weights_reach_are_printed_as_not_exact():
    frame = people()[["income", "city"]]
    frame.loc[0, "city"] = "Rome"
    frame = pd.concat([frame, frame.iloc[[1] * 3000]], ignore_index=True)
    small = sketch(frame, 20, rng=0)
    assert ("weighted means are not exact" in str(small)) == (not small.exact)
    assert "not exact" not in str(sketch(frame, 20, calibrate=False, rng=0))


def incomes(n=60_000, seed=0):
    """Income with a long upper tail, age, a count and a category of 0.1 %."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": np.round(rng.lognormal(10.3, 0.6, n)),
            "age": np.round(np.clip(rng.normal(45, 15, n), 18, 95)),
            "children": rng.poisson(1.2, n),
            "city": rng.choice(["A", "B", "C", "rare"], n, p=[0.5, 0.3, 0.199, 0.001]),
        }
    )


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_tables_keep_minima_and_maxima_of_columns_and_their_spreads_without_weights(seed):
    frame = incomes(seed=seed)
    small = sketch(frame, 1000, rng=seed)
    rows = frame.iloc[small.indices]
    for name in ("income", "age", "children"):
        assert rows[name].max() == frame[name].max()
        assert rows[name].min() == frame[name].min()
        chance = np.sqrt((((frame[name] - frame[name].mean()) / frame[name].std()) ** 4).mean() / 4000)  # of 1,000 random rows
        assert abs(rows[name].std() / frame[name].std() - 1) < 2 * chance
        mean = np.average(rows[name], weights=small.weights)
        assert mean == pytest.approx(frame[name].mean(), rel=1e-9)
        assert np.sqrt(np.average((rows[name] - mean) ** 2, weights=small.weights)) == pytest.approx(
            frame[name].std(ddof=0), rel=1e-9
        )
    extreme = rows["income"].to_numpy() == frame["income"].max()
    assert small.weights[extreme].sum() < 1e-4  # of the one row that it is
    assert small.covering[extreme].all()
    assert set(rows["city"]) == {"A", "B", "C", "rare"}


def test_extremes_beyond_what_other_rows_offset_are_omitted():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=20_000), "y": rng.normal(size=20_000)})
    frame.loc[7, "x"] = 1e4
    small = sketch(frame, 500, rng=0)
    assert 7 not in small.indices
    assert frame["y"].idxmax() in small.indices
    assert sketch(frame, 500, coverage=0.0, rng=0).covering.sum() == 0


def test_exceptions_of_calibration_are_printed_by_column():
    small = sketch(np.random.default_rng(0).normal(size=(3000, 2)), 200, rng=0)
    assert "except" not in str(small)
    other = replace(small, exceptions=(("city=rare", "mean"), ("age", "90% quantile")))
    assert "all rows, except the mean of city=rare and the 90% quantile of age" in str(other)
    many = replace(small, exceptions=tuple((f"x{k}", "mean") for k in range(7)))
    assert "except 7 of columns x0, x1, x2 and 4 more" in str(many)


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_category_smaller_than_a_stratum_keeps_a_row_and_its_proportion(seed):
    """Beside a heavy-tailed column, whose extremes leave no budget for other covering rows."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"amount": 10 * (1 + rng.pareto(2.5, 40_000)), "country": rng.choice(["DE", "FR"], 40_000)})
    frame.loc[rng.choice(40_000, 40, replace=False), "country"] = "IS"
    small = sketch(frame, 500, rng=seed)
    rare = (frame["country"].iloc[small.indices] == "IS").to_numpy()
    assert 1 <= rare.sum() <= 2
    assert small.weights[rare].sum() == pytest.approx(0.001, rel=1e-6)
    assert small.exceptions == ()


def test_heavy_tails_are_better_than_random_rows_without_weights_and_exact_with_them():
    rng = np.random.default_rng(3)
    n, size = 50_000, 1000
    people = pd.DataFrame({"amount": (rng.pareto(1.3, n) * 100).round(2), "age": rng.integers(18, 90, n)})
    x = people["amount"].to_numpy()
    apart = [abs(rng.choice(x, size, replace=False).mean() / x.mean() - 1) for _ in range(50)]
    for seed in range(3):
        small = sketch(people, size, rng=seed)
        assert abs(x[small.indices].mean() / x.mean() - 1) < np.mean(apart)
        for q in np.quantile(x, np.arange(1, 10) / 10, method="inverted_cdf"):
            assert small.weights[x[small.indices] <= q].sum() == pytest.approx(np.mean(x <= q), abs=1e-9)
        assert "not kept: maximum of amount (286151)" in str(small)


@pytest.mark.parametrize("calibrate", [True, False])
def test_all_rows_are_exact_in_everything(calibrate):
    people = pd.DataFrame({"x": [1.0, 2.0, 5.0, 8.0, 9.5], "kind": list("aabba")})
    small = sketch(people, 5, calibrate=calibrate, rng=0)
    assert small.exact == ("means", "standard deviations", "deciles")
    assert small.message == ""
    text = str(small)
    assert "not exact" not in text
    assert "largest" not in text.split("weights")[1].split("radius")[0]
    assert "kept: every minimum and maximum, every category" in text
