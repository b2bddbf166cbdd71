"""The experiments of Kingravi, Vela & Gray 2013, Section 6: data and bandwidths (Table 1), methods, and classification.

The paper's Gaussian is exp(−r²/σ²) by its (19), the library's exp(−r²/2h²). With h = σ/√2 and the library's ell = ℓ/√2 the kernel
and the radius σ/ℓ of the shadows are those of the paper. `SIGMA_IS_BANDWIDTH` names the other reading, h = σ with the same radius.
Times are processor seconds, so that other processes on the machine hardly change them.
"""

from __future__ import annotations

import time
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from scipy import ndimage
from sklearn.base import BaseEstimator
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier

from benchmarks._lib import data_folder
from benchmarks.applications.spectral_data import load
from reduset import Gaussian, KernelMean
from reduset.select import Shadow
from reduset.spectral import ReducedKernelPCA, WeightedNystroem

matplotlib.use("Agg")  # before pyplot is imported: it needs no screen
import matplotlib.pyplot as plt

ELLS = tuple(round(3.0 + 0.1 * step, 1) for step in range(21))  # printed for the embeddings
CLASSIFICATION_ELLS = ELLS[::5]  # 3, 3.5, …, 5: five values for a shorter run; the paper does not state its steps
FOLDS, NEIGHBOURS = 10, 3
AS_PRINTED, SIGMA_IS_BANDWIDTH = "exp(−r²/σ²)", "exp(−r²/2σ²)"
KPCA, SHADOW, REFINED = "kernel PCA", "shadow", "shadow, refine=True"
SUBSAMPLE, NYSTROEM, WEIGHTED = "subsample", "Nyström", "weighted Nyström"
COLOURS = {KPCA: "k", SHADOW: "tab:red", REFINED: "tab:orange", SUBSAMPLE: "0.6", NYSTROEM: "tab:blue", WEIGHTED: "tab:green"}
RESULTS = Path(__file__).with_name("results")
SOURCES = (
    *("spectral/components.py", "spectral/extension.py", "spectral/reduction.py", "spectral/kernel_pca.py"),
    "select/shadow.py",
)  # of reduced kernel PCA
FACE_SHAPE = 20, 26  # 520 columns, as in Table 1


class Setting(NamedTuple):
    """One column of Table 1: rows, σ, and the number of components k."""

    rows: int
    sigma: float
    components: int


TABLE_1 = {
    "german": Setting(1000, 30.0, 5),
    "pendigits": Setting(3500, 120.0, 5),
    "usps": Setting(9298, 18.0, 15),
    "yale": Setting(5768, 17.0, 10),
}
YALE_PEOPLE = 10
YALE_PHOTOGRAPHS = "yale, 165 photographs"


def setting_of(name: str) -> Setting:
    return TABLE_1[name.split(",")[0]]


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows in random order and labels, as many as Table 1 lists where the data are available."""
    if name == YALE_PHOTOGRAPHS:
        return in_random_order(*photographs())
    if name == "yale":
        return in_random_order(*varied_photographs(TABLE_1[name].rows))
    X, y = load({"german": "german_numer"}.get(name, name))
    return X[: TABLE_1[name].rows], y[: TABLE_1[name].rows]


def in_random_order(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def photographs() -> tuple[np.ndarray, np.ndarray]:
    """The Yale faces, 165 photographs of 15 people, reduced to 20×26 pixels in [0, 1]."""
    with np.load(data_folder() / "yale_faces.npz") as file:
        images, people = file["X"] / 255.0, file["y"]
    factors = [small / whole for small, whole in zip(FACE_SHAPE, images.shape[1:], strict=True)]
    small = [ndimage.zoom(image, factors, order=1, grid_mode=True, mode="nearest") for image in images]
    return np.clip(np.reshape(small, (len(images), -1)), 0.0, 1.0), people


def varied_photographs(rows: int, move: bool = True, light: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """As many rows as the paper has: photographs of ten people, each moved by up to a pixel and lit from random directions.

    The paper's rows, ten people in 5,768 photographs of different pose and lighting, are not available.
    """
    X, people = photographs()
    X, people = X[people <= YALE_PEOPLE].reshape(-1, *FACE_SHAPE), people[people <= YALE_PEOPLE]
    down, across = np.meshgrid(*(np.linspace(-1.0, 1.0, length) for length in FACE_SHAPE), indexing="ij")
    rng = np.random.default_rng(0)
    varied = []
    for row in range(rows):
        lighting = rng.uniform(0.7, 1.1) * (1.0 + rng.uniform(-0.5, 0.5) * down + rng.uniform(-0.5, 0.5) * across)
        step = rng.uniform(-1.0, 1.0, 2)
        image = X[row % len(X)]
        image = ndimage.shift(image, step, order=1, mode="nearest") if move else image
        varied.append(np.clip(lighting * image if light else image, 0.0, 1.0).ravel())
    return np.array(varied), people[np.arange(rows) % len(X)]


# -- methods ---------------------------------------------------------------------------------------------------------


class Gauge(NamedTuple):
    """A reading of the paper's σ: the kernel, and the library's ell over the paper's ℓ."""

    kernel: Gaussian
    factor: float

    def shadows(self, X: np.ndarray, ell: float) -> int:
        """How many atoms the shadows of ℓ have."""
        return len(Shadow(self.factor * ell).select(KernelMean.from_samples(X, self.kernel), len(X)).atoms)


