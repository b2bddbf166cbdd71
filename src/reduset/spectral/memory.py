"""Whether a matrix of all pairs of atoms has room in memory: m² numbers, 20 GB for 50,000 atoms.

A system may grant such a request and end the process when it comes to the filling, so it is refused before.
"""

from __future__ import annotations

from reduset._engine import physical_memory as memory

SHARE = 0.8  # of the memory, that one matrix may take


def ensure_memory(atoms: int) -> None:
    """Refuse a matrix of so many atoms that the machine could not hold it."""
    needed, there = 8.0 * atoms**2, SHARE * memory()
    if needed > there:
        fit = int((there / 8) ** 0.5)
        fit -= fit % 10 ** max(len(str(fit)) - 2, 0)  # a round number
        raise MemoryError(
            f"the kernel matrix of {atoms:,} atoms takes {needed / 1e9:,.1f} GB, this machine has {memory() / 1e9:,.1f} GB; "
            f"keep at most {fit:,} atoms: set size (n_components of Nystroem), lower ell or widen the bandwidth"
        )
