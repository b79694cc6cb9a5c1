import pytest

from oprag import Chunk, ContextOptions
from oprag.errors import BudgetError, ModelError, ModelWarning
from oprag.methods import Window
from tests.core.methods.helpers import QUESTION, Reply, World, parts

VARIANTS = [f"What is {number}?" for number in range(6)]


def lines(count: int) -> str:
    return "\n".join(VARIANTS[:count])


@pytest.mark.parametrize(
    ("inner", "calls"),
    [
        ("stuff", lambda n: 1),
        ("refine", lambda n: n),
        ("map_reduce", lambda n: n + 1),
        ("map_rerank", lambda n: n),
        ("long_context", lambda n: 1),
        ("self_route", lambda n: 1),
    ],
)
@pytest.mark.parametrize(("count", "asked"), [(1, 2), (3, 4)])
def test_two_calls_and_those_of_the_inner_method_for_each_variant(inner, calls, count, asked):
    world = World(parts(count), variants=lines(asked), sources={"voyage": "The whole."}, rerank="It.\nConfidence: 9")
    answer = world.answer(method="step_down", inner_method=inner, variants=asked)
    assert len(answer.calls) == 2 + asked * calls(count)
    assert answer.text == "Answer of aggregate."
    assert [one.question for one in answer.answers] == VARIANTS[:asked]


@pytest.mark.parametrize("method", ["step_down", "reciprocal"])
def test_answers_that_do_not_fit_the_window_together_are_cut(method):
    long, short = "word " * 120, "Short."
    world = World(parts(3), variants=lines(3), answer=[long, short, long])
    options = ContextOptions(count_tokens=lambda text: len(text.split()))
    answer = world.answer(method=method, context_options=options, window=Window(200), variants=3, answer_threshold=-1.0)
    assert answer.text == "Answer of aggregate."
    assert [one.text for one in answer.answers] == [long, short, long]
    (prompt,) = world.texts("aggregate")
    assert 140 < len(prompt.split()) <= 200
    assert "Answer: Short." in prompt
    assert answer.notes == ("answers were cut to fit the model's context window of 200 tokens",)


@pytest.mark.parametrize("method", ["step_down", "reciprocal"])
def test_a_prompt_that_cannot_fit_is_refused_before_any_call(method):
    world = World(parts(3))
    prompts = {"aggregate": "Long. " * 300 + "{answers} {question}"}
    with pytest.raises(BudgetError, match="'aggregate'"):
        world.answer(method=method, window=Window(300), prompts=prompts)
    assert world.prompts == []


ASK_ITSELF = "the model generated no variants, so the question itself was used"
NOTHING = "nothing was retrieved"


@pytest.mark.parametrize(
    ("found", "replies", "steps", "answered", "notes"),
    [
        (parts(1), {"variants": lines(2)}, ["answer", "answer", "aggregate"], VARIANTS[:2], ["only 2 of 3 variants"]),
        *[
            (parts(1), {"variants": reply}, ["answer", "aggregate"], [QUESTION], [ASK_ITSELF])
            for reply in ("", "Here are some:", "\n\n---\n", OSError("no"))
        ],
        (
            {QUESTION: parts(1), VARIANTS[1]: parts(1)},
            {"variants": lines(3)},
            ["answer", "aggregate"],
            VARIANTS[1:2],
            [f"{VARIANTS[0]}: {NOTHING}", f"{VARIANTS[2]}: {NOTHING}"],
        ),
        ({QUESTION: parts(1)}, {"variants": lines(3)}, [], [], [*(f"{one}: {NOTHING}" for one in VARIANTS[:3])]),
        (parts(1), {"variants": lines(3), "answer": " "}, ["answer"] * 3, [], ["no variant was answered"]),
        # Where nothing is cited, a number in brackets is ordinary text.
        (parts(2), {"variants": lines(3), "answer": "b[1] [1999]"}, ["answer"] * 3 + ["aggregate"], VARIANTS[:3], []),
    ],
    ids=range(9),
)
@pytest.mark.filterwarnings("ignore:1 of 3 calls failed and were skipped. the first. the model call 'variants'")
def test_variants_that_are_missing_or_not_answered(found, replies, steps, answered, notes):
    world = World(found, **replies)
    answer = world.answer(method="step_down", variants=3, on_error="skip", empty_answer="Nothing there.")
    assert world.steps == ["variants", *steps]
    assert [one.question for one in answer.answers] == answered
    assert {one.text for one in answer.answers} <= {replies.get("answer", "Answer of answer.")}
    # `empty_answer` is for what was not found, not for what the model left empty.
    assert answer.text == ("Answer of aggregate." if "aggregate" in steps else "" if steps else "Nothing there.")
    assert all(any(note in one for one in answer.notes) for note in notes)
    assert bool(answer.notes) == bool(notes)


def test_a_failed_inner_call_is_skipped_or_named():
    replies: list[Reply] = ["First.", OSError("gone"), "Third."]
    with pytest.warns(ModelWarning, match=r"'answer' \(2 of 3\)"):
        answer = World(parts(1), variants=lines(3), answer=replies).answer(
            method="step_down", variants=3, on_error="skip"
        )
    assert [one.text for one in answer.answers] == ["First.", "Third."]
    with pytest.raises(ModelError, match=r"'answer' \(2 of 3\) failed: OSError: gone"):
        World(parts(1), variants=lines(3), answer=replies).answer(method="step_down", variants=3)


@pytest.mark.parametrize("inner", ["refine", "map_reduce", "map_rerank"])
def test_what_an_inner_method_says_when_there_is_nothing_to_read_is_no_answer(inner):
    blank = [Chunk(" \n", 0, metadata={"source": "blank", "start_index": 0})]
    world = World({QUESTION: parts(1), VARIANTS[0]: blank}, variants=lines(1))
    answer = world.answer(method="step_down", inner_method=inner, variants=1)
    assert answer.answers == ()
    assert "aggregate" not in world.steps
