"""Models, cohorts and images that are small and awkward, for the reports."""

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd

from reduset import Gaussian, KernelMean, compress, sketch
from reduset.certificate import Certificate
from reduset.cohort import CohortMap
from reduset.covers import audit
from reduset.cytometry import CohortStudy, SampleSet
from reduset.model import Model
from reduset.modes.segmentation import Segmentation, flat

HOSTILE = "<script>alert(1)</script>"
BREAKERS = [HOSTILE, "</script><b>x</b>", "<!--", "a\u2028b", '"><img src=x onerror=alert(1)>', "%{x} & $title", "&lt;"]


def rows(n=1200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.arange(1, d + 1) + rng.choice([-3.0, 3.0], size=(n, 1)) + 1e5 * np.arange(d)


def model(n=1200, d=3, size=40, kernel=None, columns=None, about=None, **options):
    """Columns lie far from zero, where single precision alone would show nothing."""
    full = KernelMean.from_samples(rows(n, d), kernel or Gaussian(3.0))
    small = compress(full, size=size, select="kcenter", rng=0, **options)
    names = columns or ["height", HOSTILE, *(f"c{k}" for k in range(2, d))][:d]
    return Model.of(
        full, small, names, {"command": f"reduset compress a.csv --columns '{HOSTILE}'", "sources": ["a.csv"]} | (about or {})
    )


def resolved(n=1200, d=3, size=40, tol=0.2):
    """A model at its resolution, of columns near zero."""
    small = compress(rows(n, d) - 1e5 * np.arange(d), size=size, tol=tol, select="kcenter", rng=0)
    return Model.of(KernelMean.from_samples(rows(n, d) - 1e5 * np.arange(d), small.mean.kernel), small)


def laws(n=1200, d=3, size=9, kernel=None):
    """A model of components, of columns far from zero."""
    full = KernelMean.from_samples(rows(n, d), kernel or Gaussian(1.5))
    return Model.of(full, compress(full, size=size, pieces="components", rng=0), ["height", HOSTILE, "c2"][:d])


def cohort(names=None):
    rng = np.random.default_rng(0)
    bags = [rng.normal(2.0 * (k % 2), 1.0, size=(150, 2)) for k in range(6)]
    names = names or ["first", HOSTILE, "third", "fourth", "fifth", "sixth"]
    return CohortMap(layout="mds", size=12, random_state=0).fit(dict(zip(names, bags, strict=True)))


GROUPS = ["ill", HOSTILE, "ill", HOSTILE, None, "ill"]


QUOTED = """CD"3"'>"""  # a marker that would end an attribute
CONTROLS = 2


def sample_set(groups=("healthy", "ill"), samples=12, cells=500, d=4, **options):
    """Two populations, one twice as large in each further group; patients give a sample of each, one donor one in every run."""
    rng = np.random.default_rng(0)
    names = [HOSTILE, *(f"s{k:02d}" for k in range(1, samples))]
    compared = samples - CONTROLS
    told = [groups[k % len(groups)] for k in range(compared)]
    shares = [0.1 * 2.0 ** groups.index(group) for group in told] + [0.1] * CONTROLS
    mine = [rng.random((cells, 1)) < share * np.exp(rng.normal(0, 0.1)) for share in shares]
    each = tuple(np.where(which, rng.normal(6, 1, (cells, d)), rng.normal(0, 1, (cells, d))) for which in mine)
    table = {
        "sample_id": tuple(names),
        "condition": (*told, *[None] * CONTROLS),
        "patient": (*(f"p{k // len(groups)}" for k in range(compared)), *["donor"] * CONTROLS),
        "run": (*(f"run {k // len(groups) % 2}" for k in range(compared)), *(f"run {k}" for k in range(CONTROLS))),
        "control": (*[None] * compared, *["yes"] * CONTROLS),
    }
    given = {
        "state": frozenset(["CD38"]) if d == 4 else frozenset(),
        "counted": {"events": np.full(samples, cells + 30), "margin": np.full(samples, 10), "doublets": np.full(samples, 20)},
        "left_out": {"s99": f"{HOSTILE}.fcs: is cut short"},
        "notes": ("compensated by its spillover matrix",),
        "scales": {"CD38": "asinh:150"},
    }
    return SampleSet(tuple(names), each, (QUOTED, "CD4", "CD8", "CD38")[:d], table, **given | options)


def study(samples=None, test="condition", block="patient", batch="run", control="control", **options):
    """A small study of all that a report may show."""
    shown = sample_set() if samples is None else samples
    return CohortStudy(test, block, batch, control=control, n_atoms=40, random_state=0, **options).fit(shown)


def people(n=1500, seed=0):
    """A frame of all that a table may hold: a long tail, ages, a count, a flag, categories, dates, and names that are code."""
    rng = np.random.default_rng(seed)
    start = np.datetime64("2015-01-01")
    return pd.DataFrame(
        {
            "income": np.exp(rng.normal(10, 1.2, n)),
            "age": rng.integers(0, 96, n).astype(float),
            "visits": rng.poisson(1.5, n),
            HOSTILE: (rng.random(n) < 0.1).astype(int),
            "city": rng.choice(["Berlin", "Oslo", QUOTED, HOSTILE], n, p=[0.6, 0.3, 0.09, 0.01]),
            "joined": (start + rng.integers(0, 900, n).astype("timedelta64[D]")).astype("datetime64[ns]"),
        }
    )


def sketched(n=1500, size=120):
    """A sketch of such a frame, and the frame."""
    frame = people(n)
    return sketch(frame, size, rng=0), frame


def audited(n=400, m=60):
    """An audit of a list with duplicates and uncovered rows, and a frame of names that are code."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 3))
    rows[:5] = rows[5:10] + 1e-3
    frame = pd.DataFrame({"id": [f"row-{k}" for k in range(n)], "caption": [HOSTILE, *["long " * 40] * (n - 1)]})
    return audit(rows, np.arange(m), 0.9, compare=True), frame


def image(height=40, width=60):
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 60, size=(height, width, 3)).astype(np.uint8)
    picture[:, width // 2 :] += 150
    return picture


def segmentation(picture):
    """Two halves and a corner, without running mean shift."""
    labels = np.zeros(picture.shape[:2], np.int64)
    labels[:, picture.shape[1] // 2 :] = 1
    labels[:5, :5] = 2
    certificate = Certificate(0.012, (0.011, 0.013), 0.95, "frequencies", 1.0, 1.0, 0.4, 0.5, None, 0.9)
    return Segmentation(labels, flat(picture.reshape(*labels.shape, -1), labels.ravel()).reshape(picture.shape), certificate, 0.1)


def embedded(path):
    """What the scripts of a page read, as they read it."""
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1))


def unpacked(packed):
    return np.frombuffer(base64.b64decode(packed["base64"]), "<" + packed["kind"]).reshape(packed["shape"])


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, and the texts outside of scripts and styles."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.texts, self.scripts, self.inside = [], [], [], None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts.append(data)
        elif self.inside != "style":
            self.texts.append(data)

    def text(self):
        return " ".join(self.texts).replace("\N{NO-BREAK SPACE}", " ")
