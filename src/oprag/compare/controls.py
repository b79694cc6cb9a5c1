"""Control methods that exist only in experiments, and the input and output of each method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from oprag.compare.providers.likelihood import LIKELIHOOD, likelihood_prompt
from oprag.methods.answer import Result
from oprag.methods.effects import Body, Generate, Retrieve
from oprag.methods.model_calls import Message, Prompt
from oprag.methods.prompts import TextTemplate
from oprag.methods.registry import MethodFunction
from oprag.methods.task import Task

__all__ = ["CONTROLS", "GOLD", "kind_of"]

GOLD = "gold_answers"
"""The task input with the gold answers, for methods that may see them."""

_CLOSED_BOOK = TextTemplate("Question: {question}\n{instruction}")


class MethodKind(NamedTuple):
    """The input and output of a method."""

    reads: Literal["context", "documents"] | None = "context"  # documents: read whole, regardless of the token budget
    writes: Literal["answer", "likelihood"] | None = "answer"  # None if no model is called


_KINDS = {
    "closed_book": MethodKind(reads=None),
    "closed_book_likelihood": MethodKind(reads=None, writes="likelihood"),
    "context_only": MethodKind(writes=None),
    "answer_likelihood": MethodKind(writes="likelihood"),
    "long_context": MethodKind(reads="documents"),
}


def kind_of(method: str) -> MethodKind:
    """The input and output of a method; custom methods read a context and write an answer."""
    return _KINDS.get(method, MethodKind())


def closed_book(task: Task) -> Body:
    """Answer without a context, so that what the model has memorized is not credited to retrieval."""
    values = {"question": task.asked, "instruction": task.instruction}
    (reply,) = yield Generate((Prompt(_CLOSED_BOOK.messages(values), "closed_book"),), final=True)
    return Result(reply.text, (), reply.parsed)


def context_only(task: Task) -> Body:
    """Retrieve without calling a model, to score only the contexts."""
    (context,) = yield Retrieve((task.question,))
    return Result("", (context,), passages=context.passages)


def answer_likelihood(task: Task) -> Body:
    """Measure the likelihood of each gold answer after the context and question, one call per gold answer."""
    (context,) = yield Retrieve((task.question,))
    replies = yield Generate(_likelihood_prompts(task, context.text))
    return Result(_best(replies), (context,), passages=context.passages)


def closed_book_likelihood(task: Task) -> Body:
    """The same as `answer_likelihood`, without a context."""
    replies = yield Generate(_likelihood_prompts(task, ""))
    return Result(_best(replies), ())


def _likelihood_prompts(task: Task, context: str) -> tuple[Prompt, ...]:
    before = Message("user", likelihood_prompt(context, task.question, task.choices))
    return tuple(Prompt((before, Message("assistant", answer)), LIKELIHOOD) for answer in task.inputs[GOLD])


def _best(replies: tuple[object, ...]) -> str:
    """The highest likelihood of any gold answer; empty without gold answers."""
    return max((str(getattr(reply, "text", "")) for reply in replies), key=float, default="")


CONTROLS: Mapping[str, MethodFunction] = {
    "closed_book": closed_book,
    "closed_book_likelihood": closed_book_likelihood,
    "context_only": context_only,
    "answer_likelihood": answer_likelihood,
}
"""Methods that exist only in experiments, by name."""
