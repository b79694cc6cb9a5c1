import pytest

from oprag import Chunk, ContextOptions, build_context
from oprag.errors import BudgetError, ModelError, ModelWarning
from oprag.methods import (
    Completion,
    Message,
    MethodOptions,
    Result,
    Retrieve,
    Task,
    Usage,
    answering,
)
from tests.core.methods.helpers import METHODS, QUESTION, Reply, World, parts

HISTORY = (Message("user", "Who was captain?"), Message("assistant", "Ahab {x}."))
SOURCES = {"voyage": "The whole of the voyage."}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("empty", [None, "Nichts gefunden.", ""])
def test_where_nothing_is_retrieved_no_call_is_made(method, empty):
    world = World(sources=SOURCES)
    options = {} if empty is None else {"empty_answer": empty}
    answer = world.answer(method=method, **options)
    assert answer.text == ("No passages were found for this question." if empty is None else empty)
    assert answer.notes == ("nothing was retrieved",)
    assert answer.calls == ()
    assert answer.usage == Usage()
    assert world.requests == [Retrieve((QUESTION,))]
    assert answer.context is not None
    assert answer.context.kept == ()


@pytest.mark.parametrize(
    ("chunks", "limits", "note"),
    [
        ([Chunk(" \n", 0)], {}, "the retrieved chunks have no text"),
        (
            [Chunk("One.", 0), Chunk("Two.", 1)],
            {"on_missing_position": "drop"},
            "all retrieved chunks were dropped: 2 by on_missing_position",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:2 of 2 chunks do not name their source")
def test_why_there_is_nothing_to_read_is_noted(chunks, limits, note):
    answer = World(chunks).answer(context_options=ContextOptions(**limits))
    assert (answer.calls, answer.notes) == ((), (note,))


@pytest.mark.parametrize("method", METHODS)
def test_every_call_is_on_record_in_sequence(method):
    world = World(parts(3), sources=SOURCES, route="unanswerable", variants="Who?\nWhen?")
    answer = world.answer(method=method)
    assert [call.prompt for call in answer.calls] == world.prompts
    assert all(call.reply for call in answer.calls)
    assert answer.question == QUESTION
    assert answer.method == method
    assert answer.failed_calls == ()
    assert answer.seconds > 0
    assert str(answer) == answer.text


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("empty_answer", ["Nothing there.", ""])
def test_when_all_calls_fail_and_are_skipped_there_is_no_answer(method, empty_answer):
    """`empty_answer` is for questions for which nothing was retrieved."""
    world = World(parts(2), sources=SOURCES)
    error = OSError("down")
    world.generate = lambda prompt: Completion(error=error)  # type: ignore[method-assign]
    with pytest.raises(
        ModelError, match=r"(\d) of \1 calls failed, so there is no answer; .*: OSError: down"
    ) as caught:
        world.answer(method=method, on_error="skip", empty_answer=empty_answer)
    assert caught.value.__cause__ is error
    assert caught.value.value.error is error


@pytest.mark.parametrize("method", ["stuff", "refine", "map_reduce", "map_rerank"])
def test_failed_calls_beside_empty_replies_leave_no_answer_either(method):
    replies: list[Reply] = [OSError("down"), " ", ""]
    world = World(parts(3), answer=replies, map=replies, rerank=replies)
    with pytest.raises(ModelError, match=r"\d of \d calls failed, so there is no answer"):
        world.answer(method=method, on_error="skip", passage_tokens=8)


@pytest.mark.parametrize("method", METHODS)
def test_a_failed_call_before_a_search_that_finds_nothing_is_skipped(method):
    world = World(sources=SOURCES, condense=OSError("down"))
    with pytest.warns(ModelWarning, match="1 of 1"):
        answer = world.answer(method=method, chat_history=HISTORY, on_error="skip", empty_answer="")
    assert (answer.text, answer.notes[0]) == ("", "nothing was retrieved")


def test_a_call_that_the_user_has_seen_a_part_of_cannot_be_skipped():
    world = World(parts(1), answer=Completion(error=OSError("cut"), streamed=True))
    with pytest.raises(ModelError):
        world.answer(on_error="skip")


def test_errors_of_the_search_come_through():
    with pytest.raises(BudgetError):
        World(parts(1)).answer(context_options=build_context([], token_budget=1).options)


CUT_SHORT = "a reply was cut short at the model's limit of output tokens"
LENGTH = ["length", "model_length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_context_window_exceeded"]


@pytest.mark.parametrize(
    ("text", "reason", "notes"),
    [
        *[("It sa", reason, (CUT_SHORT,)) for reason in LENGTH],
        *[("It sank.", reason, ()) for reason in (None, "stop", "end_turn", "STOP")],
        (" \n", None, ("the model's reply was empty",)),
    ],
)
def test_a_reply_that_is_cut_short_or_empty_is_noted(text, reason, notes):
    assert World(parts(1), answer=Completion(text, finish_reason=reason)).answer().notes == notes


@pytest.mark.parametrize("reply", ["", " \n"])
def test_a_follow_up_that_cannot_be_condensed_is_searched_for_as_it_is(reply):
    world = World(parts(1), condense=reply)
    answer = world.answer(chat_history=HISTORY)
    assert world.of(Retrieve) == [Retrieve((QUESTION,))]
    assert answer.standalone_question is None
    assert any("was used unchanged" in note for note in answer.notes)


def test_a_failed_condensation_is_skipped_or_named():
    with pytest.warns(ModelWarning, match="'condense'"):
        answer = World(parts(1), condense=OSError("x")).answer(chat_history=HISTORY, on_error="skip")
    assert answer.text == "Answer of answer."
    with pytest.raises(ModelError, match="'condense' failed"):
        World(parts(1), condense=OSError("x")).answer(chat_history=HISTORY)


def test_a_body_is_closed_when_the_driver_stops(registered):
    closed = []

    def waiting(task):
        try:
            yield Retrieve((task.question,))
        finally:
            closed.append(True)
        return Result("", ())

    registered("waiting", waiting)
    requests = answering(Task(QUESTION, MethodOptions(method="waiting")))
    next(requests)
    requests.close()
    assert closed == [True]
