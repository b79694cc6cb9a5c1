"""Sync, async and streamed: the same prompts in the same sequence, and the same answers, in every method."""

from __future__ import annotations

from typing import Any

import pytest

from oprag.methods import Generate, Result, Retrieve, method_names, register, registry
from tests.adapters.langchain.chain.conftest import WAYS, Model, full_chain, run
from tests.adapters.langchain.conftest import numbers_of
from tests.adapters.scripted import METHODS, QUESTION, both_sides, by_step


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
    monkeypatch.setattr(registry, "_registered", {})
    register("check_twice", check_twice)


INPUTS: dict[str, Any] = {
    "question": QUESTION,
    "conversation": {"input": "And then?", "chat_history": [("Who sailed?", "Ada.")]},
    "choices": {"input": QUESTION, "choices": ["a storm", "a calm"]},
}


def test_every_registered_method_is_tried():
    assert method_names() == [*_ours(), "check_twice"]
    assert set(_ours()) == set(METHODS)


def _ours() -> list[str]:
    return [name for name in method_names() if name != "check_twice"]


@pytest.mark.parametrize("given", INPUTS)
@pytest.mark.parametrize("method", [*METHODS, "check_twice"])
async def test_prompts_answers_and_documents_are_the_same_every_way(method: str, given: str):
    seen: dict[str, Any] = {}
    for way in WAYS:
        model = Model(reply=by_step)
        chain = full_chain(model, method, variants=3, cite=True, max_concurrency=1)
        result = await run(chain, way, INPUTS[given])
        seen[way] = (model.calls, result["answer"], [document.page_content for document in result["context"]])
    assert seen["invoke"][0]
    for way in WAYS[1:]:
        assert seen[way] == seen["invoke"], way


@both_sides
@pytest.mark.parametrize("inner", [name for name in METHODS if name not in {"step_down", "reciprocal"}])
@pytest.mark.parametrize("method", ["step_down", "reciprocal"])
async def test_inner_methods_too(is_async: bool, method: str, inner: str):
    seen = []
    for way in ("ainvoke", "astream") if is_async else ("invoke", "stream"):
        model = Model(reply=by_step)
        chain = full_chain(model, method, inner_method=inner, variants=2, max_concurrency=1)
        result = await run(chain, way, QUESTION)
        seen.append((model.calls, result["answer"]))
    reference = Model(reply=by_step)
    expected = full_chain(reference, method, inner_method=inner, variants=2, max_concurrency=1).invoke(QUESTION)
    assert seen == [(reference.calls, expected["answer"])] * 2


@pytest.mark.parametrize("method", [*METHODS, "check_twice"])
async def test_with_many_calls_at_once_the_answer_is_the_same(method: str):
    """The last prompt is made of all replies before it, so it would differ if one stood elsewhere."""
    slow = Model(reply=by_step)
    expected = full_chain(slow, method, count=9, variants=3, max_concurrency=1).invoke(QUESTION)["answer"]
    for way in WAYS:
        model = Model(reply=by_step, seconds=0.002)
        assert (await run(full_chain(model, method, count=9, variants=3), way, QUESTION))["answer"] == expected
        assert sorted(model.read) == sorted(slow.read)


@both_sides
@pytest.mark.parametrize("method", [*METHODS, "check_twice"])
async def test_the_answer_is_streamed_where_its_last_call_is_the_answer(is_async: bool, method: str):
    chain = full_chain(Model(reply=by_step), method, variants=2)
    pieces = [piece async for piece in chain.astream(QUESTION)] if is_async else list(chain.stream(QUESTION))
    texts = [piece["answer"] for piece in pieces if "answer" in piece]
    # The best of several answers is known only when all of them are there.
    assert (len(texts) > 1) == (method != "map_rerank")
    assert "".join(texts) == chain.invoke(QUESTION)["answer"]
    assert numbers_of([document for piece in pieces for document in piece.get("context", [])]) == [0, 1, 2, 3]


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("Unanswerable.", "From the whole."),
        ("**unanswerable**", "From the whole."),
        ("Unanswerable questions are rare.", "Unanswerable questions are rare."),
        ("  \n", "From the whole."),
        ("Un able to say more.", "Un able to say more."),
    ],
)
async def test_a_refusal_is_never_shown(way: str, reply: str, shown: str):
    model = Model(reply=lambda prompt: reply if prompt.startswith("ROUTE") else "From the whole.")
    chain = full_chain(model, "self_route")
    pieces: list[Any] = (
        [piece async for piece in chain.astream(QUESTION)] if way == "astream" else list(chain.stream(QUESTION))
    )
    assert "".join(piece.get("answer", "") for piece in pieces) == shown
    assert chain.invoke(QUESTION)["answer"] == shown
