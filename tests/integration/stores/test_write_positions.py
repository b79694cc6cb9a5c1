"""Positions are written into real stores: the order is right afterwards, and all else is as it was."""

from __future__ import annotations

import asyncio
import hashlib
import random
import uuid
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode

from oprag import WrittenPositions, langchain, llama_index
from oprag._internal.warn import forget
from oprag.errors import PositionWarning
from oprag.stores import llama_index_nodes
from oprag.stores import postgres as postgres_stores
from oprag.stores.adapter import adapter_of
from tests.counting import CountingEmbeddings
from tests.integration.stores import langchain_stores, llama_index_stores
from tests.integration.stores.conftest import Places
from tests.integration.stores.known import KnownModel
from tests.integration.stores.rows import rows_of

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

QUESTION = "Where does the river end?"
DIMENSION = 256
FOUND = 40
WRITTEN = {"chunk_index", "chunk_numbering", "start_index", "end_index"}


def prose(seed: int, words: int = 700) -> str:
    """Words that are made up, so that no part of some length is in it twice."""
    chance = random.Random(seed)
    return " ".join("".join(chance.choices("abdefgilmnoprstu", k=chance.randint(2, 9))) for _ in range(words))


TEXTS = {"it's.txt": prose(1), "b.txt": prose(2)}


def pieces() -> list[tuple[str, str, int]]:
    """The source, the text and the place of chunks that overlap, of one source and the other in turn."""
    starts = range(0, min(map(len, TEXTS.values())) - 40, 160)
    return [(source, text[start : start + 200], start) for start in starts for source, text in TEXTS.items()]


