"""The same chunks in real stores: the same order, metadata that still sorts, and tenants that never mix."""

import uuid

import pytest
from langchain_core.vectorstores import InMemoryVectorStore

from oprag import Rung
from oprag.langchain import OrderPreservingRetriever, stamp_positions

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("default")]

QUESTION = "What happens when an exception is raised inside a with statement?"


def in_memory(documents, embeddings, tmp_path):
    return InMemoryVectorStore.from_documents(documents, embeddings)


def chroma(documents, embeddings, tmp_path):
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    return Chroma.from_documents(
        documents,
        embeddings,
        collection_name=f"oprag-{uuid.uuid4().hex}",
        persist_directory=str(tmp_path),
        client_settings=Settings(anonymized_telemetry=False, is_persistent=True, persist_directory=str(tmp_path)),
        collection_metadata={"hnsw:space": "cosine"},
    )


def qdrant(documents, embeddings, tmp_path):
    from langchain_qdrant import QdrantVectorStore

    return QdrantVectorStore.from_documents(documents, embeddings, path=str(tmp_path), collection_name="oprag")


def tenant_filter(make, tenant):
    if make is in_memory:
        return lambda document: document.metadata["tenant"] == tenant
    if make is chroma:
        return {"tenant": tenant}
    from qdrant_client import models

    match = models.MatchValue(value=tenant)
    return models.Filter(must=[models.FieldCondition(key="metadata.tenant", match=match)])


STORES = [in_memory, chroma, qdrant]


@pytest.mark.parametrize("make", STORES)
@pytest.mark.parametrize("stamped", [True, False], ids=["stamped", "offsets"])
def test_order_and_metadata_survive_the_store(make, stamped, chunks, embeddings, tmp_path):
    documents = stamp_positions(chunks) if stamped else chunks
    store = make(documents, embeddings, tmp_path)
    retriever = OrderPreservingRetriever(vectorstore=store, k=40, token_budget=None)

    found = retriever.invoke(QUESTION)
    assert len(found) == 40
    assert [document.metadata["start_index"] for document in found] == sorted(
        document.metadata["start_index"] for document in store.similarity_search(QUESTION, k=40)
    )
    context = retriever.get_context(QUESTION)
    assert {report.rung for report in context.sources} == {Rung.STAMPED if stamped else Rung.OFFSET}
    assert {report.missing for report in context.sources} == {0}
    assert len(context.passages) < len(context.kept)


@pytest.mark.parametrize("make", STORES)
async def test_sync_and_async_agree(make, chunks, embeddings, tmp_path):
    retriever = OrderPreservingRetriever(vectorstore=make(chunks, embeddings, tmp_path), k=16)
    texts = [document.page_content for document in retriever.invoke(QUESTION)]
    assert [document.page_content for document in await retriever.ainvoke(QUESTION)] == texts


@pytest.mark.parametrize("make", STORES)
def test_tenants_never_mix(make, chunks, embeddings, tmp_path):
    retriever = OrderPreservingRetriever(vectorstore=make(chunks, embeddings, tmp_path), k=30)
    for tenant in ("red", "blue"):
        found = retriever.invoke(QUESTION, filter=tenant_filter(make, tenant))
        assert len(found) == 30
        assert {document.metadata["tenant"] for document in found} == {tenant}


@pytest.mark.parametrize("make", [chroma, qdrant])
def test_mmr_brings_as_many_as_were_asked_for(make, chunks, embeddings, tmp_path):
    retriever = OrderPreservingRetriever(vectorstore=make(chunks, embeddings, tmp_path), k=40, search_type="mmr")
    assert len(retriever.invoke(QUESTION)) == 40
