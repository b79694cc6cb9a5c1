"""The method `refine`: improve the answer with one part of the context after another."""

from __future__ import annotations

from oprag.methods.answer import Result, nothing_found
from oprag.methods.effects import Body, Generate, Retrieve
from oprag.methods.model_calls import Completion
from oprag.methods.passages import packed, split_passages
from oprag.methods.task import Task

__all__ = ["refine"]


def refine(task: Task) -> Body:
    """Answer from the first part of the context, then improve the answer with each following part, in order.

    An empty reply or a skipped call leaves the answer unchanged.

    Calls: n, the number of parts of at most `passage_tokens`.
    """
    (context,) = yield Retrieve((task.question,))
    task = task.reading(context, task.room("answer", context=""))
    if (room := task.room("refine", existing_answer="", context="")) is not None:
        # The other half is reserved for the existing answer.
        task = task.reading(context, room._replace(tokens=room.tokens // 2))
    passages = split_passages(context, task.options.passage_tokens)
    if not passages:
        return nothing_found(task.options.empty_answer, context)
    answer = Completion()
    texts = packed(task, passages)
    for number, shown in enumerate(texts, 1):
        if answer.text:
            prompt = task.prompt("refine", existing_answer=answer.text, context=shown)
        else:
            prompt = task.prompt("answer", context=shown)
        (reply,) = yield Generate((prompt,), final=number == len(texts))
        if reply.error is None and reply.text.strip():
            answer = reply
    return Result(answer.text, (context,), answer.parsed, passages)
