"""Makes sources as stores come to hold them, with the true place of each chunk, without oprag's reading of positions.

A case is a text, a splitter, a style of metadata, a history of the store and a listing, all drawn from one seed.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from oprag.chunk import Chunk, Span

__all__ = ["HISTORIES", "STYLES", "TEXTS", "Case", "Entry", "make_case"]

MIN_CHUNKS, MAX_CHUNKS = 4, 150
BETWEEN_PAGES = "\n\n"


class Words:
    """Writes sentences of made-up words that repeat as those of real texts do."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self._words = ["".join(chance.choices("abdefgilmnoprstu", k=chance.randint(2, 9))) for _ in range(400)]
        self.header, self.footer, self.refrain = self.sentence(), self.sentence(), self.paragraph()

    def sentence(self) -> str:
        return " ".join(self.chance.choices(self._words, k=self.chance.randint(4, 14))).capitalize() + "."

    def paragraph(self) -> str:
        return " ".join(self.sentence() for _ in range(self.chance.randint(1, 5)))

    def paragraphs(self) -> list[str]:
        return [self.paragraph() for _ in range(self.chance.randint(1, 6))]

    def row(self) -> str:
        return "| n/a | n/a | 0.00 |" if self.chance.random() < 0.6 else f"| {self.sentence()} | 1.00 |"


FORM = "Date: ____________\nSignature: ____________\nRemarks: none\nTo be filled in by the office only."
TEXTS: Mapping[str, Callable[[Words, int], list[str]]] = {
    "prose": lambda words, page: words.paragraphs(),
    "headers and footers": lambda words, page: [words.header, *words.paragraphs(), f"{words.footer} Page {page + 1}"],
    "refrains": lambda words, page: [part for one in words.paragraphs() for part in (one, words.refrain)],
    "tables": lambda words, page: [words.paragraph(), "\n".join(words.row() for _ in range(30))],
    "forms": lambda words, page: [f"Name: {words.sentence()}\n{FORM}" for _ in range(words.chance.randint(2, 6))],
    "legal": lambda words, page: [
        f"Section {page + 1}\n\n(1) {words.paragraph()}",
        "\n".join(f"({letter}) {words.sentence()} Section 3 applies accordingly." for letter in "abcd"),
    ],
}
"""The paragraphs of a page, by the kind of the text."""


class Piece(NamedTuple):
    """A piece of a text."""

    text: str
    place: int  # true offset; for an edited piece, that of the one that it replaces
    start: int  # offset in its own edition of the text
    page: int
    page_start: int
    version: int  # places in two versions of a file, or in two files, do not compare


