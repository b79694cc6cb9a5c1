"""Effects: the operations that a method requests. A method is a generator that yields effects and receives results.

The same generator therefore works for sync and async code, every framework, single questions and batches, and live and
cached replies. `oprag.methods.run` performs them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

from oprag._internal.masking import describe
from oprag.context import Context
from oprag.methods.answer import Result
from oprag.methods.model_calls import Prompt
from oprag.methods.window import Room, within

__all__ = [
    "Body",
    "Effect",
    "Embed",
    "Generate",
    "ReadSources",
    "Request",
    "Retrieve",
    "Together",
]


@dataclass(frozen=True)
class Retrieve:
    """Retrieve the context of each question; the result is a tuple of `Context`.

    Attributes:
        questions: The questions.
        rooms: The tokens left for each context in the model's window (see `Task.retrieve`); empty if unknown, or if the
            context is not read in one prompt.

    Raises:
        TypeError: The questions are not a tuple of strings.
    """

    questions: tuple[str, ...]
    rooms: tuple[Room | None, ...] = ()

    def __post_init__(self) -> None:
        _check("questions", self.questions, str)

    def fitted(self, contexts: Iterable[Context]) -> list[Context]:
        """Shorten contexts to their rooms.

        Args:
            contexts: One context per question.

        Raises:
            BudgetError: No chunk of a context fits.
        """
        rooms = self.rooms or (None,) * len(self.questions)
        return [
            context if room is None else within(context, room) for context, room in zip(contexts, rooms, strict=True)
        ]


@dataclass(frozen=True)
class Generate:
    """Call the model with all prompts concurrently; the result is a tuple of `Completion`.

    A failed call has an `error` and an empty text; with `on_error="raise"`, the error is raised to the user and never
    reaches the method.

    Attributes:
        prompts: The prompts.
        final: Whether the reply is the answer, so that its tokens may be streamed to the user.
        hold: With `final`: whether a reply that starts with a given text may turn out not to be the answer; streaming
            starts when this returns False.

    Raises:
        TypeError: The prompts are not a tuple of `Prompt` objects, as returned by `Task.prompt`.
    """

    prompts: tuple[Prompt, ...]
    final: bool = False
    hold: Callable[[str], bool] | None = None

    def __post_init__(self) -> None:
        _check("prompts", self.prompts, Prompt)


@dataclass(frozen=True)
class Embed:
    """Embed questions and texts; the result is the vectors of the questions and the vectors of the texts.

    Attributes:
        questions: Texts to embed as questions.
        texts: Texts to embed as documents.

    Raises:
        TypeError: The questions or texts are not a tuple of strings.
    """

    questions: tuple[str, ...]
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        _check("questions", self.questions, str)
        _check("texts", self.texts, str)


@dataclass(frozen=True)
class ReadSources:
    """Read the full text of sources; the result is a tuple of strings.

    Attributes:
        sources: The names of retrieved sources.

    Raises:
        TypeError: The names are not a tuple of strings.
    """

    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        _check("sources", self.sources, str)


@dataclass(frozen=True)
class Together:
    """Run other bodies concurrently; the result is a tuple of their results.

    Attributes:
        bodies: The bodies, not yet started.
    """

    bodies: tuple[Body, ...]


Request = Retrieve | Generate | Embed | ReadSources
"""An effect that a driver performs."""

Effect = Request | Together
"""An effect that a body may yield."""

Body = Generator[Effect, Any, Result]
"""A running method: the generator for one question."""


def _check(name: str, values: Any, kind: type) -> None:
    if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
        raise TypeError(f"{name} must be a tuple of {kind.__name__}, got {describe(values)}")
