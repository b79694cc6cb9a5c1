"""One context of everything that was gathered, and its text with numbers."""

import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
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
from oprag.chunk import Chunk, changed
from oprag.context import Context, ContextInputs, assemble
from oprag.errors import BudgetError
from oprag.options import ContextOptions, as_context_options
from oprag.pipeline.stitch import STRIPPED, place_in_source, stitch
from oprag.positions.retrieved import Placed, order_of_found, report_sources, warn_about
from oprag.positions.source_order import Offsets, SourceOrder

__all__ = ["combined", "write_combined", "write_source"]

_ALL = "Everything that was found so far:"
_ALL_IN_ORDER = "Everything that was found so far, in the order of the sources:"
_PIECE = 8  # chunks in a piece, on average, of those that do not touch
_ABOUT = f"(Passages found so far, {{order}}. {GAP} stands for text that was not found. Searches rewrite this file.)"

_BY_DEFAULT = ("source", "best_first")

_Pairs = list[tuple[int, Chunk]]  # numbers and their chunks, in order


class _Piece(NamedTuple):
    """The text of chunks of a source, between two gaps, and what it was written from."""

    pairs: _Pairs
    head: str  # that of the text before
    written: Written


@dataclass(slots=True, eq=False)
class _Source:
    """What was derived from chunks of one source."""

    numbers: list[int]
    chunks: list[Chunk]  # as they were gathered
    placed: list[Chunk]  # with what their order says of each
    order: SourceOrder
    offsets: Offsets | None  # if nothing else tells the order
    sequence: list[int] | None  # the indices in order, if ranks do not matter
    written: tuple[_Pairs, list[_Piece]]  # what was written last in the compact layout, and its pieces


_NOTHING: tuple[_Pairs, list[_Piece]] = ([], [])


def write_combined(memory: Memory, options: ContextOptions, found: Collection[int], note: str = "") -> Written:
    """Write these numbers as one context within the token budget."""
    allowed = budget = options.token_budget
    title = _ALL_IN_ORDER if options.order == "source" else _ALL
    while True:
        tokens = 0
        kept: list[tuple[_Source, _Pairs]] = []
        if allowed is None or allowed > 0:
            with suppress(BudgetError):
                kept, tokens = _kept(memory, options, allowed, found)
        pieces = [piece for source, pairs in kept for piece in _write(source, pairs, options)]
        left = len(found) - sum(len(pairs) for _, pairs in kept)
        rest = omitted(left) if left else ""
        lines = (title, rest, note) if kept else ("", rest or NOTHING, note)
        whole = Written(
            joined(*(piece.text for piece in pieces)),
            [part for piece in pieces for part in piece.parts],
            [number for piece in pieces for number in piece.shown],
            [pair for piece in pieces for pair in piece.within],
        ).with_lines(*lines[1:], first=lines[0])
        excess = 0 if budget is None or not kept else count(whole.text, options.count_tokens) - budget
        if excess <= 0:
            return whole
        # Numbers and labels take tokens, too.
        allowed = tokens - excess


def combined(
    memory: Memory, options: ContextOptions, changes: dict[str, Any], found: Iterable[int]
) -> tuple[Context, list[int], dict[Any, _Source]]:
    """One context of these numbers, with changed options; the number of each kept chunk, and the sources."""
    sources = _sources(memory, found)
    numbers = _by_rank(memory, found)
    ranks = {number: rank for rank, number in enumerate(numbers)}
    groups = {
        name: [changed(chunk, rank=ranks[number]) for number, chunk in zip(source.numbers, source.placed, strict=True)]
        for name, source in sources.items()
    }
    orders = {name: source.order._replace(chunks=groups[name]) for name, source in sources.items()}
    chunks = sorted(itertools.chain.from_iterable(groups.values()), key=attrgetter("rank"))
    options = as_context_options(replace(options, source_key=None, position_key=None), changes)
    inputs = ContextInputs(chunks)
    if options.source_key is None and options.position_key is None:
        inputs.place(options, Placed(chunks, report_sources(chunks), groups, orders))
    context = assemble(inputs, options)
    return context, [numbers[chunk.rank] for chunk in context.kept], sources


def write_source(memory: Memory, options: ContextOptions, source: str | None) -> str:
    """Write all chunks of a source as a file: a title, headings, and marked gaps between passages."""
    found = {number for number, chunk in enumerate(memory.chunks, 1) if chunk.source == source}
    context, numbers, sources = combined(memory, options, {"token_budget": None, "order": "source"}, found)
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


