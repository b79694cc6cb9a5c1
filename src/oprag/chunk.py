"""Chunks: their text and position in the source, and the reason why one was dropped."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise
from numbers import Real
from operator import attrgetter, is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from oprag._internal.masking import describe, listed, shown
from oprag.errors import ChunkError

__all__ = [
    "UNKNOWN_POSITION",
    "Chunk",
    "Drop",
    "DropReason",
    "Passage",
    "Place",
    "Position",
    "PositionKind",
    "RankedList",
    "Span",
    "Uncertain",
]


T = TypeVar("T")
Key = tuple[Any, ...]


class PositionKind(IntEnum):
    """How the position of a chunk is known, from most to least reliable."""

    KEY = 0
    """Read from the metadata key, keys or function given as `position_key`."""
    STAMPED = 1
    """An ordinal stamped at ingestion, such as `chunk_index`."""
    PAGE_OFFSET = 2
    """A page and a character offset on that page."""
    OFFSET = 3
    """A character offset in the source."""
    LINKS = 4
    """PREVIOUS/NEXT links between chunks, where they form a chain."""
    PAGE = 5
    """A page, a row or another single number that several chunks may share."""
    STORE = 6
    """The order in which the chunks of the source were inserted into the store."""
    NONE = 7
    """No known position; `on_missing_position` decides what happens to the chunk."""


class Position(NamedTuple):
    """Position of a chunk in its source.

    Attributes:
        key: Sort key among the chunks of the same source, not comparable across sources; empty if unknown.
        kind: How the position is known.
        field: Metadata keys that the position was read from.
    """

    key: Key
    kind: PositionKind
    field: str = ""

    @property
    def known(self) -> bool:
        """Whether the position is known."""
        return self.kind is not PositionKind.NONE


UNKNOWN_POSITION = Position((), PositionKind.NONE)
"""The unknown position."""


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
else:
    # Avoids importing NumPy just for an annotation.
    Vector = Any


_NO_METADATA: Mapping[str, Any] = MappingProxyType({})
_QUOTED = 60  # maximum number of characters of a text or name in a repr


class Span(NamedTuple):
    """Character offsets of a text in its source.

    Attributes:
        start: Offset of the first character.
        end: End offset (exclusive).
        page: Page that the offsets are relative to; None if they are relative to the start of the source.
    """

    start: int
    end: int
    page: str | int | None = None


class Uncertain(NamedTuple):
    """What is uncertain about the place of a chunk.

    Attributes:
        cause: The reason, in words.
        among: Which chunks in one answer it concerns: this one with any other ("alone"), those of the same group
            ("within"), or those of different groups ("across").
        group: The group of the chunk.
    """

    cause: str
    among: str
    group: Any = None


class Place(NamedTuple):
    """Place of a chunk in its source, decided from all chunks or the text of the source.

    Attributes:
        key: Sort key among the chunks of the source; empty if unknown.
        kind: How the order is known.
        field: What it was read from.
        span: Character offsets in the source, or in its page.
        run: Character offsets in a run of chunks that overlap; the page is the number of the run.
        uncertain: What is uncertain about the place.
        basis: How certain the order of the source is: "known" or "assumed".
        number: Number of the chunk in the source; -1 if its place is uncertain, or not all chunks are known.
    """

    key: Key
    kind: PositionKind
    field: str = ""
    span: Span | None = None
    run: Span | None = None
    uncertain: tuple[Uncertain, ...] = ()
    basis: str = "known"
    number: int = -1


@dataclass(frozen=True, init=False)
class Chunk:
    """A retrieved piece of a source.

    Only `text` and `rank` are required. `source`, `position` and `span` are usually omitted and read from `metadata`
    (see `oprag.positions`); the chunks of a `Context` have them filled in. The repr is a single line.

    Attributes:
        text: Text of the chunk.
        rank: Rank in the retriever's results, 0 = best. Ranks in a list must be distinct.
        source: Name of the document that the chunk came from.
        metadata: Metadata of the chunk; never modified.
        score: The retriever's score, higher = better; None if it returned none.
        id: ID of the chunk in its store.
        document_id: ID that the framework gave the chunk's document; used as the source if nothing else names one.
        previous_id: ID of the chunk before this one in the source.
        next_id: ID of the chunk after this one in the source.
        parent_id: ID of the larger chunk that contains this one.
        child_ids: IDs of the smaller chunks that this one was split into, in order.
        span: Character offsets in the source, if the framework stores them outside `metadata`.
        place: Place in the source, if it was decided from more than the retrieved chunks.
        position: Position of the chunk in its source, and how it is known.
        vector: Embedding of the chunk, of shape (dimension,).
        similarity: Cosine similarity of chunk and question, if a threshold needed it.
        neighbor_of: Rank of the kept chunk for which the `neighbors` option added this one.
        section: Headings over its start in the text of its source, if a header with `{section}` needed them.
        origin: The framework's own object: a LangChain `Document` or a LlamaIndex `NodeWithScore`.

    Raises:
        ChunkError: `text` is not a string, `rank` is not an integer >= 0, `score` is not a number, `span` is not
            a `Span`, `position` is not a `Position`, or `metadata` is not a mapping.
    """

    text: str
    rank: int
    source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    score: float | None = None
    id: str | None = None
    document_id: str | None = None
    previous_id: str | None = None
    next_id: str | None = None
    parent_id: str | None = None
    child_ids: tuple[str, ...] = ()
    span: Span | None = None
    place: Place | None = None
    position: Position | None = None
    vector: Vector | None = field(default=None, compare=False, repr=False)
    similarity: float | None = field(default=None, compare=False)
    neighbor_of: int | None = None
    section: str = field(default="", init=False, compare=False, repr=False)
    origin: Any = field(default=None, compare=False, repr=False)

    # Written by hand: the generated __init__ of a frozen dataclass sets each field through object.__setattr__, which
    # takes three times as long, and adapters create a chunk for every retrieved document.
    def __init__(  # noqa: PLR0917
        self,
        text: str,
        rank: int,
        source: str | None = None,
        metadata: Mapping[str, Any] = _NO_METADATA,
        score: float | None = None,
        id: str | None = None,  # noqa: A002
        document_id: str | None = None,
        previous_id: str | None = None,
        next_id: str | None = None,
        parent_id: str | None = None,
        child_ids: tuple[str, ...] = (),
        span: Span | None = None,
        place: Place | None = None,
        position: Position | None = None,
        vector: Vector | None = None,
        similarity: float | None = None,
        neighbor_of: int | None = None,
        origin: Any = None,
    ) -> None:
        # One call, because a dictionary that is filled key by key makes each access of an attribute slower.
        self.__dict__.update(
            text=text,
            rank=rank,
            source=source,
            metadata={} if metadata is _NO_METADATA else metadata,
            score=score,
            id=id,
            document_id=document_id,
            previous_id=previous_id,
            next_id=next_id,
            parent_id=parent_id,
            child_ids=child_ids,
            span=span,
            place=place,
            position=position,
            vector=vector,
            similarity=similarity,
            neighbor_of=neighbor_of,
            origin=origin,
        )
        # Exact types are compared first: the full checks are slow, and nearly every chunk passes without them.
        if type(text) is not str and not isinstance(text, str):
            raise ChunkError(f"the text of a chunk must be a string, got {type(text).__name__}", text)
        if type(rank) is not int or rank < 0:
            raise ChunkError(f"the rank of a chunk must be an integer >= 0, got {describe(rank)}", rank)
        if score is not None and type(score) is not float and (isinstance(score, bool) or not isinstance(score, Real)):
            raise ChunkError(f"the score of a chunk must be a number or None, got {describe(score)}", score)
        if span is not None and type(span) is not Span:
            raise ChunkError(f"the span of a chunk must be an oprag.Span or None, got {describe(span)}", span)
        if position is not None and type(position) is not Position:
            raise ChunkError(
                f"the position of a chunk must be an oprag.Position or None, got {describe(position)}", position
            )
        if type(metadata) is not dict and not isinstance(metadata, Mapping):
            raise ChunkError(f"the metadata of a chunk must be a mapping, got {type(metadata).__name__}", metadata)

    def __repr__(self) -> str:
        kind = None if self.position is None else self.position.kind.name
        size = f"{counted(len(self.text), 'character')}: {quoted(self.text)}"
        return f"Chunk(rank={self.rank}, source={quoted_name(self.source)}, position={kind}, {size})"

    def keys_text(self) -> str:
        """The metadata keys, for messages."""
        return listed(self.metadata)

    def label(self) -> str:
        """Rank, source and id of the chunk, for messages."""
        names = (self.source, self.metadata.get("source"), self.metadata.get("file_name"), self.document_id)
        source = next((name for name in names if name is not None), None)
        return f"rank {self.rank}, source {describe(source)}" + ("" if self.id is None else f", id {describe(self.id)}")


class Passage(NamedTuple):
    """A contiguous run of source text; the repr is one line with the start of the text.

    Attributes:
        text: The text; overlapping parts are included once, if offsets and text confirm the overlap.
        chunks: The chunks of the passage, in order.
        spans: Character offsets in the source, in order; empty if unknown. More than one span if the splitter stripped
            whitespace between chunks.
    """

    text: str
    chunks: tuple[Chunk, ...]
    spans: tuple[Span, ...]

    @property
    def source(self) -> str | None:
        """The name of the source."""
        return self.chunks[0].source

    @property
    def rank(self) -> int:
        """The best (lowest) rank of the chunks."""
        return min(chunk.rank for chunk in self.chunks)

    def __repr__(self) -> str:
        chunks = counted(len(self.chunks), "chunk")
        size = f"{counted(len(self.text), 'character')}: {quoted(self.text)}"
        return f"Passage(source={quoted_name(self.source)}, {chunks}, {size})"


def changed(item: T, **fields: Any) -> T:
    """Copy a frozen dataclass with changed fields, unchecked: several times faster than `dataclasses.replace`."""
    copy = object.__new__(type(item))
    object.__setattr__(copy, "__dict__", item.__dict__ | fields)
    return copy


def chunk_to_dict(chunk: Chunk) -> dict[str, Any]:
    """Rank, score and position of a chunk, as JSON-serializable values."""
    position = chunk.position
    return {
        "rank": chunk.rank,
        "score": finite(chunk.score),
        "similarity": chunk.similarity,
        "id": chunk.id,
        "source": chunk.source,
        "position": None if position is None or not position.known else _plain_key(position.key),
        "kind": None if position is None else position.kind.name.lower(),
        "span": None if chunk.span is None else chunk.span._asdict(),
        "neighbor_of": chunk.neighbor_of,
    }


def _plain_key(key: Key) -> Any:
    """The key of a position: its only part, or a list of its parts."""
    return key[0] if len(key) == 1 else [_plain_key(part) if isinstance(part, tuple) else part for part in key]


def finite(value: Any) -> float | None:
    """Return the value as a score, or None if it is not a finite number; decimals, arrays and tensors may be one."""
    if type(value) is not float:
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            return None
        try:
            value = float(value)
        except Exception:  # noqa: BLE001 - arrays and tensors raise errors of their own
            return None
    return value if math.isfinite(value) else None


def quoted(text: Any) -> str:
    """The start of a text in quotes, for one-line reprs; for any other object, the name of its type."""
    if not isinstance(text, str):
        return str(None) if text is None else type(text).__name__
    return repr(text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}…")


def quoted_name(name: Any) -> str:
    """The name of a source in quotes, for one-line reprs."""
    return shown(name, _QUOTED, repr) if isinstance(name, str) else quoted(name)


def counted(number: int, noun: str) -> str:
    """A number and its noun in the singular or plural: "1 chunk", "2 chunks"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sorted_by_rank(chunks: Iterable[Chunk]) -> list[Chunk]:
    """The chunks sorted by rank, best first, with checks that they are chunks and their ranks are distinct."""
    ordered: list[Chunk] = []
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise ChunkError(f"expected oprag.Chunk objects, got {type(chunk).__name__}", chunk)
        ordered.append(chunk)
    ordered.sort(key=attrgetter("rank"))
    for first, second in pairwise(ordered):
        if first.rank == second.rank:
            raise ChunkError(
                f"two chunks have rank {first.rank}; ranks must be distinct, so number the chunks in the order in "
                "which the retriever returned them (0 = best)",
                second,
            )
    return ordered


