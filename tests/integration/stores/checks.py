"""What has to hold of a context, whatever store it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from oprag.context import Context
from oprag.stores import StoreAdapter
from oprag.stores.adapter import adapter_of
from tests.integration.stores.corpus import Corpus

__all__ = ["adapter_of_store", "check", "check_similarities", "kinds_of_values", "numbers", "tenants"]


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
