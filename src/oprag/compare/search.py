"""How an index is made and searched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from oprag.compare.stores.store import Store
from oprag.index.document_index import SearchKind
from oprag.index.splitting import Split

__all__ = ["Search", "Splitting", "StoreOpener"]


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


StoreOpener = Callable[[str], Store]
"""Opens an empty store by its name in the experiment."""
