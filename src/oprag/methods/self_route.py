"""The method `self_route`: answer from the retrieved context, and from the whole source only if necessary."""

from __future__ import annotations

from oprag.methods.answer import Result, nothing_found
from oprag.methods.long_context import whole_sources
from oprag.methods.replies import is_refusal, may_be_refusal, reply_text
from oprag.methods.run import Body, Generate, Retrieve
from oprag.methods.task import Task

__all__ = ["self_route"]


def self_route(task: Task) -> Body:
    """Answer from the context, or from the whole sources if the model replies that the context is insufficient.

    After Self-Route (Li et al. 2024, arXiv 2407.16833). An empty reply also counts as a refusal. Tokens are streamed as
    soon as the reply can no longer become a refusal.

    Calls: 1, or 2 if the first reply is a refusal; the answer's `route` is "rag" or "long_context".
    """
    (context,) = yield Retrieve((task.question,), (task.room("route", context=""),))
    if not context.text.strip():
        return nothing_found(task.options.empty_answer, context)
    (reply,) = yield Generate((task.prompt("route", context=context.text),), final=True, hold=may_be_refusal)
    text = reply_text(reply, "self_route")
    if text.strip() and not is_refusal(text):
        return Result(reply.text, (context,), reply.parsed, context.passages, route="rag")
    whole = yield from whole_sources(task, context)
    (reply,) = yield Generate((task.prompt("answer", context=whole.text),), final=True)
    return Result(reply.text, (context,), reply.parsed, whole.passages, route="long_context", notes=whole.notes)
