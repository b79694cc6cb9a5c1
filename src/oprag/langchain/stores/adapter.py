"""What an adapter for a vector store is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document

from oprag.embedding.vectors import Record

__all__ = ["StoreAdapter"]

Read = Callable[[Any, Sequence[str], Mapping[str, Any]], Mapping[str, Record]]
AsyncRead = Callable[[Any, Sequence[str], Mapping[str, Any]], Awaitable[Mapping[str, Record]]]


def _id_of(document: Document) -> str | None:
    return document.id


def _always(store: Any, search: Mapping[str, Any]) -> bool:  # noqa: ARG001
    return True


@dataclass(frozen=True)
class StoreAdapter:
    """How a kind of vector store gives vectors, and how it is searched by one.

    Attributes:
        read: Gives what the store holds under these keys, in one request. It is called with the store, distinct keys,
            at least one, and the keywords of the search, where a namespace or a tenant stands; keys that the store does
            not know are left out. Filters need not be applied again: the documents are those of the search.
        aread: The same, async, where the store has an async client.
        key: The key of a document that was found; its id by default. None where it has none.
        by_vector: The method that finds by a vector what the search finds by words, with the same scores; with an "a"
            before it, its async twin. None where there is none.
        keywords: What that method needs beside the vector and the keywords of the search.
        alike: Whether, for this store and these keywords, both do find the same: a hybrid search needs the words.
    """

    read: Read
    aread: AsyncRead | None = None
    key: Callable[[Document], str | None] = _id_of
    by_vector: str | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    alike: Callable[[Any, Mapping[str, Any]], bool] = _always
