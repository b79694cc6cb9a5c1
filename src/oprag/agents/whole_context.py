"""One context of everything that was gathered, and its text with numbers."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from oprag._internal.tokens import count
from oprag.agents.memory import Memory
from oprag.agents.numbered_text import (
    GAP,
    NOTHING,
    VisibleText,
    Written,
    head_of,
    joined,
    omitted,
    section_and_page,
    source_label,
    write,
)
from oprag.chunk import Chunk, Span, changed
from oprag.context import Context, ContextInputs, assemble
from oprag.errors import BudgetError
from oprag.options import ContextOptions, as_context_options
from oprag.pipeline.stitch import STRIPPED, place_in_source, stitch
from oprag.positions.retrieved import Placed, order_of_found, report_sources
from oprag.positions.source_order import SourceOrder

__all__ = ["combined", "write_combined", "write_source"]

_ALL = "Everything that was found so far:"
_ALL_IN_ORDER = "Everything that was found so far, in the order of the sources:"
_PIECE = 8  # chunks in a piece, on average, of those that do not touch
_ABOUT = f"(Passages found so far, {{order}}. {GAP} stands for text that was not found. Searches rewrite this file.)"


class _Piece(NamedTuple):
    """The text of chunks of a source, between two gaps, and what it was written from."""

    chunks: list[Chunk]
    places: list[Span | None]
    written: Written


class _Source(NamedTuple):
    """What was derived from chunks of one source.

    Attributes:
        chunks: The chunks.
        order: Their order.
        pieces: The pieces of their text in the compact layout, by their numbers and the head before.
    """

    chunks: list[Chunk]
    order: SourceOrder
    pieces: dict[tuple[tuple[int, ...], str], _Piece]


def write_combined(memory: Memory, options: ContextOptions, found: Collection[int], note: str = "") -> Written:
    """Write these numbers as one context within the token budget."""
    allowed = budget = options.token_budget
    title = _ALL_IN_ORDER if options.order == "source" else _ALL
    while True:
        tokens = 0
        numbers: list[int] = []
        parts: list[Written] = []
        if allowed is None or allowed > 0:
            with suppress(BudgetError):
                context, numbers, sources = _combined(memory, options, {"token_budget": allowed}, found)
                parts = _parts(memory, context, numbers, sources, options)
                tokens = 0 if allowed is None else context.tokens
        rest = omitted(len(found) - len(numbers)) if len(numbers) < len(found) else ""
        lines = (title, rest, note) if numbers else ("", rest or NOTHING, note)
        whole = _whole(parts).with_lines(*lines[1:], first=lines[0])
        excess = 0 if budget is None or not numbers else count(whole.text, options.count_tokens) - budget
        if excess <= 0:
            return whole
        # Numbers and labels take tokens, too.
        allowed = tokens - excess


def _whole(written: Sequence[Written]) -> Written:
    """Several texts as one."""
    whole = Written(joined(*(one.text for one in written)), [], [], [])
    for one in written:
        whole.parts.extend(one.parts)
        whole.shown.extend(one.shown)
        whole.within.extend(one.within)
    return whole


def combined(memory: Memory, options: ContextOptions, changes: dict[str, Any]) -> Context:
    """Build one context of all gathered chunks, with changed options."""
    context, _, _ = _combined(memory, options, changes, range(1, len(memory.chunks) + 1))
    return context


def write_source(memory: Memory, options: ContextOptions, source: str | None) -> str:
    """Write all chunks of a source as a file: a title, headings, and marked gaps between passages."""
    numbers = [number for number, chunk in enumerate(memory.chunks, 1) if chunk.source == source]
    context, numbers, sources = _combined(memory, options, {"token_budget": None, "order": "source"}, numbers)
    gaps = {passage.chunks[0].rank for passage in stitch(context.kept, "")}
    pairs = list(zip(numbers, context.kept, strict=True))
    text = write(
        pairs,
        VisibleText(),
        partial(head_of, options) if options.header is not None else lambda _, chunk: section_and_page(chunk),
        pointers=False,
        gaps={number for number, chunk in pairs if chunk.rank in gaps},
    ).text
    ordered = source in sources and sources[source].order.certainty != "unknown"
    order = "in the order of the source" if ordered else "in no known order"
    title = f"# {source_label(source or '') or 'unnamed source'}"
    return f"{joined(title, _ABOUT.format(order=order), text)}\n"


def _parts(
    memory: Memory, context: Context, numbers: Sequence[int], sources: dict[Any, _Source], options: ContextOptions
) -> list[Written]:
    """The text of the chunks in a context; pieces that did not change are not written again."""
    parts: list[Written] = []
    for source, group in itertools.groupby(zip(numbers, context.kept, strict=True), lambda pair: pair[1].source):
        # A header may contain ranks, which change.
        known = sources[source].pieces if options.header is None and source in sources else {}
        pieces: dict[tuple[tuple[int, ...], str], _Piece] = {}
        head = ""
        for pairs, places in _pieces(group):
            key = tuple(number for number, _ in pairs), head
            chunks = [memory.chunks[number - 1] for number, _ in pairs]
            piece = known.get(key)
            if piece is None or piece.chunks != chunks or piece.places != places:
                heads = partial(head_of, options)
                piece = _Piece(chunks, places, write(pairs, VisibleText(), heads, pointers=False, last_head=head))
            pieces[key] = piece
            parts.append(piece.written)
            head = piece.written.parts[-1].head if piece.written.parts else head
        known.clear()
        known.update(pieces)
    return parts


def _pieces(pairs: Iterable[tuple[int, Chunk]]) -> Iterator[tuple[list[tuple[int, Chunk]], list[Span | None]]]:
    """Split the chunks of a source, with their places, where text is missing between them.

    A piece begins at certain numbers, so that a new chunk changes only the piece that it is in.
    """
    piece: list[tuple[int, Chunk]] = []
    places: list[Span | None] = []
    page: Any = None
    end = 0
    for pair in pairs:
        place = place_in_source(pair[1])
        if piece and pair[0] % _PIECE == 0 and (place is None or place.page != page or place.start > end + STRIPPED):
            yield piece, places
            piece, places, end = [], [], 0
        piece.append(pair)
        places.append(place)
        if place is not None:
            end = max(end, place.end) if page == place.page else place.end
            page = place.page
    if piece:
        yield piece, places


def _combined(
    memory: Memory, options: ContextOptions, changes: dict[str, Any], found: Iterable[int]
) -> tuple[Context, list[int], dict[Any, _Source]]:
    """The context of these numbers; the number of each kept chunk, and the sources."""
    numbers = sorted(found)
    by_rank = sorted(numbers, key=lambda number: memory.ranks[number - 1])
    ranks = {number: rank for rank, number in enumerate(by_rank)}
    members: dict[Any, list[int]] = {}
    for number in numbers:
        source = memory.chunks[number - 1].source
        members.setdefault(number if source is None else source, []).append(number)
    sources = {source: _source(memory, source, its) for source, its in members.items()}
    placed: dict[int, Chunk] = {}
    for source, its in members.items():
        order = sources[source].order
        for number, chunk, position, span in zip(its, order.chunks, order.positions, order.spans, strict=True):
            placed[number] = changed(chunk, rank=ranks[number], position=position, span=span)
    chunks = [placed[number] for number in by_rank]
    groups = {source: [placed[number] for number in its] for source, its in members.items()}
    orders = {source: sources[source].order._replace(chunks=group) for source, group in groups.items()}
    options = as_context_options(replace(options, source_key=None, position_key=None), changes)
    inputs = ContextInputs(chunks)
    if options.source_key is None and options.position_key is None:
        inputs.place(options, Placed(chunks, report_sources(chunks), groups, orders))
    context = assemble(inputs, options)
    return context, [by_rank[chunk.rank] for chunk in context.kept], sources


def _source(memory: Memory, source: str | int, numbers: Sequence[int]) -> _Source:
    """What is derived from these chunks of a source."""
    known = memory.sources.get(source)
    chunks = [memory.chunks[number - 1] for number in numbers]
    if known is None or known.chunks != chunks:
        name = source if isinstance(source, str) else None
        pieces = {} if known is None else known.pieces
        known = memory.sources[source] = _Source(chunks, order_of_found(chunks, name), pieces)
    return known
