"""The records of a working context, and their conversion to plain values for checkpoints."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oprag.chunk import Chunk, Place, PositionKind, Span, Uncertain, changed
from oprag.masking import describe
from oprag.methods.answer import without_markers
from oprag.positions.values import TOO_LARGE
from oprag.text_table import one_line, printable, shortened

__all__ = ["Gathered", "Parts", "Search", "clean_note", "from_plain", "plain_span", "to_plain"]

Parts = list[tuple[int, int]]
"""Start and end offsets of parts of a text."""

_VERSION = 1
_MAX_NOTE_LENGTH = 500  # characters
_START = "start_index"
# Attributes that most chunks do not have.
_RARE = ("document_id", "previous_id", "next_id", "parent_id", "child_ids", "place", "section")
_FRAMEWORK_SPAN = "framework_span"
_SINCE = "since"
# Codes for the span of a chunk in a checkpoint: none, or from "start_index" and the length of the text. Other spans are
# lists.
_NO_SPAN, _SPAN_FROM_START = 0, 1


@dataclass(slots=True)
class Gathered:
    """A chunk with its best rank, source and span.

    Attributes:
        framework_span: The span from the framework's metadata, which determines the position in the context.
        place: The place of its text; None if not exact.
        frame: The source and page that the offsets of `place` are relative to.
        since: The index of the search that added the place; text that was shown before it does not change.
    """

    chunk: Chunk
    number: int
    framework_span: Span | None
    place: Span | None = None
    frame: Any = None
    since: int = 0

    def place_at(self, index: int) -> Span | None:
        """The place if it was known when the search with this index was added."""
        return self.place if self.since <= index else None


@dataclass(slots=True)
class Search:
    """The numbers of the chunks that a search found, and the text that was shown.

    Attributes:
        found: The numbers in the order of the text.
        best_first: The same numbers, by rank.
        parts: The shown parts of each number's text.
        over_budget: The numbers that did not fit the token budget.
        tokens: Number of tokens in the text, including the note.
        checksum: Checksum of the text, including the note.
        note: The line after the passages.
        forgotten: Whether the model no longer sees the text.
    """

    found: list[int]
    best_first: list[int]
    parts: dict[int, Parts]
    over_budget: frozenset[int]
    tokens: int
    checksum: int
    note: str = ""
    forgotten: bool = False


def to_plain(gathered: Sequence[Gathered], searches: Mapping[str, Search]) -> dict[str, Any]:
    """Convert records to JSON values; metadata shared by all chunks of a source is stored once, the rest as columns."""
    chunks = [item.chunk for item in gathered]
    sources = {source: index for index, source in enumerate(dict.fromkeys(chunk.source for chunk in chunks))}
    of_chunks = [sources[chunk.source] for chunk in chunks]
    common, fields = _factored([chunk.metadata for chunk in chunks], of_chunks)
    others = {str(item.number): more for item in gathered if (more := _rare(item))}
    return {
        "version": _VERSION,
        "sources": [source and str(source) for source in sources],
        "common": common,
        "chunks": {
            "text": [str(chunk.text) for chunk in chunks],
            "source": of_chunks,
            "rank": [chunk.rank for chunk in chunks],
            "id": [chunk.id and str(chunk.id) for chunk in chunks],
            "span": [_plain_span(chunk) for chunk in chunks],
        },
        "metadata": fields,
        "others": others,
        "searches": {name: _plain_search(search, gathered) for name, search in searches.items()},
    }


def from_plain(data: Mapping[str, Any]) -> tuple[Iterator[tuple[Chunk, Span | None, int]], dict[str, Search]]:
    """Read the chunks, lazily and with `framework_span` and `since` of their records, and the searches.

    Raises:
        ValueError, TypeError, KeyError, IndexError, AttributeError, OpragError: The data is corrupt.
    """
    version = data["version"]
    if version != _VERSION:
        newer = type(version) is int and version > _VERSION
        raise ValueError(f"version {describe(version)}, expected {_VERSION}{'; upgrade oprag' if newer else ''}")
    lengths = [len(text) for text in data["chunks"]["text"]]
    _check("the names in searches", all(type(name) is str for name in data["searches"]))
    return _read_chunks(data), {name: _read_search(search, lengths) for name, search in data["searches"].items()}


def _read_chunks(data: Mapping[str, Any]) -> Iterator[tuple[Chunk, Span | None, int]]:
    columns, fields, others = data["chunks"], data["metadata"], data["others"]
    sources, common = data["sources"], data["common"]
    _check("sources", len(sources) == len(common) and all(source is None or type(source) is str for source in sources))
    texts = columns["text"]
    values = [[(name, value) for value in column] for name, column in fields.items()]
    _check("metadata", all(len(column) == len(texts) for column in values))
    own = zip(*values, strict=True) if values else itertools.repeat((), len(texts))
    rows = zip(texts, columns["source"], columns["rank"], columns["id"], columns["span"], own, strict=True)
    for number, (text, source, rank, identity, span, facts) in enumerate(rows, 1):
        _check("chunks.source", type(source) is int and source >= 0)
        _check("chunks.id", identity is None or type(identity) is str)
        metadata = dict(common[source])
        metadata.update([fact for fact in facts if fact[1] is not None])
        more = others.get(str(number))
        rare, framework_span, since = _read_rare(more) if more else ({}, None, 0)
        chunk = Chunk(text, rank, sources[source], metadata, id=identity, span=_read_span(span, text, metadata))
        chunk = changed(chunk, **rare) if rare else chunk
        yield chunk, framework_span if more and _FRAMEWORK_SPAN in more else plain_span(chunk), since


def plain_span(chunk: Chunk) -> Span | None:
    """The span if its offsets are relative to the source, and so equal those in the metadata; else None."""
    span = chunk.span
    return span if span is not None and span.page is None and chunk.place is None else None


def _factored(
    metadata: Sequence[Mapping[str, Any]], sources: Sequence[int]
) -> tuple[list[dict[str, Any]], dict[str, list[Any]]]:
    """The common metadata of each source, and the other fields as columns, with None for missing values."""
    firsts: dict[int, Mapping[str, Any]] = {}
    varying: dict[str, None] = {}
    for own, source in zip(metadata, sources, strict=True):
        first = firsts.setdefault(source, own)
        for name, value in own.items():
            if name not in varying and not _same(first.get(name), value):
                varying[name] = None
        if len(first) != len(own) or first.keys() != own.keys():
            varying.update(dict.fromkeys(name for name in first if name not in own))
    common = [{name: value for name, value in first.items() if name not in varying} for first in firsts.values()]
    return common, {name: [own.get(name) for own in metadata] for name in varying}


def _same(value: Any, other: Any) -> bool:
    return value is other or (type(value) is type(other) and value == other and repr(value) == repr(other))


def _plain_span(chunk: Chunk) -> Any:
    span = chunk.span
    if span is None:
        return _NO_SPAN
    start = chunk.metadata.get(_START)
    if type(start) is int and span == (start, start + len(chunk.text), None):
        return _SPAN_FROM_START
    return list(span)


def _rare(gathered: Gathered) -> dict[str, Any]:
    """The attributes of a chunk that most chunks do not have."""
    chunk = gathered.chunk
    more = {name: value for name in _RARE if (value := getattr(chunk, name))}
    if gathered.framework_span != plain_span(chunk):
        more[_FRAMEWORK_SPAN] = gathered.framework_span
    if gathered.since:
        more[_SINCE] = gathered.since
    # As lists, since some checkpointers would restore the type of a named tuple.
    return {name: _as_lists(value) for name, value in more.items()}


def _as_lists(value: Any) -> Any:
    return [_as_lists(part) for part in value] if isinstance(value, tuple) else value


def _plain_search(search: Search, gathered: Sequence[Gathered]) -> list[Any]:
    shown: list[Any] = []
    for number, parts in search.parts.items():
        whole_text = parts == [(0, len(gathered[number - 1].chunk.text))]
        shown.append(number if whole_text else [number, *itertools.chain.from_iterable(parts)])
    over_budget = sorted(search.over_budget)
    plain = [list(search.found), list(search.best_first), shown, over_budget, search.tokens, search.checksum]
    return [*plain, search.note, search.forgotten]


def _check(name: str, valid: Any) -> None:
    if not valid:
        raise ValueError(f"{name}: a value is missing or invalid")


def _read_span(value: Any, text: str, metadata: Mapping[str, Any]) -> Span | None:
    if type(value) is int:
        _check("chunks.span", value in (_NO_SPAN, _SPAN_FROM_START))
        return None if value == _NO_SPAN else _checked_span([metadata[_START], metadata[_START] + len(text), None])
    return _checked_span(value)


def _checked_span(value: Any) -> Span:
    start, end, page = value
    _check("a span", type(start) is int and type(end) is int and 0 <= start <= end < TOO_LARGE)
    _check("the page of a span", page is None or type(page) is str or type(page) is int)
    return Span(start, end, page)


def _read_rare(more: Mapping[str, Any]) -> tuple[dict[str, Any], Span | None, int]:
    """Read the attributes that most chunks do not have, `framework_span` and `since`."""
    rare: dict[str, Any] = {}
    framework_span, since = None, 0
    for name, value in more.items():
        _check("others", name in _RARE or name in {_FRAMEWORK_SPAN, _SINCE})
        if name == _FRAMEWORK_SPAN:
            framework_span = None if value is None else _checked_span(value)
        elif name == _SINCE:
            _check(f"others.{name}", type(value) is int and value >= 0)
            since = value
        elif name == "place":
            rare[name] = _read_place(value)
        elif name == "child_ids":
            _check(f"others.{name}", type(value) is list and all(type(one) is str for one in value))
            rare[name] = tuple(value)
        else:
            _check(f"others.{name}", type(value) is str)
            rare[name] = value
    return rare, framework_span, since


def _read_place(value: Any) -> Place:
    key, kind, field, span, run, uncertain, basis, number = value
    _check("a place", type(field) is str and basis in {"known", "assumed"} and type(number) is int)
    doubts = []
    for cause, among, group in uncertain:
        _check("a doubt", type(cause) is str and type(among) is str)
        doubts.append(Uncertain(cause, among, _as_tuples(group)))
    return Place(
        _as_tuples(key),
        PositionKind(kind),
        field,
        None if span is None else _checked_span(span),
        None if run is None else _checked_span(run),
        tuple(doubts),
        basis,
        number,
    )


def _as_tuples(value: Any) -> Any:
    """Return a part of a key, with tuples for the lists that a checkpoint has instead."""
    if isinstance(value, list | tuple):
        return tuple(_as_tuples(part) for part in value)
    _check("a key", value is None or type(value) in {int, float, str})
    return value


def _read_search(value: Any, lengths: Sequence[int]) -> Search:
    """Read a search, given the length of each chunk's text."""
    found, best_first, shown, over_budget, tokens, checksum, note, forgotten = value
    numbers = set(found)
    _check("the numbers of a search", all(type(number) is int for number in found) and numbers.issuperset(over_budget))
    _check("the numbers of a search", not numbers or (min(numbers) >= 1 and max(numbers) <= len(lengths)))
    _check("the ranking of a search", len(found) == len(best_first) == len(numbers) and numbers == set(best_first))
    _check("the tokens of a search", all(type(one) is int and one >= 0 for one in (tokens, checksum)))
    _check("the note of a search", type(note) is str and note == clean_note(note) and type(forgotten) is bool)
    parts: dict[int, Parts] = {}
    for one in shown:
        if type(one) is int:
            parts[one] = [(0, lengths[one - 1])]
            continue
        number, *offsets = one
        _check(
            "the parts of a search", all(type(offset) is int for offset in one) and offsets and len(offsets) % 2 == 0
        )
        _check(
            "the parts of a search",
            all(start < end for start, end in itertools.pairwise([-1, *offsets, lengths[number - 1] + 1])),
        )
        parts[number] = list(zip(offsets[::2], offsets[1::2], strict=True))
    _check("the parts of a search", len(parts) == len(shown) and numbers.issuperset(parts))
    return Search(list(found), list(best_first), parts, frozenset(over_budget), tokens, checksum, note, forgotten)


def clean_note(note: str) -> str:
    """Put a note on one line, in parentheses, without citation markers."""
    note = printable(one_line(without_markers(note[: 2 * _MAX_NOTE_LENGTH])))
    return shortened(note if note.startswith("(") or not note else f"({note})", _MAX_NOTE_LENGTH)
