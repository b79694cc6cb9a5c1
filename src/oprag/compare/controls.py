"""Methods that there are in experiments alone: what a model knows without a text, and how likely it finds an answer."""

from __future__ import annotations

from oprag.compare.providers.likelihood import LIKELIHOOD, likelihood_prompt
from oprag.methods.answer import Result
from oprag.methods.effects import Body, Generate, Retrieve
from oprag.methods.model_calls import Message, Prompt
from oprag.methods.prompts import TextTemplate
from oprag.methods.registry import MethodFunction
from oprag.methods.task import Task

__all__ = ["GOLD", "control"]

GOLD = "gold_answers"
"""The input of a task that holds the gold answers, for the methods that may see them."""

_CLOSED_BOOK = TextTemplate("Question: {question}\n{instruction}")


def control(name: str) -> MethodFunction | None:
    """The method of this name, if it is one of the harness."""
    return _CONTROLS.get(name)


def closed_book(task: Task) -> Body:
    """Ask without any text: what a model remembers of a famous one is no success of the retrieval.

    Calls: 1.
    """
    values = {"question": task.asked, "instruction": task.instruction}
    (reply,) = yield Generate((Prompt(_CLOSED_BOOK.messages(values), "closed_book"),), final=True)
    return Result(reply.text, (), reply.parsed)


def context_only(task: Task) -> Body:
    """Retrieve and ask nothing, for what can be said about a context by itself.

    Calls: 0.
    """
    (context,) = yield Retrieve((task.question,))
    return Result("", (context,), passages=context.passages)


def answer_likelihood(task: Task) -> Body:
    """Ask how likely each gold answer is behind the context and the question.

    Calls: 1 for each gold answer, of a model that gives likelihoods.
    """
    (context,) = yield Retrieve((task.question,))
    replies = yield Generate(_likelihood_prompts(task, context.text))
    return Result(_best(replies), (context,), passages=context.passages)


def closed_book_likelihood(task: Task) -> Body:
    """As `answer_likelihood`, without a context.

    Calls: 1 for each gold answer.
    """
    replies = yield Generate(_likelihood_prompts(task, ""))
    return Result(_best(replies), ())


def _likelihood_prompts(task: Task, context: str) -> tuple[Prompt, ...]:
    before = Message("user", likelihood_prompt(context, task.question, task.choices))
    return tuple(Prompt((before, Message("assistant", answer)), LIKELIHOOD) for answer in task.inputs[GOLD])


def _best(replies: tuple[object, ...]) -> str:
    """The reply with the highest likelihood: of several gold answers the best counts; empty without any."""
    return max((str(getattr(reply, "text", "")) for reply in replies), key=float, default="")


_CONTROLS: dict[str, MethodFunction] = {
    "closed_book": closed_book,
    "context_only": context_only,
    "answer_likelihood": answer_likelihood,
    "closed_book_likelihood": closed_book_likelihood,
}