class RankedList(list[T]):
    """A list that knows the chunk of each item, so that a second step of oprag does not use its index as the rank."""

    # Slices, sums, copies and pickles are plain lists.
    def __init__(self, items: Iterable[T], chunks: Sequence[Chunk]) -> None:
        super().__init__(items)
        self._items = tuple(self)
        self._chunks = chunks

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    @property
    def chunks(self) -> Sequence[Chunk] | None:
        """The chunk of each item, of a passage its first one with the rank of the passage; None if the list changed."""
        same = len(self) == len(self._items) and all(map(is_, self, self._items))
        return self._chunks if same else None


def as_found(chunks: list[Chunk], items: Any) -> list[Chunk]:
    """The chunks of these items, with what an unchanged `RankedList` knows of them; the index in others is the rank."""
    given = items.chunks if isinstance(items, RankedList) else None
    if given is None:
        return chunks
    return [
        changed(
            chunk,
            rank=own.rank,
            source=own.source,
            score=own.score if chunk.score is None else chunk.score,
            place=own.place,
            section=own.section,
            # The metadata of a passage lack what differs among its chunks, such as the position of the first one.
            metadata={**own.metadata, **chunk.metadata},
        )
        for chunk, own in zip(chunks, given, strict=True)
    ]


def by_rank(chunks: list[Chunk], items: Any) -> list[Chunk]:
    """Sort the chunks of these items by rank."""
    found = as_found(chunks, items)
    return chunks if found is chunks else sorted_by_rank(found)


