"""What is kept of a chunk that was found, and which chunks are the same."""

from collections.abc import Iterable
from typing import Any

from oprag.chunk import Chunk, Place, Span, changed, sorted_by_rank
from oprag.context import Context
from oprag.options import ContextOptions
from oprag.pipeline.order import in_order
from oprag.pipeline.render import section_of
from oprag.pipeline.select import without_missing
from oprag.pipeline.stitch import place_in_source
from oprag.positions.fields import (
    READ_FIELDS,
    SECONDS_FIELD,
    SOURCE_FIELDS,
    STAMPED_FIELDS,
    START_FIELDS,
    USED_FIELDS,
    with_usual_fields,
)
from oprag.positions.retrieved import SearchedStore, place, warn_about
from oprag.positions.values import TOO_LARGE, ordinal, whole

__all__ = ["identities", "kept_chunks", "may_be_same"]

_MAX_VALUE_LENGTH = 500  # characters of a metadata value
# Fields that distinguish chunks with the same text, and those among them that no two chunks share.
_PLACE_FIELDS = READ_FIELDS.difference(SOURCE_FIELDS)
_EXACT_FIELDS = frozenset({*STAMPED_FIELDS, *START_FIELDS, SECONDS_FIELD})


def kept_chunks(chunks: Iterable[Chunk] | Context, options: ContextOptions) -> list[tuple[Chunk, Span | None]]:
    """The chunks that a search found as they are kept, with the place of their text, in the order of the options."""
    given = {chunk.rank: chunk for chunk in sorted_by_rank(chunks.kept if isinstance(chunks, Context) else chunks)}
    placed = place(list(given.values()), options.source_key, options.position_key)
    kept = placed.chunks
    if options.on_missing_position in ("drop", "error"):
        kept, _ = without_missing(kept, options.on_missing_position)
    # The same store as in the warnings of the search.
    inputs = chunks.inputs if isinstance(chunks, Context) else None
    warn_about(placed, kept, options, SearchedStore if inputs is None else inputs.store)
    # The metadata that `position_key` reads are not kept.
    orders = placed.orders.values() if options.position_key is not None else ()
    keyed = {chunk.rank: its for order in orders for chunk, its in zip(order.chunks, order.places, strict=True)}
    return [
        (_kept(chunk, given[chunk.rank].span, keyed.get(chunk.rank, chunk.place)), place_in_source(chunk))
        for chunk in in_order(kept, options)
    ]


def _kept(chunk: Chunk, span: Span | None, place: Place | None) -> Chunk:
    metadata = {
        name: plain
        for name, value in with_usual_fields(chunk.metadata).items()
        if name in USED_FIELDS and (plain := _plain(value)) is not None
    }
    if section := section_of(chunk):
        # A chunk that is read from a saved state has only what its constructor takes.
        metadata["section"] = section[:_MAX_VALUE_LENGTH]
    return changed(
        chunk,
        metadata=metadata,
        span=None if span is None else _plain_span(span),
        place=place,
        position=None,
        score=None,
        vector=None,
        similarity=None,
        neighbor_of=None,
        origin=None,
    )


def identities(chunk: Chunk) -> list[tuple[Any, bool]]:
    """The identities of a chunk, and whether no other chunk can have them."""
    source, text = chunk.source, chunk.text
    facts: list[Any] = []
    exact = False
    for name, value in chunk.metadata.items():
        # A source name or URL may contain a page or a time.
        if name in _PLACE_FIELDS or (name in {"source", "url"} and value != source):
            # Some stores change the type of numbers.
            number = ordinal(value)
            exact = exact or (number is not None and name in _EXACT_FIELDS)
            facts.append((name, str(value).strip() if number is None else number))
    names: list[tuple[Any, bool]] = [] if chunk.id is None else [((source, text, chunk.id), True)]
    is_certain = source is not None and (exact or (chunk.id is None and bool(facts)))
    return [*names, ((source, text, frozenset(facts)), is_certain)]


def may_be_same(chunk: Chunk, other: Chunk) -> bool:
    """Whether two chunks with the same text are not known to start at different places."""
    return len({_where(chunk), _where(other), None}) < 3


def _where(chunk: Chunk) -> Any:
    """The start of a chunk as its framework, or the text of its source, states it; else the key of its place."""
    span = chunk.span or (chunk.place and chunk.place.span)
    return span.start if span else chunk.place and chunk.place.key


def _plain(value: Any) -> str | int | float | None:
    if type(value) is int and abs(value) < TOO_LARGE:
        return value
    if isinstance(value, str):
        return str(value) if len(value) <= _MAX_VALUE_LENGTH else None
    return ordinal(value)


def _plain_span(span: Span) -> Span | None:
    start, end = whole(span.start), whole(span.end)
    if start is None or end is None or end < start:
        return None
    return Span(start, end, span.page if isinstance(span.page, str | int) else None)
