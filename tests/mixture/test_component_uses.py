"""Components where atoms are expected: taken, or refused in one sentence with the way out."""

import numpy as np
import pytest

from reduset import Gaussian, KernelMean, compress, simplify
from reduset.cohort import distances
from reduset.features import MeanMapFeatures
from reduset.modes.mean_shift import find_modes
from reduset.spectral import ReducedKernelPCA

RNG = np.random.default_rng(0)
ROWS = np.concatenate([RNG.normal(0, 0.5, size=(150, 2)), RNG.normal(4, 0.5, size=(150, 2))])


@pytest.fixture(scope="module")
def small():
    return compress(ROWS, Gaussian(0.5), size=4, pieces="components", rng=0)


@pytest.mark.parametrize("given", ["Compression", "ComponentMean"])
def test_uses_of_atoms_name_the_way_out(given, small):
    mean = small if given == "Compression" else small.mean
    with pytest.raises(TypeError, match=r"reduce must have atoms.*with components.*pieces='atoms'"):
        ReducedKernelPCA(1, reduce=mean).fit(ROWS)
    with pytest.raises(TypeError, match=r"bags\[1\] .*got a ComponentMean.*pieces='atoms'"):
        MeanMapFeatures().fit([ROWS, mean])


def test_distances_of_many_are_found_on_atoms(small):
    with pytest.raises(TypeError, match=r"means\[1\] .*got ComponentMean.*a\.distance\(b\) or a\.kl\(b\)"):
        distances([KernelMean.from_samples(ROWS, small.mean.kernel), small.mean])


def test_a_mixture_is_simplified_and_not_compressed(small):
    with pytest.raises(TypeError, match=r"data is a ComponentMean; simplify makes it smaller"):
        compress(small.mean, size=2)
    assert simplify(small.mean, size=2, rng=0).mixture.size == 2


def test_modes_are_found_on_components(small):
    modes = find_modes(small.mean, small.mean.atoms, radius=0.5)[0]
    assert len(modes) == 2
    np.testing.assert_allclose(np.sort(modes[:, 0]), [0, 4], atol=0.3)
