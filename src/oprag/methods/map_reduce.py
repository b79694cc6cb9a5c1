"""The method `map_reduce`: answer from each part of the context, then combine the partial answers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from oprag.methods.answer import Result, nothing_found
from oprag.methods.replies import without_reasoning
from oprag.methods.run import Body, Generate, Retrieve
from oprag.methods.task import Task, combined, packed, split_passages

__all__ = ["map_reduce"]

_SEPARATOR = "\n\n"


def map_reduce(task: Task) -> Body:
    """Answer from each part of the context independently, then combine the partial answers.

    If the partial answers together have more than `collapse_tokens`, adjacent ones are first merged, in rounds, so that
    they stay in the order of the context. Answers of which not even two fit the model's window are cut, with a note.

    Calls: n + 1 for n parts of at most `passage_tokens`, and one for each merged group.
    """
    (context,) = yield Retrieve((task.question,))
    task = task.reading(context, task.room("map", context=""))
    for step in ("collapse", "reduce"):
        task.room(step, answers="")  # if the prompt alone does not fit, raise before any call
    passages = split_passages(context, task.options.passage_tokens)
    if not passages:
        return nothing_found(task.options.empty_answer, context)
    replies = yield Generate(tuple(task.prompt("map", context=part.text) for part in packed(task, passages)))
    partial = [text for reply in replies if reply.error is None and (text := without_reasoning(reply.text)).strip()]
    if not partial:
        return Result("", (context,), passages=passages, notes=("no passage gave a partial answer",))
    partial, notes = yield from _collapsed(task, partial)
    prompt, cut = combined(task, "reduce", partial, _SEPARATOR.join)
    (answer,) = yield Generate((prompt,), final=True)
    return Result(answer.text, (context,), answer.parsed, passages, notes=tuple(dict.fromkeys((*notes, *cut))))


def _collapsed(task: Task, partial: list[str]) -> Generator[Generate, Any, tuple[list[str], list[str]]]:
    """Merge adjacent partial answers until all of them fit into one prompt; also returns notes."""
    notes: list[str] = []
    while len(partial) > 1 and task.count(_SEPARATOR.join(partial)) > task.collapse_tokens:
        groups = _groups(task, partial)
        merging = [combined(task, "collapse", group, _SEPARATOR.join) for group in groups if len(group) > 1]
        notes += [note for _, cut in merging for note in cut]
        replies = iter((yield Generate(tuple(prompt for prompt, _ in merging))))
        merged: list[str] = []
        for group in groups:
            reply = next(replies) if len(group) > 1 else None
            text = "" if reply is None else without_reasoning(reply.text)
            # If merging failed, the answers stay unchanged.
            merged += [text] if text.strip() else group
        if len(merged) == len(partial):
            break
        partial = merged
    return partial, notes


def _groups(task: Task, partial: Sequence[str]) -> list[list[str]]:
    """Group adjacent answers that fit into one prompt; if no two fit, pair them, so that each round makes progress."""
    groups: list[list[str]] = []
    total = 0
    for text in partial:
        # Each text is counted once, with its separator; counting whole groups would be slow.
        tokens = task.count(f"{_SEPARATOR}{text}")
        if groups and total + tokens <= task.collapse_tokens:
            groups[-1].append(text)
            total += tokens
        else:
            groups.append([text])
            total = tokens
    if len(groups) == len(partial):
        return [list(partial[start : start + 2]) for start in range(0, len(partial), 2)]
    return groups
