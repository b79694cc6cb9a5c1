"""Nodes without any position: their places in the text of the source."""

import asyncio
import random

import pytest
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.vector_stores import SimpleVectorStore

from oprag import PositionKind
from oprag._internal.warn import forget
from oprag.errors import PositionWarning
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingRetriever
from oprag.stores import adapter, register_store
from oprag.stores.in_memory import LlamaIndexSimple
from tests.adapters.langchain.conftest import prose
from tests.adapters.llama_index.test_store_order import asked, index_of, numbers

QUESTION = "Where does the river end?"
TEXT = prose(800, 1)
TEXTS = {"voyage.txt": TEXT}


def nodes():
    """Nodes as another tool may have made them, without offsets and links."""
    made = [
        TextNode(text=TEXT[start : start + 300], metadata={"file_name": "voyage.txt"})
        for start in range(0, len(TEXT), 250)
    ]
    random.Random(3).shuffle(made)
    return made


def in_order(found):
    places = [TEXT.index(scored.text) for scored in found]
    return places == sorted(places)


def test_a_postprocessor_finds_nodes_in_the_text():
    scored = [NodeWithScore(node=node, score=1 - rank / 10) for rank, node in enumerate(nodes()[:7])]
    postprocessor = OrderPreservingPostprocessor(read_source=TEXTS)
    assert in_order(postprocessor.postprocess_nodes(scored))
    assert in_order(asyncio.run(postprocessor.apostprocess_nodes(scored)))
    (source,) = postprocessor.get_context(scored).sources
    assert (source.kind, source.missing) == (PositionKind.OFFSET, 0)
    postprocessor.read_source = None
    forget()
    with pytest.warns(PositionWarning, match="have no position"):
        assert not in_order(postprocessor.postprocess_nodes(scored))


def test_a_function_that_requires_a_filter_is_rejected():
    with pytest.raises(ValueError, match="queries do not contain a filter"):
        OrderPreservingPostprocessor(read_source=lambda name, filter: TEXT)


REFRAIN = "The waves go on and on."


def verses():
    """Nodes of a text in which a refrain comes after each verse."""
    lines = [line for seed in range(12) for line in (prose(12, seed), REFRAIN)]
    return [TextNode(text=line, metadata={"file_name": "song.txt"}) for line in lines]


def song(nodes):
    return {"song.txt": "\n".join(node.text for node in nodes)}


class InAnySequence(LlamaIndexSimple):
    """As a store that lists its nodes by random ids, such as Qdrant."""

    in_insertion_order = False

    def in_sequence(self, keys):
        return None

    def chunks(self, field="", sources=()):
        return sorted(super().chunks(field, sources), key=lambda stored: stored.key)


@pytest.mark.parametrize("in_sequence", [True, False])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_neighbors_are_those_in_the_text(monkeypatch, in_sequence, k):
    monkeypatch.setattr(adapter, "_registered", {})
    if not in_sequence:
        register_store(SimpleVectorStore, InAnySequence)
    nodes = verses() if in_sequence else [node for node in verses() if node.text != REFRAIN]
    plain = index_of(nodes).as_retriever(similarity_top_k=k)
    base = numbers(plain.retrieve(QUESTION), nodes)
    retriever = OrderPreservingRetriever(retriever=plain, neighbors=1, read_source=song(nodes))
    found, _ = asked(retriever.retrieve)
    around = {near for number in base for near in (number - 1, number, number + 1)}
    assert numbers(found, nodes) == sorted(around & set(range(len(nodes))))
    if not in_sequence:
        # Without the text nothing tells what is around a node.
        without, _ = asked(OrderPreservingRetriever(retriever=plain, neighbors=1).retrieve)
        assert numbers(without, nodes) == base
