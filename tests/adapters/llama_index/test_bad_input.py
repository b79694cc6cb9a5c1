"""Bad input: a clear error or the documented policy, nothing lost, nothing repeated, no foreign traceback."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from pydantic import AnyUrl

from oprag.errors import ChunkError, OpragWarning
from oprag.llama_index import OrderPreservingPostprocessor, StampPositions
from tests.adapters.llama_index.conftest import numbered, numbers, ranked, stamped_node, texts

OPTIONS: list[dict[str, Any]] = [
    {},
    {"annotate": True},
    {"stitch": True},
    {"token_budget": 100_000, "count_tokens": len},
]


def _ids(nodes: list[NodeWithScore]) -> list[str]:
    return sorted(scored.node_id for scored in nodes)


def _quietly(nodes: list[NodeWithScore], **options: Any) -> list[NodeWithScore]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpragWarning)
        return OrderPreservingPostprocessor(**options).postprocess_nodes(nodes)


# Wrong types


@pytest.mark.parametrize("bad", [None, "text", 5, {"text": "x"}, TextNode(text="x"), Document(text="x")])
def test_what_is_no_scored_node_is_refused(bad: Any):
    with pytest.raises(ChunkError, match=f"NodeWithScore objects, got {type(bad).__name__} at index 1"):
        OrderPreservingPostprocessor().postprocess_nodes([*numbered([1]), bad])


@pytest.mark.parametrize("bad", [None, 5, numbered([1])[0], TextNode(text="x")])
async def test_what_is_no_list_is_refused(bad: Any):
    postprocessor = OrderPreservingPostprocessor()
    with pytest.raises(ChunkError):
        postprocessor.postprocess_nodes(bad)
    with pytest.raises(ChunkError):
        await postprocessor.apostprocess_nodes(bad)
    with pytest.raises(ChunkError):
        postprocessor.get_context(bad)


@pytest.mark.parametrize("wrap", [tuple, iter, lambda nodes: (scored for scored in nodes)])
def test_any_sequence_of_nodes_will_do(wrap: Callable[[Any], Any]):
    assert numbers(OrderPreservingPostprocessor().postprocess_nodes(wrap(numbered([2, 1])))) == [1, 2]


# Metadata

VALUES: list[Any] = [
    None,
    math.nan,
    math.inf,
    -1,
    -0.5,
    True,
    False,
    "",
    "  ",
    "10",
    "9.0",
    9,
    10.0,
    "iv",
    "A-1",
    "²",
    "1_0",
    "nan",
    10**400,
    [],
    [1, 2],
    {},
    {"a": {"b": [1]}},
    (1, 2),
    {3, 4},
    b"7",
    1 + 2j,
    Decimal(3),
    np.int64(4),
    np.float32("nan"),
    np.array([1, 2]),
    object(),
    ValueError("x"),
    len,
]
KEYS = [
    "chunk_index",
    "page_label",
    "page",
    "start_char_idx",
    "start_index",
    "end_index",
    "row",
    "source",
    "file_name",
    "url",
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("key", KEYS)
def test_metadata_of_every_type(key: str, options: dict[str, Any]):
    nodes = [
        TextNode(text=f"text {place}.", id_=f"{place:02}", metadata={"ref_doc_id": "book"})
        for place in range(len(VALUES))
    ]
    for node, value in zip(nodes, VALUES, strict=True):
        node.metadata[key] = value
    random.Random(1).shuffle(nodes)
    kept = _quietly(ranked(nodes), **options)
    rendered = "\n".join(texts(kept))
    assert all(rendered.count(f"text {place}.") == 1 for place in range(len(VALUES)))
    if not options.get("stitch"):
        assert _ids(kept) == _ids(ranked(nodes))


def test_dirty_metadata_in_any_combination():
    rng = random.Random(2)
    for _ in range(150):
        nodes = [
            TextNode(text=f"text {place}.", metadata={key: rng.choice(VALUES) for key in rng.sample(KEYS, 4)})
            for place in range(rng.randint(1, 12))
        ]
        given = ranked(nodes)
        kept = _quietly(given, on_missing_position=rng.choice(["last", "first"]), order=rng.choice(["source", "edges"]))
        assert _ids(kept) == _ids(given)
        assert all(any(one is other for other in given) for one in kept)


def test_numbers_as_text_stand_beside_numbers():
    """Haystack's MetaFieldGroupingRanker gives 10, 100, 9, and leaves mixed types unsorted."""
    nodes = [
        TextNode(text=str(page), metadata={"file_name": "a", "page_label": page})
        for page in ("10", 9, "100", 3, "1", 2.0)
    ]
    assert texts(_quietly(ranked(nodes))) == ["1", "2.0", "3", "9", "10", "100"]


