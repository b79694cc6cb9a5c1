"""What a method may ask for. A method is a generator of these; whoever drives it sends back the results.

So one body serves sync and async code, every framework, one question or many, live or cached.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oprag.context import Context
from oprag.masking import describe
from oprag.methods.message import Prompt
from oprag.methods.window import Room, within

if TYPE_CHECKING:
    from oprag.methods.result import Result

__all__ = ["Body", "Effect", "Embed", "Generate", "ReadSources", "Request", "Retrieve", "Together"]


@dataclass(frozen=True)
class Retrieve:
    """Ask for the context of each question; gives a tuple of `Context`.

    Attributes:
        questions: The questions.
        rooms: What the model's window leaves for the context of each question, as `Task.retrieve` has it; empty where
            that is not known, or where the context is not read in one prompt.

    Raises:
        TypeError: They are no tuple of strings.
    """

    questions: tuple[str, ...]
    rooms: tuple[Room | None, ...] = ()

    def __post_init__(self) -> None:
        _check("questions", self.questions, str)

    def fitted(self, contexts: Iterable[Context]) -> list[Context]:
        """The contexts of the questions, none longer than its room.

        Raises:
            BudgetError: Not one chunk of a context fits.
        """
        rooms = self.rooms or (None,) * len(self.questions)
        return [within(context, room) for context, room in zip(contexts, rooms, strict=True)]


@dataclass(frozen=True)
class Generate:
    """Ask the model, all prompts at the same time; gives a tuple of `Completion`.

    A reply that failed has an `error` and an empty text; with `on_error="raise"` the question ends there, before the
    body gets it.

    Attributes:
        prompts: The prompts.
        final: Whether the reply is the answer, so that its tokens may be streamed to the user.
        hold: With `final`: whether the beginning of a reply may still turn out not to be the answer; nothing is shown
            to the user as long as it says so.

    Raises:
        TypeError: The prompts are no tuple of what `Task.prompt` gives.
    """

    prompts: tuple[Prompt, ...]
    final: bool = False
    hold: Callable[[str], bool] | None = None

    def __post_init__(self) -> None:
        _check("prompts", self.prompts, Prompt)


@dataclass(frozen=True)
class Embed:
    """Ask for vectors; gives a list of vectors for the questions and one for the texts.

    Attributes:
        questions: Texts to embed as questions.
        texts: Texts to embed as documents.

    Raises:
        TypeError: They are no tuples of strings.
    """

    questions: tuple[str, ...]
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        _check("questions", self.questions, str)
        _check("texts", self.texts, str)


@dataclass(frozen=True)
class ReadSources:
    """Ask for the whole text of sources; gives a tuple of strings.

    Attributes:
        sources: The names of retrieved sources.

    Raises:
        TypeError: They are no tuple of strings.
    """

    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        _check("sources", self.sources, str)


@dataclass(frozen=True)
class Together:
    """Run other bodies side by side; gives a tuple of their results.

    Attributes:
        bodies: The bodies, not yet started.
    """

    bodies: tuple[Body, ...]


Request = Retrieve | Generate | Embed | ReadSources
"""What a driver is asked for."""

Effect = Request | Together
"""What a body may yield."""

Body = Generator[Effect, Any, "Result"]
"""A method at work on one question."""


def _check(name: str, values: Any, kind: type) -> None:
    if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
        raise TypeError(f"{name} must be a tuple of {kind.__name__}, got {describe(values)}")
