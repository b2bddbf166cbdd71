"""CohortStudy: refusals before anything is computed, what is compared and what is not, and what was planted found and told."""

import warnings

import numpy as np
import pytest

from reduset.cytometry import CohortStudy, SampleSet, design_of
from reduset.cytometry.distance_tests import check_batches
from study_cases import plain_study, study_in_memory

MARKERS = ["CD3", "CD19", "CD56"]
PLACES = np.array([[5.0, 0, 0], [0, 5, 0], [0, 0, 5]])


def cells_of(rng, n, shares, shift=0.0):
    kinds = rng.choice(3, n, p=shares)
    return PLACES[kinds] + shift + rng.normal(size=(n, 3)) * 0.7


def cohort(n=600, doubled=0.2, count=10, seed=0, shift=None):
    """Half of the samples ill, with more of the third population; shifts of markers by sample."""
    rng = np.random.default_rng(seed)
    rows = {}
    for k in range(count):
        rare = np.exp(0.15 * rng.normal()) * (doubled if k >= count // 2 else 0.08)
        rows[f"p{k}"] = cells_of(rng, n, [0.6 - rare, 0.4, rare], 0.0 if shift is None else shift[k])
    return rows


def table_of(bags, **columns):
    n = len(bags)
    return {"sample_id": list(bags), "condition": ["healthy"] * (n // 2) + ["ill"] * (n - n // 2)} | columns


@pytest.fixture(scope="module")
def study():
    bags = SampleSet.of(cohort(), table_of(range(10)) | {"sample_id": [f"p{k}" for k in range(10)]}, MARKERS)
    return CohortStudy("condition", n_atoms=40, random_state=0).fit(bags)


def test_what_was_planted_is_found_and_told_in_words(study):
    words = str(study)
    (found,) = (k for k in np.flatnonzero(study.differences_.found) if "CD56+" in study.populations_.names[k])
    assert len(study.populations_) == 3
    assert 0.8 < study.differences_.effects[0, found] < 1.9  # 0.08 to 0.2 is 1.3 to base 2
    assert words.startswith("10 samples, 6,000 cells, 3 markers")
    assert f"found      {study.populations_.names[found]}: " in words
    assert "samples of different condition differ" in words
    assert study.whole_.p_value <= 0.05
    assert study.whole_.interval[0] <= study.whole_.share <= study.whole_.interval[1]
    assert study.notes_ == ()
    assert study.batches_ is None


def test_the_witness_is_where_the_planted_population_is(study):
    witness, found, atoms = study.witness_, study.clusters_.found, study.populations_.atoms
    there = np.argmax(atoms, axis=1) == 2
    assert np.argmax(atoms[np.argmax(witness.values[0])]) == 2
    assert found[there].mean() > 0.8
    assert (witness.fold_changes[0, there & found] > 0).all()
    assert np.abs(witness.values).max() <= 1
    for name in ("values", "fold_changes"):
        assert np.isfinite(getattr(witness, name)).all()


def test_shuffled_labels_find_nothing_in_most_cohorts():
    bags = cohort(120, doubled=0.08)
    rng = np.random.default_rng(5)
    found = []
    for seed in range(8):
        table = table_of(bags) | {"condition": rng.permutation(["a", "b"] * 5).tolist()}
        each = CohortStudy("condition", n_atoms=20, n_populations=3, random_state=seed).fit(bags, table)
        found.append(each.differences_.found.any() or each.whole_.p_value <= 0.01)
    assert sum(found) <= 2


def test_without_a_column_to_test_there_are_populations_and_a_map():
    plain = plain_study()
    assert (plain.differences_, plain.whole_, plain.clusters_, plain.witness_, plain.batches_) == (None,) * 5
    assert plain.map_.embedding_.shape[0] == 2
    assert len(plain.populations_) >= 1
    assert str(plain).startswith("2 samples, 200 cells, 3 markers")


BAGS = {f"p{k}": np.random.default_rng(k).normal(size=(20, 2)) for k in range(6)}
SIX = {
    "sample_id": list(BAGS),
    "condition": ["a"] * 3 + ["b"] * 3,
    "alone": ["a"] * 5 + ["b"],
    "patient": [1, 1, 2, 3, 3, 4],
    "pair": [1, 2, 3, 1, 2, 3],
    "site": ["x"] * 3 + ["y"] * 3,
}


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"test": "group"}, SIX, "the table of samples has no column 'group'; it has sample_id, condition"),
        ({"test": "condition", "block": "who"}, SIX, "the table of samples has no column 'who'"),
        ({"test": "condition", "covariates": ["age"]}, SIX, "the table of samples has no column 'age'"),
        ({"batch": "run"}, SIX, "the table of samples has no column 'run'"),
        ({"control": "same"}, SIX, "the table of samples has no column 'same'"),
        ({"test": "condition"}, None, "the table of samples has no column 'condition'; it has none"),
        ({"test": "alone"}, SIX, "alone has a single sample in b"),
        ({"test": "condition", "block": "patient"}, SIX, "no block has samples of two groups of condition"),
        ({"test": "condition", "covariates": ["site"]}, SIX, "condition is confounded with site"),
        ({"test": "condition", "reference": "c"}, SIX, "the reference .*got 'c'"),
        ({"test": "condition", "fdr": 5}, SIX, "fdr must"),
        ({"test": "condition", "confidence": 2}, SIX, "confidence must"),
        ({"test": "condition", "null": "bootstrap"}, SIX, "null must be one of"),
        ({"scales": [1.0, 0.0]}, SIX, "scales must be 2 finite numbers above 0"),
        ({}, SIX | {"sample_id": ["p0"] * 2 + list(BAGS)[2:]}, "samples .*got 'p0' twice"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_computed(options, table, message, monkeypatch):
    def never(*_, **__):
        raise AssertionError("cells were looked at")

    monkeypatch.setattr("reduset.cytometry.study.find_populations", never)
    with pytest.raises(ValueError, match=message):
        CohortStudy(**options).fit(BAGS, table)


def test_other_wrong_input_is_named():
    with pytest.raises(ValueError, match="a study needs at least 2 samples, got p0"):
        CohortStudy().fit({"p0": BAGS["p0"]})
    known = SampleSet.of(BAGS, SIX)
    with pytest.raises(ValueError, match="a SampleSet already has a table of samples; omit table"):
        CohortStudy().fit(known, SIX)
    state = SampleSet(known.names, known.cells, known.markers, known.table, frozenset(known.markers))
    with pytest.raises(ValueError, match="no marker defines populations: all are of class state"):
        CohortStudy().fit(state)
    with pytest.raises(ValueError, match=r"at most 2,000 markers may define .*; choose fewer markers"):
        CohortStudy().fit([np.ones((3, 2001)), np.zeros((3, 2001))])


def test_a_condition_that_is_the_batch_is_compared_with_a_warning_and_a_note():
    bags = cohort(150, count=8)
    table = table_of(bags, run=["x"] * 4 + ["y"] * 4)
    with pytest.warns(UserWarning, match="condition and run are confounded: a difference between groups"):
        found = CohortStudy("condition", batch="run", n_atoms=20, random_state=0).fit(bags, table)
    assert found.batches_.confounded
    assert "condition and batch are confounded: a difference may be due to either" in found.notes_
    assert "condition and run are confounded" in str(found)
    assert found.differences_.design.adjusted == ()


def test_shifted_runs_are_seen_in_the_distances_and_held_fixed_in_tests():
    runs = ["x", "y"] * 5
    bags = cohort(300, shift=[0.8 if run == "y" else 0.0 for run in runs])
    found = CohortStudy("condition", batch="run", n_atoms=40, random_state=0).fit(bags, table_of(bags, run=runs))
    assert found.batches_.confounded is False
    assert found.batches_.whole.share > 0.5 > found.batches_.whole.expected
    assert found.batches_.whole.p_value <= 0.01
    assert found.differences_.design.adjusted == ("batch",)
    assert found.whole_.p_value <= 0.05  # beside what runs do the groups are seen, too
    assert "batches by run: 2 of them" in str(found)
    assert found.facts()["batches"]["share"] == found.batches_.whole.share


def test_controls_are_on_the_map_and_not_compared():
    rng = np.random.default_rng(3)
    runs = ["x", "x", "y", "y"] * 2 + ["x", "y"]
    bags = cohort(200, count=8)
    bags |= {name: cells_of(rng, 200, [0.5, 0.4, 0.1]) for name in ("c1", "c2")}
    table = {
        "sample_id": list(bags),
        "condition": ["healthy"] * 4 + ["ill"] * 4 + ["healthy"] * 2,
        "run": runs,
        "control": ["no"] * 8 + ["yes", True],
    }
    found = CohortStudy("condition", batch="run", control="control", n_atoms=30, random_state=0).fit(bags, table)
    assert found.controls_[:8] == [None] * 8
    assert None not in found.controls_[8:]
    np.testing.assert_array_equal(found.differences_.design.rows, np.arange(8))
    assert found.map_.embedding_.shape == (10, 2)
    assert found.populations_.counts.shape[0] == 10
    (pair,) = found.batches_.controls
    assert (pair.samples, pair.runs) == (("c1", "c2"), ("x", "y"))
    assert pair.distance == found.map_.distances_[8, 9]
    assert 0 < found.batches_.control_share < 1
    assert "controls   " in str(found)
    patients = {"patient": [*"abcd"] * 2 + [None] * 2}  # controls without a patient are of one kind
    paired = CohortStudy("condition", block="patient", batch="run", control="control", n_atoms=30, random_state=0)
    assert [each.kind for each in paired.fit(bags, table | patients).batches_.controls] == ["control"]


def test_pairs_are_compared_within_patients():
    rng = np.random.default_rng(4)
    bags, patients, conditions = {}, [], []
    for k in range(7):
        common = 0.25 + 0.3 * rng.random()
        for condition, rare in (("before", 0.06), ("after", 0.10)):
            own = rare * np.exp(0.1 * rng.normal())
            bags[f"p{k} {condition}"] = cells_of(rng, 400, [1 - common - own, common, own])
            patients.append(k)
            conditions.append(condition)
    table = {"sample_id": list(bags), "condition": conditions, "patient": patients}
    found = CohortStudy("condition", "patient", reference="before", n_atoms=40, random_state=0).fit(bags, table)
    assert found.differences_.labellings == 2**7
    assert found.differences_.design.levels == ("before", "after")
    assert "within blocks" in str(found)
    (grown,) = (k for k, name in enumerate(found.populations_.names) if "x2+" in name)
    assert found.differences_.found[grown]


def test_small_samples_are_noted():
    bags = cohort(600, count=8) | {"p3": np.random.default_rng(0).normal(size=(50, 3))}
    found = CohortStudy("condition", n_atoms=30, random_state=0).fit(bags, table_of(bags))
    assert found.notes_[0].startswith("samples of fewer than 500 cells (p3)")
    for name in ("p_values", "q_values", "effects", "intervals", "shares"):
        assert np.isfinite(getattr(found.differences_, name)).all()


def test_a_sample_that_was_stained_otherwise_is_told_and_lacks_nothing():
    bags = cohort(600, count=10)
    third = bags["p3"][:, 2] > bags["p3"][:, :2].max(axis=1)
    bags["p3"] = bags["p3"] + np.outer(third, [0, 0, 6.0])
    found = CohortStudy("condition", n_atoms=60, random_state=0).fit(bags, table_of(bags))
    assert len(found.populations_) == 3
    (stray,) = found.populations_.sample_specific
    assert stray.samples == (3,)
    assert stray.share == pytest.approx(third.mean(), abs=0.01)
    assert "x2" in found.populations_.names[stray.population]
    assert found.populations_.shares[3, stray.population] == pytest.approx(third.mean(), abs=0.01)
    assert any("of the cells of p3 form a cluster next to" in note for note in found.notes_)
    assert found.differences_.found[stray.population]


def test_groups_of_samples_of_very_different_sizes_are_noted():
    bags = cohort(200, count=10)
    many = cohort(4000, count=10, seed=1)
    bags |= {name: many[name] for name in list(bags)[5:]}
    found = CohortStudy("condition", n_atoms=30, random_state=0).fit(bags, table_of(bags))
    assert any("samples of ill have 20 times as many cells as samples of healthy" in note for note in found.notes_)
    assert not any("times as many cells" in note for note in study_in_memory().notes_)


def test_samples_that_are_missing_are_told():
    assert "p99 is omitted: has no cells" in study_in_memory().notes_


def test_markers_of_state_do_not_define_populations():
    found = study_in_memory()
    assert found.populations_.medians.shape[1] == 3
    assert not any("Ki67" in name for name in found.populations_.names)


def test_two_samples_or_one_marker_are_enough():
    rng = np.random.default_rng(0)
    two = CohortStudy(random_state=0).fit([rng.normal(size=(60, 1)), rng.normal(size=(40, 1))])
    assert len(two.populations_) == 1
    assert two.map_.distances_.shape == (2, 2)


def test_units_that_drown_a_marker_are_told_and_scales_mend_it():
    bags = {name: cells * [1000, 1, 1] for name, cells in cohort(120, count=4).items()}
    with pytest.warns(UserWarning, match="the spread of marker x0 is .* times the spread of x[12]"):
        CohortStudy(n_atoms=20, random_state=0).fit(bags)
    found = CohortStudy(n_atoms=20, scales="robust", random_state=0).fit(bags)
    assert len(found.populations_) == 3


def test_the_same_seed_gives_the_same_study():
    bags = cohort(150, count=6)
    one, two = (CohortStudy("condition", n_atoms=20, random_state=1).fit(bags, table_of(bags)) for _ in range(2))
    np.testing.assert_array_equal(one.populations_.counts, two.populations_.counts)
    np.testing.assert_array_equal(one.differences_.p_values, two.differences_.p_values)
    np.testing.assert_array_equal(one.clusters_.p_values, two.clusters_.p_values)
    assert str(one) == str(two)


def run_check(distances, runs, design=None, controls=None):
    names = [f"p{k}" for k in range(len(runs))]
    kinds = [None] * len(runs) if controls is None else controls
    return check_batches(distances, np.zeros_like(distances), names, runs, "run", design, kinds, None, np.random.default_rng(0))


def test_the_share_between_runs_is_that_of_runs_with_several_samples_that_are_no_controls():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 2)) + np.repeat([0, 4, 0], [3, 3, 3])[:, None]
    D = np.sqrt(np.square(x[:, None] - x).sum(axis=2))
    found = run_check(D, ["1", "1", "1", "2", "2", "2", "3", None, "2"], controls=[None] * 8 + ["blood"])
    assert found.notes == ("runs with a single sample are omitted from the test between runs: 3",)
    own = np.arange(6)
    whole = run_check(D[np.ix_(own, own)], [1, 1, 1, 2, 2, 2]).whole
    assert found.whole.share == pytest.approx(whole.share)
    same = [D[i, j] for i in range(6) for j in range(i) if (i < 3) == (j < 3)]
    assert found.usual == pytest.approx(np.sqrt(np.mean(np.square(same))))
    assert found.confounded is None
    assert found.control_share is None


def test_one_run_alone_says_why_there_is_no_share():
    D = np.ones((4, 4)) - np.eye(4)
    found = run_check(D, ["1"] * 4, design_of(["a", "a", "b", "b"]))
    assert found.whole is None
    assert any("at least two groups" in note for note in found.notes)
    assert "batches by run: 1 of them" in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(found.usual)
        assert np.isnan(run_check(D, ["1", "2", "3", "4"]).usual)


def test_samples_of_a_patient_in_one_run_count_once_between_runs():
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(60):
        places = np.repeat(rng.normal(size=(12, 2)), 2, axis=0) + rng.normal(0, 0.1, (24, 2))  # two samples of each of 12 patients
        runs, patients = np.repeat([f"r{k % 2}" for k in range(12)], 2).tolist(), np.repeat(np.arange(12), 2).tolist()
        apart = np.linalg.norm(places[:, None] - places, axis=2)
        names = [f"s{k}" for k in range(24)]
        told = check_batches(apart, 0 * apart, names, runs, "run", None, [None] * 24, patients, rng)
        assert told.whole is not None
        found += told.whole.p_value <= 0.05
    assert found <= 8  # of 60 where runs mean nothing: binomial, 5 %; counted one by one, samples are 15 and more
