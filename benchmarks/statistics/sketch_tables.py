"""Tables made small: errors of column statistics of `sketch`, with and without its weights, compared with random rows.

Six tables: people (income, age, counts, a 0/1 column, a city with a category of 0.1 %, dates, an identifier, 9 % of the rows
repeated), flights, cytometry, pixels, a normal and a heavy-tailed sample. Errors are means over columns: in standard deviations for
means, relative for standard deviations, in proportions for deciles. Goals: without weights at most 0.5 times the error of random
rows in means and standard deviations, and 0.7 times in deciles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._lib import data_folder, table, verdict
from reduset import sketch

TITLE = "Tables made small, with and without weights"
SOURCES = ("sketching", "_engine/strata.py", "_engine/exchanging.py")

SIZE, SEEDS, DRAWS = 1000, 5, 20
QUICK_ROWS, QUICK_SIZE, QUICK_SEEDS, QUICK_SETS = 10_000, 200, 1, ("people", "normal")
DECILES = np.arange(1, 10) / 10
GOALS = {"means": 0.5, "standard deviations": 0.5, "deciles": 0.7}


def people(n: int = 300_000) -> pd.DataFrame:
    """A table of mixed types that no setting was tuned for."""
    rng = np.random.default_rng(1)
    cities = ["Berlin", "Hamburg", "Munich", "Cologne", "Rare"]
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "income": np.round(rng.lognormal(10.3, 0.6, n)),
            "age": np.round(np.clip(rng.normal(45, 15, n), 18, 95)),
            "children": rng.poisson(1.2, n),
            "owner": rng.random(n) < 0.3,
            "city": rng.choice(cities, n, p=[0.4, 0.3, 0.2, 0.099, 0.001]),
            "since": pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D"),
        }
    )
    copies = rng.choice(n, int(0.09 * n), replace=False)
    frame.iloc[copies[1:], 1:] = frame.iloc[copies[:-1], 1:].to_numpy()
    return frame


def _photograph() -> np.ndarray:
    with np.load(data_folder() / "images_std.npz", allow_pickle=False) as file:
        pixels = file["china"].astype(np.float64)
    height, width = pixels.shape[:2]
    where = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1)
    return np.concatenate([pixels, where], axis=-1).reshape(-1, 5)


def _cytometry() -> np.ndarray:
    with np.load(data_folder() / "cyto_itn15.npz", allow_pickle=False) as file:
        cells = file["X"].reshape(-1, 8)[:, :7].astype(np.float64)
    cells[:, 2:] = np.log(np.maximum(cells[:, 2:], 1.0))
    return cells


def _flights() -> np.ndarray:
    with np.load(data_folder() / "big_flights.npz", allow_pickle=False) as file:
        return file["X"][:200_000].astype(np.float64)


def tables() -> dict[str, Callable[[], pd.DataFrame]]:
    rng = np.random.default_rng(2)
    return {
        "people, 300,000×7": people,
        "flights, 200,000×7": lambda: pd.DataFrame(_flights()),
        "cytometry, 150,000×7": lambda: pd.DataFrame(_cytometry()),
        "photograph, 273,280×5": lambda: pd.DataFrame(_photograph()),
        "normal, 100,000×6": lambda: pd.DataFrame(rng.normal(size=(100_000, 6))),
        "Student (3), 200,000×10": lambda: pd.DataFrame(rng.standard_t(3, size=(200_000, 10))),
    }


def numbers(frame: pd.DataFrame) -> np.ndarray:
    """Its columns as numbers, categories as columns of 0 and 1, without the identifier."""
    parts = []
    for name in frame.columns:
        column = frame[name]
        if name == "id":
            continue
        if column.dtype == object or isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype):
            parts += [(column == value).to_numpy(np.float64) for value in sorted(column.unique())]
        elif np.issubdtype(column.dtype, np.datetime64):
            parts.append(column.to_numpy().astype("datetime64[D]").astype(np.float64))
        else:
            parts.append(column.to_numpy(np.float64))
    return np.column_stack(parts)


class Columns:
    """Summaries of all rows, and the errors of some weighted rows."""

    def __init__(self, X: np.ndarray) -> None:
        self.X = X
        self.mean, self.spread = X.mean(axis=0), X.std(axis=0)
        self.binary = np.array([len(np.unique(column)) <= 2 for column in X.T])
        self.limits = np.quantile(X, DECILES, axis=0, method="inverted_cdf")
        self.below = np.stack([(limit >= X).mean(axis=0) for limit in self.limits])

    def errors(self, rows: np.ndarray, weights: np.ndarray) -> dict[str, float]:
        S, w = self.X[rows], weights / weights.sum()
        mean = w @ S
        spread = np.sqrt(w @ np.square(S - mean))
        reached = np.stack([w @ (limit >= S) for limit in self.limits])
        return {
            "means": float(np.abs((mean - self.mean) / self.spread).mean()),
            "standard deviations": float(np.abs(spread / self.spread - 1)[~self.binary].mean()),
            "deciles": float(np.abs(reached - self.below)[:, ~self.binary].mean()),
            "proportions": float(np.abs(mean - self.mean)[self.binary].mean()) if self.binary.any() else np.nan,
        }

    def extremes(self, rows: np.ndarray) -> tuple[int, int]:
        """The number of the columns' minima and maxima among the rows, and of all."""
        S = self.X[rows][:, ~self.binary]
        kept = (S.max(axis=0) == self.X.max(axis=0)[~self.binary]).sum() + (S.min(axis=0) == self.X.min(axis=0)[~self.binary]).sum()
        return int(kept), 2 * int((~self.binary).sum())


