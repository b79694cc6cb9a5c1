"""Positions as LlamaIndex's readers and parsers really leave them.

What is measured is the order: 0 inverted pairs where the metadata can tell, and never a wrong order without a word.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    SentenceSplitter,
    get_leaf_nodes,
)
from llama_index.core.retrievers import AutoMergingRetriever, VectorIndexRetriever
from llama_index.core.schema import BaseNode, Document
from llama_index.core.storage.docstore import SimpleDocumentStore

from oprag import Chunk, PositionKind
from oprag._internal.warn import forget
from oprag.errors import PositionWarning
from oprag.llama_index import OrderPreservingPostprocessor, StampPositions
from tests.adapters.llama_index.conftest import HashedWords, inversions, places, prose, ranked

DRAWS = 100


class Outcome(NamedTuple):
    """Of many random retrievals.

    Attributes:
        inverted: Inverted pairs in all of them.
        kinds: How the positions were known.
        silent: How often the order was wrong, and no warning was given.
    """

    inverted: int
    kinds: set[PositionKind]
    silent: int


def _outcome(nodes: Sequence[BaseNode], k: int, *, draws: int = DRAWS, text: Document | None = None) -> Outcome:
    """The nodes come in the sequence of the source, whose text may be given."""
    postprocessor = OrderPreservingPostprocessor(read_source=None if text is None else [text])
    rng = random.Random(k)
    inverted = silent = 0
    kinds: set[PositionKind] = set()
    for _ in range(draws):
        given = ranked(rng.sample(nodes, k))
        # Each draw is a process of its own, which is warned once.
        forget()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            context = postprocessor.get_context(given)
        warned = any(issubclass(warning.category, PositionWarning) for warning in caught)
        inverted += inversions(places(nodes, [chunk.origin for chunk in context.kept]))
        silent += not warned and inversions(places(nodes, [chunk.origin for chunk in context.kept])) > 0
        assert len(context.kept) == k
        kinds |= {report.kind for report in context.sources}
    return Outcome(inverted, kinds, silent)


def _text(seed: int, sentences: int = 300) -> Document:
    return Document(text=prose(random.Random(seed), sentences), metadata={"file_name": "book.txt"})


# Two stages


def _sections(seed: int) -> Document:
    rng = random.Random(seed)
    sections = (
        f"{'#' * rng.randint(1, 3)} Heading {number}\n\n{prose(rng, 8, first=8 * number)}" for number in range(20)
    )
    return Document(text="\n\n".join(sections), metadata={"file_name": "guide.md"})


def _two_stages(document: Document) -> list[BaseNode]:
    return SentenceSplitter(chunk_size=64, chunk_overlap=0)(MarkdownNodeParser()([document]))


@pytest.mark.parametrize("k", [4, 10, 16, 24, 30])
def test_markdown_then_sentences_unstamped_is_never_wrong_silently(k: int):
    outcome = _outcome(_two_stages(_sections(1)), k)
    assert outcome.kinds <= {PositionKind.LINKS, PositionKind.OFFSET, PositionKind.NONE}
    assert outcome.silent == 0


# Levels


def _levels() -> list[BaseNode]:
    return HierarchicalNodeParser.from_defaults(chunk_sizes=[512, 128, 64], chunk_overlap=0)([_text(3)])


@pytest.mark.parametrize("k", [4, 16, 30, 50])
def test_hierarchical_leaves_unstamped_are_never_wrong_silently(k: int):
    leaves = get_leaf_nodes(_levels())
    outcome = _outcome(leaves, k)
    assert outcome.kinds <= {PositionKind.LINKS, PositionKind.NONE}
    assert outcome.silent == 0


def _merging(nodes: Sequence[BaseNode], leaves: Sequence[BaseNode]) -> AutoMergingRetriever:
    """The parents are in the document store, the leaves in the index too."""
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    context = StorageContext.from_defaults(docstore=docstore)
    index = VectorStoreIndex(leaves, storage_context=context, embed_model=HashedWords())
    return AutoMergingRetriever(VectorIndexRetriever(index, similarity_top_k=24), context)


@pytest.mark.parametrize("stamped", ["all", "leaves", "none"])
def test_merged_parents_are_never_wrong_silently(stamped: str):
    document = _text(3)
    nodes: list[BaseNode] = HierarchicalNodeParser.from_defaults(chunk_sizes=[512, 128, 64], chunk_overlap=0)(
        [document]
    )
    if stamped == "all":
        nodes = StampPositions()(nodes)
    leaves = get_leaf_nodes(nodes)
    retriever = _merging(nodes, StampPositions()(leaves) if stamped == "leaves" else leaves)
    parents = placed = inverted = 0
    for number in range(0, 300, 3):
        forget()  # each question is a process of its own
        found = retriever.retrieve(f"S{number} S{number + 9}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            context = OrderPreservingPostprocessor().get_context(found)
        starts = [(document.text.index(chunk.text), -len(chunk.text)) for chunk in context.kept]
        merged = [chunk for chunk in context.kept if chunk.child_ids]
        parents += len(merged)
        placed += sum(chunk.position is not None and chunk.position.known for chunk in merged)
        inverted += starts != sorted(starts)
        assert starts == sorted(starts) or caught
        # What has a place is at its place.
        if stamped != "none":
            known = [place for place, chunk in zip(starts, context.kept, strict=True) if _is_placed(chunk)]
            assert known == sorted(known)
    assert parents > 50
    if stamped == "all":
        assert (placed, inverted) == (parents, 0)


def _is_placed(chunk: Chunk) -> bool:
    return chunk.position is not None and chunk.position.known
