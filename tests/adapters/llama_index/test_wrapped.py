"""The table of private attributes agrees with the installed LlamaIndex, and what it leads to is searched and read."""

import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import (
    Document,
    DocumentSummaryIndex,
    PromptTemplate,
    PropertyGraphIndex,
    Settings,
    SimpleKeywordTableIndex,
    StorageContext,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
)
from llama_index.core.chat_engine import CondensePlusContextChatEngine, CondenseQuestionChatEngine, ContextChatEngine
from llama_index.core.indices.document_summary import (
    DocumentSummaryIndexEmbeddingRetriever,
    DocumentSummaryIndexLLMRetriever,
)
from llama_index.core.indices.list.retrievers import (
    SummaryIndexEmbeddingRetriever,
    SummaryIndexLLMRetriever,
    SummaryIndexRetriever,
)
from llama_index.core.indices.property_graph import ImplicitPathExtractor, PGRetriever, VectorContextRetriever
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.indices.tree.all_leaf_retriever import TreeAllLeafRetriever
from llama_index.core.indices.tree.select_leaf_retriever import TreeSelectLeafRetriever
from llama_index.core.indices.tree.tree_root_retriever import TreeRootRetriever
from llama_index.core.indices.vector_store.retrievers import VectorIndexAutoRetriever, VectorIndexRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter, get_leaf_nodes
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
)
from llama_index.core.schema import BaseNode, NodeRelationship, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters, VectorStoreInfo
from pydantic import ValidationError

from oprag import PositionKind
from oprag._internal.warn import forget
from oprag.llama_index import (
    OrderPreservingPostprocessor,
    OrderPreservingQueryEngine,
    OrderPreservingRetriever,
    check_positions,
)
from oprag.llama_index.wrapped import ATTRIBUTES, docstores_in, searched_by, searched_in, wrapped_in
from tests.adapters.llama_index.conftest import HashedWords, ListRetriever, prose, ranked
from tests.adapters.llama_index.test_store_order import asked, windows

LLM, MODEL = MockLLM(max_tokens=4), HashedWords()
FILTERS = MetadataFilters(filters=[ExactMatchFilter(key="tenant", value="red")])
QUESTION = "S3 S40 S90"


def nodes_of(count: int = 3) -> list[BaseNode]:
    document = Document(text=prose(random.Random(1), 8 * count), id_="a", metadata={"file_name": "a.txt"})
    return SentenceSplitter(chunk_size=96, chunk_overlap=0).get_nodes_from_documents([document])


def over(kind: Callable[..., Any], **options: Any) -> Any:
    return kind(nodes_of(), **options)


# The contract: one object of each class in the table.

INDEX: Any = VectorStoreIndex(nodes_of(), embed_model=MODEL)
INNER = VectorIndexRetriever(INDEX)
ENGINE = RetrieverQueryEngine.from_args(INNER, llm=LLM)
TOOL = QueryEngineTool.from_defaults(ENGINE, name="tool", description="all")
SELECTOR = LLMSingleSelector.from_defaults(llm=LLM)
SYNTHESIZER = get_response_synthesizer(llm=LLM)


def memory() -> ChatMemoryBuffer:
    return ChatMemoryBuffer.from_defaults(llm=LLM)


def graph(nodes: Any = None) -> PropertyGraphIndex:
    extractors: Any = [ImplicitPathExtractor()]
    return PropertyGraphIndex(
        nodes or nodes_of(), llm=LLM, embed_model=MODEL, kg_extractors=extractors, use_async=False
    )


def summaries() -> Any:
    return over(DocumentSummaryIndex, llm=LLM, embed_model=MODEL, response_synthesizer=SYNTHESIZER)


