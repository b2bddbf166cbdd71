"""Clusters of all sizes: the tree, the statistics and their p-values against plain loops, and what they find."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from reduset.cytometry import CohortStudy, find_populations
from reduset.cytometry.clusters import PRIOR_FREEDOM, _node_counts, _tests, _tree, _typical_variances, compare_clusters
from reduset.cytometry.comparing import log_shares
from reduset.cytometry.design import design_of, relabellings

PAIRS, CELLS = 7, 1500
LABELS, PATIENTS = ["a", "b"] * PAIRS, [str(k // 2) for k in range(2 * PAIRS)]


def cohort(seed, proportions=(0.02, 0.05)):
    """Pairs of samples of one broad population with a dense cluster inside it, and which cells are in the cluster."""
    rng, bags, inside = np.random.default_rng(seed), [], []
    for _ in range(PAIRS):
        for proportion in proportions:
            there = rng.random(CELLS) < proportion * np.exp(rng.normal(0, 0.1))
            bags.append(np.where(there[:, None], rng.normal(0.8, 0.03, (CELLS, 3)), rng.normal(0, 1, (CELLS, 3))))
            inside.append(there)
    return bags, np.concatenate(inside)


def found_in(bags, labels=LABELS, blocks=PATIENTS, null="auto", seed=0):
    populations = find_populations(bags, n_atoms=150, rng=seed)
    design = design_of(labels, block=blocks)
    return populations, compare_clusters(populations, design, 0.05, 0.95, null, np.random.default_rng(seed))


@pytest.mark.slow
def test_a_dense_cluster_inside_a_population_is_found():
    bags, inside = cohort(0)
    populations, found = found_in(bags)
    assert len(populations) == 1
    assert found.null == "permutation"
    member = found.found[populations.sketch.assignments]
    assert inside[member].mean() > 0.8
    assert member[inside].mean() > 0.5
    assert (found.p_values[found.found] <= 0.05).all()
    assert (found.p_values[~found.found] == 1).all()
    assert found.members.sum(axis=0).max() == 1  # disjoint
    assert (found.differences.effects > 0.7).all()  # 0.02 to 0.05 is 1.3 to base 2
    assert all(f"in {populations.names[0]}" in name for name in found.differences.names)
    assert f"of {found.tested} nested ones tested" in str(found)


@pytest.mark.slow
def test_the_family_wise_error_holds_for_exchangeable_samples():
    bags, _ = cohort(1, (0.03, 0.03))
    populations, rng, wrong = find_populations(bags, n_atoms=100, rng=0), np.random.default_rng(0), 0
    for seed in range(100):
        labels = [label for _ in range(PAIRS) for label in rng.permutation(["a", "b"])]
        design = design_of(labels, block=PATIENTS)
        wrong += len(compare_clusters(populations, design, 0.05, 0.95, "auto", np.random.default_rng(seed))) > 0
    assert wrong <= 11  # 5 are expected; more than 11 have a probability below 1 %


def test_nodes_of_the_tree_contain_the_leaves_below_them():
    rng = np.random.default_rng(0)
    points, counts = rng.normal(size=(30, 2)), rng.integers(0, 9, (4, 30))
    nodes, leaves = _node_counts(_tree(points, np.arange(30)), counts), [[k] for k in range(30)]
    for one, other in linkage(points, "average")[:, :2].astype(int):
        leaves.append(leaves[one] + leaves[other])
    np.testing.assert_array_equal(nodes, np.stack([counts[:, each].sum(axis=1) for each in leaves], axis=1))
    grouped = np.arange(30) // 3
    assert len(_tree(points, grouped)) == 9
    assert len(_tree(points, np.zeros(30, int))) == 0


def test_p_values_are_those_of_the_largest_statistic_over_all_labellings():
    rng = np.random.default_rng(0)
    counts, sizes = rng.poisson(rng.uniform(5, 200, 40), (8, 40)), np.full(8, 5000)
    counts[4:, 0] *= 4
    design = design_of(["a"] * 4 + ["b"] * 4)
    expected = counts.mean(axis=0)
    statistics, p, null = _tests(counts, sizes, expected, design, 0.05, "auto", rng)
    y = log_shares(counts, sizes, design).values
    typical = _typical_variances(y.var(axis=0, ddof=1), expected, 7)

    def f(codes):
        one, other = y[codes == 0], y[codes == 1]
        difference = other.mean(axis=0) - one.mean(axis=0)
        within = ((one - one.mean(axis=0)) ** 2).sum(axis=0) + ((other - other.mean(axis=0)) ** 2).sum(axis=0)
        return 2 * difference**2 / ((PRIOR_FREEDOM * typical + within) / (PRIOR_FREEDOM + 6))

    every = np.array([f(codes) for codes in relabellings(design, rng).codes])
    np.testing.assert_allclose(statistics, every[0])
    np.testing.assert_allclose(p, [(every.max(axis=1) >= value * (1 - 1e-9)).mean() for value in every[0]])
    assert (null, p[0]) == ("permutation", 2 / 70)


def test_few_labellings_are_tested_with_the_f_distribution():
    rng = np.random.default_rng(0)
    counts, sizes = rng.poisson(np.linspace(20, 200, 30), (6, 30)), np.full(6, 5000)
    counts[3:, 0] *= 6
    design = design_of(["a"] * 3 + ["b"] * 3)
    _, p, null = _tests(counts, sizes, counts.mean(axis=0), design, 0.05, "auto", rng)
    assert null == "normal"
    assert p[0] < 0.05
    assert np.median(p) == 1
    assert _tests(counts, sizes, counts.mean(axis=0), design, 0.05, "permutation", rng)[1].min() >= 2 / 20


def test_typical_variances_follow_the_number_of_cells_and_ignore_outliers():
    rng = np.random.default_rng(0)
    expected = np.geomspace(5, 5000, 600)
    true = 1.2 / expected + 0.01
    variances = true * rng.chisquare(7, 600) / 7
    variances[::20] *= 100
    typical = _typical_variances(variances, expected, 7)
    assert 0.8 < (typical / true).min() < (typical / true).max() < 1.4
    assert all(one >= other for one, other in pairwise(typical))
    assert len(_typical_variances(np.zeros(3), np.ones(3), 7)) == 3


def test_too_few_cells_are_not_tested():
    bags = [np.random.default_rng(k).normal(size=(8, 2)) for k in range(6)]
    study = CohortStudy("group", n_atoms=20, random_state=0).fit(bags, {"group": ["a", "b"] * 3})
    assert len(study.clusters_) == 0
    assert study.clusters_.differences is None
    assert study.clusters_.tested < 20
    assert "0 clusters differ" in str(study)
