"""Bad input: a clear error or the documented policy, nothing lost, nothing repeated, no foreign traceback."""

from __future__ import annotations

import math
import random
import warnings
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import (
    Document,
    NodeWithScore,
    TextNode,
)

from oprag.errors import ChunkError, OpragWarning
from oprag.llama_index import OrderPreservingPostprocessor
from tests.adapters.llama_index.conftest import numbered, ranked, stamped_node, texts

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


# The core's tests have more; these are handled by LlamaIndex, too.
VALUES: list[Any] = [
    None,
    math.nan,
    -1,
    True,
    "",
    "10",
    9,
    "iv",
    10**400,
    [1, 2],
    {"a": {"b": [1]}},
    b"7",
    np.int64(4),
    len,
]
KEYS = ["chunk_index", "page_label", "start_char_idx", "row", "source", "file_name"]


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
