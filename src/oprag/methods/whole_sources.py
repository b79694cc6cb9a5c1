"""Whole sources in a prompt: how they are read, and made to fit."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

from oprag.assembly.stitch import Passage
from oprag.chunk import Chunk, Span
from oprag.context import Context
from oprag.errors import SourceReadError, SourceTooLongError
from oprag.masking import describe
from oprag.methods.effects import ReadSources
from oprag.methods.task import Task

__all__ = ["WholeSources", "whole_sources"]

_CUT_MARK = "\n[...]\n"


class WholeSources(NamedTuple):
    """The text of whole sources, for a prompt.

    Attributes:
        text: The text of all sources, one after the other.
        passages: One passage for each source, for citations.
        notes: Remarks about text that was left out.
    """

    text: str
    passages: tuple[Passage, ...]
    notes: tuple[str, ...]


def whole_sources(task: Task, context: Context) -> Generator[ReadSources, Any, WholeSources]:
    """Read the sources of a context, in its order, and cut them to `source_token_budget` and the window."""
    names: list[str] = []
    for chunk in context.kept:
        if chunk.source is None:
            raise SourceReadError(
                "a retrieved chunk does not say which source it came from, so its whole source cannot be read", chunk
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
    limit = "" if budget is None else f"source_token_budget={budget:,}"
    if room is not None and (budget is None or room.tokens < budget):
        budget, limit = max(0, room.tokens), f"and {room}"
    if budget is None or (tokens := task.count(text)) <= budget:
        return WholeSources(text, passages, ())
    if task.options.overflow == "error":
        raise SourceTooLongError(
            f"the whole of {_listed(names)} has {tokens:,} tokens, {limit}; use "
            'overflow="truncate_middle" or "truncate_end", or a method that reads passages',
            names,
        )
    cut = _cut(text, budget, task)
    note = f"whole sources had {tokens:,} tokens, of which {task.count(cut):,} were read ({task.options.overflow})"
    if cut == text[: len(cut)]:
        # Passages that begin after the cut were not read, so no marker cites them.
        passages = tuple(_begun(task, passages, len(cut)))
        if unread := names[len(passages) :]:
            note += f"; nothing of {_listed(unread)}"
    return WholeSources(cut, passages, (note,))


def _begun(task: Task, passages: Sequence[Passage], length: int) -> Iterator[Passage]:
    """The passages that begin within a number of characters of the text of all."""
    start = 0
    for number, passage in enumerate(passages, 1):
        shown = task.shown(passage, number)
        if start + len(shown) - len(passage.text) < length:
            yield passage
        start += len(shown) + len(task.context_options.separator)


def _cut(text: str, budget: int, task: Task) -> str:
    """The longest beginning, or beginning and end of equal length, that fits."""
    overflow = task.options.overflow
    if task.count(_CUT_MARK) > budget:
        overflow = "truncate_end"  # no room for the mark
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if task.count(_cut_to(text, middle, overflow)) <= budget:
            low = middle
        else:
            high = middle
    return _cut_to(text, low, overflow)


def _cut_to(text: str, length: int, overflow: str) -> str:
    """The text cut to a number of characters, and a mark where its middle is missing."""
    if overflow == "truncate_end":
        return text[:length]
    # As LongBench cuts.
    first = length - length // 2
    return text[:first] + _CUT_MARK + text[len(text) - length // 2 :]


def _listed(names: Sequence[str]) -> str:
    return f"source {describe(names[0])}" if len(names) == 1 else f"{len(names)} sources"
