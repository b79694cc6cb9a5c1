"""The method `long_context`: answer from the full text of the retrieved sources, truncated if it does not fit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

from oprag._internal.masking import describe
from oprag.chunk import Chunk, Passage, Span
from oprag.context import Context
from oprag.errors import SourceReadError, SourceTooLongError
from oprag.methods.answer import Result, nothing_found
from oprag.methods.run import Body, Generate, ReadSources, Retrieve
from oprag.methods.task import Task
from oprag.pipeline.render import shown_text

__all__ = ["WholeSources", "long_context", "whole_sources"]

_CUT_MARK = "\n[...]\n"


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


class WholeSources(NamedTuple):
    """The text of whole sources, for a prompt."""

    text: str  # the concatenated text of all sources
    passages: tuple[Passage, ...]  # one passage per source, for citations
    notes: tuple[str, ...]  # notes about truncated text


def whole_sources(task: Task, context: Context) -> Generator[ReadSources, Any, WholeSources]:
    """Read the sources of a context, in its order, and truncate them to `source_token_budget` and the window."""
    names: list[str] = []
    for chunk in context.kept:
        if chunk.source is None:
            raise SourceReadError(
                "cannot read whole sources: the source of a retrieved chunk is unknown; set source_key, or store the "
                "source in the metadata",
                chunk,
            )
        if chunk.source not in names:
            names.append(chunk.source)
    texts = yield ReadSources(tuple(names))
    passages = tuple(
        Passage(text, (Chunk(text, 0, source=name, span=span),), (span,))
        for name, text in zip(names, texts, strict=True)
        for span in (Span(0, len(text)),)
    )
    text = task.context_options.separator.join(
        task.shown(passage, number) for number, passage in enumerate(passages, 1)
    )
    budget, room = task.options.source_token_budget, task.room("answer", context="")
    limit = "" if budget is None else f"more than source_token_budget={budget:,}"
    if room is not None and (budget is None or room.tokens < budget):
        budget, limit = max(0, room.tokens), f"but {room}"
    if budget is None or (tokens := task.count(text)) <= budget:
        return WholeSources(text, passages, ())
    if task.options.overflow == "error":
        raise SourceTooLongError(
            f"the full text of {_listed(names)} has {tokens:,} tokens, {limit}; use "
            'overflow="truncate_middle" or "truncate_end", or a method that reads passages',
            names,
        )
    cut = _cut(text, budget, task)
    note = f"whole sources have {tokens:,} tokens, of which {task.count(cut):,} were read ({task.options.overflow})"
    if cut == text[: len(cut)]:
        # Passages after the cut were not read, so markers must not cite them.
        passages = tuple(_started(task, passages, len(cut)))
        if unread := names[len(passages) :]:
            note += f"; not read at all: {_listed(unread)}"
    return WholeSources(cut, passages, (note,))


def _started(task: Task, passages: Sequence[Passage], length: int) -> Iterator[Passage]:
    """The passages whose text starts within the first `length` characters of the concatenated text."""
    start, header = 0, task.context_options.header
    for number, passage in enumerate(passages, 1):
        shown = task.shown(passage, number)
        if start + len(shown) - len(shown_text(passage.text, header)) < length:
            yield passage
        start += len(shown) + len(task.context_options.separator)


def _cut(text: str, budget: int, task: Task) -> str:
    """Truncate text to the longest beginning, or beginning and end of equal length, that fits the budget."""
    overflow, lengths = task.options.overflow, range(len(text))
    fits = bisect_right(lengths, budget, 1, key=lambda length: task.count(_cut_to(text, length, overflow))) - 1
    return _cut_to(text, fits, overflow)


def _cut_to(text: str, length: int, overflow: str) -> str:
    """Truncate text to a number of characters; `truncate_middle` puts a mark in place of the middle."""
    if overflow == "truncate_end":
        return text[:length]
    # Same as LongBench.
    first = length - length // 2
    return text[:first] + _CUT_MARK + text[len(text) - length // 2 :]


def _listed(names: Sequence[str]) -> str:
    return f"source {describe(names[0])}" if len(names) == 1 else f"{len(names)} sources"
