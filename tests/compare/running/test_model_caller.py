"""What models give is checked before it is kept or paid for, and calls run in threads that nobody waits for."""

import threading
from functools import partial
from typing import TypeVar

import pytest

from oprag.compare.providers.model import ModelSpec
from oprag.compare.running.model_caller import ModelThreads, ask
from oprag.errors import ModelError
from oprag.methods.model_calls import Completion, Message, Prompt, Usage
from oprag.tokens import approximate_tokens
from tests.meeting import PATIENCE, Meeting

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


Value = TypeVar("Value")


def taken(workers: ModelThreads[Value], number: int) -> list[Value]:
    found: list[Value] = []
    while len(found) < number:
        found += workers.take()
    return found


def test_results_come_in_the_sequence_in_which_they_end():
    workers: ModelThreads[int] = ModelThreads(4)

    may_end = [threading.Event() for _ in range(3)]

    def waits(number):
        assert may_end[number].wait(PATIENCE)
        return number

    for number in range(3):
        workers.submit(partial(waits, number))
    assert workers.running == 3
    for number in (1, 2, 0):
        may_end[number].set()
        assert taken(workers, 1) == [number]
    assert workers.running == 0
    workers.close()


def test_no_more_threads_than_asked_for_and_none_that_are_not_needed():
    workers: ModelThreads[str] = ModelThreads(3)

    def name():
        meeting.wait()
        return threading.current_thread().name

    names, meeting = set(), Meeting(1)
    for _ in range(5):
        workers.submit(name)
        names |= set(taken(workers, 1))
    assert len(names) == 1
    meeting = Meeting(3)
    for _ in range(12):
        workers.submit(name)
    names |= set(taken(workers, 12))
    assert len(names) == 3
    workers.close()


def test_every_result_is_taken_once():
    workers: ModelThreads[int] = ModelThreads(8)
    for number in range(3_000):
        workers.submit(partial(int, number))
    assert sorted(taken(workers, 3_000)) == list(range(3_000))
    assert workers.running == 0
    workers.close()


def test_errors_are_raised_where_results_are_taken():
    workers: ModelThreads[int] = ModelThreads(1)

    def fails():
        raise KeyboardInterrupt("from a thread")

    workers.submit(fails)
    with pytest.raises(KeyboardInterrupt, match="from a thread"):
        workers.take()
    workers.submit(lambda: 7)
    assert workers.take() == [7]
    workers.close()


def test_threads_end_when_they_are_closed():
    workers: ModelThreads[int] = ModelThreads(3)
    threads: list[threading.Thread] = []

    meeting = Meeting(3)

    def work():
        threads.append(threading.current_thread())
        meeting.wait()
        return 1

    for _ in range(3):
        workers.submit(work)
    taken(workers, 3)
    workers.close()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert thread.daemon
