"""The method `long_context`: answer from the full text of the retrieved sources."""

from __future__ import annotations

from oprag.methods.answer import Result, nothing_found
from oprag.methods.run import Body, Generate, Retrieve
from oprag.methods.task import Task
from oprag.methods.whole_sources import whole_sources

__all__ = ["long_context"]


def long_context(task: Task) -> Body:
    """Answer from the full text of the retrieved sources; retrieval only selects the sources.

    Calls: 1.
    """
    (context,) = yield Retrieve((task.question,))
    if not context.kept:
        return nothing_found(task.options.empty_answer, context)
    whole = yield from whole_sources(task, context)
    (reply,) = yield Generate((task.prompt("answer", context=whole.text),), final=True)
    return Result(reply.text, (context,), reply.parsed, whole.passages, notes=whole.notes)
