"""What Chroma does in ways of its own: limits of its database, and filters of several kinds."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from oprag.langchain import OrderPreservingRetriever
from tests.integration.stores.checks import adapter_of_store
from tests.security.test_filters import A_AND_B, shown_to_the_model

pytestmark = pytest.mark.integration


def store_at(folder: Path) -> Any:
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
    return Chroma(f"c{uuid.uuid4().hex}", DeterministicFakeEmbedding(size=4), client=client)


def test_more_chunks_than_a_request_takes(tmp_path: Path):
    store, count, batch = store_at(tmp_path), 12_000, 4_000
    chance = np.random.default_rng(0)
    keys = [str(uuid.UUID(int=int(number))) for number in chance.permutation(count)]
    for start in range(0, count, batch):
        store._collection.add(
            ids=keys[start : start + batch],
            embeddings=chance.random((batch, 4), dtype=np.float32),
            documents=[f"text {number}" for number in range(start, start + batch)],
            metadatas=[{"source": f"{number}.txt", "even": number % 2 == 0} for number in range(start, start + batch)],
        )
    assert [chunk.key for chunk in adapter_of_store(store).chunks() or ()] == keys
    even = adapter_of_store(store, filter={"even": True})
    wanted = {f"{number}.txt" for number in range(3_000)}
    assert [chunk.key for chunk in even.chunks("source", wanted) or ()] == keys[:3_000:2]
    even.write({key: {"chunk_index": number} for number, key in enumerate(keys)})
    found = [chunk.metadata for chunk in adapter_of_store(store).chunks() or ()]
    assert found == [
        {"source": f"{number}.txt", "even": number % 2 == 0, "chunk_index": number} for number in range(count)
    ]


def test_filters_of_all_kinds(tmp_path: Path):
    store = store_at(tmp_path)
    texts = ["a river", "a lake", "a river and a lake"]
    store.add_texts(texts, [{"source": "a.txt", "page": page} for page in range(3)], ids=["0", "1", "2"])

    def keys(**search: Any) -> list[str]:
        return [chunk.key for chunk in adapter_of_store(store, **search).chunks("source", {"a.txt"}) or ()]

    assert keys() == ["0", "1", "2"]
    assert keys(where_document={"$contains": "river"}) == ["0", "2"]
    assert keys(ids=["2", "1"]) == ["1", "2"]
    assert keys(filter={"$and": [{"page": {"$gt": 0}}, {"page": {"$lt": 2}}]}) == ["1"]
    assert keys(filter={"page": {"$gt": 0}}, where_document={"$contains": "river"}, ids=["0", "2"]) == ["2"]


@pytest.mark.parametrize("search", [{"where_document": {"$contains": "of A"}}, {"ids": ["A0", "A2", "A4", "A6"]}])
async def test_a_function_that_requires_the_filter_is_not_called_for_other_restrictions(tmp_path: Path, search: Any):
    store = store_at(tmp_path)
    store.add_documents(A_AND_B)
    assert " of B." not in await shown_to_the_model(vectorstore=store, k=2, search_kwargs=search)
    assert " of B." not in await shown_to_the_model(retriever=store.as_retriever(search_kwargs={**search, "k": 2}))
    # The adapter applies these restrictions, so neighbors that it lists pass them.
    listing = OrderPreservingRetriever(vectorstore=store, k=2, search_kwargs=search, neighbors=1)
    assert {one.metadata["tenant"] for one in listing.invoke("A question?")} == {"A"}


def test_metadata_of_all_types_and_chunks_without(tmp_path: Path):
    store = store_at(tmp_path)
    about = {"text": "é, 漢", "whole": 2**53 - 1, "real": 0.1, "true": True, "list": ["a", "b"]}
    store._collection.add(ids=["0", "1"], embeddings=[[1.0] * 4] * 2, documents=["one", None], metadatas=[about, None])
    adapter = adapter_of_store(store)
    assert [(chunk.text, chunk.metadata) for chunk in adapter.chunks() or ()] == [("one", about), ("", {})]
    adapter.write({"1": {"chunk_index": 1}, "0": {"chunk_index": 0}})
    assert [chunk.metadata for chunk in adapter.chunks() or ()] == [{**about, "chunk_index": 0}, {"chunk_index": 1}]