class Splitter(NamedTuple):
    """Cuts a text; units that are shorter than the size are joined, and longer ones are cut."""

    unit: str
    size: int
    overlap: int
    by_page: bool
    strips: bool

    def pieces(self, pages: Sequence[str], version: int) -> list[Piece]:
        text = BETWEEN_PAGES.join(pages)
        starts = list(accumulate((len(page) + len(BETWEEN_PAGES) for page in pages[:-1]), initial=0))
        ends = [start + len(page) for start, page in zip(starts, pages, strict=True)]
        frames = list(zip(starts, ends, strict=True)) if self.by_page else [(0, len(text))]
        found = []
        for start, end in (span for frame in frames for span in self._spans(text, *frame)):
            piece, at = text[start:end], start
            if self.strips:
                at, piece = end - len(piece.lstrip()), piece.strip()
            page = sum(one <= at for one in starts) - 1
            if piece.strip():
                found.append(Piece(piece, at, at, page, starts[page], version))
        return found

    def _spans(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        if self.unit == "windows":
            for at in range(start, max(start + 1, end - self.overlap), self.size - self.overlap):
                yield at, min(at + self.size, end)
            return
        between = r"(?<=[.\n])\s+" if self.unit == "sentences" else r"\n\n+"
        cuts = [*(match.end() for match in re.compile(between).finditer(text, start, end)), end]
        for cut, following in pairwise([*cuts, end + self.size]):
            while cut - start > self.size:
                yield start, start + self.size
                start += self.size
            if start < cut and following - start > self.size:
                yield start, cut
                start = cut


def _splitter(chance: random.Random) -> Splitter:
    unit = chance.choice(["windows", "windows", "sentences", "paragraphs"])
    size = chance.choice([60, 120, 200, 400, 800])
    overlap = chance.choice([0, size // 8, size // 4]) if unit == "windows" else 0
    return Splitter(unit, size, overlap, by_page=chance.random() < 0.5, strips=chance.random() < 0.5)


class Call(NamedTuple):
    """Pieces that are numbered in one call."""

    pieces: Sequence[Piece]
    base: int  # offset of the text that was split
    name: str  # a random id
    text: str
    pages: int
    by_page: bool
    chance: random.Random


_Metadata = Callable[[Call, int], dict[str, Any]]
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")


def _offset(call: Call, number: int) -> dict[str, Any]:
    return {"start_index": call.pieces[number].start - call.base}


def _page(call: Call, number: int, name: str = "page", first: int = 0) -> dict[str, Any]:
    return {name: call.pieces[number].page + first}


def _offset_on_page(call: Call, number: int) -> dict[str, Any]:
    return {"start_index": call.pieces[number].start - call.pieces[number].page_start}


def _number_on_page(call: Call, number: int) -> dict[str, Any]:
    page = call.pieces[number].page
    return {"page_number": page + 1, "chunk_index": sum(one.page == page for one in call.pieces[:number])}


def _label(style: str) -> _Metadata:
    def labeled(call: Call, number: int) -> dict[str, Any]:
        page, third = call.pieces[number].page, max(1, call.pages // 3)
        part, on_part = divmod(page, third)
        front = _ROMAN[page - 1] if page else "Cover"
        labels = {
            "plain": str(page + 1),
            "roman": str(page - third + 1) if part else _ROMAN[page],
            "restarting": str(on_part + 1),
            "prefixed": f"{'ABCDE'[part]}-{on_part + 1}",
            "mixed": [front, str(on_part + 1), f"A-{page - 2 * third + 1}"][min(part, 2)],
        }
        return {"page_label": labels[style]}

    return labeled


_METADATA: Mapping[str, _Metadata] = {
    "nothing": lambda call, number: {},
    "stamp": lambda call, number: {"chunk_index": number, "chunk_numbering": f"n{call.name}"},
    "chunk_index": lambda call, number: {"chunk_index": number},
    "start_index": _offset,
    "start_index, some -1": lambda call, number: (
        {"start_index": -1} if call.chance.random() < 0.2 else _offset(call, number)
    ),
    "start_index, first occurrence": lambda call, number: {"start_index": call.text.find(call.pieces[number].text)},
    "page, offset on page": lambda call, number: _page(call, number) | _offset_on_page(call, number),
    "page, offset in file": lambda call, number: _page(call, number) | _offset(call, number),
    "number on page": _number_on_page,
    "page from 0": _page,
    "page from 1": lambda call, number: _page(call, number, "page_number", 1),
    **{f"label {style}": _label(style) for style in ("plain", "roman", "restarting", "prefixed", "mixed")},
    "page, label restarting": lambda call, number: _page(call, number) | _label("restarting")(call, number),
    "page, label mixed": lambda call, number: _page(call, number) | _label("mixed")(call, number),
    "LlamaIndex": lambda call, number: _label("plain")(call, number) if call.by_page else {},
}
_BY_SEQUENCE: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "row id": lambda row: {"row_id": row},
    "timestamp": lambda row: {"created_at": f"2024-05-17T10:{row // 60:02}:{row % 60:02}Z"},
    "stamp by store": lambda row: {"chunk_index": row, "chunk_numbering": "s0123456789ab"},
}
"""Metadata that repeat the sequence of the store, whatever that is."""
STYLES = (*_METADATA, *_BY_SEQUENCE)
_NAMING_CALLS = ("stamp", "LlamaIndex")
_REPEATING = "start_index, first occurrence"


def _node_fields(call: Call, number: int) -> dict[str, Any]:
    """The fields of a node; each page is a document of its own if it was split on its own."""
    piece = call.pieces[number]
    start = piece.start - (piece.page_start if call.by_page else call.base)
    around = {at: call.pieces[at] for at in (number - 1, number + 1) if 0 <= at < len(call.pieces)}
    ids = {at: f"{call.name}-{at}" for at, one in around.items() if not call.by_page or one.page == piece.page}
    return {
        "document_id": f"{call.name}-page-{piece.page}" if call.by_page else call.name,
        "span": Span(start, start + len(piece.text)),
        "previous_id": ids.get(number - 1),
        "next_id": ids.get(number + 1),
    }


@dataclass
class Entry:
    """A chunk in a store: its piece, the fields of its `Chunk`, and whether they contradict its true place."""

    piece: Piece
    fields: dict[str, Any]
    lies: bool = False

    @property
    def metadata(self) -> dict[str, Any]:
        return dict(self.fields["metadata"])


class File:
    """A file, its splitter and the style of its metadata."""

    def __init__(self, chance: random.Random, style: str) -> None:
        self.chance, self.style = chance, style
        self.kind, self.splitter = chance.choice(list(TEXTS)), _splitter(chance)
        self.pages: dict[int, Sequence[str]] = {}
        self.texts: dict[int, str] = {}
        self.pieces: dict[int, list[Piece]] = {}
        self.is_text_known = True
        self.add_version(0, self.splitter)

    def add_version(self, version: int, splitter: Splitter, pages: Sequence[str] = ()) -> None:
        """Split new pages, or the given ones."""
        words = Words(self.chance)
        pages = pages or ["\n\n".join(TEXTS[self.kind](words, page)) for page in range(self.chance.randint(3, 12))]
        self.pages[version], self.texts[version] = pages, BETWEEN_PAGES.join(pages)
        self.pieces[version] = splitter.pieces(pages, version)

    def write(self, pieces: Sequence[Piece], *, apart: bool = False) -> list[Entry]:
        """Number pieces in one call; `apart` as if they were the whole text."""
        version, name = pieces[0].version, f"{self.chance.getrandbits(48):012x}"
        base = min(piece.start for piece in pieces) if apart else 0
        about = len(self.pages[version]), self.splitter.by_page, self.chance
        call = Call(pieces, base, name, self.texts[version], *about)
        entries = []
        for number, piece in enumerate(pieces):
            metadata = _METADATA.get(self.style, _METADATA["nothing"])(call, number)
            fields = _node_fields(call, number) if self.style == "LlamaIndex" else {}
            lies = piece.start != piece.place or (apart and self.style not in _NAMING_CALLS)
            lies = lies or (self.style == _REPEATING and metadata["start_index"] != piece.place)
            fields |= {"metadata": {"source": "manual.pdf", **metadata}, "id": f"{name}-{number}"}
            entries.append(Entry(piece, fields, lies))
        return entries

    def write_apart(self, entries: Sequence[Entry]) -> list[Entry]:
        """Number some chunks again, each version as if they were all of it, and leave their sequence."""
        numbered = sorted(enumerate(entry.piece for entry in entries), key=lambda one: (one[1].version, one[1].place))
        made: list[tuple[int, Entry]] = []
        for _, some in groupby(numbered, key=lambda one: one[1].version):
            numbers, pieces = zip(*some, strict=True)
            made += zip(numbers, self.write(pieces, apart=True), strict=True)
        return [entry for _, entry in sorted(made, key=itemgetter(0))]

    def is_plain(self, entry: Entry) -> bool:
        """Whether a chunk that is out of sequence can be told from a new part of the file.

        Where pages alone are known, the first page of a numbering and the last page do not tell it, and labels that
        begin again never do.
        """
        if not self.style.startswith(("label", "page from", "page, label")):
            return True
        if self.style == "label restarting":
            return False
        names = (str(entry.metadata.get(name)) for name in ("page_label", "page", "page_number"))
        begins = any(name in ("0", "1", "i", "Cover") or name.endswith("-1") for name in names)
        return not begins and entry.piece.page < len(self.pages[entry.piece.version]) - 1


_Entries = list[Entry]


def _deleted(file: File, entries: _Entries) -> _Entries:
    count, start = file.chance.randint(1, max(1, len(entries) // 4)), file.chance.randrange(len(entries))
    gone = range(start, start + count) if file.chance.random() < 0.5 else file.chance.sample(range(len(entries)), count)
    return [entry for number, entry in enumerate(entries) if number not in gone]


def _edited(file: File, entries: _Entries, *, keep: bool = False) -> _Entries:
    """Only chunks whose text changed are replaced, and the new ones are at the end."""
    plain = [number for number, entry in enumerate(entries) if file.is_plain(entry)]
    if not plain:
        return entries
    start = file.chance.choice(plain)
    some = [entry.piece for entry in entries[start : start + file.chance.randint(1, 4)] if file.is_plain(entry)]
    version = some[0].version
    change = _lengthened if not file.splitter.overlap and file.chance.random() < 0.4 else _rewritten
    changed = change(file, [piece for piece in some if piece.version == version], version)
    now = file.pieces[version] = [changed.get(piece.place, piece) for piece in file.pieces[version]]
    made = [entry for entry in file.write(now) if entry.piece.place in changed]
    for entry in made:
        # Without an offset, nothing tells that the last chunk belongs elsewhere.
        if entry.metadata.get("start_index") == -1:
            entry.fields = entry.fields | {"metadata": entry.metadata | {"start_index": entry.piece.start}}
    if file.style in _NAMING_CALLS and file.chance.random() < 0.5:
        made = file.write_apart(made)
    return [one for one in entries if keep or one.piece.version != version or one.piece.place not in changed] + made


def _rewritten(file: File, some: Sequence[Piece], version: int) -> dict[int, Piece]:
    """Change some characters in the middle of each piece, also in those that overlap there."""
    text = file.texts[version]
    for piece in some:
        at = piece.start + len(piece.text) // 2
        new = "".join(file.chance.choices("abcdefgh", k=min(8, len(piece.text) // 2)))
        text = text[:at] + new + text[at + len(new) :]
    file.texts[version] = text
    now = [piece._replace(text=text[piece.start : piece.start + len(piece.text)]) for piece in file.pieces[version]]
    return {new.place: new for new, piece in zip(now, file.pieces[version], strict=True) if new != piece}


def _lengthened(file: File, some: Sequence[Piece], version: int) -> dict[int, Piece]:
    """Add a sentence to each piece; the offsets of the chunks that are left are those of the old text."""
    file.is_text_known = False
    added = f" {Words(file.chance).sentence()}"
    pieces = sorted({piece.place: piece for piece in some}.values(), key=lambda piece: piece.place)
    shifted = ((piece, piece.start + number * len(added)) for number, piece in enumerate(pieces))
    return {piece.place: piece._replace(text=piece.text + added, start=start) for piece, start in shifted}


def _copied(file: File, entries: _Entries) -> _Entries:
    times = Counter(entry.piece.text for entry in entries)
    entry = file.chance.choice([one for one in entries if times[one.piece.text] == 1] or entries[:1])
    return [*entries, replace(entry, fields=entry.fields | {"id": f"{entry.fields['id']}-copy"})]


def _new_version(version: int) -> Callable[[File, _Entries], _Entries]:
    def added(file: File, entries: _Entries) -> _Entries:
        """The same pages in other sizes, or another file of this name."""
        sizes = {1: (file.splitter._replace(size=file.splitter.size * 2 // 3), file.pages[0]), 2: (file.splitter, ())}
        file.add_version(version, *sizes[version])
        return entries + file.write(file.pieces[version])

    return added


def _migrated(file: File, entries: _Entries) -> _Entries:
    """The earlier half has no metadata; the later one may be numbered on its own."""
    half = len(entries) // 2
    bare = [Entry(one.piece, {"metadata": {"source": "manual.pdf"}, "id": one.fields["id"]}) for one in entries[:half]]
    return bare + (file.write_apart(entries[half:]) if file.chance.random() < 0.5 else entries[half:])


def _by_workers(file: File, entries: _Entries) -> _Entries:
    """Parts are in another order; a part that is very small could be a few wrong numbers."""
    least = max(2, len(entries) // 8)
    cuts: list[int] = []
    for number in range(least, len(entries) - least + 1):
        far = not cuts or number >= cuts[-1] + least
        if far and file.is_plain(entries[number]) and file.chance.random() < 3 / least:
            cuts.append(number)
    parts = [entries[start:end] for start, end in pairwise([0, *cuts, len(entries)])]
    if file.style in _NAMING_CALLS and file.chance.random() < 0.5:
        parts = list(map(file.write_apart, parts))
    before = parts[:]
    while before == parts and cuts:
        file.chance.shuffle(parts)
    return [entry for part in parts for entry in part]


def _wrong_values(file: File, entries: _Entries) -> _Entries:
    """One or two chunks of the first half have a random number: near the end, it could be that of a late addition."""
    entries = list(entries)
    count = (len(entries) >= 12) + (len(entries) >= 40)
    for number in file.chance.sample(range(len(entries) // 2), count):
        entry, wrong = entries[number], file.chance.randrange(2 * len(entries))
        metadata = entry.metadata
        names = [name for name in ("chunk_index", "start_index", "page", "page_number") if name in metadata]
        fields = entry.fields | {"metadata": metadata | dict.fromkeys(names[:1], wrong)}
        if "span" in fields:
            fields["span"] = Span(wrong, wrong + len(entry.piece.text))
        entries[number] = Entry(entry.piece, fields, lies=True)
    return entries


HISTORIES: Mapping[str, Callable[[File, _Entries], _Entries]] = {
    "added once": lambda file, entries: entries,
    "added twice": lambda file, entries: entries + file.write(file.pieces[0]),
    "deleted": _deleted,
    "edited": _edited,
    "edited, old kept": lambda file, entries: _edited(file, entries, keep=True),
    "half migrated": _migrated,
    "one copied": _copied,
    "other chunk size": _new_version(1),
    "two files": _new_version(2),
    "workers": _by_workers,
    "wrong values": _wrong_values,
}
"""Each returns the sequence of a store that had these chunks, after it happened."""
LISTINGS = {"complete, in sequence": 5, "complete, shuffled": 2, "retrieved, in sequence": 1, "retrieved, shuffled": 3}
"""The kinds of listings, with their weights."""


@dataclass
class Case:
    """What is known of a source, and the truth."""

    seed: int
    style: str
    history: str  # one or two, joined by " + "
    listing: str
    kind: str
    splitter: Splitter
    entries: _Entries  # what is listed
    text: str | None  # the text of the source, if oprag may read it
    chunks: list[Chunk] = field(init=False)

    def __post_init__(self) -> None:
        self.chunks = [Chunk(entry.piece.text, rank, **entry.fields) for rank, entry in enumerate(self.entries)]
        self.complete = self.listing.startswith("complete")
        self.in_sequence = self.listing.endswith("in sequence")


def make_case(seed: int) -> Case:
    """Make the case of a seed."""
    chance = random.Random(seed)
    style = chance.choice(STYLES)
    names = chance.sample(list(HISTORIES)[1:], 2) if chance.random() < 0.3 else [chance.choice(list(HISTORIES))]
    # Wrong values come last, so that no other history repairs them.
    names.sort(key=lambda name: name == "wrong values")
    while True:
        file = File(chance, style)
        if not MIN_CHUNKS <= len(file.pieces[0]) <= MAX_CHUNKS // 2:
            continue
        entries = file.write(file.pieces[0])
        for name in names:
            entries = HISTORIES[name](file, entries)
        if MIN_CHUNKS <= len(entries) <= MAX_CHUNKS:
            break
    for row, entry in enumerate(entries if style in _BY_SEQUENCE else ()):
        entry.fields = entry.fields | {"metadata": entry.metadata | _BY_SEQUENCE[style](row)}
    listing = chance.choices(list(LISTINGS), [*LISTINGS.values()])[0]
    count = len(entries) if listing.startswith("complete") else min(len(entries), chance.randint(2, 40))
    rows = chance.sample(range(len(entries)), count)
    listed = [entries[row] for row in (sorted(rows) if listing.endswith("in sequence") else rows)]
    text = file.texts[0] if file.is_text_known and chance.random() < 0.15 else None
    return Case(seed, style, " + ".join(names), listing, file.kind, file.splitter, listed, text)
