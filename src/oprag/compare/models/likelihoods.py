"""Likelihood models as models of an experiment: their reply is a figure."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oprag.compare.likelihood import LikelihoodModel
from oprag.errors import ExperimentError, ModelError, OptionError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt, Usage

__all__ = ["LIKELIHOOD", "AskedForLikelihoods", "gives_likelihoods", "load_likelihood_model"]

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
    from oprag.compare.likelihood import GgufLikelihood, HuggingFaceLikelihood

    kind, _, path = given.partition(":")
    try:
        return GgufLikelihood(path, **settings) if kind == "gguf" else HuggingFaceLikelihood(path, **settings)
    except (TypeError, OptionError, ModelError) as error:
        raise ExperimentError(f"cannot use the model {describe(given)}: {error}", given) from error


@dataclass(frozen=True, eq=False)
class AskedForLikelihoods:
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
