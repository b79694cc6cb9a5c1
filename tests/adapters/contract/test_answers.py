"""`answer` and `compare`: all that is known about an answer, and several methods over one search."""

from __future__ import annotations

from typing import Any

import pytest

from oprag.errors import OptionError, QueryError
from tests.adapters.contract.frameworks import (
    Framework,
    both_sides,
    each_framework,
    each_method,
)
from tests.adapters.scripted import METHODS, QUESTION, by_step, part_numbers

pytestmark = each_framework


@both_sides
async def test_an_answer_has_what_it_was_made_of(framework: Framework, way: str):
    model = framework.model(reply=by_step)
    answer = await framework.answer(framework.over(model, "map_reduce", max_concurrency=1), way)
    assert (answer.question, answer.method) == (QUESTION, "map_reduce")
    assert answer.text == str(answer) == by_step(model.read[-1])
    assert [call.step for call in answer.calls] == ["map"] * 4 + ["reduce"]
    assert [call.prompt.text for call in answer.calls] == model.read
    assert [call.reply for call in answer.calls] == list(map(by_step, model.read))
    assert part_numbers(answer.context.text) == [0, 1, 2, 3]
    assert [part_numbers(passage.text) for passage in answer.passages] == [[0], [1], [2], [3]]
    assert (answer.failed_calls, answer.notes, answer.citations) == ((), (), ())
    assert 0 <= max(call.seconds for call in answer.calls) <= answer.seconds
    assert answer.standalone_question is answer.route is answer.parsed is None


@both_sides
@pytest.mark.parametrize("question", ["", " ", None, 3, b"x", [QUESTION], {"input": QUESTION}], ids=repr)
async def test_a_question_is_a_text_with_words(framework: Framework, way: str, question: Any):
    model = framework.model()
    answerer = framework.over(model)
    with pytest.raises(QueryError):
        await framework.answer(answerer, way, question)
    with pytest.raises(QueryError):
        await framework.compare(answerer, way, ["stuff"], question)
    assert (model.calls, framework.asked(answerer)) == ([], [])


# Choices


@both_sides
@each_method
async def test_choices_reach_the_call_that_answers(framework: Framework, method: str, way: str):
    model = framework.model(reply=by_step)
    choices = ["a ship", "a {boat}"]
    answer = await framework.answer(framework.over(model, method), way, choices=choices)
    assert "A. a ship\nB. a {boat}" in model.read[-1]
    assert answer.question == QUESTION
    assert choices == ["a ship", "a {boat}"]


# Conversations


@both_sides
@each_method
async def test_a_follow_up_is_made_to_stand_by_itself(framework: Framework, method: str, way: str):
    model = framework.model(reply=by_step)
    answerer = framework.over(model, method, max_concurrency=1)
    said = framework.conversation("Who sailed?", "Ada {sailed}.")
    answer = await framework.answer(answerer, way, "And then?", chat_history=said)
    assert model.read[0] == "CONDENSE Human: Who sailed?\nAssistant: Ada {sailed}. Q: And then?"
    assert answer.standalone_question == by_step(model.read[0])
    assert framework.asked(answerer)[0] == answer.standalone_question
    assert (answer.question, answer.calls[0].step) == ("And then?", "condense")


@both_sides
async def test_without_condensing_the_question_is_searched_for_as_it_is(framework: Framework, way: str):
    model = framework.model()
    prompts = {"answer": "{chat_history} {context} {question}"}
    answerer = framework.over(model, condense=False, prompts=prompts)
    said = framework.conversation("Who sailed?", "Ada {sailed}.")
    answer = await framework.answer(answerer, way, "And then?", chat_history=said)
    assert framework.asked(answerer) == ["And then?"]
    assert model.read[0].startswith("Human: Who sailed?\nAssistant: Ada {sailed}.")
    assert answer.standalone_question is None


# Comparisons


@both_sides
async def test_methods_share_one_search(framework: Framework, way: str):
    answerer = framework.over(framework.model(reply=by_step))
    methods = ["stuff", "refine", "map_reduce", "map_rerank", "long_context", "self_route"]
    compared = await framework.compare(answerer, way, methods)
    assert [answer.method for answer in compared] == methods
    assert framework.asked(answerer) == [QUESTION]
    assert [row["calls"] for row in compared.rows()] == [1, 4, 5, 4, 1, 2]
    assert all(answer.context is compared[0].context for answer in compared)


@both_sides
async def test_a_comparison_gives_what_each_method_gives(framework: Framework, way: str):
    compared = await framework.compare(framework.over(framework.model(reply=by_step), max_concurrency=1), way)
    for answer in compared:
        alone = framework.over(framework.model(reply=by_step), answer.method, max_concurrency=1).answer(QUESTION)
        assert (answer.text, len(answer.calls)) == (alone.text, len(alone.calls))
    assert [answer.method for answer in compared] == METHODS


@both_sides
async def test_what_belongs_to_a_question_belongs_to_its_comparison(framework: Framework, way: str):
    model = framework.model(reply=by_step)
    answerer = framework.over(model)
    given = {"choices": ["a storm", "a calm"], "chat_history": framework.conversation("Who sailed?", "Ada.")}
    compared = await framework.compare(answerer, way, ["stuff", "map_rerank"], "And?", **given)
    assert {answer.standalone_question for answer in compared} == set(framework.asked(answerer))
    assert len(framework.asked(answerer)) == 1
    assert [text[:8] for text in model.read].count("CONDENSE") == 1
    asked = [call.prompt.text for answer in compared for call in answer.calls if call.step != "condense"]
    assert len(asked) == 5
    assert all(text.endswith("A. a storm\nB. a calm") for text in asked)


@both_sides
@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (["stuff", "guess"], "unknown method 'guess'"),
        (["stuff", "long_context"], "read_source"),
        (["self_route"], "read_source"),
        (["reciprocal"], "embed"),
        ([3], "method must be"),
    ],
    ids=str,
)
async def test_a_comparison_is_checked_before_anything_is_spent(
    framework: Framework, way: str, methods: Any, message: str
):
    model = framework.model()
    lacks: dict[str, Any] = {"read_source": None, framework.embedder_option: None}
    answerer = framework.over(model, **lacks)
    with pytest.raises(OptionError, match=message):
        await framework.compare(answerer, way, methods)
    assert (model.calls, framework.asked(answerer)) == ([], [])
