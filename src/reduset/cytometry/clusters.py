"""Clusters of cells of all sizes, tested for differences between groups of samples.

A small dense cluster inside a large population may have no valley around it that is deep enough for a population of its own. So the
atoms are joined to a tree by average linkage (Sokal & Michener 1958), and every cluster of the tree with enough cells is tested.

Statistic. F is that of `comparing`, with equally weighted samples and a moderated variance,

    F = (explained / p) / ((d₀v + d s²) / (d₀ + d)),     v = a/λ + b,     d₀ = 8,

where s² is the residual variance with d degrees of freedom, and v the typical variance of clusters with λ expected cells. The
coefficients a and b are at least 0, and fitted to medians of the scatter without the groups (Smyth 2004; here d₀ is fixed). Few
samples give a few very small s² among many clusters by accident. Moderation removes these.

p-values. The p-value of a cluster is the proportion of labellings whose largest statistic over all clusters is at least as large
(Westfall & Young 1993). It holds for all clusters together, however they overlap, and whatever v is, since v does not depend on
the labels. If the labellings are too few for a p-value at the level, F distributions with d₀ + d degrees of freedom and
Bonferroni's correction take their place.

Of overlapping clusters with a p-value at the level, the one with the largest statistic is returned. O(m²·d) for the tree of m
atoms, O(B·N·m) for B labellings of N samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.optimize import nnls
from scipy.special import fdtrc
from scipy.stats import chi2

from reduset._engine import single_threaded_blas
from reduset._types import Array, Indices
from reduset.covers import cover
from reduset.cytometry.comparing import COLUMNS, STATISTIC_ROUNDING, Differences, GroupProjection, compare, log_shares, scatter
from reduset.cytometry.design import Design, relabellings
from reduset.cytometry.populations import Populations

MIN_CELLS = 5.0  # a sample, on average, in a cluster that is tested
MAX_SHARE = 0.9  # of all cells
MAX_LEAVES = 4000  # of the tree; more atoms are first grouped
PRIOR_FREEDOM = 8  # degrees of freedom of the typical variance
BINS, BIN_CLUSTERS = 12, 20  # groups of clusters with similar numbers of cells, and the smallest number of clusters in one
MARKER_CHANGE = 0.5  # standard deviations between a cluster and its population
MAX_MARKERS_NAMED = 3


@dataclass(frozen=True)
class ClusterDifferences:
    """Disjoint clusters of cells that differ between groups of samples.

    Attributes
    ----------
    differences : Differences of the k clusters, or None if there are none. P-values are family-wise, over all clusters tested.
    members : Whether an atom belongs to each cluster, (k, m).
    populations : Population that has most cells of each cluster, (k,).
    p_values : Family-wise p-value of the cluster of each atom, (m,); 1 for atoms in none.
    tested : Number of clusters that were tested.
    level : Largest family-wise p-value of a cluster that differs.
    null : Null distribution, "permutation" or "normal".
    """

    differences: Differences | None
    members: NDArray[np.bool_] = field(repr=False)
    populations: Indices = field(repr=False)
    p_values: Array = field(repr=False)
    tested: int
    level: float
    null: str

    def __len__(self) -> int:
        return len(self.members)

    @property
    def found(self) -> NDArray[np.bool_]:
        """(m,) whether an atom belongs to a cluster that differs."""
        return np.asarray(self.members.any(axis=0))

    def __str__(self) -> str:
        few = "cluster differs" if len(self) == 1 else "clusters differ"
        head = f"{len(self)} {few}, of {self.tested:,} nested ones tested, at a family-wise error of {self.level:.0%}"
        return "\n  ".join([head, *(f"found      {line}" for line in self.lines())])

    def lines(self) -> list[str]:
        """The clusters as text, the smallest p-value first: names, proportions, fold changes and p-values."""
        found = self.differences
        return [] if found is None else [f"{found.names[k]}: {found.format_population(int(k))}" for k in found.order()]


def compare_clusters(
    populations: Populations, design: Design, level: float, confidence: float, null: str, rng: np.random.Generator
) -> ClusterDifferences:
    """Test the clusters of all sizes for a difference between the groups of a design."""
    points = np.asarray(populations.sketch.mean.atoms, np.float64)
    leaf = np.arange(len(points)) if len(points) <= MAX_LEAVES else cover(points, MAX_LEAVES).assignments
    tree = _tree(points, leaf)
    leaf_counts = np.zeros((len(populations.atom_counts), leaf.max() + 1), np.int64)
    np.add.at(leaf_counts.T, leaf, populations.atom_counts.T)
    counts = _node_counts(tree, leaf_counts)
    sizes = populations.sizes[design.rows]
    expected = (counts[design.rows] / sizes[:, None]).mean(axis=0) * sizes.mean()
    nodes = np.flatnonzero((expected >= MIN_CELLS) & (expected <= MAX_SHARE * sizes.mean()))
    statistics, p, null = _tests(counts[np.ix_(design.rows, nodes)], sizes, expected[nodes], design, level, null, rng)
    chosen, members = list[int](), list[NDArray[np.bool_]]()
    free = np.ones(len(leaf), bool)
    for k in np.lexsort((nodes, -statistics)):
        if p[k] > level:
            continue
        member = np.isin(leaf, _leaves(tree, leaf_counts.shape[1], int(nodes[k])))
        if free[member].all():
            free &= ~member
            chosen.append(int(k))
            members.append(member)
    inside = np.array(members, bool).reshape(len(chosen), len(leaf))
    masses = populations.atom_shares.mean(axis=0)
    of_cluster = [int(np.bincount(populations.of_atom[member], masses[member]).argmax()) for member in members]
    differences = None
    if chosen:
        names = [_name(populations, member, k, masses) for member, k in zip(members, of_cluster, strict=True)]
        found = compare(
            counts[:, nodes[chosen]], populations.sizes, design, names, fdr=level, confidence=confidence, null=null, rng=rng
        )
        own = p[chosen]
        differences = replace(found, p_values=own, q_values=own, any_p_values=own, found=np.ones(len(own), bool))
    atom_p = np.ones(len(leaf))
    for k, member in zip(chosen, members, strict=True):
        atom_p[member] = p[k]
    return ClusterDifferences(differences, inside, np.array(of_cluster, np.int64), atom_p, len(nodes), level, null)


def _tree(points: Array, leaf: Indices) -> Indices:
    """(leaves − 1, 2) the nodes joined in each step; leaves come first, then the results of the steps."""
    if leaf.max() == 0:
        return np.empty((0, 2), np.int64)
    counts = np.bincount(leaf)
    centres = np.column_stack([np.bincount(leaf, column) / counts for column in points.T])
    return linkage(centres, "average")[:, :2].astype(np.int64)


def _node_counts(tree: Indices, leaf_counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N, nodes) cells of each sample in each node of the tree."""
    leaves = leaf_counts.shape[1]
    counts = np.zeros((len(leaf_counts), leaves + len(tree)), np.int64)
    counts[:, :leaves] = leaf_counts
    for k, (one, other) in enumerate(tree):
        counts[:, leaves + k] = counts[:, one] + counts[:, other]
    return counts


