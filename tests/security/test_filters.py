"""A search with a filter shows what passes it, and nothing else: not as a neighbour, and not as a whole source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStoreRetriever
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.indices.vector_store.retrievers.retriever import VectorIndexRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from pydantic import ValidationError

from oprag import DocumentIndex
from oprag.errors import OptionError
from oprag.langchain import (
    DocumentIndexRetriever,
    OrderPreservingChain,
    OrderPreservingCompressor,
    OrderPreservingRetriever,
    create_reading_tools,
)
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingQueryEngine
from oprag.llama_index import OrderPreservingRetriever as OrderPreservingNodeRetriever
from tests.adapters.langchain.conftest import RecordingChatModel, parts, store_of
from tests.adapters.scripted import QUESTION
from tests.helpers import WordEmbedder

# Neighbours of LlamaIndex nodes.

# One document whose chunks are not all for everyone; the last one says nothing of it.
ACL = ["public", "public", "confidential", "public", None]
PUBLIC = MetadataFilter(key="acl", value="public")


def nodes() -> list[TextNode]:
    made = [
        TextNode(
            id_=f"node {number}",
            text=f"Text {number}: {acl}.",
            metadata={"file_name": "plan.txt", "chunk_index": number} | ({"acl": acl} if acl else {}),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="plan")},
        )
        for number, acl in enumerate(ACL)
    ]
    for before, after in pairwise(made):
        before.relationships[NodeRelationship.NEXT] = after.as_related_node_info()
        after.relationships[NodeRelationship.PREVIOUS] = before.as_related_node_info()
    return made


@pytest.fixture
def index() -> VectorStoreIndex:
    return VectorStoreIndex(nodes(), embed_model=MockEmbedding(embed_dim=4))


def filters(*conditions: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(conditions), condition=condition)


def numbers(found: Iterable[NodeWithScore]) -> set[int]:
    return {one.node.metadata["chunk_index"] for one in found}


async def seen(retriever: Any, **options: Any) -> set[int]:
    """The nodes that reach a reader by any way, sync or async, through a retriever or a query engine."""
    ours = OrderPreservingNodeRetriever(retriever=retriever, **options)
    found = numbers(ours.retrieve(QUESTION)) | numbers(await ours.aretrieve(QUESTION))
    for engine in (
        OrderPreservingQueryEngine(llm=MockLLM(), retriever=ours),
        OrderPreservingQueryEngine(llm=MockLLM(), retriever=retriever, **options),
    ):
        for response in (engine.query(QUESTION), await engine.aquery(QUESTION)):
            found |= numbers(response.source_nodes)
    return found


ONLY = [
    filters(PUBLIC),
    filters(MetadataFilter(key="acl", value=["public"], operator=FilterOperator.IN)),
    filters(MetadataFilter(key="acl", value="confidential", operator=FilterOperator.NE)),
    filters(MetadataFilter(key="acl", value="confidential"), condition=FilterCondition.NOT),
    filters(MetadataFilter(key="acl", value="public", operator=FilterOperator.TEXT_MATCH)),
]


@pytest.mark.parametrize("only", ONLY)
async def test_neighbours_are_among_what_the_search_can_find(index: Any, only):
    able = numbers(index.as_retriever(similarity_top_k=5, filters=only).retrieve(QUESTION))
    assert 2 not in able
    for options in ({}, {"index": index}, {"read_neighbors": index}):
        assert await seen(index.as_retriever(similarity_top_k=1, filters=only), neighbors=4, **options) <= able


@pytest.mark.parametrize("only", ONLY)
async def test_neighbours_in_a_docstore_pass_the_filter(index: Any, only):
    for number, run in ((0, {0, 1}), (1, {0, 1}), (3, {3})):
        retriever = index.as_retriever(similarity_top_k=5, filters=only)
        retriever._vector_store = FindingOne(nodes()[number])
        assert await seen(retriever, neighbors=4, read_neighbors=index.docstore) == run


class FindingOne:
    """A vector store whose search gives one node."""

    stores_text = True
    is_embedding_query = True

    def __init__(self, node: TextNode) -> None:
        self._node = node

    def query(self, query: Any, **kwargs: Any) -> Any:
        from llama_index.core.vector_stores import VectorStoreQueryResult

        return VectorStoreQueryResult(nodes=[self._node], similarities=[1.0], ids=[self._node.node_id])

    async def aquery(self, query: Any, **kwargs: Any) -> Any:
        return self.query(query)


async def test_neighbours_pass_the_filter_of_a_real_store(index):
    retriever = index.as_retriever(similarity_top_k=5, filters=filters(PUBLIC))
    assert await seen(retriever, neighbors=1) == {0, 1, 3}
    retriever = VectorIndexRetriever(index, similarity_top_k=5, node_ids=["node 1"])
    assert await seen(retriever, neighbors=1) == {1}


async def test_a_filter_that_is_changed_later_counts(index):
    retriever = index.as_retriever(similarity_top_k=1)
    ours = OrderPreservingNodeRetriever(retriever=retriever, neighbors=4)
    assert numbers(ours.retrieve(QUESTION)) == {0, 1, 2, 3, 4}
    retriever._filters = filters(PUBLIC)
    assert numbers(ours.retrieve(QUESTION)) <= {0, 1, 3}


@pytest.mark.parametrize("only", [{"doc_ids": ["another"]}, {"node_ids": ["node 0", "node 1"]}])
async def test_neighbours_are_among_the_nodes_that_are_searched(index, only: dict[str, Any]):
    retriever: Any = VectorIndexRetriever(index, **only)
    retriever._vector_store = FindingOne(nodes()[1])
    assert await seen(retriever, neighbors=4) <= {0, 1}


class Own(VectorIndexRetriever):
    """May search as it likes."""


def test_where_the_filter_cannot_be_seen_neighbours_are_refused(index):
    behind = {"vector_store_kwargs": {"where": {"acl": "public"}}}
    fusion = QueryFusionRetriever(
        [index.as_retriever(filters=filters(PUBLIC))], llm=MockLLM(), num_queries=1, use_async=False
    )
    for retriever in (index.as_retriever(**behind), Own(index), fusion):
        for make in (
            OrderPreservingNodeRetriever,
            lambda **options: OrderPreservingQueryEngine(llm=MockLLM(), **options),
        ):
            with pytest.raises(ValidationError, match="requires read_neighbors; pass read_neighbors="):
                make(retriever=retriever, index=index, neighbors=1)
            make(retriever=retriever, read_neighbors=index.docstore, neighbors=1)
    # A postprocessor is given nodes, and no filter.
    with pytest.raises(ValidationError, match="requires read_neighbors; pass read_neighbors="):
        OrderPreservingPostprocessor(index=index, neighbors=1)


def test_a_filter_that_cannot_be_applied_to_a_docstore_is_refused(index):
    unknown = filters(MetadataFilter(key="acl", value="public"))
    unknown.filters[0].operator = "~"  # type: ignore[union-attr]
    for only in (unknown, filters(filters(PUBLIC), filters(PUBLIC, condition=FilterCondition.OR))):
        retriever = index.as_retriever(filters=only)
        retriever._vector_store = FindingOne(nodes()[1])
        ours = OrderPreservingNodeRetriever(retriever=retriever, neighbors=1, read_neighbors=index.docstore)
        with pytest.raises(OptionError, match=r"cannot be applied to neighbors.*set read_neighbors="):
            ours.retrieve(QUESTION)


# Neighbours of LangChain documents.


def only(tenant: str) -> Callable[[Document], bool]:
    return lambda document: document.metadata["tenant"] == tenant


class Reader:
    """Reads neighbours and whole sources, and notes the filter that it is told."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def near(self, document: Document, number: int, filter: Any) -> list[Document]:
        self.asked.append(filter)
        return [document]

    def whole(self, name: str, *, filter: Any) -> str:
        self.asked.append(filter)
        return "A text."


