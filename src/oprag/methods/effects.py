"""What a method may ask for: a method is a generator of effects, and is sent their results.

So one body serves sync and async code, every framework, one question or many, live or cached. A driver performs four
kinds of requests; `flattened` turns the fifth effect, `Together`, into them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from oprag.context import Context
from oprag.masking import describe
from oprag.methods.answer import Result
from oprag.methods.model_calls import Prompt
from oprag.methods.window import Room, within

__all__ = [
    "Body",
    "Effect",
    "Embed",
    "Flat",
    "Generate",
    "ReadSources",
    "Request",
    "Retrieve",
    "Together",
    "advanced",
    "flattened",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Retrieve:
    """Ask for the context of each question; the result is a tuple of `Context`.

    Attributes:
        questions: The questions.
        rooms: What the model's window leaves for the context of each question, as `Task.retrieve` has it; empty where
            that is not known, or where the context is not read in one prompt.

    Raises:
        TypeError: They are not a tuple of strings.
    """

    questions: tuple[str, ...]
    rooms: tuple[Room | None, ...] = ()

    def __post_init__(self) -> None:
        _check("questions", self.questions, str)

    def fitted(self, contexts: Iterable[Context]) -> list[Context]:
        """The contexts of the questions, none longer than its room.

        Args:
            contexts: One context for each question.

        Raises:
            BudgetError: Not one chunk of a context fits.
        """
        rooms = self.rooms or (None,) * len(self.questions)
        return [
            context if room is None else within(context, room) for context, room in zip(contexts, rooms, strict=True)
        ]


@dataclass(frozen=True)
class Generate:
    """Ask the model, all prompts at the same time; the result is a tuple of `Completion`.

    A reply that failed has an `error` and an empty text; with `on_error="raise"` the question ends there, before the
    body gets it.

    Attributes:
        prompts: The prompts.
        final: Whether the reply is the answer, so that its tokens may be streamed to the user.
        hold: With `final`: whether the beginning of a reply may still turn out not to be the answer; nothing is shown
            to the user as long as it says so.

    Raises:
        TypeError: The prompts are not a tuple of what `Task.prompt` gives.
    """

    prompts: tuple[Prompt, ...]
    final: bool = False
    hold: Callable[[str], bool] | None = None

    def __post_init__(self) -> None:
        _check("prompts", self.prompts, Prompt)


@dataclass(frozen=True)
class Embed:
    """Ask for vectors; the result is the vectors of the questions and those of the texts.

    Attributes:
        questions: Texts to embed as questions.
        texts: Texts to embed as documents.

    Raises:
        TypeError: They are not tuples of strings.
    """

    questions: tuple[str, ...]
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        _check("questions", self.questions, str)
        _check("texts", self.texts, str)


@dataclass(frozen=True)
class ReadSources:
    """Ask for the whole text of sources; the result is a tuple of strings.

    Attributes:
        sources: The names of retrieved sources.

    Raises:
        TypeError: They are not a tuple of strings.
    """

    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        _check("sources", self.sources, str)


@dataclass(frozen=True)
class Together:
    """Run other bodies side by side; the result is a tuple of theirs.

    Attributes:
        bodies: The bodies, not yet started.
    """

    bodies: tuple[Body, ...]


Request = Retrieve | Generate | Embed | ReadSources
"""What a driver is asked for."""

Effect = Request | Together
"""What a body may yield."""

Body = Generator[Effect, Any, Result]
"""A method at work on one question."""

Flat = Generator[Request, Any, Result]
"""A body that yields requests alone."""


def _check(name: str, values: Any, kind: type) -> None:
    if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
        raise TypeError(f"{name} must be a tuple of {kind.__name__}, got {describe(values)}")


def advanced(requests: Generator[Request, Any, T], reply: Any) -> Request | T:
    """The next request, or the result."""
    try:
        return requests.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result


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
            reply = (yield from _together(effect.bodies)) if isinstance(effect, Together) else (yield effect)
    finally:
        body.close()


def _together(bodies: tuple[Body, ...]) -> Generator[Request, Any, tuple[Result, ...]]:
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
    if isinstance(first, ReadSources):
        # A source that several want is read once.
        names = tuple(dict.fromkeys(_joined(requests, "sources")))
        read = dict(zip(names, (yield ReadSources(names)), strict=True))
        return [tuple(read[name] for name in request.sources) for request in requests]
    if isinstance(first, Embed):
        questions, texts = yield Embed(_joined(requests, "questions"), _joined(requests, "texts"))
        pairs = zip(_cut(questions, requests, "questions"), _cut(texts, requests, "texts"), strict=True)
        return list(pairs)
    if isinstance(first, Retrieve):
        rooms = tuple(room for request in requests for room in request.rooms or (None,) * len(request.questions))
        reply = yield Retrieve(_joined(requests, "questions"), rooms if any(rooms) else ())
        return _cut(reply, requests, "questions")
    # The last call of an inner body is not the answer to the user's question, so nothing of it is streamed.
    reply = yield Generate(_joined(requests, "prompts"))
    return _cut(reply, requests, "prompts")


def _joined(requests: list[Any], name: str) -> tuple[Any, ...]:
    """What all requests ask for."""
    return tuple(one for request in requests for one in getattr(request, name))


def _cut(values: Any, requests: list[Any], name: str) -> list[Any]:
    """The values of each request."""
    pieces, start = [], 0
    for request in requests:
        end = start + len(getattr(request, name))
        pieces.append(values[start:end])
        start = end
    return pieces
