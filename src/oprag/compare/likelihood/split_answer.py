"""Which tokens are the answer's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from oprag.errors import LikelihoodError, OptionError
from oprag.masking import describe

__all__ = ["SplitAnswer", "begun", "common_beginning", "split_answer"]


class SplitAnswer(NamedTuple):
    """The tokens of prompt and answer, cut where the answer begins.

    Attributes:
        given: The tokens that the model reads, at least one.
        scored: The tokens whose probabilities are the answer's, at least one.
    """

    given: list[int]
    scored: list[int]


def split_answer(prompt: Any, answer: Any, tokenize: Callable[[str], list[int]], window: int) -> SplitAnswer:
    """Tokenize a prompt with its answer, as one text, and find the answer's tokens.

    A space is put between the two unless one of them has white space there. The answer begins behind the last token
    that the prompt alone and the whole text have in common. So where a tokenizer makes one token of the end of the
    prompt and the beginning of the answer, that token is scored as a whole.

    Args:
        prompt: The prompt.
        answer: The answer.
        tokenize: Gives the tokens of a text with those that begin every text.
        window: The most tokens that the whole may have.

    Raises:
        OptionError: The prompt or the answer is no string.
        LikelihoodError: The answer is empty or has no token of its own, there is no token before it, or the whole is
            longer than the window.
    """
    for name, value in (("prompt", prompt), ("answer", answer)):
        if not isinstance(value, str):
            raise OptionError(f"{name} must be a string, got {type(value).__name__}", value)
    if not answer or answer.isspace():
        raise LikelihoodError("the answer is empty: there is no likelihood of nothing", answer)
    between = "" if not prompt or prompt[-1].isspace() or answer[0].isspace() else " "
    whole = tokenize(prompt + between + answer)
    border = common_beginning(tokenize(prompt), whole)
    given, scored = whole[:border], whole[border:]
    if not scored:
        raise LikelihoodError(f"the tokenizer gives the answer no token of its own: {describe(answer)}", answer)
    if not given:
        raise LikelihoodError(
            "there is no token before the answer that its likelihood could depend on; give a longer prompt", prompt
        )
    if len(whole) > window:
        raise LikelihoodError(
            f"the prompt with {len(given):,} tokens and the answer with {len(scored):,} have {len(whole):,} together, "
            f"and the window is {window:,}; give a shorter context or a larger window, nothing is cut in silence",
            len(whole),
        )
    return SplitAnswer(given, scored)


def common_beginning(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two lists have in common before they part."""
    differ = (number for number, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differ, min(len(one), len(other)))


def begun(first: list[int], tokens: list[int]) -> list[int]:
    """The tokens behind the one that begins every text, unless the text has that in writing, as chat templates do."""
    return tokens if tokens[: len(first)] == first else first + tokens
