"""What a method may ask for. A method is a generator of these; whoever drives it sends back the results.

So one body serves sync and async code, every framework, one question or many, live or cached.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oprag.context import Context
from oprag.masking import describe
from oprag.methods.answer import Result
from oprag.methods.model_calls import Prompt
from oprag.methods.window import Room, within

if TYPE_CHECKING:
    from oprag.methods.answer import Result

__all__ = ["Body", "Effect", "Embed", "Flat", "Generate", "ReadSources", "Request", "Retrieve", "Together", "flattened"]


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
        return [
            context if room is None else within(context, room) for context, room in zip(contexts, rooms, strict=True)
        ]


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


Flat = Generator[Request, Any, Result]
"""A body that yields requests alone."""


def flattened(body: Body) -> Flat:
    """The same body, with every `Together` run here."""
    reply: Any = None
    try:
        while True:
            try:
                effect = body.send(reply)
            except StopIteration as stop:
                result: Result = stop.value
                return result
            if not isinstance(effect, Effect):
                raise TypeError(f"a method must yield effects, such as Generate, got {describe(effect)}")
            reply = (yield from _side_by_side(effect.bodies)) if isinstance(effect, Together) else (yield effect)
    finally:
        body.close()


def _side_by_side(bodies: tuple[Body, ...]) -> Generator[Request, Any, tuple[Result, ...]]:
    """Go step by step: in each round every body asks for one thing, and equal kinds are merged into one request.

    So the sequence of the requests does not depend on how long they take, and the prompts of all bodies are sent at
    the same time, under one limit.
    """
    running = [flattened(body) for body in bodies]
    results: dict[int, Result] = {}
    waiting: dict[int, Request] = {}

    def go_on(number: int, reply: Any) -> None:
        try:
            waiting[number] = running[number].send(reply)
        except StopIteration as stop:
            results[number] = stop.value

    try:
        for number in range(len(running)):
            go_on(number, None)
        while waiting:
            asked, waiting = waiting, {}
            for kind in (Retrieve, ReadSources, Embed, Generate):
                group = {number: request for number, request in asked.items() if isinstance(request, kind)}
                if not group:
                    continue
                replies = yield from _merged(list(group.values()))
                for number, reply in zip(group, replies, strict=True):
                    go_on(number, reply)
    finally:
        for body in running:
            body.close()
    return tuple(results[number] for number in range(len(running)))


def _merged(requests: list[Any]) -> Generator[Request, Any, list[Any]]:
    """One request for several of one kind, and its reply cut into theirs."""
    first = requests[0]
    if isinstance(first, Embed):
        questions, texts = yield Embed(
            tuple(text for request in requests for text in request.questions),
            tuple(text for request in requests for text in request.texts),
        )
        return list(
            zip(
                _cut(questions, [len(request.questions) for request in requests]),
                _cut(texts, [len(request.texts) for request in requests]),
                strict=True,
            )
        )
    if isinstance(first, Retrieve):
        asked = [request.questions for request in requests]
        rooms = tuple(room for request in requests for room in request.rooms or (None,) * len(request.questions))
        reply = yield Retrieve(
            tuple(question for questions in asked for question in questions), rooms if any(rooms) else ()
        )
        return _cut(reply, [len(questions) for questions in asked])
    if isinstance(first, ReadSources):
        # A source that several want is read once.
        names = tuple(dict.fromkeys(name for request in requests for name in request.sources))
        read = dict(zip(names, (yield ReadSources(names)), strict=True))
        return [tuple(read[name] for name in request.sources) for request in requests]
    # The last call of an inner body is not the answer to the user's question, so nothing of it is streamed.
    prompts = [request.prompts for request in requests]
    reply = yield Generate(tuple(prompt for group in prompts for prompt in group))
    return _cut(reply, [len(group) for group in prompts])


def _cut(values: Any, lengths: list[int]) -> list[Any]:
    pieces = []
    start = 0
    for length in lengths:
        pieces.append(values[start : start + length])
        start += length
    return pieces
