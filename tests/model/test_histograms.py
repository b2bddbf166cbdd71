"""Histograms of columns: bars hold counted rows, begin at the smallest value, and hold all of the weight."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reduset import Gaussian, KernelMean, compress
from reduset.model import Model
from reduset.model.column_histograms import MAX_WHOLE, ColumnBars, histograms

RNG = np.random.default_rng(0)


def bars_of(column, weights=None):
    return histograms(np.asarray(column, float)[:, None], weights, [0])[0]


def test_a_smooth_column_is_counted_as_numpy_counts_it():
    column = RNG.normal(size=5000)
    column = np.clip(column, -3, 3)  # no tail
    bars, counts = bars_of(column)
    edges = bars.edges
    assert edges[0] == column.min()
    assert edges[-1] == pytest.approx(column.max())
    np.testing.assert_array_equal(counts[1:-1], np.histogram(column, edges)[0])
    assert counts[0] == counts[-1] == 0


def test_few_values_have_a_bar_each():
    column = RNG.choice([0.0, 1.0], 3000, p=[0.9, 0.1])
    bars, counts = bars_of(column)
    assert bars.edges is None
    assert bars.values.tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(counts, [0, (column == 0).sum(), (column == 1).sum(), 0])
    np.testing.assert_array_equal(bars.ends, [[-0.5, 0.5], [0.5, 1.5]])


@pytest.mark.parametrize("most", [40, MAX_WHOLE + 100])
def test_bars_of_whole_numbers_hold_equally_many_of_them(most):
    column = np.arange(5 * most) % most
    bars, counts = bars_of(column)
    assert bars.edges[0] == -0.5  # nothing below the smallest value
    widths = np.diff(bars.edges)
    assert (widths == widths[0]).all()
    assert (counts[1:-2] == 5 * widths[0]).all()  # the last may end beyond the largest value
    assert counts.sum() == 5 * most


def test_a_long_tail_is_one_bar():
    column = np.exp(RNG.normal(10, 1.2, 20_000))
    bars, counts = bars_of(column)
    assert bars.edges[0] == column.min() > 0
    assert bars.edges[-1] < 0.5 * column.max()
    assert counts[-1] == (column >= bars.edges[-1]).sum() > 0
    assert counts.sum() == len(column)


def test_values_that_the_rows_looked_at_did_not_have_are_counted_as_others():
    bars = ColumnBars(None, np.array([0.0, 2.0]))
    np.testing.assert_array_equal(bars.counted(np.array([0.0, 1.0, 2.0, 2.0, 5.0]), None), [0, 1, 2, 2])


@settings(deadline=None, max_examples=80)
@given(arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e18, 1e18)), st.integers(0, 5))
def test_all_of_the_weight_is_in_some_bar(column, seed):
    weights = np.random.default_rng(seed).random(len(column))
    bars, counts = bars_of(column, weights)
    assert counts.sum() == pytest.approx(weights.sum())
    assert (np.diff(bars.ends, axis=1) > 0).all()


def test_memory_is_a_block_of_a_column():
    rows = RNG.normal(size=(400_000, 4))  # 12.8 MB
    histograms(rows[:1000], None, range(4))
    tracemalloc.start()
    histograms(rows, None, range(4))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6


def test_a_model_keeps_the_bars_of_all_rows(tmp_path):
    rows = np.column_stack([RNG.integers(0, 96, 900), RNG.integers(0, 2, 900), RNG.exponential(size=900)]).astype(float)
    full = KernelMean.from_samples(rows, Gaussian(20.0))
    model = Model.of(full, compress(full, size=12, rng=0))
    starts, ends, heights = model.portrait.bars[1][:, :2]
    np.testing.assert_allclose(heights, [(rows[:, 1] == 0).mean(), (rows[:, 1] == 1).mean()])
    np.testing.assert_allclose((starts + ends) / 2, [0, 1])
    ages = model.portrait.bars[0]
    assert ages[0].min() == -0.5
    assert model.portrait.grids[0].min() < -10  # where the smoothed curve goes
    np.testing.assert_allclose((ages[2] * (ages[1] - ages[0])).sum(), 1)
    model.save(tmp_path / "m.npz")
    np.testing.assert_array_equal(Model.load(tmp_path / "m.npz").portrait.bars, model.portrait.bars)


def test_weights_of_both_signs_have_no_histogram():
    rows = RNG.normal(size=(60, 2))
    full = KernelMean(rows, np.where(rows[:, 0] > 0, 1.0, -0.2), Gaussian(1.0))
    assert Model.of(full, compress(full, size=8, rng=0)).portrait.bars.shape == (0, 3, 0)
