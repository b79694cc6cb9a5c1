"""Models that say how likely a given answer is, their prompt, and how experiments call them.

The likelihood of a gold answer is a graded measure, which sees smaller effects than a score of written answers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from string import ascii_uppercase
from typing import Any, NamedTuple, Protocol, runtime_checkable

from oprag.errors import LikelihoodError, ModelError, OptionError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.methods.prompts import TextTemplate

__all__ = [
    "LIKELIHOOD",
    "LikelihoodModel",
    "TokenLikelihood",
    "common_prefix_length",
    "likelihood_completion",
    "likelihood_prompt",
    "split_answer",
]

LIKELIHOOD = "likelihood"
"""The step of a call that asks how likely an answer is: the user's message goes before, the assistant's is judged."""

# A text to be continued, as base models want it.
_TEMPLATE = TextTemplate("{context}\n\nQuestion: {question}\nAnswer:")
_ROUNDING = 1e-6


@runtime_checkable
class LikelihoodModel(Protocol):
    """A local model that can say how likely a given text is after another one.

    A model behind an interface that only writes, as those of most providers are, cannot.
    """

    @property
    def name(self) -> str:
        """What tells this model and its settings from others: where it is equal, figures may be used again."""
        ...

    def count_tokens(self, text: str) -> int:
        """The tokens of a text, without the token that begins every text.

        Args:
            text: The text.
        """
        ...

    def answer_likelihood(self, prompt: str, answer: str) -> float:
        """The mean log-probability of a token of the answer after the prompt.

        With t_1 ... t_n the tokens of the answer: (1/n) * sum over i of ln p(t_i | prompt, t_1 ... t_(i-1)).
        A space is put between the two unless one of them has white space there. Where a tokenizer makes one token of
        the end of the prompt and the beginning of the answer, that token is scored as a whole.

        Args:
            prompt: The text before the answer.
            answer: The answer.

        Returns:
            Nats a token, at most 0.

        Raises:
            LikelihoodError: The answer is empty, or does not fit the window together with the prompt.
            ModelError: The model failed.
        """
        ...


def likelihood_prompt(context: str, question: str, choices: Sequence[str] = ()) -> str:
    """The prompt for `answer_likelihood`: the context, if there is one, the question, and a choice a line."""
    lines = [question, *(f"{letter}. {choice}" for letter, choice in zip(ascii_uppercase, choices, strict=False))]
    (message,) = _TEMPLATE.messages({"context": context, "question": "\n".join(lines)})
    return message.content if context else message.content.lstrip()


class TokenLikelihood(ABC):
    """A `LikelihoodModel` that computes the probability of each token."""

    @property
    @abstractmethod
    def window(self) -> int:
        """Maximum number of tokens of prompt and answer together."""

    def count_tokens(self, text: str) -> int:
        """The tokens of a text, without the token that begins every text.

        Args:
            text: The text.
        """
        return len(self._tokens(text))

    def answer_likelihood(self, prompt: str, answer: str) -> float:
        """The mean log-probability of a token of the answer after the prompt, see `LikelihoodModel`.

        Args:
            prompt: The text before the answer.
            answer: The answer.

        Raises:
            OptionError: The prompt or the answer is not a string.
            LikelihoodError: The answer is empty, or does not fit the window together with the prompt.
            ModelError: The model failed.
        """
        return self._mean_likelihood(*split_answer(prompt, answer, self._tokens, self._first, self.window))

    @property
    @abstractmethod
    def _first(self) -> list[int]:
        """The tokens that begin every text."""

    @abstractmethod
    def _tokens(self, text: str) -> list[int]:
        """The tokens of a text, without those that begin every text."""

    @abstractmethod
    def _mean_likelihood(self, given: list[int], scored: list[int]) -> float:
        """The mean log-probability of the scored tokens after the given ones; at least one of each."""


class SplitAnswer(NamedTuple):
    """The tokens of prompt and answer, cut where the answer begins; at least one on each side."""

    given: list[int]
    scored: list[int]


def split_answer(
    prompt: Any, answer: Any, tokenize: Callable[[str], list[int]], first: list[int], window: int
) -> SplitAnswer:
    """Tokenize a prompt with its answer as one text, and cut it after the last token that is also the prompt's own.

    `tokenize` leaves out the tokens that begin every text, which are `first`.
    """
    for name, value in (("prompt", prompt), ("answer", answer)):
        if not isinstance(value, str):
            raise OptionError(f"{name} must be a string, got {type(value).__name__}", value)
    if not answer or answer.isspace():
        raise LikelihoodError("the answer is empty, so it has no likelihood", answer)
    between = "" if not prompt or prompt[-1].isspace() or answer[0].isspace() else " "
    whole = _begun(first, tokenize(prompt + between + answer))
    border = common_prefix_length(_begun(first, tokenize(prompt)), whole)
    given, scored = whole[:border], whole[border:]
    if not scored:
        raise LikelihoodError(f"the tokenizer gives the answer no token of its own: {describe(answer)}", answer)
    if not given:
        raise LikelihoodError(
            "the likelihood of the answer has no token before it to depend on; give a longer prompt", prompt
        )
    if len(whole) > window:
        raise LikelihoodError(
            f"the prompt with {len(given):,} tokens and the answer with {len(scored):,} have {len(whole):,} together, "
            f"and the window is {window:,}; give a shorter context or a larger window, nothing is cut in silence",
            len(whole),
        )
    return SplitAnswer(given, scored)


def common_prefix_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two lists have in common before they part."""
    differ = (number for number, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differ, min(len(one), len(other)))


def _begun(first: list[int], tokens: list[int]) -> list[int]:
    # A text may have the token that begins every text in writing, as chat templates do.
    return tokens if tokens[: len(first)] == first else first + tokens


def likelihood_completion(model: LikelihoodModel, prompt: Prompt) -> Completion:
    """The mean log-probability of a token of the answer, in nats, as a text."""
    if prompt.step != LIKELIHOOD:
        raise ModelError(f"the model {model.name!r} returns likelihoods and writes no answers", prompt)
    before, answer = (message.content for message in prompt.messages)
    figure = _checked(model.answer_likelihood(before, answer))
    return Completion(repr(figure), usage=Usage(model.count_tokens(before) + model.count_tokens(answer), 0))


def _checked(figure: Any) -> float:
    """A likelihood of whatever type of number."""
    try:
        number = float(figure)
    except (TypeError, ValueError):
        number = math.nan
    # A model that computes in single precision may be certain of a little more than 1.
    if not math.isfinite(number) or number > _ROUNDING:
        raise ModelError(
            f"the likelihood of an answer must be a number of nats up to 0, got {describe(figure)}", figure
        )
    return min(0.0, number)
