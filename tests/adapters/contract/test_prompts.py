"""Prompts of plain strings: what fills them is data, and one that cannot work is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from oprag.errors import PromptError
from tests.adapters.contract.frameworks import SOURCE, Framework, each_framework, each_method, each_way
from tests.adapters.scripted import HOSTILE, STEPS, by_step

pytestmark = each_framework


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("prompts", [STEPS, {}], ids=["own", "ours"])
@each_method
async def test_questions_passages_and_conversations_are_data(
    framework: Framework, method: str, prompts: Any, text: str
):
    """Every letter reaches the model, and nothing else of the prompt changes."""
    retriever = framework.retriever([(text, {"source": SOURCE, "chunk_index": 0})])
    reads: list[list[str]] = []
    for way in ("once", "async_once"):
        model = framework.model(reply=by_step if prompts else lambda prompt: "Unanswerable.")
        answerer = framework.over(
            model, method, retriever=retriever, prompts=prompts, passage_tokens=1_024, read_source={SOURCE: text}
        )
        await framework.answer(answerer, way, f"{text}?", chat_history=framework.conversation(text, text))
        condense, *others = model.read
        assert condense.count(text) >= 3
        assert any(text in prompt for prompt in others)
        reads.append(sorted(model.read))
    assert reads[0] == reads[1]


@each_way
async def test_a_field_without_a_value_is_named(framework: Framework, way: str):
    model = framework.model()
    answerer = framework.over(model, prompts={"answer": "{tone} {context} {question}"})
    with pytest.raises(PromptError, match="tone"):
        await framework.run(answerer, way)
    assert model.calls == []


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ({"answer": "{question}"}, "the field {context}"),
        ({"answer": "{context}"}, "the field {question}"),
        ({"refine": "{context} {question}"}, "the field {existing_answer}"),
        ({"answer": 5}, "answer"),
        ({"answer": None}, "answer"),
        ({"anwser": "{context} {question}"}, "anwser"),
    ],
    ids=str,
)
def test_a_prompt_without_what_its_step_needs_is_refused(framework: Framework, prompts: Any, message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        framework.over(framework.model(), prompts=prompts)