@pytest.mark.parametrize("key", [5, None, ("a", "b")])
def test_metadata_keys_that_are_no_strings(key: Any):
    nodes = [TextNode(text=text, metadata={"file_name": "a"}) for text in "ab"]
    for node in nodes:
        node.metadata[key] = 1
    assert texts(_quietly(ranked(nodes))) == ["a", "b"]
    assert texts(_quietly(ranked(nodes), annotate=True)) == ["a", "b"]


SCORED: list[dict[str, Any]] = [*OPTIONS, {"source_ranking": "score_sum"}, {"k": 2}]


@pytest.mark.parametrize("score", [None, math.nan, math.inf, -3.0, 0.0, "0.5", "high", [0.5], True, np.array([1, 2])])
@pytest.mark.parametrize("options", SCORED)
def test_scores_of_every_kind(score: Any, options: dict[str, Any]):
    """LlamaIndex does not check a score that a postprocessor assigns."""
    given = ranked(
        stamped_node(str(number), number, source=source) for number, source in [(2, "a"), (1, "b"), (1, "a")]
    )
    for scored in given:
        scored.score = score
    postprocessor = OrderPreservingPostprocessor(**options)
    own = score if type(score) is float and math.isfinite(score) else None
    assert {chunk.score for chunk in postprocessor.get_context(given).kept} == {own}
    for scored in postprocessor.postprocess_nodes(given):
        # Nodes keep the score that they have; a passage has that of its chunks.
        assert scored.score is (own if options.get("stitch") else score)


def test_a_passage_has_the_best_usable_score_of_its_chunks():
    given = ranked(TextNode(text=text, start_char_idx=at, end_char_idx=at + 2) for at, text in ((2, "cd"), (0, "ab")))
    given[0].score, given[1].score = math.nan, np.float32(0.25)  # type: ignore[assignment]
    (passage,) = _quietly(given, stitch=True, source_key=lambda _: "book")
    assert (passage.text, passage.score) == ("abcd", 0.25)


# Links


def _linked(links: list[tuple[int, int]], count: int) -> list[TextNode]:
    """Nodes where each pair of numbers is a NEXT link and the PREVIOUS link that belongs to it."""
    nodes = [TextNode(id_=str(number), text=f"text {number}.", metadata={"file_name": "a"}) for number in range(count)]
    for first, second in links:
        nodes[first].relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=str(second))
        nodes[second].relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=str(first))
    return nodes


LINKS = {
    "circle": [(0, 1), (1, 2), (2, 0)],
    "self": [(0, 0), (1, 1)],
    "branch": [(0, 1), (2, 1), (0, 2)],
    "circle beside a line": [(0, 1), (1, 0), (2, 3), (3, 4)],
}


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
def test_links_that_lead_nowhere_lose_nothing(links: list[tuple[int, int]]):
    nodes = _linked(links, 5)
    for seed in range(10):
        given = ranked(random.Random(seed).sample(nodes, 5))
        assert _ids(_quietly(given)) == _ids(given)


def test_a_line_beside_a_circle_is_still_followed():
    nodes = _linked(LINKS["circle beside a line"], 5)
    kept = _quietly(ranked([nodes[4], nodes[0], nodes[3], nodes[1], nodes[2]]))
    assert [scored.node_id for scored in kept[:3]] == ["2", "3", "4"]


def test_links_that_are_lists_or_lead_outside():
    first, second, third = _linked([], 3)
    first.relationships[NodeRelationship.NEXT] = [RelatedNodeInfo(node_id="1"), RelatedNodeInfo(node_id="2")]
    second.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id="elsewhere")
    third.relationships[NodeRelationship.SOURCE] = [RelatedNodeInfo(node_id="a")]
    third.relationships[NodeRelationship.PARENT] = [RelatedNodeInfo(node_id="b")]
    given = ranked([third, first, second])
    assert _ids(_quietly(given)) == _ids(given)


# Nodes without a text


def _images() -> list[NodeWithScore]:
    """Two pictures on each page."""
    return ranked(
        ImageNode(
            id_=f"{page}-{name}", image_path=f"{page}-{name}.png", metadata={"file_name": "a", "page_label": str(page)}
        )
        for page in (3, 1, 2)
        for name in "xy"
    )


@pytest.mark.parametrize("options", OPTIONS)
def test_pictures_stand_by_their_pages_and_none_is_lost(options: dict[str, Any]):
    kept = _quietly(_images(), **options)
    paths = [getattr(scored.node, "image_path", None) for scored in kept]
    assert paths == ["1-x.png", "1-y.png", "2-x.png", "2-y.png", "3-x.png", "3-y.png"]


