"""Every public method has an async twin that gives the same, and neither calls the other side in secret."""

import inspect
import threading
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever
from tests.adapters.langchain.conftest import parts, store_of
from tests.adapters.scripted import QUESTION

CLASSES = [OrderPreservingRetriever, OrderPreservingCompressor]


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("called from the wrong side")


async def arefuse(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("called from the wrong side")


class AsyncEmbedding(DeterministicFakeEmbedding):
    """Embeds a question in async code alone."""

    async def aembed_query(self, text: str) -> list[float]:
        return super().embed_query(text)

    def embed_query(self, text: str) -> list[float]:
        return refuse()  # type: ignore[no-any-return]


class SyncEmbedding(DeterministicFakeEmbedding):
    """Embeds a question in sync code alone."""

    async def aembed_query(self, text: str) -> list[float]:
        return await arefuse()  # type: ignore[no-any-return]


class SyncAndAsync(InMemoryVectorStore):
    """Says how relevant its scores are."""

    def _select_relevance_score_fn(self) -> Any:
        return lambda cosine: (cosine + 1) / 2


class AsyncStore(SyncAndAsync):
    """Its sync searches must not be called."""

    similarity_search = refuse
    similarity_search_with_score = refuse
    similarity_search_with_relevance_scores = refuse
    max_marginal_relevance_search = refuse


class SyncStore(SyncAndAsync):
    """Its async searches must not be called."""

    asimilarity_search = arefuse
    asimilarity_search_with_score = arefuse
    asimilarity_search_with_relevance_scores = arefuse
    amax_marginal_relevance_search = arefuse


def filled(store: VectorStore) -> VectorStore:
    store.add_documents(parts())
    return store


SEARCHES: list[dict[str, Any]] = [
    {},
    {"k": 4},
    {"search_type": "mmr", "k": 4},
    {"search_type": "similarity_score_threshold", "search_kwargs": {"score_threshold": 0.5}},
    {"stitch": True},
    {"annotate": True, "order": "edges"},
]


def public_methods(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in vars(cls).items()
        if inspect.isfunction(member) and not name.startswith(("_", "model_"))
    }


@pytest.mark.parametrize("cls", CLASSES)
def test_every_public_method_has_its_twin(cls: type):
    methods = public_methods(cls)
    sync = {name for name, member in methods.items() if not inspect.iscoroutinefunction(member)}
    assert sync
    assert {name for name, member in methods.items() if inspect.iscoroutinefunction(member)} == {f"a{n}" for n in sync}
    for name in sync:
        ours, twin = inspect.signature(methods[name]), inspect.signature(methods[f"a{name}"])
        assert ours == twin
        assert methods[f"a{name}"].__doc__


@pytest.mark.parametrize("options", SEARCHES, ids=str)
async def test_an_async_store_is_searched_async_alone(options: dict[str, Any]):
    retriever = OrderPreservingRetriever(vectorstore=filled(AsyncStore(AsyncEmbedding(size=16))), **options)
    assert await retriever.ainvoke(QUESTION)
    assert (await retriever.aget_context(QUESTION)).kept


@pytest.mark.parametrize("options", SEARCHES, ids=str)
def test_a_sync_store_is_searched_sync_alone(options: dict[str, Any]):
    retriever = OrderPreservingRetriever(vectorstore=filled(SyncStore(SyncEmbedding(size=16))), **options)
    assert retriever.invoke(QUESTION)
    assert retriever.get_context(QUESTION).kept


class ThreadNoting(SyncAndAsync):
    """Has sync searches alone, and notes on which thread they run."""

    asimilarity_search = VectorStore.asimilarity_search
    asimilarity_search_with_score = VectorStore.asimilarity_search_with_score
    amax_marginal_relevance_search = VectorStore.amax_marginal_relevance_search
    threads: set[int]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        self.threads.add(threading.get_ident())
        return super().similarity_search_with_score(query, k, **kwargs)

    def max_marginal_relevance_search(self, query: str, *args: Any, **kwargs: Any) -> list[Document]:
        self.threads.add(threading.get_ident())
        return super().max_marginal_relevance_search(query, *args, **kwargs)


@pytest.mark.parametrize("options", SEARCHES, ids=str)
async def test_a_store_without_async_methods_does_not_hold_up_the_event_loop(options: dict[str, Any]):
    store = store_of(parts(), ThreadNoting)
    store.threads = set()
    retriever = OrderPreservingRetriever(vectorstore=store, **options)
    found = await retriever.ainvoke(QUESTION)
    assert len(store.threads) == 1
    assert threading.get_ident() not in store.threads
    assert found == retriever.invoke(QUESTION)
