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
from tests.meeting import PATIENCE, Meeting

PROMPT = Prompt((Message("user", "Who bakes the bread?"),), "answer")


def reply(**given):
    return ask(ModelSpec(lambda prompt: Completion("Ada", **given), "m").open(), PROMPT)


def test_usage_and_time_are_kept_as_they_are():
    completion = reply(usage=Usage(7, 2, 1), seconds=0.5)
    assert (completion.usage, completion.seconds) == (Usage(7, 2, 1), 0.5)


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


def test_every_reply_is_taken_once():
    calls = caller(str)
    texts = [f"{number:04}" for number in range(500)]
    begin(calls, *texts)
    assert sorted(taken(calls, 500)) == texts
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


def test_nobody_waits_for_threads():
    threads: list[threading.Thread] = []
    meeting = Meeting(3)

    def work(text):
        threads.append(threading.current_thread())
        meeting.wait()
        return text

    calls = caller(work)
    begin(calls, *"abc")
    taken(calls, 3)
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert thread.daemon