def _leaves(tree: Indices, leaves: int, node: int) -> list[int]:
    """The leaves below a node."""
    found, left = list[int](), [node]
    while left:
        node = left.pop()
        if node < leaves:
            found.append(node)
        else:
            left += tree[node - leaves].tolist()
    return found


def _tests(
    counts: NDArray[np.int64], sizes: Indices, expected: Array, design: Design, level: float, null: str, rng: np.random.Generator
) -> tuple[Array, Array, str]:
    """(k,) moderated F statistics, (k,) family-wise p-values, and the null distribution of these."""
    if not counts.shape[1]:
        return np.empty(0), np.empty(0), "permutation" if null == "auto" else null
    X = relabellings(design, rng).indicators(len(design.levels))
    p, d = len(X), design.freedom
    with single_threaded_blas():
        values = log_shares(counts, sizes, design).values
        equal = np.ones_like(values)
        free = len(values) - design.nuisance.shape[1]
        typical = _typical_variances(scatter(values, equal, design.nuisance)[0] / free, expected, free)
        projection = GroupProjection.of(equal[:, 0], design, X)
        statistics, largest = np.empty(counts.shape[1]), np.zeros(X.shape[1])
        for first in range(0, counts.shape[1], COLUMNS):
            columns = slice(first, first + COLUMNS)
            explained, energy, _ = projection.explained(values[:, columns], X)
            variance = (PRIOR_FREEDOM * typical[columns] + np.maximum(energy - explained, 0.0)) / (PRIOR_FREEDOM + d)
            moderated = explained / p / variance
            statistics[columns] = moderated[0]
            np.maximum(largest, moderated.max(axis=1), out=largest)
    attainable = np.mean(largest >= largest.max() * (1 - STATISTIC_ROUNDING))
    if null == "normal" or (null == "auto" and attainable > level):
        return statistics, np.minimum(len(statistics) * fdtrc(p, PRIOR_FREEDOM + d, statistics), 1.0), "normal"
    ordered = np.sort(largest)
    below = np.searchsorted(ordered, statistics * (1 - STATISTIC_ROUNDING), side="left")
    return statistics, (len(ordered) - below) / len(ordered), "permutation"


def _typical_variances(variances: Array, expected: Array, freedom: int) -> Array:
    """(k,) a/λ + b, fitted to medians of the variances of clusters with similar numbers λ of expected cells."""
    bins = np.array_split(np.argsort(expected, kind="stable"), max(1, min(BINS, len(expected) // BIN_CLUSTERS)))
    medians = np.array([np.median(variances[each]) for each in bins]) * freedom / chi2.median(freedom)
    medians = np.maximum(medians, np.finfo(float).tiny)
    inverse = np.array([np.mean(1 / expected[each]) for each in bins])
    slope, constant = nnls(np.column_stack([inverse, np.ones(len(bins))]) / medians[:, None], np.ones(len(bins)))[0]
    return np.maximum(slope / expected + constant, np.finfo(float).tiny)


def _name(populations: Populations, member: NDArray[np.bool_], k: int, masses: Array) -> str:
    """The population that has most cells of a cluster, and the markers in which the cluster differs from it."""
    population = populations.of_atom == k
    spread = np.sqrt(np.maximum(_mean((populations.atoms - _mean(populations.atoms, masses)) ** 2, masses), np.finfo(float).tiny))
    change = _mean(populations.atoms[member], masses[member]) - _mean(populations.atoms[population], masses[population])
    change /= spread
    order = np.argsort(-np.abs(change), kind="stable")[:MAX_MARKERS_NAMED]
    marks = [f"{populations.markers[j]}{'+' if change[j] > 0 else '−'}" for j in order if abs(change[j]) >= MARKER_CHANGE]
    return f"{' '.join(marks)} in {populations.names[k]}" if marks else populations.names[k]


def _mean(values: Array, weights: Array) -> Array:
    return np.asarray(weights @ values / weights.sum())
