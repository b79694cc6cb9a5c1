"""What models give is checked before it is kept or paid for."""

import pytest

from oprag.compare.providers.model import ModelSpec
from oprag.compare.running.model_caller import ask
from oprag.errors import ModelError
from oprag.methods.model_calls import Completion, Message, Prompt, Usage
from oprag.tokens import approximate_tokens

PROMPT = Prompt((Message("user", "Who bakes the bread?"),), "answer")


def reply(**given):
    return ask(ModelSpec(lambda prompt: Completion("Ada", **given), "m").open(), PROMPT, approximate_tokens)


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
