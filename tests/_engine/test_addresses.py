"""Loops that are called by their address: compiled once each, for arrays that they can take, and views that cost nothing."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from reduset._engine.compiled import addressed, report_compilation, row, strip
from reduset._engine.distances import (
    CITYBLOCK,
    LINEAR,
    LOGARITHM,
    ROOT,
    SOFT_CITYBLOCK,
    SQUARED,
    TABLE,
    distances_at,
    exponents_at,
    pulls_at,
    to_distances,
    to_exponents,
)
from reduset._engine.profile import Profile


@njit
def _strip_of(values, start, count):
    return strip(values, start, count).sum()


@njit
def _row_of(matrix, index, out):
    view = row(matrix, index)
    for i in range(len(view)):
        out[i] = view[i]
    view[0] = -1.0


@njit
def _gap_of(gaps, Z, query, t):
    to_distances(gaps, Z, 0, Z.shape[1], Z.shape[1], query, t)


@njit
def _depths_of(depths, exponent, table, step, t):
    to_exponents(depths, exponent, table, step, t, len(t))


def test_a_strip_is_a_piece_of_the_numbers_as_they_lie():
    values = np.arange(12.0).reshape(3, 4)
    assert _strip_of(values, 2, 5) == values.ravel()[2:7].sum()
    assert _strip_of(values, 12, 0) == 0
    frozen = values.copy()
    frozen.setflags(write=False)
    assert _strip_of(frozen, 0, 12) == 66


def test_a_row_is_a_view():
    matrix, out = np.arange(12.0).reshape(3, 4), np.empty(4)
    _row_of(matrix, 1, out)
    np.testing.assert_array_equal(out, [4, 5, 6, 7])
    assert matrix[1, 0] == -1


@pytest.mark.parametrize("lies", [lambda X: X[:, ::2], np.asfortranarray])
def test_arrays_that_do_not_lie_row_after_row_are_refused(lies):
    X = lies(np.ones((4, 6)))
    with pytest.raises(TypingError, match="arrays in C order"):
        _gap_of(distances_at(SQUARED, np.float64), X, np.zeros(4), np.empty(6))
    with pytest.raises(TypingError, match="arrays in C order"):
        _strip_of(X, 0, 2)


def test_two_precisions_at_once_are_refused():
    with pytest.raises(TypingError, match="one precision"):
        _gap_of(distances_at(SQUARED, np.float64), np.ones((2, 3)), np.zeros(2, np.float32), np.empty(3))


def test_what_has_no_loop_in_single_precision_says_so():
    with pytest.raises(TypeError, match="single precision"):
        distances_at(SOFT_CITYBLOCK, np.float32)
    for at in (exponents_at, pulls_at):
        with pytest.raises(TypeError, match="single precision"):
            at(TABLE, np.float32)


@pytest.mark.parametrize("metric", [SQUARED, CITYBLOCK])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 9, 16])
def test_single_precision_is_that_of_the_coordinates(metric, d):
    rng = np.random.default_rng(d)
    Z, q = rng.normal(size=(d, 50)).astype(np.float32), rng.normal(size=d).astype(np.float32)
    t = np.empty(50, np.float32)
    _gap_of(distances_at(metric, np.float32), Z, q, t)
    u = np.abs(Z.astype(float) - q[:, None])
    np.testing.assert_allclose(t, (u**2).sum(0) if metric == SQUARED else u.sum(0), rtol=1e-6)


@pytest.mark.parametrize(("family", "depth"), [(ROOT, np.sqrt), (LOGARITHM, lambda t: 2.5 * np.log1p(t))])
def test_depths_in_single_precision(family, depth):
    t = np.geomspace(1e-6, 1e6, 200).astype(np.float32)
    expected = depth(t.astype(float))
    _depths_of(*Profile(family=family, exponent=2.5).exponent_arguments(np.float32), t)
    np.testing.assert_allclose(t, expected, rtol=3e-7, atol=3e-7)  # 1 + t is rounded


def test_the_gap_of_a_gaussian_is_its_depth():
    assert exponents_at(LINEAR, np.float32) == exponents_at(LINEAR, np.float64) == 0
    t = np.array([0.0, 2.0])
    Profile().to_exponents(t)
    np.testing.assert_array_equal(t, [0, 2])


def test_an_address_is_compiled_for_once_whoever_asks():
    told = []

    @addressed(distance_arguments)
    def loop(Z, stride, count, d, query, t):
        for i in range(count):
            t[i] = Z[i]

    with report_compilation(told.append), ThreadPoolExecutor(8) as pool:
        addresses = set(pool.map(loop.at, [np.float64] * 8))
    assert len(addresses) == 1
    assert told == [True, False]
    assert loop.at(np.float32) not in addresses


def distance_arguments(real):
    from reduset._engine.distances import _distance_arguments

    return _distance_arguments(real)


@pytest.mark.slow
def test_compiled_callers_from_the_cache_call_what_is_there_in_another_process(tmp_path):
    """Addresses differ from process to process, and are arguments: nothing of them is in what is cached."""
    code = (
        "import numpy as np; from reduset import Gaussian, KernelMean, Laplacian; "
        "X = np.random.default_rng(0).normal(size=(700, 3)); "
        "print([repr(KernelMean.from_samples(X, kernel)(X[:3])) for kernel in (Gaussian(0.5), Laplacian(0.5))])"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True) for _ in range(2)
    )
    assert first.stdout == second.stdout
    assert "array" in first.stdout
    cached = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert {"distances._squared", "tiles.value_tiles"} <= cached