def told_of(ask: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What it returns, and what it warns of."""
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = ask()
    return result, [str(one.message) for one in caught if issubclass(one.category, PositionWarning)]


def in_order(found: list[tuple[str, str]]) -> bool:
    """Whether texts with their sources are in the order of these."""
    places = {source: [TEXTS[source].index(text) for name, text in found if name == source] for source in TEXTS}
    return len(found) == FOUND and all(len(starts) > 5 and starts == sorted(starts) for starts in places.values())


def check(planned: WrittenPositions, written: WrittenPositions, *, by_text: bool) -> None:
    """The report of a dry run is that of the write, and all is written."""
    assert (planned.sources, planned.added) == (written.sources, written.added)
    assert (planned.dry_run, written.dry_run) == (True, False)
    assert written.written == written.chunks == len(pieces())
    assert {one.source for one in written.sources} == set(TEXTS)
    assert {one.note for one in written.sources} == {""}
    for one in written.sources:
        assert (one.field == "text of the source") == by_text


# LangChain.

NAMES = ("in_memory", "chroma_l2", "faiss_l2", "qdrant_dot", "pgvector_cosine", "pgvector_async",
         "pgvectorstore_cosine", "pgvectorstore_l2", "pgvectorstore_ip")  # fmt: skip
STORES = [kind for kind in langchain_stores.KINDS if kind.name in NAMES]
IN_SEQUENCE = ("in_memory", "chroma_l2", "faiss_l2")


class RandomEmbeddings(CountingEmbeddings):
    """Vectors that say nothing, of unit length: an approximate index finds the nearest ones of these."""

    def _vector(self, text: str) -> list[float]:
        vector = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(self.dimension)
        return [float(number) for number in np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)]


@pytest.fixture
def embeddings() -> CountingEmbeddings:
    return RandomEmbeddings(DIMENSION)


@pytest.fixture
def store_of(places: Places, embeddings: CountingEmbeddings) -> Iterator[Callable[[Any], Any]]:
    """Makes a store with documents that say nothing about their positions."""
    with ExitStack() as stack:

        def make(kind: Any) -> Any:
            documents = [
                Document(
                    text,
                    id=str(uuid.uuid4()),
                    metadata=kind.puts(
                        {"source": source, "tenant": "red", "weight": start / 7, "title": "é\n漢", "reviewer": None}
                    ),
                )
                for source, text, start in pieces()
            ]
            place = stack.enter_context(places(f"positions_{uuid.uuid4().hex[:8]}"))
            return kind.make(documents, embeddings, place)

        yield make


def documents_of(kind: Any, store: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """What a retriever without the order of the store finds, in its order, and what it warns of."""
    retriever = langchain.OrderPreservingRetriever(
        vectorstore=store, k=FOUND, token_budget=None, store_order=False, search_kwargs=dict(kind.search)
    )

    def ask() -> list[Document]:
        return asyncio.run(retriever.ainvoke(QUESTION)) if "sync" not in kind.ways else retriever.invoke(QUESTION)

    found, told = told_of(ask)
    return [(document.metadata["source"], document.page_content) for document in found], told


@pytest.mark.parametrize("by_text", [False, True], ids=["store", "text"])
@pytest.mark.parametrize("kind", STORES, ids=str)
def test_langchain(
    kind: Any,
    by_text: bool,
    store_of: Callable[[Any], Any],
    embeddings: CountingEmbeddings,
    postgres: Callable[[str], str],
):
    store = store_of(kind)
    ranked, told = documents_of(kind, store)
    assert not in_order(ranked)
    assert "have no position" in told[0]
    before = rows_of(store, postgres)
    embeddings.forget()
    read_source = TEXTS if by_text else None
    planned = langchain.write_positions(store, read_source=read_source, dry_run=True)
    assert rows_of(store, postgres) == before
    written = langchain.write_positions(store, read_source=read_source)
    assert embeddings.embedded == (0, 0)
    after = rows_of(store, postgres)
    assert [row[:3] for row in after] == [row[:3] for row in before]
    for old, new in zip(before, after, strict=True):
        assert new.metadata == {**old.metadata, **written.added.get(old.key, {})}
    if not by_text and kind.name not in IN_SEQUENCE:
        assert after == before
        assert {one.note for one in written.sources} == {
            "chunks of a source have no position, so their order is unknown; nothing is written"
        }
        return
    check(planned, written, by_text=by_text)
    if by_text:
        for row in after:
            start, end = row.metadata["start_index"], row.metadata["end_index"]
            assert TEXTS[row.metadata["source"]][int(start) : int(end)] == row.text
    found, told = documents_of(kind, store)
    assert in_order(found)
    assert sorted(found) == sorted(ranked)
    assert told == []
    again = langchain.write_positions(store, read_source=read_source)
    assert (again.written, again.known, again.sources) == (0, 2, ())
    assert rows_of(store, postgres) == after


# LlamaIndex.


INDEXES = [kind for kind in llama_index_stores.KINDS if kind.name not in ("chroma_cosine", "faiss_ip")]


def nodes_of(*, linked: bool) -> list[TextNode]:
    """Nodes without offsets; links connect them, or nothing does."""
    nodes = [
        TextNode(text=text, metadata={"file_name": source, "tenant": "red"}, excluded_embed_metadata_keys=["tenant"])
        for source, text, _ in pieces()
    ]
    for source in TEXTS if linked else ():
        line = [node for node in nodes if node.metadata["file_name"] == source]
        for before, after in pairwise(line):
            before.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=after.node_id)
            after.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=before.node_id)
    return nodes


@pytest.fixture
def index_of(places: Places, embeddings: CountingEmbeddings) -> Iterator[Callable[[Any, list[TextNode]], Any]]:
    with ExitStack() as stack:

        def make(kind: Any, nodes: list[TextNode]) -> Any:
            place = stack.enter_context(places(f"positions_{uuid.uuid4().hex[:8]}"))
            return kind.make(nodes, KnownModel(embeddings), place)

        yield make


def state_of(index: Any) -> dict[str, list[str]]:
    """Hashes of what may not change of each node: its vector, its text, its other metadata, and what models see."""
    adapter = adapter_of(index.vector_store, {}, index.index_struct.nodes_dict, index.docstore)
    assert adapter is not None
    chunks = list(adapter.chunks() or ())
    vectors = adapter.vectors([chunk.key for chunk in chunks])
    state = {}
    for chunk in chunks:
        others = {name: value for name, value in chunk.metadata.items() if name not in WRITTEN}
        parts = (
            np.asarray(vectors[chunk.key].vector).tobytes(),
            chunk.text.encode(),
            repr((others, chunk.node.relationships)).encode(),
            chunk.node.get_content(MetadataMode.LLM).encode(),
            chunk.node.get_content(MetadataMode.EMBED).encode(),
        )
        state[chunk.key] = [hashlib.sha256(part).hexdigest() for part in parts]
    return state


def nodes_found(index: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """As `documents_of`."""
    inner = index.as_retriever(similarity_top_k=FOUND)
    retriever = llama_index.OrderPreservingRetriever(retriever=inner, store_order=False)
    found, told = told_of(lambda: retriever.retrieve(QUESTION))
    return [(one.node.metadata["file_name"], one.node.text) for one in found], told


@pytest.mark.parametrize("way", ["links", "store", "text"])
@pytest.mark.parametrize("kind", INDEXES, ids=str)
def test_llama_index(
    kind: Any, way: str, index_of: Callable[[Any, list[TextNode]], Any], embeddings: CountingEmbeddings
):
    nodes = nodes_of(linked=way == "links")
    # Links are the same whatever the sequence is.
    index = index_of(kind, random.Random(1).sample(nodes, len(nodes)) if way == "links" else nodes)
    ranked, told = nodes_found(index)
    assert not in_order(ranked)
    assert "have no position" in told[0]
    before = state_of(index)
    embeddings.forget()
    read_source = TEXTS if way == "text" else None
    planned = llama_index.write_positions(index, read_source=read_source, dry_run=True)
    assert nodes_found(index)[1] == told
    embeddings.forget()
    written = llama_index.write_positions(index, read_source=read_source)
    assert embeddings.embedded == (0, 0)
    # Qdrant in memory normalizes all vectors once more in each search, which changes their last digit.
    if kind.name != "qdrant":
        assert state_of(index) == before
    else:
        assert {key: parts[1:] for key, parts in state_of(index).items()} == {
            key: parts[1:] for key, parts in before.items()
        }
    if way == "store" and kind.name == "qdrant":
        assert written.written == 0
        return
    check(planned, written, by_text=way == "text")
    if way == "links":
        # In a store that has a sequence, the overlaps tell the same.
        by_links = kind.name == "qdrant"
        assert all(
            one.field == "previous, next" if by_links else "neighbors overlap" in one.field for one in written.sources
        )
    found, told = nodes_found(index)
    assert in_order(found)
    assert sorted(found) == sorted(ranked)
    assert told == []
    again = llama_index.write_positions(index, read_source=read_source)
    assert (again.written, again.known, again.sources) == (0, 2, ())


@pytest.mark.parametrize(
    "kind", [kind for kind in INDEXES if kind.name in ("chroma_l2", "qdrant", "postgres")], ids=str
)
def test_a_docstore_beside_the_store_is_finished_too(
    kind: Any,
    index_of: Callable[[Any, list[TextNode]], Any],
    embeddings: CountingEmbeddings,
    monkeypatch: pytest.MonkeyPatch,
):
    """A program that breaks off between the two leaves the store, from which nodes are listed, for the next call."""
    nodes = nodes_of(linked=True)
    random.Random(1).shuffle(nodes)
    storage = StorageContext.from_defaults(vector_store=index_of(kind, []).vector_store)
    index = VectorStoreIndex(
        nodes, storage_context=storage, embed_model=KnownModel(embeddings), store_nodes_override=True
    )
    adapter = adapter_of(index.vector_store, {}, index.index_struct.nodes_dict, index.docstore)
    assert adapter is not None
    put = llama_index_nodes.put_rows

    def put_and_break_off(*given: Any) -> None:
        put(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(llama_index_nodes, "put_rows", put_and_break_off)
        patch.setattr(postgres_stores, "put_rows", put_and_break_off)
        with pytest.raises(KeyboardInterrupt):
            llama_index.write_positions(index)
    assert llama_index.write_positions(index).written == len(nodes)
    for chunk in adapter.chunks() or ():
        assert chunk.metadata.keys() >= {"chunk_index", "chunk_numbering"}
        assert index.docstore.get_document(chunk.key).metadata == chunk.metadata  # type: ignore[union-attr]
    found, told = nodes_found(index)
    assert (in_order(found), told) == (True, [])
