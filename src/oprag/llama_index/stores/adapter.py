"""What an adapter for a vector store is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from oprag.embedding.vectors import Record

__all__ = ["Searched", "StoreAdapter"]


class Searched(NamedTuple):
    """Where nodes were found.

    Attributes:
        vector_store: The vector store.
        nodes: The ids of nodes by what the store calls them, for stores that number their vectors.
        docstore: The nodes themselves, for stores that keep no texts.
        embed_model: What the nodes were embedded with.
        keywords: What the store's own search is handed, among it a tenant or a shard.
    """

    vector_store: Any
    nodes: Mapping[str, str]
    docstore: Any
    embed_model: Any
    keywords: Mapping[str, Any]


Read = Callable[[Searched, Sequence[str]], Mapping[str, Record]]
AsyncRead = Callable[[Searched, Sequence[str]], Awaitable[Mapping[str, Record]]]


@dataclass(frozen=True)
class StoreAdapter:
    """How a kind of vector store gives vectors.

    Attributes:
        read: Gives what the store holds under these ids of nodes, in one request; ids that it does not know are left
            out. It is called with distinct ids, at least one. Filters need not be applied again: the nodes are those of
            the search.
        aread: The same, async, where the store has an async client.
    """

    read: Read
    aread: AsyncRead | None = None
