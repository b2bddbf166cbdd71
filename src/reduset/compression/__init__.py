"""compress: select (which atoms) → weigh (which weights) → certify (the measured error), and its result.

`compressing` has the public functions, and `plan` resolves every default. `stages` has the three stages, and `searches` and
`resolution` are loops around them.

May import: select, certificate, weights, mixture, mean, kernels, and tables of io.
"""

from reduset._messages import NotReachedWarning
from reduset.compression.atom_request import AtomRequest, at_most_one
from reduset.compression.compressing import compress, compress_quietly, evaluated, weigh
from reduset.compression.plan import COMPONENTS, MOST_ATOMS, PIECE_HINTS, PIECES, SQUARE_ROOT, TOL, is_left_open
from reduset.compression.prefixes import Path, Prefixes
from reduset.compression.result import Compression, assemble
from reduset.compression.searches import QUOTAS, by_plateau, by_tolerance, grow, labels_of, quotas
from reduset.compression.stages import Atoms, Resolution, Run, Target, Weighed, certify, weigh_atoms
from reduset.compression.summary import at_resolution, better_weights, error_lines, error_text, head, noun

__all__ = ["Compression", "NotReachedWarning", "Path", "compress", "weigh"]