@pytest.fixture
def both() -> Any:
    """The same source of two tenants; a search without a filter finds the copies of both."""
    return store_of(parts(source="plan.txt", tenant="A") + parts(source="plan.txt", tenant="B"))


def chain_of(**options: Any) -> OrderPreservingChain:
    return OrderPreservingChain(llm=RecordingChatModel(), **options)


class OfTenant(BaseRetriever):
    """An application's own way to leave out what a tenant may not see."""

    base_retriever: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [one for one in self.base_retriever.invoke(query) if one.metadata["tenant"] == "A"]


class OwnIndexRetriever(DocumentIndexRetriever):
    """The same in a subclass."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any, k: int | None = None) -> list[Document]:
        found = super()._get_relevant_documents(query, run_manager=run_manager, k=k)
        return [one for one in found if one.metadata["tenant"] == "A"]


def test_a_retriever_that_leaves_documents_out_has_no_neighbours_of_its_own():
    texts = ["Of A.", "Of B."]
    metadata = [{"source": "s", "chunk_index": number, "tenant": "AB"[number]} for number in range(2)]
    whole = DocumentIndex(texts, metadata, WordEmbedder().embed_documents(texts), WordEmbedder())
    of_index = DocumentIndexRetriever(index=whole)
    by_rank = OrderPreservingCompressor(order="rank")
    behind = ContextualCompressionRetriever(base_compressor=by_rank, base_retriever=OfTenant(base_retriever=of_index))
    for retriever in (OfTenant(base_retriever=of_index), OwnIndexRetriever(index=whole), behind):
        with pytest.raises(ValidationError, match="requires read_neighbors; pass read_neighbors="):
            OrderPreservingRetriever(retriever=retriever, neighbors=1)
        with pytest.raises(ValidationError, match="requires read_neighbors; pass read_neighbors="):
            chain_of(retriever=retriever, neighbors=1)


@pytest.mark.parametrize("of_construction", [True, False])
async def test_a_function_that_reads_neighbours_is_told_the_filter(of_construction):
    reader, wanted = Reader(), only("A")
    store = store_of(parts(source="plan.txt", tenant="A"))
    search: Any = {"search_kwargs": {"filter": wanted}} if of_construction else {}
    given = {} if of_construction else {"filter": wanted}
    ours = OrderPreservingRetriever(vectorstore=store, k=1, neighbors=1, read_neighbors=reader.near, **search)
    chain = chain_of(retriever=ours)
    ours.invoke(QUESTION, None, **given)
    await ours.ainvoke(QUESTION, None, **given)
    chain.invoke({"input": QUESTION, **given})
    await chain.ainvoke({"input": QUESTION, **given})
    assert reader.asked == [wanted] * 4


class OwnStoreRetriever(VectorStoreRetriever):
    """A filter in a subclass."""


@pytest.mark.filterwarnings("ignore:.*are copies of others")
async def test_a_function_that_requires_the_filter_is_never_told_none_for_an_unknown_one(both):
    reader = Reader()
    of_user = both.as_retriever(search_kwargs={"k": 1}).configurable_fields(
        search_kwargs=ConfigurableField(id="search")
    )
    config: Any = {"configurable": {"search": {"k": 1, "filter": only("A")}}}
    for retriever in (of_user, OwnStoreRetriever(vectorstore=both)):
        ours = OrderPreservingRetriever(retriever=retriever, neighbors=1, read_neighbors=reader.near)
        whole = chain_of(retriever=retriever, method="long_context", read_source=reader.whole)
        for asking in (ours, chain_of(retriever=ours), whole):
            given: Any = QUESTION if asking is ours else {"input": QUESTION}
            with pytest.raises(OptionError, match="wrap the vector store"):
                asking.invoke(given, config)
            with pytest.raises(OptionError, match="wrap the vector store"):
                await asking.ainvoke(given, config)
    assert reader.asked == []
    # One that is asked for by the question is known.
    wanted = only("A")
    ours.invoke(QUESTION, filter=wanted)
    assert set(reader.asked) == {wanted}


async def test_a_function_that_requires_the_filter_is_told_that_of_a_binding(both):
    reader, wanted = Reader(), only("A")
    bound = both.as_retriever(search_kwargs={"k": 1}).bind(filter=wanted)
    ours = OrderPreservingRetriever(retriever=bound, neighbors=1, read_neighbors=reader.near)
    (found,) = ours.invoke(QUESTION)
    (found_async,) = await ours.ainvoke(QUESTION)
    assert found.metadata["tenant"] == found_async.metadata["tenant"] == "A"
    assert reader.asked == [wanted] * 2


async def test_a_chain_that_searches_itself_has_neighbours_that_pass_its_filter(both):
    reader, given = Reader(), {"input": QUESTION, "filter": only("A")}
    searching = RunnableLambda(lambda given: both.similarity_search(given["input"], filter=given["filter"]))
    chain = chain_of(retriever=searching, k=1, neighbors=1, read_neighbors=reader.near)
    chain.invoke(given)
    await chain.ainvoke(given)
    assert reader.asked == [given["filter"]] * 2


# Whole sources.


@pytest.mark.filterwarnings("ignore:.*are copies of others")
async def test_a_function_that_reads_whole_sources_is_told_the_filter(both):
    reader, given = Reader(), {"input": QUESTION, "filter": only("A")}
    options: Any = {"method": "long_context", "read_source": reader.whole}
    searching = RunnableLambda(lambda given: both.similarity_search(given["input"], filter=given.get("filter")))
    for retriever in (both, searching):
        chain = chain_of(retriever=retriever, **options)
        chain.invoke(given)
        await chain.ainvoke(given)
        assert reader.asked == [given["filter"]] * 2
        reader.asked.clear()
    # A store that is known has no filter of its own; a function may have any.
    with pytest.raises(OptionError, match="a RunnableLambda may have one of its own"):
        chain.invoke({"input": QUESTION})
    chain_of(retriever=both, **options).invoke({"input": QUESTION})
    fixed = only("A")
    chain_of(retriever=both.as_retriever(search_kwargs={"filter": fixed}), **options).invoke({"input": QUESTION})
    assert reader.asked == [None, fixed]


# Searches that are restricted by something other than `filter`.

A_AND_B = [
    Document(
        f"Text {number} of {tenant}.",
        id=f"{tenant}{number}",
        metadata={"source": "s", "chunk_index": number, "tenant": tenant},
    )
    for number, tenant in enumerate("ABABABAB")
]
OF_A = only("A")


class StoreWithOtherKeywords(InMemoryVectorStore):
    """Restricts its search by any keyword, as other stores do, for example by `pre_filter`, `expr` or `namespace`."""

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        tenant = next(iter(kwargs.values()), None)
        return super().similarity_search_with_score(
            query, k, filter=lambda one: tenant in (None, one.metadata["tenant"])
        )


class FilteringStore(InMemoryVectorStore):
    """Has a filter of its own."""

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        return super().similarity_search_with_score(query, k, filter=OF_A)


class FilteringRetriever(BaseRetriever):
    """Takes a filter, and has one of its own without."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any, filter: Any = OF_A) -> list[Document]:
        return [one for one in A_AND_B if filter(one)][:2]


