"""The passages of a context, and how they are packed into model calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oprag.assembly.render import between, render
from oprag.assembly.stitch import Passage, stitch
from oprag.chunk import Chunk, Span
from oprag.context import Context
from oprag.methods.task import Task
from oprag.options import ContextOptions
from oprag.tokens import TokenCounter, count

__all__ = ["packed", "split_passages"]


def split_passages(context: Context, passage_tokens: int) -> tuple[Passage, ...]:
    """The passages of a context, in order, none much longer than a maximum.

    Stitched chunks are separated at chunk borders; a chunk that is too long by itself is cut after white space.

    Args:
        context: The context.
        passage_tokens: Maximum number of tokens of a passage, by the token counter of the context.

    Raises:
        TokenizerError: The counter returned no usable count.
    """
    separator, counter = context.options.separator, context.options.count_tokens
    found: list[Passage] = []
    # With numbered passages each chunk of the context is a passage; to read them one by one would be many calls.
    for passage in context.passages if context.options.stitch else stitch(context.kept, separator):
        if count(passage.text, counter) <= passage_tokens:
            found.append(passage)
            continue
        for group in _chunk_groups(passage.chunks, passage_tokens, separator, counter):
            for part in stitch(group, separator):
                found += _cut(part, passage_tokens, counter)
    return tuple(passage for passage in found if passage.text and not passage.text.isspace())


def packed(task: Task, passages: Sequence[Passage]) -> tuple[str, ...]:
    """The text that the model reads in each call, in order.

    Neighbours share a call while they have at most `passage_tokens` together, and are rendered as in a context, with
    headers, separators and gaps. With `cite=True` each passage has a call of its own.

    Args:
        task: The question with its options.
        passages: The passages, as `split_passages` returns them.

    Raises:
        TokenizerError: The counter returned no usable count.
    """
    if task.options.cite:
        return tuple(task.shown(passage, number) for number, passage in enumerate(passages, 1))
    context_options, limit = task.context_options, task.options.passage_tokens
    groups: list[list[Passage]] = []
    total = 0
    for number, passage in enumerate(passages, 1):
        shown = task.shown(passage, number)
        if groups:
            tokens = task.count(between(groups[-1][-1], passage, context_options) + shown)
            if total + tokens <= limit:
                groups[-1].append(passage)
                total += tokens
                continue
        groups.append([passage])
        total = task.count(shown)
    texts: list[str] = []
    number = 1
    for group in groups:
        texts += _rendered(group, number, context_options, limit)
        number += len(group)
    return tuple(texts)


def _rendered(group: list[Passage], first: int, context_options: ContextOptions, limit: int) -> list[str]:
    """The text of a group; several texts if the counter finds more tokens in it than in its parts."""
    text = render(group, context_options, first=first)
    if len(group) == 1 or count(text, context_options.count_tokens) <= limit:
        return [text]
    half = len(group) // 2
    return [
        *_rendered(group[:half], first, context_options, limit),
        *_rendered(group[half:], first + half, context_options, limit),
    ]


def _chunk_groups(chunks: Iterable[Chunk], limit: int, separator: str, counter: TokenCounter) -> Iterator[list[Chunk]]:
    """Neighbours that fit into one passage together."""
    group: list[Chunk] = []
    total = 0
    for chunk in chunks:
        # The separator replaces white space that the splitter stripped.
        tokens = count(f"{separator}{chunk.text}" if group else chunk.text, counter)
        if group and total + tokens > limit:
            # Overlapping chunks have fewer tokens together than one by one; counting the joined text is the slow way.
            joined = count(separator.join(part.text for part in stitch([*group, chunk], separator)), counter)
            if joined > limit:
                yield group
                group, total = [], 0
                tokens = count(chunk.text, counter)
            else:
                total = joined - tokens
        group.append(chunk)
        total += tokens
    if group:
        yield group


def _cut(passage: Passage, limit: int, counter: TokenCounter) -> Iterator[Passage]:
    """Parts of a passage that is too long; each starts where the one before it ends."""
    text, spans = passage.text, passage.spans
    # A span that is not as long as the text says nothing about its parts.
    span = spans[0] if len(spans) == 1 and spans[0].end - spans[0].start == len(text) else None
    start = 0
    while start < len(text):
        end = _cut_end(text, start, limit, counter)
        part_spans = () if span is None else (Span(span.start + start, span.start + end, span.page),)
        yield Passage(text[start:end], passage.chunks, spans if end - start == len(text) else part_spans)
        start = end


def _cut_end(text: str, start: int, limit: int, counter: TokenCounter) -> int:
    """The end of the part that starts here: after the last white space within the limit."""
    low, high = start + 1, min(start + limit, len(text))
    # In leaps, so that no more of the rest is counted than the part is long.
    while count(text[start:high], counter) <= limit:
        if high == len(text):
            return high
        low, high = high, min(start + 2 * (high - start), len(text))
    # About the longest part that fits: a counter may find fewer tokens in a longer text, so nothing is exact here.
    while high - low > 1:
        middle = (low + high) // 2
        if count(text[start:middle], counter) <= limit:
            low = middle
        else:
            high = middle
    for end in range(low, start, -1):
        if text[end - 1].isspace() and not text[start:end].isspace():
            return end
    return low
