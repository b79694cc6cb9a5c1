"""The method `refine`: improve the answer with one part of the context after another."""

from __future__ import annotations

from dataclasses import replace

from oprag.chunk import Passage
from oprag.errors import BudgetError
from oprag.methods.answer import Completion, Result, nothing_found
from oprag.methods.prompts import Prompt
from oprag.methods.replies import without_reasoning
from oprag.methods.run import Body, Generate, Retrieve
from oprag.methods.task import Part, Task, cut, packed, split_passages
from oprag.pipeline.render import counter_of_shown

__all__ = ["refine"]

_SMALLEST_PART = 8
"""How many times smaller the parts may become."""


def refine(task: Task) -> Body:
    """Answer from the first part of the context, then improve the answer with each following part, in order.

    An empty reply or a skipped call leaves the answer unchanged. If the answer outgrows the part of the window that is
    reserved for it, the remaining parts become smaller; if it fills the window, it is the result, with a note.

    Calls: n, the number of parts of at most `passage_tokens`; more if the parts become smaller.
    """
    (context,) = yield Retrieve((task.question,))
    task = task.reading(context, task.room("answer", context=""))
    if (room := task.room("refine", existing_answer="", context="")) is not None:
        # The other half is reserved for the existing answer.
        task = task.reading(context, room._replace(tokens=room.tokens // 2))
    passages = split_passages(context, task.options.passage_tokens)
    if not passages:
        return nothing_found(task.options.empty_answer, context)
    smallest = max(1, task.options.passage_tokens // _SMALLEST_PART)
    answer = Completion()
    notes: tuple[str, ...] = ()
    read: list[Passage] = []
    unread = packed(task, passages)
    while unread:
        fitting = _fitting(task, without_reasoning(answer.text), unread, len(read) + 1, smallest)
        if fitting is None:
            left = sum(len(part.passages) for part in unread)
            notes = (f"{left} of {len(read) + left} passages were not read: the answer fills {task.window}",)
            break
        task, unread, prompt = fitting
        (reply,) = yield Generate((prompt,), final=len(unread) == 1)
        if reply.error is None and (without_reasoning(reply.text).strip() or reply.streamed):
            answer = reply
        read += unread.pop(0).passages
    return Result(answer.text, (context,), answer.parsed, tuple(read), notes=notes)


def _fitting(
    task: Task, answer: str, unread: list[Part], first: int, smallest: int
) -> tuple[Task, list[Part], Prompt] | None:
    """Halve the parts until the first one fits beside the answer; None if even the smallest do not fit."""
    while True:
        try:
            if answer:
                return task, unread, task.prompt("refine", existing_answer=answer, context=unread[0].text)
            return task, unread, task.prompt("answer", context=unread[0].text)
        except BudgetError:
            if not answer:
                raise
        limit = task.options.passage_tokens // 2
        if limit < smallest:
            return None
        task = replace(task, options=replace(task.options, passage_tokens=limit))
        counter = counter_of_shown(task.context_options)
        pieces = [piece for part in unread for one in part.passages for piece in cut(one, limit, counter)]
        unread = packed(task, pieces, first)
