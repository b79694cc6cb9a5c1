"""Effects: the operations that a method requests. A method is a generator that yields effects and receives results.

The same generator therefore works for sync and async code, every framework, single questions and batches, and live and
cached replies. Drivers perform four kinds of requests; `flattened` reduces the fifth effect, `Together`, to these.
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

Flat = Generator[Request, Any, Result]
"""A body that yields only requests."""


def _check(name: str, values: Any, kind: type) -> None:
    if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
        raise TypeError(f"{name} must be a tuple of {kind.__name__}, got {describe(values)}")


def advanced(requests: Generator[Request, Any, T], reply: Any) -> Request | T:
    """Send a reply and return the next request, or the result at the end."""
    try:
        return requests.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result


def flattened(body: Body) -> Flat:
    """Wrap a body so that it yields only requests; `Together` effects are run here."""
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
    """Run bodies in rounds: in each round, every body yields one request, and requests of the same kind are merged.

    So the order of requests does not depend on their duration, and the prompts of all bodies are sent concurrently,
    under one limit.
    """
    running = [flattened(body) for body in bodies]
    results: dict[int, Result] = {}
    waiting: dict[int, Request] = {}

    def advance(number: int, reply: Any) -> None:
        try:
            waiting[number] = running[number].send(reply)
        except StopIteration as stop:
            results[number] = stop.value

    try:
        for number in range(len(running)):
            advance(number, None)
        while waiting:
            pending, waiting = waiting, {}
            for kind in (Retrieve, ReadSources, Embed, Generate):
                group = {number: request for number, request in pending.items() if isinstance(request, kind)}
                if not group:
                    continue
                replies = yield from _merged(list(group.values()))
                for number, reply in zip(group, replies, strict=True):
                    advance(number, reply)
    finally:
        for body in running:
            body.close()
    return tuple(results[number] for number in range(len(running)))


def _merged(requests: list[Any]) -> Generator[Request, Any, list[Any]]:
    """Merge requests of the same kind into one, and split its reply among them."""
    first = requests[0]
    if isinstance(first, ReadSources):
        # A source that several bodies need is read once.
        names = tuple(dict.fromkeys(_joined(requests, "sources")))
        read = dict(zip(names, (yield ReadSources(names)), strict=True))
        return [tuple(read[name] for name in request.sources) for request in requests]
    if isinstance(first, Embed):
        questions, texts = yield Embed(_joined(requests, "questions"), _joined(requests, "texts"))
        pairs = zip(_split(questions, requests, "questions"), _split(texts, requests, "texts"), strict=True)
        return list(pairs)
    if isinstance(first, Retrieve):
        rooms = tuple(room for request in requests for room in request.rooms or (None,) * len(request.questions))
        reply = yield Retrieve(_joined(requests, "questions"), rooms if any(rooms) else ())
        return _split(reply, requests, "questions")
    # Not final: the last reply of an inner body is not the answer to the user's question, so it is not streamed.
    reply = yield Generate(_joined(requests, "prompts"))
    return _split(reply, requests, "prompts")


def _joined(requests: list[Any], name: str) -> tuple[Any, ...]:
    """The concatenated values of a field of all requests."""
    return tuple(one for request in requests for one in getattr(request, name))


def _split(values: Any, requests: list[Any], name: str) -> list[Any]:
    """Split values into those of each request, by the lengths of a field."""
    pieces, start = [], 0
    for request in requests:
        end = start + len(getattr(request, name))
        pieces.append(values[start:end])
        start = end
    return pieces
