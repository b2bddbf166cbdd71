"""A covering ends whatever rounding does to the distance of a row that lies on its threshold."""

import numpy as np
import pytest

from reduset import Gaussian
from reduset.stream.online_kcenter import OnlineKCenter


@pytest.mark.parametrize("seed", range(20))
def test_a_row_at_the_threshold_itself_does_not_come_back_for_ever(seed, monkeypatch):
    raised, rose = OnlineKCenter._raised, []

    def counted(covering):
        rose.append(covering.threshold)
        assert len(rose) < 1000
        return raised(covering)

    monkeypatch.setattr(OnlineKCenter, "_raised", counted)
    rng = np.random.default_rng(seed)
    covering = OnlineKCenter.empty(Gaussian(1.0), 8, 3)
    for _ in range(5):
        covering = covering.absorb(rng.normal(size=(300, 3)), np.full(300, 1 / 1500))
    assert len(covering.centres) <= 8
    assert covering.clusters.masses.sum() == pytest.approx(1.0)
