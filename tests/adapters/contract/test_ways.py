"""Sync, async and streamed, in both frameworks: the same prompts in the same sequence, and one answer."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from oprag.methods import Generate, Result, Retrieve, method_names, register_method, registry
from tests.adapters.contract.frameworks import (
    KINDS_OF_MODEL,
    WAYS,
    Framework,
    both_streams,
    each_framework,
    each_kind_of_model,
    each_way,
)
from tests.adapters.scripted import METHODS, by_step
from tests.helpers import prose

SOURCES = {name: prose(400, seed) for seed, name in enumerate(["north.txt", "south.txt"])}

# The calls for four passages, by the formulas of the methods; two variants come back where they are asked for.
CALLS = {
    "stuff": ["answer"],
    "refine": ["answer", "refine", "refine", "refine"],
    "map_reduce": ["map"] * 4 + ["reduce"],
    "map_rerank": ["rerank"] * 4,
    "step_down": ["variants", "answer", "answer", "aggregate"],
    "reciprocal": ["variants", "answer", "answer", "aggregate"],
    "long_context": ["answer"],
    "self_route": ["route", "answer"],
    "check_twice": ["answer", "answer", "refine"],
}

each_method = pytest.mark.parametrize("method", CALLS)


def check_twice(task: Any) -> Any:
    """A method of a user's own: two calls at once, and one that is shown."""
    (context,) = yield Retrieve((task.question,))
    drafts = yield Generate(tuple(task.prompt("answer", context=context.text) for _ in range(2)))
    checked = task.prompt("refine", existing_answer=drafts[0].text, context=context.text)
    (answer,) = yield Generate((checked,), final=True)
    return Result(answer.text, (context,), passages=context.passages)


@pytest.fixture(autouse=True)
def own_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered for these tests alone."""
    monkeypatch.setattr(registry, "_methods", dict(registry._methods))
    register_method("check_twice", check_twice)


def found() -> list[tuple[str, dict[str, Any]]]:
    """Pieces of both sources, some of which touch, with those of the other source between them; best first."""
    pieces = []
    for name, text in SOURCES.items():
        third = len(text) // 3
        pieces += [
            (text[start : start + 150], {"source": name, "start_index": start}) for start in (0, 150, third, 2 * third)
        ]
    return [pieces[place] for place in (5, 2, 7, 0, 4, 1, 6, 3)]


def reply(prompt: str) -> str:
    """What fits a step of our own prompts, and depends on every letter of the prompt."""
    number = zlib.crc32(prompt.encode())
    if "Confidence: <number>" in prompt:
        return f"Reranked {number} [1].\nConfidence: {number % 101}"
    if "One question per line" in prompt:
        return "\n".join(f"{count}. Who was {number + count}?" for count in range(1, 5))
    if 'the single word "unanswerable"' in prompt:
        return "Unanswerable."
    if "understood without the conversation" in prompt:
        return f"What about {number}?"
    return f"Answer {number} [1], and [2] so on."


def over_sources(framework: Framework, **options: Any) -> tuple[Any, Any]:
    """A model, and what answers with it over two sources, with our own prompts."""
    model = framework.model(reply=reply)
    given = {
        "retriever": framework.retriever(found()),
        "prompts": {},
        "read_source": SOURCES,
        "max_concurrency": 1,
        "passage_tokens": 60,
    }
    return model, framework.over(model, **given | options)


def test_every_registered_method_is_tried():
    assert set(method_names()) == set(CALLS) == {*METHODS, "check_twice"}


@each_method
async def test_prompts_answers_and_documents_are_the_same_every_way(method: str):
    seen, said = [], []
    for framework in KINDS_OF_MODEL:
        for way in WAYS:
            model, answerer = over_sources(framework, method=method)
            text, documents = await framework.result(answerer, way)
            seen.append((text, documents, model.read))
            if framework.chats:
                said.append(framework.said(model))
    assert all(seen[0])
    assert seen[1:] == seen[:1] * 11
    assert said[1:] == said[:1] * 7


@each_kind_of_model
@both_streams
@each_method
async def test_the_answer_is_streamed_where_its_last_call_is_the_answer(framework: Framework, way: str, method: str):
    answerer = framework.over(framework.model(reply=by_step), method)
    pieces = [piece async for piece in framework.pieces(answerer, way, "Who?") if piece]
    text = "".join(pieces)
    # The best of several answers is known only when all of them are there.
    assert len(pieces) == (1 if method == "map_rerank" else len(text.split()))
    assert text == await framework.run(answerer, "once", "Who?")


@each_framework
@each_way
@pytest.mark.parametrize(
    ("route", "refuses"),
    [
        ("Unanswerable.", True),
        ("", True),
        ("Unanswerable questions are rare.", False),
        ("Un able to say more.", False),
    ],
)
async def test_a_refusal_is_never_shown(framework: Framework, way: str, route: str, refuses: bool):
    model = framework.model(reply=lambda prompt: route if prompt.startswith("ROUTE") else "From the whole.")
    answerer = framework.over(model, "self_route")
    assert await framework.run(answerer, way) == ("From the whole." if refuses else route)
    assert len(model.calls) == (2 if refuses else 1)
    assert (await framework.answer(answerer, way)).route == ("long_context" if refuses else "rag")