def in_memory(kind: type[InMemoryVectorStore]) -> InMemoryVectorStore:
    store = kind(DeterministicFakeEmbedding(size=4))
    store.add_documents(A_AND_B)
    return store


async def shown_to_the_model(**options: Any) -> str:
    """All that reaches the model or the user, through functions that require the filter."""

    def near(document: Document, number: int, filter: Any) -> list[Document]:
        at = document.metadata["chunk_index"]
        return [one for one in A_AND_B[max(0, at - number) : at + number + 1] if filter is None or filter(one)]

    def whole(name: str, filter: Any) -> str:
        return " ".join(one.page_content for one in A_AND_B if filter is None or filter(one))

    texts: list[str] = []
    ours = OrderPreservingRetriever(**options, neighbors=1, read_neighbors=near)
    model = RecordingChatModel()
    chain = OrderPreservingChain(
        llm=model, retriever=OrderPreservingRetriever(**options), method="long_context", read_source=whole
    )
    with suppress(OptionError):
        texts += [one.page_content for one in ours.invoke(QUESTION)]
    with suppress(OptionError):
        texts += [one.page_content for one in await ours.ainvoke(QUESTION)]
    with suppress(OptionError):
        chain.invoke({"input": QUESTION})
    with suppress(OptionError):
        await chain.ainvoke({"input": QUESTION})
    return " ".join([*texts, *map(str, model.prompts)])


