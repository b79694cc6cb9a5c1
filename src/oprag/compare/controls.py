"""The methods that exist in experiments alone, as controls, and what each method reads and writes."""

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
"""The input of a task that holds the gold answers, for the methods that may see them."""

_CLOSED_BOOK = TextTemplate("Question: {question}\n{instruction}")


class MethodKind(NamedTuple):
    """What a method reads and writes."""

    reads: Literal["context", "documents"] | None = "context"  # whole documents, whatever the token budget
    writes: Literal["answer", "likelihood"] | None = "answer"  # None where no model is asked


_KINDS = {
    "closed_book": MethodKind(reads=None),
    "closed_book_likelihood": MethodKind(reads=None, writes="likelihood"),
    "context_only": MethodKind(writes=None),
    "answer_likelihood": MethodKind(writes="likelihood"),
    "long_context": MethodKind(reads="documents"),
}


def kind_of(method: str) -> MethodKind:
    """What a method reads and writes; one of the user's own reads a context and writes an answer."""
    return _KINDS.get(method, MethodKind())


def closed_book(task: Task) -> Body:
    """Ask without any text: what a model remembers of a famous one is not a success of the retrieval."""
    values = {"question": task.asked, "instruction": task.instruction}
    (reply,) = yield Generate((Prompt(_CLOSED_BOOK.messages(values), "closed_book"),), final=True)
    return Result(reply.text, (), reply.parsed)


def context_only(task: Task) -> Body:
    """Retrieve and ask nothing, to score contexts by themselves."""
    (context,) = yield Retrieve((task.question,))
    return Result("", (context,), passages=context.passages)


def answer_likelihood(task: Task) -> Body:
    """Ask how likely each gold answer is after the context and the question, in a call each."""
    (context,) = yield Retrieve((task.question,))
    replies = yield Generate(_likelihood_prompts(task, context.text))
    return Result(_best(replies), (context,), passages=context.passages)


def closed_book_likelihood(task: Task) -> Body:
    """As `answer_likelihood`, without a context."""
    replies = yield Generate(_likelihood_prompts(task, ""))
    return Result(_best(replies), ())


def _likelihood_prompts(task: Task, context: str) -> tuple[Prompt, ...]:
    before = Message("user", likelihood_prompt(context, task.question, task.choices))
    return tuple(Prompt((before, Message("assistant", answer)), LIKELIHOOD) for answer in task.inputs[GOLD])


def _best(replies: tuple[object, ...]) -> str:
    """The reply with the highest likelihood: of several gold answers the best counts; empty without any."""
    return max((str(getattr(reply, "text", "")) for reply in replies), key=float, default="")


CONTROLS: Mapping[str, MethodFunction] = {
    "closed_book": closed_book,
    "closed_book_likelihood": closed_book_likelihood,
    "context_only": context_only,
    "answer_likelihood": answer_likelihood,
}
"""The methods that exist in experiments alone."""
