"""One context of everything that was gathered, and its text with numbers."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Sized
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
from oprag.chunk import Chunk, changed
from oprag.context import Context, ContextInputs, assemble
from oprag.errors import BudgetError
from oprag.options import ContextOptions, as_context_options
from oprag.pipeline.stitch import STRIPPED, place_in_source, stitch
from oprag.positions.retrieved import Placed, order_of_found, warn_about
from oprag.positions.source_order import Offsets, SourceOrder

__all__ = ["combined", "write_combined", "write_source"]

_ALL = "Everything that was found so far:"
_ALL_IN_ORDER = "Everything that was found so far, in the order of the sources:"
_PIECE = 8  # chunks in a piece, on average, of those that do not touch
_ABOUT = f"(Passages found so far, {{order}}. {GAP} stands for text that was not found. Searches rewrite this file.)"

_BY_DEFAULT = ("source", "best_first")
_head = partial(head_of, ContextOptions())

_Pairs = list[tuple[int, Chunk]]  # numbers and their chunks, in order


class _Piece(NamedTuple):
    """The text of chunks of a source, between two gaps, and what it was written from."""

    pairs: _Pairs
    head: str  # that of the text before
    written: Written


class _Source(NamedTuple):
    """What was derived from chunks of one source."""

    found: _Pairs  # as they were gathered
    placed: list[Chunk]  # the same with what their order says of each
    order: SourceOrder
    offsets: Offsets | None  # if nothing else tells the order
    pieces: list[_Piece] | None  # their text in the compact layout; None if it depends on ranks


def write_combined(memory: Memory, options: ContextOptions, found: Collection[int], note: str = "") -> Written:
    """Write these numbers as one context within the token budget."""
    if (whole := _by_sources(memory, options, found)) is not None:
        return _with_title(whole, options, found, note)
    allowed = budget = options.token_budget
    while True:
        pairs: _Pairs = []
        if allowed is None or allowed > 0:
            with suppress(BudgetError):
                context, pairs = combined(memory, options, {"token_budget": allowed}, found)
        written = write(pairs, VisibleText(), partial(head_of, options), pointers=False)
        over_budget = sorted(set(found).difference(dict(pairs)))
        whole = _with_title(written._replace(over_budget=over_budget), options, found, note)
        excess = 0 if budget is None or not pairs else count(whole.text, options.count_tokens) - budget
        if excess <= 0:
            return whole
        # Numbers and labels take tokens, too.
        allowed = context.tokens - excess


def _with_title(written: Written, options: ContextOptions, found: Sized, note: str) -> Written:
    rest = omitted(len(written.over_budget)) if written.over_budget else ""
    if len(written.over_budget) == len(found):
        return written.with_lines(note, first=rest or NOTHING)
    return written.with_lines(rest, note, first=_ALL_IN_ORDER if options.order == "source" else _ALL)


def combined(
    memory: Memory, options: ContextOptions, changes: dict[str, Any], found: Iterable[int]
) -> tuple[Context, _Pairs]:
    """One context of these numbers, with changed options, and its chunks with their numbers."""
    numbers = _by_rank(memory, found)
    chunks = [changed(memory.chunks[number - 1], rank=rank) for rank, number in enumerate(numbers)]
    options = as_context_options(replace(options, source_key=None, position_key=None), changes)
    context = assemble(ContextInputs(chunks), options)
    return context, [(numbers[chunk.rank], chunk) for chunk in context.kept]


def write_source(memory: Memory, options: ContextOptions, source: str | None) -> str:
    """Write all chunks of a source as a file: a title, headings, and marked gaps between passages."""
    found = {number for number, chunk in enumerate(memory.chunks, 1) if chunk.source == source}
    context, pairs = combined(memory, options, {"token_budget": None, "order": "source"}, found)
    gaps = {passage.chunks[0].rank for passage in stitch(context.kept, "")}
    text = write(
        pairs,
        VisibleText(),
        partial(head_of, options) if options.header is not None else lambda _, chunk: section_and_page(chunk),
        pointers=False,
        gaps={number for number, chunk in pairs if chunk.rank in gaps},
    ).text
    ordered = source is not None and context.certainty != "unknown"
    order = "in the order of the source" if ordered else "in no known order"
    title = f"# {source_label(source or '') or 'unnamed source'}"
    return f"{joined(title, _ABOUT.format(order=order), text)}\n"


def _by_sources(memory: Memory, options: ContextOptions, found: Collection[int]) -> Written | None:
    """Write each source without assembling a context, which takes longer; None if ranks or a budget decide anything."""
    if (
        options.token_budget is not None
        or options.header is not None
        or (options.order, options.source_ranking) != _BY_DEFAULT
    ):
        return None
    by_name: dict[Any, list[int]] = {}
    for number in _by_rank(memory, found):
        chunk = memory.chunks[number - 1]
        by_name.setdefault(number if chunk.source is None else chunk.source, []).append(number)
    sources = {name: _source(memory, name, sorted(numbers)) for name, numbers in by_name.items()}
    if any(source.pieces is None for source in sources.values()):
        return None
    groups = {name: source.placed for name, source in sources.items()}
    orders = {name: source.order for name, source in sources.items()}
    chunks = list(itertools.chain.from_iterable(groups.values()))
    warn_about(Placed(chunks, (), groups, orders), (), replace(options, source_key=None, position_key=None))
    pieces = [piece.written for source in sources.values() for piece in source.pieces or ()]
    return Written(
        joined(*(piece.text for piece in pieces)),
        [part for piece in pieces for part in piece.parts],
        [number for piece in pieces for number in piece.shown],
    )


def _written(pairs: _Pairs, before: Iterable[_Piece]) -> list[_Piece]:
    """Write the chunks of a source; pieces that did not change are not written again."""
    known = {piece.pairs[0][0]: piece for piece in before}
    pieces: list[_Piece] = []
    head = ""
    for its in _pieces(pairs):
        piece = known.get(its[0][0])
        if piece is None or piece.head != head or piece.pairs != its:
            piece = _Piece(its, head, write(its, VisibleText(), _head, pointers=False, last_head=head))
        pieces.append(piece)
        head = piece.written.parts[-1].head if piece.written.parts else head
    return pieces


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


def _by_rank(memory: Memory, numbers: Iterable[int]) -> list[int]:
    return sorted(sorted(numbers), key=lambda number: memory.ranks[number - 1])


def _source(memory: Memory, name: str | int, numbers: list[int]) -> _Source:
    """What is derived from these numbers of a source; of what is known, what did not change is the same object."""
    found = [(number, memory.chunks[number - 1]) for number in numbers]
    chunks = [chunk for _, chunk in found]
    known: _Source | None = memory.sources.get(name)
    offsets, placed = None, []
    if known is not None:
        start = len(known.found)
        if known.found == found:
            return known
        if known.offsets and known.found == found[:start] and (offsets := known.offsets.with_more(chunks[start:])):
            placed = known.placed.copy()
    offsets = offsets or Offsets.of(chunks)
    order = offsets.order if offsets else order_of_found(chunks, name if isinstance(name, str) else None)
    start = len(placed)
    positions = order._replace(keys=order.keys[start:]).positions
    for chunk, position, span in zip(chunks[start:], positions, order.spans[start:], strict=True):
        placed.append(changed(chunk, position=position, span=span))
    sequence = offsets.sequence if offsets else order.sequence
    pieces = None
    if sequence is not None:
        before = known.pieces if known is not None and known.pieces else ()
        pieces = _written([(numbers[index], placed[index]) for index in sequence], before)
    source = memory.sources[name] = _Source(found, placed, order, offsets, pieces)
    return source
