import json
import unicodedata

import pytest

from oprag import Chunk
from oprag.methods import Completion, Message, Usage
from tests.core.methods.helpers import METHODS, World, parts

HOSTILE = "a\x1b[2J\x00\r\x07\u202eb\u2028c\ud800\x9b<b>{x}\t[1]\nd"


def hostile_world() -> World:
    chunks = [
        Chunk(
            f"{HOSTILE} {number}",
            3 - number,
            metadata={"source": HOSTILE, "page": HOSTILE, "start_index": 1_000 * number},
        )
        for number in range(4)
    ]
    return World(
        [*chunks, Chunk("one", 9, metadata={"source": "s\x1b", "start_index": 0})],
        sources=lambda name: f"{HOSTILE} {name}",
        answer=Completion(HOSTILE, finish_reason="length", usage=Usage(1, 2, 3)),
        rerank=f"{HOSTILE}\nConfidence: 80",
        variants=f"Who {HOSTILE}?\n{HOSTILE} when?",
        route="unanswerable",
        condense=HOSTILE,
    )


def ask(method: str):
    return hostile_world().answer(f"Why {HOSTILE}?", method=method, cite=True)


@pytest.mark.parametrize("method", METHODS)
def test_the_report_of_hostile_text_holds_no_control_characters(method):
    report = ask(method).explain()
    assert {letter for letter in report if unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} == {"\n"}
    for part in (f"method {method}", "calls", "context", "question: Why a"):
        assert part in report


@pytest.mark.parametrize("method", METHODS)
def test_the_values_can_be_held_by_json(method):
    answer = ask(method)
    values = answer.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert values["question"] == answer.question
    assert values["text"] == answer.text
    assert len(values["calls"]) == len(answer.calls)
    assert len(values["contexts"]) == len(answer.contexts)
    assert len(values["answers"]) == len(answer.answers)
    assert [one["number"] for one in values["citations"]] == [one.number for one in answer.citations]


def test_a_report():
    world = World(parts(2), rerank=["It sank [1].\nConfidence: 85", "No.\nConfidence: high"])
    report = world.answer(method="map_rerank", cite=True).explain()
    lines = [" ".join(line.split()) for line in report.splitlines()]
    assert lines[0] == "question: What happened on the voyage?"
    assert lines[1] == "answer: It sank [1]."
    assert lines[2].startswith("method map_rerank: 2 calls, ")
    assert "(estimated)" in lines[2]
    assert "* 85 - voyage It sank [1]." in lines
    assert "- - voyage No." in lines
    assert "[1] voyage - 0–17 -" in lines


def test_the_route_and_the_follow_up_in_the_report():
    world = World(parts(1), sources={"voyage": "x"}, route="unanswerable", condense="Who sank?")
    answer = world.answer("Who?", method="self_route", chat_history=(Message("user", "Hi"),))
    assert "rewritten as: Who sank?" in answer.explain()
    assert "route long_context" in answer.explain()
    values = answer.to_dict()
    assert (values["route"], values["standalone_question"]) == ("long_context", "Who sank?")


@pytest.mark.parametrize("method", METHODS)
def test_a_repr_is_one_line(method):
    answer = ask(method)
    for shown in (repr(answer), *map(repr, answer.calls), *(repr(call.prompt) for call in answer.calls)):
        assert len(shown) < 400
        assert not {letter for letter in shown if unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    calls = "1 call," if len(answer.calls) == 1 else f"{len(answer.calls)} calls,"
    assert f"method={method!r}, {calls} " in repr(answer)