@pytest.mark.parametrize("name", ["pre_filter", "expr", "filters", "tenant", "namespace", "partition", "where"])
@pytest.mark.parametrize("given", [{}, {"filter": OF_A}])
async def test_a_restriction_that_is_not_the_filter_is_no_filter(name: str, given: dict[str, Any]):
    store, search = in_memory(StoreWithOtherKeywords), {name: "A", **given}
    assert " of B." not in await shown_to_the_model(vectorstore=store, k=2, search_kwargs=search)
    assert " of B." not in await shown_to_the_model(retriever=store.as_retriever(search_kwargs={**search, "k": 2}))


async def test_a_store_or_retriever_may_have_a_filter_of_its_own():
    assert " of B." not in await shown_to_the_model(vectorstore=in_memory(FilteringStore), k=2)
    assert " of B." not in await shown_to_the_model(retriever=FilteringRetriever())


def test_what_restricts_a_search_is_named():
    ours = OrderPreservingRetriever(
        vectorstore=in_memory(StoreWithOtherKeywords),
        k=2,
        search_kwargs={"pre_filter": "A", "fetch_k": 9},
        neighbors=1,
        read_neighbors=lambda document, number, filter: [document],
    )
    for given in (None, OF_A):
        with pytest.raises(OptionError, match=r"pre_filter may restrict the search, too; wrap the vector store"):
            ours.invoke(QUESTION, filter=given)


