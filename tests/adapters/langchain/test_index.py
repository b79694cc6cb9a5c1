"""`DocumentIndexRetriever`: our own index as a retriever, alone, wrapped, and in a chain."""

import re
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

from oprag import DocumentIndex
from oprag.errors import OptionError, QueryError
from oprag.langchain import DocumentIndexRetriever, OrderPreservingRetriever
from tests.adapters.scripted import both_sides
from tests.helpers import WordEmbedder, prose, word_offsets

SIZE = 20  # words in a chunk
TEXTS = {"first.txt": prose(300, seed=1), "second.txt": prose(200, seed=2)}
# The words of two distant places, so that what is best does not come first.
QUESTION = " ".join([*TEXTS["first.txt"].split()[205:212], *TEXTS["first.txt"].split()[32:36]])


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def index(embedder) -> DocumentIndex:
    return DocumentIndex.from_texts(TEXTS, embedder, word_offsets, chunk_size=SIZE)


@pytest.fixture
def retriever(index) -> DocumentIndexRetriever:
    return DocumentIndexRetriever(index=index)


async def ask(runnable: Any, given: Any, *, is_async: bool, config: Any = None, **options: Any) -> Any:
    if is_async:
        return await runnable.ainvoke(given, config, **options)
    return runnable.invoke(given, config, **options)


def places(documents: Any) -> list[tuple[str, int]]:
    return [(document.metadata["source"], document.metadata["chunk_index"]) for document in documents]


def hits(index: DocumentIndex, k: int) -> list[tuple[str, int]]:
    return [(chunk.metadata["source"], chunk.metadata["chunk_index"]) for chunk in index.search(QUESTION, k)]


# Alone


@both_sides
async def test_documents_come_best_first(index, retriever, is_async: bool):
    found = await ask(retriever, QUESTION, is_async=is_async, k=6)
    assert places(found) == hits(index, 6)
    assert places(found)[0] == ("first.txt", 10)
    scores = [document.metadata["relevance_score"] for document in found]
    assert scores == sorted(scores, reverse=True) == [chunk.score for chunk in index.search(QUESTION, 6)]
    assert all(type(score) is float for score in scores)


@pytest.mark.parametrize("by", ["dense", "hybrid"])
def test_without_an_embedder_only_words_can_be_searched_for(by: Any):
    index = DocumentIndex.from_texts(TEXTS, None, word_offsets, chunk_size=SIZE)
    with pytest.raises(ValidationError, match="this index has no embedder"):
        DocumentIndexRetriever(index=index, search=by)


@pytest.mark.parametrize("by", ["sparse", "", 3])
def test_an_unknown_search_of_the_index_is_refused(index, by: Any):
    with pytest.raises(ValidationError, match="search must be one of dense, bm25, hybrid"):
        DocumentIndexRetriever(index=index, search=by)


# Refusals


@both_sides
@pytest.mark.parametrize("question", ["", " \n\t ", None, 5, ["a"], {"input": "a"}, b"a"])
async def test_a_question_that_cannot_be_searched_for(retriever, is_async: bool, question: Any):
    with pytest.raises(QueryError):
        await ask(retriever, question, is_async=is_async)


@pytest.mark.parametrize("k", [0, -1, True, 2.0, "2", None, [2]])
def test_an_impossible_k_is_refused_at_construction(index, k: Any):
    with pytest.raises(ValidationError, match="k must be an integer >= 1"):
        DocumentIndexRetriever(index=index, k=k)


def wrong_indexes() -> list[Any]:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    # Vector stores and patterns can search too, but not as an index does.
    return [None, "index.oprag", [], object(), store, store.as_retriever(), re.compile("a"), DocumentIndex]


@pytest.mark.parametrize("wrong", wrong_indexes(), ids=lambda wrong: type(wrong).__name__)
def test_what_is_no_index_is_refused_at_construction(wrong: Any):
    with pytest.raises(ValidationError, match=r"index must be an oprag\.DocumentIndex, got"):
        DocumentIndexRetriever(index=wrong)


# Wrapped


def test_a_filter_is_refused_and_not_dropped(retriever):
    with pytest.raises(OptionError, match="does not accept a filter"):
        OrderPreservingRetriever(retriever=retriever).get_context(QUESTION, filter={"source": "first.txt"})
