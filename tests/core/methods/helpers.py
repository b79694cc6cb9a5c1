"""A world for methods to work in: a search, a scripted model, sources and vectors, driven step by step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oprag import Chunk, Context, ContextOptions, build_context
from oprag.methods import (
    Answer,
    Completion,
    Embed,
    Generate,
    Message,
    MethodOptions,
    Prompt,
    ReadSources,
    Result,
    Retrieve,
    Task,
    Window,
    answering,
)
from oprag.methods.run import Body, Request, flattened
from oprag.positions.source_reader import ReadSource, as_reader

METHODS = ["stuff", "refine", "map_reduce", "map_rerank", "step_down", "reciprocal", "long_context", "self_route"]
QUESTION = "What happened on the voyage?"

APART = 6
"""Tokens of a call that has room for one of the `parts` and not for two, in words or by the approximation."""

Reply = str | Completion | Exception


def parts(count: int, source: str = "voyage") -> list[Chunk]:
    """Chunks that stand apart in their source, the last one ranked best."""
    return [
        Chunk(f"Part {number} of {source}.", count - 1 - number, metadata=_at(source, 1_000 * number))
        for number in range(count)
    ]


def _at(source: str, start: int) -> dict[str, Any]:
    return {"source": source, "start_index": start}


def numbers(text: str) -> list[int]:
    """The numbers of the parts in a text, as they stand there."""
    return [int(number) for number in re.findall(r"Part (\d+) of", text)]


def words(text: str) -> int:
    return len(text.split())


def bag(text: str) -> list[float]:
    """A vector with one value for each letter."""
    return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


class World:
    """Performs requests, and remembers them.

    Args:
        found: What a search gives: chunks for every question, or for each by itself.
        sources: Where whole sources come from.
        embed: Makes a vector of a text.
        replies: What the model says in a step: always the same, one after the other, or made of the prompt.
    """

    def __init__(
        self,
        found: Sequence[Chunk] | Mapping[str, Sequence[Chunk]] = (),
        *,
        sources: ReadSource | None = None,
        embed: Callable[[str], Sequence[float]] = bag,
        **replies: Reply | Sequence[Reply] | Callable[[Prompt], Reply],
    ) -> None:
        self.found = found
        self.embed = embed
        self.replies = {step: list(reply) if isinstance(reply, list) else reply for step, reply in replies.items()}
        self.read = as_reader(sources)
        self.requests: list[Request] = []
        self.prompts: list[Prompt] = []
        self.context_options = ContextOptions()

    @property
    def steps(self) -> list[str]:
        return [prompt.step for prompt in self.prompts]

    def texts(self, step: str) -> list[str]:
        """What was sent in a step."""
        return [prompt.text for prompt in self.prompts if prompt.step == step]

    def of(self, kind: type[Any]) -> list[Any]:
        """The requests of a kind."""
        return [request for request in self.requests if isinstance(request, kind)]

    def answer(
        self,
        question: str = QUESTION,
        *,
        context_options: ContextOptions | None = None,
        choices: tuple[str, ...] = (),
        chat_history: tuple[Message, ...] = (),
        inputs: Mapping[str, Any] | None = None,
        window: Window | None = None,
        **options: Any,
    ) -> Answer:
        """The answer to a question, each of the `parts` read by itself where nothing else is said."""
        chosen = MethodOptions(**{"passage_tokens": APART, **options})
        self.context_options = chosen.numbered(context_options or ContextOptions())
        task = Task(question, chosen, self.context_options, choices, chat_history, inputs or {}, window=window)
        answer: Answer = self.drive(answering(task))
        return answer

    def result(self, body: Body) -> Result:
        """What a body returns."""
        result: Result = self.drive(flattened(body))
        return result

    def drive(self, requests: Any) -> Any:
        reply: Any = None
        try:
            while True:
                request = requests.send(reply)
                self.requests.append(request)
                reply = self.perform(request)
        except StopIteration as stop:
            return stop.value
        finally:
            requests.close()

    def perform(self, request: Request) -> Any:
        match request:
            case Retrieve():
                return request.fitted(map(self.search, request.questions))
            case Generate():
                return tuple(map(self.generate, request.prompts))
            case Embed():
                return [self.embed(text) for text in request.questions], [self.embed(text) for text in request.texts]
            case ReadSources():
                assert self.read is not None
                return tuple(map(self.read, request.sources))
        raise AssertionError(request)

    def search(self, question: str) -> Context:
        chunks = self.found.get(question, ()) if isinstance(self.found, Mapping) else self.found
        return build_context(chunks, self.context_options)

    def generate(self, prompt: Prompt) -> Completion:
        self.prompts.append(prompt)
        reply: Any = self.replies.get(prompt.step, f"Answer of {prompt.step}.")
        if isinstance(reply, list):
            reply = reply.pop(0)
        elif callable(reply):
            reply = reply(prompt)
        if isinstance(reply, Exception):
            return Completion(error=reply)
        return Completion(reply) if isinstance(reply, str) else reply
