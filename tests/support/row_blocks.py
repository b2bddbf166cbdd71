"""A back end of passes in a few lines: blocks in a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from reduset._engine import BlockRows


class ListedRows(BlockRows):
    """Rows in blocks of given lengths, and how often a pass was made over them."""

    def __init__(self, X: Any, *lengths: int) -> None:
        self.blocks = np.split(np.asarray(X), np.cumsum(lengths)[:-1])
        super().__init__(lengths, X.shape[1], X.dtype)
        self.passes = 0

    def run(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], blocks: Sequence[int]) -> Iterable[Any]:
        self.passes += 1
        for k, given in zip(blocks, arguments, strict=True):
            yield function(self.blocks[k], *given)
