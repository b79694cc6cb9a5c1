"""The nodes of LlamaIndex's real stores: listed by their source, and given more metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, MetadataMode, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from oprag.errors import OptionError
from oprag.llama_index import StampPositions
from oprag.stores import StoreAdapter, StoredChunk, llama_index_nodes, postgres
from oprag.stores.adapter import adapter_of
from oprag.stores.listing import chunks_in_search
from tests.integration.stores.conftest import Places
from tests.integration.stores.corpus import Corpus
from tests.integration.stores.known import KnownEmbeddings, NodeEmbeddings
from tests.integration.stores.llama_index_stores import KINDS, Kind

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

EACH = [kind for kind in KINDS if kind.alone or kind.name in ("faiss_map", "postgres_jsonb", "postgres_halfvec")]
QUESTION = "What happens when an exception is raised?"


@dataclass
class Filled:
    """An index over a store, and its nodes in the sequence in which they were added."""

    kind: Kind
    index: VectorStoreIndex
    nodes: list[TextNode]
    embeddings: KnownEmbeddings

    def adapter(self, **search: Any) -> StoreAdapter:
        index = self.index
        found = adapter_of(index.vector_store, search, index.index_struct.nodes_dict, index.docstore)
        assert found is not None
        return found


@pytest.fixture
def fill(corpus: Corpus, places: Places, request: pytest.FixtureRequest) -> Iterator[Callable[..., Filled]]:
    """Makes an index over a new store."""
    with ExitStack() as stack:
        numbers = iter(range(100))

        def make(kind: Kind, nodes: list[TextNode]) -> Filled:
            # A name of a table, which is short.
            name = hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
            place = stack.enter_context(places(f"nodes_{name}_{next(numbers)}"))
            embeddings = KnownEmbeddings(corpus)
            return Filled(kind, kind.make(nodes, NodeEmbeddings(embeddings), place), nodes, embeddings)

        yield make


def documents(corpus: Corpus) -> list[Document]:
    """Three documents with metadata of every kind that all stores take."""
    return [
        Document(
            id_=name,
            text=" ".join(corpus.texts[start : start + 12]),
            metadata={
                "file_name": f"{name}.txt",
                "the tenant.name": tenant,
                "tenant": tenant,
                "weight": 0.1 + start / 7,
                "year": 1984,
                "checked": start == 0,
                "title": 'It\'s "it"\n – é, 漢',
            },
            excluded_embed_metadata_keys=["weight"],
            excluded_llm_metadata_keys=["year"],
        )
        for name, tenant, start in (("ant", "red", 0), ("bee", "blue", 12), ("cat", "red", 24))
    ]


def split(given: Sequence[Document]) -> list[TextNode]:
    """Nodes that are linked, with offsets."""
    splitter = SentenceSplitter(chunk_size=180, chunk_overlap=20)
    nodes: list[Any] = [node for document in given for node in splitter.get_nodes_from_documents([document])]
    return nodes


@pytest.fixture
def filled(request: pytest.FixtureRequest, fill: Callable[..., Filled], corpus: Corpus) -> Filled:
    return fill(request.param, split(documents(corpus)))


def each(kinds: list[Kind]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("filled", kinds, ids=str, indirect=True)


def listed(store: StoreAdapter, field: str = "", sources: Iterable[str] = ()) -> list[StoredChunk]:
    chunks = store.chunks(field, {*sources})
    assert chunks is not None
    return list(chunks)


def where(*conditions: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(conditions), condition=condition)


RED = MetadataFilter(key="tenant", value="red")
LATER = MetadataFilter(key="year", value=1900, operator=FilterOperator.GT)


# Listing.


@each(EACH)
def test_all_nodes_are_listed_as_a_search_returns_them(filled: Filled):
    chunks = listed(filled.adapter())
    assert [chunk.key for chunk in chunks] == [node.node_id for node in filled.nodes] or not (
        filled.adapter().in_insertion_order
    )
    assert {chunk.key for chunk in chunks} == {node.node_id for node in filled.nodes}
    found = filled.index.as_retriever(similarity_top_k=len(chunks)).retrieve(QUESTION)
    assert {one.node.node_id: one.node for one in found} == {chunk.key: chunk.node for chunk in chunks}
    given = {node.node_id: node for node in filled.nodes}
    for chunk in chunks:
        node = given[chunk.key]
        assert (chunk.text, chunk.metadata) == (node.text, node.metadata)
        assert chunk.node.relationships == node.relationships
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            assert chunk.node.get_content(mode) == node.get_content(mode)


@each(EACH)
def test_the_nodes_of_some_sources(filled: Filled):
    store = filled.adapter()
    for field, sources, wanted in (
        ("file_name", ["ant.txt"], {"ant"}),
        ("file_name", ["ant.txt", "cat.txt", "it's"], {"ant", "cat"}),
        ("tenant", ["red"], {"ant", "cat"}),
        ("the tenant.name", ["blue"], {"bee"}),
        ("ref_doc_id", ["bee"], {"bee"}),
        ("document_id", ["bee", "ant"], {"ant", "bee"}),
        ("title", ['It\'s "it"\n – é, 漢'], {"ant", "bee", "cat"}),
        ("year", ["1984"], {"ant", "bee", "cat"}),
        ("year", ["1985"], set()),
        ("author", ["Ada"], set()),
    ):
        found = listed(store, field, sources)
        ids = [node.node_id for node in filled.nodes if node.ref_doc_id in wanted]
        assert sorted(chunk.key for chunk in found) == sorted(ids), (field, sources)
        if store.in_insertion_order:
            assert [chunk.key for chunk in found] == ids


@each([kind for kind in EACH if kind.filters])
def test_the_filter_of_the_search_counts(filled: Filled):
    filters = [
        where(RED),
        where(RED, LATER),
        where(RED, MetadataFilter(key="file_name", value="bee.txt"), condition=FilterCondition.OR),
        where(MetadataFilter(key="file_name", value=["bee.txt"], operator=FilterOperator.IN)),
        where(),
    ]
    if filled.kind.name != "simple":
        filters.append(where(where(RED, LATER, condition=FilterCondition.OR), LATER))
    for one in filters:
        store = filled.adapter(filters=one)
        retriever = filled.index.as_retriever(similarity_top_k=len(filled.nodes), filters=one)
        found = {hit.node.node_id for hit in retriever.retrieve(QUESTION)}
        assert {chunk.key for chunk in listed(store)} == found
        of_cat = {node.node_id for node in filled.nodes if node.ref_doc_id == "cat"}
        assert {chunk.key for chunk in listed(store, "ref_doc_id", ["cat"])} == found & of_cat


@each([kind for kind in EACH if kind.filters])
def test_the_keywords_of_a_store_count_or_nothing_is_listed(filled: Filled):
    name = filled.kind.name.partition("_")[0]
    red = {node.node_id for node in filled.nodes if node.metadata["tenant"] == "red"}
    if name == "chroma":
        by_keywords = filled.adapter(where={"tenant": "red"}, where_document={"$contains": " "})
        assert {chunk.key for chunk in listed(by_keywords)} == red
        assert listed(filled.adapter(where_document={"$contains": "no such text"})) == []
    if name == "qdrant":
        from qdrant_client import models

        condition = models.FieldCondition(key="tenant", match=models.MatchValue(value="red"))
        by_keywords = filled.adapter(qdrant_filters=models.Filter(must=[condition]))
        assert {chunk.key for chunk in listed(by_keywords)} == red
        some = [filled.nodes[3].node_id, filled.nodes[0].node_id]
        assert {chunk.key for chunk in listed(filled.adapter(node_ids=some))} == {*some}
        assert chunks_in_search(filled.adapter(shard_identifier="a")) is None
    if name == "postgres":
        assert len(listed(filled.adapter(hnsw_ef_search=100))) == len(filled.nodes)
        filled.index.vector_store._customize_query_fn = lambda query, table, **given: query  # type: ignore[attr-defined]
        assert filled.adapter().chunks() is None
    assert chunks_in_search(filled.adapter(rows_of="red")) is None


@each([kind for kind in EACH if not kind.filters])
def test_a_store_without_filters_lists_nothing_under_one(filled: Filled):
    assert chunks_in_search(filled.adapter(filters=where(RED))) is None


@pytest.mark.parametrize("kind", [kind for kind in EACH if kind.name == "faiss_map"], ids=str)
def test_nodes_that_got_one_number_are_not_listed(kind: Kind, fill: Callable[..., Filled], corpus: Corpus):
    nodes = split(documents(corpus))
    filled = fill(kind, nodes[:-1])
    filled.index.delete_nodes([nodes[3].node_id], delete_from_docstore=True)
    assert [chunk.key for chunk in listed(filled.adapter())] == [node.node_id for node in [*nodes[:3], *nodes[4:-1]]]
    filled.index.insert_nodes([nodes[-1]])
    assert filled.adapter().chunks() is None


# Writing.


def added_to(filled: Filled) -> dict[str, dict[str, Any]]:
    """What a numbering of all nodes writes."""
    stamped = StampPositions()(filled.nodes)
    return {
        node.node_id: {
            "chunk_index": stamp.metadata["chunk_index"],
            "chunk_numbering": stamp.metadata["chunk_numbering"],
            "start_index": node.start_char_idx,
            "end_index": node.end_char_idx,
        }
        for node, stamp in zip(filled.nodes, stamped, strict=True)
    }


def as_it_was(filled: Filled, added: dict[str, dict[str, Any]]) -> Any:
    """Hashes of everything about the nodes but what is added to them, and their sequence."""
    store = filled.adapter()
    chunks = listed(store)
    keys = [chunk.key for chunk in chunks]
    vectors = store.vectors(keys)
    assert len(vectors) == len(chunks)
    about = {}
    for chunk in chunks:
        others = {name: value for name, value in chunk.metadata.items() if name not in added[chunk.key]}
        parts = (
            repr(np.asarray(vectors[chunk.key].vector).tolist()),
            repr((chunk.text, vectors[chunk.key].text, others)),
            chunk.node.get_content(MetadataMode.EMBED),
            chunk.node.get_content(MetadataMode.LLM),
            repr((chunk.node.relationships, chunk.node.start_char_idx, chunk.node.end_char_idx)),
        )
        about[chunk.key] = [hashlib.sha256(part.encode()).hexdigest() for part in parts]
    return about, keys, store.in_sequence(keys)


def answers(filled: Filled) -> Any:
    """What a question finds."""
    found = filled.index.as_retriever(similarity_top_k=10).retrieve(QUESTION)
    # Qdrant in memory normalizes all vectors once more in each search, which changes their last digit.
    digits = 6 if filled.kind.name == "qdrant" else 17
    return [(one.node.node_id, round(one.get_score(), digits)) for one in found]


def complete(filled: Filled, added: dict[str, dict[str, Any]]) -> list[bool]:
    """Whether each node has all that was added to it; fails where one has a part of it."""
    done = []
    for chunk in listed(filled.adapter()):
        there = {name for name in added[chunk.key] if name in chunk.metadata}
        assert there in (set(), set(added[chunk.key]))
        done.append(bool(there) and added[chunk.key].items() <= chunk.metadata.items())
    return done


@each(EACH)
def test_written_metadata_are_found_by_searches_and_not_seen_by_models(filled: Filled):
    added = added_to(filled)
    found = answers(filled)
    before = as_it_was(filled, added)
    filled.embeddings.forget()
    filled.adapter().write(added)
    assert as_it_was(filled, added) == before
    filled.adapter().write(added)
    assert as_it_was(filled, added) == before
    assert answers(filled) == found
    assert all(complete(filled, added))
    assert filled.embeddings.documents == []
    if filled.kind.filters:
        second = where(RED, MetadataFilter(key="chunk_index", value=1))
        found = filled.index.as_retriever(filters=second).retrieve(QUESTION)
        assert {(one.node.ref_doc_id, one.node.metadata["chunk_index"]) for one in found} == {("ant", 1), ("cat", 1)}
        for one in found:
            assert "chunk_" not in one.node.get_content(MetadataMode.LLM)


@each(EACH)
def test_an_unknown_node_is_refused_before_anything_is_written(filled: Filled):
    added = added_to(filled)
    other = "6b8f3d4e-0000-4000-8000-000000000000"
    with pytest.raises(OptionError, match=f"has no chunk with the id '{other}'"):
        filled.adapter().write({**added, other: {"chunk_index": 1}})
    assert not any(complete(filled, added))
    filled.adapter().write({})


@pytest.mark.parametrize("kind", [kind for kind in EACH if kind.name in ("chroma_l2", "qdrant", "postgres")], ids=str)
def test_a_docstore_beside_the_store_is_written_first(
    kind: Kind, fill: Callable[..., Filled], corpus: Corpus, monkeypatch: pytest.MonkeyPatch
):
    """A program that breaks off between the two leaves the store, from which nodes are listed, for the next call."""
    nodes, empty = split(documents(corpus)), fill(kind, [])
    storage = StorageContext.from_defaults(vector_store=empty.index.vector_store)
    model = NodeEmbeddings(empty.embeddings)
    index = VectorStoreIndex(nodes, storage_context=storage, embed_model=model, store_nodes_override=True)
    both = Filled(kind, index, nodes, empty.embeddings)
    hashes, about = index.docstore.get_all_document_hashes(), index.docstore.get_all_ref_doc_info()
    added = added_to(both)
    put = llama_index_nodes.put_rows

    def put_and_break_off(*given: Any) -> None:
        put(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(llama_index_nodes, "put_rows", put_and_break_off)
        patch.setattr(postgres, "put_rows", put_and_break_off)
        with pytest.raises(KeyboardInterrupt):
            both.adapter().write(added)
    assert not any(complete(both, added))
    both.adapter().write(added)
    assert all(complete(both, added))
    for node in nodes:
        written: Any = index.docstore.get_document(node.node_id)
        assert written.metadata == {**node.metadata, **added[node.node_id]}
        assert written.get_content(MetadataMode.LLM) == node.get_content(MetadataMode.LLM)
        assert written.get_content(MetadataMode.EMBED) == node.get_content(MetadataMode.EMBED)
    assert (index.docstore.get_all_document_hashes(), index.docstore.get_all_ref_doc_info()) == (hashes, about)
