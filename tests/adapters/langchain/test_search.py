"""What reaches the vector store, and what comes back from it."""

import re
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from oprag.errors import ChunkError, OptionError
from oprag.langchain import OrderPreservingRetriever
from tests.adapters.langchain.conftest import numbers_of, parts, store_of
from tests.adapters.langchain.test_async_parity import SyncAndAsync
from tests.adapters.scripted import QUESTION


class RecordingStore(InMemoryVectorStore):
    """Remembers how it was searched; takes any keyword, as stores over a network do."""

    def __init__(self, embedding: Any) -> None:
        super().__init__(embedding)
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        self.calls.append(("similarity", {"k": k, **kwargs}))
        return super().similarity_search_with_score(query, k)

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        self.calls.append(("similarity", {"k": k, **kwargs}))
        return await super().asimilarity_search_with_score(query, k)

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        self.calls.append(("mmr", {"k": k, "fetch_k": fetch_k, "lambda_mult": lambda_mult, **kwargs}))
        return super().max_marginal_relevance_search(query, k, fetch_k, lambda_mult)

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        self.calls.append(("mmr", {"k": k, "fetch_k": fetch_k, "lambda_mult": lambda_mult, **kwargs}))
        return await super().amax_marginal_relevance_search(query, k, fetch_k, lambda_mult)


class PlainStore(VectorStore):
    """As little as a store can have: its own order, no scores, no async methods."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return self.documents[:k]

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any) -> "PlainStore":
        raise NotImplementedError


class ScorelessStore(PlainStore):
    """Has the method, but says that it cannot do it."""

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        raise NotImplementedError("no scores here")


class SilentStore(PlainStore):
    """Gives documents where it should give them with scores, as LanceDB does in a search by words."""

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        return self.documents[:k]


@pytest.mark.parametrize("options", [{}, {"namespace": "n", "filter": {"a": [1, {"b": 2}]}, "ef_search": 7}])
@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
async def test_search_kwargs_reach_the_store_unchanged(search_type: Any, options: dict[str, Any]):
    store = store_of(parts(), RecordingStore)
    given = dict(options)
    retriever = OrderPreservingRetriever(vectorstore=store, search_type=search_type, search_kwargs=given, k=3)
    retriever.invoke(QUESTION)
    await retriever.ainvoke(QUESTION)
    retriever.get_context(QUESTION)
    await retriever.aget_context(QUESTION)
    assert [method for method, _ in store.calls] == [search_type] * 4
    for _, received in store.calls:
        assert received["k"] == 3
        assert {name: received[name] for name in options} == options
        assert set(received) == {"k", *options, *({"fetch_k", "lambda_mult"} if search_type == "mmr" else ())}
        assert all(received[name] is value for name, value in options.items())
    assert given == options


async def test_the_filter_of_a_call_reaches_the_store_unchanged():
    store = store_of(parts(), RecordingStore)
    retriever = OrderPreservingRetriever(vectorstore=store, k=3, search_kwargs={"namespace": "n"})
    where = {"tenant": {"$eq": "A"}}
    retriever.invoke(QUESTION, None, filter=where)
    await retriever.ainvoke(QUESTION, None, filter=where)
    retriever.get_context(QUESTION, filter=where)
    await retriever.aget_context(QUESTION, filter=where)
    retriever.batch([QUESTION], None, filter=where)
    assert store.calls == [("similarity", {"k": 3, "namespace": "n", "filter": where})] * 5
    assert all(received["filter"] is where for _, received in store.calls)


def test_an_empty_filter_reaches_the_store_too():
    store = store_of(parts(), RecordingStore)
    OrderPreservingRetriever(vectorstore=store, k=3).invoke(QUESTION, None, filter={})
    assert store.calls == [("similarity", {"k": 3, "filter": {}})]


def test_k_inside_search_kwargs_is_the_k_of_the_retriever(store):
    given = {"k": 3}
    retriever = OrderPreservingRetriever(vectorstore=store, search_kwargs=given)
    assert retriever.k == 3
    assert len(retriever.invoke(QUESTION)) == 3
    assert len(retriever.invoke(QUESTION, None, k=5)) == 5
    assert given == {"k": 3}


def test_k_put_into_search_kwargs_afterwards_does_not_replace_k_in_silence(store):
    """Pydantic does not check what is assigned, so the search refuses it."""
    retriever = OrderPreservingRetriever(vectorstore=store, k=3)
    retriever.search_kwargs["k"] = 1
    with pytest.raises(OptionError, match="k is given twice"):
        retriever.invoke(QUESTION)


async def test_a_threshold_search_leaves_out_what_the_store_scores_lower():
    store = store_of(parts(), SyncAndAsync)
    ranked = store.similarity_search_with_relevance_scores(QUESTION, k=3)
    above = {"score_threshold": ranked[1][1]}
    retriever = OrderPreservingRetriever(
        vectorstore=store, search_type="similarity_score_threshold", search_kwargs=above
    )
    expected = sorted(numbers_of([document for document, _ in ranked[:2]]))
    assert numbers_of(retriever.invoke(QUESTION)) == numbers_of(await retriever.ainvoke(QUESTION)) == expected


@pytest.mark.parametrize("kind", [PlainStore, ScorelessStore, SilentStore])
async def test_a_store_without_scores_has_ranks_alone(kind: type[PlainStore]):
    retriever = OrderPreservingRetriever(vectorstore=kind(parts()[::-1]), k=4)
    assert numbers_of(retriever.invoke(QUESTION)) == numbers_of(await retriever.ainvoke(QUESTION)) == [8, 9, 10, 11]
    context = retriever.get_context(QUESTION)
    assert [(chunk.rank, chunk.score) for chunk in context.kept] == [(3, None), (2, None), (1, None), (0, None)]


class LooseStore(PlainStore):
    """Returns any result from every search."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        return self.found

    def max_marginal_relevance_search(self, *args: Any, **kwargs: Any) -> Any:
        return self.found


one_document = Document("text")
every_search = pytest.mark.parametrize("search_type", ["similarity", "mmr"])


@every_search
@pytest.mark.parametrize("found", [None, "text", {"documents": [one_document]}, iter([(one_document, 0.5)]), 5])
async def test_a_search_that_returns_no_list_is_named(search_type: Any, found: Any):
    retriever = OrderPreservingRetriever(vectorstore=LooseStore(found), search_type=search_type)
    message = f"LooseStore must return a list of documents, got {type(found).__name__}"
    with pytest.raises(ChunkError, match=message) as caught:
        retriever.invoke(QUESTION)
    assert caught.value.value is found
    with pytest.raises(ChunkError, match=message):
        await retriever.ainvoke(QUESTION)


@every_search
@pytest.mark.parametrize(
    "item",
    # Of several results, only the first would be kept.
    [
        None,
        "text",
        (),
        ("text", 0.5),
        (0.5, one_document),
        [one_document] * 2,
        [one_document] * 3,
        [(one_document, 0.5)],
    ],
    ids=repr,
)
def test_an_item_that_is_not_a_document_is_named(search_type: Any, item: Any):
    retriever = OrderPreservingRetriever(vectorstore=LooseStore([one_document, item]), search_type=search_type)
    got = f"got {type(item).__name__} at index 1"
    message = f"LooseStore must return documents, alone or as (document, score), {got}"
    with pytest.raises(ChunkError, match=re.escape(message)) as caught:
        retriever.invoke(QUESTION)
    assert caught.value.value is item
