"""The chunks that an agent gathered, their numbers, and the searches that found them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from oprag.agents.identity import identities, may_be_same
from oprag.agents.numbered_text import VisibleText, head_of
from oprag.chunk import Chunk, Place, Span, changed
from oprag.options import ContextOptions
from oprag.pipeline.stitch import span_in_source

__all__ = ["Memory", "Search"]


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    Attributes:
        name: The name of the search.
        found: The numbers that were found, in the order of the text, with their ranks.
        new: The chunks that were gathered; their numbers follow those of earlier searches.
        spans: The place of each of these, by which their texts are joined; it never changes.
        places: Places of other chunks, which were found without one before.
        shown: The numbers that have text in the result.
        within: Numbers whose text is a part of other text in the result, with the number of that text.
        tokens: Number of tokens in the text, including the note.
        checksum: Checksum of the text, including the note.
        note: The line after the passages.
        blocks: Whether the result is `search_result` blocks instead of a text; the checksum is then that of
            `fingerprint(blocks)`.
    """

    name: str
    found: list[tuple[int, int]]
    new: list[Chunk]
    spans: list[Span | None]
    places: list[tuple[int, Place]]
    shown: list[int]
    within: list[tuple[int, int]]
    tokens: int
    checksum: int
    note: str = ""
    blocks: bool = False


@dataclass
class Memory:
    """Everything that was gathered; it is copied before it is changed, so that others can share it.

    Attributes:
        stitch: Whether texts that touch or overlap are joined.
        chunks: The chunks; their numbers start at 1.
        spans: The place of each, by which texts are joined.
        ranks: The best rank of each.
        searches: The searches by name.
        forgotten: The names of searches whose text the model no longer sees.
        visible: The text that the model sees.
        log: The searches and, as lists of names, what was forgotten, in sequence.
        saved: The saved form of the log, as far as it was saved.
        sources: Cache of what was derived from the chunks of each source; all copies share it.
        numbers: The numbers of the chunks with each identity.
    """

    stitch: bool = True
    chunks: list[Chunk] = field(default_factory=list)
    spans: list[Span | None] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    searches: dict[str, Search] = field(default_factory=dict)
    forgotten: frozenset[str] = frozenset()
    visible: VisibleText = field(default_factory=VisibleText)
    log: list[Search | list[str]] = field(default_factory=list)
    saved: list[Any] = field(default_factory=list)
    sources: dict[Any, Any] = field(default_factory=dict)
    numbers: dict[Any, tuple[int, ...]] = field(default_factory=dict)

    def copy(self) -> "Memory":
        """A copy that can be changed independently."""
        copied = ("chunks", "spans", "ranks", "searches", "visible", "log", "saved", "numbers")
        return replace(self, **{name: getattr(self, name).copy() for name in copied})

    def gather(self, chunk: Chunk, span: Span | None, used: Collection[int]) -> int:
        """Return the number of a chunk, which is added unless it is known.

        It is known by its id and text, or its place and text. Without a place, chunks with the same text are the same,
        unless one search found them both: `used` are the numbers that it found so far.
        """
        names = identities(chunk)
        for name, certain in names:
            for number in self.numbers.get(name, ()):
                known = self.chunks[number - 1]
                if certain or (number not in used and None in (chunk.id, known.id) and may_be_same(chunk, known)):
                    return number
        return self.append(chunk, span, names)

    def append(self, chunk: Chunk, span: Span | None, names: Sequence[tuple[Any, bool]] | None = None) -> int:
        """Add a new chunk with its identities, and return its number."""
        self.chunks.append(chunk)
        self.spans.append(span)
        self.ranks.append(chunk.rank)
        for name, _ in identities(chunk) if names is None else names:
            self.numbers[name] = (*self.numbers.get(name, ()), len(self.chunks))
        return len(self.chunks)

    def place(self, number: int, place: Place) -> None:
        """Give a chunk a place. Its text stays as it was shown."""
        self.chunks[number - 1] = changed(self.chunks[number - 1], place=place)

    def add(self, search: Search) -> None:
        """Add a search whose chunks were gathered."""
        self.searches[search.name] = search
        self.log.append(search)
        for number, rank in search.found:
            self.ranks[number - 1] = min(rank, self.ranks[number - 1])

    def forget(self, names: Iterable[str]) -> None:
        """Forget the text of searches."""
        self.log.append(list(names))
        self.forgotten = self.forgotten.union(names)
        self.visible = VisibleText()
        for name, search in self.searches.items():
            if name not in self.forgotten:
                self.visible.show(self.found(search.found), search.shown, search.within)

    def join(self, other: "Memory") -> dict[int, int]:
        """Add the searches that only the other memory has, and return the number here of each of its numbers.

        Both began with the same searches; what each added then may have the same numbers in both.
        """
        pairs = zip(self.log, other.log, strict=False)
        common = [entry for _, entry in takewhile(lambda pair: _name(pair[0]) == _name(pair[1]), pairs)]
        known = sum(len(entry.new) for entry in common if isinstance(entry, Search))
        numbers = {number: number for number in range(1, known + 1)}
        joined: list[str] = []
        for search in other.log[len(common) :]:
            if not isinstance(search, list):
                self._join(search, numbers)
                joined.append(search.name)
        if joined:
            self.forget(joined)
        return numbers

    def _join(self, search: Search, numbers: dict[int, int]) -> None:
        """Add a search of another memory, and its new numbers to `numbers`."""
        gathered = len(self.chunks)
        used = {numbers[number] for number, _ in search.found if number in numbers}
        first = len(numbers) + 1
        for number, (chunk, span) in enumerate(zip(search.new, search.spans, strict=True), first):
            numbers[number] = self.gather(chunk, span, used)
            used.add(numbers[number])
        places: list[tuple[int, Place]] = []
        of_new = [(number, chunk.place) for number, chunk in enumerate(search.new, first) if chunk.place is not None]
        for number, place in [*of_new, *search.places]:
            if self.chunks[numbers[number] - 1].place is None:
                self.place(numbers[number], place)
                places.append((numbers[number], place))
        self.add(
            replace(
                search,
                found=list({numbers[number]: rank for number, rank in search.found}.items()),
                new=self.chunks[gathered:],
                spans=self.spans[gathered:],
                places=places,
                shown=list(dict.fromkeys(numbers[number] for number in search.shown)),
                within=[(numbers[number], numbers[by]) for number, by in search.within],
            )
        )

    def found(self, found: Iterable[tuple[int, int]]) -> dict[int, Chunk]:
        """The chunks that a search found, with their ranks and the places by which their texts are joined."""
        return {
            number: changed(self.chunks[number - 1], rank=rank, span=self.spans[number - 1] if self.stitch else None)
            for number, rank in found
        }

    def head(self, options: ContextOptions, number: int, chunk: Chunk) -> str:
        """The text after the number of a chunk that was found."""
        span = span_in_source(self.spans[number - 1])
        return head_of(options, number, chunk if span is chunk.span else changed(chunk, span=span))

    def shown(self, number: int, rank: int) -> Chunk:
        """A chunk with a rank, and its span in the source."""
        return changed(self.chunks[number - 1], rank=rank, span=span_in_source(self.spans[number - 1]))


def _name(entry: Search | list[str]) -> Any:
    return entry.name if isinstance(entry, Search) else entry
