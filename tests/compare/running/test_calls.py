"""What models give is checked before it is kept or paid for, and calls run in threads that nobody waits for."""

import threading

import pytest

from oprag._internal.tokens import approximate_tokens
from oprag.compare.db.records import Spent
from oprag.compare.plan import MemoryCache
from oprag.compare.providers.model import Model, ModelSpec
from oprag.compare.running.calls import ModelCaller, PendingCall, Spending, ask
from oprag.errors import ModelError
from oprag.methods.answer import Completion, Usage
from oprag.methods.prompts import Message, Prompt
from tests.compare.helpers import RecordingModel, experiment
from tests.meeting import PATIENCE

PROMPT = Prompt((Message("user", "Who bakes the bread?"),), "answer")


def reply(**given):
    return ask(ModelSpec(lambda prompt: Completion("Ada", **given), "m").open(), PROMPT)


@pytest.mark.parametrize(
    "usage",
    [Usage(-5, 2), Usage(5, -2), Usage(5, 2, -1), Usage(10**30, 2), (float("nan"), 2, 0, False), (5, 2), "five"],
    ids=str,
)
def test_tokens_that_cannot_be_are_a_failed_call(usage):
    # With a negative number more could be spent than the limit allows.
    error = reply(usage=usage).error
    assert isinstance(error, ModelError)
    assert "must consist of token counts" in str(error)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, "long", None])
def test_a_time_that_is_none_is_as_if_none_were_told(seconds):
    completion = reply(seconds=seconds)
    assert completion.error is None
    assert completion.seconds > 0


def caller(reply):
    model = Model("m", lambda prompt: Completion(str(reply(prompt.text))))
    small = experiment(RecordingModel())
    spending = Spending(small, small.limits, Spent())
    return ModelCaller({"m": model}, approximate_tokens, MemoryCache(), spending)


def begin(calls, *texts):
    for text in texts:
        calls.begin(PendingCall(text, "m", Prompt((Message("user", text),), "answer"), Spent(1)))


def taken(calls, number):
    found: list[str] = []
    while len(found) < number:
        found += [made.completion.text for made in calls.take()]
    return found


def test_replies_come_in_the_sequence_in_which_they_end():
    may_end = {text: threading.Event() for text in "012"}

    def waits(text):
        assert may_end[text].wait(PATIENCE)
        return text

    calls = caller(waits)
    begin(calls, *"012")
    assert calls.running == 3
    for text in "102":
        may_end[text].set()
        assert taken(calls, 1) == [text]
    assert calls.running == 0


def test_errors_are_raised_where_replies_are_taken():
    def fails(text):
        if text == "fails":
            raise KeyboardInterrupt("from a thread")
        return text

    calls = caller(fails)
    begin(calls, "fails")
    with pytest.raises(KeyboardInterrupt, match="from a thread"):
        calls.take()
    begin(calls, "7")
    assert taken(calls, 1) == ["7"]
