"""A retrieved chunk, its position in its source, and why it was dropped."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise
from numbers import Real
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from oprag.errors import ChunkError
from oprag.masking import describe, listed
from oprag.positions.values import Key, finite

__all__ = ["NOWHERE", "Chunk", "Drop", "DropReason", "Position", "PositionKind", "Span", "StorePlace"]


class PositionKind(IntEnum):
    """How a position is known, best first."""

    KEY = 0
    """Named by the caller with `position_key`."""
    STAMPED = 1
    """An ordinal stamped at ingestion, such as `chunk_index`."""
    PAGE_OFFSET = 2
    """A page, and a character offset on it."""
    OFFSET = 3
    """A character offset."""
    LINKS = 4
    """PREVIOUS/NEXT links, as far as they connect."""
    PAGE = 5
    """A page, a row or another single number that several chunks may share."""
    STORE = 6
    """The sequence in which the store received the chunks of the source."""
    NONE = 7
    """Nothing: `on_missing_position` says where such a chunk stands."""


class Position(NamedTuple):
    """Where a chunk stands in its source.

    Attributes:
        key: Sorts the chunks of one source; empty when nothing is known. Comparable inside one source alone.
        kind: How it is known.
        field: The metadata keys that it was read from.
    """

    key: Key
    kind: PositionKind
    field: str = ""

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return self.kind is not PositionKind.NONE


NOWHERE = Position((), PositionKind.NONE)
"""The position of a chunk of which nothing is known."""


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
else:
    # NumPy is not loaded for a name in an annotation.
    Vector = Any


_NO_METADATA: Mapping[str, Any] = MappingProxyType({})
_QUOTED = 60  # characters of a text in a repr


class Span(NamedTuple):
    """Where a text stands in its source.

    Attributes:
        start: Offset of the first character.
        end: End offset (exclusive).
        page: The page that the offsets count from, or None when they count from the start of the source.
    """

    start: int
    end: int
    page: str | int | None = None


class StorePlace(NamedTuple):
    """Where a chunk stands in the sequence in which its store received the chunks of its source.

    Attributes:
        run: The number of the run that it is in; neighbors in a run overlap, so that their texts confirm the sequence.
        number: Its number in the source.
        evidence: What the sequence rests on, in words.
        start: Offset of its first character in the text of the run.
    """

    run: int
    number: int
    evidence: str = ""
    start: int = 0


@dataclass(frozen=True, init=False)
class Chunk:
    """A retrieved piece of a source.

    Only `text` and `rank` are needed. `source`, `position` and `span` are usually left empty and read from `metadata`
    (see `oprag.positions`); the chunks of a `Context` have them filled in. Its repr is one line.

    Attributes:
        text: The text of the chunk.
        rank: Its place in the retriever's answer, 0 = best. Ranks of one list are distinct.
        source: The name of the document that the chunk came from.
        metadata: The metadata of the chunk; read, never changed.
        score: The retriever's score, higher = better, where it gave one.
        id: The identity of the chunk in its store.
        document_id: The id that the framework gave the document of the chunk; a source of last resort.
        previous_id: The id of the chunk before this one in the source.
        next_id: The id of the chunk after this one in the source.
        parent_id: The id of the larger chunk that this one is a part of.
        child_ids: The ids of the smaller chunks that this one was split into, in their sequence.
        span: Character offsets in the source, where the framework keeps them outside of `metadata`.
        located: Its characters in the text of the source, where it was looked for there.
        store_place: Where it stands in the sequence of its store, where that was asked for.
        position: Where the chunk stands in its source, and how that is known.
        vector: The embedding of the chunk, of shape (dimension,).
        similarity: The cosine of the chunk and the question, where a threshold asked for it.
        neighbor_of: The rank of the kept chunk that this one was filled in for, by `neighbors`.
        origin: The framework's own object: a LangChain `Document`, a LlamaIndex `NodeWithScore`.

    Raises:
        ChunkError: `text` is not a string, `rank` not a whole number from 0, `score` not a number, or
            `metadata` not a mapping.
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
    located: Span | None = None
    store_place: StorePlace | None = None
    position: Position | None = None
    vector: Vector | None = field(default=None, compare=False, repr=False)
    similarity: float | None = field(default=None, compare=False)
    neighbor_of: int | None = None
    origin: Any = field(default=None, compare=False, repr=False)

    # Written by hand: the generated one of a frozen class sets each field through object.__setattr__, which takes three
    # times as long, and adapters make one chunk for every document of every answer.
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
        located: Span | None = None,
        store_place: StorePlace | None = None,
        position: Position | None = None,
        vector: Vector | None = None,
        similarity: float | None = None,
        neighbor_of: int | None = None,
        origin: Any = None,
    ) -> None:
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
            located=located,
            store_place=store_place,
            position=position,
            vector=vector,
            similarity=similarity,
            neighbor_of=neighbor_of,
            origin=origin,
        )
        # A look at the type first: the others are slow, and nearly every chunk needs none of them.
        if type(text) is not str and not isinstance(text, str):
            raise ChunkError(f"the text of a chunk must be a string, got {type(text).__name__}", text)
        if type(rank) is not int or rank < 0:
            raise ChunkError(f"the rank of a chunk must be a whole number from 0, got {describe(rank)}", rank)
        if score is not None and type(score) is not float:
            _check_score(score)
        if span is not None and type(span) is not Span:
            _check_span(span)
        if position is not None and type(position) is not Position:
            raise ChunkError(
                f"the position of a chunk must be an oprag.Position or None, got {describe(position)}", position
            )
        if type(metadata) is not dict and not isinstance(metadata, Mapping):
            raise ChunkError(f"the metadata of a chunk must be a mapping, got {type(metadata).__name__}", metadata)

    def __repr__(self) -> str:
        kind = None if self.position is None else self.position.kind.name
        size = f"{counted(len(self.text), 'character')}: {quoted(self.text)}"
        return f"Chunk(rank={self.rank}, source={quoted(self.source)}, position={kind}, {size})"

    def keys_text(self) -> str:
        """The metadata keys, for messages."""
        return listed(self.metadata)

    def label(self) -> str:
        """Which chunk this is, for messages."""
        seen = (self.source, self.metadata.get("source"), self.metadata.get("file_name"), self.document_id)
        source = next((name for name in seen if name is not None), None)
        return f"rank {self.rank}, source {describe(source)}" + ("" if self.id is None else f", id {describe(self.id)}")


