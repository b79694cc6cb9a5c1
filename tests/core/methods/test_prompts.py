from collections.abc import Mapping
from typing import Any

import pytest

from oprag.errors import OptionError, PromptError
from oprag.methods import MethodOptions, TextTemplate
from tests.core.methods.helpers import QUESTION, World, parts


def with_prompts(prompts: Mapping[str, Any]) -> MethodOptions:
    return MethodOptions(prompts=prompts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("step", "text"),
    [
        pytest.param("answer", "{context}\n{input}", id="create_stuff_documents_chain"),
        pytest.param("answer", "{context}\n{query}", id="retrieval QA"),
        pytest.param("answer", "{context_str}\n{query_str}", id="LlamaIndex text_qa_template"),
        pytest.param("refine", "{existing_answer}\n{context_msg}\n{query_str}", id="LlamaIndex refine_template"),
        pytest.param("refine", "{existing_answer}\n{context_str}\n{question}", id="LangChain refine_prompt"),
        pytest.param("map", "{text}\n{question}", id="LangChain map prompt"),
        pytest.param("reduce", "{summaries}\n{question}", id="LangChain combine prompt"),
        pytest.param("reduce", "{context_str}\n{query_str}", id="LlamaIndex summary_template"),
    ],
)
def test_prompts_of_the_frameworks_work_unchanged(step, text):
    method = {"refine": "refine", "map": "map_reduce", "reduce": "map_reduce"}.get(step, "stuff")
    world = World(parts(2), answer="A draft.", map="A draft.")
    world.answer(method=method, prompts={step: text})
    (sent,) = world.texts(step)[:1]
    lines = sent.splitlines()
    assert lines[-1] == QUESTION
    assert ("Part" in lines[-2]) == (step in ("answer", "refine", "map"))
    assert ("A draft." in sent) == (step in ("refine", "reduce"))


@pytest.mark.parametrize(
    ("prompts", "error", "message"),
    [
        *[
            ({name: "x"}, OptionError, f"unknown prompt {name!r}; expected one of answer, refine")
            for name in ("anwser", "", "messages", "__class__")
        ],
        *[(prompts, OptionError, "mapping of names to prompts") for prompts in ("{context}", 5, [("answer", "x")])],
        *[({"answer": value}, PromptError, "the answer prompt") for value in (None, 5, b"x", object())],
        *[
            ({"instruction": value}, PromptError, "instruction must be a string")
            for value in (None, 5, TextTemplate("x"))
        ],
    ],
    ids=range(14),
)
def test_what_are_no_prompts_is_refused(prompts, error, message):
    with pytest.raises(error, match=message):
        with_prompts(prompts)
