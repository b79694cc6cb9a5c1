"""Options are checked when an engine is made; retrievers, postprocessors and embeddings of every kind."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingRetriever
from tests.adapters.llama_index.conftest import HashedWords, ListRetriever, numbers
from tests.adapters.llama_index.engine.conftest import Model, engine_of, every_way, full_engine, parts, run
from tests.adapters.scripted import QUESTION, by_step


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"streaming": "yes"}, "streaming"),
        ({"embed_model": "small"}, "embedding model"),
        ({"retriever": "x"}, "BaseRetriever, got str"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_when_the_engine_is_made(options: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        engine_of(Model(), **options)


@pytest.mark.parametrize("postprocessors", ["x", [3], [LongContextReorder], SimilarityPostprocessor()])
def test_what_is_no_postprocessor_is_refused(postprocessors: Any):
    with pytest.raises(ValueError, match="node_postprocessors"):
        engine_of(Model(), node_postprocessors=postprocessors)


class Half(BaseNodePostprocessor):
    """Keeps the first half, best first, and remembers how the nodes stood and what was asked."""

    seen: list[list[int]] = []  # noqa: RUF012 - pydantic copies it
    asked: list[str] = []  # noqa: RUF012

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self.seen.append(numbers(nodes))
        assert query_bundle is not None
        self.asked.append(query_bundle.query_str)
        return nodes[: len(nodes) // 2]


class Backwards(BaseNodePostprocessor):
    """Async alone."""

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        raise AssertionError("sync call inside of an async one")

    async def _apostprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        return nodes[::-1]


class OddFirst(BaseNodePostprocessor):
    """A reranker."""

    def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
        return sorted(nodes, key=lambda scored: numbers([scored])[0] % 2 == 0)


@every_way
async def test_postprocessors_run_before_the_nodes_are_ordered(way: str):
    half, model = Half(seen=[], asked=[]), Model()
    _, response = await run(engine_of(model, 8, node_postprocessors=[half]), way)
    assert half.seen == [[7, 6, 5, 4, 3, 2, 1, 0]]
    assert half.asked == [QUESTION]
    assert numbers(response.source_nodes) == [4, 5, 6, 7]


@every_way
async def test_postprocessors_run_one_after_the_other_and_before_the_cut(way: str):
    cutoff = SimilarityPostprocessor(similarity_cutoff=0.2)
    engine = engine_of(Model(), 8, node_postprocessors=[cutoff, OddFirst(), Half(seen=[], asked=[])], k=2)
    _, response = await run(engine, way)
    # Five are above 0.2 (1, 1/2 ... 1/5): 7 6 5 4 3, reranked 7 5 3 6 4, of which the first two are kept.
    assert numbers(response.source_nodes) == [5, 7]


@pytest.mark.parametrize("way", ["aquery", "astream"])
async def test_async_postprocessors_run_async(way: str):
    _, response = await run(engine_of(Model(), 4, node_postprocessors=[Backwards()], k=2), way)
    assert numbers(response.source_nodes) == [0, 1]


@every_way
async def test_postprocessors_see_every_question(way: str):
    half = Half(seen=[], asked=[])
    await run(full_engine(Model(reply=by_step), "step_down", node_postprocessors=[half]), way)
    assert len(half.asked) == 3
    assert half.asked[0] == QUESTION


def test_postprocessors_that_order_are_refused():
    with pytest.raises(ValueError, match=r"remove OrderPreservingPostprocessor .* pass its options to the engine"):
        engine_of(Model(), node_postprocessors=[OddFirst(), OrderPreservingPostprocessor()])
    with pytest.raises(ValueError, match=r'remove LongContextReorder from .* pass order="edges" to the engine'):
        engine_of(Model(), node_postprocessors=[LongContextReorder()])


def test_a_retriever_that_fuses_ordered_nodes_is_refused():
    ours = OrderPreservingRetriever(retriever=ListRetriever(parts(3)))
    with pytest.raises(ValueError, match=r"another order \(OrderPreservingRetriever\).* last and only once"):
        engine_of(Model(), retriever=QueryFusionRetriever([ours], llm=Model()))


@every_way
async def test_postprocessors_get_what_an_order_preserving_retriever_would_order(way: str):
    half = Half(seen=[], asked=[])
    ours = OrderPreservingRetriever(retriever=ListRetriever(parts(8)), k=3)
    _, response = await run(engine_of(Model(), retriever=ours, node_postprocessors=[half]), way)
    assert half.seen == [[7, 6, 5, 4, 3, 2, 1, 0]]
    assert numbers(response.source_nodes) == [5, 6, 7]


@pytest.mark.parametrize("options", [{"k": 3}, {"order": "rank"}, {"header": "x"}, {"stitch": True}], ids=str)
def test_options_beside_those_of_an_order_preserving_retriever_are_refused(options: dict[str, Any]):
    ours = OrderPreservingRetriever(retriever=ListRetriever(parts(3)))
    with pytest.raises(ValueError, match=f"set {next(iter(options))} there"):
        engine_of(Model(), retriever=ours, **options)


class AsyncRetriever(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise AssertionError("sync call inside of an async one")

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return parts(3)


@pytest.mark.parametrize("way", ["aquery", "astream"])
@pytest.mark.parametrize("wrapped", [False, True])
async def test_async_retrievers_are_asked_async(way: str, wrapped: bool):
    retriever: BaseRetriever = AsyncRetriever()
    if wrapped:
        retriever = OrderPreservingRetriever(retriever=retriever)
    _, response = await run(engine_of(Model(), retriever=retriever), way)
    assert numbers(response.source_nodes) == [0, 1, 2]


class AsyncWords(HashedWords):
    def _get_query_embedding(self, query: str) -> list[float]:
        raise AssertionError("sync call inside of an async one")

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("sync call inside of an async one")

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return list(map(self._get_text_embedding, texts))


def near_and_far(prompt: str) -> str:
    if prompt.startswith("VARIANTS"):
        return "Who sailed?\nWho cooked?\nWho slept?"
    if prompt.startswith("RERANK"):
        return f"{'happened on the voyage' if 'Part 2' in prompt else 'Nothing else.'}\nConfidence: 5"
    if prompt.endswith("Who cooked?"):
        return "What happened on the voyage?"
    return "Something else entirely." if prompt.startswith("ANSWER") else "The last word."


@pytest.mark.parametrize("way", ["aquery", "astream"])
async def test_embedding_models_are_asked_async(way: str):
    engine = engine_of(Model(reply=near_and_far), method="map_rerank", rank_by="cosine", embed_model=AsyncWords())
    assert (await run(engine, way))[0] == "happened on the voyage"
