"""Commands whose rows stay on the workers of Dask or Ray: the results of the same command without an engine."""

import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster

import cli_processes
from cli_processes import in_this_process, left, on_a_terminal, rest_of
from engine_cases import RAY_SETTINGS
from reduset import KernelMean


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("engine")
    rng = np.random.default_rng(0)
    for name, shift in (("data", 0.0), ("later", 0.3)):
        (path / name).mkdir()
        for k in range(3):
            rows = rng.normal([shift + 4.0 * (k == 1), shift], 1.0, size=(2000, 2))
            pd.DataFrame(rows, columns=["age", "pay"]).assign(w=1.0 + k).to_parquet(path / name / f"{k}.parquet")
    return path


@pytest.fixture(autouse=True)
def ray_settings(monkeypatch):
    for name, value in RAY_SETTINGS.items():
        monkeypatch.setitem(cli_processes.ENVIRONMENT, name, value)


COMMANDS = {
    "sketch": "sketch data --size 30 --weight-column w -o to/rows.csv --assignments to/near.csv",
    "compress": "compress data --size 30 --columns age,pay -o to/small.npz",
    "cover": "cover data --size 20 -o to/rows.csv --assignments to/near.csv",
    "drift": "drift data later --columns age,pay -o to/kept.npz",
}


@pytest.mark.parametrize("engine", ["dask", pytest.param("ray", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.fast_cases(2)
def test_results_are_those_of_files(name, engine, folder, tmp_path):
    for target in ("data", "later"):
        (tmp_path / target).symlink_to(folder / target)
    facts = []
    for to, added in (("alone", ""), (engine, f" --engine {engine}")):
        (tmp_path / to).mkdir()
        done = in_this_process(*f"{COMMANDS[name]} --json{added}".replace("to/", f"{to}/").split(), folder=tmp_path)
        facts.append(json.loads(done.stdout))
    one, other = facts
    assert one.keys() == other.keys()
    for fact in ("error", "radius", "bandwidth", "p_value", "distance"):
        if fact in one:
            assert other[fact] == pytest.approx(one[fact], rel=1e-5), fact
    if name in ("sketch", "cover"):
        for file in ("rows.csv", "near.csv"):
            np.testing.assert_allclose(*(pd.read_csv(tmp_path / to / file) for to in (engine, "alone")), rtol=1e-6)
    if name == "compress":
        one, other = (KernelMean.load(tmp_path / to / "small.npz") for to in ("alone", engine))
        np.testing.assert_allclose(other.atoms, one.atoms, rtol=1e-6)
        np.testing.assert_allclose(other.weights, one.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_audits_on_an_engine_and_a_cluster_at_an_address(folder, tmp_path):
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as made:
        on = ["--engine", "dask", "--address", made.scheduler_address]
        in_this_process("cover", folder / "data", "--size", 20, "-o", "rows.csv", *on, folder=tmp_path)
        audit = in_this_process("audit", folder / "data", "rows.csv", "--json", *on, folder=tmp_path).stdout
        assert any("reduset" in str(prefix) for prefix in made.scheduler.task_prefixes)
    alone = in_this_process("audit", folder / "data", "rows.csv", "--json", folder=tmp_path).stdout
    assert json.loads(audit)["radius"] == pytest.approx(json.loads(alone)["radius"], rel=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sketch data -o s.csv --address tcp://127.0.0.1:1", "--address tcp://127.0.0.1:1 needs --engine"),
        ("sketch data -o s.csv --engine spark", "--engine must be one of 'dask', 'ray'; got 'spark'"),
        ("sketch data -o s.csv --engine dask --sample-key w", "--sample-key needs all rows"),
        ("sketch data -o s.csv --engine dask --missing drop", "--missing needs all rows"),
        ("sketch data -o s.csv --engine dask --report r.html", "--report needs all rows"),
        ("compress data -o s.npz --engine dask --whiten", "--whiten needs all rows"),
        ("compress data -o s.npz --engine dask --stream --size 9", "--stream needs all rows"),
        ("compress data -o s.npz --engine dask --pieces components", "--pieces needs all rows"),
        ("cover data --size 9 -o s.csv --engine dask --column w", "--column needs all rows"),
        ("drift data later --report r.html --engine dask", "--report needs all rows"),
    ],
)
def test_options_that_need_all_rows_raise(words, message, folder, tmp_path):
    for target in ("data", "later"):
        (tmp_path / target).symlink_to(folder / target)
    assert message in in_this_process(*words.split(), folder=tmp_path, code=2).stderr
    assert left(tmp_path) == ["data", "later"]


def processes_with(text):
    """Numbers of the processes with a text in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] * (text.encode() in path.read_bytes())
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_files_and_no_processes_of_ray(number, folder, tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(folder / "data")
    short = tempfile.mkdtemp(prefix="rs", dir="/tmp")  # the names of sockets have at most 107 bytes
    monkeypatch.setitem(cli_processes.ENVIRONMENT, "RAY_TMPDIR", short)
    try:
        words = ["compress", "data", "--tol", 0.0005, "--bandwidth", 0.05, "-o", "small.npz", "--engine", "ray"]
        shown, process, terminal = on_a_terminal(words, tmp_path, until=b"selecting")
        assert processes_with(short)
        process.send_signal(number)
        process.communicate(timeout=60)
        shown += rest_of(terminal).decode()
        os.close(terminal)
        for _ in range(100):
            if not processes_with(short):
                break
            time.sleep(0.1)
        assert (process.returncode, processes_with(short)) == (130, []), shown
        assert "interrupted" in shown
        assert left(tmp_path) == ["data"]
    finally:
        shutil.rmtree(short, ignore_errors=True)