def compared(frame: pd.DataFrame, size: int = SIZE, seeds: int = SEEDS) -> dict[str, Any]:
    columns = Columns(numbers(frame))
    ours, weighted, random, kept, radii = [], [], [], [], []
    for seed in range(seeds):
        small = sketch(frame, size, rng=seed)
        ours.append(columns.errors(small.indices, np.ones(size)))
        weighted.append(columns.errors(small.indices, small.weights))
        kept.append(columns.extremes(small.indices))
        radii.append(small.radius)
    for draw in range(DRAWS):
        rows = np.random.default_rng(draw).choice(len(frame), size, replace=False)
        random.append(columns.errors(rows, np.ones(size)))
    average = lambda found: {key: float(np.mean([each[key] for each in found])) for key in found[0]}  # noqa: E731
    return {
        "plain": average(ours),
        "weighted": average(weighted),
        "random": average(random),
        "kept": kept,
        "radius": np.mean(radii),
    }


def measure(quick: bool) -> dict[str, Any]:
    size, seeds = (QUICK_SIZE, QUICK_SEEDS) if quick else (SIZE, SEEDS)
    lines, every, exact = [], [], []
    for title, make in tables().items():
        if quick and title.split(",")[0] not in QUICK_SETS:
            continue
        found = compared(make()[: QUICK_ROWS if quick else None], size, seeds)
        plain, weighted, random = found["plain"], found["weighted"], found["random"]
        ratios = {key: plain[key] / random[key] for key in GOALS}
        every.append(ratios)
        exact.append(max(weighted["means"], weighted["standard deviations"]))
        least = min(kept for kept, _ in found["kept"])
        lines.append(
            [
                title,
                *(f"{ratios[key]:.2f} ({plain[key]:.2g}; {random[key]:.2g})" for key in GOALS),
                "yes" if all(ratios[key] <= goal for key, goal in GOALS.items()) else "NO",
                *(f"{weighted[key]:.1g}" for key in (*GOALS, "proportions")),
                f"{least} of {found['kept'][0][1]}",
            ]
        )
    head = [
        "table",
        *(f"{key}, without weights / random rows (goal {goal})" for key, goal in GOALS.items()),
        "met",
        *(f"{key}, with weights" for key in (*GOALS, "proportions")),
        "minima and maxima kept",
    ]
    text = f"\n\n{size:,} rows by default options; means over {seeds} seeds, of random rows over {DRAWS} draws."
    worst = {key: max(ratios[key] for ratios in every) for key in GOALS}
    summary = [
        [f"error of {key} / random rows, worst table", f"{worst[key]:.2f}", f"≤ {goal}", verdict(goal, worst[key])]
        for key, goal in GOALS.items()
    ]
    summary.append(["error of means and standard deviations with weights", f"{max(exact):.1g}", "", ""])
    return {"summary": summary, "details": table(head, lines) + text}
