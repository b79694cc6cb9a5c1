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
    MediaResource,
    Node,
    NodeWithScore,
    TextNode,
)

from oprag.errors import RetrievalWarning
from oprag.llama_index import OrderPreservingPostprocessor
from tests.adapters.llama_index.conftest import (
    numbered,
    numbers,
    prose,
    ranked,
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


def test_a_few_scores_can_be_at_both_ends_by_chance():
    given = LongContextReorder().postprocess_nodes(numbered(range(5)))
    assert len(OrderPreservingPostprocessor(k=3).postprocess_nodes(given)) == 3


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


def test_an_offset_in_the_source_is_not_one_on_a_page():
    text = "She left at dawn. The wind was fair. Nobody looked back."
    given = ranked(
        [TextNode(text=text[at : at + 18], metadata={"file_name": "a", "page_label": "4"}) for at in (18, 0)]
    )
    (joined,) = OrderPreservingPostprocessor(stitch=True, read_source={"a": text}).postprocess_nodes(given)
    assert isinstance(joined.node, TextNode)
    assert (joined.text, joined.node.start_char_idx) == (text[:36], None)
    assert joined.metadata["oprag"]["spans"] == [{"start": 0, "end": 36, "page": None}]


PICTURE = MediaResource(data=b"aGk=", mimetype="image/png")


@pytest.mark.parametrize(
    ("made", "passages"),
    [
        (lambda text, **about: TextNode(text=text, **about), ["one. two. ", "five. "]),
        # An index that was made of documents without a splitter returns them as nodes.
        (lambda text, **about: Document(text=text, **about), ["one. two. ", "five. "]),
        (lambda text, **about: Node(text_resource=MediaResource(text=text), **about), ["one. two. ", "five. "]),
        (
            lambda text, **about: Node(text_resource=MediaResource(text=text), image_resource=PICTURE, **about),
            ["one. ", "two. ", "five. "],
        ),
        (lambda text, **about: ImageNode(text=text, image="aGk=", **about), ["one. ", "two. ", "five. "]),
    ],
    ids=["text", "document", "node", "picture", "image"],
)
def test_what_is_nothing_but_text_is_joined(made: Any, passages: list[str]):
    found = [("five. ", 40), ("two. ", 5), ("one. ", 0)]
    given = ranked([made(text, metadata={"file_name": "book", "start_index": start}) for text, start in found])
    joined = OrderPreservingPostprocessor(stitch=True).postprocess_nodes(given)
    assert [scored.node.get_content() for scored in joined] == passages
