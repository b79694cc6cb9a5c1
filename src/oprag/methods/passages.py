"""Cutting a context into passages, and packing them into what a model reads in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oprag.assembly.render import between, render
from oprag.assembly.stitch import Passage, stitch
from oprag.chunk import Chunk, Span
from oprag.context import Context
from oprag.methods.task import Task
from oprag.options import ContextOptions
from oprag.tokens import TokenCounter, count

__all__ = ["packed", "units"]


def units(context: Context, passage_tokens: int) -> tuple[Passage, ...]:
    """The passages of a context, in order, none much longer than this.

    Stitched runs are cut at chunk borders; a chunk that is too long by itself is cut at white space, and its parts
    follow each other in the order of the text.

    Args:
        context: The context.
        passage_tokens: The most tokens of a passage, by the counter of the context's assembly.

    Raises:
        TokenizerError: The counter gave no usable count.
    """
    context_options = context.options
    counter = context_options.count_tokens
    found: list[Passage] = []
    # With numbered passages each chunk of the context stands by itself; to read them one by one would be many calls.
    for passage in context.passages if context_options.stitch else stitch(context.kept, context_options.separator):
        if count(passage.text, counter) <= passage_tokens:
            found.append(passage)
            continue
        for group in _groups(passage.chunks, passage_tokens, context_options.separator, counter):
            for part in stitch(group, context_options.separator):
                found += _cut(part, passage_tokens, counter)
    return tuple(passage for passage in found if passage.text and not passage.text.isspace())


def packed(task: Task, passages: Sequence[Passage]) -> tuple[str, ...]:
    """What the model reads in each call, in order.

    Neighbours share a call as long as they have at most `passage_tokens` together, and are rendered as in a context,
    with headers, separators and gaps. With `cite=True` each passage has a call of its own.

    Args:
        task: The question, whose options say how.
        passages: The passages, as `units` gives them.

    Raises:
        TokenizerError: The counter gave no usable count.
    """
    if task.options.cite:
        return tuple(task.shown(passage, number) for number, passage in enumerate(passages, 1))
    context_options, most = task.context_options, task.options.passage_tokens
    groups: list[list[Passage]] = []
    total = 0
    for number, passage in enumerate(passages, 1):
        shown = task.shown(passage, number)
        if groups:
            tokens = task.count(between(groups[-1][-1], passage, context_options) + shown)
            if total + tokens <= most:
                groups[-1].append(passage)
                total += tokens
                continue
        groups.append([passage])
        total = task.count(shown)
    texts: list[str] = []
    number = 1
    for group in groups:
        texts += _rendered(group, number, context_options, most)
        number += len(group)
    return tuple(texts)


def _rendered(group: list[Passage], first: int, context_options: ContextOptions, most: int) -> list[str]:
    """The text of a group; two texts or more where the counter finds more tokens in it than in its parts."""
    text = render(group, context_options, first=first)
    if len(group) == 1 or count(text, context_options.count_tokens) <= most:
        return [text]
    half = len(group) // 2
    return [
        *_rendered(group[:half], first, context_options, most),
        *_rendered(group[half:], first + half, context_options, most),
    ]


def _groups(chunks: Iterable[Chunk], most: int, separator: str, counter: TokenCounter) -> Iterator[list[Chunk]]:
    """Neighbours that fit into one passage together."""
    group: list[Chunk] = []
    total = 0
    for chunk in chunks:
        # The separator stands between where the splitter stripped white space.
        tokens = count(f"{separator}{chunk.text}" if group else chunk.text, counter)
        if group and total + tokens > most:
            # Chunks that overlap have fewer tokens together than one by one; counting the joined text is the slow way.
            joined = count(separator.join(part.text for part in stitch([*group, chunk], separator)), counter)
            if joined > most:
                yield group
                group, total = [], 0
                tokens = count(chunk.text, counter)
            else:
                total = joined - tokens
        group.append(chunk)
        total += tokens
    if group:
        yield group


def _cut(passage: Passage, most: int, counter: TokenCounter) -> Iterator[Passage]:
    """A passage that is too long, in parts that begin where the one before ends."""
    text = passage.text
    span = passage.spans[0] if len(passage.spans) == 1 and _true(passage) else None
    start = 0
    while start < len(text):
        end = _end(text, start, most, counter)
        spans = () if span is None else (Span(span.start + start, span.start + end, span.page),)
        yield Passage(text[start:end], passage.chunks, passage.spans if (start, end) == (0, len(text)) else spans)
        start = end


def _true(passage: Passage) -> bool:
    """Whether the span says how long the text is, so that parts of it can be given theirs."""
    return passage.spans[0].end - passage.spans[0].start == len(passage.text)


def _end(text: str, start: int, most: int, counter: TokenCounter) -> int:
    """Where the part that starts here ends: behind the last white space that keeps it short enough."""
    low, high = start + 1, min(start + most, len(text))
    # In leaps, so that no more of the rest is counted than the part is long.
    while count(text[start:high], counter) <= most:
        if high == len(text):
            return high
        low, high = high, min(start + 2 * (high - start), len(text))
    # About the longest part that fits: a counter may give a longer text fewer tokens, so nothing is exact here.
    while high - low > 1:
        middle = (low + high) // 2
        if count(text[start:middle], counter) <= most:
            low = middle
        else:
            high = middle
    for end in range(low, start, -1):
        if text[end - 1].isspace() and not text[start:end].isspace():
            return end
    return low
