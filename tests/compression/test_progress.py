"""Progress is told as it happens, and an interrupt is answered at once."""

import threading

import pytest
from numba import njit

from cases import KERNELS, cloud, run
from reduset import _progress, compress, set_threads
from reduset.select import KCenter, Random


@pytest.mark.parametrize("goal", [{"size": 60}, {"tol": 1e-2}, {"plateau": 1e-5}])
@pytest.mark.parametrize("select", [KCenter("mean"), Random()])
@pytest.mark.parametrize("kernel", ["gaussian", "function"])
def test_progress_is_told_with_rising_counts(goal, select, kernel):
    told = []
    compress(cloud(), KERNELS[kernel], select=select, rng=0, progress=lambda *args: told.append(args), **goal)
    assert {stage for stage, _, _ in told} == {"selecting", "weighing", "certifying"}
    assert all(0 <= done <= total for _, done, total in told)
    selecting = [done for stage, done, _ in told if stage == "selecting"]
    assert selecting == sorted(selecting)
    assert selecting[-1] > selecting[0] or isinstance(select, Random)


def test_progress_may_be_a_line_on_the_error_stream(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "SHOW_AFTER", 0.0)
    run(cloud(), size=20, progress=True)
    shown = capsys.readouterr()
    assert "selecting" in shown.err
    assert shown.err.endswith("\r")
    assert shown.out == ""
    run(cloud(), size=20, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("stage", ["selecting", "weighing", "certifying"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_passes_through_and_leaves_no_threads(stage, error):
    def stop(name, done, total):
        if name == stage:
            raise error

    X = cloud(6000, 4)
    before = set(threading.enumerate())
    set_threads(3)
    try:
        with pytest.raises(error):
            compress(X, KERNELS["gaussian"], size=200, select="kcenter", rng=0, progress=stop)
    finally:
        set_threads(None)
    assert set(threading.enumerate()) <= before
    assert run(X, size=5).size == 5  # and the next one works


def test_the_line_says_when_one_waits_for_the_compiler(capsys):
    told = _progress.Progress(True)
    njit(lambda x: x + 1)(1)
    assert "compiling    on first use" in capsys.readouterr().err
    told.close()
    assert capsys.readouterr().err.endswith("\r")
    njit(lambda x: x + 2)(1)  # nobody listens any more
    assert capsys.readouterr().err == ""