def changed(chunk: Chunk, **fields: Any) -> Chunk:
    """A copy with fields whose values need no check; several times faster than `dataclasses.replace`."""
    copy = object.__new__(Chunk)
    object.__setattr__(copy, "__dict__", chunk.__dict__ | fields)
    return copy


def chunk_to_dict(chunk: Chunk) -> dict[str, Any]:
    """Rank, score and position of a chunk, as values that JSON can hold."""
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
    """A position's key as a number where it is one, else as a list."""
    return key[0] if len(key) == 1 else [_plain_key(part) if isinstance(part, tuple) else part for part in key]


def quoted(text: Any) -> str:
    """The start of a text in quotes, for one-line reprs; anything but a text is named by its type."""
    if not isinstance(text, str):
        return str(None) if text is None else type(text).__name__
    return repr(text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}…")


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as "1 chunk" and "2 chunks"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _check_score(score: Any) -> None:
    if not isinstance(score, Real) or isinstance(score, bool):
        raise ChunkError(f"the score of a chunk must be a number or None, got {describe(score)}", score)


def _check_span(span: Any) -> None:
    if not isinstance(span, Span):
        raise ChunkError(f"the span of a chunk must be an oprag.Span or None, got {describe(span)}", span)


def sorted_by_rank(chunks: Iterable[Chunk]) -> list[Chunk]:
    """The chunks, best first."""
    ordered: list[Chunk] = []
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise ChunkError(f"expected oprag.Chunk objects, got {type(chunk).__name__}", chunk)
        ordered.append(chunk)
    ordered.sort(key=attrgetter("rank"))
    for first, second in pairwise(ordered):
        if first.rank == second.rank:
            raise ChunkError(
                f"two chunks have rank {first.rank}; ranks must be distinct (0 = best), "
                "so number them in the sequence that the retriever gave",
                second,
            )
    return ordered


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
    """A retrieved chunk that is not in the context, and why.

    Attributes:
        chunk: The chunk.
        reason: The option that left it out, or "duplicate".
        figure: What decided: the limit for `max_candidates` and `k`, the rank of the kept twin for a duplicate, the
            cosine for a threshold, the tokens that the chunk needed for `token_budget`; None without one.
        detail: The same in words.
        twin: The rank of the better-ranked chunk that this one repeats, for a duplicate and for `redundancy_threshold`.
    """

    chunk: Chunk
    reason: DropReason
    figure: int | float | None
    detail: str
    twin: int | None = None
