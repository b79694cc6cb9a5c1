"""The sequence in which real stores received the chunks of a source, after all that happens to a store."""

from __future__ import annotations

import asyncio
import random
import uuid
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from oprag import PositionKind
from oprag.langchain import OrderPreservingRetriever
from tests.integration.stores.checks import in_order, texts_of, told_by

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

EMBEDDINGS = DeterministicFakeEmbedding(size=32)
QUESTION = "Where does the river end?"
STORES = ("chroma", "chroma on disk", "faiss", "lancedb")


def store_of(name: str, folder: Path) -> Any:
    """An empty store."""
    if name.startswith("chroma"):
        import chromadb
        from chromadb.config import Settings
        from langchain_chroma import Chroma

        settings = Settings(anonymized_telemetry=False)
        on_disk = name.endswith("disk")
        client = chromadb.PersistentClient(str(folder), settings) if on_disk else chromadb.EphemeralClient(settings)
        return Chroma(f"c{uuid.uuid4().hex}", EMBEDDINGS, client=client)
    if name == "lancedb":
        import lancedb
        from langchain_community.vectorstores import LanceDB

        return LanceDB(connection=lancedb.connect(str(folder)), embedding=EMBEDDINGS, mode="append")
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    return FAISS(EMBEDDINGS, faiss.IndexFlatL2(32), InMemoryDocstore(), {})


def windows(source: str, seed: int, tenant: str = "red", count: int = 60) -> list[Document]:
    """Chunks that overlap, without a position."""
    return [Document(text, metadata={"source": source, "tenant": tenant}) for text in texts_of(seed, count)]


def add(store: Any, documents: list[Document], batch: int = 25) -> list[str]:
    ids = [str(uuid.uuid4()) for _ in documents]
    for start in range(0, len(documents), batch):
        store.add_documents(documents[start : start + batch], ids=ids[start : start + batch])
    return ids


def delete(store: Any, ids: list[str], documents: list[Document]) -> None:
    """Delete documents; those of LanceDB have no ids."""
    if type(store).__name__ != "LanceDB":
        store.delete(ids)
        return
    texts = ", ".join(f"'{document.page_content}'" for document in documents)
    store.get_table().delete(f"text IN ({texts})")


def asked(retriever: OrderPreservingRetriever) -> tuple[list[Document], list[str]]:
    """The documents for a question, and the warnings about it."""
    return told_by(retriever.invoke, QUESTION)


def follow(found: list[Document], chunks: list[Document], least: int = 8) -> bool:
    return in_order([one.page_content for one in found], [one.page_content for one in chunks], least)


@pytest.mark.parametrize("name", STORES)
def test_batches_deletions_and_sources_in_turn(name: str, tmp_path: Path):
    store = store_of(name, tmp_path)
    first, second = windows("a's.txt", 1), windows("b.txt", 2)
    mixed = [chunk for pair in zip(first, second, strict=True) for chunk in pair]
    ids = add(store, mixed)
    retriever = OrderPreservingRetriever(vectorstore=store, k=50)
    found, told = asked(retriever)
    assert follow(found, first)
    assert follow(found, second)
    assert told == []
    assert asyncio.run(retriever.ainvoke(QUESTION)) == found
    assert {source.kind for source in retriever.get_context(QUESTION).sources} == {PositionKind.STORE}
    gone = random.Random(3).sample(range(len(mixed)), 20)
    delete(store, [ids[number] for number in gone], [mixed[number] for number in gone])
    # What the deleted chunks confirmed is remembered; for others some neighbors do not overlap any more.
    for one, warned in ((retriever, []), (OrderPreservingRetriever(vectorstore=store, k=50), [True])):
        found, told = asked(one)
        assert follow(found, first)
        assert follow(found, second)
        assert ["in the order in which they were added to the store" in message for message in told] == warned


@pytest.mark.parametrize("name", STORES)
def test_tenants_are_kept_apart(name: str, tmp_path: Path):
    store = store_of(name, tmp_path)
    mine, others = windows("report.txt", 1), windows("report.txt", 2, tenant="blue")
    add(store, [chunk for pair in zip(others, mine, strict=True) for chunk in pair])
    only: Any = "metadata.tenant = 'red'" if name == "lancedb" else {"tenant": "red"}
    search = {"filter": only, **({"prefilter": True} if name == "lancedb" else {}), "fetch_k": 120}
    if not name.startswith("faiss"):
        del search["fetch_k"]
    found, _ = asked(OrderPreservingRetriever(vectorstore=store, k=40, search_kwargs=search))
    assert follow(found, mine, least=40)


@pytest.mark.parametrize("name", ["chroma", "chroma on disk"])
def test_an_update_keeps_its_place(name: str, tmp_path: Path):
    store = store_of(name, tmp_path)
    chunks = windows("a.txt", 1)
    ids = add(store, chunks)
    text = chunks[20].page_content
    chunks[20] = Document(f"{text[:90]} and so on {text[110:]}", metadata=chunks[20].metadata)
    store.update_documents([ids[20]], [chunks[20]])
    found, _ = asked(OrderPreservingRetriever(vectorstore=store, k=len(chunks)))
    assert [one.page_content for one in found] == [one.page_content for one in chunks]
