"""Mixture reduction: random mixtures in 4-D, 200 components to 20, against Runnalls' merging and Stone Soup's reducer.

The error is the integrated squared error ∫(f − g)² (ISE), in closed form, relative to ∫f². Stone Soup lives in an environment of
its own (`stonesoup_worker.py`).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import runnalls
from harness import medians, table, verdict
from reduset import Mixture, simplify

TITLE = "Mixture reduction"

HERE = Path(__file__).resolve().parent
DIMENSION, COMPONENTS, SIZE = 4, 200, 20
MIXTURES, OTHER_MIXTURES = 100, 25
SPREADS = (2.0, 1.0, 4.0)  # standard deviation of the means: of the table with the goals, and two more for the picture
OURS = {"polish=False": {"polish": False}, "polish=10": {"polish": 10}, "default": {}}
LOWER = 0.95
GOALS = {"Runnalls": 1.0, "Runnalls, compiled": 1.5}  # the time beside theirs, at most
ERROR = 0.1836  # ISE / ∫f² of the default in the table with the goals, at most: what it took four times as long for once


def draw(spread: float, rng: np.random.Generator, components: int = COMPONENTS) -> Mixture:
    B = rng.normal(size=(components, DIMENSION, DIMENSION))
    covariances = 0.5 / DIMENSION * B @ B.transpose(0, 2, 1) + 0.1 * np.eye(DIMENSION)
    return Mixture(rng.dirichlet(np.ones(components)), spread * rng.normal(size=(components, DIMENSION)), covariances)


def arrays(f: Mixture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array(f.weights), np.array(f.means), np.array(f.covariances)


def stonesoup_python() -> str:
    """The interpreter of the environment that Stone Soup is in."""
    python = os.environ.get("REDUSET_STONESOUP_PYTHON", str(HERE.parent / ".venv-stonesoup" / "bin" / "python"))
    if not Path(python).exists():
        raise SystemExit(f"no environment of Stone Soup at {python}: run `make bench`, or set REDUSET_STONESOUP_PYTHON")
    return python


def by_stonesoup(mixtures: list[Mixture]) -> tuple[list[Mixture], np.ndarray, str]:
    """Its mixtures, the seconds of each, and what to say of it."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        names = ("weights", "means", "covariances")
        np.savez(given, **{name: np.array([getattr(f, name) for f in mixtures]) for name in names})
        process = subprocess.run(
            [stonesoup_python(), str(HERE / "stonesoup_worker.py"), str(given), str(found), str(SIZE)],
            capture_output=True,
            text=True,
        )
        if process.returncode:
            raise SystemExit(f"stonesoup_worker.py failed:\n{process.stderr[-2000:]}")
        with np.load(found) as file:
            few = [Mixture(*parts) for parts in zip(*(file[name] for name in names), strict=True)]
            exact = int(np.sum(file["left"] == SIZE))
            said = f"Stone Soup {file['version']} found a threshold for just {SIZE} in {exact} of {len(few)}"
            return few, file["seconds"], f"{said}; else it left up to {file['left'].max()} and dropped the lightest."


def squared_error(f: Mixture, g: Mixture) -> float:
    return (f.distance(g) / f.norm()) ** 2


def measured(spread: float, count: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], str]:
    """Of each method the errors and the seconds, a mixture each; and what to say of Stone Soup."""
    rng = np.random.default_rng(5)
    mixtures = [draw(spread, rng) for _ in range(count)]
    few, stone_seconds, remark = by_stonesoup(mixtures)
    errors: dict[str, list[float]] = {"Stone Soup": [squared_error(f, g) for f, g in zip(mixtures, few, strict=True)]}
    seconds: dict[str, list[float]] = {"Stone Soup": list(stone_seconds)}
    for number, f in enumerate(mixtures):
        ways = {
            "Runnalls": lambda given: Mixture(*runnalls.merged(*given, SIZE)),
            "Runnalls, compiled": lambda given: Mixture(*runnalls.merged_compiled(*given, SIZE)),
        }
        given = arrays(f)
        found = {name: way(given) for name, way in ways.items()}
        calls = {name: partial(way, given) for name, way in ways.items()}
        for name, options in OURS.items():
            calls[name] = partial(simplify, f, size=SIZE, rng=number, **options)
            found[name] = calls[name]().mixture
        for name, took in medians(3, **calls).items():
            errors.setdefault(name, []).append(squared_error(f, found[name]))
            seconds.setdefault(name, []).append(took)
    return {name: np.array(values) for name, values in errors.items()}, {k: np.array(v) for k, v in seconds.items()}, remark


