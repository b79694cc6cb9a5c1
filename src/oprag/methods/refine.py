"""The method `refine`: improve the answer with one part of the context after another."""

from __future__ import annotations

from oprag.chunk import Passage
from oprag.errors import BudgetError
from oprag.methods.answer import Completion, Result, nothing_found
from oprag.methods.replies import without_reasoning
from oprag.methods.run import Body, Generate, Retrieve
from oprag.methods.task import Task, packed, split_passages

__all__ = ["refine"]


def refine(task: Task) -> Body:
    """Answer from the first part of the context, then improve the answer with each following part, in order.

    An empty reply or a skipped call leaves the answer unchanged. If the answer outgrows the part of the window that is
    reserved for it, so that the next part does not fit, it is the result, with a note.

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
    notes: tuple[str, ...] = ()
    read: list[Passage] = []
    parts = packed(task, passages)
    for place, part in enumerate(parts, 1):
        existing = without_reasoning(answer.text)
        step, values = ("refine", {"existing_answer": existing}) if existing else ("answer", {})
        try:
            prompt = task.prompt(step, context=part.text, **values)
        except BudgetError:
            if not existing:
                raise
            left = len(passages) - len(read)
            notes = (f"{left} of {len(passages)} passages were not read: the answer fills {task.window}",)
            break
        (reply,) = yield Generate((prompt,), final=place == len(parts))
        if reply.error is None and (without_reasoning(reply.text).strip() or reply.streamed):
            answer = reply
        read += part.passages
    return Result(answer.text, (context,), answer.parsed, tuple(read), notes=notes)
