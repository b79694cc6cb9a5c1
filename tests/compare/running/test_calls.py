"""What models give is checked before it is kept or paid for, and calls run in threads that nobody waits for."""

import pytest

from oprag.compare.db.records import Spent
from oprag.compare.providers.model import ModelSpec
from oprag.compare.running.calls import PendingCall, ask
from oprag.errors import ModelError
from oprag.methods.answer import Completion, Usage
from oprag.methods.prompts import Message, Prompt

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


def begin(calls, *texts):
    for text in texts:
        calls.begin(PendingCall(text, "m", Prompt((Message("user", text),), "answer"), Spent(1)))
