"""FAISS indexes of all kinds: vectors are read where they are as they were given, and made again where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core import StorageContext, VectorStoreIndex

from oprag.errors import OptionError
from oprag.langchain import OrderPreservingRetriever
from oprag.llama_index import OrderPreservingRetriever as NodeRetriever
from oprag.stores.adapter import adapter_of
from tests.integration.stores.corpus import Corpus
from tests.integration.stores.known import KnownEmbeddings, NodeEmbeddings, node_of

pytestmark = pytest.mark.integration

FOUND = 40


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Training waits for all of its threads, which takes seconds where something else runs."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(threads)


def _factory(description: str) -> Callable[[Corpus], Any]:
    def make(corpus: Corpus) -> Any:
        import faiss

        index = faiss.index_factory(corpus.vectors.shape[1], description)
        index.train(corpus.vectors)
        # All cells are searched, so that what is found does not hang on how they were laid out.
        if hasattr(index, "nprobe"):
            index.nprobe = index.nlist
        return index

    return make


def _with_direct_map(corpus: Corpus) -> Any:
    import faiss

    index = _factory("IVF8,Flat")(corpus)
    index.set_direct_map_type(faiss.DirectMap.Array)
    return index


# Whether the index gives vectors as they were given.
INDEXES: dict[str, tuple[Callable[[Corpus], Any], bool]] = {
    "flat": (_factory("Flat"), True),
    "hnsw": (_factory("HNSW16,Flat"), True),
    "ivf": (_factory("IVF8,Flat"), False),
    "ivf_with_direct_map": (_with_direct_map, True),
    "ivfpq": (_factory("IVF4,PQ8x4"), False),
    "pq": (_factory("PQ8x4"), False),
    "sq8": (_factory("SQ8"), False),
    "lsh": (_factory("LSH"), False),
    "pca": (_factory("PCA32,Flat"), False),
    "refined": (_factory("SQ8,Refine(Flat)"), False),
}


@pytest.mark.parametrize("name", INDEXES)
def test_langchain(name: str, corpus: Corpus):
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    make, exact = INDEXES[name]
    embeddings = KnownEmbeddings(corpus)
    store = FAISS(embeddings, make(corpus), InMemoryDocstore(), {})
    store.add_documents(
        [Document(text, metadata=corpus.metadata(number, "red")) for number, text in enumerate(corpus.texts)]
    )
    check(OrderPreservingRetriever(vectorstore=store, k=FOUND, similarity_threshold=-1), embeddings, corpus, exact)


@pytest.mark.parametrize("name", INDEXES)
def test_llama_index(name: str, corpus: Corpus):
    from llama_index.vector_stores.faiss import FaissVectorStore

    make, exact = INDEXES[name]
    check_nodes(FaissVectorStore(faiss_index=make(corpus)), corpus, exact)


NUMBERED = {"IDMap2,Flat": True, "IDMap,Flat": False, "IDMap2,SQ8": False}


@pytest.mark.parametrize("description", NUMBERED)
def test_llama_index_with_numbers_of_its_own(description: str, corpus: Corpus):
    from llama_index.vector_stores.faiss import FaissMapVectorStore

    index = _factory(description)(corpus)
    check_nodes(FaissMapVectorStore(faiss_index=index), corpus, NUMBERED[description])


def test_a_number_that_two_nodes_have_is_not_believed(corpus: Corpus):
    from llama_index.vector_stores.faiss import FaissMapVectorStore

    store = FaissMapVectorStore(faiss_index=_factory("IDMap2,Flat")(corpus))
    index, embeddings = index_over(store, corpus, corpus.texts[:50])
    index.delete_nodes(["0"], delete_from_docstore=True)
    # The store counts its vectors to number the next one, which the last one is called already.
    index.insert_nodes([node_of(corpus.texts[60], "60", corpus.metadata(60, "red"))])
    embeddings.forget()
    (question, *_) = corpus.questions
    inner = index.as_retriever(similarity_top_k=10)
    context = NodeRetriever(retriever=inner, similarity_threshold=-1).get_context(question)
    for chunk in context.kept:
        assert chunk.similarity == pytest.approx(corpus.cosine(question, chunk.metadata["chunk_index"]), abs=1e-3)
    assert embeddings.embedded == (1, 10)


def check_nodes(store: Any, corpus: Corpus, exact: bool) -> None:
    index, embeddings = index_over(store, corpus, corpus.texts)
    inner = index.as_retriever(similarity_top_k=FOUND)
    check(NodeRetriever(retriever=inner, similarity_threshold=-1), embeddings, corpus, exact)


def index_over(store: Any, corpus: Corpus, texts: list[str]) -> tuple[VectorStoreIndex, KnownEmbeddings]:
    embeddings = KnownEmbeddings(corpus)
    nodes = [node_of(text, str(number), corpus.metadata(number, "red")) for number, text in enumerate(texts)]
    storage = StorageContext.from_defaults(vector_store=store)
    return VectorStoreIndex(nodes, storage_context=storage, embed_model=NodeEmbeddings(embeddings)), embeddings


def check(retriever: Any, embeddings: KnownEmbeddings, corpus: Corpus, exact: bool) -> None:
    question, *_ = corpus.questions
    embeddings.forget()
    context = retriever.get_context(question)
    assert embeddings.embedded == (1, 0 if exact else FOUND)
    assert len(context.kept) == FOUND
    for chunk in context.kept:
        assert chunk.similarity == pytest.approx(corpus.cosine(question, chunk.metadata["chunk_index"]), abs=1e-3)
    embeddings.forget()
    assert retriever.get_context(question) == context
    assert embeddings.embedded == (0, 0)


def test_documents_that_callers_hold_are_not_changed(corpus: Corpus):
    from langchain_community.vectorstores import FAISS

    given = [Document(text, id=str(number), metadata={"source": "a"}) for number, text in enumerate(corpus.texts[:9])]
    store = FAISS.from_documents(given, KnownEmbeddings(corpus), ids=[str(document.id) for document in given])
    found = store.similarity_search(next(iter(corpus.questions)), k=3)
    adapter = adapter_of(store)
    assert adapter is not None
    adapter.write({"3": {"chunk_index": 3}, "5": {"chunk_index": 5}})
    assert all(document.metadata == {"source": "a"} for document in (*given, *found))
    indexes = [chunk.metadata.get("chunk_index") for chunk in adapter.chunks() or ()]
    assert indexes == [None, None, None, 3, None, 5, None, None, None]


def test_a_docstore_that_cannot_replace_a_document(corpus: Corpus):
    from langchain_community.docstore.arbitrary_fn import DocstoreFn
    from langchain_community.vectorstores import FAISS

    store = FAISS.from_texts(corpus.texts[:3], KnownEmbeddings(corpus), ids=["0", "1", "2"])
    store.docstore = DocstoreFn(store.docstore.search)
    adapter = adapter_of(store)
    assert adapter is not None
    assert [chunk.text for chunk in adapter.chunks() or ()] == corpus.texts[:3]
    assert [chunk.text for chunk in adapter.chunks("source", ["a"]) or ()] == []
    assert set(adapter.vectors(["0", "2", "9"])) == {"0", "2"}
    with pytest.raises(OptionError, match="with an InMemoryDocstore only, got DocstoreFn"):
        adapter.write({"0": {"chunk_index": 0}})


def test_a_listing_shows_what_is_stored_now(corpus: Corpus):
    from langchain_community.vectorstores import FAISS

    given = [Document(text, metadata={"source": 7}) for text in corpus.texts[:6]]
    store = FAISS.from_documents(given, KnownEmbeddings(corpus), ids=list("abcdef"))
    adapter = adapter_of(store)
    assert adapter is not None

    def listed(source: str) -> str:
        return "".join(chunk.key for chunk in adapter.chunks("source", [source]) or ())

    assert listed("7") == "abcdef"
    store.delete(["b"])
    documents = store.docstore._dict
    documents["d"].metadata["source"] = "7.pdf"
    missing = documents.pop("e")
    assert (listed("7"), listed("7.pdf")) == ("acf", "d")
    documents["e"] = missing
    assert (listed("7"), adapter.in_sequence({"f", "e", "b"})) == ("acef", ["e", "f"])
