"""Bad input: a clear error or the documented policy, nothing lost, nothing repeated, no foreign traceback."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import (
    Document,
    TextNode,
)

from oprag.errors import ChunkError
from oprag.llama_index import OrderPreservingPostprocessor
from tests.adapters.llama_index.conftest import numbered, ranked, stamped_node

OPTIONS: list[dict[str, Any]] = [
    {},
    {"annotate": True},
    {"stitch": True},
    {"token_budget": 100_000, "count_tokens": len},
]


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
