"""What gives the likelihood of an answer."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["LikelihoodModel"]


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
