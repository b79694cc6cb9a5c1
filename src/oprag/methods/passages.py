"""Split a context into passages, and pack passages and answers into model calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from oprag._internal.tokens import TokenCounter, count
from oprag.chunk import Chunk, Span
from oprag.context import Context
from oprag.errors import BudgetError
from oprag.methods.model_calls import Prompt
from oprag.methods.task import Task
from oprag.options import ContextOptions
from oprag.pipeline.render import between, render
from oprag.pipeline.stitch import Passage, stitch

__all__ = ["Part", "combined", "packed", "parts", "smaller", "split_passages"]


class Part(NamedTuple):
    """What one model call reads.

    Attributes:
        text: The rendered passages.
        passages: The passages.
    """

    text: str
    passages: tuple[Passage, ...]


def split_passages(context: Context, passage_tokens: int) -> tuple[Passage, ...]:
    """Split a context into passages of about `passage_tokens` or fewer tokens, in order.

    Stitched passages are split between chunks; a single chunk that is too long is split after whitespace.

    Args:
        context: The context.
        passage_tokens: Maximum number of tokens of a passage, by the token counter of the context.

    Raises:
        TokenizerError: The counter returned no usable count.
    """
    separator, counter = context.options.separator, context.options.count_tokens
    found: list[Passage] = []
    # If the chunks are separate passages (`cite=True`), stitch them first: one call per chunk would be many calls.
    for passage in context.passages if context.options.stitch else stitch(context.kept, separator):
        if count(passage.text, counter) <= passage_tokens:
            found.append(passage)
            continue
        for group in _chunk_groups(passage.chunks, passage_tokens, separator, counter):
            for part in stitch(group, separator):
                found += _cut(part, passage_tokens, counter)
    return tuple(passage for passage in found if passage.text and not passage.text.isspace())


def smaller(passages: Iterable[Passage], limit: int, counter: TokenCounter) -> tuple[Passage, ...]:
    """Cut passages into smaller ones, of at most `limit` tokens."""
    pieces = (piece for passage in passages for piece in _cut(passage, limit, counter))
    return tuple(piece for piece in pieces if not piece.text.isspace())


def packed(task: Task, passages: Sequence[Passage]) -> tuple[str, ...]:
    """Pack passages into the texts of model calls, in order.

    Adjacent passages with at most `passage_tokens` together share a call, and are rendered as in a context, with
    headers, separators and gaps. With `cite=True`, each passage has a separate call.

    Args:
        task: The question with its options.
        passages: The passages, as returned by `split_passages`.

    Raises:
        TokenizerError: The counter returned no usable count.
    """
    return tuple(part.text for part in parts(task, passages))


def parts(task: Task, passages: Sequence[Passage], first: int = 1) -> list[Part]:
    """Like `packed`, with the passages of each call, which are numbered from `first`."""
    if task.options.cite:
        return [Part(task.shown(passage, number), (passage,)) for number, passage in enumerate(passages, first)]
    context_options, limit = task.context_options, task.options.passage_tokens
    groups: list[list[Passage]] = []
    total = 0
    for number, passage in enumerate(passages, first):
        shown = task.shown(passage, number)
        if groups:
            tokens = task.count(between(groups[-1][-1], passage, context_options) + shown)
            if total + tokens <= limit:
                groups[-1].append(passage)
                total += tokens
                continue
        groups.append([passage])
        total = task.count(shown)
    found: list[Part] = []
    for group in groups:
        found += _rendered(group, first, context_options, limit)
        first += len(group)
    return found


def combined(
    task: Task, step: str, answers: Sequence[str], join: Callable[[Sequence[str]], str]
) -> tuple[Prompt, tuple[str, ...]]:
    """The prompt that combines answers, and a note if the longest ones had to be cut to fit the model's window."""
    limit = 0
    while True:
        try:
            return task.prompt(step, answers=join(answers)), (
                f"answers were cut to fit {task.window}",
            ) if limit else ()
        except BudgetError:
            limit = (limit or max(map(task.count, answers))) * 3 // 4
            if not limit:
                raise
        answers = [text[: _cut_end(text, 0, limit, task.context_options.count_tokens)] for text in answers]


def _rendered(group: list[Passage], first: int, context_options: ContextOptions, limit: int) -> list[Part]:
    """Render a group as one text, or as several if the text has more tokens than the sum of its parts allows."""
    text = render(group, context_options, first=first)
    if len(group) == 1 or count(text, context_options.count_tokens) <= limit:
        return [Part(text, tuple(group))]
    half = len(group) // 2
    return [
        *_rendered(group[:half], first, context_options, limit),
        *_rendered(group[half:], first + half, context_options, limit),
    ]


def _chunk_groups(chunks: Iterable[Chunk], limit: int, separator: str, counter: TokenCounter) -> Iterator[list[Chunk]]:
    """Group adjacent chunks that fit into one passage."""
    group: list[Chunk] = []
    total = 0
    for chunk in chunks:
        # The separator replaces whitespace that the splitter stripped.
        tokens = count(f"{separator}{chunk.text}" if group else chunk.text, counter)
        if group and total + tokens > limit:
            # Joined, overlapping chunks have fewer tokens; counting the joined text is slow, so only done here.
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
    """Split a passage that is too long into consecutive parts."""
    text, spans = passage.text, passage.spans
    # The spans of the parts are known only if the span has the length of the text.
    span = spans[0] if len(spans) == 1 and spans[0].end - spans[0].start == len(text) else None
    start = 0
    while start < len(text):
        end = _cut_end(text, start, limit, counter)
        part_spans = () if span is None else (Span(span.start + start, span.start + end, span.page),)
        yield Passage(text[start:end], passage.chunks, spans if end - start == len(text) else part_spans)
        start = end


def _cut_end(text: str, start: int, limit: int, counter: TokenCounter) -> int:
    """End offset of the part that starts at `start`: after the last whitespace within the limit."""
    low, high = start + 1, min(start + limit, len(text))
    # Double the length at each step, so that only a small part of a long text is counted.
    while count(text[start:high], counter) <= limit:
        if high == len(text):
            return high
        low, high = high, min(start + 2 * (high - start), len(text))
    # Binary search; approximate, since the number of tokens need not grow with the length.
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
