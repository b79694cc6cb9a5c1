"""What has to hold of a context, whatever store it came from."""

from __future__ import annotations

import asyncio
import random
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag._internal.warn import forget
from oprag.context import Context
from oprag.errors import PositionWarning
from oprag.stores import StoreAdapter
from oprag.stores.adapter import adapter_of
from tests.integration.stores.corpus import Corpus

__all__ = [
    "CHUNKS",
    "WAYS",
    "adapter_of_store",
    "ask",
    "check",
    "check_similarities",
    "documents_of",
    "in_order",
    "kinds_of_values",
    "numbers",
    "tenants",
    "texts_of",
    "told_by",
]

CHUNKS = 60
WAYS = pytest.mark.parametrize("way", ["sync", "async"])


def ask(way: str, retriever: Any, question: str, **options: Any) -> Context:
    context: Context
    if way == "sync":
        context = retriever.get_context(question, **options)
    else:
        context = asyncio.run(retriever.aget_context(question, **options))
    return context


def documents_of(corpus: Corpus, tenant: str = "red") -> list[Document]:
    """The first chunks of the corpus."""
    return [
        Document(text, metadata=corpus.metadata(number, tenant)) for number, text in enumerate(corpus.texts[:CHUNKS])
    ]


def texts_of(seed: int, count: int = CHUNKS) -> list[str]:
    """Texts that overlap, of one source of random letters."""
    chance = random.Random(seed)
    text = "".join(chance.choices("abdefgilmnoprstu      ", k=count * 160))
    return [text[start : start + 200] for start in range(0, len(text) - 40, 160)]


def told_by(search: Any, question: str) -> tuple[Any, list[str]]:
    """What a search finds, and the warnings about it."""
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = search(question)
    return found, [str(warning.message) for warning in caught if issubclass(warning.category, PositionWarning)]


def in_order(found: Iterable[str], texts: Sequence[str], least: int = 8) -> bool:
    """Whether at least so many of these texts were found, in their order."""
    there = [texts.index(text) for text in found if text in texts]
    return len(there) >= least and there == sorted(there)


def numbers(context: Context) -> list[int]:
    return [int(chunk.metadata["chunk_index"]) for chunk in context.kept]


def tenants(context: Context) -> set[str]:
    return {chunk.metadata["tenant"] for chunk in (*context.kept, *(drop.chunk for drop in context.dropped))}


def check(context: Context, corpus: Corpus, question: str, tenant: str) -> None:
    """The context is what NumPy says."""
    expected = corpus.expected(question)
    assert tenants(context) == {tenant}
    assert numbers(context) == expected.kept
    for chunk in context.kept:
        number = int(chunk.metadata["chunk_index"])
        assert chunk.rank == expected.ranked.index(number)
        assert chunk.text == corpus.texts[number]
        assert chunk.similarity == pytest.approx(expected.similarities[number], abs=1e-3)
    reasons = {int(drop.chunk.metadata["chunk_index"]): drop.reason for drop in context.dropped}
    assert reasons == expected.reasons
    for drop in context.dropped:
        number = int(drop.chunk.metadata["chunk_index"])
        assert drop.value == pytest.approx(expected.figures[number], abs=1e-3)
        assert drop.chunk.similarity == pytest.approx(expected.similarities[number], abs=1e-3)


def kinds_of_values(metadata: Mapping[str, Any]) -> dict[str, type]:
    """The type of each value, since 1 == 1.0 == True."""
    return {key: type(value) for key, value in metadata.items()}


def check_similarities(context: Context, corpus: Corpus, question: str) -> None:
    """Twenty chunks, each with its cosine similarity."""
    assert len(context.kept) == 20
    for chunk in context.kept:
        assert chunk.similarity == pytest.approx(corpus.cosine(question, chunk.metadata["chunk_index"]), abs=1e-3)


def adapter_of_store(store: Any, **search: Any) -> StoreAdapter:
    """The adapter of a store that is known."""
    found = adapter_of(store, search)
    assert found is not None
    return found
