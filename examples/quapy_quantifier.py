"""ClassProportions as a quantifier of QuaPy: fitted, and judged by QuaPy's artificial-prevalence protocol beside its own methods.

    pip install quapy
    python examples/quapy_quantifier.py

QuaPy calls a class proportion a prevalence. `ClassProportionsQuantifier` is one of its quantifiers, with `fit(X, y)` and
`predict(X)`; its parameters are those of ClassProportions, so that QuaPy's model selection can set them.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reduset.proportions.quapy_adapter import ClassProportionsQuantifier

try:
    import quapy
except ImportError:
    if __name__ != "__main__":
        raise
    print("QuaPy is not installed, so there is nothing to show: pip install quapy")
    sys.exit(0)


def main() -> None:
    from quapy.data import LabelledCollection
    from quapy.method.aggregative import EMQ, PACC
    from quapy.protocol import UPP

    data = LabelledCollection(*load_digits(return_X_y=True))
    train, test = data.split_stratified(0.6, random_state=0)
    samples = UPP(test, sample_size=100, repeats=100, random_state=0)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    methods = {
        "PACC": PACC(classifier),
        "EMQ": EMQ(classifier),
        "reduset, on posteriors": ClassProportionsQuantifier(classifier),
        "reduset, on the rows": ClassProportionsQuantifier(),
    }
    print(f"digits: {len(train)} labelled rows; {samples.repeats} samples of 100 rows with random proportions of 10 classes")
    for name, method in methods.items():
        method.fit(*train.Xy)
        errors = [np.abs(method.predict(sample) - truth).mean() for sample, truth in samples()]
        print(f"{name:<24} mean absolute error {np.mean(errors):.4f}")
    print(f"QuaPy's own evaluation says {quapy.evaluation.evaluate(method, samples, 'mae'):.4f} of the last")


if __name__ == "__main__":
    main()
