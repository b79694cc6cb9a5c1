"""A step directly after another one knows the ranks and the order of what it is given."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, TextNode

from oprag import langchain, llama_index
from tests.adapters.langchain.conftest import giving, store_of
from tests.adapters.llama_index.conftest import HashedWords
from tests.adapters.scripted import QUESTION

SIZE = len("Sentence 00. ")


def sentence(*numbers: int) -> str:
    return "".join(f"Sentence {number:02d}. " for number in numbers)


# The sentences that are found, best first; 3 and 4 touch, and so do 11 and 12.
FOUND = (20, 3, 4, 9, 12, 11, 0)
PASSAGES = [sentence(0), sentence(3, 4), sentence(9), sentence(11, 12), sentence(20)]
METADATA: dict[str, Callable[[int], dict[str, Any]]] = {
    "offset": lambda number: {"start_index": number * SIZE},
    "number": lambda number: {"chunk_index": number, "chunk_numbering": "one call"},
    "page and offset": lambda number: {"page": number // 5, "start_index": number % 5 * SIZE},
}

Found = Sequence[tuple[str, dict[str, Any]]]


def documents_twice(found: Found, first: dict[str, Any], second: dict[str, Any]) -> tuple[list[str], list[str]]:
    given: list[Document] = [Document(text, metadata=metadata) for text, metadata in found]
    once = langchain.OrderPreservingCompressor(**first).compress_documents(given, QUESTION)
    twice = langchain.OrderPreservingCompressor(**second).compress_documents(once, QUESTION)
    return [one.page_content for one in once], [one.page_content for one in twice]


def nodes_twice(found: Found, first: dict[str, Any], second: dict[str, Any]) -> tuple[list[str], list[str]]:
    given = [NodeWithScore(node=TextNode(text=text, metadata=metadata)) for text, metadata in found]
    once = llama_index.OrderPreservingPostprocessor(**first).postprocess_nodes(given)
    twice = llama_index.OrderPreservingPostprocessor(**second).postprocess_nodes(once)
    return [one.text for one in once], [one.text for one in twice]


each_twice = pytest.mark.parametrize("twice", [documents_twice, nodes_twice], ids=["langchain", "llama-index"])


@each_twice
@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
@pytest.mark.parametrize("second", [{}, {"stitch": True}], ids=str)
def test_passages_keep_their_order(twice: Any, metadata: Callable[[int], dict[str, Any]], second: dict[str, Any]):
    found = [(sentence(number), {"source": "book.txt", **metadata(number)}) for number in FOUND]
    assert twice(found, {"stitch": True, "separator": ""}, second) == (PASSAGES, PASSAGES)


@each_twice
@pytest.mark.parametrize("stitch", [False, True])
def test_a_second_cut_keeps_the_best(twice: Any, stitch: bool):
    found = [(sentence(number), {"source": "book.txt", **METADATA["number"](number)}) for number in FOUND]
    best = [PASSAGES[1], PASSAGES[4]] if stitch else [sentence(3), sentence(20)]
    assert twice(found, {"stitch": stitch, "separator": ""}, {"k": 2})[1] == best


@each_twice
def test_sources_keep_the_names_that_a_function_gave_them(twice: Any):
    found = [(sentence(number), {"title": "Book", "chunk_index": number}) for number in FOUND]
    once, again = twice(found, {"source_key": lambda chunk: chunk.metadata["title"]}, {})
    assert again == once == [sentence(number) for number in sorted(FOUND)]


@pytest.mark.parametrize("stitch", [False, True])
def test_scores_of_a_search_are_not_lost(stitch: bool):
    scored = [("a", 0, 0.9), ("b", 0, 0.8), ("b", 9, 0.7), ("a", 9, 0.1)]
    found = [
        (Document(sentence(number), metadata={"source": name, "chunk_index": number}), score)
        for name, number, score in scored
    ]
    documents = langchain.OrderPreservingRetriever(retriever=giving(found), stitch=stitch).invoke(QUESTION)
    by_sum = langchain.OrderPreservingCompressor(source_ranking="score_sum")
    # By the sum of 1 / (1 + rank), it would be a.
    assert [one.metadata["source"] for one in by_sum.compress_documents(documents, QUESTION)] == list("bbaa")


@pytest.mark.parametrize("stitch", [False, True])
def test_the_order_of_a_store_stays(stitch: bool):
    options: dict[str, Any] = {"on_uncertain": "ignore", "stitch": stitch}
    texts = [f"Sentence {number} is about {number * 7}." for number in range(30)]
    store = store_of([Document(text, metadata={"source": "book.txt"}) for text in texts])
    documents = langchain.OrderPreservingRetriever(vectorstore=store, k=12, **options).invoke(QUESTION)
    steps = langchain.OrderPreservingCompressor(on_uncertain="ignore")
    assert steps.compress_documents(documents, QUESTION) == documents
    assert [at for one in documents for at in range(30) if texts[at] in one.page_content] == sorted(
        texts.index(one.page_content) for one in store.similarity_search(QUESTION, k=12)
    )

    index = VectorStoreIndex(
        [TextNode(text=text, metadata={"file_name": "book.txt"}) for text in texts], embed_model=HashedWords()
    )
    retriever = index.as_retriever(similarity_top_k=12)
    nodes = llama_index.OrderPreservingRetriever(retriever=retriever, **options).retrieve(QUESTION)
    context = llama_index.OrderPreservingPostprocessor(on_uncertain="ignore").get_context(nodes)
    assert [chunk.text for chunk in context.kept] == [one.text for one in nodes]
    assert context.certainty == "assumed"
