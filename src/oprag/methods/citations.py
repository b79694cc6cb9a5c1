"""From a marker in an answer to the passage that it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from oprag.chunk import Span
from oprag.position import page_of
from oprag.stitch import Passage

__all__ = ["Citation", "citations_in", "renumbered"]

# [1], and [1, 3] or [1; 3], which models write unasked.
_MARKER = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


class Citation(NamedTuple):
    """One number of a marker in an answer.

    Attributes:
        number: The number, as it stands in the marker.
        start: Where the marker begins in the answer.
        end: Where it ends.
        passage: The passage that had this number in the prompt.
        source: Its source.
        page: Its page, by the printed label where there is one; None where it is not known, or where the passage is on
            several pages.
        span: Where it stands in the source, from its first to its last character; None where that is not known, or
            where it counts from several pages.
    """

    number: int
    start: int
    end: int
    passage: Passage
    source: str | None
    page: str | int | None
    span: Span | None

    def to_dict(self) -> dict[str, Any]:
        """The citation as values that JSON can hold, with the text of the passage and the ids of its chunks."""
        return {
            "number": self.number,
            "start": self.start,
            "end": self.end,
            "source": self.source,
            "page": self.page,
            "span": None if self.span is None else self.span._asdict(),
            "text": self.passage.text,
            "ids": [chunk.id for chunk in self.passage.chunks if chunk.id is not None],
        }


def citations_in(text: str, passages: Sequence[Passage]) -> tuple[Citation, ...]:
    """The markers in a text that lead to one of these passages; [1] is the first. Other numbers lead nowhere."""
    return tuple(
        _citation(int(number), marker, passages[int(number) - 1])
        for marker in _MARKER.finditer(text)
        for number in re.findall(r"\d+", marker[1])
        if 1 <= int(number) <= len(passages)
    )


def renumbered(text: str, offset: int, most: int) -> str:
    """The text with the numbers of its markers raised, so that it can stand beside a text with passages of its own.

    A number that leads to no passage stays, but in other brackets: raised or not, it would lead to one of another text.

    Args:
        text: The text.
        offset: How many numbered passages stand before those of this text.
        most: How many passages this text has.
    """

    def raised(marker: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", marker[0])]
        if not all(1 <= number <= most for number in numbers):
            return f"({marker[1]})"
        return f"[{', '.join(str(number + offset) for number in numbers)}]"

    return _MARKER.sub(raised, text)


def _citation(number: int, marker: re.Match[str], passage: Passage) -> Citation:
    pages = {page_of(chunk) for chunk in passage.chunks}
    if pages == {None}:
        pages = {span.page for span in passage.spans}
    page = pages.pop() if len(pages) == 1 else None
    return Citation(number, marker.start(), marker.end(), passage, passage.source, page, _span(passage))


def _span(passage: Passage) -> Span | None:
    spans = passage.spans
    if not spans or any(span.page != spans[0].page for span in spans):
        return None
    if len(passage.chunks) == 1 and len(passage.text) > spans[0].end - spans[0].start:
        # The text was replaced by a longer one, such as the window around a sentence.
        return None
    return Span(spans[0].start, spans[-1].end, spans[0].page)
