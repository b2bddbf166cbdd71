"""compress: select (which atoms) → weigh (which weights) → certify (how much was lost), and its result.

May import: select, certificate, weights, mean, kernels, and tables of io.
"""

from reduset._messages import NotReachedWarning
from reduset.compression.atom_request import AtomRequest, at_most_one
from reduset.compression.certifying import certify
from reduset.compression.compressing import compress, compress_quietly, evaluated
from reduset.compression.given_atoms import weigh
from reduset.compression.grouped import QUOTAS, SQUARE_ROOT, quotas
from reduset.compression.plan import MOST_ATOMS, PIECE_HINTS, PIECES, TOL
from reduset.compression.prefixes import Path, Prefixes
from reduset.compression.result import Compression, assemble
from reduset.compression.selecting import Atoms, begin
from reduset.compression.summary import above_random_rows, better_weights
from reduset.compression.summary import error as error_text
from reduset.compression.target import Run, Target
from reduset.compression.weighing import weigh as weigh_atoms

__all__ = ["Compression", "NotReachedWarning", "Path", "compress", "weigh"]