def times(seconds: dict[str, np.ndarray], name: str, peer: str) -> float:
    """The median time of one beside another's."""
    return float(np.median(seconds[name]) / np.median(seconds[peer]))


def compared(errors: dict[str, np.ndarray], seconds: dict[str, np.ndarray]) -> list[list[str]]:
    rows = []
    for name, own in errors.items():
        cells = [
            name if name not in OURS else f"`simplify`, {name}",
            f"{own.mean():.4f}",
            f"{1e3 * np.median(seconds[name]):.1f} ms",
        ]
        if name not in OURS:
            rows.append([*cells, *[""] * 6])
            continue
        lower = {peer: float(np.mean(own < errors[peer])) for peer in ("Runnalls", "Stone Soup")}
        cells += [f"{np.mean(own / errors['Runnalls']):.3f}"]
        cells += [f"{100 * lower['Runnalls']:.0f} %", f"{100 * lower['Stone Soup']:.0f} %", verdict(min(lower.values()), LOWER)]
        for peer, most in GOALS.items():
            ratio = times(seconds, name, peer)
            cells.append(f"{ratio:.2f}× {verdict(-ratio, -most)}")
        rows.append(cells)
    return rows


def run() -> str:
    rng = np.random.default_rng(0)
    for _ in range(3):
        runnalls.check(*arrays(draw(SPREADS[0], rng, 40)), 8)
    head = [
        *(
            "reduced by",
            "ISE / ∫f²",
            "time",
            "ISE of Runnalls'",
            "lower than Runnalls",
            "than Stone Soup",
            f"≥ {100 * LOWER:.0f} %",
        ),
        *(f"time beside {peer}: at most {most:g}×" for peer, most in GOALS.items()),
    ]
    parts = []
    for spread in SPREADS:
        count = MIXTURES if spread == SPREADS[0] else OTHER_MIXTURES
        errors, seconds, remark = measured(spread, count)
        parts.append(f"Means from N(0, {spread:g}²I), {count} mixtures:\n\n{table(head, compared(errors, seconds))}\n\n{remark}")
        if spread == SPREADS[0]:
            parts[-1] += f" {conclusion(errors, seconds)}"
    return (
        f"Mixtures of {COMPONENTS} components in {DIMENSION}-D, reduced to {SIZE}. Weights from a flat Dirichlet law, covariances "
        f"½BBᵀ/{DIMENSION} + 0.1·I with B of standard normal entries. Runnalls' greedy merging (2007) is written here in NumPy, "
        "one component against all others at once, and once more compiled; both are checked against a plain double loop. Stone "
        f"Soup merges by a Mahalanobis threshold: that which leaves {SIZE} components is looked for, for each mixture, "
        "and only the last call is timed, once; no pruning. Means of the ISE, medians of the times; ISE beside Runnalls' is the "
        "mean of the ratios.\n\n" + "\n\n".join(parts)
    )


def conclusion(errors: dict[str, np.ndarray], seconds: dict[str, np.ndarray]) -> str:
    """Which of ours meet both goals, against each of Runnalls' two; and the default against the compiled one, error and time."""
    lower = [name for name in OURS if min(np.mean(errors[name] < errors[peer]) for peer in ("Runnalls", "Stone Soup")) >= LOWER]
    said = []
    for peer, words in (("Runnalls", "Runnalls in NumPy"), ("Runnalls, compiled", "Runnalls compiled")):
        both = [name for name in lower if times(seconds, name, peer) <= GOALS[peer]]
        said.append(f"against {words} (at most {GOALS[peer]:g}×) {', '.join(both) or 'none'}")
    error, ratio, most = float(errors["default"].mean()), times(seconds, "default", peer), GOALS[peer]
    return (
        f"Lower in at least {100 * LOWER:.0f} % and within the time are {'; '.join(said)}. The default takes {ratio:.2f} times as "
        f"long as Runnalls compiled (at most {most:g}: {verdict(-ratio, -most)}) at an ISE of {error:.4f} (at most {ERROR}: "
        f"{verdict(-error, -ERROR)})."
    )
