"""What the chain and the query engine are asked, and what has to be true of every answer."""

from __future__ import annotations

from typing import Any

from oprag.methods import Answer
from tests.integration.wire import Wire

METHODS = ["stuff", "refine", "map_reduce", "map_rerank", "step_down", "reciprocal", "long_context", "self_route"]
ORDERED = ["stuff", "refine", "map_reduce", "map_rerank"]
QUESTION = "What does the break statement do?"
CHUNKS = 3
VARIANTS = 2

ASSEMBLY: dict[str, Any] = {"k": CHUNKS, "token_budget": 300}
HOW: dict[str, Any] = {
    "passage_tokens": 95,
    "variants": VARIANTS,
    "source_token_budget": 400,
    "overflow": "truncate_middle",
    "max_concurrency": 2,
}


def check_calls(answer: Answer, wire: Wire) -> None:
    """The record of an answer is what was sent, what came back, and what the server counted."""
    assert len(wire.exchanges) == len(answer.calls)
    sent = {exchange.text: exchange for exchange in wire.exchanges}
    assert len(sent) == len(answer.calls)
    for call in answer.calls:
        exchange = sent["\n".join(message.content for message in call.prompt.messages)]
        assert call.reply == exchange.reply
        assert call.usage == exchange.usage
    assert answer.usage == wire.usage
    assert answer.usage.input_tokens > 50 * len(answer.calls)
    assert not answer.usage.estimated


def check_method(answer: Answer, method: str) -> None:
    """As many calls as the method's formula says, and an answer that was made as the method makes it."""
    steps = [call.step for call in answer.calls]
    read = len(answer.passages)
    asked = len(answer.answers)
    expected = {
        "stuff": ["answer"],
        "refine": ["answer"] + ["refine"] * (read - 1),
        "map_reduce": ["map"] * read + ["reduce"],
        "map_rerank": ["rerank"] * read,
        "step_down": ["variants"] + ["answer"] * asked + ["aggregate"],
        "reciprocal": ["variants"] + ["answer"] * asked + ["aggregate"],
        "long_context": ["answer"],
        "self_route": ["route"] if answer.route == "rag" else ["route", "answer"],
    }[method]
    assert steps == expected
    assert answer.method == method
    assert answer.text.strip()
    if method in ("refine", "map_reduce", "map_rerank"):
        assert read >= 2
    if method == "map_rerank":
        assert answer.text in [one.text for one in answer.answers if one.chosen]
    else:
        assert answer.text == answer.calls[-1].reply
    if method in ("step_down", "reciprocal"):
        assert 1 <= asked <= VARIANTS
        assert len(answer.contexts) == asked + 1
    if method == "reciprocal":
        assert all(one.cosine is not None and -1 <= one.cosine <= 1 for one in answer.answers)
        assert any(one.chosen for one in answer.answers)


def check_order(answer: Answer) -> None:
    """The model read the chunks in the order of their source, which is not that of the search."""
    context = answer.context
    assert context is not None
    assert [chunk.rank for chunk in context.kept] != sorted(chunk.rank for chunk in context.kept)
    starts = [chunk.metadata["start_index"] for chunk in context.kept]
    assert len(starts) == CHUNKS
    assert starts == sorted(starts)
    read = "\n".join(call.prompt.text for call in answer.calls)
    places = [read.index(chunk.text.strip()) for chunk in context.kept]
    assert places == sorted(places)
