"""The method `stuff`: answer from the whole context in one prompt."""

from __future__ import annotations

from oprag.methods.answer import Result, nothing_found
from oprag.methods.run import Body, Generate, Retrieve
from oprag.methods.task import Task

__all__ = ["stuff"]


def stuff(task: Task) -> Body:
    """Answer from the whole context in one call (with a context in source order: OP-RAG, Yu, Xu and Akkiraju 2024).

    Calls: 1.
    """
    (context,) = yield Retrieve((task.question,), (task.room("answer", context=""),))
    if not context.text.strip():
        return nothing_found(task.options.empty_answer, context)
    (reply,) = yield Generate((task.prompt("answer", context=context.text),), final=True)
    return Result(reply.text, (context,), reply.parsed, context.passages)