def gauge(sigma: float, reading: str = AS_PRINTED) -> Gauge:
    return Gauge(Gaussian(sigma / sqrt(2)), 1 / sqrt(2)) if reading == AS_PRINTED else Gauge(Gaussian(sigma), 1.0)


def methods(k: int, by: Gauge, ell: float, m: int, seed: int) -> dict[str, BaseEstimator]:
    """Shadows of this ℓ, and the methods that need the number of atoms m. All are uncentred, as in the paper."""
    pca = partial(ReducedKernelPCA, k, kernel=by.kernel, centre=False)
    nystroem = partial(WeightedNystroem, k, kernel=by.kernel, size=m, all_rows=True, random_state=seed)
    return {
        SHADOW: pca(ell=by.factor * ell, refine=False),
        REFINED: pca(ell=by.factor * ell),
        SUBSAMPLE: pca(reduce="random", size=m, refine=False, random_state=seed),
        NYSTROEM: nystroem(reduce="random"),
        WEIGHTED: nystroem(reduce="kmeans"),
    }


def of_all_rows(k: int, by: Gauge) -> ReducedKernelPCA:
    """Kernel PCA of all rows, uncentred."""
    return ReducedKernelPCA(k, kernel=by.kernel, reduce=None, centre=False, refine=False)


def of_scikit_learn(k: int, by: Gauge) -> KernelPCA:
    """The baseline of the timings. It centres the kernel, which does not change its cost."""
    return KernelPCA(k, kernel="rbf", gamma=0.5 / by.kernel.bandwidth**2, eigen_solver="arpack")


def compile_all() -> None:
    """Compile what the timed calls use."""
    X = np.random.default_rng(0).normal(size=(300, 100))
    for columns in (5, 100):  # few and many columns take different paths
        for model in methods(2, gauge(10.0), 3.0, 50, 0).values():
            model.fit_transform(X[:, :columns])


# -- classification --------------------------------------------------------------------------------------------------


def folds_of(X: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first ``count`` of the 10 folds, rows being in random order already."""
    return list(KFold(FOLDS).split(X))[:count]


def classified(model: Any, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[float, float, float]:
    """3-NN accuracy on the coordinates; processor seconds to fit and embed the training rows, and to embed the test rows."""
    begun = time.process_time()
    known = model.fit_transform(X[train])
    fitted = time.process_time()
    new = model.transform(X[test])
    ended = time.process_time()
    score = KNeighborsClassifier(NEIGHBOURS).fit(known, y[train]).score(new, y[test])
    return float(score), fitted - begun, ended - fitted


def mean_scores(scores: list[tuple[float, float, float]]) -> dict[str, float]:
    """Mean accuracy with its standard error over folds, and median seconds."""
    accuracy, training, testing = np.array(scores).T
    return {
        "accuracy": float(accuracy.mean()),
        "standard_error": float(accuracy.std(ddof=1) / sqrt(len(accuracy))) if len(accuracy) > 1 else 0.0,
        "training": float(np.median(training)),
        "testing": float(np.median(testing)),
    }


# -- pictures --------------------------------------------------------------------------------------------------------


def save(figure: Any, name: str) -> None:
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"{name}.png", dpi=55, metadata={"Software": None})
    plt.close(figure)


def picture(name: str, text: str) -> str:
    """The Markdown of a stored picture, from the folder of the details."""
    return f"![{text}]({name}.png)"
