"""Small sources that are taken whole, from the searched store under the filter of the search."""

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from oprag.langchain import OrderPreservingRetriever
from tests.adapters.langchain.conftest import parts, store_of
from tests.adapters.scripted import QUESTION


def sources_of(documents):
    found: dict[str, list[int]] = {}
    for document in documents:
        found.setdefault(document.metadata["source"], []).append(document.metadata["chunk_index"])
    return found


def test_a_small_source_is_read_from_the_store():
    store = store_of([*parts(3, "note.txt"), *parts(80, "book.txt")])
    retriever = OrderPreservingRetriever(vectorstore=store, k=60, whole_source_tokens=40)
    found = sources_of(retriever.invoke(QUESTION))
    assert found["note.txt"] == [0, 1, 2]
    assert len(found["book.txt"]) < 80
    one = store.similarity_search(QUESTION, k=1)
    size = 3 if one[0].metadata["source"] == "note.txt" else 80
    whole = OrderPreservingRetriever(vectorstore=store, k=1, whole_source_tokens=2_000).invoke(QUESTION)
    assert len(whole) == size


async def test_nothing_that_the_filter_excludes_is_read():
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    mine, theirs = parts(4, "a.txt", tenant="me"), parts(6, "a.txt", tenant="them")
    store.add_documents([*mine, *theirs])

    def only_mine(document: Document) -> bool:
        return bool(document.metadata["tenant"] == "me")

    retriever = OrderPreservingRetriever(
        vectorstore=store, k=1, whole_source_tokens=999, search_kwargs={"filter": only_mine}
    )
    found = await retriever.ainvoke(QUESTION)
    assert [document.metadata["tenant"] for document in found] == ["me"] * 4
