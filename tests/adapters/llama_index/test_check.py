"""A check of indexes, retrievers and nodes agrees with what retrieval would say of them."""

from typing import Any

import pytest
from llama_index.core import (
    Document,
    SimpleKeywordTableIndex,
    StorageContext,
    SummaryIndex,
    VectorStoreIndex,
)
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    SentenceSplitter,
    get_leaf_nodes,
)
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.vector_stores import SimpleVectorStore

from oprag import PositionKind
from oprag.errors import ChunkError, OptionError
from oprag.llama_index import (
    OrderPreservingPostprocessor,
    OrderPreservingQueryEngine,
    OrderPreservingRetriever,
    StampPositions,
    check_positions,
    write_positions,
)
from tests.adapters.llama_index.conftest import RandomEmbedding
from tests.adapters.llama_index.test_store_order import QUESTION, asked, index_of, windows
from tests.helpers import prose

TEXT = prose(2_000, seed=4)
EMBEDDING = RandomEmbedding(embed_dim=16)


def only(found):
    (source,) = found.sources
    return source


def document(name="a.txt", text=TEXT, **metadata):
    return Document(text=text, metadata={"file_name": name, **metadata})


def split():
    return SentenceSplitter(chunk_size=128, chunk_overlap=20).get_nodes_from_documents([document()])


def index(*documents, parser=None):
    transformations = [parser or SentenceSplitter(chunk_size=128, chunk_overlap=20)]
    return VectorStoreIndex.from_documents(list(documents), transformations=transformations, embed_model=EMBEDDING)


def without_offsets(nodes):
    return [node.model_copy(update={"start_char_idx": None, "end_char_idx": None}) for node in nodes]


def leaves():
    return get_leaf_nodes(
        HierarchicalNodeParser.from_defaults(chunk_sizes=[512, 128]).get_nodes_from_documents([document()])
    )


def test_indexes_retrievers_engines_and_nodes_are_one():
    searched = index(document())
    retriever = searched.as_retriever()
    nodes = list(searched.docstore.docs.values())
    given = [
        *(searched, retriever, searched.docstore, nodes, iter(nodes), [NodeWithScore(node=node) for node in nodes]),
        searched.as_query_engine(llm=MockLLM()),
        ContextChatEngine(retriever, MockLLM(), ChatMemoryBuffer.from_defaults(llm=MockLLM()), []),
        OrderPreservingRetriever(retriever=retriever),
        OrderPreservingQueryEngine(llm=MockLLM(), retriever=retriever),
        OrderPreservingPostprocessor(index=searched),
        AutoMergingRetriever(retriever, searched.storage_context),
        QueryFusionRetriever([retriever, retriever], llm=MockLLM(), num_queries=1),
        SummaryIndex(nodes),
    ]
    for one in given:
        found = check_positions(one)
        assert (only(found).chunks, only(found).kind, found.ok) == (len(nodes), PositionKind.OFFSET, True)


def test_an_index_among_others_in_a_docstore_has_its_own_nodes():
    nodes, others = windows("a.txt", 1), windows("a.txt", 2)
    context = StorageContext.from_defaults()
    context.docstore.add_documents(others)
    words = SimpleKeywordTableIndex(nodes, llm=MockLLM(), storage_context=context)
    assert only(check_positions(words.as_retriever())).chunks == len(nodes)
    inner = SummaryIndex(nodes, storage_context=context)
    assert (only(check_positions(inner)).chunks, check_positions(inner).ok) == (len(nodes), True)
    assert write_positions(inner).written == len(nodes)
    assert not any("chunk_index" in node.metadata for node in context.docstore.get_nodes([n.node_id for n in others]))


def test_a_check_of_auto_merging_promises_no_order_of_the_store():
    """The parents are not in the store, and without offsets nothing else tells where they are."""
    nodes = HierarchicalNodeParser.from_defaults(chunk_sizes=[512, 128]).get_nodes_from_documents([document()])
    nodes = without_offsets(nodes)
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    searched = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=context, embed_model=EMBEDDING)
    leaves_of: Any = searched.as_retriever()
    found = only(check_positions(AutoMergingRetriever(leaves_of, context)))
    assert found.problem
    assert found.suggestion.startswith("nodes = StampPositions()(parser.get_nodes_from_documents(documents))")


