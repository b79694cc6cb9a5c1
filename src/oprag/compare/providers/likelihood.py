"""Models that score a given answer by its likelihood."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any, NamedTuple, Protocol, runtime_checkable

from oprag.errors import ExperimentError, LikelihoodError, ModelError, OptionError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.methods.prompts import TextTemplate
from oprag.options import check_question

__all__ = [
    "LIKELIHOOD",
    "LIKELIHOOD_TEMPLATE",
    "LikelihoodAnswers",
    "LikelihoodModel",
    "SplitAnswer",
    "begun",
    "common_beginning",
    "gives_likelihoods",
    "likelihood_prompt",
    "load_likelihood_model",
    "split_answer",
]


@runtime_checkable
class LikelihoodModel(Protocol):
    """A local model that can say how likely a given text is after another one.

    A model behind an interface that only writes, as those of most providers are, cannot.
    """

    @property
    def name(self) -> str:
        """What tells this model and its settings from others: where it is equal, figures may be used again."""
        ...

    @property
    def window(self) -> int:
        """The most tokens that prompt and answer may have together."""
        ...

    def count_tokens(self, text: str) -> int:
        """The tokens of a text, to be used as `count_tokens`; without the token that begins every text."""
        ...

    def answer_likelihood(self, prompt: str, answer: str) -> float:
        """The mean log-probability of a token of the answer after the prompt.

        With t_1 ... t_n the tokens of the answer: (1/n) * sum over i of ln p(t_i | prompt, t_1 ... t_(i-1)).
        See `split_answer` for where an answer begins.

        Returns:
            Nats a token, at most 0.

        Raises:
            LikelihoodError: The answer is empty, or does not fit the window together with the prompt.
            ModelError: The model failed.
        """
        ...


LIKELIHOOD_TEMPLATE = "{context}\n\nQuestion: {question}\nAnswer:"


def likelihood_prompt(
    context: str, question: str, choices: Sequence[str] = (), *, template: str = LIKELIHOOD_TEMPLATE
) -> str:
    r"""The prompt for `answer_likelihood`: a text to be continued, as base models want it.

    A chat model is prompted in the same way, unless a template with its marks is given. Its special tokens count as
    such only where the model was made with `parse_special_tokens=True`.

    Args:
        context: What was retrieved. An empty one makes the prompt without context (closed book), which begins with
            the question: white space around the prompt is cut off.
        question: The question.
        choices: The options of a multiple-choice question. They stand one a line below the question, with their
            letters; what is scored may be the text of the right one or its letter.
        template: The text with the fields {context} and {question}; braces in a value mean nothing.

    Raises:
        QueryError: The question is empty, or no string.
        OptionError: There are more than 26 choices.
        PromptError: The template cannot be used.

    Example:
        >>> print(likelihood_prompt("It rained.", "Was it dry?", ["yes", "no"]))
        It rained.
        <BLANKLINE>
        Question: Was it dry?
        A. yes
        B. no
        Answer:
    """
    check_question(question)
    if len(choices) > len(ascii_uppercase):
        raise OptionError(f"choices must be at most {len(ascii_uppercase)}, got {len(choices)}", choices)
    lines = [question, *(f"{letter}. {choice}" for letter, choice in zip(ascii_uppercase, choices, strict=False))]
    (message,) = TextTemplate(template).messages({"context": context, "question": "\n".join(lines)})
    return message.content if context else message.content.lstrip()


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


LIKELIHOOD = "likelihood"
"""The step of a call that asks how likely an answer is: the user's message goes before, the assistant's is judged."""

_KINDS = ("gguf", "transformers")
_ROUNDING = 1e-6


def gives_likelihoods(given: Any) -> bool:
    """Whether what is given for a model says how likely answers are, and writes none."""
    if isinstance(given, str):
        kind, _, path = given.partition(":")
        return kind in _KINDS and bool(path.strip())
    return isinstance(given, LikelihoodModel) and not isinstance(given, type)


def load_likelihood_model(given: Any, settings: Mapping[str, Any]) -> LikelihoodModel:
    """The model: "gguf:FILE", "transformers:FOLDER", the name of a model in the hub after the latter, or one itself.

    Raises:
        ExperimentError: It cannot be loaded, or knows no such setting.
        MissingExtraError: What runs it is not installed.
    """
    if not isinstance(given, str):
        model: LikelihoodModel = given
        return model
    # REMOVED

    from oprag.compare.providers.gguf_likelihood import GgufLikelihood
    from oprag.compare.providers.transformers_likelihood import TransformersLikelihood

    kind, _, path = given.partition(":")
    try:
        return GgufLikelihood(path, **settings) if kind == "gguf" else TransformersLikelihood(path, **settings)
    except (TypeError, OptionError, ModelError) as error:
        raise ExperimentError(f"cannot use the model {describe(given)}: {error}", given) from error


@dataclass(frozen=True, eq=False)
class LikelihoodAnswers:
    """A likelihood model that can be called; a `Model`.

    Attributes:
        name: What it is called in tables.
        identity: What it is.
    """

    name: str
    identity: str
    _window: int | None = field(repr=False)
    _model: LikelihoodModel = field(repr=False)

    @property
    def window(self) -> int:
        """How many tokens it can read."""
        # Asked for, it may load the model.
        return self._window or self._model.window

    def complete(self, prompt: Prompt) -> Completion:
        """The mean log-probability of a token of the answer, in nats, as a text; or why there is none."""
        if prompt.step != LIKELIHOOD:
            error = ModelError(f"the model {self.name!r} says how likely answers are, and writes none", prompt)
            return Completion(error=error)
        before, answer = (message.content for message in prompt.messages)
        started = time.perf_counter()
        try:
            figure = _checked(self._model.answer_likelihood(before, answer))
            tokens = self._model.count_tokens(before) + self._model.count_tokens(answer)
        except Exception as error:  # noqa: BLE001 - whatever it raises is recorded
            return Completion(error=error, seconds=time.perf_counter() - started)
        return Completion(repr(figure), usage=Usage(tokens, 0), seconds=time.perf_counter() - started)


def _checked(figure: Any) -> float:
    """A likelihood of whatever type of number.

    Raises:
        ModelError: It is none: not finite, over 0, or no number.
    """
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
