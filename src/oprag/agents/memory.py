"""The chunks that an agent gathered, their numbers, and the searches that found them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from oprag.agents.identity import identities, may_be_same
from oprag.agents.numbered_text import VisibleText
from oprag.chunk import Chunk, Place, Span, changed

__all__ = ["Memory", "Search"]


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search."""

    name: str
    found: list[tuple[int, int]]  # the numbers that were found, in the order of the text, with their ranks
    new: list[Chunk]  # those that were gathered; their numbers follow those of earlier searches
    spans: list[Span | None]  # the place of each of these, by which their texts are joined; it never changes
    places: list[tuple[int, Place]]  # of other chunks, which were found without one before
    shown: list[int] = field(default_factory=list)  # the numbers that have text in the result
    tokens: int = 0  # in the text, including the note
    checksum: int = 0  # of the text or blocks
    note: str = ""  # the line after the passages
    blocks: bool = False  # whether the result is `search_result` blocks instead of a text


@dataclass
class Memory:
    """Everything that was gathered; it is copied before it is changed, so that others can share it."""

    chunks: list[Chunk] = field(default_factory=list)  # their numbers start at 1
    placed: list[Chunk] = field(default_factory=list)  # the same with the places by which texts are joined as spans
    ranks: list[int] = field(default_factory=list)  # the best rank of each
    numbers: dict[Any, tuple[int, ...]] = field(default_factory=dict)  # of the chunks with each identity
    searches: dict[str, Search] = field(default_factory=dict)
    forgotten: frozenset[str] = frozenset()  # names of searches whose text the model no longer sees
    log: list[Search | list[str]] = field(default_factory=list)  # searches and, as lists of names, what was forgotten
    saved: list[Any] = field(default_factory=list)  # the saved form of the log, as far as it was saved
    # Caches: what is derived from each source, and texts by their checksums, which copies share; and the visible text.
    sources: dict[Any, Any] = field(default_factory=dict)
    verified: dict[int, str] = field(default_factory=dict)
    shown: VisibleText | None = None

    def copy(self) -> "Memory":
        """A copy that can be changed independently."""
        copied = ("chunks", "placed", "ranks", "numbers", "searches", "log", "saved")
        shown = None if self.shown is None else self.shown.copy()
        return replace(self, shown=shown, **{name: getattr(self, name).copy() for name in copied})

    def gather(
        self, name: str, given: Iterable[tuple[Chunk, Span | None]], found: Mapping[int, int] | None = None
    ) -> tuple[list[int], Search]:
        """Gather the chunks of a search, given with the places of their texts; return their numbers, and the search.

        A chunk is known by its id and text, or its place and text. Without a place, chunks with the same text are the
        same, unless one search found them both: `found` are the numbers that it found already, with their ranks.
        """
        ranks = dict(found or {})
        known = len(self.chunks)
        numbers: list[int] = []
        places: list[tuple[int, Place]] = []
        for chunk, span in given:
            names = identities(chunk)
            number = self._known(chunk, names, ranks) or self.append(chunk, span, names)
            if chunk.place is not None and self.chunks[number - 1].place is None:
                self.place(number, chunk.place)
                places.append((number, chunk.place))
            numbers.append(number)
            ranks[number] = min(chunk.rank, ranks.get(number, chunk.rank))
        spans = [chunk.span for chunk in self.placed[known:]]
        return numbers, Search(name, list(ranks.items()), self.chunks[known:], spans, places)

    def _known(self, chunk: Chunk, names: Iterable[tuple[Any, bool]], used: Mapping[int, int]) -> int:
        """The number of a chunk; 0 if it is new."""
        for name, certain in names:
            for number in self.numbers.get(name, ()):
                known = self.chunks[number - 1]
                if certain or (number not in used and None in (chunk.id, known.id) and may_be_same(chunk, known)):
                    return number
        return 0

    def append(self, chunk: Chunk, span: Span | None, names: Iterable[tuple[Any, bool]]) -> int:
        """Add a new chunk with its identities, and return its number."""
        self.chunks.append(chunk)
        self.placed.append(changed(chunk, span=span))
        self.ranks.append(chunk.rank)
        only = (len(self.chunks),)
        for name, _ in names:
            if (known := self.numbers.setdefault(name, only)) is not only:
                self.numbers[name] = known + only
        return len(self.chunks)

    def place(self, number: int, place: Place) -> None:
        """Give a chunk a place. Its text stays as it was shown."""
        for chunks in (self.chunks, self.placed):
            chunks[number - 1] = changed(chunks[number - 1], place=place)

    def add(self, search: Search) -> None:
        """Add a search whose chunks were gathered."""
        self.searches[search.name] = search
        self.log.append(search)
        for number, rank in search.found:
            self.ranks[number - 1] = min(rank, self.ranks[number - 1])
        if self.shown is not None:
            self.shown.show(search.shown, self.placed)

    def forget(self, names: Iterable[str]) -> None:
        """Forget the text of searches."""
        self.log.append(list(names))
        self.forgotten = self.forgotten.union(names)
        self.shown = None

    def visible(self) -> VisibleText:
        """The text that the model sees."""
        if self.shown is None:
            self.shown = VisibleText()
            for name, search in self.searches.items():
                if name not in self.forgotten:
                    self.shown.show(search.shown, self.placed)
        return self.shown

    def join(self, other: "Memory") -> dict[int, int]:
        """Gather what only the other memory, which began with the same searches, has; return its numbers here."""
        pairs = takewhile(lambda pair: _about(pair[0]) == _about(pair[1]), zip(self.log, other.log, strict=False))
        common = [entry for _, entry in pairs]
        known = sum(len(entry.new) for entry in common if isinstance(entry, Search))
        numbers = {number: number for number in range(1, known + 1)}
        later = [entry for entry in other.log[len(common) :] if isinstance(entry, Search)]
        if not later:
            return numbers
        ranks = {number: other.ranks[number - 1] for search in later for number, _ in search.found}
        new = [number for number in ranks if number > known]
        given = [
            (changed(other.chunks[number - 1], rank=ranks[number]), other.placed[number - 1].span) for number in new
        ]
        name = f"joined {later[-1].name}"
        while name in self.searches:
            name += "'"
        its, search = self.gather(name, given, {number: rank for number, rank in ranks.items() if number <= known})
        numbers |= zip(new, its, strict=True)
        for number, chunk in enumerate(other.chunks[:known], 1):
            if chunk.place is not None and self.chunks[number - 1].place is None:
                self.place(number, chunk.place)
                search.places.append((number, chunk.place))
        search.shown.extend(dict.fromkeys(numbers[number] for one in later for number in one.shown))
        self.add(search)
        self.forget([name])
        return numbers


def _about(entry: Search | list[str]) -> Any:
    return (entry.name, entry.checksum) if isinstance(entry, Search) else entry