def merging(documents, stamp, docstore=None):
    """A retriever that merges leaves into their parents, over nodes of three levels."""
    nodes = HierarchicalNodeParser.from_defaults(chunk_sizes=[400, 200, 60]).get_nodes_from_documents(documents)
    nodes = StampPositions()(nodes) if stamp == "all" else nodes
    leaves = StampPositions()(get_leaf_nodes(nodes)) if stamp == "leaves" else get_leaf_nodes(nodes)
    context = StorageContext.from_defaults(docstore=docstore)
    context.docstore.add_documents(nodes)
    searched: Any = VectorStoreIndex(leaves, storage_context=context, embed_model=EMBEDDING)
    return AutoMergingRetriever(searched.as_retriever(similarity_top_k=len(leaves) // 2), context)


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("stamp", ["", "leaves", "all"])
@pytest.mark.parametrize("pages", [False, True])
def test_parents_are_checked_as_a_search_returns_them(pages, stamp, texts):
    documents = pdf("a.txt", 1) if pages else [document()]
    read_source: Any = {"a.txt": "\n".join(one.text for one in documents)} if texts else None
    searched = OrderPreservingRetriever(retriever=merging(documents, stamp), read_source=read_source)
    questions = (QUESTION, "Who?", "What?", "When?")
    warned = [asked(lambda _, question=question: searched.retrieve(question))[1] for question in questions]
    assert not any(warned)
    # The labels of pages are confirmed by the sequence of all nodes in the docstore, which a check does not list.
    assert check_positions(searched).ok == (texts or not pages or bool(stamp))


def test_a_docstore_without_a_sequence_confirms_no_labels():
    """As those of databases, whose nodes are listed in any sequence."""
    retriever = merging(pdf("a.txt", 1), "", KVDocumentStore(SimpleKVStore()))
    _, (told, *_) = asked(OrderPreservingRetriever(retriever=retriever).retrieve)
    assert "page labels" in told


def test_lines_of_code_name_what_was_checked():
    nodes = index_of([*windows("a.txt", 1)[12:], *windows("a.txt", 1)[:9]])
    docstore, count = nodes.docstore, len(nodes.docstore.docs)
    assert only(check_positions(nodes)).suggestion.startswith("write_positions(index,")
    assert only(check_positions(docstore)).suggestion.startswith("write_positions(docstore,")
    docstore.add_documents([node.model_copy(update={"id_": f"{key} again"}) for key, node in docstore.docs.items()])
    (note,) = check_positions(docstore).notes
    assert note.what.startswith(f"{count} chunks of 1 source were added more than once")
    exec(note.suggestion, {"docstore": docstore, "check_positions": check_positions})
    assert docstore.docs == {}


def test_our_retriever_has_its_texts():
    nodes = windows("a.txt", 1)
    text = "".join([*(node.text[:160] for node in nodes[:-1]), nodes[-1].text])
    by_store = index_of(nodes[::-2])
    retriever = OrderPreservingRetriever(retriever=by_store.as_retriever(), read_source={"a.txt": text})
    assert not check_positions(by_store).ok
    assert check_positions(retriever).ok
    requires_filter: Any = lambda name, filter: ""  # noqa: E731
    with pytest.raises(OptionError, match="read_source is a function that requires filter"):
        check_positions(by_store, read_source=requires_filter)


def test_documents_of_a_pipeline_are_left_out_beside_nodes():
    context = StorageContext.from_defaults()
    context.docstore.add_documents([document(), *split()])
    found = check_positions(context.docstore)
    assert found.chunks == len(context.docstore.docs) - 1


@pytest.mark.parametrize(
    "given",
    [
        *(None, 5, "a.txt", {"a": 1}),
        SimpleVectorStore(),
        index(document()).as_retriever(vector_store_kwargs={"rules": "of another store"}),
        OrderPreservingPostprocessor(),
    ],
)
def test_what_cannot_be_listed_is_refused_with_a_way_out(given):
    with pytest.raises(OptionError, match=r"cannot be listed; pass the nodes .*check_positions\(nodes\)"):
        check_positions(given)


@pytest.mark.parametrize("given", [[1], ["text"], [TextNode(text="a"), None]])
def test_other_things_in_a_list_are_refused(given):
    with pytest.raises(ChunkError, match="expected LlamaIndex nodes"):
        check_positions(given)


def pdf(name, seed, count=6):
    return [document(name, prose(300, 10 * seed + page), page_label=str(page + 1)) for page in range(count)]
