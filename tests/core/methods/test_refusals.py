"""What is a refusal, also while it is being written, and what is an answer that has its words."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oprag.methods.replies import may_be_refusal
from tests.core.methods.helpers import World, parts


def is_refusal(reply: str) -> bool:
    """Whether self_route takes a reply for a refusal."""
    return World(parts(1), sources={"voyage": "The whole."}, route=reply).answer(method="self_route").route != "rag"


REFUSALS = [
    "unanswerable",
    "Unanswerable!",
    "unanswerable…",
    "\n\nunanswerable\r\n",
    '"Unanswerable".',
    "“unanswerable”",
    "`unanswerable`",
    "```\nunanswerable\n```",
    "**Unanswerable.**",
    "*unanswerable*",
    "> **Unanswerable**",
    "[unanswerable]",
    "Answer: unanswerable",
    "**Answer:** Unanswerable.",
    "Unanswerable. The text does not tell.",
    "“Unanswerable.” The text is silent.",
    "- unanswerable",
    "<unanswerable>",
    "unanswerable！",
    "unanswerable,",
    "\ufeffunanswerable",
    "\u200bunanswerable\u200b",
    "Unanswerable: the text does not mention it.",
    "Unanswerable - the text is silent.",
    "unanswerable, because nothing is said",
    "Unanswerable (not in the text).",
    "Unanswerable based on the provided text.",
    "Unanswerable because he never says so",
    "Unanswerable [1]",
    "[1] Unanswerable.",
    "Unanswerable [1, 2]. The text does not tell.",
    "The question is unanswerable.",
    "This question is **unanswerable** from the given passages.",
    "The answer is: unanswerable",
    "<think>\nDoes it say so? No.\n</think>\n\nunanswerable",
    "<thinking>It may be unanswerable</thinking> Unanswerable.",
]
ANSWERS = [
    "It sank.",
    "unanswer",
    "Unanswerable questions were his trade.",
    "Unanswerable questions. He loved them.",
    "unanswerably",
    "Unanswerable-looking, but it is 42.",
    '"Unanswerable" is the word that he used.',
    "The question is unanswerable, he said, and sank.",
    "not unanswerable",
    "Answer: It sank; the rest is unanswerable.",
    "Answer: unanswerable questions",
    "The answer is forty-two.",
    "The answer is unanswerable questions",
    "The question is unanswerable: that was his favourite sentence.",
    "<think>unanswerable</think>It sank.",
    "Unanswerable is what he called it [1].",
    "x" * 300 + " unanswerable",
]


@pytest.mark.parametrize("reply", REFUSALS)
def test_refusals(reply):
    assert is_refusal(reply)


@pytest.mark.parametrize("reply", ANSWERS)
def test_answers_are_no_refusals(reply):
    assert not is_refusal(reply)


@pytest.mark.parametrize("reply", REFUSALS)
def test_every_beginning_of_a_refusal_may_become_one(reply):
    assert [reply[:end] for end in range(len(reply) + 1) if not may_be_refusal(reply[:end])] == []


def test_long_replies_without_words_are_streamed():
    assert may_be_refusal("* " * 50)
    assert not may_be_refusal("* " * 150)


PIECES = ["the question is ", " [1]", " based on", " because", "\n", " "]
PIECES += ["unanswerable", "UNANSWERABLE", "unans", "werable", "answer:", "Answer", "<think>", "</think>"]
hostile = st.lists(st.sampled_from(PIECES) | st.sampled_from(':*".#') | st.text(max_size=3), max_size=8).map("".join)


@given(hostile)
@example("unanſwerable")
@example("ﬁunanswerable")
@example("unanswerablß")
@example("İanswer: unanswerable")
def test_once_excluded_a_refusal_never_comes_back(reply):
    possible = [may_be_refusal(reply[:end]) for end in range(len(reply) + 1)]
    assert possible == sorted(possible, reverse=True)
    assert possible[0]
    if is_refusal(reply):
        assert all(possible)
