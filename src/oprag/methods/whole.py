"""Whole sources as one text that fits."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

from oprag.chunk import Chunk, Span
from oprag.context import Context
from oprag.errors import SourceReadError, SourceTooLongError
from oprag.masking import describe
from oprag.methods.effects import ReadSources
from oprag.methods.task import Task
from oprag.stitch import Passage

__all__ = ["Whole", "whole_sources"]

_CUT = "\n[...]\n"


class Whole(NamedTuple):
    """Whole sources, ready for a prompt.

    Attributes:
        text: All of them, one behind the other.
        passages: One for each, as citations name them.
        notes: What was left out, if anything was.
    """

    text: str
    passages: tuple[Passage, ...]
    notes: tuple[str, ...]


def whole_sources(task: Task, context: Context) -> Generator[ReadSources, Any, Whole]:
    """Ask for the sources of a context, in the context's order, and make them fit `source_token_budget` and the window.

    Raises:
        SourceReadError: A kept chunk does not say which source it came from.
        SourceTooLongError: They are too long, and `overflow="error"`.
    """
    names: list[str] = []
    for chunk in context.kept:
        if chunk.source is None:
            raise SourceReadError(
                "a retrieved chunk does not say which source it came from, so its whole source cannot be read", chunk
            )
        if chunk.source not in names:
            names.append(chunk.source)
    texts = yield ReadSources(tuple(names))
    passages = tuple(_passage(name, text) for name, text in zip(names, texts, strict=True))
    text = task.context_options.separator.join(
        task.shown(passage, number) for number, passage in enumerate(passages, 1)
    )
    budget, room = task.options.source_token_budget, task.room("answer", context="")
    limit = "" if budget is None else f"source_token_budget={budget:,}"
    if room is not None and (budget is None or room.tokens < budget):
        budget, limit = max(0, room.tokens), f"and {room}"
    if budget is None or (tokens := task.count(text)) <= budget:
        return Whole(text, passages, ())
    if task.options.overflow == "error":
        raise SourceTooLongError(
            f"the whole of {_listed(names)} has {tokens:,} tokens, {limit}; use "
            'overflow="truncate_middle" or "truncate_end", or a method that reads passages',
            names,
        )
    cut = _cut(text, budget, task)
    note = f"whole sources had {tokens:,} tokens, of which {task.count(cut):,} were read ({task.options.overflow})"
    if cut == text[: len(cut)]:
        # Those that begin behind the cut were not read, so no marker leads to them.
        passages = tuple(_begun(task, passages, len(cut)))
        if unread := names[len(passages) :]:
            note += f"; nothing of {_listed(unread)}"
    return Whole(cut, passages, (note,))


def _passage(name: str, text: str) -> Passage:
    span = Span(0, len(text))
    return Passage(text, (Chunk(text, 0, source=name, span=span),), (span,))


def _begun(task: Task, passages: Sequence[Passage], length: int) -> Iterator[Passage]:
    """The passages that begin before so many characters of them all have been read."""
    start = 0
    for number, passage in enumerate(passages, 1):
        shown = task.shown(passage, number)
        if start + len(shown) - len(passage.text) < length:
            yield passage
        start += len(shown) + len(task.context_options.separator)


def _cut(text: str, budget: int, task: Task) -> str:
    """The longest beginning, or beginning and end of equal length, that fits."""
    overflow = task.options.overflow
    if task.count(_CUT) > budget:
        overflow = "truncate_end"  # there is no room for the mark
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if task.count(_shortened(text, middle, overflow)) <= budget:
            low = middle
        else:
            high = middle
    return _shortened(text, low, overflow)


def _shortened(text: str, length: int, overflow: str) -> str:
    if overflow == "truncate_end":
        return text[:length]
    # As LongBench cuts; a mark says that something is missing.
    first = length - length // 2
    return text[:first] + _CUT + text[len(text) - length // 2 :]


def _listed(names: Sequence[str]) -> str:
    return f"source {describe(names[0])}" if len(names) == 1 else f"{len(names)} sources"