MADE: dict[str, Callable[[], Any]] = {
    "BaseRetriever": lambda: ListRetriever([], object_map={"inner": INNER}),
    "BaseQueryEngine": lambda: OrderPreservingQueryEngine(llm=LLM, retriever=INNER),
    "BaseChatEngine": lambda: ContextChatEngine(INNER, LLM, memory(), []),
    "VectorStoreIndex": lambda: INDEX,
    "DocumentSummaryIndex": summaries,
    "PropertyGraphIndex": graph,
    "VectorIndexRetriever": lambda: VectorIndexRetriever(
        INDEX, filters=FILTERS, node_ids=["a"], doc_ids=["b"], vector_store_kwargs={"shard": "c"}, shard="c"
    ),
    "VectorIndexAutoRetriever": lambda: VectorIndexAutoRetriever(
        INDEX, VectorStoreInfo(content_info="", metadata_info=[]), llm=LLM, extra_filters=FILTERS, shard="c"
    ),
    "SummaryIndexRetriever": lambda: SummaryIndexRetriever(over(SummaryIndex)),
    "SummaryIndexEmbeddingRetriever": lambda: SummaryIndexEmbeddingRetriever(over(SummaryIndex), embed_model=MODEL),
    "SummaryIndexLLMRetriever": lambda: SummaryIndexLLMRetriever(over(SummaryIndex), llm=LLM),
    "BaseKeywordTableRetriever": lambda: over(SimpleKeywordTableIndex, llm=LLM).as_retriever(),
    "DocumentSummaryIndexLLMRetriever": lambda: DocumentSummaryIndexLLMRetriever(summaries(), llm=LLM),
    "DocumentSummaryIndexEmbeddingRetriever": lambda: DocumentSummaryIndexEmbeddingRetriever(
        summaries(), embed_model=MODEL
    ),
    "TreeAllLeafRetriever": lambda: TreeAllLeafRetriever(over(TreeIndex, llm=LLM, build_tree=False)),
    "TreeSelectLeafRetriever": lambda: TreeSelectLeafRetriever(over(TreeIndex, llm=LLM)),
    "TreeRootRetriever": lambda: TreeRootRetriever(over(TreeIndex, llm=LLM)),
    "AutoMergingRetriever": lambda: AutoMergingRetriever(INNER, INDEX.storage_context),
    "QueryFusionRetriever": lambda: QueryFusionRetriever([INNER], llm=LLM),
    "RouterRetriever": lambda: RouterRetriever(SELECTOR, [RetrieverTool.from_defaults(INNER, description="")], llm=LLM),
    "RecursiveRetriever": lambda: RecursiveRetriever("a", {"a": INNER}, {"b": ENGINE}),
    "TransformRetriever": lambda: TransformRetriever(INNER, IdentityQueryTransform()),
    "PGRetriever": lambda: PGRetriever([INNER]),  # type: ignore[list-item]
    "RetrieverQueryEngine": lambda: ENGINE,
    "CitationQueryEngine": lambda: CitationQueryEngine(INNER, llm=LLM),
    "TransformQueryEngine": lambda: TransformQueryEngine(ENGINE, IdentityQueryTransform()),
    "RouterQueryEngine": lambda: RouterQueryEngine(SELECTOR, [TOOL], llm=LLM, summarizer=SYNTHESIZER),  # type: ignore[arg-type]
    "SubQuestionQueryEngine": lambda: SubQuestionQueryEngine(
        LLMQuestionGenerator.from_defaults(llm=LLM), SYNTHESIZER, [TOOL]
    ),
    "ContextChatEngine": lambda: ContextChatEngine(INNER, LLM, memory(), []),
    "CondensePlusContextChatEngine": lambda: CondensePlusContextChatEngine(INNER, LLM, memory()),
    "CondenseQuestionChatEngine": lambda: CondenseQuestionChatEngine(ENGINE, PromptTemplate(""), memory(), LLM),
}
# Attributes of base classes, which only some of their subclasses have.
SOME = {"BaseRetriever", "BaseQueryEngine", "BaseChatEngine"}


@pytest.fixture(autouse=True)
def _models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", LLM)


def test_each_class_of_the_table_has_an_object():
    assert set(MADE) == set(ATTRIBUTES)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_the_installed_version_has_the_attributes_of_the_table(name: str):
    made, row = MADE[name](), ATTRIBUTES[name]
    assert name in {kind.__name__ for kind in type(made).__mro__}
    inner = [one for attribute in row.wrapped if attribute in vars(made) for one in in_it(getattr(made, attribute))]
    assert all(attribute in vars(made) for attribute in row.wrapped) or name in SOME
    assert not row.wrapped or set(map(id, inner)) <= {id(INNER), id(ENGINE)} != set()
    assert bool(inner) == bool(row.wrapped)
    expected: dict[str, Any] = {"embed_model": MODEL, "keywords": {"shard": "c"}, "filters": FILTERS}
    expected |= {"node_ids": ["a"], "doc_ids": ["b"], "parents": INDEX.storage_context}
    for role, value in expected.items():
        if attribute := getattr(row, role):
            assert getattr(made, attribute) == value, attribute
    if row.over_index:
        index = getattr(made, row.over_index)
        assert index.docstore.docs
        (searched,) = searched_by(made)
        assert searched.docstore is index.docstore


