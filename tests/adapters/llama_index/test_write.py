"""Positions are written into LlamaIndex's own store: retrievers are right and silent, and nothing is embedded."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, SummaryIndex, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from oprag._internal.warn import forget
from oprag.errors import OptionError
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingRetriever, write_positions
from oprag.stores.adapter import adapter_of
from tests.adapters.llama_index.conftest import RandomEmbedding, prose

QUESTION = "Where does the river end?"
NAMES = ("ant", "bee")
TEXTS = {f"{name}.txt": prose(random.Random(name), 60) for name in NAMES}


def documents() -> list[Document]:
    return [
        Document(
            id_=name,
            text=TEXTS[f"{name}.txt"],
            metadata={"file_name": f"{name}.txt", "weight": 0.1},
            excluded_embed_metadata_keys=["weight"],
        )
        for name in NAMES
    ]


def nodes_of(given: list[Document], *, offsets: bool = False, links: bool = True) -> list[BaseNode]:
    """The nodes of documents, without offsets and perhaps without links."""
    nodes: list[Any] = SentenceSplitter(chunk_size=50, chunk_overlap=0).get_nodes_from_documents(given)
    for node in nodes:
        if not offsets:
            node.start_char_idx = node.end_char_idx = None
        if not links:
            for relation in (NodeRelationship.PREVIOUS, NodeRelationship.NEXT):
                node.relationships.pop(relation, None)
    return nodes


def shuffled(nodes: list[BaseNode]) -> list[BaseNode]:
    return random.Random(5).sample(nodes, len(nodes))


def index_of(nodes: list[BaseNode], **options: Any) -> Any:
    return VectorStoreIndex(nodes, embed_model=RandomEmbedding(embed_dim=16), **options)


def embedded(index: Any) -> int:
    return len(index._embed_model._embedded)


def asked(index: Any, k: int = 14, **options: Any) -> tuple[list[Any], list[str]]:
    """What a new retriever finds, which does not ask the store for an order, and what it warns of."""
    inner = index.as_retriever(similarity_top_k=k)
    retriever = OrderPreservingRetriever(retriever=inner, **{"store_order": False, **options})
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = retriever.retrieve(QUESTION)
    return found, [str(one.message) for one in caught]


def in_order(found: list[Any], texts: Any = TEXTS) -> bool:
    of_source = {
        name: [text.index(one.node.text) for one in found if one.node.metadata["file_name"] == name]
        for name, text in texts.items()
    }
    return all(len(places) > 3 and places == sorted(places) for places in of_source.values())


@pytest.mark.parametrize("way", ["links", "store", "text"])
def test_the_order_is_right_afterwards_and_nothing_is_embedded(way: str):
    nodes = nodes_of(documents(), links=way == "links")
    index = index_of(nodes if way == "store" else shuffled(nodes))
    ranked, told = asked(index)
    assert not in_order(ranked)
    assert told != []
    count = embedded(index)
    read_source = TEXTS if way == "text" else None
    given: Any = {"read_source": read_source, "trust_store_order": way == "store"}
    planned = write_positions(index, **given, dry_run=True)
    assert not any("chunk_index" in node.metadata for node in index.docstore.docs.values())
    written = write_positions(index, **given)
    assert (written.sources, written.added) == (planned.sources, planned.added)
    assert written.written == written.chunks == len(nodes)
    assert {one.field.partition(",")[0] for one in written.sources} == {
        {"links": "previous", "store": "SimpleVectorStore", "text": "text of the source"}[way]
    }
    assert embedded(index) == count
    found, told = asked(index)
    assert in_order(found)
    assert sorted(one.node.node_id for one in found) == sorted(one.node.node_id for one in ranked)
    assert told == []
    plain = index.as_retriever(similarity_top_k=14).retrieve(QUESTION)
    assert in_order(OrderPreservingPostprocessor().postprocess_nodes(plain))
    again = write_positions(index, **given)
    assert (again.written, again.known) == (0, 2)


@pytest.mark.parametrize("strategy", [DocstoreStrategy.UPSERTS, DocstoreStrategy.DUPLICATES_ONLY])
def test_a_pipeline_embeds_nothing_again(strategy: DocstoreStrategy):
    nodes = [TextNode(id_=f"n{at}", text=f"Text {at}.", metadata={"file_name": "a"}) for at in range(6)]
    model, docstore, store = RandomEmbedding(embed_dim=16), SimpleDocumentStore(), SimpleVectorStore()
    pipeline = IngestionPipeline(
        transformations=[model], docstore=docstore, docstore_strategy=strategy, disable_cache=True, vector_store=store
    )
    pipeline.run(nodes=nodes)
    index = VectorStoreIndex(
        [], storage_context=StorageContext.from_defaults(docstore=docstore, vector_store=store), embed_model=model
    )
    assert write_positions(index, trust_store_order=True).written == 6
    assert [node.metadata["chunk_index"] for node in docstore.get_nodes([f"n{at}" for at in range(6)])] == list(
        range(6)
    )
    assert pipeline.run(nodes=nodes) == []
    assert len(model._embedded) == 6


@pytest.mark.parametrize("given", [None, 5, SimpleVectorStore()])
def test_what_is_not_a_vector_store_index(given: Any):
    with pytest.raises(OptionError, match=f"index must be a LlamaIndex index, got {type(given).__name__}"):
        write_positions(given)


def by_filter(name: str, filter: Any) -> str:
    return TEXTS[name]


def test_a_reader_that_requires_a_filter():
    with pytest.raises(OptionError, match="read_source is a function that requires filter"):
        write_positions(index_of(nodes_of(documents())), read_source=by_filter)  # type: ignore[arg-type]


def test_a_docstore_and_an_index_without_vectors_are_written_to():
    nodes = [TextNode(text=text, metadata={"file_name": "pets.txt"}) for text in ("Dogs bark.", "Cats purr.")]
    index = SummaryIndex(nodes=nodes)
    texts = {"pets.txt": "Cats purr. Dogs bark."}
    assert write_positions(index, read_source=texts, dry_run=True).written == 2
    assert write_positions(index.docstore, read_source=texts).written == 2
    written = {node.get_content(): node for node in index.docstore.docs.values()}
    assert [written[text].metadata["chunk_index"] for text in ("Cats purr.", "Dogs bark.")] == [0, 1]
    assert "chunk_index" not in written["Cats purr."].get_content(MetadataMode.LLM)
    assert write_positions(index).written == 0
    adapter: Any = adapter_of(index.docstore)
    with pytest.raises(OptionError, match="has no chunk with the id 'missing'"):
        adapter.write({"missing": {"chunk_index": 0}})
