"""Control methods that exist only in experiments, and the input and output of each method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from oprag.compare.pipelines import read_reply
from oprag.methods.answer import Result
from oprag.methods.effects import Body, Generate, Retrieve
from oprag.methods.model_calls import Message, Prompt
from oprag.methods.prompts import TextTemplate
from oprag.methods.registry import MethodFunction
from oprag.methods.task import Task

__all__ = ["CONTROLS", "PIPELINE", "kind_of", "method_function"]

PIPELINE = "pipeline:"
"""Prefix of the method of an own pipeline; its name follows."""

_CLOSED_BOOK = TextTemplate("Question: {question}\n{instruction}")


class MethodKind(NamedTuple):
    """The input and output of a method."""

    reads: Literal["context", "documents"] | None = "context"  # documents: read whole, regardless of the token budget
    writes: bool = True  # whether a model is called for an answer
    own: bool = False  # whether it is an own pipeline, which may return chunks


_KINDS = {
    "closed_book": MethodKind(reads=None),
    "context_only": MethodKind(writes=False),
    "long_context": MethodKind(reads="documents"),
}


def kind_of(method: str) -> MethodKind:
    """The input and output of a method; custom methods read a context and write an answer."""
    return MethodKind(reads=None, own=True) if method.startswith(PIPELINE) else _KINDS.get(method, MethodKind())


def closed_book(task: Task) -> Body:
    """Answer without a context, so that what the model has memorized is not credited to retrieval."""
    values = {"question": task.asked, "instruction": task.instruction}
    (reply,) = yield Generate((Prompt(_CLOSED_BOOK.messages(values), "closed_book"),), final=True)
    return Result(reply.text, (), reply.parsed)


def context_only(task: Task) -> Body:
    """Retrieve without calling a model, to score only the contexts."""
    (context,) = yield Retrieve((task.question,))
    return Result("", (context,), passages=context.passages)


def pipeline(task: Task) -> Body:
    """Ask an own pipeline; the chunks that it returned are the parsed object of the answer."""
    (reply,) = yield Generate((Prompt((Message("user", task.asked),), "pipeline"),), final=True)
    text, chunks = read_reply(reply.text)
    return Result(text, (), chunks)


def method_function(method: str) -> MethodFunction | None:
    """The function of a method that exists only in experiments; None for the other methods."""
    return pipeline if method.startswith(PIPELINE) else CONTROLS.get(method)


CONTROLS: Mapping[str, MethodFunction] = {
    "closed_book": closed_book,
    "context_only": context_only,
}
"""Methods that exist only in experiments, by name."""