def in_it(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", [name for name, row in ATTRIBUTES.items() if row.wrapped])
def test_the_index_is_found_in_each_wrapper(name: str):
    assert {id(one) for one in wrapped_in(MADE[name]())} <= {id(INNER), id(ENGINE)}
    (searched, *_) = searched_by(MADE[name]())
    assert searched.vector_store is INDEX.vector_store
    assert docstores_in(MADE[name]()) == [INDEX.docstore]


def test_a_retriever_without_its_attributes_is_not_known():
    retriever: Any = VectorIndexRetriever(INDEX, filters=FILTERS)
    (searched,) = searched_by(retriever)
    assert searched.restrictions == {"filters": FILTERS}
    del retriever._filters
    assert searched_by(retriever) == []
    assert OrderPreservingRetriever(retriever=ListRetriever([]), index=INDEX).retrieve(QUESTION) == []
    assert searched_in(INDEX, retriever).restrictions == {}
    for one in (object(), None, [], ListRetriever([])):
        assert searched_by(one) == []


# Nodes whose order only the docstore tells.


def keywords(nodes: Any) -> Any:
    return SimpleKeywordTableIndex(nodes, llm=LLM)


WITHOUT_VECTORS: dict[str, Callable[[Any], Any]] = {
    "summary": SummaryIndex,
    "keywords": keywords,
    "graph": graph,
}


def in_places(found: Any, nodes: list[Any]) -> bool:
    """Whether nodes are returned in the order of their source."""
    place = {node.node_id: row for row, node in enumerate(nodes)}
    rows = [place[one.node.node_id] for one in found]
    assert len(rows) > 2
    return rows == sorted(rows)


@pytest.mark.parametrize("kind", WITHOUT_VECTORS)
def test_an_index_without_vectors_gives_the_order_of_its_docstore(kind: str):
    nodes = windows("a.txt", 1)[:12]
    index = WITHOUT_VECTORS[kind](nodes)
    mixed = ListRetriever(ranked(random.Random(4).sample(nodes, 8)))
    postprocessor = OrderPreservingPostprocessor(index=index)
    for ask in (
        OrderPreservingRetriever(retriever=mixed, index=index).retrieve,
        lambda question: postprocessor.postprocess_nodes(mixed.retrieve(question)),
        lambda question: OrderPreservingQueryEngine(llm=LLM, retriever=mixed, index=index).query(question).source_nodes,
    ):
        found, told = asked(ask)
        assert in_places(found, nodes)
        assert told == []
    found = check_positions(index)
    assert (found.ok, found.chunks) == (True, 12)
    assert found.sources[0].kind is PositionKind.STORE
    assert check_positions(postprocessor).sources == found.sources


@pytest.mark.parametrize("kind", WITHOUT_VECTORS)
def test_an_index_without_vectors_has_the_neighbors(kind: str):
    nodes = windows("a.txt", 1)[:12]
    index = WITHOUT_VECTORS[kind](nodes)
    options: dict[str, Any] = {"index": index, "neighbors": 1, "read_neighbors": index}
    found = OrderPreservingRetriever(retriever=ListRetriever(ranked(nodes[5:6])), **options).retrieve(QUESTION)
    assert [one.node_id for one in found] == [node.node_id for node in nodes[4:7]]
    # The filter of the search would not apply to them.
    for given in (options, {"index": index, "neighbors": 1}):
        with pytest.raises(ValidationError, match="neighbors must pass the filter of the search"):
            OrderPreservingRetriever(retriever=VectorIndexRetriever(INDEX, filters=FILTERS), **given)


def test_a_retriever_of_a_property_graph_is_no_error():
    nodes = windows("a.txt", 1)[:6]
    index = graph(nodes)
    stores: Any = index.vector_store
    context = VectorContextRetriever(index.property_graph_store, vector_store=stores, embed_model=MODEL)
    for retriever in (index.as_retriever(sub_retrievers=[context]), context):
        assert searched_by(retriever) == []
        OrderPreservingRetriever(retriever=retriever).retrieve(QUESTION)
        OrderPreservingQueryEngine(llm=LLM, retriever=retriever, index=index).query(QUESTION)
    similar = OrderPreservingPostprocessor(index=index, similarity_threshold=-1.0)
    assert len(similar.postprocess_nodes(ranked(nodes), query_str="why?")) == 6


@pytest.mark.parametrize("recursive", [False, True])
def test_the_store_is_found_through_wrappers(recursive: bool):
    nodes = windows("a.txt", 1)
    index: Any = VectorStoreIndex(nodes, embed_model=MODEL)
    inner = index.as_retriever(similarity_top_k=10)
    wrapper: Any = QueryFusionRetriever([inner, inner], llm=LLM, num_queries=1, use_async=False, similarity_top_k=10)
    wrapper = RecursiveRetriever("a", {"a": wrapper}) if recursive else wrapper
    for ask in (
        OrderPreservingRetriever(retriever=wrapper).retrieve,
        lambda question: OrderPreservingQueryEngine(llm=LLM, retriever=wrapper).query(question).source_nodes,
    ):
        found, told = asked(ask)
        assert in_places(found, nodes)
        assert told == []
    assert check_positions(wrapper).sources == check_positions(index).sources


# Nodes of several levels.


def merging(documents: list[Document], top_k: int = 12, sizes: Any = None) -> tuple[Any, AutoMergingRetriever]:
    """An index of leaves, and a retriever that merges them, as in LlamaIndex's documentation."""
    nodes = HierarchicalNodeParser.from_defaults(chunk_sizes=sizes).get_nodes_from_documents(documents)
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    index: Any = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=context, embed_model=MODEL)
    return index, AutoMergingRetriever(index.as_retriever(similarity_top_k=top_k), context)


