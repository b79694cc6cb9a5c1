"""The faults of LangChain's EmbeddingsFilter and EmbeddingsRedundantFilter, which must not occur here."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag import VectorCache
from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever, stamp_positions
from tests.adapters.langchain.conftest import giving
from tests.counting import CountingEmbeddings

QUESTION = "north north"


class AsyncEmbeddings(CountingEmbeddings):
    """Says how often each of its two ways was taken."""

    awaited = 0

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.awaited += 1
        return [self._vector(text) for text in texts]

    async def aembed_query(self, text: str) -> list[float]:
        return self._vector(text)


def documents(*texts: str) -> list[Document]:
    """Documents of one source, ranked against its order."""
    whole = [Document(text, id=f"id {number}", metadata={"about": {"shelf": 1}}) for number, text in enumerate(texts)]
    return stamp_positions(whole, source="log.txt")[::-1]


def compressed(given: list[Document], **options: Any) -> list[Document]:
    return OrderPreservingCompressor(embeddings=CountingEmbeddings(), **options).compress_documents(given, QUESTION)


def test_1_a_threshold_alone_keeps_more_than_20():
    given = documents(*(f"north {number}" for number in range(64)))
    assert len(compressed(given, similarity_threshold=-1)) == 64


def test_2_a_threshold_of_one_keeps_an_equal_vector():
    assert len(compressed(documents("north north", "bread"), similarity_threshold=1)) == 1


def test_3_a_second_question_embeds_nothing():
    embeddings = CountingEmbeddings()
    given = documents(*(f"north {number}" for number in range(64)))
    compressor = OrderPreservingCompressor(embeddings=embeddings, similarity_threshold=0, redundancy_threshold=0.99)
    compressor.compress_documents(given, QUESTION)
    assert embeddings.embedded == (1, 64)
    compressor.compress_documents(given, QUESTION)
    assert embeddings.embedded == (1, 64)


def test_4_the_better_ranked_of_two_that_are_redundant_stays():
    best, other, worse = Document("north wind"), Document("bread"), Document("north wind")
    found = compressed([best, other, worse], redundancy_threshold=0.99, order="rank")
    assert found[0] is best
    assert found[1] is other
    assert len(found) == 2


def test_5_a_similarity_threshold_keeps_the_order_of_the_source():
    given = documents("bread north", "north north", "north bread bread")
    assert compressed(given, similarity_threshold=0.1) == given[::-1]


def test_6_documents_keep_their_ids_and_their_class():
    found = compressed(documents("north", "bread"), similarity_threshold=-1)
    assert [document.id for document in found] == ["id 0", "id 1"]
    assert all(type(document) is Document for document in found)


def test_7_metadata_is_untouched_and_a_copy_says_the_cosine():
    given = documents("north north", "bread")
    before = [dict(document.metadata) for document in given]
    compressed(given, similarity_threshold=-1)
    assert [document.metadata for document in given] == before
    (found, _) = compressed(given, similarity_threshold=-1, annotate=True)
    assert found.metadata["oprag"]["similarity"] == pytest.approx(1, abs=1e-6)
    assert [document.metadata for document in given] == before


@pytest.mark.parametrize("option", ["similarity_threshold", "redundancy_threshold"])
def test_8_async_is_async_for_both_thresholds(option):
    embeddings = AsyncEmbeddings()
    compressor = OrderPreservingCompressor(embeddings=embeddings, **{option: 0.5})
    asyncio.run(compressor.acompress_documents(documents("north", "bread"), QUESTION))
    assert embeddings.awaited == 1
    assert embeddings.documents == []


def test_9_vectors_of_one_model_are_never_those_of_another():
    cache = VectorCache()
    given = documents("north wind", "bread")
    one, other = (CountingEmbeddings(dimension=dimension) for dimension in (8, 16))
    for model in (one, other, one):
        retriever = OrderPreservingRetriever(
            retriever=giving(given), embeddings=model, vector_cache=cache, similarity_threshold=-1
        )
        context = retriever.get_context(QUESTION)
        assert {len(chunk.vector) for chunk in context.kept if chunk.vector is not None} == {model.dimension}
    assert len(cache) == 2 * (2 + 1)


def test_10_mixed_lists_are_no_matter():
    # Theirs looks at the state of the first document alone.
    plain = documents("north", "bread")
    annotated = OrderPreservingCompressor(annotate=True).compress_documents(plain, QUESTION)
    assert len(compressed([annotated[0], plain[0]], similarity_threshold=-1)) == 2