@pytest.mark.filterwarnings("ignore:the reading tools will refuse every call")
def test_a_store_is_not_listed_where_a_keyword_may_restrict_the_search():
    store = in_memory(InMemoryVectorStore)
    OrderPreservingRetriever(vectorstore=store, k=2, neighbors=1, search_kwargs={"fetch_k": 9, "expr": None})
    with pytest.raises(ValidationError, match="requires read_neighbors"):
        OrderPreservingRetriever(vectorstore=store, k=2, neighbors=1, search_kwargs={"expr": "t == 'A'"})
    _, read, outline, grep = create_reading_tools(store, search_kwargs={"expr": "t == 'A'"})
    assert "reading is not possible" in read.invoke({"source": "s", "start": 1, "end": 8})
    assert "reading is not possible" in outline.invoke({})
    assert "reading is not possible" in grep.invoke({"pattern": QUESTION})


@pytest.mark.parametrize("name", ["read_neighbors", "read_source"])
def test_a_compressor_has_no_filter_to_pass(name: str):
    with pytest.raises(ValidationError, match=rf"{name} is a function that requires filter.*does not receive"):
        OrderPreservingCompressor(**{name: lambda document, number=1, *, filter: []})


def test_a_filter_that_was_bound_to_a_function_stays():
    reader, store = Reader(), store_of(parts(source="plan.txt", tenant="A"))
    bound = partial(reader.whole, filter="of A")
    chain_of(retriever=store, method="long_context", read_source=bound).invoke({"input": QUESTION})
    assert reader.asked == ["of A"]


def test_a_function_that_requires_the_filter_is_refused_where_a_query_has_none(index: Any) -> None:
    def near(node: Any, number: int, *, filter: Any) -> list[Any]:
        return [node]

    def whole(name: str, *, filter: Any) -> str:
        return name

    retriever = index.as_retriever()
    with pytest.raises(ValidationError, match=r"read_neighbors is a function that requires filter.*functools\.partial"):
        OrderPreservingNodeRetriever(retriever=retriever, neighbors=1, read_neighbors=near)
    with pytest.raises(ValidationError, match=r"read_source is a function that requires filter.*functools\.partial"):
        OrderPreservingQueryEngine(llm=MockLLM(), retriever=retriever, read_source=whole)
    bound = partial(near, filter="public")
    assert OrderPreservingNodeRetriever(retriever=retriever, neighbors=1, read_neighbors=bound).retrieve("cranes")