LONG = Document(text=prose(random.Random(8), 700), metadata={"file_name": "a.txt"})


def starts(found: Any, text: str = LONG.text) -> list[int]:
    return [text.index(one.node.text) for one in found]


def questions(count: int = 20) -> list[str]:
    rng = random.Random(2)
    return [" ".join(f"S{number}" for number in rng.sample(range(700), 4)) for _ in range(count)]


def test_merged_nodes_are_in_the_order_of_the_offsets_of_all_their_ancestors():
    index, retriever = merging([LONG])
    engine = OrderPreservingQueryEngine(llm=LLM, retriever=retriever)
    postprocessor = OrderPreservingPostprocessor(index=index)
    sizes: set[bool] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for question in questions():
            forget()
            raw = retriever.retrieve(question)
            for found in (
                OrderPreservingRetriever(retriever=retriever).retrieve(question),
                OrderPreservingRetriever(retriever=retriever, store_order=False).retrieve(question),
                postprocessor.postprocess_nodes(raw, query_str=question),
                engine.query(question).source_nodes,
            ):
                assert len(found) == len(raw)
                assert starts(found) == sorted(starts(found))
                sizes |= {bool(one.node.child_nodes) for one in found}
    assert sizes == {True, False}
    for one in (retriever, OrderPreservingRetriever(retriever=retriever), engine, postprocessor):
        checked = check_positions(one)
        assert checked.ok
        assert checked.sources[0].kind is PositionKind.OFFSET


@pytest.mark.parametrize("merged", [False, True])
def test_neighbors_have_the_offsets_of_all_their_ancestors(merged: bool):
    index, retriever = merging([LONG], 6)
    inner, read = (retriever, index.docstore) if merged else (index.as_retriever(), None)
    ours = OrderPreservingRetriever(retriever=inner, neighbors=1, read_neighbors=read)
    levels: set[bool] = set()
    for question in questions(9):
        found = ours.get_context(question).kept
        levels |= {bool(chunk.child_ids) for chunk in found if chunk.neighbor_of is not None}
        places = [LONG.text.index(chunk.text) for chunk in found]
        assert places == sorted(places)
    assert levels == ({True, False} if merged else {False})


@pytest.mark.parametrize("change", ["edit", "delete", "move"])
def test_offsets_that_the_parents_do_not_confirm_are_not_used(change: str):
    index, _ = merging([LONG])
    retriever = OrderPreservingRetriever(retriever=index.as_retriever(similarity_top_k=20))
    before = retriever.get_context(QUESTION)
    assert all(chunk.span is not None for chunk in before.kept)
    parents = {chunk.parent_id or "": index.docstore.get_node(chunk.parent_id) for chunk in before.kept}
    for key, node in parents.items():
        if change == "delete":
            index.docstore.delete_document(key)
        elif change == "edit":
            index.docstore.add_documents([TextNode(**{**node.dict(), "text": f"New. {node.text}"})])
        else:
            index.docstore.add_documents([TextNode(**{**node.dict(), "start_char_idx": node.start_char_idx + 1})])
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        after = retriever.get_context(QUESTION)
    lost = [chunk for chunk in after.kept if chunk.span is None]
    assert lost if change == "move" else len(lost) == len(after.kept)


def test_parents_that_are_their_own_ancestors_end():
    nodes = [TextNode(id_=name, text="Text.", start_char_idx=0, metadata={"file_name": "a"}) for name in "ab"]
    for node, parent in zip(nodes, reversed(nodes), strict=True):
        node.relationships[NodeRelationship.PARENT] = parent.as_related_node_info()
    index = VectorStoreIndex(nodes, embed_model=MODEL)
    index.docstore.add_documents(nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert OrderPreservingPostprocessor(index=index).postprocess_nodes(ranked(nodes))