@pytest.mark.parametrize("options", OPTIONS)
def test_nodes_of_every_kind_beside_each_other(options: dict[str, Any]):
    nodes = [
        IndexNode(index_id="table", text="", obj=TextNode(text="whole table")),
        ImageNode(image_url="https://example.org/a.png"),
        Node(image_resource=MediaResource(url=AnyUrl("https://example.org/b.png"))),
        Node(text_resource=MediaResource(text="multimodal")),
        Document(text="document"),
        Document(),
        TextNode(text=""),
        TextNode(text="text"),
    ]
    for number, node in enumerate(nodes):
        node.metadata |= {"file_name": "a", "row": 100 - number}
    kept = _quietly(ranked(nodes), **options)
    assert [type(scored.node) for scored in kept if isinstance(scored.node, ImageNode | IndexNode)] == [
        ImageNode,
        IndexNode,
    ]
    if not options.get("stitch"):
        assert [scored.node_id for scored in kept] == [node.node_id for node in reversed(nodes)]


@pytest.mark.parametrize("start", [None, -1, 5])
@pytest.mark.parametrize("end", [None, -1, 2, 10**9])
def test_offsets_that_cannot_be(start: int | None, end: int | None):
    nodes = [
        TextNode(text="one", metadata={"file_name": "a"}, start_char_idx=start, end_char_idx=end),
        TextNode(text="two", metadata={"file_name": "a"}, start_char_idx=50, end_char_idx=53),
    ]
    for options in OPTIONS:
        assert sorted(" ".join(texts(_quietly(ranked(nodes), **options))).split()) == ["one", "two"]


def test_a_start_without_an_end_is_a_position():
    nodes = [
        TextNode(text=text, metadata={"file_name": "a"}, start_char_idx=start) for text, start in (("b", 9), ("a", 0))
    ]
    assert texts(OrderPreservingPostprocessor().postprocess_nodes(ranked(nodes))) == ["a", "b"]


@pytest.mark.filterwarnings("ignore:page labels alone tell the order")
def test_documents_have_no_offsets():
    nodes = [Document(text=page, metadata={"file_name": "a", "page_label": page}) for page in ("10", "iv", "9")]
    assert [
        scored.node.get_content() for scored in OrderPreservingPostprocessor().postprocess_nodes(ranked(nodes))
    ] == ["iv", "9", "10"]


# Duplicates


def test_the_same_node_twice_is_one():
    (first, second) = numbered([2, 1])
    kept = OrderPreservingPostprocessor().postprocess_nodes(
        [first, second, first, NodeWithScore(node=second.node, score=9.0)]
    )
    assert [id(scored) for scored in kept] == [id(second), id(first)]


def test_equal_text_elsewhere_is_no_duplicate():
    """LlamaIndex's QueryFusionRetriever makes one node of two with equal text."""
    nodes = [
        TextNode(
            text="All rights reserved.", metadata={"file_name": "a"}, start_char_idx=start, end_char_idx=start + 20
        )
        for start in (500, 0)
    ]
    kept = OrderPreservingPostprocessor().postprocess_nodes(ranked(nodes))
    assert [getattr(scored.node, "start_char_idx", None) for scored in kept] == [0, 500]


def test_equal_texts_on_one_page_are_kept():
    """A page says where a node stands only roughly, so two nodes with one text on it may be two places."""
    nodes = [TextNode(id_=name, text="n/a", metadata={"file_name": "a", "page_label": "3"}) for name in "xy"]
    assert [scored.node_id for scored in OrderPreservingPostprocessor().postprocess_nodes(ranked(nodes))] == ["x", "y"]


# Size


def _start(scored: NodeWithScore) -> int:
    assert isinstance(scored.node, TextNode)
    assert scored.node.start_char_idx is not None
    return scored.node.start_char_idx


@pytest.fixture(scope="module")
def many() -> list[NodeWithScore]:
    nodes = [
        TextNode(
            id_=str(number),
            text=f"text {number}.",
            metadata={"file_name": f"{number % 3}"},
            start_char_idx=number * 20,
            end_char_idx=number * 20 + len(f"text {number}."),
        )
        for number in range(20_000)
    ]
    random.Random(3).shuffle(nodes)
    return ranked(nodes)


@pytest.mark.parametrize("options", [{}, {"k": 4_000, "stitch": True, "token_budget": 60_000}])
def test_twenty_thousand_nodes(many: list[NodeWithScore], options: dict[str, Any]):
    kept = OrderPreservingPostprocessor(**options).postprocess_nodes(many)
    assert len(kept) > 0
    starts: dict[str, list[int]] = {}
    for scored in kept:
        starts.setdefault(scored.node.metadata["file_name"], []).append(_start(scored))
    assert all(found == sorted(found) for found in starts.values())


def test_twenty_thousand_links():
    count = 20_000
    nodes = _linked([(number, number + 1) for number in range(count - 1)], count)
    random.Random(4).shuffle(nodes)
    kept = OrderPreservingPostprocessor().postprocess_nodes(ranked(nodes))
    assert [int(scored.node_id) for scored in kept] == list(range(count))


def test_twenty_thousand_stamps(many: list[NodeWithScore]):
    stamped = StampPositions()([scored.node for scored in many])
    assert max(node.metadata["chunk_index"] for node in stamped) == 6_666
