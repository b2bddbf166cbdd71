"""
Proportions: how many of each class, with intervals
===================================================

Twenty-one samples with more and more rows of one class. Counting the labels of a classifier is biased towards the proportions
it was trained on; matching kernel means is not, and its intervals say how sure it is.

The page is :doc:`/docs/proportions`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from reduset.proportions import ClassProportions

rng = np.random.default_rng(1)


def cells(healthy, ill):
    return np.concatenate([rng.normal(size=(healthy, 3)), rng.normal(size=(ill, 3)) * 0.8 + [1.5, 1.0, 0.0]])


X, y = cells(1000, 1000), np.repeat(["healthy", "ill"], 1000)
model = ClassProportions(random_state=0).fit(X, y)
classifier = LogisticRegression().fit(X, y)

truth = np.linspace(0, 1, 21)
samples = [cells(round(1500 * (1 - share)), round(1500 * share)) for share in truth]
estimates = [model.estimate(sample) for sample in samples]
found = np.array([estimate.values[1] for estimate in estimates])
intervals = np.array([estimate.interval[1] for estimate in estimates])
counted = np.array([np.mean(classifier.predict(sample) == "ill") for sample in samples])

# %%
fig, (places, shares, off) = plt.subplots(1, 3, figsize=(11.5, 3.5))
for name, colour, marker in (("healthy", "C0", "o"), ("ill", "C1", "^")):
    places.scatter(*X[y == name][:500, :2].T, s=9, color=colour, marker=marker, alpha=0.6, linewidths=0, label=name)
places.set(title="two classes that overlap", aspect="equal", xticks=[], yticks=[])
places.spines[:].set_visible(False)
places.legend(loc="upper left")
shares.plot([0, 1], [0, 1], color="#b9bcc1", linewidth=1)
shares.errorbar(truth, found, np.abs(intervals.T - found), fmt="o", markersize=4, capsize=2, label="ClassProportions, 95 %")
shares.plot(truth, counted, "s--", markersize=4, label="labels counted")
shares.set(title="share of the ill", xlabel="truth", ylabel="found")
shares.legend(loc="upper left")
off.axhline(0, color="#b9bcc1", linewidth=1)
off.errorbar(truth, found - truth, np.abs(intervals.T - found), fmt="o", markersize=4, capsize=2)
off.plot(truth, counted - truth, "s--", markersize=4)
off.set(title="off by", xlabel="truth")
plt.show()
