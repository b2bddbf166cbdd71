"""
Drift: what changed, where, and since when
==========================================

Orders of a shop, and those of another day: some are of a new kind, and one of the usual kinds has become rarer. A test against a
reference says so, and where. A monitor that sees the orders one by one raises the alarm soon after the change, and says since
when.

The page is :doc:`/docs/drift`.
"""

import matplotlib.pyplot as plt
import numpy as np

from reduset.drift import DriftMonitor, DriftTest
from reduset.report import DriftDisplay

rng = np.random.default_rng(3)


def orders(n, shares=(0.5, 0.5, 0.0)):
    """Three kinds of orders, euros and minutes; of the third there are none at first."""
    kind = rng.choice(3, size=n, p=shares)
    centres, spreads = np.array([[25, 8], [55, 20], [95, 6]]), np.array([[7, 2.5], [9, 4], [4, 1]])
    return centres[kind] + spreads[kind] * rng.normal(size=(n, 2))


changed = (0.6, 0.3, 0.1)
reference = DriftTest(random_state=0).fit(orders(4000))
found = reference.test(orders(1500, changed))
monitor = DriftMonitor(reference, ert=1000, random_state=0)
monitor.update(orders(300))
monitor.update(orders(120, changed))

# %%
fig, (where, chance, time) = plt.subplots(1, 3, figsize=(13, 3.7), width_ratios=[1.25, 0.9, 1.1])
DriftDisplay.from_result(found, [0, 1]).plot(where)
where.set(title="where the proportion of rows changed", xlabel="euros", ylabel="minutes")
DriftDisplay.from_result(found).plot(chance, kind="null")
chance.set_title(f"distance of the new rows, p = {found.p_value:.3f}")
chance.legend(loc=(0.25, 0.75), fontsize="small")
history = monitor.history_
time.axhline(1, color="#6b7078", linestyle="--", linewidth=1)
time.axvspan(*monitor.since_[1:], color="C4", alpha=0.35, linewidth=0, label="start of the change, 95 % CI")
time.plot(history["row"], history["statistic"], linewidth=1.2)
time.axvline(monitor.alarmed_at_, color="C1", label=f"alarm at row {monitor.alarmed_at_}")
time.set(title="monitor; the change is at row 300", xlabel="row", ylabel="statistic; 1 is an alarm")
time.set_ylim(top=3)
time.legend(loc="upper left")
plt.show()
