"""How an index is made and searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oprag.index.document_index import SearchKind
from oprag.index.splitting import Split

__all__ = ["Search", "Splitting", "Store", "StoreOpener"]


class Search(NamedTuple):
    """How an index is searched.

    Attributes:
        kind: How chunks are ranked.
        store: What finds the nearest vectors.
        depth: How many chunks are wanted; None for all.
    """

    kind: SearchKind
    store: str
    depth: int | None


class Splitting(NamedTuple):
    """How documents become chunks.

    Attributes:
        split: How they are split.
        tokenizer: What `split_tokens` takes; counts the tokens of a chunk, in the embedder's unit.
        name: The identity of the tokenizer.
    """

    split: Split
    tokenizer: Any
    name: str


class Store(Protocol):
    """What finds the nearest vectors."""

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Put chunks in, whose rows are their places in the list."""
        ...

    def search(self, vector: NDArray[np.float32], k: int) -> list[tuple[int, float | None]]:
        """Rows and scores of the k nearest, best first."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


StoreOpener = Callable[[str], Store]
"""Opens an empty store by its name in the experiment."""
