"""The parts of the sources that the search results of an agent show, read only from their text.

The working context is not used: the numbers in the text lead to documents, these to their places in the source, and
each piece of text must occur in its document.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import ToolMessage

from benchmarks.agent_runs import Place

__all__ = ["Piece", "numbered_documents", "pieces_of", "repeated", "shown_as", "union"]

_POINTER = re.compile(r"\[\d+\](, \[\d+\])* \((already shown|shown in source order in the last search result)\)")
_LABEL = re.compile(r"\[(\d+)\](.*)")
_NOTES = re.compile(r"( \((continues \[\d+\]|continues in \[\d+\]|between \[\d+\] and \[\d+\])\))?")
_MARKER = re.compile(r"\[(\d{1,6}(?:\s*(?:[,;\-–—]|,?\s?(?:and|&)\s)\s*\d{1,6})*)\]")
_OTHER = ("Everything that was found so far, in the order of the sources:", "Nothing was found.", "")


class Piece(NamedTuple):
    """A piece of text in a search result: its document, its place in the source, and the text."""

    document: str
    place: Place
    text: str


def numbered_documents(results: Iterable[ToolMessage]) -> dict[int, Document]:
    """Return the documents of search results by their numbers in the text.

    Raises:
        ValueError: Two documents have the same number.
    """
    known: dict[int, Document] = {}
    for document in (document for message in results for document in message.artifact):
        number = document.metadata["oprag"]["number"]
        if known.setdefault(number, document).id != document.id:
            raise ValueError(f"two documents have the number [{number}]")
    return known


def pieces_of(
    results: Sequence[ToolMessage], documents: Mapping[int, Document], places: Mapping[str, Place]
) -> list[list[Piece]]:
    """Return the pieces of text of each search result, in order.

    Raises:
        ValueError: A text contains something that is not in the document with its number.
    """
    shown: list[Place] = []
    pieces: list[list[Piece]] = []
    for message in results:
        pieces.append([])
        for number, text in _labelled(str(message.content), documents):
            document = documents[number]
            place = _located(text, document, places[str(document.id)], shown)
            pieces[-1].append(Piece(str(document.id), place, text))
            shown.append(place)
    return pieces


def union(places: Iterable[Place]) -> dict[str, list[tuple[int, int]]]:
    """Return the characters of these places, each once, as spans of each source in order."""
    spans: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for source, start, end in sorted(places):
        if spans[source] and start <= spans[source][-1][1]:
            first, last = spans[source].pop()
            spans[source].append((first, max(end, last)))
        else:
            spans[source].append((start, end))
    return dict(spans)


def repeated(places: Sequence[Place]) -> int:
    """Return the number of repeated characters of the sources."""
    once = sum(end - start for spans in union(places).values() for start, end in spans)
    return sum(place.end - place.start for place in places) - once


def _labelled(content: str, documents: Mapping[int, Document]) -> Iterable[tuple[int, str]]:
    """Yield the numbers of a search result, each with a piece of its text."""
    number = 0
    lines: list[str] = []
    for line in [*content.split("\n"), None]:
        pointer = line is not None and _POINTER.fullmatch(line)
        label = None if line is None or pointer else _LABEL.match(line)
        if line is not None and not pointer and label is None:
            lines.append(line)
            continue
        if text := "\n".join(lines).strip():
            if not number and text not in _OTHER:
                raise ValueError(f"text without a number: {text[:80]!r}")
            if number:
                yield number, text
        lines = []
        if label is not None:
            number = int(label[1])
            lines = _first_line(label[2], documents[number].metadata["source"])


def _first_line(rest: str, source: str) -> list[str]:
    """Return what follows a number on its line, unless it is only the source and a continuation note."""
    head = rest.removeprefix(f" {source}")
    return [] if rest and _NOTES.fullmatch(head) else [rest]


def _located(text: str, document: Document, of_document: Place, shown: Iterable[Place]) -> Place:
    """Return the place of a piece in its source; of several, the one with the fewest repeated characters."""
    whole, offsets = _as_shown(document.page_content)
    found = [match.start() for match in re.finditer(f"(?={re.escape(text)})", whole)]
    if not found:
        raise ValueError(f"not in the document with this number: {text[:80]!r}")
    source, start, _ = of_document
    places = [Place(source, start + offsets[at], start + offsets[at + len(text) - 1] + 1) for at in found]
    if len(places) == 1:
        return places[0]
    near = [place for place in shown if place.source == source]
    return min(places, key=lambda place: sum(max(0, min(place.end, x.end) - max(place.start, x.start)) for x in near))


def _as_shown(text: str) -> tuple[str, Sequence[int]]:
    """Return a text with spaces inside brackets that look like oprag's numbers, and the offset of each character."""
    written = _MARKER.sub(r"[ \1 ]", text)
    if written == text:
        return text, range(len(text))
    offsets: list[int] = []
    at = 0
    for character in written:
        same = at < len(text) and text[at] == character
        offsets.append(at)
        at += same
    return written, offsets


def shown_as(text: str) -> str:
    """Return a text without whitespace, as a search result shows it."""
    return "".join(_as_shown(text)[0].split())
