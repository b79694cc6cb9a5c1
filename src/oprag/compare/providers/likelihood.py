"""Models that compute the likelihood of a given answer, their prompt, and how experiments call them.

The likelihood of a gold answer is a continuous measure: it detects smaller effects than scores of generated answers.
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
"""The step of a call that scores an answer: the user message is the prompt, the assistant message the answer."""

# A text to continue, since base models do not follow instructions.
_TEMPLATE = TextTemplate("{context}\n\nQuestion: {question}\nAnswer:")
_ROUNDING = 1e-6


@runtime_checkable
class LikelihoodModel(Protocol):
    """A local model that computes the likelihood of a given text after another one.

    Most hosted models only generate text, so they cannot do this.
    """

    @property
    def name(self) -> str:
        """Identity of the model and its settings; stored likelihoods are reused if it is equal."""
        ...

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text, without the token that starts every text.

        Args:
            text: The text.
        """
        ...

    def answer_likelihood(self, prompt: str, answer: str) -> float:
        """The mean log-probability per token of the answer, after the prompt.

        With t_1 ... t_n the tokens of the answer: (1/n) * sum over i of ln p(t_i | prompt, t_1 ... t_(i-1)).
        Prompt and answer are joined with a space unless one of them has whitespace there. If a tokenizer merges the end
        of the prompt and the start of the answer into one token, that token is scored as part of the answer.

        Args:
            prompt: The text before the answer.
            answer: The answer.

        Returns:
            Nats per token, at most 0.

        Raises:
            LikelihoodError: The answer is empty, or prompt and answer together do not fit the window.
            ModelError: The model failed.
        """
        ...


def likelihood_prompt(context: str, question: str, choices: Sequence[str] = ()) -> str:
    """The prompt for `answer_likelihood`: the context, if any, the question, and one line per choice."""
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
        """The number of tokens of a text, without the token that starts every text.

        Args:
            text: The text.
        """
        return len(self._tokens(text))

    def answer_likelihood(self, prompt: str, answer: str) -> float:
        """The mean log-probability per token of the answer, after the prompt, see `LikelihoodModel`.

        Args:
            prompt: The text before the answer.
            answer: The answer.

        Raises:
            OptionError: The prompt or the answer is not a string.
            LikelihoodError: The answer is empty, or prompt and answer together do not fit the window.
            ModelError: The model failed.
        """
        return self._mean_likelihood(*split_answer(prompt, answer, self._tokens, self._first, self.window))

    @property
    @abstractmethod
    def _first(self) -> list[int]:
        """The tokens that start every text."""

    @abstractmethod
    def _tokens(self, text: str) -> list[int]:
        """The tokens of a text, without those that start every text."""

    @abstractmethod
    def _mean_likelihood(self, given: list[int], scored: list[int]) -> float:
        """The mean log-probability of the scored tokens after the given ones; both are non-empty."""


class SplitAnswer(NamedTuple):
    """The tokens of prompt and answer, split where the answer starts; both are non-empty."""

    given: list[int]
    scored: list[int]


def split_answer(
    prompt: Any, answer: Any, tokenize: Callable[[str], list[int]], first: list[int], window: int
) -> SplitAnswer:
    """Tokenize prompt and answer as one text, and split it after the tokens that the prompt alone would have.

    `tokenize` does not add the tokens that start every text, which are `first`.
    """
    for name, value in (("prompt", prompt), ("answer", answer)):
        if not isinstance(value, str):
            raise OptionError(f"{name} must be a string, got {type(value).__name__}", value)
    if not answer or answer.isspace():
        raise LikelihoodError("the answer is empty, so it has no likelihood", answer)
    between = "" if not prompt or prompt[-1].isspace() or answer[0].isspace() else " "
    whole = _with_first(first, tokenize(prompt + between + answer))
    border = common_prefix_length(_with_first(first, tokenize(prompt)), whole)
    given, scored = whole[:border], whole[border:]
    if not scored:
        raise LikelihoodError(f"the tokenizer returns no tokens for the answer {describe(answer)}", answer)
    if not given:
        raise LikelihoodError("the prompt has no token before the answer; use a longer prompt", prompt)
    if len(whole) > window:
        raise LikelihoodError(
            f"the prompt ({len(given):,} tokens) and the answer ({len(scored):,}) have {len(whole):,} tokens together, "
            f"which exceeds the window of {window:,}; use a shorter context or a larger window",
            len(whole),
        )
    return SplitAnswer(given, scored)


def common_prefix_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Number of equal tokens at the start of two lists."""
    differ = (number for number, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differ, min(len(one), len(other)))


def _with_first(first: list[int], tokens: list[int]) -> list[int]:
    # A text may already start with this token, as with a chat template.
    return tokens if tokens[: len(first)] == first else first + tokens


def likelihood_completion(model: LikelihoodModel, prompt: Prompt) -> Completion:
    """The mean log-probability per token of the answer, in nats, as the text of a completion."""
    if prompt.step != LIKELIHOOD:
        raise ModelError(f"the model {model.name!r} only returns likelihoods, it cannot generate answers", prompt)
    before, answer = (message.content for message in prompt.messages)
    likelihood = _checked(model.answer_likelihood(before, answer))
    return Completion(repr(likelihood), usage=Usage(model.count_tokens(before) + model.count_tokens(answer), 0))


def _checked(likelihood: Any) -> float:
    """A likelihood of any numeric type as a float, checked to be finite and at most 0."""
    try:
        number = float(likelihood)
    except (TypeError, ValueError):
        number = math.nan
    # In single precision a probability can round to slightly more than 1.
    if not math.isfinite(number) or number > _ROUNDING:
        raise ModelError(
            f"the likelihood of an answer must be a number of at most 0, in nats, got {describe(likelihood)}",
            likelihood,
        )
    return min(0.0, number)
