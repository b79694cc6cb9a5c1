"""The retrieved context first, the whole source only where that is not enough."""

from __future__ import annotations

from oprag.methods.answer import Result, nothing_found
from oprag.methods.effects import Body, Generate
from oprag.methods.replies import is_refusal, may_be_refusal, text_of
from oprag.methods.sources import whole_sources
from oprag.methods.task import Task

__all__ = ["self_route"]


def self_route(task: Task) -> Body:
    """Answer from the context, or let the model say that it cannot; only then read the whole source.

    After Self-Route (Li et al. 2024, arXiv 2407.16833). An empty reply is no answer either, and takes the second way.
    Tokens are shown to the user as soon as the reply cannot be a refusal any more.

    Calls: 1, or 2 where the first one brought no answer; `route` says which.

    Raises:
        SourceReadError: A source is needed and cannot be read.
        SourceTooLongError: The sources do not fit `source_token_budget`, and `overflow="error"`.
    """
    (context,) = yield task.retrieve("route")
    if not context.text.strip():
        return nothing_found(task.options.empty_answer, context)
    (reply,) = yield Generate((task.prompt("route", context=context.text),), final=True, hold=may_be_refusal)
    text = text_of(reply, "self_route")
    if text.strip() and not is_refusal(text):
        return Result(reply.text, (context,), reply.parsed, context.passages, route="rag")
    whole = yield from whole_sources(task, context)
    (reply,) = yield Generate((task.prompt("answer", context=whole.text),), final=True)
    return Result(reply.text, (context,), reply.parsed, whole.passages, route="long_context", notes=whole.notes)