def first_of(passage: Passage) -> Chunk:
    """The first chunk of a passage, with the rank, score and span of the passage."""
    first, place = passage.chunks[0], passage.chunks[0].place
    best = min(passage.chunks, key=attrgetter("rank"))
    if place is not None and len(passage.chunks) > 1:
        span = passage.spans[0] if len(passage.spans) == 1 else None
        place = place._replace(span=span, run=None, number=-1)
    return changed(first, rank=best.rank, score=best.score, place=place)


DropReason = Literal[
    "max_candidates",
    "duplicate",
    "on_missing_position",
    "similarity_threshold",
    "redundancy_threshold",
    "k",
    "token_budget",
]


class Drop(NamedTuple):
    """A retrieved chunk that is not in the context, and the reason.

    Attributes:
        chunk: The chunk.
        reason: The option that dropped it, or "duplicate".
        value: The deciding number: the limit for `max_candidates` and `k`, the rank of the kept chunk for a duplicate,
            the cosine similarity for a threshold, the number of tokens for `token_budget`; None for
            `on_missing_position`.
        detail: The same as text.
        twin: Rank of the better-ranked chunk that this one repeats, for a duplicate and for `redundancy_threshold`.
    """

    chunk: Chunk
    reason: DropReason
    value: int | float | None
    detail: str
    twin: int | None = None