def _kept(
    memory: Memory, options: ContextOptions, allowed: int | None, found: Collection[int]
) -> tuple[list[tuple[_Source, _Pairs]], int]:
    """The chunks of the context of these numbers, by source, and its tokens, which are 0 without a budget."""
    if allowed is None and options.header is None and (options.order, options.source_ranking) == _BY_DEFAULT:
        sources = _sources(memory, found)
        if all(source.sequence is not None for source in sources.values()):
            # Ranks decide nothing but the order of the sources.
            groups = {name: source.placed for name, source in sources.items()}
            chunks = list(itertools.chain.from_iterable(groups.values()))
            orders = {name: source.order for name, source in sources.items()}
            warn_about(Placed(chunks, (), groups, orders), (), replace(options, source_key=None, position_key=None))
            return [
                (source, [(source.numbers[index], source.placed[index]) for index in source.sequence or ()])
                for source in sources.values()
            ], 0
    context, numbers, sources = combined(memory, options, {"token_budget": allowed}, found)
    kept: list[tuple[_Source, _Pairs]] = []
    for source, group in itertools.groupby(zip(numbers, context.kept, strict=True), lambda pair: sources[_name(*pair)]):
        placed = dict(zip(source.numbers, source.placed, strict=True))
        # A header may contain ranks.
        kept.append((source, [(number, placed[number] if options.header is None else one) for number, one in group]))
    return kept, 0 if allowed is None else context.tokens


def _write(source: _Source, pairs: _Pairs, options: ContextOptions) -> Iterator[Written]:
    """Write the chunks of a source; pieces that did not change are not written again."""
    last, pieces = source.written
    if last != pairs:
        known = {piece.pairs[0][0]: piece for piece in pieces}
        pieces, head = [], ""
        for its in _pieces(pairs):
            piece = known.get(its[0][0])
            if piece is None or piece.head != head or piece.pairs != its:
                heads = partial(head_of, options)
                piece = _Piece(its, head, write(its, VisibleText(), heads, pointers=False, last_head=head))
            pieces.append(piece)
            head = piece.written.parts[-1].head if piece.written.parts else head
        # Assigned at once, since other threads may write the same source.
        source.written = pairs, pieces
    return (piece.written for piece in pieces)


def _pieces(pairs: _Pairs) -> Iterator[_Pairs]:
    """Split the chunks of a source where text is missing between them.

    A piece begins at certain numbers, so that a new chunk changes only the piece that it is in.
    """
    start, end = 0, 0
    page: Any = None
    for index, (number, chunk) in enumerate(pairs):
        place = chunk.span or place_in_source(chunk)
        if number % _PIECE == 0 and index and (place is None or place.page != page or place.start > end + STRIPPED):
            yield pairs[start:index]
            start, end = index, 0
        if place is not None:
            end = max(end, place.end) if page == place.page else place.end
            page = place.page
    if pairs:
        yield pairs[start:]


def _sources(memory: Memory, found: Iterable[int]) -> dict[Any, _Source]:
    """What is derived from these numbers of each source, the best ranked first; without one, a chunk is alone."""
    sources: dict[Any, list[int]] = {}
    for number in _by_rank(memory, found):
        sources.setdefault(_name(number, memory.chunks[number - 1]), []).append(number)
    return {name: _source(memory, name, sorted(numbers)) for name, numbers in sources.items()}


def _by_rank(memory: Memory, numbers: Iterable[int]) -> list[int]:
    return sorted(sorted(numbers), key=lambda number: memory.ranks[number - 1])


def _source(memory: Memory, name: str | int, numbers: list[int]) -> _Source:
    """What is derived from these numbers of a source; of what is known, what did not change is the same object."""
    chunks = [memory.chunks[number - 1] for number in numbers]
    known: _Source | None = memory.sources.get(name)
    placed: list[Chunk] = []
    before: dict[int, Chunk] = {}
    offsets, written = None, _NOTHING
    if known is not None:
        start, written = len(known.numbers), known.written
        if known.numbers == numbers[:start] and known.chunks == chunks[:start]:
            if start == len(numbers):
                return known
            offsets = known.offsets and known.offsets.with_more(chunks[start:])
        if offsets is not None:
            placed = known.placed.copy()
        else:
            before = {id(chunk): one for chunk, one in zip(known.chunks, known.placed, strict=True)}
    offsets = offsets or Offsets.of(chunks)
    order = offsets.order if offsets else order_of_found(chunks, name if isinstance(name, str) else None)
    start = len(placed)
    positions = order._replace(keys=order.keys[start:]).positions
    for chunk, position, span in zip(chunks[start:], positions, order.spans[start:], strict=True):
        one = before.get(id(chunk))
        if one is None or (one.position, one.span) != (position, span):
            one = changed(chunk, position=position, span=span)
        placed.append(one)
    sequence = offsets.sequence if offsets else order.sequence
    source = _Source(numbers, chunks, placed, order, offsets, sequence, written)
    memory.sources[name] = source
    return source


def _name(number: int, chunk: Chunk) -> str | int:
    return number if chunk.source is None else chunk.source
