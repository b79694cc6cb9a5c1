"""The citations in an answer: the passages that its markers refer to, and its quotes."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from oprag.chunk import Chunk, Passage, Span
from oprag.pipeline.render import MARKER, section_of, without_markers
from oprag.pipeline.stitch import stitch
from oprag.positions.readings import page_of

__all__ = ["Citation", "citation_of", "cited_in", "is_quoted", "normal", "numbers_in", "quote_before", "renumbered"]

_RANGE = re.compile(r"(\d+)(?:\s*[-–—]\s*(\d+))?")
_MAX_RANGE_LENGTH = 100  # maximum number of numbers in a range
# Markdown: a fenced block, or code within a line.
_CODE = re.compile(
    r"^ *(`{3,}+|~{3,}+)[^\n`]*+\n.*?(?:^ *\1[`~]* *$|\Z)|(?<!`)(`++)[^\n]{1,500}?(?<!`)\2(?!`)",
    re.DOTALL | re.MULTILINE,
)

# Closing quotation marks, and those that open a quote that they close.
_OPENING = {
    '"': '"',
    "”": "“„”",
    "“": "„",
    "»": "«»",
    "«": "»",
    "›": "‹›",
    "‹": "›",
    "’": "‘‚",
    "‘": "‚",
    "」": "「",
    "』": "『",
}
_ALIKE = str.maketrans(dict.fromkeys("".join([*_OPENING, *_OPENING.values(), "‛‟′″"]), "'"))
_LEFT_OUT = re.compile(r"\[\s?(?:…|\.{3})\s?\]|\(\s?(?:…|\.{3})\s?\)|…|\.{3,}|\. \. \.")
# Between a quote and its marker: punctuation, a parenthesis, and the emphasis of Markdown.
_BETWEEN = ".,;:!?(*_"
_MAX_QUOTE_LENGTH = 4_000  # characters of a quote


class Citation(NamedTuple):
    """A citation in an answer: one number of a marker such as [1] or [1, 3], or one by the provider of the model.

    Attributes:
        number: The number of the passage, such as that in the marker.
        start: Start offset of the marker in the answer; for a citation by the provider, that of the text that cites.
        end: End offset (exclusive).
        passage: The passage with this number in the prompt.
        source: Source of the passage.
        page: Page of the passage, as its printed label if available; None if unknown, or if the passage covers several
            pages.
        span: Character offsets of the passage in its source; None if unknown, or if they are relative to several pages.
        quote: The quoted text: in quotation marks right before the marker, or as stated by the provider; None without.
        misquoted: Whether no passage of the marker contains the quote. Whitespace, the kind of quotation marks, and a
            full stop or comma at its end do not matter; an ellipsis may leave something out.
    """

    number: int
    start: int
    end: int
    passage: Passage
    source: str | None
    page: str | int | None
    span: Span | None
    quote: str | None = None
    misquoted: bool = False

    @property
    def section(self) -> str:
        """Headings over the start of the passage, such as "Install > On Windows"; empty if unknown.

        From metadata; with `{section}` in the header, else from the Markdown headings in the source.
        """
        return section_of(self.passage.chunks[0])

    @property
    def cited_text(self) -> str:
        """The quote if the passage contains it, else the whole passage."""
        return self.passage.text if self.quote is None or self.misquoted else self.quote

    def to_dict(self) -> dict[str, Any]:
        """The citation as JSON-serializable values, including the text of the passage and the ids of its chunks."""
        return {
            "number": self.number,
            "start": self.start,
            "end": self.end,
            "source": self.source,
            "section": self.section,
            "page": self.page,
            "span": None if self.span is None else self.span._asdict(),
            "quote": self.quote,
            "misquoted": self.misquoted,
            "text": self.passage.text,
            "ids": [chunk.id for chunk in self.passage.chunks if chunk.id is not None],
        }


def cited_in(text: str, passage_of: Callable[[int], Passage | None]) -> tuple[list[Citation], list[int]]:
    """The citations in a text outside code, and the numbers in its markers that have no passage."""
    citations: list[Citation] = []
    unknown: dict[int, None] = {}
    texts: dict[int, str] = {}
    end = 0
    for group in _groups(text):
        # It belongs to all markers that follow it directly, and to those of their passages that contain it.
        quote = quote_before(text, end, group[0].start())
        end = group[-1].end()
        cited = [(marker, number, passage_of(number)) for marker in group for number in numbers_in(marker)]
        passages = {number: passage for _, number, passage in cited if passage is not None}
        unknown |= dict.fromkeys(number for _, number, passage in cited if passage is None)
        quoting, misquoted = set(passages), False
        if quote is not None:
            texts |= {number: normal(passages[number].text) for number in passages.keys() - texts}
            quoting = {number for number in passages if is_quoted(quote, texts[number])}
            misquoted = not quoting and not any(is_quoted(quote, text) for text in _stitched(passages.values()))
        for marker, number, passage in cited:
            if passage is not None:
                its = quote if number in quoting or not quoting else None
                citations.append(citation_of(number, *marker.span(), passage, its, misquoted=misquoted))
    return citations, list(unknown)


def _stitched(passages: Iterable[Passage]) -> Iterator[str]:
    """The texts of passages, as they are compared; those that touch or overlap in their source are joined."""

    def place(chunk: Chunk) -> tuple[str, str, int]:
        span = chunk.span or Span(0, 0)
        return chunk.source or "", str(span.page), span.start

    chunks = sorted((chunk for passage in passages for chunk in passage.chunks), key=place)
    return (normal(passage.text) for passage in stitch(chunks, " "))


def citation_of(
    number: int, start: int, end: int, passage: Passage, quote: str | None = None, *, misquoted: bool = False
) -> Citation:
    """The citation of a passage."""
    pages = {page_of(chunk) for chunk in passage.chunks}
    if pages == {None}:
        pages = {span.page for span in passage.spans}
    page = pages.pop() if len(pages) == 1 else None
    return Citation(number, start, end, passage, passage.source, page, _cited_span(passage), quote, misquoted)


def _cited_span(passage: Passage) -> Span | None:
    spans = passage.spans
    if not spans or any(span.page != spans[0].page for span in spans):
        return None
    if len(passage.chunks) == 1 and len(passage.text) > spans[0].end - spans[0].start:
        # The text was replaced with a longer one, such as a sentence window.
        return None
    return Span(spans[0].start, spans[-1].end, spans[0].page)


def renumbered(text: str, numbers: Mapping[int, int]) -> str:
    """The text with other numbers in its markers, to combine texts that cite different passages; others go."""

    def renumber(marker: re.Match[str]) -> str:
        known = [numbers[number] for number in numbers_in(marker) if number in numbers]
        return f"{known}" if known else without_markers(marker[0])

    return MARKER.sub(renumber, text)


def numbers_in(marker: re.Match[str]) -> list[int]:
    """The numbers of a marker, with ranges expanded."""
    numbers: list[int] = []
    for first, last in _RANGE.findall(marker[1]):
        start, end = int(first), int(last or first)
        # A reversed or very long range is not expanded.
        is_range = start <= end < start + _MAX_RANGE_LENGTH
        numbers += range(start, end + 1) if is_range else [start, end]
    return numbers


def _groups(text: str) -> Iterator[list[re.Match[str]]]:
    """The markers outside code, together with those that follow directly."""
    code = _code(text)
    group: list[re.Match[str]] = []
    for marker in MARKER.finditer(text):
        at = bisect_right(code, (marker.start(), len(text)))
        if at and marker.start() < code[at - 1][1]:
            continue
        if group and text[group[-1].end() : marker.start()].strip():
            yield group
            group = []
        group.append(marker)
    if group:
        yield group


def _code(text: str) -> list[tuple[int, int]]:
    """The code in a text of Markdown; neither a fence around the whole text, nor a marker in backticks, is code."""
    return [
        found.span()
        for found in _CODE.finditer(text)
        if found[0].strip() != text.strip() and MARKER.sub("", found[0]).strip(" `,\n")
    ]


def quote_before(text: str, start: int, end: int) -> str | None:
    """The quote between `start` and a marker at `end`, without its quotation marks; None if no quote ends there."""
    before = text[max(start, end - _MAX_QUOTE_LENGTH) : end].rstrip().rstrip(_BETWEEN).rstrip()
    opening = _OPENING.get(before[-1:], "")
    at = len(before) - 1
    while opening:
        at = max(before.rfind(mark, 0, at) for mark in opening)
        if at < 0:
            return None
        # A mark that can also close a quote, or mean inches, opens one only at the start of a word.
        if before[at] != before[-1] or (not before[at - 1 : at].isalnum() and not before[at + 1].isspace()):
            quote = before[at + 1 : -1].strip()
            return quote if any(map(str.isalnum, quote)) else None
    return None


def normal(text: str) -> str:
    """A text as it is compared: all whitespace and all quotation marks are alike, as are equivalent Unicode forms."""
    return " ".join(unicodedata.normalize("NFC", without_markers(text)).translate(_ALIKE).split())


def is_quoted(quote: str, text: str) -> bool:
    """Whether a text, as returned by `normal`, contains a quote: the parts around its ellipses, one after another."""
    # A full stop or comma at the end may belong to the sentence around the quote.
    *parts, last = (normal(part) for part in _LEFT_OUT.split(quote))
    place = 0
    for part in [*parts, last.rstrip(".,")]:
        found = text.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True
