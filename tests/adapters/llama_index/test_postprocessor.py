"""The postprocessor: ranks from places in the list, the given objects in source order, nothing changed."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter
from llama_index.core.postprocessor import LongContextReorder
from llama_index.core.schema import (
    Document,
    ImageNode,
    NodeWithScore,
    TextNode,
)

from oprag.errors import RetrievalWarning
from oprag.llama_index import OrderPreservingPostprocessor, StampPositions
from tests.adapters.llama_index.conftest import (
    numbered,
    numbers,
    places,
    prose,
    ranked,
    stamped_node,
)


def test_gives_the_given_objects_in_source_order():
    given = numbered([7, 2, 9, 0])
    kept = OrderPreservingPostprocessor().postprocess_nodes(given)
    assert numbers(kept) == [0, 2, 7, 9]
    assert all(any(node is scored for scored in given) for node in kept)
    assert [scored.score for scored in kept] == [1 / 4, 1 / 2, 1, 1 / 3]


@pytest.mark.parametrize("tied", [0, 4])
@pytest.mark.parametrize("number", [12, 13])
def test_a_cut_behind_long_context_reorder_warns(number: int, tied: int):
    nodes = numbered(range(number))
    for scored in nodes[3 : 3 + tied]:
        scored.score = nodes[3].score
    given = LongContextReorder().postprocess_nodes(nodes)
    with pytest.warns(RetrievalWarning, match='the best nodes are at both ends .*LongContextReorder.* order="edges"'):
        OrderPreservingPostprocessor(k=5).postprocess_nodes(given)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "scores",
    [
        pytest.param([number / 20 for number in range(12)], id="distances"),
        pytest.param([0.9, 0.5, 0.8, 0.4, 0.7, 0.3, 0.6, 0.2, 0.1, 0.05], id="diverse"),
        pytest.param([0.9, 0.7, 0.5, 0.4, 0.6, 0.8], id="few"),
        pytest.param([0.5] * 12, id="equal"),
        pytest.param([*[0.5] * 5, 0.3, 0.2, 0.4, *[0.5] * 4], id="few different"),
        pytest.param([None] * 12, id="none"),
    ],
)
def test_other_scores_do_not_warn(scores: list[float | None]):
    given = [NodeWithScore(node=stamped_node("text", number), score=score) for number, score in enumerate(scores)]
    assert len(OrderPreservingPostprocessor(k=5).postprocess_nodes(given)) == 5


@pytest.mark.filterwarnings("ignore::oprag.errors.PositionWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3},
        {"token_budget": 60},
        {"annotate": True},
        {"stitch": True},
        {"stitch": True, "annotate": True, "token_budget": 60, "header": "{source}"},
        {"order": "random"},
        {"on_missing_position": "drop"},
    ],
)
def test_nothing_given_is_changed(options: dict[str, Any]):
    document = Document(text=prose(random.Random(1), 30), metadata={"file_name": "book", "tags": ["a", {"b": 1}]})
    nodes = SentenceSplitter(chunk_size=64, chunk_overlap=16)([document])
    random.Random(2).shuffle(nodes)
    given = [*ranked(nodes), NodeWithScore(node=ImageNode(image_path="a.png", metadata={"file_name": "book"}))]
    sequence, before = list(given), copy.deepcopy(given)
    OrderPreservingPostprocessor(**options).postprocess_nodes(given)
    assert all(now is then for now, then in zip(given, sequence, strict=True))
    assert [scored.to_dict() for scored in given] == [scored.to_dict() for scored in before]


def test_annotated_copies_say_how_they_were_placed():
    given = numbered([7, 2], start_char_idx=40, end_char_idx=47)
    given[1].node.metadata |= {"start_char_idx": 10, "end_char_idx": 17}
    first, second = OrderPreservingPostprocessor(annotate=True).postprocess_nodes(given)
    assert first.node.metadata["oprag"] == {
        "rank": 1,
        "score": 0.5,
        "similarity": None,
        "id": "book-2",
        "source": "book",
        "position": 2,
        "kind": "stamped",
        "span": {"start": 10, "end": 17, "page": None},
        "neighbor_of": None,
    }
    assert (second.node.metadata["oprag"]["rank"], second.score, second.text) == (0, 1.0, "text 7.")
    assert "oprag" not in given[0].node.metadata


def test_stitched_nodes_have_true_offsets_and_stable_ids():
    text = prose(random.Random(5), 60)
    document = Document(text=text, metadata={"file_name": "book"})
    nodes = TokenTextSplitter(chunk_size=64, chunk_overlap=20, include_metadata=False)([document])
    given = ranked([nodes[1], nodes[0], nodes[4]])
    first, second = OrderPreservingPostprocessor(stitch=True).postprocess_nodes(given)
    for passage in (first, second):
        assert isinstance(passage.node, TextNode)
        assert text[passage.node.start_char_idx : passage.node.end_char_idx] == passage.text
    again = OrderPreservingPostprocessor(stitch=True).postprocess_nodes(given)
    assert [passage.node_id for passage in again] == [first.node_id, second.node_id]
    assert len({first.node_id, second.node_id}) == 2


def _pymupdf_nodes(file: str) -> list[TextNode]:
    """Pages as `PyMuPDFReader` of llama-index-readers-file 0.7 makes them, split: the page number is in `source`."""
    pages = [
        Document(
            text=prose(random.Random(f"{file} {page}"), 30),
            metadata={"total_pages": 12, "file_path": file, "source": f"{page}"},
        )
        for page in range(1, 13)
    ]
    nodes = SentenceSplitter(chunk_size=100, chunk_overlap=0).get_nodes_from_documents(pages)
    assert len(nodes) > 24
    return [node for node in nodes if isinstance(node, TextNode)]


@pytest.mark.parametrize("stamped", [False, True])
def test_a_page_number_in_source_is_a_page_and_not_a_source(stamped: bool):
    files = ["/data/a.pdf", "/data/b.pdf"]
    nodes: list[Any] = [node for file in files for node in _pymupdf_nodes(file)]
    if stamped:
        nodes = StampPositions()(nodes)
    given = ranked(random.Random(5).sample(nodes, len(nodes)))
    kept = OrderPreservingPostprocessor(source_ranking="name").postprocess_nodes(given)
    assert places(nodes, kept) == list(range(len(nodes)))
