"""Running bodies side by side: what they ask for at the same time is asked for at once."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from oprag.masking import describe
from oprag.methods.effects import Body, Effect, Embed, Generate, ReadSources, Request, Retrieve, Together
from oprag.methods.result import Result

__all__ = ["Flat", "flattened"]

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
